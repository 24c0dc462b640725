/* hash.h: the keyed hash of keys, the message code of tickets, CRC32C. Each exists once, here.
 *
 * A key's hash is SipHash-1-3 (Aumasson, Bernstein 2012) under the cluster's 128-bit seed over the namespace id
 * (2 bytes, little-endian) and the key, so that nobody without the seed can aim keys at one bucket. Its 64 bits are
 * used once each:
 *     63..48 shard     47..32 fingerprint     31..0 bucket
 */
#ifndef FARKV_BASE_HASH_H
#define FARKV_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

typedef struct fkv_seed {
    uint64_t k0, k1;
} fkv_seed;

uint64_t fkv_hash_key(const fkv_seed *seed, uint16_t space, const void *key, size_t bytes);

static inline uint32_t fkv_hash_shard(uint64_t h, uint32_t shards) { return (uint32_t)(((h >> 48) * shards) >> 16); }
/* The shards that keys are spread over: those of one tenant, in a row. */
typedef struct fkv_shard_range {
    uint32_t first, count;
} fkv_shard_range;
static inline uint32_t fkv_range_shard(fkv_shard_range r, uint64_t h) { return r.first + fkv_hash_shard(h, r.count); }
static inline int fkv_range_has(fkv_shard_range r, uint32_t shard) { return shard - r.first < r.count; }
/* A fingerprint is never 0: a slot of 0 is empty. */
static inline uint16_t fkv_hash_fingerprint(uint64_t h) {
    uint16_t f = (uint16_t)(h >> 32);
    return f ? f : 1;
}
static inline uint32_t fkv_hash_bucket_bits(uint64_t h) { return (uint32_t)h; }
/* The bits in the other order. Numbers of buckets are the low bits of what is hashed, so in this order the keys of a bucket
 * lie side by side however many buckets there are: who walks in it misses nothing while they become more. */
static inline uint32_t fkv_reversed_bits(uint32_t x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}

/* SipHash-2-4 with a 128-bit result: the message authentication code of tickets. */
void fkv_mac(const fkv_seed *secret, const void *bytes, size_t n, uint8_t mac[16]);

/* CRC32C (Castagnoli, RFC 3720 B.4), hardware instructions where the CPU has them. Chainable: start with crc = 0. */
uint32_t fkv_crc32c(uint32_t crc, const void *bytes, size_t n);
/* The same by tables, whatever the CPU has: what fkv_crc32c falls back to, and what its tests compare it with. */
uint32_t fkv_crc32c_portable(uint32_t crc, const void *bytes, size_t n);

/* Cryptographically strong random bytes (getrandom). For rkeys, incarnations, secrets. */
void fkv_random(void *out, size_t n);
#endif
