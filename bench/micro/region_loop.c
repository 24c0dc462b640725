/* region_loop.c: what a GET over shared memory costs at least: a plain C loop over a mapped table of the real layout, and beside
 * it the real thing, lookup_direct, on the same memory with the same keys.
 *
 *     make -C native all
 *     gcc -O2 -D_GNU_SOURCE -o /tmp/region_loop bench/micro/region_loop.c build/native/libfarkv.a -pthread -ldl -lm
 *     /tmp/region_loop [keys 100000] [value bytes 1000] [seconds 3] [shards 64] [-]
 *
 * A data plane in this process serves the shards over shm; a client loads the keys by PUT and attaches the segments. Then
 *   plain    hash the key, find the slot, compare the key, copy the value. No state, tag, version, lease, clock or bound is
 *            looked at: what it returns may be wrong; it is the floor
 *   chained  the same, but the next key depends on the value that was read, so that one GET begins when the one before has ended, as
 *            in a program that waits for each; the CPU overlaps the independent GETs of the others
 *   direct   lookup_direct: all that plain leaves out; its look at the clock waits for the loads before it
 *   group    lookup_direct_group: 16 keys at a time
 *   cached   as direct, but by a location cache that knows where every key lies: what direct.c does not do, and why (bench/README.md)
 * Each gets the same uniformly random keys; the best of some rounds is printed, in nanoseconds a GET. With `-` it prints "ready"
 * instead, and answers each line of standard input, a number of GETs, with the mean of plain over so many, for a program that measures
 * something else in between.
 */
#include "rig.h"

static uint8_t sink[1 << 20];

static lookup *attach(dataplane *d) {
    lookup *l = rig_connect(d, 0);
    rig_load(l);
    for (uint32_t i = 0; i < key_count; i++) {      /* attaches every segment */
        lookup_key k = key_of(i);
        lookup_result r;
        while (!lookup_direct(l, &k, sink, sizeof sink, &r)) refresh(l, &k);
    }
    return l;
}

/* ---- the loops ---- */

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static uint32_t plain(lookup *l, const char *key, uint32_t n) {
    uint64_t h = fkv_hash_key(&l->seed, 0, key, n);
    const lookup_shard *sh = &l->shard[fkv_hash_shard(h, l->shards)];
    uint32_t number = fkv_bucket_of((uint32_t)h, sh->buckets);
    const lookup_view *index = number < sh->index_buckets ? sh->layout->index : layout_index_view(sh->layout, number);
    const fkv_bucket *b = (const fkv_bucket *)(const void *)(index->direct + (size_t)(number - index->first) * FKV_BUCKET_BYTES);
    for (;;) {
        for (int i = 0; i < FKV_SLOTS; i++) {
            if (fkv_slot_fingerprint(b->slot[i]) != fkv_hash_fingerprint(h)) continue;
            uint64_t at = fkv_slot_location(b->slot[i]);
            const uint8_t *x = sh->layout->heap[fkv_location_segment(at)].direct + (size_t)fkv_location_unit(at) * FKV_UNIT;
            const fkv_extent *e = (const fkv_extent *)(const void *)x;
            if (e->key_bytes != n || memcmp(x + FKV_EXTENT_HEADER, key, n) != 0) continue;
            memcpy(sink, x + FKV_EXTENT_HEADER + n, e->value_bytes);
            return e->value_bytes;
        }
        uint64_t next = fkv_bucket_overflow(b->word1);
        if (!next) return 0;
        b = (const fkv_bucket *)(const void *)(sh->layout->heap[fkv_location_segment(next)].direct +
                                               (size_t)fkv_location_unit(next) * FKV_UNIT);
    }
}

/* Where the index says that a key lies; 0: nowhere. */
static uint64_t slot_of(lookup *l, uint64_t h) {
    const lookup_shard *sh = &l->shard[fkv_hash_shard(h, l->shards)];
    uint32_t number = fkv_bucket_of((uint32_t)h, sh->buckets);
    const lookup_view *index = layout_index_view(sh->layout, number);
    const fkv_bucket *b = (const fkv_bucket *)(const void *)(index->direct + (size_t)(number - index->first) * FKV_BUCKET_BYTES);
    for (int i = 0; i < FKV_SLOTS; i++) if (fkv_slot_fingerprint(b->slot[i]) == fkv_hash_fingerprint(h)) return b->slot[i];
    return 0;
}
/* A quarter more room than keys: nearly none is missing. */
static locations known;
static void learn_all(lookup *l) {
    if (!locations_create(&known, key_count + key_count / 4)) must(FKV_NO_MEMORY, "locations");
    for (uint32_t i = 0; i < key_count; i++) {
        lookup_key k = key_of(i);
        uint64_t h = lookup_hash(l, &k), slot = slot_of(l, h);
        const lookup_shard *sh = &l->shard[fkv_hash_shard(h, l->shards)];
        if (slot) locations_learn(&known, h, (location){ .word = slot, .tag = sh->heap[fkv_location_segment(slot)].tag });
    }
}
static bool by_location(lookup *l, const lookup_key *k, lookup_result *out) {
    uint64_t h = lookup_hash(l, k), offset;
    const lookup_shard *sh = &l->shard[fkv_hash_shard(h, l->shards)];
    location at;
    fkv_found found;
    uint32_t bytes, number;
    if (!locations_guess(&known, h, &at) || (number = fkv_location_segment(at.word)) >= sh->heap_count) return false;
    const lookup_view *v = &sh->heap[number];
    fkv_wanted want = { .key = k->bytes, .key_bytes = (uint16_t)k->count, .tag = v->tag };
    if (!v->direct || v->tag != at.tag) return false;
    if (!fkv_location_range(fkv_slot_location(at.word), fkv_slot_class(at.word), v->bytes, &offset, &bytes)) return false;
    for (uint32_t line = 0; line < bytes && line < 2048; line += 64) __builtin_prefetch(v->direct + offset + line);
    if (fkv_extent_copy(v->direct + offset, bytes, &want, sink, sizeof sink, &found) != FKV_READ_OK) return false;
    if (session_now(l->session) >= sh->lease_until) return false;
    out->value_bytes = found.value_bytes;
    return true;
}

enum { ROUND = 4000, LOOPS = 5 };
static void run_plain(lookup *l, uint64_t *x) {
    for (int i = 0; i < ROUND; i++) {
        const char *key = keys[next_random(x) % key_count];
        if (plain(l, key, (uint32_t)strlen(key)) != value_bytes) must(FKV_NOT_FOUND, key);
    }
}
static void run_chained(lookup *l, uint64_t *x) {
    for (int i = 0; i < ROUND; i++) {
        const char *key = keys[next_random(x) % key_count];
        if (plain(l, key, (uint32_t)strlen(key)) != value_bytes) must(FKV_NOT_FOUND, key);
        *x += sink[value_bytes - 1] == 'x';      /* it never is */
    }
}
static void run_direct(lookup *l, uint64_t *x) {
    for (int i = 0; i < ROUND; i++) {
        lookup_key k = key_of((uint32_t)(next_random(x) % key_count));
        lookup_result r;
        if (!lookup_direct(l, &k, sink, sizeof sink, &r)) refresh(l, &k);
        else if (r.value_bytes != value_bytes) must(FKV_NOT_FOUND, (const char *)k.bytes);
    }
}
static void run_group(lookup *l, uint64_t *x) {
    for (int i = 0; i < ROUND; i += LOOKUP_GROUP) {
        lookup_key k[LOOKUP_GROUP];
        lookup_result r[LOOKUP_GROUP];
        size_t at[LOOKUP_GROUP];
        bool done[LOOKUP_GROUP];
        for (int j = 0; j < LOOKUP_GROUP; j++) k[j] = key_of((uint32_t)(next_random(x) % key_count));
        lookup_direct_group(l, k, LOOKUP_GROUP, sink, sizeof sink, r, at, done);
        for (int j = 0; j < LOOKUP_GROUP; j++) if (done[j] && r[j].value_bytes != value_bytes) must(FKV_NOT_FOUND, "group");
        if (!done[0]) refresh(l, &k[0]);
    }
}
static void run_cached(lookup *l, uint64_t *x) {
    for (int i = 0; i < ROUND; i++) {
        lookup_key k = key_of((uint32_t)(next_random(x) % key_count));
        lookup_result r;
        if (!by_location(l, &k, &r) && !lookup_direct(l, &k, sink, sizeof sink, &r)) refresh(l, &k);
        else if (r.value_bytes != value_bytes) must(FKV_NOT_FOUND, (const char *)k.bytes);
    }
}
/* One round after the other, so that what else the machine does meets all alike. */
static void best_of(lookup *l, double seconds, void (*const run[LOOPS])(lookup *, uint64_t *), double ns[LOOPS]) {
    uint64_t start = fkv_now_ns(), x = 88172645463325252u;
    for (int i = 0; i < LOOPS; i++) ns[i] = 1e18;
    do {
        for (int i = 0; i < LOOPS; i++) {
            uint64_t from = fkv_now_ns();
            run[i](l, &x);
            double took = (double)(fkv_now_ns() - from) / ROUND;
            if (took < ns[i]) ns[i] = took;
        }
    } while ((double)(fkv_now_ns() - start) < seconds * 1e9);
}

static void answer_lines(lookup *l) {
    char line[32];
    uint64_t x = 88172645463325252u;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long rounds = (atol(line) + ROUND - 1) / ROUND;
        if (rounds < 1) rounds = 1;
        uint64_t from = fkv_now_ns();
        for (long i = 0; i < rounds; i++) run_plain(l, &x);
        printf("%.2f\n", (double)(fkv_now_ns() - from) / (double)(rounds * ROUND));
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    double seconds = argc > 3 ? atof(argv[3]) : 3;
    if (argc > 1) key_count = (uint32_t)atoi(argv[1]);
    if (argc > 2) value_bytes = (uint32_t)atoi(argv[2]);
    if (argc > 4) shard_count = (uint32_t)atoi(argv[4]);
    keys = calloc(key_count, sizeof *keys);
    for (uint32_t i = 0; i < key_count; i++) snprintf(keys[i], sizeof keys[i], "user%012u", i);
    dataplane *d = rig_serve("region-loop");
    lookup *l = attach(d);
    if (argc > 5) {
        answer_lines(l);
    } else {
        learn_all(l);
        double ns[LOOPS];
        best_of(l, seconds, (void (*const[])(lookup *, uint64_t *)){ run_plain, run_chained, run_direct, run_group, run_cached }, ns);
        printf("%u keys of 16 bytes, values of %u bytes, %u shards, uniform\n", key_count, value_bytes, shard_count);
        static const char *const names[] = { "plain", "chained", "direct", "group", "cached" };
        for (int i = 0; i < LOOPS; i++) printf("%-7s %7.1f ns  %.2f times plain\n", names[i], ns[i], ns[i] / ns[0]);
        locations_free(&known);
    }
    lookup_close(l);
    dataplane_destroy(d);
    free(keys);
    return 0;
}
