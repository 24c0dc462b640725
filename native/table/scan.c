/* scan.c: every key of a namespace, chain by chain, in the order of the bit-reversed hash.
 *
 * A bucket of level l holds the keys whose low l hash bits are its number: in the reversed order, one interval of 2^(32
 * - l) positions. A split cuts the interval of a bucket in two and changes nothing else, so a cursor that stood at the
 * start of an interval still does, what lies before it was visited, and what lies after it will be. A merge joins two
 * intervals; a cursor between the two then stands in the middle of one, which is visited from its start: keys come
 * again, and none is left out. (The idea is Redis's dictScan; with linear hashing, growth alone repeats nothing.)
 */
#include "internal.h"

void table_scan(table *t, uint32_t space, uint64_t *cursor, void (*emit)(void *ctx, const table_entry *e), void *ctx) {
    uint64_t position = *cursor;
    *cursor = 0;
    if (t->buckets == 0 || position >> 32) return;
    uint32_t number = fkv_bucket_of(fkv_reversed_bits((uint32_t)position), t->buckets);
    fkv_bucket *first = bucket_at(t, number);
    uint32_t level = fkv_bucket_level(first->word0);
    uint64_t next = (uint64_t)fkv_reversed_bits(number) + (1ull << (32 - level));
    if (next >> 32 == 0) *cursor = next;
    for (fkv_bucket *b = first; b; b = overflow_of(t, b)) {
        for (int i = 0; i < FKV_SLOTS; i++) {
            uint64_t word = b->slot[i];
            if (fkv_slot_fingerprint(word) == 0) continue;
            const fkv_extent *e = extent_of(t, word);
            if (e->state != FKV_EXTENT_LIVE || extent_expired(t, e)) continue;
            if (space != TABLE_EVERY_NAMESPACE && fkv_extent_namespace(e->expiry_space) != space) continue;
            /* A copy. */
            if (t->moving[number] && table_index_slot(t, extent_hash(t, e), word) != &b->slot[i]) continue;
            table_entry entry = entry_of(e);
            emit(ctx, &entry);
        }
    }
}
