/* tick.c: background work in bounded slices: what leaves the quarantine, growth that changes did not keep up with,
 * evacuation, and the hand that sweeps the buckets for expired entries.
 *
 * An expired entry counts as absent at once, for readers and owner; the hand only gives its memory back. It moves only
 * when some entry can have expired (expiry_floor_ms) and then goes round once in SWEEP_NS, or as fast as the budget
 * allows when memory is wanted. Entries that come during a pass lower the floors themselves; entries that a split moves
 * away from buckets ahead of the hand arrive at the end of the table, still ahead of it; entries that a merge brings
 * behind the hand lower the floor.
 */
#include "internal.h"

#define SWEEP_NS 20000000000ull
enum { SPLIT_COST = 16, SWEEP_COST = 4 };

/* DEAD, clear the slot, quarantine: a DELETE by the clock. False when it cannot be done now. */
static bool expire(table *t, uint64_t *slot) {
    uint64_t word = *slot;
    fkv_extent *e = extent_of(t, word);
    uint32_t cls = fkv_slot_class(word);
    uint64_t hash = extent_hash(t, e);
    /* a copy: the entry's slot comes elsewhere in the pass */
    if (table_index_slot(t, hash, word) != slot) return true;
    if (table_prepared_find(t, hash, fkv_extent_namespace(e->expiry_space), extent_key(e), e->key_bytes)) return false;
    if (!table_quarantine_fits(t, class_bytes(cls)) || !table_quarantine_place(t, cls)) return false;
    set_state(e, FKV_EXTENT_DEAD); /* mutation: table/expired-dead-first */
    fkv_publish_word(slot, 0);
    table_entry_gone(t, e, cls);
    table_quarantine_extent(t, fkv_slot_location(word), cls);
    t->expired++;
    return true;
}

static void sweep_chain(table *t, uint32_t number) {
    uint64_t expired_before = t->expired;
    fkv_bucket *first = bucket_at(t, number);
    for (fkv_bucket *b = first; b; b = overflow_of(t, b))
        for (int i = 0; i < FKV_SLOTS; i++)
            if (b->slot[i]) __builtin_prefetch(extent_of(t, b->slot[i]));
    for (fkv_bucket *b = first; b; b = overflow_of(t, b)) {
        for (int i = 0; i < FKV_SLOTS; i++) {
            if (fkv_slot_fingerprint(b->slot[i]) == 0) continue;
            const fkv_extent *e = extent_of(t, b->slot[i]);
            uint64_t expiry = fkv_extent_expiry(e->expiry_space);
            if (expiry == 0 || e->state != FKV_EXTENT_LIVE) continue;
            if (extent_expired(t, e) && expire(t, &b->slot[i])) continue;
            if (expiry < t->pass_floor_ms) t->pass_floor_ms = expiry;
        }
    }
    if (t->expired != expired_before) table_index_removed(t, number);
}

static void end_pass(table *t) {
    t->expiry_floor_ms = t->pass_floor_ms;
    t->pass_floor_ms = UINT64_MAX;
    t->sweep_bucket = 0;
    t->sweep_hurry = false;
}

static bool sweep(table *t, int *budget) {
    if (t->sweep_bucket >= t->buckets)
        end_pass(t); /* what the hand had before it was merged away, and lowered the floor */
    if (t->expiring == 0 || (t->sweep_bucket == 0 && t->wall_ms < t->expiry_floor_ms)) {
        if (t->expiring == 0) {
            t->pass_floor_ms = UINT64_MAX;
            end_pass(t);
        }
        t->sweep_ns = t->now_ns;
        return false;
    }
    uint64_t step = SWEEP_NS / t->buckets + 1, due = (t->now_ns - t->sweep_ns) / step;
    for (; (due > 0 || t->sweep_hurry) && *budget > 0; *budget -= SWEEP_COST) {
        sweep_chain(t, t->sweep_bucket);
        if (due > 0) {
            due--;
            t->sweep_ns += step;
        }
        if (++t->sweep_bucket < t->buckets) continue;
        end_pass(t);
        break;
    }
    if (due > 0) t->sweep_ns = t->now_ns; /* fallen behind: the hand does not catch up in bursts */
    return t->sweep_hurry;
}

bool table_sweep_for_memory(table *t) {
    if (t->expiring == 0) return false;
    if (t->sweep_hurry) return true;
    if (t->wall_ms < t->expiry_floor_ms && t->sweep_bucket == 0) return false;
    t->sweep_bucket = 0;
    t->pass_floor_ms = UINT64_MAX;
    return t->sweep_hurry = true;
}

void table_set_wall(table *t, uint64_t wall_ms) { t->wall_ms = wall_ms; }

bool table_tick(table *t, uint64_t now_ns, uint64_t wall_ms, int budget) {
    if (now_ns > t->now_ns) t->now_ns = now_ns;
    t->wall_ms = wall_ms;
    if (t->buckets == 0) return false;
    table_quarantine_stamp(t);
    bool more = table_quarantine_drain(t, &budget);
    bool splits = table_split_wanted(t);
    for (; splits && budget > 0; budget -= SPLIT_COST) splits = table_split(t) && table_split_wanted(t);
    more |= splits;
    more |= table_shrink_index(t, &budget);
    more |= table_evacuate_step(t, &budget);
    more |= sweep(t, &budget);
    table_shrink(t);
    table_watch_index(t);
    table_watch_heap(t);
    return more;
}

bool table_resting(const table *t) {
    for (int i = 0; i < DELAY_QUEUES; i++)
        if (t->delay[i].head != t->delay[i].tail) return false;
    bool splits = table_split_wanted(t) && t->buckets < t->grains * GRAIN_BUCKETS;
    return t->prepared_count == 0 && t->expiring == 0 && t->evacuating == 0 && t->shrink_since_ns == 0 &&
           t->index_shrink_since_ns == 0 && !splits;
}
