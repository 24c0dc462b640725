/* histogram.c: reading the histograms that histogram.h records. */
#include "histogram.h"

static uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

/* The greatest latency that bucket b counts. */
static uint64_t bucket_end(uint32_t b) {
    uint32_t octave = b >> FKV_HISTOGRAM_FINE;
    if (octave == 0) return b;
    uint64_t fine = (b & ((1u << FKV_HISTOGRAM_FINE) - 1)) + (1u << FKV_HISTOGRAM_FINE);
    return ((fine + 1) << (octave - 1)) - 1;
}

uint64_t fkv_histogram_percentile(const fkv_histogram *h, double part) {
    /* Not h->count: the recorder may be between a bucket and the count. */
    uint64_t total = 0;
    for (uint32_t b = 0; b < FKV_HISTOGRAM_BUCKETS; b++) total += load(&h->bucket[b]);
    uint64_t max = load(&h->max), seen = 0;
    double wanted = part * (double)total;
    for (uint32_t b = 0; b < FKV_HISTOGRAM_BUCKETS; b++) {
        uint64_t here = load(&h->bucket[b]);
        seen += here;
        if (here == 0 || (double)seen < wanted) continue;
        uint64_t end = bucket_end(b);
        return end < max && b != FKV_HISTOGRAM_BUCKETS - 1 ? end : max;
    }
    return total ? max : 0;
}

void fkv_histogram_octaves(const fkv_histogram *h, uint64_t below[FKV_HISTOGRAM_BOUNDS]) {
    uint64_t seen = 0;
    uint32_t b = 0;
    for (uint32_t i = 0; i < FKV_HISTOGRAM_BOUNDS; i++) {
        uint32_t octave = FKV_HISTOGRAM_OCTAVE_FIRST + i - FKV_HISTOGRAM_FINE + 1;
        uint32_t end = i < FKV_HISTOGRAM_OCTAVES ? octave << FKV_HISTOGRAM_FINE : FKV_HISTOGRAM_BUCKETS;
        for (; b < end; b++) seen += load(&h->bucket[b]);
        below[i] = seen;
    }
}
