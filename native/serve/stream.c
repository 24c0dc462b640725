/* stream.c: replies on their way out: in order for each client, as fast as it gives credits, a slice of a long one at a
 * time so that short ones behind it are not held up.
 *
 * A reply that `streams` is made message by message from `stream_at` to `stream_end`: bytes of a value (GET), of
 * serialised entries (SCAN), segments (LAYOUT), shards (LEASE). Nothing is copied ahead: a value goes out from the
 * table's memory, which stays as it is until the quarantine has passed after the entry was replaced; so it is looked up
 * again after half of that. */
#include "stream.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "../dataplane/client.h"
#include "../dataplane/latency.h"
#include "../dataplane/worker.h"
#include "../storage/shard.h"
#include "lease.h"

enum { LIST_MAX = 256 }; /* segments or shards in one message */

uint32_t stream_body_max(const client *c) { return c->max_message - (uint32_t)sizeof(fkv_reply); }

static int send_message(client *c, const fkv_reply *r, const void *head, uint32_t head_bytes, const void *body,
                        uint32_t bytes) {
    struct iovec v[3] = { { (void *)(uintptr_t)r, sizeof *r },
                          { (void *)(uintptr_t)head, head_bytes },
                          { (void *)(uintptr_t)body, bytes } };
    if (head_bytes == 0) v[1] = v[2];
    return fab_send(c->conn, v, 1 + (head_bytes != 0) + (bytes != 0));
}

static fkv_reply next_reply(const op *o, uint32_t body_bytes, bool last) {
    fkv_reply r = o->reply;
    r.body_bytes = body_bytes;
    r.flags = last ? 0 : FKV_REPLY_MORE;
    return r;
}

/* Each returns 0 when a message was sent and stream_at moved on, else a negative errno; -ESTALE: the reply cannot be
 * finished. */

static int send_value(op *o) {
    uint64_t quarantine = o->worker->d->c.quarantine_ns, age = o->worker->now_ns - o->stream_checked_ns;
    if (age > quarantine / 2) {
        table_entry e;
        table_busy why;
        fkv_status s = table_get(o->shard->table, o->request.space, o->key, o->request.key_bytes, o->hash, &e, &why);
        if (s == FKV_OK && e.version == o->reply.version) {
            o->stream_value = e.value;
            o->stream_checked_ns = o->worker->now_ns;
            /* BUSY: a change of the key is prepared, ours is still there */
        } else if (s != FKV_BUSY || age > quarantine / 4 * 3) {
            return -ESTALE;
        }
    }
    uint32_t left = o->stream_end - o->stream_at, max = stream_body_max(o->client), n = left < max ? left : max;
    fkv_reply r = next_reply(o, n, n == left);
    r.offset = o->stream_at;
    int e = send_message(o->client, &r, NULL, 0, o->stream_value + o->stream_at, n);
    if (e == 0) o->stream_at += n;
    return e;
}

static int send_entries(op *o) {
    uint32_t max = stream_body_max(o->client), end = o->stream_at, next = end;
    fkv_scan_entry entry;
    const uint8_t *key, *value;
    if (max > FKV_SCAN_REPLY_MAX) max = FKV_SCAN_REPLY_MAX;
    while (wire_next_scan_entry(o->stream_bytes, o->stream_end, &next, &entry, &key, &value)) {
        if (next - o->stream_at > max) break;
        end = next;
    }
    if (end == o->stream_at && end < o->stream_end) return -ESTALE; /* a reply that cannot move on must not go on */
    fkv_reply r = next_reply(o, end - o->stream_at, end == o->stream_end);
    int e = send_message(o->client, &r, NULL, 0, o->stream_bytes + o->stream_at, end - o->stream_at);
    if (e == 0) o->stream_at = end;
    return e;
}

static int send_segments(op *o) {
    shard *s = o->shard;
    fkv_layout_segment list[LIST_MAX];
    uint32_t room = (stream_body_max(o->client) - (uint32_t)sizeof(fkv_layout)) / (uint32_t)sizeof *list;
    uint32_t n = shard_segments(s, o->client->place, o->stream_at, list, room < LIST_MAX ? room : LIST_MAX);
    uint32_t count = (uint32_t)table_segments(s->table, NULL, 0);
    fkv_layout head = { .incarnation = s->incarnation,
                        .layout_epoch = table_layout_epoch(s->table),
                        .epoch = s->epoch,
                        .buckets = table_buckets(s->table),
                        .count = count,
                        .first = o->stream_at,
                        .here = n };
    if (n == 0 && count > o->stream_at) return -ESTALE; /* no memory for the list */
    bool last = o->stream_at + n >= count;
    fkv_reply r = next_reply(o, (uint32_t)(sizeof head + n * sizeof *list), last);
    int e = send_message(o->client, &r, &head, sizeof head, list, n * (uint32_t)sizeof *list);
    if (e) return e;
    o->stream_at += n;
    o->stream_end = last ? o->stream_at : count; /* segments may have come or gone since the last message */
    return 0;
}

static int send_lease(op *o) {
    fkv_lease_shard list[LIST_MAX];
    uint32_t room = stream_body_max(o->client) / (uint32_t)sizeof *list, next, n;
    uint64_t granted;
    n = lease_grant(o->worker, o->client->tenant->shards, o->stream_at, list, room < LIST_MAX ? room : LIST_MAX, &next,
                    &granted);
    if (granted == 0) return -ESTALE;
    fkv_reply r = next_reply(o, n * (uint32_t)sizeof *list, next >= o->stream_end);
    r.version = fkv_wall_ms();
    r.expiry_ms = granted;
    int e = send_message(o->client, &r, NULL, 0, list, n * (uint32_t)sizeof *list);
    if (e == 0) o->stream_at = next;
    return e;
}

static int send_next(op *o) {
    if (!o->streams) return send_message(o->client, &o->reply, NULL, 0, NULL, 0);
    int e;
    switch (fkv_op_answer(o->request.op)) {
    case FKV_BODY_VALUE: e = send_value(o); break;
    case FKV_BODY_ENTRIES: e = send_entries(o); break;
    case FKV_BODY_LAYOUT: e = send_segments(o); break;
    default: e = send_lease(o); break;
    }
    if (e != -ESTALE) return e;
    stream_fail(o, !fkv_op_is(o->request.op, FKV_OF_SHARD) ? FKV_SHARD_CLOSED : FKV_BUSY);
    return send_next(o);
}

void stream_fail(op *o, fkv_status s) {
    op_refused(o, s);
    o->streams = false;
    o->shard = NULL;
    o->reply = (fkv_reply){ .op = o->request.op, .status = (uint8_t)s, .shard = o->request.shard, .id = o->request.id };
}

/* A slice of one reply. 0: all of it was sent; 1: there is more; or a negative errno. */
static int send_slice(op *o) {
    uint32_t max = stream_body_max(o->client);
    for (uint32_t sent = 0; sent < REPLY_SLICE; sent += max) {
        int e = send_next(o);
        if (e) return e;
        if (!o->streams || o->stream_at >= o->stream_end) return 0;
    }
    return 1;
}

/* `e`: 0 when all of it was sent. */
static void finished(op *o, int e) {
    if (e == 0) latency_answered(o);
    if (o->stream_bytes == o->worker->scratch) o->stream_bytes = NULL;
    op_free(o);
}

static void block(client *c) {
    c->is_blocked = true;
    c->blocked_ns = c->w->now_ns;
    list_remove(&c->sending);
    list_push(&c->w->blocked, &c->blocked);
}

/* What a SCAN found lies in memory that the next SCAN will use. */
static void keep_entries(op *o) {
    if (!o->streams || o->stream_bytes == NULL || o->stream_bytes != o->worker->scratch) return;
    uint32_t left = o->stream_end - o->stream_at;
    uint8_t *own = op_keep(o, left + 1);
    if (own) memcpy(own, o->stream_bytes + o->stream_at, left);
    o->stream_bytes = own;
    o->stream_at = 0;
    o->stream_end = left;
    if (!own) stream_fail(o, FKV_BUSY);
}

void reply_send(op *o) {
    client *c = o->client;
    int e = 1;
    o->state = OP_ANSWERS;
    if (list_empty(&c->out) && !c->is_blocked && !c->doomed) e = send_slice(o);
    if (e == 0 || (e < 0 && e != -EAGAIN)) { /* in error: the end of the connection is on its way */
        finished(o, e);
        return;
    }
    keep_entries(o);
    list_push(&c->out, &o->link);
    if (e == -EAGAIN)
        block(c);
    else if (!c->is_blocked && !c->doomed && list_empty(&c->sending))
        list_push(&c->w->sending, &c->sending);
}

void reply_credits(client *c) {
    if (c->doomed || !c->is_blocked) return; /* one that is to be ended is in neither list any more */
    c->is_blocked = false;
    list_remove(&c->blocked);
    if (!list_empty(&c->out)) list_push(&c->w->sending, &c->sending);
}

static void continue_client(client *c) {
    for (uint32_t turn = 0; turn < REPLIES_A_TURN && !list_empty(&c->out); turn++) {
        op *o = LIST_OF(c->out.next, op, link);
        bool streamed = o->streams;
        int e = send_slice(o);
        if (e == -EAGAIN) {
            block(c);
            return;
        }
        list_remove(&o->link);
        if (e == 1)
            list_push(&c->out, &o->link);
        else
            finished(o, e);
        if (streamed) break; /* the other clients first */
    }
    if (list_empty(&c->out)) list_remove(&c->sending);
}

bool replies_continue(worker *w) {
    fkv_list now;
    list_take_all(&w->sending, &now);
    while (!list_empty(&now)) {
        client *c = LIST_OF(now.next, client, sending);
        list_remove(&c->sending);
        list_push(&w->sending, &c->sending);
        continue_client(c);
    }
    while (!list_empty(&w->blocked)) {
        client *c = LIST_OF(w->blocked.next, client, blocked);
        if (w->now_ns - c->blocked_ns < (uint64_t)w->d->c.stall_ms * 1000000u) break;
        client_doom(c, FKV_END_STALL);
    }
    return !list_empty(&w->sending);
}

uint64_t replies_deadline(const worker *w) {
    if (list_empty(&w->blocked)) return UINT64_MAX;
    return LIST_OF(w->blocked.next, client, blocked)->blocked_ns + (uint64_t)w->d->c.stall_ms * 1000000u;
}
