/* shrink.c: heap memory that deletes, expiry and smaller values have left goes back, a segment at a time.
 *
 * A bound on fragmentation: when more than a third of what is in use, and SPARE_LEAST, has been free for AFTER_NS, empty segments are
 * retired, and where there are none the emptiest are emptied (evacuate.c), until it is under the bound again. What a table is given
 * ahead of its growth is far below the bound, and what is deleted and comes again within AFTER_NS costs nothing.
 *
 * Retirement is the caller's: a segment stays registered for as long as clients may know of it by their leases (table.h).
 * Not for: the index, which never gets smaller: a table that has lost its entries keeps 17 bytes for each that there were.
 */
#include "internal.h"

enum { SPARE_PART = 3, SPARE_LEAST = 1 << 20, RETIRE_AT_ONCE = 16 };
#define AFTER_NS 2000000000ull

static uint64_t free_bytes(const table *t) {
    return t->heap_bytes - t->live_bytes - t->prepared_bytes - t->overflow_buckets * FKV_BUCKET_BYTES - t->quarantine_bytes -
           t->span_end_bytes;
}

/* Two segments may lie idle whatever their size: the one that is being filled and the next. */
static bool too_much(const table *t, uint64_t bytes) {
    uint64_t least = t->config.segment_grain > SPARE_LEAST / 2 ? 2 * t->config.segment_grain : SPARE_LEAST;
    return bytes > (t->heap_bytes - bytes) / SPARE_PART + least;
}

void table_shrink(table *t) {
    uint64_t free = free_bytes(t);
    if (!too_much(t, free)) t->shrink_stuck = 0;
    if (!too_much(t, free) || free <= t->shrink_stuck) {
        t->shrink_since_ns = 0;
        return;
    }
    if (t->shrink_since_ns == 0) t->shrink_since_ns = t->now_ns;
    if (t->now_ns - t->shrink_since_ns < AFTER_NS || t->evacuating) return;
    int retired = 0;
    while (retired < RETIRE_AT_ONCE && too_much(t, free_bytes(t)) && table_retire_empty(t)) retired++;
    if (retired > 0) return;
    /* Large extents and segments that are three quarters full stay where they are. When nothing else is left, it is tried again after more
     * has become free. */
    if (!table_evacuate_many(t)) t->shrink_stuck = free;
}
