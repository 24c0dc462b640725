/* dataplane_lease_test.c: how many messages a client's lease of many shards takes, and which leases are short: those of
 * shards that copies join, or may soon. */
#include "../../replication/copies.h"
#include "../../serve/lease.h"
#include "../../replication/replicate.h"
#include "worker_visit.h"

enum { COPY = 7 };
static const uint64_t SHORT_NS = 100000000;
static rig r;

/* The grants of one answer. */
typedef struct answer {
    uint32_t grants, shards[RIG_SHARDS];
    uint64_t ns[RIG_SHARDS]; /* by shard */
} answer;

static void ask(worker *w, void *ctx) {
    answer *a = ctx;
    fkv_shard_range all = { .first = 0, .count = RIG_SHARDS };
    fkv_lease_shard list[RIG_SHARDS + 1];
    *a = (answer){ 0 };
    for (uint32_t at = 0, next; at < lease_places(all); at = next) {
        uint64_t granted;
        uint32_t n = lease_grant(w, all, at, list, RIG_SHARDS + 1, &next, &granted);
        CHECK(granted > 0 && next > at);
        for (uint32_t i = 0; i < n; i++) {
            CHECK_EQ(a->ns[list[i].shard], 0);
            a->ns[list[i].shard] = granted;
        }
        a->shards[a->grants++] = n;
    }
}
static answer asked(void) {
    answer a;
    rig_visit(&r, ask, &a);
    return a;
}

/* A copy joins each shard of which the bit is set, and has a connection; of the others it is gone. */
static void do_join(worker *w, void *ctx) {
    for (uint32_t i = 0; i < RIG_SHARDS; i++) {
        shard *s = w->by_number[i];
        bool wanted = *(uint32_t *)ctx >> i & 1, is = replica_place(&s->repl.owner, COPY) >= 0;
        if (wanted && !is) CHECK(replica_join(&s->repl.owner, COPY));
        if (!wanted && is) CHECK(replica_drop(&s->repl.owner, COPY));
        s->repl.place[0].unlinked_ns = 0;
        replicate_changed(s);
        if (s->repl.backups) copies_watch(s);
    }
}
static void join(uint32_t shards) { rig_visit(&r, do_join, &shards); }

static void do_unlink(worker *w, void *ctx) {
    shard *s = w->by_number[*(uint32_t *)ctx];
    s->repl.place[0].unlinked_ns = w->now_ns;
    copies_watch(s);
}

/* ---- before a copy joins ---- */

static const uint32_t LOSES = 1; /* the shard that loses a copy */

/* COPY is in sync, has a connection and gives leases; or the metadata has it no more. */
static void configure(shard *s, bool in_sync) {
    uint32_t config = s->repl.owner.config + 1;
    if (in_sync) CHECK(replica_join(&s->repl.owner, COPY));
    replicate_configure(
        s,
        &(replica_config){ .epoch = s->epoch, .config = config, .min_in_sync = 1, .peers = in_sync, .id = { COPY } });
    if (!in_sync) return;
    s->repl.place[0].unlinked_ns = 0;
    s->repl.owner.peer[0].lease_ns = UINT64_MAX;
}
static void do_come(worker *w, void *ctx) {
    (void)ctx;
    configure(w->by_number[LOSES], true);
}
static void do_leave(worker *w, void *lost) {
    shard *s = w->by_number[LOSES];
    if (*(bool *)lost) s->repl.place[0].unlinked_ns = w->now_ns;
    configure(s, false);
}
static void come(void) { rig_visit(&r, do_come, NULL); }
static void leave(bool lost) { rig_visit(&r, do_leave, &lost); }
static bool is_short(void) { return asked().ns[LOSES] <= SHORT_NS; }
static void do_nothing(worker *w, void *ctx) { (void)w, (void)ctx; }
/* And a turn has seen it. */
static void passes(int64_t seconds) {
    fkv_clock_skip(seconds * 1000000000);
    for (int i = 0; i < 2; i++) rig_visit(&r, do_nothing, NULL);
}

static void do_copy(worker *w, void *ctx) {
    shard *s = w->by_number[*(uint32_t *)ctx];
    CHECK(change_log_begin(&s->changed, w->now_ns));
    s->attended = true; /* as read.c says */
}

static void up(void) {
    rig_init(&r, FAB_SHM, NULL);
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
}

TEST(shards_that_copies_join_take_one_grant_and_the_others_another) {
    up();
    CHECK_EQ(asked().grants, 1);
    for (uint32_t shards = 1; shards < 1 << RIG_SHARDS; shards++) {
        join(shards);
        answer a = asked();
        bool all = shards == (1 << RIG_SHARDS) - 1;
        CHECK_EQ(a.grants, all ? 1 : 2);
        CHECK_EQ(a.shards[0], (uint32_t)__builtin_popcount(shards)); /* the short ones come first */
        for (uint32_t i = 0; i < RIG_SHARDS; i++) CHECK((a.ns[i] <= SHORT_NS) == (shards >> i & 1));
    }
    join(0);
    CHECK_EQ(asked().grants, 1);
    rig_down(&r);
}

TEST(leases_are_short_only_while_a_copy_that_joins_is_connected) {
    up();
    uint32_t which = 1;
    join(1 << which);
    CHECK(asked().ns[which] <= SHORT_NS);
    rig_visit(&r, do_unlink, &which);
    answer a = asked();
    CHECK(a.grants == 1 && a.ns[which] > SHORT_NS);
    join(1 << which);
    CHECK(asked().ns[which] <= SHORT_NS);
    CHECK_EQ(rig_shard_call(&r, dataplane_close_shard, which), FKV_OK);
    CHECK_EQ(asked().grants, 1);
    rig_down(&r);
}

TEST(leases_are_short_when_a_copy_was_lost_until_one_is_in_sync) {
    up();
    come();
    CHECK(!is_short());
    leave(true);
    answer a = asked();
    CHECK(a.grants == 2 && a.ns[LOSES] <= SHORT_NS); /* and those of the other shards are not */
    come();
    CHECK(!is_short());
    leave(false); /* it is wanted no more */
    CHECK(!is_short());
    rig_down(&r);
}

TEST(leases_are_long_again_when_a_lost_copy_does_not_come_back) {
    up();
    come();
    leave(true);
    passes(20);
    CHECK(is_short());
    passes(20);
    CHECK(!is_short());
    rig_down(&r);
}

TEST(leases_are_short_while_a_server_copies_the_shard) {
    up();
    uint32_t which = LOSES;
    rig_visit(&r, do_copy, &which);
    passes(0);
    CHECK(is_short());
    passes(20); /* it has not asked since what was changed */
    CHECK(!is_short());
    rig_down(&r);
}

int main(int argc, char **argv) {
    RUN(shards_that_copies_join_take_one_grant_and_the_others_another);
    RUN(leases_are_short_only_while_a_copy_that_joins_is_connected);
    RUN(leases_are_short_when_a_copy_was_lost_until_one_is_in_sync);
    RUN(leases_are_long_again_when_a_lost_copy_does_not_come_back);
    RUN(leases_are_short_while_a_server_copies_the_shard);
    return check_end(argc, argv);
}
