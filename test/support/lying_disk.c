/* lying_disk.c: for LD_PRELOAD; makes the disk lie to whoever writes a log of values, so that tests are seen to notice it.
 *   FARKV_LYING_DISK=sync    the sync of a batch does nothing: what only the page cache has is lost with the power
 *   FARKV_LYING_DISK=write   and the last batches stay in the process until later ones come: they are lost with it
 * A batch is known by its magic (native/log/batch.h). Files are made as they should be, and so are snapshots. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 4096, BATCHES = 16, BLOCK = 4096 /* files may be open with O_DIRECT */ };
static const uint64_t BATCH_MAGIC = 0x6863746142766b66u;

typedef struct kept {
    void *bytes;
    size_t count;
    off_t at;
} kept;
/* The last batches that were written to a file, in a ring. */
typedef struct tail {
    kept held[BATCHES];
    unsigned written, begun;
} tail;
static tail tails[FILES];
static bool has_batches[FILES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fdatasync)(int);
static int (*real_close)(int);
static bool lies, lies_of_writes;

__attribute__((constructor)) static void begin(void) {
    real_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    real_close = (int (*)(int))dlsym(RTLD_NEXT, "close");
    const char *what = getenv("FARKV_LYING_DISK");
    lies_of_writes = what && strcmp(what, "write") == 0;
    lies = lies_of_writes || (what && strcmp(what, "sync") == 0);
}

static bool is_followed(int file) { return file >= 0 && file < FILES; }

/* All but the last `left` reach the file, in their order. With the lock. */
static void let_go(int file, unsigned left) {
    tail *t = &tails[file];
    for (; t->begun - t->written > left; t->written++) {
        kept *k = &t->held[t->written % BATCHES];
        if (real_pwrite(file, k->bytes, k->count, k->at) != (ssize_t)k->count) abort();
        free(k->bytes);
    }
}

ssize_t pwrite(int file, const void *from, size_t count, off_t at) {
    uint64_t magic = 0;
    if (count >= sizeof magic) memcpy(&magic, from, sizeof magic);
    if (magic != BATCH_MAGIC || !is_followed(file)) return real_pwrite(file, from, count, at);
    has_batches[file] = true;
    if (!lies_of_writes) return real_pwrite(file, from, count, at);
    pthread_mutex_lock(&lock);
    let_go(file, BATCHES - 1);
    tail *t = &tails[file];
    kept *k = &t->held[t->begun++ % BATCHES];
    *k = (kept){ aligned_alloc(BLOCK, count), count, at };
    if (!k->bytes) abort();
    memcpy(k->bytes, from, count);
    pthread_mutex_unlock(&lock);
    return (ssize_t)count;
}
ssize_t pwrite64(int file, const void *from, size_t count, off_t at) { return pwrite(file, from, count, at); }

int fdatasync(int file) { return lies && is_followed(file) && has_batches[file] ? 0 : real_fdatasync(file); }

int close(int file) {
    if (is_followed(file) && has_batches[file]) {
        has_batches[file] = false;
        pthread_mutex_lock(&lock);
        let_go(file, 0);
        pthread_mutex_unlock(&lock);
    }
    return real_close(file);
}
