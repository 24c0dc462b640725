/* session_silent_test.c: an owner that is connected and says nothing (session/silent.c), and one that stands still and
 * was replaced: how long what was sent to it waits for it. The owner and the time are the test's (puppet.h). */
#include "../../client/session/internal.h"
#include "guest_steps.h"

enum { SOON_MS = 200 }; /* by then it is told */

static void replace(bool replicated) {
    session_set_replicated(c.s, replicated);
    CHECK_EQ(session_set_owners(c.s, NULL, 0), FKV_OK);
}

TEST(an_owner_that_answers_nothing_is_told_once_until_it_answers) {
    up();
    outcome first, second;
    ask_in_vain(&first, 1);
    pass(SOON_MS, NULL);
    CHECK_EQ(c.silent, 1);
    pass(2000, NULL);
    CHECK(!first.done);
    CHECK_EQ(c.silent, 1);
    p->silent = false;
    guest_ask(&c, FKV_OP_PUT, "beta", "v", 60000, &second);
    pass(10, NULL);
    CHECK(second.done);
    CHECK_EQ(c.silent, 1);
    pass(SOON_MS, NULL); /* the first change has no answer yet */
    CHECK_EQ(c.silent, 2);
    down();
}

TEST(an_owner_that_answers_others_is_not_silent) {
    up();
    outcome waits, other;
    ask_in_vain(&waits, 1);
    p->silent = false;
    for (int i = 0; i < 100; i++) {
        guest_ask(&c, FKV_OP_PUT, "beta", "v", 60000, &other);
        pass(10, NULL);
        CHECK(other.done);
    }
    CHECK(!waits.done);
    CHECK_EQ(c.silent, 0);
    down();
}

TEST(an_owner_that_is_asked_nothing_is_not_silent) {
    up();
    pass(3000, NULL); /* its leases are renewed no more */
    p->silent = true;
    pass(3000, NULL);
    CHECK_EQ(c.silent, 0);
    CHECK(!c.s->watch.armed); /* nor is anybody woken to look */
    down();
}

TEST(what_was_sent_to_an_owner_that_stood_still_goes_to_the_next_one_when_that_knows_of_it) {
    for (int silent = 0; silent < 2; silent++) {
        up();
        outcome sent;
        ask_in_vain(&sent, 1);
        if (silent) pass(SOON_MS, NULL);
        replace(true);
        /* one that had answered all until now may only not have come to it */
        CHECK_EQ(c.disconnected, silent);
        pass(OWNER_MOVED_MS + 5, NULL);
        CHECK_EQ(c.disconnected, 1);
        CHECK(!sent.done);
        p->silent = false;
        guest_connect(&c);
        pass(5000, &sent.done);
        CHECK(sent.done && sent.status == FKV_OK);
        CHECK_EQ(p->retries, 1); /* it is the same change */
        down();
    }
}

TEST(what_was_sent_waits_for_an_owner_that_was_replaced_by_one_that_does_not_know_of_it) {
    up();
    outcome sent;
    ask_in_vain(&sent, 1);
    pass(SOON_MS, NULL);
    replace(false);
    pass(OWNER_LINGER_MS - 100, NULL);
    CHECK_EQ(c.disconnected, 0);
    pass(200, NULL);
    CHECK_EQ(c.disconnected, 1);
    down();
}

static void up_with_two_shards(bool replicated) {
    p = puppet_new();
    p->shards = 2;
    guest_open(&c, p, NULL);
    session_set_replicated(c.s, replicated);
    guest_connect(&c);
    session_route(c.s, 1 - p->shard, 1);
    pass(100, NULL);
    CHECK_EQ(c.connected, 1);
}

/* It has other shards still, and one of them was taken from it. */
TEST(an_owner_that_stands_still_and_lost_one_of_its_shards_is_connected_anew) {
    for (int replicated = 0; replicated < 2; replicated++) {
        up_with_two_shards(replicated);
        outcome sent;
        ask_in_vain(&sent, 1);
        session_route(c.s, p->shard, -1);
        pass(OWNER_MOVED_MS + 50, NULL);
        CHECK_EQ(c.disconnected, replicated);
        CHECK(owner_find(c.s, 1) != NULL);
        down();
    }
}

/* Its caller has given up, and only the memory of its value is still lent. */
TEST(an_owner_that_owes_only_what_nobody_waits_for_is_kept) {
    up_with_two_shards(true);
    outcome large;
    lend_in_vain(&large);
    session_route(c.s, p->shard, -1);
    pass(OWNER_MOVED_MS + 50, NULL);
    CHECK_EQ(c.disconnected, 0);
    down();
}

/* What it is asked of its other shards is not in vain. */
TEST(an_owner_that_lost_a_shard_of_which_it_owes_nothing_is_kept) {
    up_with_two_shards(true);
    outcome sent;
    ask_in_vain(&sent, 1);
    session_route(c.s, 1 - p->shard, -1);
    pass(1000, NULL);
    CHECK_EQ(c.disconnected, 0);
    down();
}

int main(int argc, char **argv) {
    RUN(an_owner_that_answers_nothing_is_told_once_until_it_answers);
    RUN(an_owner_that_answers_others_is_not_silent);
    RUN(an_owner_that_is_asked_nothing_is_not_silent);
    RUN(what_was_sent_to_an_owner_that_stood_still_goes_to_the_next_one_when_that_knows_of_it);
    RUN(what_was_sent_waits_for_an_owner_that_was_replaced_by_one_that_does_not_know_of_it);
    RUN(an_owner_that_stands_still_and_lost_one_of_its_shards_is_connected_anew);
    RUN(an_owner_that_owes_only_what_nobody_waits_for_is_kept);
    RUN(an_owner_that_lost_a_shard_of_which_it_owes_nothing_is_kept);
    return check_end(argc, argv);
}
