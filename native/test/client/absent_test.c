/* absent_test.c: a shard that nobody answers for: how long operations wait for it, how they end, and that they go on
 * when it is back (session/absent.c). The owner and the time are the test's (puppet.h). */
#include "../../client/session/internal.h"
#include "guest_steps.h"

enum { PATIENCE_MS = 1000 };

static void up_with_patience(uint32_t unavailable_ms) {
    up_with(&(session_config){ .unavailable_ms = unavailable_ms });
}

/* The owner dies: its connection ends, and nobody listens at its address. */
static void die(void) {
    p->unreachable = true;
    puppet_break(p, FAB_RETRY_EXC_ERR);
    guest_settle(&c);
}

TEST(what_waits_for_a_dead_owner_ends_when_patience_does_and_what_comes_later_at_once) {
    up_with_patience(PATIENCE_MS);
    outcome get, put, later;
    die();
    guest_start(&c, "alpha", 60000, &get);
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &put);
    pass(PATIENCE_MS / 2, NULL);
    CHECK(!get.done && !put.done); /* it may be back in a moment */
    pass(PATIENCE_MS, NULL);
    CHECK(get.done && get.status == FKV_SHARD_CLOSED);
    CHECK(put.done && put.status == FKV_SHARD_CLOSED);
    guest_start(&c, "alpha", 60000, &later);
    CHECK(later.done && later.status == FKV_SHARD_CLOSED);
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &later);
    CHECK(later.done && later.status == FKV_SHARD_CLOSED);
    CHECK_EQ(p->changes, 0);
    down();
}

TEST(a_change_that_was_sent_to_the_dead_owner_is_indeterminate) {
    up_with_patience(PATIENCE_MS);
    outcome put;
    p->silent = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &put);
    guest_settle(&c);
    die();
    pass(2 * PATIENCE_MS, NULL);
    CHECK(put.done && put.status == FKV_STALE_SEQUENCE);
    down();
}

TEST(an_owner_that_comes_back_is_used_again_by_itself) {
    up_with_patience(PATIENCE_MS);
    outcome o;
    die();
    pass(2 * PATIENCE_MS, NULL);
    guest_start(&c, "x", 60000, &o);
    CHECK(o.done && o.status == FKV_SHARD_CLOSED);
    p->unreachable = false;
    for (int i = 0; i < 5000 && c.connected < 2; i++) pass(1, NULL);
    CHECK_EQ(c.connected, 2);
    guest_start(&c, "x", 60000, &o);
    pass(100, NULL);
    CHECK(o.done && o.status == FKV_NOT_FOUND);
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &o);
    pass(100, NULL);
    CHECK(o.done && o.status == FKV_OK);
    /* Patience starts anew. */
    die();
    guest_ask(&c, FKV_OP_PUT, "alpha", "two", 60000, &o);
    pass(PATIENCE_MS / 2, NULL);
    CHECK(!o.done);
    down();
}

TEST(a_connection_that_breaks_while_the_owner_lives_fails_nothing) {
    up_with_patience(1);
    outcome o;
    puppet_break(p, FAB_RETRY_EXC_ERR);
    guest_settle(&c);
    /* longer than patience, and not yet connected: but its address has not failed */
    puppet_pass(p, 2 * MS);
    CHECK_EQ(p->connects, 1);
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &o);
    pass(100, NULL);
    CHECK(o.done && o.status == FKV_OK);
    down();
}

TEST(one_round_of_addresses_that_fail_fails_nothing) {
    up_with_patience(1);
    outcome o;
    die();
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &o);
    for (int i = 0; i < 1000 && p->connects < 2; i++) pass(1, NULL);
    CHECK_EQ(p->connects, 2); /* patience is over, and its address was tried once more, in vain */
    p->unreachable = false;
    pass(100, NULL);
    CHECK(o.done && o.status == FKV_OK);
    down();
}

TEST(without_patience_set_operations_wait_for_their_whole_time) {
    up_with_patience(0);
    outcome get, put;
    die();
    guest_start(&c, "alpha", 5000, &get);
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 5000, &put);
    pass(4900, NULL);
    CHECK(!get.done && !put.done);
    pass(200, NULL);
    CHECK(get.done && get.status == FKV_SHARD_CLOSED && put.done && put.status == FKV_SHARD_CLOSED);
    down();
}

TEST(a_shard_that_nobody_owns_and_an_owner_that_refuses_are_waited_for_as_long) {
    up_with_patience(PATIENCE_MS);
    outcome get, put;
    CHECK_EQ(lookup_set_route(c.l, &(lookup_route){ .shard = 0, .owner = -1 }), FKV_OK);
    guest_start(&c, "alpha", 60000, &get);
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &put);
    pass(PATIENCE_MS / 2, NULL);
    CHECK(!get.done && !put.done);
    pass(PATIENCE_MS, NULL);
    CHECK(get.done && get.status == FKV_SHARD_CLOSED && put.done && put.status == FKV_SHARD_CLOSED);

    /* It has an owner again, which starts: it may not serve yet, and is asked once by each. */
    p->refuses_with = FKV_SHARD_CLOSED;
    p->grants = false;
    CHECK_EQ(lookup_set_route(c.l, &(lookup_route){ .shard = 0, .owner = 1 }), FKV_OK);
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &put);
    pass(100, NULL);
    CHECK(put.done && put.status == FKV_SHARD_CLOSED);
    p->refuses_with = FKV_OK;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &put);
    pass(100, NULL);
    CHECK(put.done && put.status == FKV_OK);

    p->refuses_with = FKV_SHARD_CLOSED;
    guest_ask(&c, FKV_OP_PUT, "alpha", "two", 60000, &put);
    pass(PATIENCE_MS / 2, NULL);
    CHECK(!put.done);
    pass(PATIENCE_MS, NULL);
    CHECK(put.done && put.status == FKV_SHARD_CLOSED);
    CHECK(host_has(p->h, "alpha", "one"));
    down();
}

TEST(an_owner_that_is_busy_is_not_absent) {
    up_with_patience(PATIENCE_MS);
    outcome put;
    p->refuses_with = FKV_BUSY;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &put);
    pass(3 * PATIENCE_MS, NULL);
    CHECK(!put.done);
    p->refuses_with = FKV_OK;
    pass(200, NULL);
    CHECK(put.done && put.status == FKV_OK);
    down();
}

TEST(a_refusal_of_before_the_owner_was_lost_is_not_the_reason) {
    up_with_patience(0);
    outcome put;
    p->refuses_with = FKV_BUSY;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 500, &put);
    pass(100, NULL);
    die();
    pass(600, NULL);
    CHECK(put.done && put.status == FKV_SHARD_CLOSED);
    down();
}

/* The owner was lost and is back. What it served since, this client has not asked for. */
TEST(one_refusal_of_an_owner_that_has_served_for_long_is_not_final) {
    up_with_patience(PATIENCE_MS);
    outcome put;
    p->grants = false;
    puppet_break(p, FAB_SUCCESS);
    pass(200, NULL);
    CHECK_EQ(c.connected, 2);
    p->grants = true;
    pass(60 * PATIENCE_MS, NULL);
    p->refuses_with = FKV_SHARD_CLOSED;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 60000, &put);
    pass(PATIENCE_MS / 2, NULL);
    CHECK(!put.done);
    p->refuses_with = FKV_OK;
    pass(PATIENCE_MS, &put.done);
    CHECK(put.done && put.status == FKV_OK);
    down();
}

TEST(changes_that_wait_for_the_window_end_too) {
    enum { N = FKV_DEDUP_WINDOW + 100 };
    static outcome o[N];
    up_with(&(session_config){ .max_requests = 4096, .unavailable_ms = PATIENCE_MS });
    ask_in_vain(o, N);
    die();
    pass(2 * PATIENCE_MS, NULL);
    for (int i = 0; i < N; i++)
        CHECK(o[i].done && o[i].status == (i < FKV_DEDUP_WINDOW ? FKV_STALE_SEQUENCE : FKV_SHARD_CLOSED));
    down();
}

int main(int argc, char **argv) {
    RUN(what_waits_for_a_dead_owner_ends_when_patience_does_and_what_comes_later_at_once);
    RUN(a_change_that_was_sent_to_the_dead_owner_is_indeterminate);
    RUN(an_owner_that_comes_back_is_used_again_by_itself);
    RUN(a_connection_that_breaks_while_the_owner_lives_fails_nothing);
    RUN(one_round_of_addresses_that_fail_fails_nothing);
    RUN(without_patience_set_operations_wait_for_their_whole_time);
    RUN(a_shard_that_nobody_owns_and_an_owner_that_refuses_are_waited_for_as_long);
    RUN(an_owner_that_is_busy_is_not_absent);
    RUN(a_refusal_of_before_the_owner_was_lost_is_not_the_reason);
    RUN(one_refusal_of_an_owner_that_has_served_for_long_is_not_final);
    RUN(changes_that_wait_for_the_window_end_too);
    return check_end(argc, argv);
}
