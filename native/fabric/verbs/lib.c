#include "lib.h"
#ifdef FARKV_HAVE_VERBS
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static verbs_lib table;
static bool complete;
static char reason[256];

static bool find(void *library, const char *name, void *field) {
    void *symbol = dlsym(library, name);
    if (!symbol) {
        snprintf(reason, sizeof reason, "the RDMA libraries have no %s; install a newer rdma-core", name);
        return false;
    }
    memcpy(field, &symbol, sizeof symbol); /* ISO C has no cast from an object pointer to a function's */
    return true;
}

static void load(void) {
    void *ibv = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    void *cm = ibv ? dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!ibv || !cm) {
        snprintf(reason, sizeof reason, "%s is not installed: apt-get install libibverbs1 librdmacm1 ibverbs-providers",
                 ibv ? "librdmacm.so.1" : "libibverbs.so.1");
        return;
    }
#define X(result, name, arguments) \
    if (!find(ibv, #name, &table.name)) return;
    VERBS_IBV_FUNCTIONS(X)
#undef X
#define X(result, name, arguments) \
    if (!find(cm, #name, &table.name)) return;
    VERBS_CM_FUNCTIONS(X)
#undef X
    complete = true;
}

const verbs_lib *verbs_lib_load(const char **why) {
    pthread_once(&once, load);
    if (why) *why = complete ? NULL : reason;
    return complete ? &table : NULL;
}
#else
typedef int verbs_lib_not_built; /* a translation unit is not empty */
#endif
