/* openssl.c: see openssl.h. */
#include "openssl.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAJOR = 3 };

static struct {
    pthread_once_t once;
    openssl functions;
    char missing[160]; /* empty: nothing is */
} found = { .once = PTHREAD_ONCE_INIT };

static bool take(void *library, const char *name, void *pointer, size_t bytes) {
    void *at = dlsym(library, name);
    memcpy(pointer, &at, bytes); /* ISO C has no other way from an object's address to a function's */
    if (!at) snprintf(found.missing, sizeof found.missing, "OpenSSL's function %s is not there", name);
    return at != NULL;
}

static void look(void) {
    openssl *f = &found.functions;
    void *library = dlopen(NULL, RTLD_NOW);
    if (!library || !dlsym(library, "SSL_new")) library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(found.missing, sizeof found.missing,
                 "this program has no OpenSSL, and there is no libssl.so.3 (apt-get install libssl3)");
        return;
    }
#define X(TYPE, name, parameters) \
    if (!take(library, #name, &f->name, sizeof f->name)) return;
    OPENSSL_FUNCTIONS(X)
#undef X
    unsigned long version = f->OpenSSL_version_num();
    if (version >> 28 != MAJOR)
        snprintf(found.missing, sizeof found.missing, "OpenSSL %d is needed, this program has version %lu.%lu", MAJOR,
                 version >> 28, version >> 20 & 0xff);
}

const char *openssl_missing(void) {
    pthread_once(&found.once, look);
    return found.missing[0] ? found.missing : NULL;
}

const openssl *openssl_get(void) { return openssl_missing() ? NULL : &found.functions; }
