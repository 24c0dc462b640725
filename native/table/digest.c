/* digest.c: what two tables with the same entries have in common, and whether the memory still says what was written.
 *
 * The digest is the exclusive or of a word for each entry, made of its key's hash and its version. An entry that expires
 * is left out: each copy of a shard sweeps by its own clock. A commit changes the digest by two words; nothing else does.
 *
 * A scrub goes through all entries and computes checksums and digest anew, in the order of scan.c: that of the
 * bit-reversed hash, in which splits and merges move nothing. A commit of a key that was passed changes what the scrub
 * has summed up as well; of one that is still to come, nothing. So at its end both are equal, or a slot has changed that
 * no commit changed. Two keys with the same 64 bits of hash would be counted once: among ten million keys of a table
 * with a chance of one in 300,000.
 */
#include "../base/hash.h"
#include "internal.h"
#include "reader.h"

enum { LOOK_COST = 256 }; /* bytes that are as dear as going to a bucket, or to an extent */

uint64_t table_digest(const table *t) { return t->digest; }

/* The entry of the chain that comes first in the order, from `from` on. */
typedef struct found {
    const fkv_extent *e; /* NULL: there is none */
    uint64_t word, order, hash;
    bool damaged;
} found;

static bool sound(const table *t, uint64_t word, const fkv_extent *e) {
    return e->tag == t->heap[fkv_location_segment(fkv_slot_location(word))]->tag &&
           fkv_extent_lengths_fit(e, class_bytes(fkv_slot_class(word)));
}

static void look(table *t, uint32_t number, const uint64_t *slot, uint64_t from, found *f) {
    uint64_t word = *slot;
    if (fkv_slot_fingerprint(word) == 0) return; /* empty, or kept for what is prepared */
    f->damaged |= !table_is_extent(t, fkv_slot_location(word), fkv_slot_class(word));
    if (f->damaged) return;
    const fkv_extent *e = extent_of(t, word);
    if (e->state != FKV_EXTENT_LIVE) return; /* left behind by a split; were it an entry, the digest would tell */
    f->damaged |= !sound(t, word, e);
    if (f->damaged) return;
    uint64_t hash = extent_hash(t, e), order = table_order_of(hash);
    bool here = bucket_of(t, hash) == number && fkv_slot_fingerprint(word) == fkv_hash_fingerprint(hash);
    if (t->moving[number] ? table_index_slot(t, hash, word) != slot : !here) {
        f->damaged |= t->moving[number] == 0;
        return;
    }
    if (order >= from && (!f->e || order < f->order))
        *f = (found){ .e = e, .word = word, .order = order, .hash = hash };
}

static bool chain_goes_on(const table *t, fkv_bucket **b, bool *damaged) {
    uint64_t location = fkv_bucket_overflow((*b)->word1);
    if (!location) return false;
    *damaged |= !table_is_extent(t, location, FKV_CLASS_BUCKET);
    if (*damaged) return false;
    *b = at_location(t, location);
    *damaged |= !fkv_overflow_check(*b, t->heap[fkv_location_segment(location)]->tag);
    return !*damaged;
}

static found first_of(table *t, uint32_t number, uint64_t from) {
    found f = { 0 };
    fkv_bucket *b = bucket_at(t, number);
    do
        for (int i = 0; i < FKV_SLOTS && !f.damaged; i++) look(t, number, &b->slot[i], from, &f);
    while (chain_goes_on(t, &b, &f.damaged));
    return f;
}

/* Checksums as much of the entry as there is budget for. True: to its end. */
static bool checksum(table *t, const found *f, size_t *budget) {
    scrub *s = &t->scrub;
    if (s->word != f->word || s->version != f->e->version)
        *s = (scrub){ .order = s->order, .digest = s->digest, .word = f->word, .version = f->e->version };
    size_t bytes = FKV_EXTENT_HEADER - 8 + (size_t)f->e->key_bytes + f->e->value_bytes, left = bytes - s->bytes;
    size_t n = left < *budget ? left : *budget;
    s->crc = fkv_crc32c(s->crc, (const uint8_t *)f->e + 8 + s->bytes, n);
    s->bytes += n;
    *budget -= n;
    return s->bytes == bytes;
}

static table_scrub_result over(table *t, table_scrub_result r) {
    t->scrub = (scrub){ 0 };
    return r;
}

static table_scrub_result ended(table *t) {
    return over(t, t->scrub.digest == t->digest ? TABLE_SCRUB_WHOLE : TABLE_SCRUB_DAMAGED);
}

/* The next entry of the bucket that the scrub is in, or the next bucket. */
static table_scrub_result step(table *t, size_t *budget) {
    scrub *s = &t->scrub;
    uint32_t number = fkv_bucket_of(fkv_reversed_bits((uint32_t)(s->order >> 32)), t->buckets);
    uint32_t level = fkv_bucket_level(bucket_at(t, number)->word0);
    found f = first_of(t, number, s->order);
    f.damaged |= level != table_level(t, number);
    if (f.damaged) return over(t, TABLE_SCRUB_DAMAGED);
    if (!f.e) {
        uint64_t next = (uint64_t)fkv_reversed_bits(number) + (1ull << (32 - level));
        if (next >> 32) return ended(t);
        s->order = next << 32;
    } else if (checksum(t, &f, budget)) {
        if (s->crc != f.e->crc) return over(t, TABLE_SCRUB_DAMAGED); /* mutation: integrity/scrub-crc */
        if (!fkv_extent_expiry(f.e->expiry_space)) s->digest ^= table_digest_word(f.hash, f.e->version);
        if (f.order == UINT64_MAX) return ended(t);
        s->order = f.order + 1;
    }
    *budget -= *budget < LOOK_COST ? *budget : LOOK_COST;
    return TABLE_SCRUB_GOES_ON;
}

table_scrub_result table_scrub(table *t, size_t budget) {
    table_scrub_result r = t->buckets ? TABLE_SCRUB_GOES_ON : TABLE_SCRUB_WHOLE;
    while (r == TABLE_SCRUB_GOES_ON && budget > 0) r = step(t, &budget);
    return r;
}
