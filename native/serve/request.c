/* request.c: a message has come: checked, counted, and put into the batch at hand. What follows is in run.c. */
#include "request.h"
#include <string.h>
#include "../dataplane/client.h"
#include "../storage/shard.h"
#include "stages.h"
#include "stream.h"
#include "transfer.h"
#include "wait.h"

/* Whether the client has asked the same before and its answer is still to be sent. One that was cancelled is none any
 * more. */
static bool is_asked_already(const client *c, const op *o) {
    for (const fkv_list *l = c->ops.next; l != &c->ops; l = l->next) {
        const op *p = LIST_OF(l, op, of_client);
        if (p == o || p->request.op != o->request.op || p->state == OP_ENDS || (p->state == OP_ANSWERS && !p->streams))
            continue;
        if (!fkv_op_is(p->request.op, FKV_OF_SHARD) || p->request.shard == o->request.shard) return true;
    }
    return false;
}

/* What clients say may be anything: no figure falls, and a READ has at most a value's bytes. */
static void take_report(const op *o, const uint8_t *body) {
    dataplane_reports *sum = &o->worker->tenant[o->tenant].reports;
    fkv_report r;
    memcpy(&r, body, sizeof r);
    sum->hits += r.hits;
    sum->misses += r.misses;
    sum->reads += r.reads;
    sum->followed += r.followed;
    sum->torn += r.torn;
    sum->late += r.late;
    sum->foreign += r.foreign;
    sum->two_sided += r.two_sided;
    uint64_t bytes = min_u64(r.read_bytes, (uint64_t)r.reads * FKV_VALUE_MAX);
    sum->read_bytes += min_u64(bytes, UINT64_MAX - sum->read_bytes);
}

/* What a client's reads wait for does not count against the quota: it must not fail because of its changes. One of a
 * kind is enough at a time. */
static fkv_status admit(worker *w, client *c, op *o) {
    const fkv_request *r = &o->request;
    uint32_t needed = fkv_op_is(r->op, FKV_CHANGES)  ? FKV_TICKET_WRITE
                      : fkv_op_is(r->op, FKV_RENEWS) ? 0
                                                     : FKV_TICKET_READ;
    if (r->flags & FKV_REQUEST_SCAN_COPY) needed |= FKV_TICKET_COPY;
    if ((c->ticket.flags & needed) != needed) return FKV_UNAUTHORIZED; /* mutation: dataplane/any-right */
    bool aside = fkv_op_is(r->op, FKV_ASIDE);
    /* Also with a LEASE that is refused since another is under way: no report comes twice. */
    if (aside && fkv_op_is(r->op, FKV_REPORTS) && r->value_bytes && !(c->ticket.flags & FKV_TICKET_SERVERS))
        take_report(o, o->body);
    if (aside ? c->asides && is_asked_already(c, o) : c->op_count - c->asides > w->d->c.client_quota) return FKV_BUSY;
    if (aside) {
        o->aside = true;
        c->asides++;
    }
    if (!fkv_op_is(r->op, FKV_OF_SHARD)) return FKV_OK;
    if (r->shard >= w->d->c.shards) return FKV_BAD_REQUEST;
    /* mutation: tenants/another-tenants-shard */
    if (!fkv_range_has(c->tenant->shards, r->shard)) return FKV_UNAUTHORIZED;
    o->shard = w->by_number[r->shard];
    fkv_status s = r->flags & FKV_REQUEST_SCAN_COPY ? shard_copy_status(w, o->shard) : shard_status(w, o->shard);
    /* A change waits for the next owner, or for this one to go on. */
    if (s != FKV_OK && fkv_op_is(r->op, FKV_CHANGES) && shard_hands(o->shard)) s = FKV_OK;
    if (!fkv_op_is(r->op, FKV_KEYED)) return s;
    /* Of a refusal, too: its line in the log names the key by it. */
    o->hash = fkv_hash_key(&w->d->c.hash_seed, r->space, o->key, r->key_bytes);
    if (s != FKV_OK) return s;
    return fkv_range_shard(c->tenant->shards, o->hash) == r->shard ? FKV_OK : FKV_BAD_REQUEST;
}

static op *find(client *c, uint64_t id) {
    for (fkv_list *l = c->ops.next; l != &c->ops; l = l->next) {
        op *o = LIST_OF(l, op, of_client);
        if (o->request.id == id) return o;
    }
    return NULL;
}

/* What has not taken effect is dropped; what is prepared goes on. Either is answered, so that the client knows. Of a
 * copy that follows another it is not known what the other will do. */
static void cancel(client *c, uint64_t id) {
    op *o = find(c, id);
    if (!o) return;
    if (op_waits(o)) {
        fkv_status s = o->state == OP_FOLLOWS ? FKV_STALE_SEQUENCE : FKV_ABORTED;
        wait_remove(o);
        op_fails_alone(o, s);
    } else if (o->state == OP_TRANSFERS) {
        transfer_fail(o, FKV_ABORTED);
    } else if (o->state == OP_ANSWERS && o->streams) {
        stream_fail(o, FKV_ABORTED);
    }
}

void request_received(worker *w, client *c, const fab_wc *wc) {
    /* A client that neither takes replies nor stops asking: beyond this it is not worth keeping. What its reads wait for
     * is bounded by itself (admit), and may be more than the quota: a LAYOUT of each shard. */
    op *o = c->op_count - c->asides <= 2 * w->d->c.client_quota ? op_new(c) : NULL;
    if (!o) {
        w->stats.refused[FKV_BUSY]++;
        client_doom(c, FKV_END_QUOTA);
        return;
    }
    o->message = wc->data;
    fkv_status s = wire_parse_request(wc->data, wc->bytes, &o->request, &o->key, &o->body);
    if (wc->bytes < sizeof o->request) { /* there is no id under which to answer */
        w->stats.refused[FKV_BAD_REQUEST]++;
        op_free(o);
        client_doom(c, FKV_END_MALFORMED);
        return;
    }
    if (s == FKV_OK && o->request.op == FKV_OP_CANCEL) {
        uint64_t id = o->request.expected;
        op_free(o);
        cancel(c, id);
        return;
    }
    o->reply = (fkv_reply){ .op = o->request.op, .shard = o->request.shard, .id = o->request.id };
    if (s == FKV_OK) {
        w->stats.requests[fkv_ops[o->request.op].counted]++;
        s = admit(w, c, o);
    }
    if (s != FKV_OK) {
        op_ends(o, s);
        return;
    }
    if (o->shard) o->shard->touched = true;
    if (fkv_op_is(o->request.op, FKV_KEYED)) table_prefetch(o->shard->table, o->hash, 0);
    w->batch[w->batch_count++] = o;
}
