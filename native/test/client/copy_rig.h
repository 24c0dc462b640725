/* copy_rig.h: for tests of a shard that is copied: two data planes, a client of the owner, a copy between them. */
#ifndef FARKV_TEST_COPY_RIG_H
#define FARKV_TEST_COPY_RIG_H
#include <sched.h>
#include "../../storage/shard.h"
#include "../../dataplane/worker.h"
#include "../../serve/life.h"
#include "../../client/copy.h"
#include "client_kit.h"

static fab_provider provider;

/* Shard 0 at its owner `from`, with a client; open and not served at `to`, which is its next owner. */
typedef struct pair {
    rig from, to;
    kit k;
    rig_call caught_up, done;
    shard_copy *copy;
} pair;

static inline void pair_up(pair *p, uint64_t memory) {
    rig_init(&p->from, provider, NULL);
    rig_up(&p->from, RIG_SHARDS, memory);
    rig_init(&p->to, provider, NULL);
    p->to.config.server_incarnation = 78;
    rig_start(&p->to);
    CHECK_EQ(rig_open_shard(&p->to, 0, 0, memory, NULL), FKV_OK);
    kit_up(&p->k, &p->from, 100);
    p->copy = NULL;
}
static inline void pair_down(pair *p) {
    if (p->copy) shard_copy_stop(p->copy);
    kit_down(&p->k);
    rig_down(&p->from);
    rig_down(&p->to);
}

enum { COPY = 2000 }; /* its id */

static inline void copy_begin(pair *p, uint32_t flags) {
    session_address a = { provider, dataplane_address(p->from.d, 0), 0 };
    shard_copy_config c = { .to = p->to.d,
                            .shard = 0,
                            .shards = RIG_SHARDS,
                            .seed = RIG_SEED,
                            .addresses = &a,
                            .count = 1,
                            .server_incarnation = p->from.config.server_incarnation,
                            .epoch = 1,
                            .incarnation = 1000,
                            .copy = COPY };
    c.pass = raw_pass(900, flags);
    rig_call_init(&p->caught_up);
    rig_call_init(&p->done);
    CHECK_EQ(shard_copy_start(&c, rig_done, &p->caught_up, &p->copy), FKV_OK);
}

static inline uint64_t some(uint64_t *state) {
    return (*state = *state * 6364136223846793005u + 1442695040888963407u) >> 33;
}

/* The client's loop has to go on: its leases, its requests. */
static inline fkv_status wait_turning(pair *p, rig_call *c) {
    uint64_t start = fkv_now_ns();
    while (!rig_is_done(c)) {
        session_flush(p->k.s);
        if (session_poll(p->k.s) == 0) sched_yield();
        session_tick(p->k.s);
        CHECK(check_in_time(start));
    }
    return c->status;
}

static inline fkv_status required(pair *p) {
    rig_call c;
    rig_call_init(&c);
    dataplane_require_copy(p->from.d, 0, COPY, rig_done, &c);
    fkv_status status = wait_turning(p, &c);
    free(c.result);
    return status;
}
static inline fkv_status handed_over(pair *p) {
    rig_call c;
    rig_call_init(&c);
    dataplane_hand_over(p->from.d, 0, COPY, rig_done, &c);
    return wait_turning(p, &c);
}

/* The copy joins, comes in sync and leads: the shard changes hands, and the client follows. A machine that is busy may
 * let the copy lag. */
static inline shard_copy_stats complete(pair *p) {
    const uint64_t id = COPY;
    dataplane_copies in_sync = { .epoch = 1, .config = 1, .min_in_sync = 1, .in_sync = 1, .id = &id };
    dataplane_copies alone = { .epoch = 2, .config = 2, .min_in_sync = 1, .handed = true };
    uint64_t start = fkv_now_ns();
    rig_call c;
    fkv_status status;
    shard_copy_follow(p->copy, rig_done, &p->done);
    CHECK_EQ(wait_turning(p, &p->done), FKV_OK);
    shard_copy_stats stats = *(shard_copy_stats *)p->done.result;
    free(p->done.result);
    while ((status = required(p)) == FKV_BUSY) CHECK(check_in_time(start));
    CHECK_EQ(status, FKV_OK);
    rig_call_init(&c);
    dataplane_configure_copies(p->from.d, 0, &in_sync, rig_done, &c);
    CHECK_EQ(wait_turning(p, &c), FKV_OK);
    while ((status = handed_over(p)) == FKV_TIMEOUT) CHECK(check_in_time(start));
    CHECK_EQ(status, FKV_OK);
    rig_call_init(&c);
    dataplane_lead_copy(p->to.d, 0, 1001, &alone, rig_done, &c);
    CHECK_EQ(wait_turning(p, &c), FKV_OK);
    free(c.result);
    rig_serve(&p->to, 0);
    kit_down(&p->k);
    kit_up(&p->k, &p->to, 101);
    return stats;
}

/* The i-th key that is in shard 0. */
static inline const char *key_of(kit *k, uint32_t i, char *room) {
    for (uint32_t n = i * 128;; n++) {
        snprintf(room, 24, "key%u", n);
        lookup_key key = kit_key(room);
        if (lookup_shard_of(k->l, &key) == 0) return room;
        CHECK(n < i * 128 + 128);
    }
}
#endif
