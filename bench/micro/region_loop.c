/* region_loop.c: what a GET over shared memory costs at least: a plain C loop over a mapped table of the real layout, and beside
 * it the real thing, lookup_direct, on the same memory with the same keys.
 *
 *     make -C native all
 *     gcc -O2 -D_GNU_SOURCE -o /tmp/region_loop bench/micro/region_loop.c build/native/libfarkv.a -pthread -ldl -lm
 *     /tmp/region_loop [keys 100000] [value bytes 1000] [seconds 3] [shards 64]
 *
 * A data plane in this process serves the shards over shm; a client loads the keys by PUT and attaches the segments. Then
 *   plain    hash the key, find the slot, compare the key, copy the value. No state, tag, version, lease, clock or bound is
 *            looked at: what it returns may be wrong; it is the floor
 *   chained  the same, but the next key depends on the value that was read, so that one GET begins when the one before has ended, as
 *            in a program that waits for each; the CPU overlaps the independent GETs of the others
 *   direct   lookup_direct: all that plain leaves out; its look at the clock waits for the loads before it
 *   group    lookup_direct_group: 16 keys at a time
 * Each gets the same uniformly random keys; the best of some rounds is printed, in nanoseconds a GET.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../native/dataplane/dataplane.h"
#include "../../native/lookup/lookup_internal.h"

static const fkv_seed SEED = { 1, 2 }, SECRET = { 3, 4 };
static uint32_t key_count = 100000, value_bytes = 1000, shard_count = 64;
static char (*keys)[24];
static uint8_t sink[1 << 20];

static void must(fkv_status s, const char *what) {
    if (s == FKV_OK) return;
    fprintf(stderr, "%s: %s\n", what, fkv_status_name(s));
    exit(1);
}

/* ---- the owner ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t calls_done;

static void called(void *ctx, fkv_status s, void *result) {
    (void)ctx;
    must(s, "a call of the data plane");
    free(result);
    pthread_mutex_lock(&lock);
    calls_done++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}
static void wait_calls(uint32_t n) {
    pthread_mutex_lock(&lock);
    while (calls_done < n) pthread_cond_wait(&changed, &lock);
    calls_done = 0;
    pthread_mutex_unlock(&lock);
}
static dataplane *serve(void) {
    char why[256], path[64];
    snprintf(path, sizeof path, "unix:/tmp/farkv-region-loop-%d.sock", (int)getpid());
    dataplane_listen listen = { FAB_SHM, 0, path };
    dataplane_config c = { .server_incarnation = 1, .hash_seed = SEED, .ticket_secret = SECRET, .shards = shard_count,
                           .groups = 1, .lease_ms = 2000, .drift_ppm = 200, .max_clients = 8, .client_quota = 1024,
                           .listen = &listen, .listens = 1 };
    dataplane *d;
    must(dataplane_create(&c, &d), "create");
    if (dataplane_start(d, why, sizeof why) != FKV_OK) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
    uint64_t memory = (uint64_t)key_count * (value_bytes + 200) * 2 / shard_count;
    if (memory < 4 << 20) memory = 4 << 20;
    for (uint32_t i = 0; i < shard_count; i++) {
        dataplane_shard s = { .shard = i, .epoch = 1, .incarnation = i + 1, .memory_bytes = memory };
        dataplane_open_shard(d, &s, called, NULL);
    }
    wait_calls(shard_count);
    for (uint32_t i = 0; i < shard_count; i++) dataplane_serve_shard(d, i, called, NULL);
    wait_calls(shard_count);
    return d;
}

/* ---- the client ---- */

static uint32_t outstanding;
static void on_event(void *ctx, const session_event *e) { (void)ctx, (void)e; }
static void on_got(void *ctx, lookup_get *g) {
    (void)ctx;
    must(lookup_result_of(g)->status, "GET");
    lookup_release(g);
    outstanding--;
}
static void on_put(void *user, session_answer *a) {
    (void)user;
    must(a->status, "PUT");
    outstanding--;
}
static void turn(session *s) {
    session_flush(s);
    if (session_poll(s) == 0) usleep(20);
    session_tick(s);
}
static lookup_key key_of(uint32_t i) { return (lookup_key){ .bytes = (uint8_t *)keys[i], .count = (uint32_t)strlen(keys[i]) }; }

/* The lease may have run out during another loop: one GET through the session brings it back. */
static void refresh(lookup *l, const lookup_key *k) {
    lookup_get *g;
    must(lookup_start(l, k, fkv_now_ns(), fkv_now_ns() + 10000000000u, NULL, &g), "start");
    for (outstanding++; outstanding;) turn(lookup_session(l));
}

static lookup *attach(dataplane *d) {
    lookup_config c = { .seed = SEED, .max_gets = 512, .event = on_event, .done = on_got };
    c.session = (session_config){ .shards = shard_count, .max_requests = 512 };
    fkv_ticket_make(&SECRET, 9, fkv_wall_ms() + 3600000, 0, FKV_TICKET_READ | FKV_TICKET_WRITE, &c.session.ticket);
    lookup *l;
    must(lookup_create(&c, &l), "lookup");
    session *s = lookup_session(l);
    session_address a = { FAB_SHM, dataplane_address(d, 0) };
    session_owner_config owner = { .owner = 1, .incarnation = 1, .addresses = &a, .count = 1 };
    must(session_set_owners(s, &owner, 1), "owners");
    for (uint32_t i = 0; i < shard_count; i++) must(lookup_set_route(l, &(lookup_route){ .shard = i, .owner = 1 }), "route");
    uint8_t *value = malloc(value_bytes);
    memset(value, 'v', value_bytes);
    for (uint32_t i = 0; i < key_count; i++) {
        lookup_key k = key_of(i);
        uint64_t id;
        session_ask ask = { .op = FKV_OP_PUT, .shard = lookup_shard_of(l, &k), .key = k.bytes, .key_bytes = k.count,
                            .value = value, .value_bytes = value_bytes, .done = on_put };
        ask.deadline_ns = fkv_now_ns() + 10000000000u;
        must(session_request(s, &ask, &id), "request");
        for (outstanding++; outstanding >= 256;) turn(s);
    }
    while (outstanding) turn(s);
    free(value);
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

enum { ROUND = 4000, LOOPS = 4 };
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

int main(int argc, char **argv) {
    double seconds = argc > 3 ? atof(argv[3]) : 3;
    if (argc > 1) key_count = (uint32_t)atoi(argv[1]);
    if (argc > 2) value_bytes = (uint32_t)atoi(argv[2]);
    if (argc > 4) shard_count = (uint32_t)atoi(argv[4]);
    keys = calloc(key_count, sizeof *keys);
    for (uint32_t i = 0; i < key_count; i++) snprintf(keys[i], sizeof keys[i], "user%012u", i);
    dataplane *d = serve();
    lookup *l = attach(d);
    double ns[LOOPS];
    best_of(l, seconds, (void (*const[])(lookup *, uint64_t *)){ run_plain, run_chained, run_direct, run_group }, ns);
    printf("%u keys of 16 bytes, values of %u bytes, %u shards, uniform\n", key_count, value_bytes, shard_count);
    static const char *const names[] = { "plain", "chained", "direct", "group" };
    for (int i = 0; i < LOOPS; i++) printf("%-7s %7.1f ns  %.2f times plain\n", names[i], ns[i], ns[i] / ns[0]);
    lookup_close(l);
    dataplane_destroy(d);
    free(keys);
    return 0;
}
