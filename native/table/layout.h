/* layout.h: what lies in registered memory, drawn, then asserted. Readers on other machines depend on every byte of it.
 *
 * A shard's table is a set of segments, each one registered region: INDEX segments hold buckets, HEAP segments hold
 * extents. A segment has a number that slots name, a random 32-bit incarnation tag, and an rkey for each provider and
 * tenant. All integers are little-endian; every aligned 8-byte word is loaded and stored whole.
 *
 * INDEX. Buckets are numbered through all index segments in order. Linear hashing (Litwin, VLDB 1980): with B buckets
 * and 2^L <= B < 2^(L+1), a key is in bucket h mod 2^(L+1) if that is below B, else in h mod 2^L. Growth splits one
 * bucket at a time, so the index is never copied and never doubled.
 *
 *   bucket = 128 bytes, 128-byte aligned, READ whole
 *   +--------------------------------+--------------------------------+--------+-- ... --+---------+
 *   | word 0                         | word 1                         | slot 0 |         | slot 13 |
 *   | tag 32 | level 6 | marks 2 | 0 | overflow 40 | layout epoch 24  |        |         |         |
 *   +--------------------------------+--------------------------------+--------+-- ... --+---------+
 *   tag      the incarnation tag of the segment; the only check there is when the answer is a miss
 *   level    the bucket holds the keys whose low `level` hash bits equal its number (0 in an overflow bucket). A reader
 *            whose B is too low finds a higher level than it expected: fkv_buckets_known() says what B must be at
 *            least, and unless fkv_bucket_covers() its key it goes to fkv_bucket_of() that B.
 *   marks    FKV_BUCKET_SETTLING, FKV_BUCKET_MERGED: see "Merge". A reader that knows no marks finds a level above 31,
 *            and takes the memory for foreign
 *   overflow location of the next bucket of the chain (in a HEAP segment, size class FKV_CLASS_BUCKET), 0 = none; no
 *   HEAP
 *            segment has number 0
 *   epoch    the layout epoch when word 1 was last stored: a hint only
 *   slot     fingerprint 16 | size class 8 | location 40;  0 = empty; fingerprint 0: kept for a prepared insert, not
 *                                                          for readers
 *   location segment number 16 | offset in 32-byte units 24
 *
 * A key that stays in the table stays in its slot; when a split or the shortening of a chain copies a slot elsewhere,
 * the old copy stays valid until the quarantine has passed and is only then cleared. A chain grows and shrinks at its
 * end only.
 *
 * Split of bucket b into b and b' = b + 2^level, while being read: b' is written whole; then word 0 of b gets the new
 * level (this publishes it); the slots that moved stay in b, and stay valid for a reader that holds the old word 0,
 * until the quarantine has passed; then they are cleared. A reader that saw the old header therefore never misses a key
 * that was there. Changes of a key that moved are made in b' from then on: who follows the old slot finds a DEAD extent
 * and starts again.
 *
 * Merge of the last bucket b' = b + 2^level into b, while being read:
 *   1. The slots of b' are copied into free slots of b's chain, as they are.
 *   2. Word 0 of b gets `level` and SETTLING. This publishes the merge; changes of the keys of b' are made in b from
 *      then on.
 *   3. Word 0 of b' gets MERGED. Its slots, and its chain, stay valid for a reader that holds the old word 0.
 *   4. When the quarantine has passed, b loses SETTLING and b' its slots. Only then may the number of b' be used again.
 * A split that uses a number again, be it in the same memory or in new memory, publishes b' with SETTLING, which ends
 * likewise: readers whose B is too high may have READs of it under way. A bucket keeps SETTLING when it is split. It is
 * merged neither while it has the mark nor while slots of its chain are moving.
 *
 * Rules for readers:
 *   MERGED    B is at most the number of this bucket: go to fkv_bucket_of() it.
 *   SETTLING  The words of a READ have no order: slots of before step 1 may come with the word 0 of step 2. So a miss
 *             counts only when an earlier READ of this bucket, in the same try, had found the mark before this READ was
 *             posted. Who finds no mark any more began later than the copy was made, or takes longer than a GET may.
 *   B rises and falls on the way, so a reader takes FKV_BUCKET_STEPS steps at most (reader.h).
 * test/table/index_machine.c searches all this, and finds what goes wrong without any part of it.
 *
 * HEAP. An extent is 32-byte aligned; its header is 40 bytes; then the key; then the value.
 *
 *    0 state        u32   FKV_EXTENT_* ; the only word that changes while the extent is in use
 *    4 crc          u32   CRC32C over bytes 8..39, key, value
 *    8 version      u64   ownership epoch 20 | sequence of the shard 44; never repeats
 *   16 tag          u32   incarnation tag of the segment
 *   20 value bytes  u32
 *   24 expiry       u64   wall-clock milliseconds 48 (0: never) | namespace 16 (in the high bits)
 *   32 key bytes    u16
 *   34 codec        u8    how the SDK encoded the value; opaque here
 *   35 flags        u8    0
 *   36 user flags   u32   opaque, the caller's
 *
 * PUT: write the new extent as PENDING; mark the old one DEAD; store the slot; mark the new one LIVE (here the PUT
 * takes effect); acknowledge. DELETE: mark DEAD; clear the slot; acknowledge. A reader takes LIVE only; from PENDING or
 * DEAD it goes back to the index. Why this order (each is a switch of test/protocol_model_test.c that finds a
 * violation):
 *   DEAD before LIVE    else one reader returns the new value and a later one the old value through its cached location
 *   PENDING             else a cached location whose extent was reused for the same key returns a value not yet in
 *                       effect
 *   slot before LIVE    else, where the key was absent before, a reader returns the new value through such a cached
 *                       location and a later one finds no slot
 *
 * How long a GET may take, from before its first READ was posted to after its last one was polled: fkv_get_life_ns(). A
 * reader discards what took longer. Freed extents, overflow buckets and moved slots are left as they are for longer
 * than that.
 */
#ifndef FARKV_TABLE_LAYOUT_H
#define FARKV_TABLE_LAYOUT_H
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum { FKV_LAYOUT_VERSION = 1 };

enum {
    FKV_UNIT = 32, /* bytes; extents are aligned to it, locations count in it */
    FKV_BUCKET_BYTES = 128,
    FKV_SLOTS = 14,
    FKV_KEY_MAX = 1024,
    FKV_VALUE_MAX = 64 << 20,
    FKV_EXTENT_HEADER = 40,
    FKV_CHAIN_MAX = 8,              /* buckets of one chain; a key that would need more is TABLE_FULL */
    FKV_CLASS_BUCKET = 255,         /* size class of an overflow bucket */
    FKV_SEGMENT_UNITS_MAX = 1 << 24 /* 512 MiB */
};

typedef struct fkv_bucket {
    uint64_t word0, word1;
    uint64_t slot[FKV_SLOTS];
} fkv_bucket;
static_assert(sizeof(fkv_bucket) == FKV_BUCKET_BYTES, "a bucket is read in one operation");

typedef struct fkv_extent {
    uint32_t state, crc;
    uint64_t version;
    uint32_t tag, value_bytes;
    uint64_t expiry_space; /* milliseconds 48 | namespace 16; see fkv_extent_expiry, fkv_extent_namespace */
    uint16_t key_bytes;
    uint8_t codec, flags;
    uint32_t user_flags;
} fkv_extent;
static_assert(sizeof(fkv_extent) == FKV_EXTENT_HEADER, "the header is 40 bytes, without padding");
static_assert(offsetof(fkv_extent, version) == 8, "drawing");
static_assert(offsetof(fkv_extent, tag) == 16, "drawing");
static_assert(offsetof(fkv_extent, expiry_space) == 24, "drawing");
static_assert(offsetof(fkv_extent, key_bytes) == 32, "drawing");
static_assert(offsetof(fkv_extent, user_flags) == 36, "drawing");

/* Not small numbers, so that zeroed or foreign bytes are no state. */
enum {
    FKV_EXTENT_FREE = 0,
    FKV_EXTENT_PENDING = 0x50454e44,
    FKV_EXTENT_LIVE = 0x4c495645,
    FKV_EXTENT_DEAD = 0x44454144
};

/* word 0 */
enum { FKV_BUCKET_SETTLING = 1 << 6, FKV_BUCKET_MERGED = 1 << 7 }; /* marks: bits beside the level's */
static inline uint32_t fkv_bucket_tag(uint64_t w0) { return (uint32_t)w0; }
static inline uint32_t fkv_bucket_level(uint64_t w0) { return (uint32_t)(w0 >> 32) & 0x3f; }
static inline uint32_t fkv_bucket_marks(uint64_t w0) { return (uint32_t)(w0 >> 32) & 0xc0; }
static inline uint64_t fkv_bucket_word0(uint32_t tag, uint32_t level, uint32_t marks) {
    return (uint64_t)tag | (uint64_t)(level | marks) << 32;
}
/* word 1 */
static inline uint64_t fkv_bucket_overflow(uint64_t w1) { return w1 & 0xffffffffffu; }
static inline uint64_t fkv_bucket_word1(uint64_t overflow, uint32_t epoch) { return overflow | (uint64_t)epoch << 40; }
/* slot and location */
static inline uint64_t fkv_location(uint32_t segment, uint32_t unit) { return (uint64_t)segment << 24 | unit; }
static inline uint32_t fkv_location_segment(uint64_t loc) { return (uint32_t)(loc >> 24) & 0xffff; }
static inline uint32_t fkv_location_unit(uint64_t loc) { return (uint32_t)loc & 0xffffff; }
static inline uint64_t fkv_slot(uint16_t fp, uint8_t cls, uint64_t loc) {
    return (uint64_t)fp << 48 | (uint64_t)cls << 40 | loc;
}
static inline uint16_t fkv_slot_fingerprint(uint64_t s) { return (uint16_t)(s >> 48); }
static inline uint8_t fkv_slot_class(uint64_t s) { return (uint8_t)(s >> 40); }
static inline uint64_t fkv_slot_location(uint64_t s) { return s & 0xffffffffffu; }
/* Whether bucket number `b`, whose word 0 was read, is the one that holds the keys with these hash bits. */
static inline int fkv_bucket_covers(uint64_t w0, uint32_t b, uint32_t hash_bits) {
    return (((uint64_t)hash_bits ^ b) & ((1ull << (fkv_bucket_level(w0) & 31)) - 1)) == 0;
}
/* How many buckets there are at least, once bucket number `b` was seen with this word 0. */
static inline uint32_t fkv_buckets_known(uint64_t w0, uint32_t b) {
    uint32_t level = fkv_bucket_level(w0) & 31, half = level ? 1u << (level - 1) : 0;
    return (b < half ? b + half : b) + 1;
}
/* extent */
static inline uint64_t fkv_extent_expiry(uint64_t e) { return e & 0xffffffffffffu; }
static inline uint16_t fkv_extent_namespace(uint64_t e) { return (uint16_t)(e >> 48); }
static inline uint64_t fkv_expiry_space(uint64_t expiry_ms, uint16_t space) {
    return expiry_ms | (uint64_t)space << 48;
}
static inline uint64_t fkv_version(uint32_t epoch, uint64_t seq) { return (uint64_t)epoch << 44 | seq; }

/* The longest a GET of an extent of this many bytes may take: 250 ms (two round trips across a continent, or a garbage
 * collection in between) and 20 ns a byte (a 64 MiB value at 50 MB/s). */
enum { FKV_GET_LIFE_NS = 250 * 1000 * 1000, FKV_GET_LIFE_NS_PER_BYTE = 20 };
static inline uint64_t fkv_get_life_ns(uint64_t extent_bytes) {
    return FKV_GET_LIFE_NS + extent_bytes * FKV_GET_LIFE_NS_PER_BYTE;
}

/* Size classes. 0..63: 1..64 units, one apart (so 1,056 bytes, a 16 B key with a 1,000 B value, fits exactly).
 * 64..223: 16 a doubling, at most 6.25 % apart, to 2 MiB. 224..243: 4 a doubling, to 64 MiB. 244: 64 MiB + 4 KiB.
 * 245..254 unused. 255: an overflow bucket. */
enum { FKV_CLASS_COUNT = 245 };
static inline uint32_t fkv_class_units(uint32_t cls) {
    if (cls < 64) return cls + 1;
    if (cls < 224) {
        uint32_t d = (cls - 64) / 16, i = (cls - 64) % 16 + 1;
        return (64u << d) + ((64u << d) / 16) * i;
    }
    if (cls < 244) {
        uint32_t d = (cls - 224) / 4, i = (cls - 224) % 4 + 1;
        return (65536u << d) + ((65536u << d) / 4) * i;
    }
    if (cls == 244) return (64u << 20) / FKV_UNIT + 4096 / FKV_UNIT;
    return cls == FKV_CLASS_BUCKET ? FKV_BUCKET_BYTES / FKV_UNIT : 0;
}
/* The smallest class that holds `bytes` (header, key and value). Precondition: bytes <= 40 + FKV_KEY_MAX +
 * FKV_VALUE_MAX. */
uint8_t fkv_class_of(size_t bytes);

/* Linear hashing: the bucket of a hash when there are `buckets` of them (at least 1). */
static inline uint32_t fkv_bucket_of(uint32_t hash_bits, uint32_t buckets) {
    uint32_t level = 31u - (uint32_t)__builtin_clz(buckets);
    uint32_t low = hash_bits & ((1u << level) - 1u);
    uint32_t high = hash_bits & (uint32_t)((2ull << level) - 1u);
    return high < buckets ? high : low;
}
#endif
