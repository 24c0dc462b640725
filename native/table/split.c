/* split.c: growth, one bucket at a time, while readers read (the protocol is drawn in layout.h).
 *
 * The only cost that matters is finding out which keys move: their hashes are not stored, so every extent of the chain
 * is touched. They are prefetched together; a split costs about as much as two or three PUTs and happens once for seven
 * inserts.
 */
#include "internal.h"

enum {
    CHAIN_SLOTS = FKV_CHAIN_MAX * FKV_SLOTS,
    /* a chain this long with slots that still wait to be cleared is not split again before they are */
    MOVING_CHAIN = 5,
    MOVING_MOST = 200
};

bool table_split_wanted(const table *t) {
    return t->buckets > 0 && 2 * t->entries > (uint64_t)LOAD_HALVES * t->buckets;
}

/* Prefetches what the chain's slots name; returns its length. */
static uint32_t look_ahead(const table *t, const fkv_bucket *b) {
    uint32_t length = 0;
    for (; b; b = overflow_of(t, b), length++) {
        for (int i = 0; i < FKV_SLOTS; i++) {
            if (b->slot[i] == 0) continue;
            const uint8_t *e = (const uint8_t *)extent_of(t, b->slot[i]);
            __builtin_prefetch(e);
            __builtin_prefetch(e + 64);
        }
    }
    return length;
}

typedef struct leaving {
    uint64_t words[CHAIN_SLOTS];
    uint32_t count;
    uint32_t mask[FKV_CHAIN_MAX];
} leaving;

/* Which of bucket `number`'s entries belong to its image at the next level. Where slots are moving, copies are told
 * from entries: their key belongs elsewhere, or their extent was replaced, or an earlier slot names it too. */
static void choose(const table *t, uint32_t number, uint32_t level, leaving *out) {
    uint64_t seen[CHAIN_SLOTS];
    uint32_t seen_count = 0, position = 0;
    bool moving = t->moving[number] > 0;
    for (const fkv_bucket *b = bucket_at(t, number); b; b = overflow_of(t, b), position++) {
        for (int i = 0; i < FKV_SLOTS; i++) {
            uint64_t word = b->slot[i];
            if (word == 0) continue;
            const fkv_extent *e = extent_of(t, word);
            uint32_t bits = fkv_hash_bucket_bits(extent_hash(t, e));
            if (moving) {
                bool kept = fkv_slot_fingerprint(word) == 0;
                if ((bits & ((1u << level) - 1)) != number || e->state != (kept ? FKV_EXTENT_PENDING : FKV_EXTENT_LIVE))
                    continue;
                uint32_t k = 0;
                while (k < seen_count && seen[k] != word) k++;
                if (k < seen_count) continue;
                seen[seen_count++] = word;
            }
            if (!(bits >> level & 1)) continue;
            out->words[out->count++] = word;
            out->mask[position] |= 1u << i;
        }
    }
}

static uint32_t index_tag(const table *t, uint32_t number) {
    uint32_t i = t->index_segments - 1;
    while (t->index[i].first_bucket > number) i--;
    return t->index[i].tag;
}

/* Of the next split. */
static uint32_t next_level(const table *t) { return 31u - (uint32_t)__builtin_clz(t->buckets); }
static uint32_t next_number(const table *t) { return t->buckets - (1u << next_level(t)); }
static bool has_room(const table *t) { return t->buckets < t->grains * GRAIN_BUCKETS && next_level(t) < 31; }

/* The image's number was in use before, and its bucket is not cleared yet; or the chain is long and its slots move. */
static bool quarantine_first(const table *t, uint32_t length) {
    uint32_t number = next_number(t), moves = t->moving[number];
    if (fkv_bucket_marks(bucket_at(t, number)->word0) == FKV_BUCKET_SETTLING) moves--; /* that is no slot */
    /* mutation: table/number-reused */
    return t->moving[t->buckets] > 0 || (moves > 0 && (length >= MOVING_CHAIN || moves > MOVING_MOST));
}

bool table_split_waits(const table *t, table_busy *why) {
    *why = has_room(t) ? TABLE_BUSY_QUARANTINE : TABLE_BUSY_SEGMENT;
    return has_room(t) ? quarantine_first(t, look_ahead(t, bucket_at(t, next_number(t)))) : t->asked_index > 0;
}

bool table_split(table *t) {
    uint32_t level = next_level(t), number = next_number(t), image = t->buckets;
    if (!has_room(t)) {
        table_ask_index(t);
        return false;
    }
    fkv_bucket *from = bucket_at(t, number), *to = bucket_at(t, image);
    uint32_t length = look_ahead(t, from);
    if (quarantine_first(t, length) || !table_quarantine_room(t, length + 1)) return false;
    leaving moved = { .count = 0 };
    choose(t, number, level, &moved);
    uint64_t overflow;
    uint32_t behind = moved.count > FKV_SLOTS ? moved.count - FKV_SLOTS : 0;
    if (!table_overflow_make_chain(t, moved.words + FKV_SLOTS, behind, &overflow)) return false;

    for (uint32_t i = 0; i < FKV_SLOTS; i++) fkv_store_word(&to->slot[i], i < moved.count ? moved.words[i] : 0);
    fkv_store_word(&to->word1, fkv_bucket_word1(overflow, t->layout_epoch & 0xffffff));
    bool again = image < t->buckets_most;
    fkv_publish_word(&to->word0, fkv_bucket_word0(index_tag(t, image), level + 1, again ? FKV_BUCKET_SETTLING : 0));
    uint64_t word0 = from->word0;
    fkv_publish_word(&from->word0, fkv_bucket_word0(fkv_bucket_tag(word0), level + 1, fkv_bucket_marks(word0)));
    for (uint32_t p = 0; p < length; p++)
        if (moved.mask[p]) table_quarantine_moved(t, number, p, moved.mask[p]);
    if (again) table_quarantine_settle(t, image);
    t->buckets++;
    if (!again) t->buckets_most = t->buckets;
    t->splits++;
    table_watch_index(t);
    return true;
}

void table_clear_moved(table *t, uint64_t item) {
    uint32_t number = moved_bucket(item), mask = moved_mask(item);
    fkv_bucket *b = bucket_at(t, number);
    for (uint32_t p = moved_position(item); p > 0; p--) b = overflow_of(t, b);
    for (int i = 0; i < FKV_SLOTS; i++)
        if (mask >> i & 1) fkv_publish_word(&b->slot[i], 0);
    t->moving[number]--;
    t->moving_now--;
    table_index_removed(t, number);
}
