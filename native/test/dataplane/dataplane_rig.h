/* dataplane_rig.h: a data plane for its tests, whose clients are those of raw_client.h. Waits end with the event, or after
 * check_patience_ms() with a failed check. */
#ifndef FARKV_TEST_DATAPLANE_RIG_H
#define FARKV_TEST_DATAPLANE_RIG_H
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../dataplane/dataplane.h"
#include "../sim/sim.h"
#include "../../wire/wire.h"
#include "../check.h"

enum { RIG_SHARDS = 4, RIG_WAIT_MS = 60000 };
static const fkv_seed RIG_SEED = { 0x1234, 0x5678 }, RIG_SECRET = { 0x9abc, 0xdef0 };

/* ---- calls that are waited for ---- */

typedef struct rig_call {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    fkv_status status;
    void *result;
} rig_call;

static inline void rig_done(void *ctx, fkv_status s, void *result) {
    rig_call *c = ctx;
    pthread_mutex_lock(&c->lock);
    c->done = true;
    c->status = s;
    c->result = result;
    pthread_cond_signal(&c->cond);
    pthread_mutex_unlock(&c->lock);
}
static inline void rig_call_init(rig_call *c) {
    *c = (rig_call){ .done = false };
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->cond, NULL);
}
static inline bool rig_is_done(rig_call *c) {
    pthread_mutex_lock(&c->lock);
    bool done = c->done;
    pthread_mutex_unlock(&c->lock);
    return done;
}
static inline fkv_status rig_wait(rig_call *c) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(check_patience_ms() / 1000) + 1;
    pthread_mutex_lock(&c->lock);
    while (!c->done) CHECK(pthread_cond_timedwait(&c->cond, &c->lock, &until) == 0);
    pthread_mutex_unlock(&c->lock);
    return c->status;
}

/* ---- the data plane ---- */

typedef struct rig {
    fab_provider provider;
    dataplane_config config;
    dataplane_listen listen[2];
    char path[2][64];
    dataplane *d;
    sim_world *sim;
    bool encrypted;          /* set between rig_init and rig_start: over tcp */
    bool owns_sim, sim_over; /* sim_over: atomic */
    pthread_t sim_time;
    uint32_t epoch; /* of the shards that rig_open_shard opens */
    bool durable;   /* so are they */
} rig;

/* Owner and clients have threads of their own here, so the world's time goes on with the machine's: would it jump to
 * the next event, that would often be a time-out of what the other thread has not come to yet. */
static inline uint64_t rig_real_ns(void) { /* which no test moves */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline void *rig_sim_time(void *arg) {
    rig *r = arg;
    uint64_t ahead = sim_now(r->sim) - rig_real_ns();
    while (!__atomic_load_n(&r->sim_over, __ATOMIC_ACQUIRE)) {
        sim_run_until(r->sim, rig_real_ns() + ahead);
        struct timespec tick = { .tv_nsec = 20000 };
        nanosleep(&tick, NULL);
    }
    return NULL;
}

enum { RIG_HANGS_S = 300 }; /* from one rig to the next: longer than a test takes on a busy machine */

/* Over sim it makes a world of its own, unless one is given. */
static inline void rig_init(rig *r, fab_provider p, sim_world *sim) {
    static unsigned number;
    alarm(RIG_HANGS_S);
    *r = (rig){ .provider = p, .sim = sim, .epoch = DATAPLANE_EPOCH_FIRST };
    if (p == FAB_SIM && !sim) {
        r->sim = sim = sim_world_create(check_seed());
        r->owns_sim = true;
        CHECK_EQ(pthread_create(&r->sim_time, NULL, rig_sim_time, r), 0);
    }
    number++;
    for (int i = 0; i < 2; i++) {
        if (p == FAB_SHM)
            snprintf(r->path[i], sizeof r->path[i], "unix:/tmp/farkv-test-%d-%u-%d.sock", (int)getpid(), number, i);
        else if (p == FAB_TCP)
            snprintf(r->path[i], sizeof r->path[i], "127.0.0.1:0");
        else
            snprintf(r->path[i], sizeof r->path[i], "sim:dataplane-%u-%d", number, i);
        r->listen[i] = (dataplane_listen){ p, (uint32_t)i, r->path[i], 0 };
    }
    r->config = (dataplane_config){ .server_incarnation = 77,
                                    .hash_seed = RIG_SEED,
                                    .ticket_secret = RIG_SECRET,
                                    .shards = RIG_SHARDS,
                                    .workers = 1,
                                    .lease_ms = 200,
                                    .drift_ppm = 1000,
                                    .max_clients = 64,
                                    .client_quota = 256,
                                    .polling = POLLING_NEVER,
                                    .listen = r->listen,
                                    .listens = 1 };
}
static inline void rig_start(rig *r) {
    char why[256];
    for (int i = 0; i < 2 && r->encrypted; i++) snprintf(r->path[i], sizeof r->path[i], "tls:127.0.0.1:0");
    CHECK_EQ(dataplane_create(&r->config, &r->d), FKV_OK);
    fkv_status s = dataplane_start(r->d, why, sizeof why);
    if (s != FKV_OK) fprintf(stderr, "%s\n", why);
    CHECK_EQ(s, FKV_OK);
}
static inline fkv_status rig_open_shard(rig *r, uint32_t shard, uint32_t worker, uint64_t memory,
                                        dataplane_layout **layout) {
    rig_call c;
    rig_call_init(&c);
    dataplane_shard s = { .shard = shard,
                          .worker = worker,
                          .epoch = r->epoch,
                          .incarnation = 1000 + shard,
                          .memory_bytes = memory,
                          .durable = r->durable };
    dataplane_open_shard(r->d, &s, rig_done, &c);
    fkv_status status = rig_wait(&c);
    if (layout)
        *layout = c.result;
    else
        free(c.result);
    return status;
}
static inline fkv_status rig_shard_call(rig *r, void (*f)(dataplane *, uint32_t, dataplane_done, void *),
                                        uint32_t shard) {
    rig_call c;
    rig_call_init(&c);
    f(r->d, shard, rig_done, &c);
    fkv_status s = rig_wait(&c);
    free(c.result);
    return s;
}
static inline void rig_serve(rig *r, uint32_t shard) {
    CHECK_EQ(rig_shard_call(r, dataplane_serve_shard, shard), FKV_OK);
}
static inline void rig_close(rig *r, uint32_t shard) {
    CHECK_EQ(rig_shard_call(r, dataplane_close_shard, shard), FKV_OK);
}
static inline dataplane_stats *rig_stats(rig *r) {
    rig_call c;
    rig_call_init(&c);
    dataplane_get_stats(r->d, rig_done, &c);
    CHECK_EQ(rig_wait(&c), FKV_OK);
    return c.result;
}
/* Started, with `shards` shards of `memory` bytes served by worker 0. */
static inline void rig_up(rig *r, uint32_t shards, uint64_t memory) {
    rig_start(r);
    for (uint32_t i = 0; i < shards; i++) {
        CHECK_EQ(rig_open_shard(r, i, 0, memory, NULL), FKV_OK);
        rig_serve(r, i);
    }
}
/* Its world, if that is its own, goes on for others. */
static inline void rig_dies(rig *r) { dataplane_destroy(r->d); }
static inline void rig_end_world(rig *r) {
    if (!r->owns_sim) return;
    r->owns_sim = false;
    __atomic_store_n(&r->sim_over, true, __ATOMIC_RELEASE);
    pthread_join(r->sim_time, NULL);
    sim_world_destroy(r->sim);
}
static inline void rig_down(rig *r) {
    rig_dies(r);
    rig_end_world(r);
}

/* ---- a thread that is held up ---- */

typedef struct rig_hold {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool here, go;
} rig_hold;

static inline void rig_hold_here(void *ctx, fkv_status s, void *result) {
    rig_hold *h = ctx;
    (void)s;
    free(result);
    pthread_mutex_lock(&h->lock);
    h->here = true;
    pthread_cond_broadcast(&h->cond);
    while (!h->go) pthread_cond_wait(&h->cond, &h->lock);
    pthread_mutex_unlock(&h->lock);
}
/* By a shard that is open there. Worker 0's thread stands still in the middle of a turn, after its beginning, until it is let go. */
static inline void rig_hold_up_by(rig_hold *h, rig *r, uint32_t shard) {
    *h = (rig_hold){ .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
    dataplane_get_layout(r->d, shard, rig_hold_here, h);
    pthread_mutex_lock(&h->lock);
    while (!h->here) pthread_cond_wait(&h->cond, &h->lock);
    pthread_mutex_unlock(&h->lock);
}
static inline void rig_hold_up(rig_hold *h, rig *r) { rig_hold_up_by(h, r, 0); }
static inline void rig_let_go(rig_hold *h) {
    pthread_mutex_lock(&h->lock);
    h->go = true;
    pthread_cond_broadcast(&h->cond);
    pthread_mutex_unlock(&h->lock);
}

/* Runs the tests over each provider, or the one that FARKV_PROVIDER names. */
static inline int rig_main(int argc, char **argv, fab_provider *provider, void (*tests)(void)) {
    static const fab_provider providers[] = { FAB_SHM, FAB_TCP, FAB_SIM };
    const char *only = getenv("FARKV_PROVIDER");
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++) {
        if (only && strcmp(only, fab_provider_name(providers[i])) != 0) continue;
        *provider = providers[i];
        tests();
    }
    return check_end(argc, argv);
}
#endif
