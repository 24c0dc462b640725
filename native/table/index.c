/* index.c: finding a key's slot, keeping one for an insert, and the chains of buckets that overflow.
 *
 * Invariants. A key that stays in the table stays in its slot, or is copied to another one and its old slot cleared by
 * the quarantine (moving[bucket] counts those). Of several slots of a chain that name the same extent, the first is the
 * entry's; only the first is ever stored to. A slot whose extent is not LIVE is a copy of an entry that changed since,
 * or kept for an insert. A chain grows and shrinks at its end, so positions in it stay what they are.
 */
#include "internal.h"

static bool extent_is(const fkv_extent *e, uint16_t space, const void *key, size_t key_bytes) {
    return e->state == FKV_EXTENT_LIVE && e->key_bytes == key_bytes && fkv_extent_namespace(e->expiry_space) == space &&
           memcmp(extent_key(e), key, key_bytes) == 0;
}

bool table_index_find(const table *t, uint64_t hash, uint16_t space, const void *key, size_t key_bytes, place *out) {
    uint32_t number = bucket_of(t, hash);
    uint16_t fingerprint = fkv_hash_fingerprint(hash);
    for (fkv_bucket *b = bucket_at(t, number); b; b = overflow_of(t, b)) {
        for (int i = 0; i < FKV_SLOTS; i++) {
            uint64_t word = b->slot[i];
            if (fkv_slot_fingerprint(word) != fingerprint) continue;
            fkv_extent *e = extent_of(t, word);
            if (!extent_is(e, space, key, key_bytes)) continue;
            *out = (place){ number, &b->slot[i], word, e };
            return true;
        }
    }
    return false;
}

uint64_t *table_index_slot(const table *t, uint64_t hash, uint64_t word) {
    for (fkv_bucket *b = bucket_at(t, bucket_of(t, hash)); b; b = overflow_of(t, b))
        for (int i = 0; i < FKV_SLOTS; i++)
            if (b->slot[i] == word) return &b->slot[i];
    return NULL;
}

void table_prefetch(const table *t, uint64_t hash, int stage) {
    if (t->buckets == 0) return;
    const fkv_bucket *b = bucket_at(t, bucket_of(t, hash));
    if (stage == 0) {
        __builtin_prefetch(b);
        __builtin_prefetch((const uint8_t *)b + 64);
        return;
    }
    uint16_t fingerprint = fkv_hash_fingerprint(hash);
    for (int i = 0; i < FKV_SLOTS; i++) {
        if (fkv_slot_fingerprint(b->slot[i]) != fingerprint) continue;
        __builtin_prefetch(extent_of(t, b->slot[i]), 1);
        __builtin_prefetch((const uint8_t *)extent_of(t, b->slot[i]) + 63);
    }
}

void table_index_open(table *t, uint32_t from, uint32_t to) {
    uint32_t level = 31u - (uint32_t)__builtin_clz(to);
    /* buckets below it, and their images above 2^level, are one level further */
    uint32_t extra = to - (1u << level);
    for (uint32_t n = from; n < to; n++) {
        bool further = n < extra || n >= 1u << level;
        fkv_publish_word(&bucket_at(t, n)->word0, fkv_bucket_word0(t->index[0].tag, level + further, 0));
    }
    t->buckets = t->buckets_most = to;
}

/* ---- chains ---- */

/* Not linked yet: no reader sees it before its location is published in the bucket before it. */
uint64_t table_overflow_make(table *t, const uint64_t *slots, uint32_t count, uint64_t next) {
    uint64_t location = table_heap_take(t, FKV_CLASS_BUCKET);
    if (!location) return 0;
    fkv_bucket *b = at_location(t, location);
    for (uint32_t i = 0; i < FKV_SLOTS; i++) fkv_store_word(&b->slot[i], i < count ? slots[i] : 0);
    fkv_store_word(&b->word1, fkv_bucket_word1(next, t->layout_epoch & 0xffffff));
    fkv_publish_word(&b->word0, fkv_bucket_word0(t->heap[fkv_location_segment(location)]->tag, 0, 0));
    t->overflow_buckets++;
    return location;
}

bool table_overflow_make_chain(table *t, const uint64_t *slots, uint32_t count, uint64_t *first) {
    *first = 0;
    for (uint32_t k = (count + FKV_SLOTS - 1) / FKV_SLOTS; k > 0; k--) {
        uint32_t at = (k - 1) * FKV_SLOTS, here = count - at < FKV_SLOTS ? count - at : FKV_SLOTS;
        uint64_t location = table_overflow_make(t, slots + at, here, *first);
        if (location) {
            *first = location;
            continue;
        }
        while (*first) {
            uint64_t next = fkv_bucket_overflow(((fkv_bucket *)at_location(t, *first))->word1);
            table_heap_give(t, *first, FKV_CLASS_BUCKET);
            t->overflow_buckets--;
            *first = next;
        }
        return false;
    }
    return true;
}

void table_overflow_link(table *t, fkv_bucket *before, uint64_t location) {
    fkv_publish_word(&before->word1, fkv_bucket_word1(location, t->layout_epoch & 0xffffff));
}

fkv_status table_index_keep(table *t, uint64_t hash, uint64_t word, table_busy *why) {
    uint32_t number = bucket_of(t, hash), length = 1;
    fkv_bucket *last = bucket_at(t, number);
    for (fkv_bucket *b = last; b; last = b, b = overflow_of(t, b), length += b != NULL) {
        for (int i = 0; i < FKV_SLOTS; i++) {
            if (b->slot[i] != 0) continue;
            fkv_publish_word(&b->slot[i], word);
            return FKV_OK;
        }
    }
    if (length >= FKV_CHAIN_MAX) {
        *why = TABLE_BUSY_QUARANTINE;
        if (t->moving[number]) return FKV_BUSY;
        bool grows = table_split_wanted(t) && (table_split(t) || table_split_waits(t, why));
        return grows ? FKV_BUSY : table_full(t);
    }
    uint64_t location = table_overflow_make(t, &word, 1, 0);
    if (!location) return table_heap_why(t, FKV_CLASS_BUCKET, why);
    table_overflow_link(t, last, location);
    if (length + 1 > t->longest_chain) t->longest_chain = length + 1;
    return FKV_OK;
}

static uint32_t used_slots(const fkv_bucket *b, uint32_t *mask) {
    uint32_t n = 0;
    for (int i = 0; i < FKV_SLOTS; i++) {
        if (b->slot[i] == 0) continue;
        *mask |= 1u << i;
        n++;
    }
    return n;
}

/* Takes the last bucket off the chain when it is empty. A reader that is on its way there finds it as it was. */
static bool trim(table *t, fkv_bucket *first) {
    fkv_bucket *before = first, *last = overflow_of(t, first);
    for (fkv_bucket *b; (b = overflow_of(t, last)); last = b) before = last;
    uint32_t mask = 0;
    if (used_slots(last, &mask) > 0 || !table_quarantine_place(t, FKV_CLASS_BUCKET)) return false;
    uint64_t location = fkv_bucket_overflow(before->word1);
    table_overflow_link(t, before, 0);
    table_quarantine_extent(t, location, FKV_CLASS_BUCKET);
    t->overflow_buckets--;
    return fkv_bucket_overflow(first->word1) != 0;
}

/* Copies what the last bucket holds into free slots before it, one to spare, so that it can be taken off the chain once
 * the quarantine has cleared the old slots. Not while slots of the chain are moving: a copy of a copy would be cleared
 * twice. */
static void shorten(table *t, uint32_t number) {
    fkv_bucket *first = bucket_at(t, number), *last = first;
    uint32_t free_before = 0, position = 0, mask = 0;
    for (fkv_bucket *b; (b = overflow_of(t, last)); last = b, position++) {
        uint32_t ignored = 0;
        free_before += FKV_SLOTS - used_slots(last, &ignored);
    }
    uint32_t n = used_slots(last, &mask);
    if (n == 0 || n >= free_before || !table_quarantine_room(t, 1)) return;
    for (int i = 0; i < FKV_SLOTS; i++) /* a prepared insert will soon be done */
        if (mask >> i & 1 && fkv_slot_fingerprint(last->slot[i]) == 0) return;
    fkv_bucket *b = first;
    for (int i = 0, to = 0; i < FKV_SLOTS; i++) {
        if (!(mask >> i & 1)) continue;
        while (b->slot[to] != 0)
            if (++to == FKV_SLOTS) {
                to = 0;
                b = overflow_of(t, b);
            }
        fkv_publish_word(&b->slot[to], last->slot[i]);
    }
    table_quarantine_moved(t, number, position, mask);
}

void table_index_removed(table *t, uint32_t number) {
    fkv_bucket *first = bucket_at(t, number);
    if (fkv_bucket_overflow(first->word1) == 0) return;
    while (trim(t, first)) {}
    if (t->moving[number] == 0 && fkv_bucket_overflow(first->word1) != 0) shorten(t, number);
}
