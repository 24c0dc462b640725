/* lease.c: what makes a one-sided READ of this owner's memory the truth, and until when.
 *
 * A grant lists the shards that it covers, and for each the owner remembers the latest time at which any client may
 * still rely on it. The client counts from when it sent the request, on its own clock and shortened by the drift; the
 * owner from when it answers, lengthened by the drift: so at the client a lease is over before it is over here. The
 * clock is read for each grant: the time of the turn may lie before the request was sent. */
#include "lease.h"
#include "../base/clock.h"
#include "shard.h"

static uint64_t with_drift(const worker *w, uint64_t ns) { return ns + ns * w->d->c.drift_ppm / 1000000u + 1; }

uint32_t lease_grant(worker *w, fkv_shard_range range, uint32_t at, fkv_lease_shard *out, uint32_t room, uint32_t *next,
                     uint64_t *granted_ns) {
    uint64_t now = fkv_now_ns(), until = __atomic_load_n(&w->d->grant_until_ns, __ATOMIC_RELAXED);
    uint64_t granted = (uint64_t)__atomic_load_n(&w->d->lease_ms, __ATOMIC_RELAXED) * 1000000u;
    *granted_ns = granted = now < until ? min_u64(granted, until - now) : 0;
    uint32_t n = 0, i = at;
    for (; i < range.count && n < room && granted; i++) {
        shard *s = w->by_number[range.first + i];
        if (!s || s->state != SHARD_SERVING) continue;
        s->lease_until_ns = max_u64(s->lease_until_ns, now + with_drift(w, granted));
        out[n++] = (fkv_lease_shard){ .shard = s->number,
                                      .layout_epoch = table_layout_epoch(s->table),
                                      .incarnation = s->incarnation };
    }
    *next = i;
    return n;
}
