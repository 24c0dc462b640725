/* open.c: a shard is opened, on the worker's thread, with memory that was made before (storage/memory.c): it has a table, and
 * an account of its copies, of which it has none. */
#include "open.h"
#include <stdlib.h>
#include "../dataplane/command.h"
#include "../dataplane/worker.h"
#include "../storage/memory.h"
#include "copies.h"
#include "replicate.h"
#include "replication.h"

/* There is one: a worker has at most as many shards as there are slots. */
static uint32_t free_slot(const worker *w) {
    uint32_t slot = 0;
    while (w->slot_taken[slot]) slot++;
    return slot;
}

fkv_status open_anew(shard *s, uint32_t epoch, uint64_t id) {
    s->epoch = epoch;
    s->incarnation = s->repl.logged_as = id;
    s->repl.owner = (replica_owner){ .epoch = epoch, .min_in_sync = 1, .in_sync = 1, .log = { .kept = s->durable } };
    for (int i = 0; i < REPLICA_PEERS; i++) copies_place(s, i, 0);
    s->repl.appended = (append_cursor){ 0 };
    s->repl.snapshot = (shard_snapshot){ 0 };
    list_init(&s->repl.appended.behind);
    list_init(&s->repl.snapshot.wanted);
    list_init(&s->repl.snapshot.asking);
    list_init(&s->repl.snapshot.waiting);
    bool had_owner = epoch > DATAPLANE_EPOCH_FIRST;
    return dedup_open_slot(&s->w->dedup, s->slot, had_owner, s->w->now_ns) == 0 ? FKV_OK : FKV_NO_MEMORY;
}

static fkv_status make(worker *w, command *c, shard **out) {
    shard *s = *out = calloc(1, sizeof *s);
    if (!s) return FKV_NO_MEMORY;
    *s = (shard){ .w = w,
                  .number = c->number,
                  .slot = free_slot(w),
                  .names = c->open.incarnation,
                  .durable = c->open.durable,
                  .tick_ns = UINT64_MAX };
    list_init(&s->of_worker);
    list_init(&s->repl.unacked);
    list_init(&s->repl.bulks);
    list_init(&s->repl.senders);
    list_init(&s->repl.unsent);
    list_init(&s->repl.imports);
    if (open_anew(s, c->open.epoch, c->open.incarnation) != FKV_OK) return FKV_NO_MEMORY;
    for (int k = 0; k < 2; k++) {
        s->files[k] = c->files[k]; /* the shard's from here on */
        c->files[k] = NULL;
    }
    table_config t = memory_table_config(w->d, &c->open, s);
    fkv_status status = table_create(&t, &s->table);
    if (status != FKV_OK) return status;
    shard_limit(s);
    table_tick(s->table, w->now_ns, w->wall_ms, 0);
    segment **first[] = { &c->first_index, &c->first_heap };
    for (int i = 0; i < 2; i++) {
        status = shard_add_segment(s, *first[i]);
        if (status != FKV_OK) return status;
        *first[i] = NULL; /* the shard's from here on */
    }
    s->notified_epoch = table_layout_epoch(s->table);
    return FKV_OK;
}

void repl_open(job *j) {
    command *c = (command *)j;
    worker *w = c->w;
    shard *s = NULL;
    c->status = w->stopping ? FKV_CLOSED : make(w, c, &s);
    if (c->status == FKV_OK && !(c->result = shard_describe(s))) c->status = FKV_NO_MEMORY;
    if (c->status == FKV_OK) {
        list_push(&w->shards, &s->of_worker);
        w->by_number[s->number] = s;
        w->slot_taken[s->slot] = true;
        replicate_count(s);
        s = NULL;
    }
    memory_opened(c, s);
}
