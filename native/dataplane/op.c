/* op.c: the life of a request in the owner's hands: made from a pool, kept beyond its message, answered, or forgotten.
 * Nothing here allocates for the usual request: ops come from slabs that are kept. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

typedef struct slab {
    struct slab *next;
    op ops[OPS_A_SLAB];
} slab;

static bool add_slab(group *g) {
    if (g->op_count + OPS_A_SLAB > g->op_max) return false;
    slab *s = malloc(sizeof *s);
    if (!s) return false;
    s->next = g->slabs;
    g->slabs = s;
    for (int i = OPS_A_SLAB; i-- > 0;) {
        s->ops[i].next_follower = g->free_ops;
        g->free_ops = &s->ops[i];
    }
    g->op_count += OPS_A_SLAB;
    return true;
}

void ops_free_slabs(group *g) {
    for (slab *s = g->slabs, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    g->slabs = NULL;
}

op *op_new(client *c) {
    group *g = c->g;
    if (!g->free_ops && !add_slab(g)) return NULL;
    op *o = g->free_ops;
    g->free_ops = o->next_follower;
    o->state = OP_ARRIVED;
    o->recorded = o->streams = o->quarantined = o->aside = o->fed = false;
    o->starved_ns = 0;
    o->group = g;
    o->client = c;
    o->shard = NULL;
    o->memory = NULL;
    o->leader = o->followers = o->next_follower = NULL;
    o->message = NULL;
    o->copy = o->stream_bytes = NULL;
    o->kept_bytes = 0;
    o->transfer = NULL;
    o->arrived_ns = g->now_ns;
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
    group *g = o->group;
    list_remove(&o->timed);
    give_message_back(o);
    if (o->kept_bytes) {
        g->kept_bytes -= o->kept_bytes;
        free(o->copy);
        free(o->stream_bytes);
    }
    if (o->client) {
        list_remove(&o->of_client);
        o->client->op_count--;
        o->client->asides -= o->aside;
    }
    o->next_follower = g->free_ops;
    g->free_ops = o;
}

uint8_t *op_keep(op *o, size_t bytes) {
    if (o->group->kept_bytes + bytes > KEPT_BYTES_MAX) return NULL;
    uint8_t *m = malloc(bytes);
    if (!m) return NULL;
    o->group->kept_bytes += bytes;
    o->kept_bytes += (uint32_t)bytes;
    return m;
}

bool op_detach(op *o) {
    if (!o->message) return true;
    uint32_t key_bytes = o->request.key_bytes, body_bytes = 0;
    if (o->request.flags & FKV_REQUEST_RENDEZVOUS) body_bytes = sizeof(fkv_rendezvous);
    else if (fkv_op_is(o->request.op, FKV_VALUED)) body_bytes = o->request.value_bytes;
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

static void forget(op *o) {
    o->recorded = false;
    dedup_leave(&o->group->dedup, o->memory, o->group->now_ns);
    o->memory = NULL;
}

/* The statuses that are a change's result; after any other it was not made, and a retry makes it anew. */
static bool is_result(fkv_status s) { return s == FKV_OK || s == FKV_NOT_FOUND || s == FKV_VERSION_MISMATCH; }

/* After these a client sends the same change again. */
static bool is_tried_again(fkv_status s) {
    return s == FKV_BUSY || s == FKV_SHARD_CLOSED || s == FKV_NOT_OWNER || s == FKV_DISCONNECTED;
}

/* A change that failed is forgotten, unless another copy of it may still come, which is not to be made after its client was told
 * that it failed. */
static bool is_remembered(const op *o, fkv_status s) {
    bool copies = (o->request.flags & FKV_REQUEST_RETRY) || o->followers;
    return is_result(s) || (copies && !is_tried_again(s));
}

void op_answer(op *o, fkv_status s) {
    group *g = o->group;
    list_remove(&o->timed);
    if (o->recorded) {
        if (is_remembered(o, s)) dedup_finish(o->memory, o->shard->slot, o->request.sequence, s, o->reply.version);
        else dedup_cancel(o->memory, o->shard->slot, o->request.sequence);
        forget(o);
    }
    for (op *f = o->followers, *next; f; f = next) {
        next = f->next_follower;
        f->leader = f->next_follower = NULL;
        f->reply.version = o->reply.version;
        op_answer(f, s);
    }
    o->followers = NULL;
    if (s != FKV_OK && s != FKV_NOT_FOUND && s != FKV_VERSION_MISMATCH) g->stats.refused[s]++;
    if (!o->client) {
        op_free(o);
        return;
    }
    if (o->shard && o->shard->table) {
        o->reply.layout_epoch = table_layout_epoch(o->shard->table);
        o->reply.buckets = table_buckets(o->shard->table);
    }
    o->shard = NULL;   /* it may be freed before the reply is sent */
    o->reply.status = (uint8_t)s;
    reply_send(o);
}

op *op_pass_on(op *o) {
    op *heir = o->followers;
    if (!o->recorded || !heir) return NULL;
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
    heir->state = OP_ARRIVED;
    return heir;
}

void op_abandon(op *o) {
    op *heir = op_pass_on(o);
    if (o->recorded) {
        dedup_cancel(o->memory, o->shard->slot, o->request.sequence);
        forget(o);
    }
    op_free(o);
    if (heir) wait_or_run(heir);
}
