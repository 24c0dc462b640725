/* command.h: calls from other threads, as jobs that hop from thread to thread. Private to native/dataplane. */
#ifndef FARKV_DATAPLANE_COMMAND_H
#define FARKV_DATAPLANE_COMMAND_H
#include "shard.h"
#include "worker.h"

/* A call from another thread. Its job hops between threads; command_done ends it. */
struct command {
    job job;
    dataplane *d;
    dataplane_done done;
    void *ctx;
    worker *w;
    uint32_t number; /* of the shard */
    dataplane_shard open;
    segment *first_index, *first_heap;
    fkv_files *files[2];  /* of the shard that is opened */
    void (*opens)(job *); /* on the worker's thread, when these are made */
    shard *failed;        /* to be freed on the memory thread */
    dataplane_stats *stats;
    uint64_t sealed_for;
    uint64_t copy; /* id of one */
    struct copy_join *join;
    struct copy_lead *lead;
    struct base_page *page;
    fkv_list importing; /* in shard.imports */
    const uint8_t *entries;
    uint32_t entries_bytes, entries_at;
    fkv_status status;
    void *result;
};
void command_done(command *c, fkv_status s, void *result);
/* On the worker's thread: the shard that it is about, or NULL and why there is none. */
static inline shard *command_shard(const command *c) { return c->w->stopping ? NULL : c->w->by_number[c->number]; }
static inline fkv_status command_none(const command *c) { return c->w->stopping ? FKV_CLOSED : FKV_NOT_OWNER; }
/* What is known of a shard, for calls to come. Takes the lock: on the memory thread only. */
void dataplane_place(dataplane *d, uint32_t shard, place_state state);

#endif
