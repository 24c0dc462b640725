/* lease.c: what makes a one-sided READ of this owner's memory the truth, and until when.
 *
 * A grant lists the shards that it covers, which are such that the owner may be relied on for about equally long, and
 * for each the owner remembers the latest time at which any client may still rely on it. Those of shards that copies
 * join, or may soon, come before all others: they are much shorter, and one among many would cut the others' into a
 * message each side of it. The client's timer is set by the last grant of an answer, so the others are not asked for
 * more often than they need; a reader of a short one asks by itself. A shard whose leases get short or long between two
 * messages of an answer may be missing in that, or be there twice: clients ask the owner then, and for a lease again.
 *
 * The client counts from when it sent the request, on its own clock and shortened by the drift; the owner from when it
 * answers, lengthened by the drift: so at the client a lease is over before it is over here. The clock is read for each
 * grant: the time of the turn may lie before the request was sent. */
#include "lease.h"
#include "../base/clock.h"
#include "../storage/shard.h"

static const uint64_t JOIN_LEASE_NS = 100000000;

static uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static uint64_t with_drift(const worker *w, uint64_t ns) { return ns + ns * w->d->c.drift_ppm / 1000000u + 1; }

static uint64_t left(uint64_t until, uint64_t now, uint64_t most) {
    return now < until ? min_u64(most, until - now) : 0;
}

/* Within an eighth: backups that acknowledge in turn would else cost a message for each shard. */
static bool is_about(uint64_t a, uint64_t b) { return (a < b ? b - a : a - b) <= b / 8; }

/* A copy is in sync only when the leases of before are over: while one joins, or may soon, they are short. */
static uint64_t longest_of(const shard *s) {
    uint64_t longest = s->repl.lease_most_ns ? s->repl.lease_most_ns : UINT64_MAX;
    return s->repl.expects ? min_u64(longest, JOIN_LEASE_NS) : longest;
}

uint32_t lease_grant(worker *w, fkv_shard_range range, uint32_t at, fkv_lease_shard *out, uint32_t room, uint32_t *next,
                     uint64_t *granted_ns) {
    uint64_t now = fkv_now_ns(), most = (uint64_t)w->d->c.lease_ms * 1000000u;
    uint64_t granted = left(__atomic_load_n(&w->d->grant_until_ns, __ATOMIC_RELAXED), now, most);
    uint32_t n = 0, i = w->repl.expecting ? at : max_u32(at, range.count);
    for (; i < lease_places(range) && n < room && granted; i++) {
        bool first = i < range.count;
        const shard *s = w->by_number[range.first + (first ? i : i - range.count)];
        if (s && s->repl.expects != first) continue;
        uint64_t longest = s ? min_u64(most, longest_of(s)) : most;
        uint64_t own = s && s->state == SHARD_SERVING ? left(shard_right(w, s), now, longest) : 0;
        if (own == 0) continue;
        if (n > 0 && !is_about(own, granted)) break;
        granted = min_u64(granted, own);
        out[n++] = (fkv_lease_shard){ .shard = s->number,
                                      .layout_epoch = table_layout_epoch(s->table),
                                      .incarnation = s->incarnation };
    }
    for (uint32_t k = 0; k < n; k++) {
        shard *s = w->by_number[out[k].shard];
        s->lease_until_ns = max_u64(s->lease_until_ns, now + with_drift(w, granted));
    }
    *granted_ns = granted;
    *next = i;
    return n;
}
