/* latency.c: how long requests were in the owner's hands, by kind: from the beginning of the turn in which one came to
 * the end of the turn in which the last message of its answer was handed to the transport; waiting for a key, for
 * memory or for the client's credits included. What was refused is not counted here, but by its status.
 *
 * What ends in a turn is noted and recorded together, so that the clock is read once a turn and not once a request.
 *
 * Tenants have counts of their own and share the histograms: a histogram has 9 KB per operation, of which 16 tenants
 * would have 2.7 MB per thread. */
#include "latency.h"
#include "client.h"

void latencies_settle(worker *w) {
    if (w->answered_count == 0) return;
    uint64_t now = fkv_now_ns();
    for (uint32_t i = 0; i < w->answered_count; i++) {
        const answered *a = &w->answered[i];
        fkv_histogram_record(&w->latency[a->counted], now > a->arrived_ns ? now - a->arrived_ns : 0);
        w->tenant[a->tenant].answered[a->counted]++;
    }
    w->answered_count = 0;
}

static __attribute__((noinline)) void tell_slow(const op *o, fkv_status s) {
    const dataplane_config *c = &o->worker->d->c;
    if (!c->on_slow) return;
    /* What came may have been no request at all. */
    if (o->request.op == 0 || o->request.op >= FKV_OP_COUNT) return;
    bool held = o->prepared_ns != 0 && o->last != DATAPLANE_LAST_NONE;
    c->on_slow(c->ctx, &(dataplane_slow){ .client = o->client ? o->client->ticket.client : 0,
                                          .hash = o->hash,
                                          .ns = fkv_now_ns() - o->arrived_ns,
                                          .queued_ns = held ? o->prepared_ns - o->arrived_ns : 0,
                                          .held_ns = held ? o->ready_ns - o->prepared_ns : 0,
                                          .last = held ? o->last : DATAPLANE_LAST_NONE,
                                          .worker = o->worker->number,
                                          .shard = o->request.shard,
                                          .op = (fkv_op)fkv_ops[o->request.op].counted,
                                          .status = s });
}

void latency_answered(const op *o) {
    fkv_status s = (fkv_status)o->reply.status;
    uint64_t slow = o->worker->d->c.slow_ns;
    if (__builtin_expect(slow && o->worker->now_ns - o->arrived_ns >= slow - 1, 0)) tell_slow(o, s);
    if (s != FKV_OK && s != FKV_NOT_FOUND && s != FKV_VERSION_MISMATCH) return;
    worker *w = o->worker;
    if (w->answered_count == ANSWERED_MOST) latencies_settle(w);
    w->answered[w->answered_count++] = (answered){ o->arrived_ns, fkv_ops[o->request.op].counted, o->tenant };
}

dataplane_latency latency_of(const fkv_histogram *h) {
    dataplane_latency l = { .count = h->count };
    if (l.count == 0) return l;
    l.p50_ns = fkv_histogram_percentile(h, 0.5);
    l.p99_ns = fkv_histogram_percentile(h, 0.99);
    l.max_ns = h->max;
    l.sum_ns = h->sum;
    fkv_histogram_octaves(h, l.below);
    return l;
}

void latencies_get(const worker *w, dataplane_latency out[FKV_OP_COUNT]) {
    for (int i = 0; i < FKV_OP_COUNT; i++) out[i] = latency_of(&w->latency[i]);
}
