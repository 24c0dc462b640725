/* region_loop.c: what a GET over shared memory costs at least: a plain C loop over the mapped tables, and beside it the
 * real thing, lookup_direct, on the same memory with the same keys.
 *
 *     make -C native all
 *     gcc -O2 -D_GNU_SOURCE -o /tmp/region_loop bench/micro/region_loop.c build/native/libfarkv.a -pthread -ldl -lm
 *     /tmp/region_loop [keys 100000] [value bytes 1000] [seconds 3] [shards 64]
 *     /tmp/region_loop [keys] running
 *
 * A data plane in this process serves the shards over shm; a client loads the keys by PUT and attaches the segments.
 * Then
 *   plain    hash the key, find the slot, compare the key, copy the value. No state, tag, version, lease, clock or
 *            bound is looked at: what it returns may be wrong; it is the floor
 *   chained  the same, but the next key depends on the value that was read, so that one GET begins when the one before
 *            has ended, as in a program that waits for each; the CPU overlaps the independent GETs of the others
 *   direct   lookup_direct: all that plain leaves out; its look at the clock waits for the loads before it
 *   group    lookup_direct_group: 16 keys at a time
 *   cached   as direct, but by a location cache that knows where every key lies: what direct.c does not do, and why
 *            (docs/performance-notes.md)
 * Each gets the same uniformly random keys; the best of some rounds is printed, in nanoseconds a GET.
 *
 * With `running` there is no owner in this process: it attaches the memory of servers that run already (running.h), in
 * which user000000000000 and so on have been loaded, reads every key once as a client does and compares its value; then
 * it prints "ready". Each further line of standard input is a number of GETs, behind which follow the numbers of their
 * keys, 32 bits each; it answers with the mean of plain over them, in that order. So bench/compare measures it over the
 * very memory, keys and order that the SDK reads.
 *
 * That plain is not deceived is seen from every value's length and, for every VERIFY_EVERYth, from the entry's checksum
 * and the value's bytes.
 */
#include "running.h"

static uint8_t sink[1 << 20];

/* As a client reads it, with all checks; the lease and the mapping come along if they are not there. */
static void get_checked(lookup *l, uint32_t i) {
    lookup_key k = key_of(i);
    lookup_result r;
    while (!lookup_direct(l, &k, sink, sizeof sink, &r)) refresh(l, &k);
    must(r.status, keys[i]);
    if (r.value_bytes != value_bytes || memcmp(sink, value, value_bytes) != 0) must(FKV_CORRUPT, keys[i]);
}

static lookup *loaded(dataplane *d) {
    lookup *l = rig_connect(d, 0);
    rig_load(l);
    return l;
}

/* ---- the loops ---- */

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* The entry; its value was copied to `sink`. NULL: there is none. */
static inline const fkv_extent *plain(lookup *l, const char *key, uint32_t n) {
    uint64_t h = fkv_hash_key(&l->seed, 0, key, n);
    const lookup_shard *sh = &l->shard[fkv_hash_shard(h, l->shards)];
    uint32_t number = fkv_bucket_of(fkv_hash_bucket_bits(h), sh->buckets);
    const uint8_t *index = sh->index;
    if (number >= sh->index_buckets) {
        const lookup_view *v = layout_index_view(sh->layout, number);
        index = v->direct;
        number -= v->first;
    }
    const fkv_bucket *b = (const fkv_bucket *)(const void *)(index + (size_t)number * FKV_BUCKET_BYTES);
    for (;;) {
        for (int i = 0; i < FKV_SLOTS; i++) {
            if (fkv_slot_fingerprint(b->slot[i]) != fkv_hash_fingerprint(h)) continue;
            uint64_t at = fkv_slot_location(b->slot[i]);
            const uint8_t *x = sh->heap[fkv_location_segment(at)].direct + (size_t)fkv_location_unit(at) * FKV_UNIT;
            const fkv_extent *e = (const fkv_extent *)(const void *)x;
            if (e->key_bytes != n || memcmp(x + FKV_EXTENT_HEADER, key, n) != 0) continue;
            memcpy(sink, x + FKV_EXTENT_HEADER + n, e->value_bytes);
            return e;
        }
        uint64_t next = fkv_bucket_overflow(b->word1);
        if (!next) return NULL;
        b = (const fkv_bucket *)(const void *)(sh->heap[fkv_location_segment(next)].direct +
                                               (size_t)fkv_location_unit(next) * FKV_UNIT);
    }
}

enum { VERIFY_EVERY = 1024 };
static uint32_t until_verified;

static inline void plain_get(lookup *l, uint32_t i) {
    uint32_t n = (uint32_t)strlen(keys[i]);
    const fkv_extent *e = plain(l, keys[i], n);
    if (!e) { /* the table grew since this client last heard of it: a GET learns how far */
        get_checked(l, i);
        e = plain(l, keys[i], n);
    }
    if (!e) must(FKV_NOT_FOUND, keys[i]);
    if (e->value_bytes != value_bytes) must(FKV_CORRUPT, keys[i]);
    if (until_verified--) return;
    until_verified = VERIFY_EVERY - 1;
    if (fkv_extent_crc(e, e->key_bytes, e->value_bytes) != e->crc || memcmp(sink, value, value_bytes) != 0)
        must(FKV_CORRUPT, keys[i]);
}

/* Where the index says that a key lies; 0: nowhere. */
static uint64_t slot_of(lookup *l, uint64_t h) {
    const lookup_shard *sh = &l->shard[fkv_hash_shard(h, l->shards)];
    uint32_t number = fkv_bucket_of((uint32_t)h, sh->buckets);
    const lookup_view *index = layout_index_view(sh->layout, number);
    const fkv_bucket *b = (const fkv_bucket *)(const void *)(index->direct +
                                                             (size_t)(number - index->first) * FKV_BUCKET_BYTES);
    for (int i = 0; i < FKV_SLOTS; i++)
        if (fkv_slot_fingerprint(b->slot[i]) == fkv_hash_fingerprint(h)) return b->slot[i];
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
        if (slot)
            locations_learn(&known, h, (location){ .word = slot, .tag = sh->heap[fkv_location_segment(slot)].tag });
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
    if (!fkv_location_range(fkv_slot_location(at.word), fkv_slot_class(at.word), v->bytes, &offset, &bytes))
        return false;
    for (uint32_t line = 0; line < bytes && line < 2048; line += 64) __builtin_prefetch(v->direct + offset + line);
    if (fkv_extent_copy(v->direct + offset, bytes, &want, sink, sizeof sink, &found) != FKV_READ_OK) return false;
    if (session_now(l->session) >= sh->lease_until) return false;
    out->value_bytes = found.value_bytes;
    return true;
}

enum { ROUND = 4000, LOOPS = 5 };
static void run_plain(lookup *l, uint64_t *x) {
    for (int i = 0; i < ROUND; i++) plain_get(l, (uint32_t)(next_random(x) % key_count));
}
static void run_chained(lookup *l, uint64_t *x) {
    for (int i = 0; i < ROUND; i++) {
        plain_get(l, (uint32_t)(next_random(x) % key_count));
        *x += sink[value_bytes - 1] != value[value_bytes - 1]; /* it never does */
    }
}
static void run_direct(lookup *l, uint64_t *x) {
    for (int i = 0; i < ROUND; i++) {
        lookup_key k = key_of((uint32_t)(next_random(x) % key_count));
        lookup_result r;
        if (!lookup_direct(l, &k, sink, sizeof sink, &r))
            refresh(l, &k);
        else if (r.value_bytes != value_bytes)
            must(FKV_NOT_FOUND, (const char *)k.bytes);
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
        for (int j = 0; j < LOOKUP_GROUP; j++)
            if (done[j] && r[j].value_bytes != value_bytes) must(FKV_NOT_FOUND, "group");
        if (!done[0]) refresh(l, &k[0]);
    }
}
static void run_cached(lookup *l, uint64_t *x) {
    for (int i = 0; i < ROUND; i++) {
        lookup_key k = key_of((uint32_t)(next_random(x) % key_count));
        lookup_result r;
        if (!by_location(l, &k, &r) && !lookup_direct(l, &k, sink, sizeof sink, &r))
            refresh(l, &k);
        else if (r.value_bytes != value_bytes)
            must(FKV_NOT_FOUND, (const char *)k.bytes);
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

/* ---- for a program that measures something else in between ---- */

/* Hears of layouts that changed since the last round, and has what they name attached. `key` has a key of each shard,
 * or key_count. */
static void catch_up(lookup *l, const uint32_t *key) {
    for (uint32_t i = 0; i < shard_count; i++) {
        lookup_shard *sh = &l->shard[i];
        uint64_t before = sh->lease_granted_until;
        if (key[i] == key_count) continue;
        if (sh->peer && sh->peer->conn) session_renew(l->session, sh->peer);
        do
            get_checked(l, key[i]),
                refresh(l, &(lookup_key){ .bytes = (uint8_t *)keys[key[i]], .count = (uint32_t)strlen(keys[key[i]]) });
        while (sh->lease_granted_until <= before || sh->outdated || !sh->layout || !sh->layout->attached);
    }
}

static uint32_t *read_order(long gets) {
    uint32_t *order = malloc((size_t)gets * sizeof *order);
    if (!order || fread(order, sizeof *order, (size_t)gets, stdin) != (size_t)gets)
        refuse("the numbers of the keys are not all there");
    for (long i = 0; i < gets; i++)
        if (order[i] >= key_count) refuse("there is no such key");
    return order;
}

static void answer_lines(lookup *l) {
    char line[32];
    uint32_t *key = malloc(shard_count * sizeof *key);
    for (uint32_t i = 0; i < shard_count; i++) key[i] = key_count;
    for (uint32_t i = 0; i < key_count; i++) {
        lookup_key k = key_of(i);
        key[lookup_shard_of(l, &k)] = i;
        get_checked(l, i);
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long gets = atol(line);
        if (gets < 1) refuse("a number of GETs was expected");
        uint32_t *order = read_order(gets);
        catch_up(l, key);
        uint64_t from = fkv_now_ns();
        for (long i = 0; i < gets; i++) plain_get(l, order[i]);
        printf("%.2f\n", (double)(fkv_now_ns() - from) / (double)gets);
        fflush(stdout);
        free(order);
    }
    free(key);
}

static void print_table(lookup *l, double seconds) {
    static const char *const names[] = { "plain", "chained", "direct", "group", "cached" };
    double ns[LOOPS];
    for (uint32_t i = 0; i < key_count; i++) get_checked(l, i); /* attaches every segment */
    learn_all(l);
    best_of(l, seconds,
            (void (*const[])(lookup *, uint64_t *)){ run_plain, run_chained, run_direct, run_group, run_cached }, ns);
    printf("%u keys of 16 bytes, values of %u bytes, %u shards, uniform\n", key_count, value_bytes, shard_count);
    for (int i = 0; i < LOOPS; i++) printf("%-7s %7.1f ns  %.2f times plain\n", names[i], ns[i], ns[i] / ns[0]);
    locations_free(&known);
}

int main(int argc, char **argv) {
    bool running = argc > 2 && strcmp(argv[2], "running") == 0;
    if (argc > 1) key_count = (uint32_t)atoi(argv[1]);
    if (argc > 2 && !running) value_bytes = (uint32_t)atoi(argv[2]);
    if (argc > 4) shard_count = (uint32_t)atoi(argv[4]);
    keys = calloc(key_count, sizeof *keys);
    for (uint32_t i = 0; i < key_count; i++) snprintf(keys[i], sizeof keys[i], "user%012u", i);
    dataplane *d = running ? NULL : rig_serve("region-loop");
    lookup *l = running ? join_running() : loaded(d);
    if (running)
        answer_lines(l);
    else
        print_table(l, argc > 3 ? atof(argv[3]) : 3);
    lookup_close(l);
    if (d) dataplane_destroy(d);
    free(value);
    free(keys);
    return 0;
}
