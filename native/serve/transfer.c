/* transfer.c: large values. The request names memory of the client; the owner fetches the value from there
 * (bulk/fetch.c) into the extent that was prepared for it, which no reader accepts while it is PENDING. The CRC is
 * computed from the extent once all is there, for the client may change its memory meanwhile. */
#include "transfer.h"
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../dataplane/client.h"
#include "../dataplane/worker.h"
#include "../storage/shard.h"

struct transfer {
    fetch fetch;
    fkv_list link; /* worker.transfers */
    op *op;
    client *payer; /* whose part of the room for large values it takes; NULL: gone */
    uint64_t deadline_ns;
};

bool transfer_admit(const client *c, uint32_t bytes) {
    uint64_t all = c->w->d->c.transfer_bytes, one = max_u64(all / 2, FKV_VALUE_MAX);
    return c->w->transfer_bytes + bytes <= all && c->transfer_bytes + bytes <= one;
}

static void seal(fetch *f) {
    op *o = ((transfer *)f)->op;
    table_seal(o->shard->table, &o->prepared);
}

static void ended(fetch *f) {
    transfer *t = (transfer *)f;
    op *o = t->op;
    worker *w = o->worker;
    fkv_status s = f->failed;
    fkv_assert(o->held && o->transfer == t);
    w->transfer_bytes -= f->bytes;
    if (t->payer) t->payer->transfer_bytes -= f->bytes;
    w->feed_starved = true;
    o->transfer = NULL;
    list_remove(&t->link);
    free(t);
    if (s == FKV_OK) {
        w->stats.transfers++;
        op_prepared(o);
    } else if (s == FKV_SHARD_CLOSED) {
        op_ends(o, s);
    } else {
        op_fails_alone(o, s); /* a retry that follows it has its own connection and value */
    }
}

static const fetch_use USE = { .whole = seal, .ended = ended };

static transfer *transfer_of(op *o) {
    transfer *t = calloc(1, sizeof *t);
    if (t) *t = (transfer){ .op = o, .payer = o->client };
    return t;
}

static void begins(transfer *t) {
    op *o = t->op;
    worker *w = o->worker;
    t->deadline_ns = w->now_ns + (uint64_t)w->d->c.transfer_ms * 1000000u;
    w->transfer_bytes += t->fetch.bytes;
    t->payer->transfer_bytes += t->fetch.bytes;
    o->transfer = t;
    o->state = OP_TRANSFERS;
    list_push(&w->transfers, &t->link);
}

fkv_status transfer_begin(op *o) {
    fkv_rendezvous from;
    memcpy(&from, o->body, sizeof from);
    transfer *t = transfer_of(o);
    if (!t) return FKV_BUSY;
    fkv_status s = fetch_begin(&t->fetch, o->worker->fetches, &o->client->source, &from, o->prepared.value,
                               o->request.value_bytes, &USE);
    if (s == FKV_OK)
        begins(t);
    else
        free(t);
    return s;
}

/* The present extent stays as it is until the change is committed or aborted, and neither comes before the fetch has
 * ended. It needs no client; but that one's room is taken. */
fkv_status transfer_keep(op *o, const uint8_t *present, uint32_t bytes) {
    transfer *t = transfer_of(o);
    if (!t) return FKV_BUSY;
    fetch_begin_here(&t->fetch, o->worker->fetches, present, o->prepared.value, bytes, &USE);
    begins(t);
    return FKV_OK;
}

void transfer_fail(op *o, fkv_status s) { fetch_fail(&o->transfer->fetch, s); }

void transfer_orphan(op *o) {
    o->transfer->payer = NULL;
    fetch_fail(&o->transfer->fetch, FKV_DISCONNECTED);
}

void transfers_step(worker *w) {
    for (fkv_list *l = w->transfers.next, *next; l != &w->transfers; l = next) {
        next = l->next;
        transfer *t = LIST_OF(l, transfer, link);
        if (t->deadline_ns <= w->now_ns) transfer_fail(t->op, FKV_TIMEOUT);
    }
    fetch_pool_step(w->fetches);
}

uint64_t transfers_deadline(const worker *w) {
    for (fkv_list *l = w->transfers.next; l != &w->transfers; l = l->next) {
        const transfer *t = LIST_OF(l, transfer, link);
        if (t->fetch.failed == FKV_OK) return t->deadline_ns;
    }
    return UINT64_MAX;
}
