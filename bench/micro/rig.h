/* rig.h: an owner and a client in one process, over shm: what the micro-benchmarks of GETs measure on.
 *
 * rig_serve starts a data plane that serves all shards; rig_connect makes a client of it; rig_load PUTs keys[0 ..
 * key_count). rig_client makes a client of whatever owners it is told of.
 */
#ifndef FARKV_BENCH_MICRO_RIG_H
#define FARKV_BENCH_MICRO_RIG_H
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../native/dataplane/dataplane.h"
#include "../../native/client/lookup/internal.h"

/* What a benchmark sets before rig_serve. */
static uint32_t key_count = 100000, value_bytes = 1000, shard_count = 64;
static char (*keys)[24];
static uint8_t *value; /* of each key; NULL: value_bytes times 'v' */

static const fkv_seed SEED = { 1, 2 }, SECRET = { 3, 4 };

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
static dataplane *rig_serve(const char *name) {
    char why[256], path[64];
    snprintf(path, sizeof path, "unix:/tmp/farkv-%s-%d.sock", name, (int)getpid());
    dataplane_listen listen = { FAB_SHM, 0, path, 0 };
    dataplane_config c = { .server_incarnation = 1,
                           .hash_seed = SEED,
                           .ticket_secret = SECRET,
                           .shards = shard_count,
                           .workers = 1,
                           .lease_ms = 2000,
                           .drift_ppm = 200,
                           .max_clients = 8,
                           .client_quota = 1024,
                           .huge_pages = DATAPLANE_HUGE_AUTO,
                           .listen = &listen,
                           .listens = 1 };
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

static _Thread_local uint32_t outstanding; /* of this thread's client */
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
static lookup_key key_of(uint32_t i) {
    return (lookup_key){ .bytes = (uint8_t *)keys[i], .count = (uint32_t)strlen(keys[i]) };
}

/* The lease may have run out during another loop: one GET through the session brings it back. */
__attribute__((unused)) static void refresh(lookup *l, const lookup_key *k) {
    lookup_get *g;
    must(lookup_start(l, k, fkv_now_ns(), fkv_now_ns() + 10000000000u, NULL, &g), "start");
    for (outstanding++; outstanding;) turn(lookup_session(l));
}

/* Owners that a client can reach over shm. */
typedef struct rig_owners {
    fkv_seed seed;
    fkv_pass pass;
    session_owner_config *owners;
    uint32_t count;
    uint32_t *owner_of; /* a shard's, by its number in `owners`; NULL: owner 1 has all shards */
} rig_owners;

static lookup *rig_client(const rig_owners *o, uint32_t cached_locations) {
    lookup_config c = {
        .seed = o->seed, .max_gets = 512, .cached_locations = cached_locations, .event = on_event, .done = on_got
    };
    c.session = (session_config){ .shards = shard_count, .max_requests = 512, .pass = o->pass };
    lookup *l;
    must(lookup_create(&c, &l), "lookup");
    must(session_set_owners(lookup_session(l), o->owners, o->count), "owners");
    for (uint32_t i = 0; i < shard_count; i++) {
        must(lookup_set_route(l, &(lookup_route){ .shard = i, .owner = o->owner_of ? o->owner_of[i] : 1 }), "route");
    }
    return l;
}

static __attribute__((unused)) lookup *rig_connect(dataplane *d, uint32_t cached_locations) {
    session_address a = { FAB_SHM, dataplane_address(d, 0), 0 };
    session_owner_config owner = { .owner = 1, .incarnation = 1, .addresses = &a, .count = 1 };
    rig_owners o = { .seed = SEED, .owners = &owner, .count = 1 };
    fkv_ticket t = { .client = 9, .expires_ms = fkv_wall_ms() + 3600000, .flags = FKV_TICKET_READ | FKV_TICKET_WRITE };
    fkv_pass_make(&SECRET, &t, &o.pass);
    return rig_client(&o, cached_locations);
}

static __attribute__((unused)) void rig_load(lookup *l) {
    session *s = lookup_session(l);
    if (!value) {
        value = malloc(value_bytes);
        memset(value, 'v', value_bytes);
    }
    for (uint32_t i = 0; i < key_count; i++) {
        lookup_key k = key_of(i);
        uint64_t id;
        session_ask ask = { .op = FKV_OP_PUT,
                            .shard = lookup_shard_of(l, &k),
                            .key = k.bytes,
                            .key_bytes = k.count,
                            .value = value,
                            .value_bytes = value_bytes,
                            .done = on_put };
        ask.deadline_ns = fkv_now_ns() + 10000000000u;
        must(session_request(s, &ask, &id), "request");
        for (outstanding++; outstanding >= 256;) turn(s);
    }
    while (outstanding) turn(s);
}

#endif
