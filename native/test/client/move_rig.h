/* move_rig.h: for tests of a shard that moves: two data planes, a client of the old owner, a copy between them. */
#ifndef FARKV_TEST_MOVE_RIG_H
#define FARKV_TEST_MOVE_RIG_H
#include <sched.h>
#include "../../storage/shard.h"
#include "../../dataplane/worker.h"
#include "../../serve/life.h"
#include "../../client/copy.h"
#include "client_kit.h"

static fab_provider provider;

/* Shard 0 at its old owner `from`, with a client; open and not served at its next owner `to`. */
typedef struct move {
    rig from, to;
    kit k;
    rig_call caught_up, done;
    shard_copy *copy;
} move;

static inline void move_up(move *m, uint64_t memory) {
    rig_init(&m->from, provider, NULL);
    rig_up(&m->from, RIG_SHARDS, memory);
    rig_init(&m->to, provider, NULL);
    m->to.epoch = 2;
    m->to.config.server_incarnation = 78;
    rig_start(&m->to);
    CHECK_EQ(rig_open_shard(&m->to, 0, 0, memory, NULL), FKV_OK);
    kit_up(&m->k, &m->from, 100);
    m->copy = NULL;
}
static inline void move_down(move *m) {
    if (m->copy) shard_copy_stop(m->copy);
    kit_down(&m->k);
    rig_down(&m->from);
    rig_down(&m->to);
}

enum { COPY = 2000, OTHER_COPY = 2001 }; /* names of copies: what an owner is sealed for */

static inline void copy_begin(move *m, uint32_t flags) {
    session_address a = { provider, dataplane_address(m->from.d, 0), 0 };
    shard_copy_config c = { .to = m->to.d,
                            .shard = 0,
                            .shards = RIG_SHARDS,
                            .seed = RIG_SEED,
                            .addresses = &a,
                            .count = 1,
                            .server_incarnation = m->from.config.server_incarnation,
                            .epoch = 1,
                            .incarnation = 1000,
                            .copy = COPY };
    c.pass = raw_pass(900, flags);
    rig_call_init(&m->caught_up);
    rig_call_init(&m->done);
    CHECK_EQ(shard_copy_start(&c, rig_done, &m->caught_up, &m->copy), FKV_OK);
}

static inline uint64_t some(uint64_t *state) {
    return (*state = *state * 6364136223846793005u + 1442695040888963407u) >> 33;
}

/* The client's loop has to go on: its leases, its requests. */
static inline fkv_status wait_turning(move *m, rig_call *c) {
    uint64_t start = fkv_now_ns();
    while (!rig_is_done(c)) {
        session_flush(m->k.s);
        if (session_poll(m->k.s) == 0) sched_yield();
        session_tick(m->k.s);
        CHECK(check_in_time(start));
    }
    return c->status;
}

static inline void seal(rig *r, uint32_t shard, uint64_t copy) {
    rig_call c;
    rig_call_init(&c);
    dataplane_seal_shard(r->d, shard, copy, rig_done, &c);
    CHECK_EQ(rig_wait(&c), FKV_OK);
}

/* The shard changes hands; the client follows. */
static inline shard_copy_stats handed_over(move *m) {
    seal(&m->from, 0, COPY);
    CHECK_EQ(wait_turning(m, &m->done), FKV_OK);
    shard_copy_stats stats = *(shard_copy_stats *)m->done.result;
    free(m->done.result);
    rig_serve(&m->to, 0);
    kit_down(&m->k);
    kit_up(&m->k, &m->to, 101);
    return stats;
}
static inline shard_copy_stats complete(move *m) {
    shard_copy_finish(m->copy, rig_done, &m->done);
    return handed_over(m);
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
