/* reads_per_get.c: how many READs a GET takes with a location cache (native/client/lookup/locations.h), by distribution
 * of the keys.
 *
 *     make -C native all
 *     gcc -O2 -D_GNU_SOURCE -o /tmp/reads_per_get bench/micro/reads_per_get.c build/native/libfarkv.a -pthread -ldl -lm
 *     /tmp/reads_per_get [keys 1000000] [warm-up GETs 4000000] [measured GETs 1000000]
 *
 * A data plane in this process serves 16 shards; for each distribution a new client does GETs by lookup_start, over the
 * READ path of shm (the same state machine as over tcp and verbs), 128 at a time. What is printed is READs (of a
 * bucket, of one of a chain, of an extent) a GET, after the warm-up, and the goal. Counts do not depend on the machine;
 * the seed is fixed.
 *
 *   exact-zipfian       Zipf's law with the exponent 0.99 over the keys (bench/ycsb/generators/exact-zipfian.ts)
 *   scrambled-zipfian   YCSB's: ranks among 10^10 items, hashed, modulo the keys (scrambled-zipfian.ts)
 *   uniform
 *   uncached            uniform, with no cache: the index and the extent, and what chains and shared fingerprints add
 */
#include <math.h>
#include "rig.h"

enum { AT_ONCE = 128 };
static const double THETA = 0.99;

static uint64_t seed = 88172645463325252u;
static uint64_t any(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}
static double fraction(void) { return (double)(any() >> 11) * 0x1p-53; }

/* ---- distributions ---- */

static double integral(double x) {
    double l = log(x), t = (1 - THETA) * l;
    return l * expm1(t) / (t == 0 ? 1 : t);
}
static double inverse(double area) {
    double t = fmax(-1, area * (1 - THETA));
    return exp(area * (t == 0 ? 1 : log1p(t) / t));
}
static uint32_t exact_zipfian(void) {
    static double low, high, sure;
    if (high == 0) {
        low = integral(1.5) - 1;
        high = integral(key_count + 0.5);
        sure = 2 - inverse(integral(2.5) - pow(2, -THETA));
    }
    for (;;) {
        double area = high + fraction() * (low - high), x = inverse(area),
               rank = fmin(key_count, fmax(1, floor(x + 0.5)));
        if (rank - x <= sure || area >= integral(rank + 0.5) - pow(rank, -THETA)) return (uint32_t)rank - 1;
    }
}
static uint32_t scrambled_zipfian(void) {
    const double items = 1e10, zeta = 26.46902820178302, zeta2 = 1 + pow(0.5, THETA);
    const double eta = (1 - pow(2 / items, 1 - THETA)) / (1 - zeta2 / zeta);
    double u = fraction(), uz = u * zeta;
    uint64_t rank = uz < 1 ? 0 : uz < zeta2 ? 1 : (uint64_t)(items * pow(eta * u - eta + 1, 1 / (1 - THETA)));
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < 8; i++, rank >>= 8) h = (h ^ (rank & 0xff)) * 1099511628211u;
    return (uint32_t)((h >> 63 ? -h : h) % key_count);
}
static uint32_t uniform(void) { return (uint32_t)(any() % key_count); }

/* ---- measuring ---- */

static void run(lookup *l, uint32_t (*next)(void), uint32_t gets) {
    session *s = lookup_session(l);
    for (uint32_t started = 0; started < gets || outstanding;) {
        uint64_t now = fkv_now_ns();
        for (; started < gets && outstanding < AT_ONCE; started++, outstanding++) {
            lookup_key k = key_of(next());
            lookup_get *g;
            must(lookup_start(l, &k, now, now + 10000000000u, NULL, &g), "start");
        }
        turn(s);
    }
}

static bool measure(dataplane *d, const char *name, uint32_t (*next)(void), double cached, double goal, uint32_t warm,
                    uint32_t gets) {
    lookup *l = rig_connect(d, (uint32_t)(cached * key_count));
    lookup_stats before, after;
    run(l, next, warm);
    lookup_get_stats(l, &before);
    run(l, next, gets);
    lookup_get_stats(l, &after);
    double n = (double)(after.gets - before.gets), reads = (double)(after.reads - before.reads) / n;
    printf("%-18s %3.0f %% cached  %.3f READs a GET, goal %.2f %s\n", name, cached * 100, reads, goal,
           reads <= goal ? "met" : "MISSED");
    fflush(stdout);
    lookup_close(l);
    return reads <= goal;
}

int main(int argc, char **argv) {
    key_count = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000000;
    uint32_t warm = argc > 2 ? (uint32_t)atoi(argv[2]) : 4000000, gets = argc > 3 ? (uint32_t)atoi(argv[3]) : 1000000;
    value_bytes = 100;
    shard_count = 16;
    keys = calloc(key_count, sizeof *keys);
    for (uint32_t i = 0; i < key_count; i++) snprintf(keys[i], sizeof keys[i], "user%012u", i);
    dataplane *d = rig_serve("reads-per-get");
    lookup *l = rig_connect(d, 0);
    rig_load(l);
    lookup_close(l);
    bool met = measure(d, "exact-zipfian", exact_zipfian, 0.25, 1.2, warm, gets);
    met = measure(d, "scrambled-zipfian", scrambled_zipfian, 0.25, 1.45, warm, gets) && met;
    met = measure(d, "uniform", uniform, 0.1, 1.93, warm, gets) && met;
    met = measure(d, "uncached", uniform, 0, 2.02, gets / 4, gets) && met;
    dataplane_destroy(d);
    free(keys);
    return met ? 0 : 1;
}
