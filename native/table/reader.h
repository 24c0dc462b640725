/* reader.h: what a reader does with the bytes of layout.h: buckets and extents, landed by a READ or loaded in place.
 *
 * For: native/client/lookup and tests. Not for: where segments lie, retries, leases. Three rules are the caller's, and
 * a result that breaks one is discarded:
 *   - a lease that covered the GET is still running after the last READ completed or the last check below returned;
 *   - the GET took no longer than fkv_get_life_ns(), from before its first READ to then;
 *   - a location that was kept from an earlier GET is used only while its segment number still has the tag it had then.
 *
 * Two ways to an extent, with the same answers:
 *   fkv_extent_check   bytes that a READ landed in private memory; torn bytes are found by the checksum
 *   fkv_extent_copy    memory that the owner may be changing; torn bytes are found as with a sequence lock: version and
 *                      state are loaded before the copy and after it. A change's version never comes again; only an
 *                      entry that is moved away and back (evacuate.c) comes again under its own, through two
 *                      quarantines, which the second rule excludes. Version is loaded before state, so a version of a
 *                      life that began meanwhile is not combined with the LIVE of the last one.
 * Nothing that a header says is believed before it is checked against the size of the class: headers may be torn or
 * hostile.
 */
#ifndef FARKV_TABLE_READER_H
#define FARKV_TABLE_READER_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "../base/hash.h"
#include "../base/shared_copy.h"
#include "layout.h"

/* ---- buckets ---- */

/* How often a lookup may go from one bucket to another before its idea of the table is taken for hopeless. Two buckets
 * whose numbers differ are at most 31 levels apart; the rest is for splits and merges that come in between. */
enum { FKV_BUCKET_STEPS = 40 };

/* Copies a bucket out of memory that may be changing. Word 0 is loaded last: where it still has the old level, no split
 * was published before, so no slot that was loaded earlier had been cleared for one. */
static inline void fkv_bucket_copy(const void *shared, fkv_bucket *out) {
    const fkv_bucket *b = shared;
    for (int i = 0; i < FKV_SLOTS; i++) out->slot[i] = __atomic_load_n(&b->slot[i], FKV_SHARED_LOAD);
    fkv_copy_shared_end();
    out->word1 = __atomic_load_n(&b->word1, __ATOMIC_ACQUIRE);
    out->word0 = __atomic_load_n(&b->word0, __ATOMIC_ACQUIRE);
}

typedef enum fkv_bucket_state {
    FKV_BUCKET_HERE = 1,  /* this bucket, and its chain, hold the key if there is one */
    FKV_BUCKET_AGAIN,     /* the same, when it is read once more, and this was found before: see SETTLING in layout.h */
    FKV_BUCKET_ELSEWHERE, /* it was split or merged: *buckets was changed, take fkv_bucket_of() it */
    FKV_BUCKET_FOREIGN    /* not the memory it was (tag): refresh the layout */
} fkv_bucket_state;

static inline fkv_bucket_state fkv_bucket_check_level(uint64_t word0, uint32_t number, uint32_t hash_bits,
                                                      uint32_t *buckets) {
    uint32_t known = fkv_buckets_known(word0, number);
    if (known > *buckets) *buckets = known;
    if (fkv_bucket_covers(word0, number, hash_bits)) return FKV_BUCKET_HERE;
    return fkv_bucket_of(hash_bits, *buckets) != number ? FKV_BUCKET_ELSEWHERE : FKV_BUCKET_FOREIGN;
}
/* The state, and in the high half *buckets: by value, so that readers of unmarked buckets keep it in a register. */
static __attribute__((noinline, unused)) uint64_t fkv_bucket_check_marks(uint64_t word0, uint32_t number,
                                                                         uint32_t hash_bits, uint32_t buckets) {
    fkv_bucket_state s = FKV_BUCKET_FOREIGN;
    if (fkv_bucket_marks(word0) & FKV_BUCKET_MERGED) {
        if (buckets > number) buckets = number;
        s = number > 0 ? FKV_BUCKET_ELSEWHERE : FKV_BUCKET_FOREIGN;
    } else if (fkv_bucket_level(word0) <= 31) {
        s = fkv_bucket_check_level(word0, number, hash_bits, &buckets);
        if (s == FKV_BUCKET_HERE) s = FKV_BUCKET_AGAIN;
    }
    return (uint64_t)buckets << 32 | s;
}
/* What a primary bucket says of itself. `tag` is that of the index segment; `buckets` the reader's idea of how many
 * there are. */
static inline fkv_bucket_state fkv_bucket_check(const fkv_bucket *b, uint32_t tag, uint32_t number, uint32_t hash_bits,
                                                uint32_t *buckets) {
    if (fkv_bucket_tag(b->word0) != tag) return FKV_BUCKET_FOREIGN;
    bool plain = (b->word0 >> 32 & 0xff) <= 31;
    if (__builtin_expect(!plain, 0)) {
        uint64_t both = fkv_bucket_check_marks(b->word0, number, hash_bits, *buckets);
        if (both >> 32) *buckets = (uint32_t)(both >> 32);
        return (fkv_bucket_state)(uint32_t)both;
    }
    return fkv_bucket_check_level(b->word0, number, hash_bits, buckets);
}
/* An overflow bucket has a tag only: that of its heap segment. */
static inline bool fkv_overflow_check(const fkv_bucket *b, uint32_t tag) { return fkv_bucket_tag(b->word0) == tag; }

/* The first slot from `from` on with this fingerprint, or -1. Several keys of a bucket may have it. */
static inline int fkv_bucket_find(const fkv_bucket *b, uint16_t fingerprint, int from) {
    for (int i = from; i < FKV_SLOTS; i++)
        if (fkv_slot_fingerprint(b->slot[i]) == fingerprint) return i;
    return -1;
}
/* Where the extent (or overflow bucket) of a slot lies in its segment: false when it does not fit, which torn or
 * foreign bytes can say. */
static inline bool fkv_location_range(uint64_t location, uint32_t cls, uint64_t segment_bytes, uint64_t *offset,
                                      uint32_t *bytes) {
    *offset = (uint64_t)fkv_location_unit(location) * FKV_UNIT;
    *bytes = fkv_class_units(cls) * FKV_UNIT;
    return *bytes != 0 && *offset + *bytes <= segment_bytes;
}

/* ---- extents ---- */

typedef enum fkv_read {
    FKV_READ_OK = 1,
    FKV_READ_OTHER_KEY, /* a whole, live extent of another key: fingerprints collide, try the next slot */
    FKV_READ_AGAIN,     /* pending, dead, torn, or not the memory it was: go back to the index */
    FKV_READ_TOO_SMALL  /* the caller's buffer is smaller than found->value_bytes */
} fkv_read;

typedef struct fkv_wanted {
    const void *key;
    uint16_t key_bytes, space;
    uint32_t tag; /* of the segment */
} fkv_wanted;

typedef struct fkv_found {
    uint64_t version;
    uint64_t expiry_ms; /* wall clock of the owner, 0 never: the caller compares */
    uint32_t value_bytes, value_offset;
    uint32_t user_flags;
    uint8_t codec;
} fkv_found;

static inline bool fkv_extent_lengths_fit(const fkv_extent *h, size_t bytes) {
    uint64_t all = (uint64_t)FKV_EXTENT_HEADER + h->key_bytes + h->value_bytes;
    return h->key_bytes != 0 && h->key_bytes <= FKV_KEY_MAX && all <= bytes; /* mutation: table/reader-lengths */
}
static inline void fkv_extent_describe(const fkv_extent *h, fkv_found *out) {
    *out = (fkv_found){ .version = h->version,
                        .expiry_ms = fkv_extent_expiry(h->expiry_space),
                        .value_bytes = h->value_bytes,
                        .value_offset = FKV_EXTENT_HEADER + h->key_bytes,
                        .user_flags = h->user_flags,
                        .codec = h->codec };
}
static inline uint32_t fkv_extent_crc(const void *extent, uint32_t key_bytes, uint32_t value_bytes) {
    return fkv_crc32c(0, (const uint8_t *)extent + 8, FKV_EXTENT_HEADER - 8 + (size_t)key_bytes + value_bytes);
}

/* `bytes` bytes of an extent landed at `landed`, which is 8-byte aligned and private. On OK the value is at
 * landed + found->value_offset. Another key is believed only with a good checksum: torn bytes must not become a
 * miss. */
static inline fkv_read fkv_extent_check(const void *landed, size_t bytes, const fkv_wanted *want, fkv_found *found) {
    if (bytes < FKV_EXTENT_HEADER) return FKV_READ_AGAIN;
    fkv_extent h;
    memcpy(&h, landed, sizeof h);
    /* mutation: table/reader-tag */
    if (h.state != FKV_EXTENT_LIVE || h.tag != want->tag || !fkv_extent_lengths_fit(&h, bytes)) return FKV_READ_AGAIN;
    /* mutation: table/reader-crc */
    if (fkv_extent_crc(landed, h.key_bytes, h.value_bytes) != h.crc) return FKV_READ_AGAIN;
    if (h.key_bytes != want->key_bytes || fkv_extent_namespace(h.expiry_space) != want->space ||
        memcmp((const uint8_t *)landed + FKV_EXTENT_HEADER, want->key, want->key_bytes) != 0)
        return FKV_READ_OTHER_KEY;
    fkv_extent_describe(&h, found);
    return FKV_READ_OK;
}

/* Whether `bytes` bytes of shared memory, from an 8-byte boundary on, equal private ones. */
static inline bool fkv_shared_equal(const void *shared, const void *own, size_t bytes) {
    const fkv_shared_word *w = shared;
    const uint8_t *p = own;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t mine;
        memcpy(&mine, p, 8);
        if (__atomic_load_n(w++, FKV_SHARED_LOAD) != mine) return false;
    }
    if (bytes == 0) return true;
    uint64_t mine = 0;
    memcpy(&mine, p, bytes);
    return ((__atomic_load_n(w, FKV_SHARED_LOAD) ^ mine) & ((1ull << 8 * bytes) - 1)) == 0;
}

/* The extent lies at `shared`, mapped and possibly changing, `bytes` long (its class). On OK the value was copied to
 * `to`. No checksum: the owner's stores reach this process whole, word by word, and in order. */
static inline fkv_read fkv_extent_copy(const void *shared, size_t bytes, const fkv_wanted *want, void *to, size_t room,
                                       fkv_found *found) {
    const fkv_extent *e = shared;
    const uint64_t *word = shared;
    if (bytes < FKV_EXTENT_HEADER) return FKV_READ_AGAIN;
    uint64_t head[FKV_EXTENT_HEADER / 8];
    head[1] = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE); /* mutation: table/reader-version-first */
    if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != FKV_EXTENT_LIVE) return FKV_READ_AGAIN;
    for (int i = 2; i < FKV_EXTENT_HEADER / 8; i++) head[i] = __atomic_load_n(word + i, FKV_SHARED_LOAD);
    head[0] = 0;
    fkv_extent h;
    memcpy(&h, head, sizeof h);
    if (h.tag != want->tag || !fkv_extent_lengths_fit(&h, bytes)) return FKV_READ_AGAIN;
    bool ours = h.key_bytes == want->key_bytes && fkv_extent_namespace(h.expiry_space) == want->space &&
                fkv_shared_equal((const uint8_t *)shared + FKV_EXTENT_HEADER, want->key, want->key_bytes);
    if (ours && h.value_bytes <= room)
        fkv_copy_shared(to, (const uint8_t *)shared + FKV_EXTENT_HEADER + h.key_bytes, h.value_bytes);
    fkv_copy_shared_end();
    bool changed = __atomic_load_n(&e->state, __ATOMIC_RELAXED) != FKV_EXTENT_LIVE ||
                   __atomic_load_n(&e->version, __ATOMIC_RELAXED) != h.version;
    if (changed) return FKV_READ_AGAIN; /* mutation: table/reader-second-look */
    if (!ours) return FKV_READ_OTHER_KEY;
    fkv_extent_describe(&h, found);
    return h.value_bytes <= room ? FKV_READ_OK : FKV_READ_TOO_SMALL;
}
#endif
