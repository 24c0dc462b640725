/* quarantine.c: what no longer counts and yet must stay as it is until no GET that may have seen it is under way:
 * extents, overflow buckets, slots that were copied elsewhere, and marks of buckets.
 *
 * Queues in order of time, one for each range of sizes, since a GET of a long value may take longer. An item's time is
 * that of the first tick after it was pushed: the table's clock stands still between ticks, and too late is safe.
 *
 * Invariant: a moved slot is cleared before an extent that it names, now or by an older change, can be taken again.
 * Extents die after the slot moved (same queue, behind it) or wait longer (a later queue, drained only when this one
 * is).
 *
 * Bounds. What a change replaces is promised room before it is prepared. An extent of a change that is aborted takes
 * the same room, unpromised, since inserts are to need none; but no more is prepared while such extents fill a whole
 * quarantine. So there are never more quarantined bytes than twice quarantine_bytes, and what was prepared at one time
 * (and one item always fits).
 *
 * Items: a location 40 | size class 8 | bit 62: aborted, or, with bit 63, bucket 32 | mask of slots 14 | position in
 * the chain 4; without slots: the bucket is to be settled (merge.c).
 */
#include "../base/assert.h"
#include "internal.h"

static delay_queue *queue_of(table *t, uint32_t cls) {
    uint32_t bytes = class_bytes(cls);
    return &t->delay[bytes <= 64 << 10 ? 0 : bytes <= 2 << 20 ? 1 : 2];
}

static bool grow(delay_queue *q, uint64_t needed) {
    uint64_t capacity = q->capacity ? q->capacity : 64;
    while (capacity < needed) capacity *= 2;
    uint64_t *more = malloc(capacity * sizeof *more);
    if (!more) return false;
    for (uint64_t i = q->head; i != q->tail; i++) more[i & (capacity - 1)] = q->items[i & (q->capacity - 1)];
    free(q->items);
    q->items = more;
    q->capacity = capacity;
    return true;
}
static bool make_room(delay_queue *q, uint64_t items) {
    uint64_t needed = q->tail - q->head + q->reserved + items;
    return needed <= q->capacity || grow(q, needed);
}
static void push(delay_queue *q, uint64_t item) { q->items[q->tail++ & (q->capacity - 1)] = item; }

static uint64_t most(const table *t) {
    return t->config.quarantine_bytes ? t->config.quarantine_bytes : t->config.memory_bytes / 8;
}

bool table_quarantine_fits(const table *t, uint64_t bytes) {
    uint64_t held = t->quarantine_bytes + t->quarantine_reserved;
    return held == 0 || held + bytes <= most(t);
}

bool table_quarantine_bears(const table *t, uint64_t bytes) {
    return t->aborted_bytes == 0 || t->aborted_bytes + bytes <= most(t);
}

bool table_quarantine_place(table *t, uint32_t cls) {
    delay_queue *q = queue_of(t, cls);
    if (!make_room(q, 1)) return false;
    q->reserved++;
    return true;
}
void table_quarantine_unplace(table *t, uint32_t cls) { queue_of(t, cls)->reserved--; }

static void push_extent(table *t, uint64_t location, uint32_t cls, uint64_t mark) {
    delay_queue *q = queue_of(t, cls);
    fkv_assert(q->reserved > 0);
    q->reserved--;
    push(q, location | (uint64_t)cls << 40 | mark);
    t->quarantine_bytes += class_bytes(cls);
    t->quarantined_of[cls]++;
    t->heap[fkv_location_segment(location)]->quarantined++;
}
void table_quarantine_extent(table *t, uint64_t location, uint32_t cls) { push_extent(t, location, cls, 0); }
void table_quarantine_aborted(table *t, uint64_t location, uint32_t cls) {
    push_extent(t, location, cls, 1ull << 62);
    t->aborted_bytes += class_bytes(cls);
}

bool table_quarantine_room(table *t, uint32_t items) { return make_room(&t->delay[0], items); }

void table_quarantine_moved(table *t, uint32_t bucket, uint32_t position, uint32_t mask) {
    push(&t->delay[0], 1ull << 63 | (uint64_t)position << 46 | (uint64_t)mask << 32 | bucket);
    t->moving[bucket]++;
    t->moving_now++;
}
void table_quarantine_settle(table *t, uint32_t bucket) {
    table_quarantine_moved(t, bucket, 0, 0);
    t->settling++;
}

/* ---- time ---- */

static void stamp(delay_queue *q, uint64_t now_ns) {
    delay_mark *last = q->marks ? &q->mark[(q->first_mark + q->marks - 1) % DELAY_MARKS] : NULL;
    if (q->tail == (last ? last->end : q->head)) return;
    bool merge = last && (q->marks == DELAY_MARKS || last->first_ns + q->delay_ns / 64 >= now_ns);
    if (!merge) {
        last = &q->mark[(q->first_mark + q->marks++) % DELAY_MARKS];
        last->first_ns = now_ns;
    }
    last->end = q->tail;
    last->last_ns = now_ns;
}

void table_quarantine_stamp(table *t) {
    for (int i = 0; i < DELAY_QUEUES; i++) stamp(&t->delay[i], t->now_ns);
}

static void leave(table *t, uint64_t item) {
    if (item_is_moved(item)) {
        if (moved_mask(item))
            table_clear_moved(t, item);
        else
            table_settle(t, moved_bucket(item));
        return;
    }
    uint64_t location = item & 0xffffffffffu;
    uint32_t cls = (uint32_t)(item >> 40) & 0xff;
    fkv_assert(t->quarantined_of[cls] > 0 && t->quarantine_bytes >= class_bytes(cls));
    t->quarantine_bytes -= class_bytes(cls);
    if (item_is_aborted(item)) t->aborted_bytes -= class_bytes(cls);
    t->quarantined_of[cls]--;
    t->heap[fkv_location_segment(location)]->quarantined--;
    table_heap_give(t, location, cls);
}

/* Extents have been left alone for long: the link that makes one free is a cache miss, unless it is known in time. */
enum { AHEAD = 8 };
static void come_closer(const table *t, uint64_t item) {
    if (!item_is_moved(item)) __builtin_prefetch(at_location(t, item & 0xffffffffffu), 1);
}

/* True when items are due that the budget did not reach. */
static bool drain(table *t, delay_queue *q, int *budget) {
    while (q->marks > 0) {
        delay_mark *m = &q->mark[q->first_mark];
        /* mutation: table/quarantine, table/split-quarantine, table/chain-quarantine */
        if (m->last_ns + q->delay_ns > t->now_ns && !t->unread) return false;
        while (q->head != m->end) {
            if ((*budget)-- <= 0) return true;
            if (m->end - q->head > AHEAD) come_closer(t, q->items[(q->head + AHEAD) & (q->capacity - 1)]);
            leave(t, q->items[q->head++ & (q->capacity - 1)]);
        }
        q->first_mark = (q->first_mark + 1) % DELAY_MARKS;
        q->marks--;
    }
    if (q->head == q->tail && q->reserved == 0 && q->capacity > 4096) {
        free(q->items);
        q->items = NULL;
        q->capacity = 0;
    }
    return false;
}

bool table_quarantine_drain(table *t, int *budget) {
    for (int i = 0; i < DELAY_QUEUES; i++)
        if (drain(t, &t->delay[i], budget)) return true;
    return false;
}
