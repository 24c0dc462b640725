/* dataplane_join_ends_test.c: calls about copies that are refused, and copies, shards and data planes that end before what
 * was asked of them. */
#include "../../replication/copies.h"
#include "join_rig.h"

TEST(calls_that_do_not_fit_are_refused) {
    uint64_t lsn;
    up();
    node_up(SECOND, 1);
    CHECK_EQ(node_leads(SECOND, 0, 2, 1), FKV_NOT_OWNER); /* it is no copy */
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_NOT_OWNER);
    CHECK_EQ(node_drops(FIRST, id_of(SECOND)), FKV_OK);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 1, 1), FKV_BAD_REQUEST); /* it knows no such copy */
    nodes[FIRST].epoch = 2;
    CHECK_EQ(node_configures(FIRST, 0, 1, 1), FKV_NOT_OWNER);
    nodes[FIRST].epoch = 1;
    CHECK_EQ(node_configures(FIRST, 0, 2, 1), FKV_OK);
    CHECK_EQ(node_configures(FIRST, 0, 2, 1), FKV_OK);
    CHECK_EQ(node_configures(FIRST, 0, 1, 1), FKV_BAD_REQUEST);
    node_copies(SECOND, FIRST);
    CHECK_EQ(rig_shard_call(&nodes[SECOND].r, dataplane_serve_shard, number), FKV_BUSY); /* it follows */
    CHECK_EQ(node_configures(SECOND, 0, 3, 1), FKV_NOT_OWNER);
    rig_call import;
    rig_call_init(&import);
    dataplane_import(plane(SECOND), number, (const uint8_t *)"", 0, rig_done, &import);
    CHECK_EQ(rig_wait(&import), FKV_BUSY);                  /* its owner's records come by the link */
    CHECK_EQ(node_leads(SECOND, 0, 1, 3), FKV_BAD_REQUEST); /* of the owner's own epoch */
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    CHECK_EQ(node_configures(FIRST, 0, 3, 1), FKV_OK); /* the metadata has refused it */
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    CHECK_EQ(node_drops(FIRST, id_of(SECOND)), FKV_OK);
    CHECK_EQ(copy_stats(FIRST).peers, 0);
    down();
}

static void do_fall_behind(worker *w, void *ctx) {
    shard *s = w->by_number[number];
    (void)ctx;
    s->repl.place[0].joined = false;
    s->repl.owner.peer[0].lease_ns = 0;
}

/* Nobody would acknowledge, and changes would wait. */
TEST(a_copy_is_required_when_it_has_joined) {
    rig_hold h;
    uint64_t lsn;
    up();
    node_up(SECOND, 1);
    copy_begins(SECOND, FIRST);
    CHECK_EQ(rig_wait(&nodes[SECOND].caught_up), FKV_OK);
    rig_hold_up_by(&h, &nodes[SECOND].r, number);
    shard_copy_follow(nodes[SECOND].copy, rig_done, &nodes[SECOND].followed);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(FIRST).peers == 0) CHECK(fkv_now_ns() < until);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_BUSY);
    rig_let_go(&h);
    CHECK_EQ(rig_wait(&nodes[SECOND].followed), FKV_OK);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    /* As one is that has a link and has not come far enough: what it has sent is taken first. */
    rig_hold_up_by(&h, &nodes[SECOND].r, number);
    for (int i = 0; i < 3; i++) copy_stats(FIRST);
    rig_visit(&nodes[FIRST].r, do_fall_behind, NULL);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_BUSY);
    rig_let_go(&h);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    down();
}

/* The first call waits until the client's lease is over, and the config is another one meanwhile: the server of the owner
 * asks again in that one. */
TEST(a_copy_that_is_required_is_required_again_in_a_later_config) {
    rig_hold h;
    rig_call first, second;
    uint64_t lsn;
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    node_up(SECOND, 1);
    node_joined(SECOND, FIRST);
    rig_hold_up_by(&h, &nodes[SECOND].r, number);
    CHECK_EQ(put("alpha", "one").status, FKV_OK); /* the copy lacks it: it cannot be proposed */
    rig_call_init(&first);
    rig_call_init(&second);
    dataplane_require_copy(plane(FIRST), number, id_of(SECOND), rig_done, &first);
    CHECK_EQ(node_configures(FIRST, 0, 1, 1), FKV_OK);
    CHECK(!rig_is_done(&first));
    dataplane_require_copy(plane(FIRST), number, id_of(SECOND), rig_done, &second);
    CHECK_EQ(rig_wait(&first), FKV_ABORTED);
    CHECK(!rig_is_done(&second));
    rig_let_go(&h);
    CHECK_EQ(rig_wait(&second), FKV_OK);
    free(second.result);
    /* What the first one had promised may be on its way when the config is told. */
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    CHECK_EQ(lsn, 1);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 2, 1), FKV_OK);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_BUSY); /* it is in sync */
    raw_down(&c);
    down();
}

/* However long ago it had joined: every change would wait for all that it lacks. */
static uint64_t busy_answers(int s) {
    dataplane_stats *all = rig_stats(&nodes[s].r);
    uint64_t n = all->worker[0].refused[FKV_BUSY];
    free(all);
    return n;
}
static bool is_told(int s, dataplane_copy_event what) {
    node *n = &nodes[s];
    bool told = false;
    pthread_mutex_lock(&n->lock);
    for (uint32_t i = 0; i < n->events; i++) told |= n->event[i].what == what;
    pthread_mutex_unlock(&n->lock);
    return told;
}
TEST(a_server_that_has_just_started_does_not_say_that_it_knows_no_copy) {
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    node_starts(THIRD, 1); /* where the owner was, say */
    dataplane_set_grant_until(plane(THIRD), 0);
    node_follows(SECOND, THIRD);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (busy_answers(THIRD) < 3) CHECK(fkv_now_ns() < until);
    CHECK(!is_told(SECOND, DATAPLANE_COPY_UNKNOWN));
    dataplane_set_grant_until(plane(THIRD), UINT64_MAX);
    node_expects(SECOND, SECOND, DATAPLANE_COPY_UNKNOWN);
    down();
}

TEST(a_copy_that_lags_far_is_not_required) {
    rig_hold h;
    uint64_t lsn;
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    node_up(SECOND, 1);
    copy_begins(SECOND, FIRST);
    CHECK_EQ(rig_wait(&nodes[SECOND].caught_up), FKV_OK);
    shard_copy_follow(nodes[SECOND].copy, rig_done, &nodes[SECOND].followed);
    CHECK_EQ(rig_wait(&nodes[SECOND].followed), FKV_OK);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    rig_hold_up_by(&h, &nodes[SECOND].r, number);
    for (int i = 0; i < 2100; i++) CHECK_EQ(put("alpha", "again").status, FKV_OK);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_BUSY);
    rig_let_go(&h);
    node_requires_in_time(FIRST, SECOND);
    raw_down(&c);
    down();
}

TEST(a_copy_that_nobody_wants_is_told_so) {
    up();
    for (int s = 1; s <= DATAPLANE_COPIES_MAX; s++) {
        node_up(s, 1);
        node_copies(s, FIRST);
    }
    node_up(DATAPLANE_COPIES_MAX + 1, 1);
    copy_begins(DATAPLANE_COPIES_MAX + 1, FIRST);
    CHECK_EQ(rig_wait(&nodes[DATAPLANE_COPIES_MAX + 1].caught_up), FKV_OK);
    fkv_status status = copy_ends(DATAPLANE_COPIES_MAX + 1);
    if (status != FKV_BUSY) printf("no place: %s\n", fkv_status_name(status));
    CHECK_EQ(status, FKV_BUSY);
    CHECK_EQ(node_drops(FIRST, id_of(1)), FKV_OK);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(1).follows) CHECK(fkv_now_ns() < until);
    down();
}

static void close_by(int s, rig_call *call) {
    rig_call_init(call);
    dataplane_close_shard(plane(s), number, rig_done, call);
}

TEST(a_shard_is_closed_in_each_state_of_its_copy) {
    rig_call serving, closing;
    uint64_t lsn;
    join_lease_ms = 100 * 1000; /* so the copy does not come to serve in this test's time */
    up();
    for (int state = 0; state < 5; state++) {
        node_up(SECOND, nodes[FIRST].epoch);
        node_joined(SECOND, FIRST);
        if (state >= 1) CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
        if (state >= 2) CHECK_EQ(node_configures(FIRST, 1 << SECOND, (uint32_t)state * 2, 1), FKV_OK);
        if (state == 3) CHECK_EQ(node_leads(SECOND, 0, 9, 9), FKV_OK);
        if (state == 4) {
            CHECK_EQ(node_leads(SECOND, 0, 9, 9), FKV_OK);
            uint32_t config = 0;
            rig_call_init(&serving);
            dataplane_serve_shard(plane(SECOND), number, rig_done, &serving);
            while (config != 9) config = copy_stats(SECOND).config;
            CHECK(!rig_is_done(&serving));
        }
        close_by(SECOND, &closing);
        CHECK_EQ(rig_wait(&closing), FKV_OK);
        if (state == 4) CHECK_EQ(rig_wait(&serving), FKV_ABORTED);
        node_dies(SECOND);
        if (state < 2) {
            CHECK_EQ(node_configures(FIRST, 0, (uint32_t)state * 2 + 1, 1), FKV_OK); /* gives a proposal up */
            CHECK_EQ(node_drops(FIRST, id_of(SECOND)), FKV_OK);
        } else {
            CHECK_EQ(node_configures(FIRST, 0, (uint32_t)state * 2 + 1, 1), FKV_OK);
        }
    }
    close_by(FIRST, &closing);
    CHECK_EQ(rig_wait(&closing), FKV_OK);
    down();
    join_lease_ms = LEASE_MS;
}

/* Long before it is late. */
TEST(a_copy_that_loses_its_connection_is_told_of) {
    join_slow_ms = 100 * 1000;
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 2);
    node_dies(SECOND);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_UNLINKED);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_UNLINKED); /* and again: its server may have been looked for too early */
    node_expects(FIRST, SECOND, DATAPLANE_COPY_UNLINKED);
    down();
    join_slow_ms = 0;
}

/* Between its answers, in each moment. */
TEST(a_copy_that_is_told_to_stop_ends_and_its_shard_closes) {
    rig_call closing;
    shard_copy_waiter w;
    up();
    load_begins(&work, FIRST, 1);
    for (int i = 0; i < 12; i++) {
        rig_call told;
        node_up(SECOND, 1);
        node *n = &nodes[SECOND];
        copy_begins(SECOND, FIRST);
        CHECK_EQ(rig_wait(&n->caught_up), FKV_OK);
        shard_copy_follow(n->copy, rig_done, &n->followed);
        for (int k = 0; k < i; k++) copy_stats(SECOND);
        rig_call_init(&told);
        w = (shard_copy_waiter){ .ended = rig_done, .ctx = &told };
        shard_copy_cancel(n->copy, &w);
        CHECK_EQ(rig_wait(&told), FKV_OK);
        close_by(SECOND, &closing);
        CHECK_EQ(rig_wait(&closing), FKV_OK);
        fkv_status status = rig_wait(&n->followed);
        /* Or it had failed by itself before, as where the owner's log does not reach back so far. */
        if (status != FKV_OK && status != FKV_ABORTED) printf("# it had ended with status %d\n", status);
        CHECK(status != FKV_BAD_REQUEST && status != FKV_NO_MEMORY);
        node_dies(SECOND);
        CHECK_EQ(node_drops(FIRST, id_of(SECOND)), FKV_OK);
    }
    load_ends(&work);
    down();
}

TEST(an_owner_is_paused_when_its_copies_have_everything) {
    rig_hold h;
    rig_call paused;
    join_lease_ms = 100 * 1000; /* what is held up goes on to be relied on */
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    rig_hold_up_by(&h, &nodes[SECOND].r, number);
    uint64_t id = raw_put_begin(&c, "alpha", "two", 3);
    while (copy_stats(FIRST).prepared < 2) {}
    rig_call_init(&paused);
    dataplane_pause_shard(plane(FIRST), number, rig_done, &paused);
    copy_stats(FIRST);
    CHECK(!rig_is_done(&paused));
    rig_let_go(&h);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    CHECK_EQ(rig_wait(&paused), FKV_OK);
    node_serves(FIRST);
    CHECK_EQ(put("alpha", "three").status, FKV_OK);
    raw_down(&c);
    down();
    join_lease_ms = LEASE_MS;
}

static void do_see_none(worker *w, void *ctx) {
    table_entry e;
    uint64_t hash = fkv_hash_key(&w->d->c.hash_seed, 0, "alpha", 5);
    (void)ctx;
    CHECK_EQ(table_committed(w->by_number[number]->table, 0, "alpha", 5, hash, &e), FKV_NOT_FOUND);
}

/* In the copy it would have a good checksum. */
TEST(what_is_damaged_at_its_owner_comes_to_no_copy_and_no_client) {
    fkv_reply r;
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    rig_damages(&nodes[FIRST].r, number, "alpha");
    CHECK(raw_get(&c, "alpha", &r) == NULL && r.status == FKV_CORRUPT);
    node_up(SECOND, 1);
    copy_begins(SECOND, FIRST);
    CHECK_EQ(rig_wait(&nodes[SECOND].caught_up), FKV_CORRUPT);
    CHECK_EQ(copy_ends(SECOND), FKV_CORRUPT);
    rig_visit(&nodes[SECOND].r, do_see_none, NULL);
    CHECK_EQ(put("alpha", "two").status, FKV_OK);
    CHECK_EQ(node_keeps_base(SECOND), FKV_OK);
    node_copies(SECOND, FIRST);
    raw_down(&c);
    down();
}

static void tests(void) {
    RUN(calls_that_do_not_fit_are_refused);
    RUN(a_copy_is_required_when_it_has_joined);
    RUN(a_copy_that_is_required_is_required_again_in_a_later_config);
    RUN(a_server_that_has_just_started_does_not_say_that_it_knows_no_copy);
    RUN(a_copy_that_lags_far_is_not_required);
    RUN(a_copy_that_nobody_wants_is_told_so);
    RUN(a_shard_is_closed_in_each_state_of_its_copy);
    RUN(a_copy_that_loses_its_connection_is_told_of);
    RUN(a_copy_that_is_told_to_stop_ends_and_its_shard_closes);
    RUN(an_owner_is_paused_when_its_copies_have_everything);
    RUN(what_is_damaged_at_its_owner_comes_to_no_copy_and_no_client);
}

int main(int argc, char **argv) { return join_main(argc, argv, tests, NULL); }
