/* histogram.h: latencies in logarithmic buckets, 32 to a doubling: a percentile is at most 3.2 % too high; count and
 * max are exact.
 *
 * For: the counters of a thread that records a latency for each operation. One thread records; any thread may read at
 * any time (relaxed words: a reading is consistent to within the records made meanwhile). Not for: the benchmark's
 * results, which use HdrHistogram.
 */
#ifndef FARKV_BASE_HISTOGRAM_H
#define FARKV_BASE_HISTOGRAM_H
#include <stdint.h>

enum {
    FKV_HISTOGRAM_FINE = 5, /* 2^5 buckets to a doubling */
    FKV_HISTOGRAM_TOP = 40, /* 2^41 ns is 36 minutes; what is longer counts as that */
    FKV_HISTOGRAM_BUCKETS = (FKV_HISTOGRAM_TOP - FKV_HISTOGRAM_FINE + 2) << FKV_HISTOGRAM_FINE
};

typedef struct fkv_histogram {
    uint64_t count, sum, max;
    uint64_t bucket[FKV_HISTOGRAM_BUCKETS];
} fkv_histogram;

static inline uint32_t fkv_histogram_bucket(uint64_t ns) {
    if (ns < 1u << FKV_HISTOGRAM_FINE) return (uint32_t)ns;
    uint32_t top = 63u - (uint32_t)__builtin_clzll(ns);
    if (top > FKV_HISTOGRAM_TOP) return FKV_HISTOGRAM_BUCKETS - 1;
    uint32_t fine = (uint32_t)(ns >> (top - FKV_HISTOGRAM_FINE)) & ((1u << FKV_HISTOGRAM_FINE) - 1);
    return ((top - FKV_HISTOGRAM_FINE + 1) << FKV_HISTOGRAM_FINE) + fine;
}
static inline void fkv_histogram_record(fkv_histogram *h, uint64_t ns) {
    uint64_t *b = &h->bucket[fkv_histogram_bucket(ns)];
    __atomic_store_n(b, *b + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&h->count, h->count + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&h->sum, h->sum + ns, __ATOMIC_RELAXED);
    if (ns > h->max) __atomic_store_n(&h->max, ns, __ATOMIC_RELAXED);
}

/* The least latency that `part` (0 to 1) of the records do not exceed, rounded up to its bucket's end; 0 when there are
 * none. */
uint64_t fkv_histogram_percentile(const fkv_histogram *h, double part);
/* How many records are less than 2^(OCTAVE_FIRST + i) ns, for each i; the last: all. */
enum {
    FKV_HISTOGRAM_OCTAVE_FIRST = 10, /* 1 us */
    FKV_HISTOGRAM_OCTAVES = 24,      /* to 8.6 s */
    FKV_HISTOGRAM_BOUNDS = FKV_HISTOGRAM_OCTAVES + 1
};
void fkv_histogram_octaves(const fkv_histogram *h, uint64_t below[FKV_HISTOGRAM_BOUNDS]);
#endif
