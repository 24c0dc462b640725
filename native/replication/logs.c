/* logs.c: the logs of all workers: looked at and read when the data plane starts. */
#include <errno.h>
#include <stdio.h>
#include "../dataplane/worker.h"
#include "durable.h"
#include "recovery.h"
#include "replication.h"

bool repl_log_ok(const dataplane_log *l) {
    uint64_t buffer = l->buffer_bytes ? l->buffer_bytes : WAL_BATCH_MAX;
    uint64_t file = l->file_bytes ? l->file_bytes : LOG_FILE_BYTES;
    uint64_t chunk = l->chunk_bytes ? l->chunk_bytes : SNAPSHOT_CHUNK_MAX;
    return buffer >= LOG_BUFFER_MIN && buffer <= WAL_BATCH_MAX && file >= WAL_FILE_MIN(buffer) &&
           (l->shard_memory_bytes == 0 || (l->shard_memory_bytes >= TABLE_MEMORY_MIN && l->recovers)) &&
           chunk >= ITEM_CHUNK_MIN && chunk <= SNAPSHOT_CHUNK_MAX && (buffer | file | chunk) % WAL_BLOCK == 0;
}

/* One worker's log, and what is in it. */
typedef struct log_start {
    worker *w;
    pthread_t thread;
    bool has_thread, damaged;
    int error;
    char why[256];
} log_start;

static void *start_log(void *arg) {
    log_start *l = arg;
    l->error = durable_start(l->w, &l->damaged, l->why, sizeof l->why);
    return NULL;
}

/* Before the workers' threads run, and when the helpers take jobs. All workers' at the same time: there may be much to
 * read. */
int repl_start(dataplane *d, bool *damaged, char *why, size_t room) {
    log_start l[DATAPLANE_WORKERS_MAX] = { 0 };
    if (!d->c.log.disk) return 0;
    int e = recovery_find(d, why, room);
    if (e != 0) return e;
    for (uint32_t i = 0; i < d->c.workers; i++) {
        l[i].w = d->worker[i];
        l[i].has_thread = !d->stepped && thread_start(&l[i].thread, start_log, &l[i]) == 0;
        if (!l[i].has_thread) start_log(&l[i]);
    }
    for (uint32_t i = 0; i < d->c.workers; i++) {
        if (l[i].has_thread) pthread_join(l[i].thread, NULL);
        /* A log that must not be touched counts before one that may be made anew. */
        if (l[i].error == 0 || (e != 0 && (l[i].damaged || !*damaged))) continue;
        e = l[i].error;
        *damaged = l[i].damaged;
        snprintf(why, room, "%s", l[i].why);
    }
    int ended = recovery_ends(d); /* whatever a log's reader has made of being given up */
    return ended == -ECANCELED || e == 0 ? ended : e;
}

void repl_free(dataplane *d) { recovery_free(d); }
