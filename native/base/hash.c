/* hash.c: SipHash (Aumasson, Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012) in the two strengths that
 * farkv uses, and random bytes. SipHash-c-d makes c rounds for each word of the message and d at the end.
 *
 * Keys are hashed with SipHash-1-3, 64 bits: strong enough against flooding (Rust and Python chose it for their tables)
 * and about half the cost of 2-4. Tickets are signed with SipHash-2-4, 128 bits.
 */
#include "hash.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "registered memory is little-endian and loaded in place");

typedef struct sip {
    uint64_t v0, v1, v2, v3;
} sip;

static inline uint64_t rotl(uint64_t x, int by) { return x << by | x >> (64 - by); }

static inline void sip_round(sip *s) {
    s->v0 += s->v1;
    s->v1 = rotl(s->v1, 13);
    s->v1 ^= s->v0;
    s->v0 = rotl(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotl(s->v3, 16);
    s->v3 ^= s->v2;
    s->v0 += s->v3;
    s->v3 = rotl(s->v3, 21);
    s->v3 ^= s->v0;
    s->v2 += s->v1;
    s->v1 = rotl(s->v1, 17);
    s->v1 ^= s->v2;
    s->v2 = rotl(s->v2, 32);
}
static inline void sip_init(sip *s, const fkv_seed *k) {
    *s = (sip){ k->k0 ^ 0x736f6d6570736575u, k->k1 ^ 0x646f72616e646f6du, k->k0 ^ 0x6c7967656e657261u,
                k->k1 ^ 0x7465646279746573u };
}
static inline void sip_word(sip *s, uint64_t word, int rounds) {
    s->v3 ^= word;
    for (int i = 0; i < rounds; i++) sip_round(s);
    s->v0 ^= word;
}
static inline uint64_t sip_fold(const sip *s) { return s->v0 ^ s->v1 ^ s->v2 ^ s->v3; }

static inline uint64_t load64(const uint8_t *p) {
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}
/* The n (below 8) last bytes of a message, zero-extended. */
static inline uint64_t load_tail(const uint8_t *p, size_t n) {
    uint64_t w = 0;
    if (n & 4) {
        uint32_t x;
        memcpy(&x, p, 4);
        w = x;
        p += 4;
    }
    if (n & 2) {
        uint16_t x;
        memcpy(&x, p, 2);
        w |= (uint64_t)x << (8 * (n & 4));
        p += 2;
    }
    if (n & 1) w |= (uint64_t)*p << (8 * (n & 6));
    return w;
}

/* The message is the namespace's two bytes and then the key, so its words straddle the key's by two bytes. */
uint64_t fkv_hash_key(const fkv_seed *seed, uint16_t space, const void *key, size_t bytes) {
    const uint8_t *p = key;
    size_t total = bytes + 2;
    sip s;
    sip_init(&s, seed);
    uint64_t last;
    if (bytes < 6) {
        last = space | load_tail(p, bytes) << 16;
    } else {
        uint32_t low;
        uint16_t high;
        memcpy(&low, p, 4);
        memcpy(&high, p + 4, 2);
        sip_word(&s, space | (uint64_t)low << 16 | (uint64_t)high << 48, 1);
        size_t left = bytes - 6;
        for (p += 6; left >= 8; p += 8, left -= 8) sip_word(&s, load64(p), 1);
        last = load_tail(p, left);
    }
    sip_word(&s, last | (uint64_t)total << 56, 1);
    s.v2 ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(&s);
    return sip_fold(&s);
}

void fkv_mac(const fkv_seed *secret, const void *bytes, size_t n, uint8_t mac[16]) {
    const uint8_t *p = bytes;
    size_t left = n;
    sip s;
    sip_init(&s, secret);
    s.v1 ^= 0xee;
    for (; left >= 8; p += 8, left -= 8) sip_word(&s, load64(p), 2);
    sip_word(&s, load_tail(p, left) | (uint64_t)n << 56, 2);
    s.v2 ^= 0xee;
    for (int i = 0; i < 4; i++) sip_round(&s);
    uint64_t low = sip_fold(&s);
    s.v1 ^= 0xdd;
    for (int i = 0; i < 4; i++) sip_round(&s);
    uint64_t high = sip_fold(&s);
    memcpy(mac, &low, 8);
    memcpy(mac + 8, &high, 8);
}

/* A process without random bytes must not go on: its rkeys and incarnations would be guessable. */
void fkv_random(void *out, size_t n) {
    uint8_t *p = out;
    while (n > 0) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            abort();
        }
        p += got;
        n -= (size_t)got;
    }
}
