/* stages.c: the life of a request in the owner's hands: made from a pool, kept beyond its message, moved from stage to
 * stage, freed. Nothing here allocates for the usual request: ops come from slabs that are kept. */
#include "stages.h"
#include "../base/assert.h"
#include <stdlib.h>
#include <string.h>
#include "../dataplane/client.h"
#include "../dataplane/worker.h"
#include "../replication/replication.h"
#include "../storage/shard.h"

typedef struct slab {
    struct slab *next;
    op ops[OPS_A_SLAB];
} slab;

static bool add_slab(worker *w) {
    if (w->op_count + OPS_A_SLAB > w->op_max) return false;
    slab *s = malloc(sizeof *s);
    if (!s) return false;
    s->next = w->slabs;
    w->slabs = s;
    for (int i = OPS_A_SLAB; i-- > 0;) {
        s->ops[i].next_follower = w->free_ops;
        w->free_ops = &s->ops[i];
    }
    w->op_count += OPS_A_SLAB;
    return true;
}

void ops_free_slabs(worker *w) {
    for (slab *s = w->slabs, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    w->slabs = NULL;
}

op *op_new(client *c) {
    worker *w = c->w;
    if (!w->free_ops && !add_slab(w)) return NULL;
    op *o = w->free_ops;
    w->free_ops = o->next_follower;
    o->state = OP_ARRIVED;
    o->recorded = o->streams = o->quarantined = o->aside = o->fed = o->held = o->replicated = o->removes = false;
    o->announced = o->pulled = 0;
    o->hash = o->starved_ns = o->prepared_ns = 0;
    o->worker = w;
    o->client = c;
    o->tenant = (uint8_t)c->ticket.tenant;
    o->shard = NULL;
    o->memory = NULL;
    o->leader = o->followers = o->next_follower = NULL;
    o->message = NULL;
    o->copy = o->stream_bytes = NULL;
    o->kept_bytes = 0;
    o->transfer = NULL;
    o->arrived_ns = w->now_ns;
    list_init(&o->link);
    list_init(&o->timed);
    list_push(&c->ops, &o->of_client);
    c->op_count++;
    return o;
}

static void give_message_back(op *o) {
    if (o->message && o->client && !o->client->doomed) fab_release(o->client->conn, o->message);
    o->message = NULL;
}

void op_free(op *o) {
    worker *w = o->worker;
    fkv_assert(!o->held && !o->recorded && !o->followers && !o->transfer);
    list_remove(&o->timed);
    give_message_back(o);
    if (o->kept_bytes) {
        w->kept_bytes -= o->kept_bytes;
        free(o->copy);
        free(o->stream_bytes);
    }
    op_lose_client(o);
    o->next_follower = w->free_ops;
    w->free_ops = o;
}

void op_lose_client(op *o) {
    client *c = o->client;
    if (!c) return;
    list_remove(&o->of_client);
    c->op_count--;
    c->asides -= o->aside;
    o->client = NULL;
    o->message = NULL; /* given back, or freed with the connection */
}

uint8_t *op_keep(op *o, size_t bytes) {
    if (o->worker->kept_bytes + bytes > KEPT_BYTES_MAX) return NULL;
    uint8_t *m = malloc(bytes);
    if (!m) return NULL;
    o->worker->kept_bytes += bytes;
    o->kept_bytes += (uint32_t)bytes;
    return m;
}

bool op_detach(op *o) {
    if (!o->message) return true;
    uint32_t key_bytes = o->request.key_bytes, body_bytes = 0;
    if (o->request.flags & FKV_REQUEST_RENDEZVOUS)
        body_bytes = sizeof(fkv_rendezvous);
    else if (fkv_op_is(o->request.op, FKV_VALUED))
        body_bytes = o->request.value_bytes;
    uint8_t *copy = op_keep(o, key_bytes + body_bytes);
    if (!copy) return false;
    memcpy(copy, o->key, key_bytes);
    memcpy(copy + key_bytes, o->body, body_bytes);
    give_message_back(o);
    o->copy = copy;
    o->key = copy;
    o->body = copy + key_bytes;
    return true;
}

void op_release(op *o) {
    o->key = o->prepared.key;
    o->body = NULL;
    give_message_back(o);
    if (!o->copy) return;
    o->worker->kept_bytes -= o->kept_bytes;
    free(o->copy);
    o->copy = NULL;
    o->kept_bytes = 0;
}

/* ---- from stage to stage ---- */

void op_runs(op *o) {
    o->state = OP_RUNNABLE;
    list_push(&o->worker->runnable, &o->link);
}

void op_prepared(op *o) {
    fkv_assert(o->held);
    shard *s = o->shard;
    if (s->repl.backups) { /* mutation: replication/effect-before-backups */
        repl_append(o);
    } else {
        o->lsn = replica_draw_alone(&s->repl.owner);
        o->state = OP_READY;
        list_push(&o->worker->ready, &o->link);
    }
}

void op_refused(const op *o, fkv_status s) {
    worker *w = o->worker;
    w->stats.refused[s]++;
    uint8_t op = o->request.op; /* of a message that could not be parsed it is anything */
    if (op < FKV_OP_COUNT) w->tenant[o->tenant].refused_of[fkv_ops[op].counted][s]++;
}

void op_ends(op *o, fkv_status s) {
    list_remove(&o->timed);
    o->status = s;
    o->state = OP_ENDS;
    list_push(&o->worker->answering, &o->link);
}

void op_follow(op *o, op *first) {
    o->state = OP_FOLLOWS;
    o->leader = first;
    o->next_follower = first->followers;
    first->followers = o;
}

void op_unfollow(op *o) {
    op **at = &o->leader->followers;
    while (*at != o) at = &(*at)->next_follower;
    *at = o->next_follower;
    o->leader = o->next_follower = NULL;
    o->state = OP_ARRIVED;
}

/* ---- what dedup knows of it ---- */

static void unrecord(op *o) {
    o->recorded = false;
    dedup_leave(&o->worker->dedup, o->memory, o->worker->now_ns);
    o->memory = NULL;
}

void op_remember(op *o, fkv_status s) {
    if (!o->recorded) return;
    /* mutation: derive/retry-without-result */
    dedup_result r = { .status = s, .version = o->reply.version, .value = o->reply.expiry_ms };
    dedup_finish(o->memory, o->shard->slot, o->request.sequence, &r);
    unrecord(o);
}

void op_forget(op *o) {
    if (!o->recorded) return;
    dedup_cancel(o->memory, o->shard->slot, o->request.sequence);
    unrecord(o);
}

/* The first follower takes its place in dedup, and is to be run. */
static void pass_on(op *o) {
    op *heir = o->followers;
    if (!o->recorded || !heir) return;
    dedup_hand_over(o->memory, o->shard->slot, o->request.sequence, heir);
    heir->memory = o->memory;
    heir->recorded = true;
    o->recorded = false;
    o->memory = NULL;
    heir->leader = NULL;
    heir->followers = heir->next_follower;
    heir->next_follower = NULL;
    for (op *f = heir->followers; f; f = f->next_follower) f->leader = heir;
    o->followers = NULL;
    op_runs(heir);
}

void op_fails_alone(op *o, fkv_status s) {
    pass_on(o);
    op_ends(o, s);
}

void op_abandon(op *o) {
    pass_on(o);
    op_forget(o);
    op_free(o);
}
