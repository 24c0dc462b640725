/* crc32c.c: CRC32C with the instructions of x86 (SSE4.2 and PCLMULQDQ) or ARMv8 (CRC and PMULL), or with tables.
 *
 * The CRC instruction takes 8 bytes with a latency of 3 cycles and a throughput of 1, so one chain of it uses a third
 * of the machine. Large inputs are therefore cut into three lanes of equal length whose CRCs are computed interleaved
 * and then joined (Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel 2011):
 *
 *     crc(A B C) = crc(A) * x^(16 L) + crc(B) * x^(8 L) + crc(C)   mod P, for lanes of L bytes
 *
 * A product with x^n mod P is one carry-less multiplication with the constant x^(n - 33) mod P followed by one CRC
 * instruction on the 64-bit product: reflected operands add one factor x, the CRC instruction adds x^32.
 */
#include "hash.h"
#include <pthread.h>
#include <string.h>

/* ---- tables: slicing by 8 ---- */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_fill(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++) table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xff];
}

uint32_t fkv_crc32c_portable(uint32_t crc, const void *bytes, size_t n) {
    pthread_once(&table_once, table_fill);
    const uint8_t *p = bytes;
    crc = ~crc;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        w ^= crc;
        crc = table[7][w & 0xff] ^ table[6][w >> 8 & 0xff] ^ table[5][w >> 16 & 0xff] ^ table[4][w >> 24 & 0xff] ^
              table[3][w >> 32 & 0xff] ^ table[2][w >> 40 & 0xff] ^ table[1][w >> 48 & 0xff] ^ table[0][w >> 56];
    }
    for (; n > 0; p++, n--) crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
    return ~crc;
}

/* ---- instructions ---- */
#if defined(__x86_64__)
#include <immintrin.h>
#define CRC_TARGET __attribute__((target("sse4.2,pclmul")))
static inline int crc_hardware(void) { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"); }
CRC_TARGET static inline uint32_t crc_8(uint32_t c, uint64_t w) { return (uint32_t)_mm_crc32_u64(c, w); }
CRC_TARGET static inline uint32_t crc_1(uint32_t c, uint8_t b) { return _mm_crc32_u8(c, b); }
CRC_TARGET static inline uint64_t multiply(uint32_t a, uint32_t b) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define CRC_TARGET __attribute__((target("+crc+crypto")))
static inline int crc_hardware(void) {
    static int known; /* 0: not asked yet, 1: no, 2: yes; racing threads store the same */
    int k = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (k == 0) {
        unsigned long caps = getauxval(AT_HWCAP);
        k = (caps & HWCAP_CRC32) && (caps & HWCAP_PMULL) ? 2 : 1;
        __atomic_store_n(&known, k, __ATOMIC_RELAXED);
    }
    return k == 2;
}
CRC_TARGET static inline uint32_t crc_8(uint32_t c, uint64_t w) { return __crc32cd(c, w); }
CRC_TARGET static inline uint32_t crc_1(uint32_t c, uint8_t b) { return __crc32cb(c, b); }
CRC_TARGET static inline uint64_t multiply(uint32_t a, uint32_t b) {
    return vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64((poly64_t)a, (poly64_t)b)), 0);
}
#endif

#ifdef CRC_TARGET
static inline uint64_t load64(const uint8_t *p) {
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

/* Lane lengths: 64 for small values, 328 so that three lanes cover a value of 1,000 bytes but for two words, 4096 for
 * large ones. `once` and `twice` are x^(8 L - 33) and x^(16 L - 33) mod P, bit-reflected; the tests compare with the
 * table. */
typedef struct lanes {
    uint32_t bytes, once, twice;
} lanes;
static const lanes large = { 4096, 0x82f89c77, 0x54a86326 };
static const lanes middle = { 328, 0x21f3d99c, 0x1393e203 };
static const lanes small = { 64, 0x9e4addf8, 0x0d3b6092 };

CRC_TARGET static inline uint32_t three_lanes(uint32_t crc, const uint8_t *p, const lanes l) {
    uint32_t a = crc, b = 0, c = 0;
    for (uint32_t i = 0; i < l.bytes; i += 8) {
        a = crc_8(a, load64(p + i));
        b = crc_8(b, load64(p + l.bytes + i));
        c = crc_8(c, load64(p + 2 * l.bytes + i));
    }
    return crc_8(0, multiply(a, l.twice) ^ multiply(b, l.once)) ^ c;
}
CRC_TARGET static uint32_t crc_instructions(uint32_t crc, const uint8_t *p, size_t n) {
    crc = ~crc;
    for (; n >= 3 * large.bytes; p += 3 * large.bytes, n -= 3 * large.bytes) crc = three_lanes(crc, p, large);
    for (; n >= 3 * middle.bytes; p += 3 * middle.bytes, n -= 3 * middle.bytes) crc = three_lanes(crc, p, middle);
    for (; n >= 3 * small.bytes; p += 3 * small.bytes, n -= 3 * small.bytes) crc = three_lanes(crc, p, small);
    for (; n >= 8; p += 8, n -= 8) crc = crc_8(crc, load64(p));
    for (; n > 0; p++, n--) crc = crc_1(crc, *p);
    return ~crc;
}
#endif

uint32_t fkv_crc32c(uint32_t crc, const void *bytes, size_t n) {
#ifdef CRC_TARGET
    if (crc_hardware()) return crc_instructions(crc, bytes, n);
#endif
    return fkv_crc32c_portable(crc, bytes, n);
}
