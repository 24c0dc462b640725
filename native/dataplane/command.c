/* command.c: how a call from another thread begins and ends, and what is known of its shard meanwhile. A call for
 * a shard that is not open is answered without asking a worker. The calls themselves are in serve/calls.c and
 * replication/calls.c. */
#include "command.h"
#include <stdlib.h>

void command_done(command *c, fkv_status s, void *result) {
    c->done(c->ctx, s, result);
    free(c->join);
    free(c->lead);
    free(c->page);
    free(c);
}

void command_end(command **of, fkv_status s) {
    command *c = *of;
    *of = NULL;
    if (c) command_done(c, s, NULL);
}

void dataplane_place(dataplane *d, uint32_t shard, place_state state) {
    pthread_mutex_lock(&d->lock);
    d->place[shard].state = (uint8_t)state;
    pthread_mutex_unlock(&d->lock);
}

/* ---- made and posted ---- */

command *command_make(dataplane *d, uint32_t number, void (*run)(job *), dataplane_done done, void *ctx) {
    command *c = calloc(1, sizeof *c);
    if (!c) {
        done(ctx, FKV_NO_MEMORY, NULL);
        return NULL;
    }
    *c = (command){ .job.run = run, .d = d, .done = done, .ctx = ctx, .number = number };
    return c;
}

fkv_status command_place_status(const dataplane *d, uint32_t shard) {
    if (d->state != DP_RUNNING) return FKV_CLOSED;
    if (shard >= d->c.shards) return FKV_BAD_REQUEST;
    switch ((place_state)d->place[shard].state) {
    case PLACE_OPEN: return FKV_OK;
    case PLACE_CLOSING: return FKV_BUSY;
    default: return FKV_NOT_OWNER;
    }
}

/* Under the lock, so that nothing is posted after the threads were told to stop. */
void command_post(dataplane *d, command *c, place_state then) {
    uint32_t shard = c->number;
    pthread_mutex_lock(&d->lock);
    fkv_status s = command_place_status(d, shard);
    if (s == FKV_OK) {
        d->place[shard].state = (uint8_t)then;
        c->w = d->worker[d->place[shard].worker];
        worker_post(c->w, &c->job);
    }
    pthread_mutex_unlock(&d->lock);
    if (s != FKV_OK) command_done(c, s, NULL);
}
void command_ask(dataplane *d, uint32_t shard, void (*run)(job *), place_state then, dataplane_done done, void *ctx) {
    command *c = command_make(d, shard, run, done, ctx);
    if (c) command_post(d, c, then);
}
