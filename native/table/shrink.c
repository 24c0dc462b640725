/* shrink.c: heap memory that deletes, expiry and smaller values have left goes back, a segment at a time.
 *
 * The bound: free memory is at most a third of the memory in use, and SPARE_LEAST. Free is also what retired segments
 * leave of a memory file that others are still in (base/files.h). A table that has been over the bound for
 * SHRINK_AFTER_NS retires empty segments. Where there are none, a pass empties the emptiest files (evacuate.c). A
 * table at rest is under the bound within some passes of a second each, unless nothing but segments with values above
 * MOVED_BYTES_MOST is left.
 *
 * A table must not retire memory that it will ask for again. A span holds one size of values, so a table of many sizes
 * asks for segments though much is free:
 *   - A segment that came within SHRINK_AFTER_NS is not retired: the change that asked for it has not been tried again
 *     yet.
 *   - An empty segment stays when the table would ask for another one without it (segment.c, `needed`).
 *   - While segments keep coming, there is one pass in AFTER_MOST_NS and no more. Without this limit such a table would
 *     never shrink.
 *   - A pass after which the heap is as large as before is the last one, until more has become free.
 *
 * Retirement is the caller's: a segment stays registered for as long as clients may know of it by their leases
 * (table.h). Not for: the index (merge.c).
 */
#include "internal.h"

enum { SPARE_PART = 3, SPARE_LEAST = 1 << 20, RETIRE_AT_ONCE = 16 };
#define AFTER_MOST_NS 30000000000ull

/* Of segments that were given back and whose memory files were not. */
static uint64_t held_bytes(const table *t) { return t->config.heap_files ? fkv_files_holes(t->config.heap_files) : 0; }

static uint64_t free_bytes(const table *t) {
    return held_bytes(t) + t->heap_bytes - t->live_bytes - t->prepared_bytes - t->overflow_buckets * FKV_BUCKET_BYTES -
           t->quarantine_bytes - t->span_end_bytes;
}

/* Two segments may lie idle whatever their size: the one that is being filled and the next. What is held may have grown
 * since `bytes` were counted. */
static bool too_much(const table *t, uint64_t bytes) {
    uint64_t least = t->config.segment_grain > SPARE_LEAST / 2 ? 2 * t->config.segment_grain : SPARE_LEAST;
    uint64_t all = held_bytes(t) + t->heap_bytes;
    return bytes > (all > bytes ? all - bytes : 0) / SPARE_PART + least;
}

/* A segment came lately. */
static bool growing(const table *t) { return t->now_ns - t->heap_came_ns < SHRINK_AFTER_NS; }
static bool waited(const table *t) {
    return t->now_ns - t->shrink_since_ns >= (growing(t) ? AFTER_MOST_NS : SHRINK_AFTER_NS);
}

/* What a pass moves may need a new segment, as large as what the pass has emptied. */
static void pass_ended(table *t) {
    if (t->shrink_pass_bytes == 0 || t->evacuating) return;
    table_files_open(t);
    if (t->heap_bytes >= t->shrink_pass_bytes) t->shrink_stuck = free_bytes(t);
    t->shrink_pass_bytes = 0;
}

void table_shrink(table *t) {
    pass_ended(t);
    uint64_t free = free_bytes(t);
    if (!too_much(t, free)) t->shrink_stuck = 0;
    if (!too_much(t, free) || free <= t->shrink_stuck) {
        t->shrink_since_ns = 0;
        return;
    }
    if (t->shrink_since_ns == 0) t->shrink_since_ns = t->now_ns;
    if (t->evacuating || !waited(t)) return;
    int retired = 0;
    while (retired < RETIRE_AT_ONCE && too_much(t, free_bytes(t)) && table_retire_spare(t, t->now_ns - SHRINK_AFTER_NS))
        retired++;
    if (retired > 0) return;
    /* Large extents and segments that are three quarters full stay where they are. */
    if (!table_evacuate_many(t)) {
        t->shrink_stuck = free;
        return;
    }
    t->shrink_pass_bytes = t->heap_bytes;
    if (growing(t)) t->shrink_since_ns = t->now_ns;
}
