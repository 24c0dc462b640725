/* merge.c: the index gets smaller, one bucket at a time, while readers read (layout.h has the protocol).
 *
 * A bucket holds BELOW to UNTIL percent of the entries at which it would be split when a table that has lost its
 * entries comes to rest. So the index has at most 52 bytes per entry at rest, 26 after merges, and one segment, a
 * sixteenth of the index.
 *   - Merges begin when the buckets have been emptier than BELOW for SHRINK_AFTER_NS, and go on until they are as full
 *     as UNTIL.
 *   - Of the buckets, one in SETTLING_PART settles at a time: a miss there costs a READ more.
 *   - The last segment goes when none of its buckets is left and the table would not soon ask for it again.
 *   - The first segment stays.
 *
 * A merge is one step for the owner: changes find the entries in one chain before it and in the other one after it.
 */
#include "internal.h"

enum {
    CHAIN_SLOTS = FKV_CHAIN_MAX * FKV_SLOTS,
    BELOW_PERCENT = 33,
    UNTIL_PERCENT = 67,
    RETIRE_PERCENT = 70, /* less than the load at which the next segment is asked for (segment.c) */
    SETTLING_PART = 16,
    SETTLING_LEAST = 64,
    MERGE_COST = 16
};

bool table_load_below(const table *t, uint32_t percent) {
    return 200 * t->entries < (uint64_t)percent * LOAD_HALVES * t->buckets;
}

/* ---- one bucket ---- */

typedef struct chain {
    uint64_t words[CHAIN_SLOTS];
    uint32_t count, length;
} chain;

static void read_chain(const table *t, const fkv_bucket *b, chain *out) {
    out->count = out->length = 0;
    for (; b; b = overflow_of(t, b), out->length++)
        for (int i = 0; i < FKV_SLOTS; i++)
            if (b->slot[i] != 0) out->words[out->count++] = b->slot[i];
}

/* Places in the quarantine for the overflow buckets of b', and for two buckets to be settled. */
static bool take_places(table *t, uint32_t overflow_buckets) {
    uint32_t n = 0;
    while (n < overflow_buckets && table_quarantine_place(t, FKV_CLASS_BUCKET)) n++;
    if (n == overflow_buckets && table_quarantine_room(t, 2)) return true;
    while (n-- > 0) table_quarantine_unplace(t, FKV_CLASS_BUCKET);
    return false;
}

/* Fills the free slots of a chain, and adds `more` to its end. Returns how long the chain is then. */
static uint32_t fill_chain(table *t, fkv_bucket *b, const uint64_t *words, uint32_t count, uint64_t more) {
    uint32_t length = 0, n = 0;
    for (fkv_bucket *next; b; b = next, length++) {
        for (int i = 0; i < FKV_SLOTS && n < count; i++)
            if (b->slot[i] == 0) fkv_publish_word(&b->slot[i], words[n++]);
        next = overflow_of(t, b);
        if (next || !more) continue;
        table_overflow_link(t, b, more);
        next = at_location(t, more);
        more = 0;
    }
    return length;
}

/* The hand that sweeps for expired entries may be behind b already. */
static void lower_floor(table *t, const uint64_t *words, uint32_t count) {
    for (uint32_t i = 0; i < count && t->expiring; i++) {
        uint64_t expiry = fkv_extent_expiry(extent_of(t, words[i])->expiry_space);
        if (expiry && expiry < t->pass_floor_ms) t->pass_floor_ms = expiry;
    }
}

bool table_merge(table *t) {
    uint32_t image = t->buckets - 1, level = 31u - (uint32_t)__builtin_clz(image), number = image - (1u << level);
    if (t->moving[number] > 0 || t->moving[image] > 0) return false;
    fkv_bucket *to = bucket_at(t, number), *from = bucket_at(t, image);
    chain stays, comes;
    read_chain(t, to, &stays);
    read_chain(t, from, &comes);
    uint32_t free = stays.length * FKV_SLOTS - stays.count, fits = comes.count < free ? comes.count : free;
    if (stays.count + comes.count > CHAIN_SLOTS || !take_places(t, comes.length - 1)) return false;
    uint64_t more;
    if (!table_overflow_make_chain(t, comes.words + fits, comes.count - fits, &more)) {
        for (uint32_t i = 1; i < comes.length; i++) table_quarantine_unplace(t, FKV_CLASS_BUCKET);
        return false;
    }
    uint32_t length = fill_chain(t, to, comes.words, fits, more);
    if (length > t->longest_chain) t->longest_chain = length;
    /* mutation: table/merge-settling */
    fkv_publish_word(&to->word0, fkv_bucket_word0(fkv_bucket_tag(to->word0), level, FKV_BUCKET_SETTLING));
    /* mutation: table/merge-merged */
    fkv_publish_word(&from->word0, fkv_bucket_word0(fkv_bucket_tag(from->word0), level + 1, FKV_BUCKET_MERGED));
    t->buckets--;
    t->merges++;
    /* In this order: what settles b' unlinks its chain before the memory of that may be used again. */
    table_quarantine_settle(t, number);
    table_quarantine_settle(t, image); /* mutation: table/merge-clears-at-once */
    for (const fkv_bucket *b = from; fkv_bucket_overflow(b->word1); b = overflow_of(t, b)) {
        table_quarantine_extent(t, fkv_bucket_overflow(b->word1), FKV_CLASS_BUCKET);
        t->overflow_buckets--;
    }
    lower_floor(t, comes.words, comes.count);
    return true;
}

void table_settle(table *t, uint32_t number) {
    fkv_bucket *b = bucket_at(t, number);
    uint64_t word0 = b->word0;
    t->moving[number]--;
    t->moving_now--;
    t->settling--;
    if (fkv_bucket_marks(word0) & FKV_BUCKET_MERGED) {
        for (int i = 0; i < FKV_SLOTS; i++) fkv_publish_word(&b->slot[i], 0);
        fkv_publish_word(&b->word1, 0);
        return;
    }
    fkv_publish_word(&b->word0, fkv_bucket_word0(fkv_bucket_tag(word0), fkv_bucket_level(word0), 0));
    table_index_removed(t, number);
}

/* ---- the index ---- */

static uint32_t least_buckets(const table *t) { return (uint32_t)(t->index[0].region.bytes / FKV_BUCKET_BYTES); }

/* Whether the buckets are fewer than they have to be, or a segment has none. */
static bool is_larger(const table *t) {
    if (t->buckets > least_buckets(t) && table_load_below(t, t->merging ? UNTIL_PERCENT : BELOW_PERCENT)) return true;
    return t->index[t->index_segments - 1].first_bucket >= t->buckets && table_load_below(t, RETIRE_PERCENT);
}

bool table_shrink_index(table *t, int *budget) {
    if (!is_larger(t)) {
        t->index_shrink_since_ns = 0;
        t->merging = false;
        return false;
    }
    if (t->index_shrink_since_ns == 0) t->index_shrink_since_ns = t->now_ns;
    if (t->now_ns - t->index_shrink_since_ns < SHRINK_AFTER_NS) return false;
    t->merging |= table_load_below(t, BELOW_PERCENT);
    uint32_t most = 2 * (t->buckets / SETTLING_PART + SETTLING_LEAST); /* two items for each merge */
    bool goes_on = t->merging;
    for (; goes_on && *budget > 0; *budget -= MERGE_COST)
        goes_on = t->buckets > least_buckets(t) && table_load_below(t, UNTIL_PERCENT) && t->settling < most &&
                  table_merge(t);
    if (table_load_below(t, RETIRE_PERCENT)) table_retire_index(t);
    return goes_on;
}
