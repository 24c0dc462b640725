/* command.h: calls from other threads, as jobs that hop from thread to thread. Private to the data plane's folders. */
#ifndef FARKV_DATAPLANE_COMMAND_H
#define FARKV_DATAPLANE_COMMAND_H
#include "worker.h"

typedef struct command command;
typedef struct segment segment;

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
    uint64_t copy; /* id of one */
    struct copy_join *join;
    struct copy_lead *lead;
    struct base_page *page;
    fkv_list importing; /* in shard.repl.imports */
    const uint8_t *entries;
    uint32_t entries_bytes, entries_at;
    fkv_status status;
    void *result;
};
void command_done(command *c, fkv_status s, void *result);
/* Of one that is kept until something has come to pass: `of` is NULL afterwards. NULL: nothing. */
void command_end(command **of, fkv_status s);
/* NULL: no memory, and `done` was told so. */
command *command_make(dataplane *d, uint32_t number, void (*run)(job *), dataplane_done done, void *ctx);
/* The state of the shard's place as a status; OK when there is an open shard. Under the lock. */
fkv_status command_place_status(const dataplane *d, uint32_t shard);
/* To the thread of its shard, whose place is in that state from then on; where there is none, the command is done. */
void command_post(dataplane *d, command *c, place_state then);
/* Both, of a command that has nothing more to say. */
void command_ask(dataplane *d, uint32_t shard, void (*run)(job *), place_state then, dataplane_done done, void *ctx);
/* On the worker's thread: the shard that it is about, or NULL and why there is none. */
static inline shard *command_shard(const command *c) { return c->w->stopping ? NULL : c->w->by_number[c->number]; }
static inline fkv_status command_none(const command *c) { return c->w->stopping ? FKV_CLOSED : FKV_NOT_OWNER; }
/* What is known of a shard, for calls to come. Takes the lock: on the memory thread only. */
void dataplane_place(dataplane *d, uint32_t shard, place_state state);

#endif
