/* latency.h: how long requests were in the owner's hands; see latency.c. Private to the data plane's folders. */
#ifndef FARKV_DATAPLANE_LATENCY_H
#define FARKV_DATAPLANE_LATENCY_H
#include "../base/clock.h"
#include "op.h"
#include "worker.h"

/* The time for what a slow request says of itself: that of the turn, and where each request is told the clock's. */
static inline uint64_t latency_now(const worker *w) { return w->d->c.slow_ns == 1 ? fkv_now_ns() : w->now_ns; }
void latency_answered(const op *o); /* the last of its answer was handed to the transport */
void latencies_settle(worker *w);   /* at the end of a turn */
dataplane_latency latency_of(const fkv_histogram *h);
void latencies_get(const worker *w, dataplane_latency out[FKV_OP_COUNT]);

#endif
