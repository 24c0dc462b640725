/* session_owner_test.c: the connection of a session to an owner: made, refused, lost, made again, and removed. What
 * becomes of requests is in session_test.c. The owner and the time are the test's (guest_steps.h). */
#include "../../client/session/internal.h"
#include "guest_steps.h"

TEST(an_owner_that_cannot_be_reached_is_tried_less_and_less_often) {
    p = puppet_new();
    p->unreachable = true;
    guest_open(&c, p, NULL);
    guest_connect(&c);
    pass(1000, NULL);
    CHECK(p->connects >= 4 && p->connects <= 12);
    uint64_t before = p->connects;
    pass(30000, NULL);
    CHECK(p->connects - before >= 18 && p->connects - before <= 65);
    CHECK_EQ(c.refused, 1); /* the same failure is told once */
    p->unreachable = false;
    pass(2000, NULL);
    CHECK_EQ(c.connected, 1);
    down();
}

TEST(a_connection_that_keeps_breaking_is_made_less_and_less_often) {
    up();
    uint64_t before = p->connects;
    for (int i = 0; i < 20000; i++) {
        if (p->conn && !p->conn_in_error && c.connected > c.disconnected) puppet_break(p, FAB_RETRY_EXC_ERR);
        pass(1, NULL);
    }
    CHECK(p->connects - before < 60);
    down();
}

TEST(a_refused_ticket_waits_for_a_new_one) {
    p = puppet_new();
    p->refuses = true;
    p->refusal = FKV_UNAUTHORIZED;
    guest_open(&c, p, NULL);
    guest_connect(&c);
    pass(50, NULL);
    CHECK(c.refused == 1 && c.reason == FKV_UNAUTHORIZED && p->connects == 1);
    p->refuses = false;
    fkv_pass t = { .ticket.client = 1 };
    session_set_pass(c.s, &t);
    pass(5, NULL);
    CHECK_EQ(c.connected, 1);
    down();
}

TEST(an_owner_that_only_challenges_is_busy_and_is_asked_again) {
    fkv_challenge challenge = { .magic = FKV_CHALLENGE_MAGIC, .number = 1 };
    p = puppet_new();
    p->refuses = true;
    p->answer = &challenge;
    p->answer_bytes = sizeof challenge;
    guest_open(&c, p, NULL);
    guest_connect(&c);
    for (int i = 0; i < 1000 && c.refused == 0; i++) pass(1, NULL);
    CHECK_EQ(c.refused, 1);
    CHECK_EQ(c.reason, FKV_BUSY);
    CHECK_EQ(p->connects, 4); /* the question, and three answers */
    p->refuses = false;
    p->answer = NULL;
    pass(2000, NULL); /* no new ticket is waited for */
    CHECK_EQ(c.connected, 1);
    down();
}

TEST(another_protocol_version_and_garbage_are_refused) {
    up();
    puppet_break(p, FAB_SUCCESS);
    p->refuses = true;
    p->refusal = FKV_VERSION_UNSUPPORTED;
    pass(30, NULL);
    CHECK(c.refused == 1 && c.reason == FKV_VERSION_UNSUPPORTED);
    p->refuses = false;
    pass(3000, NULL);
    CHECK_EQ(c.connected, 2);
    puppet_garbage(p);
    guest_settle(&c);
    CHECK(c.disconnected == 2 && c.reason == FKV_BAD_REQUEST);
    pass(100, NULL);
    CHECK_EQ(c.connected, 3);
    down();
}

TEST(an_owner_with_another_incarnation_is_connected_anew) {
    up();
    session_address a = { FAB_BROUGHT, "puppet", 0 };
    session_owner_config o = { .owner = 1, .incarnation = p->server_incarnation, .addresses = &a, .count = 1 };
    CHECK_EQ(session_set_owners(c.s, &o, 1), FKV_OK);
    CHECK_EQ(p->connects, 1); /* named as before: left alone */
    o.incarnation++;
    CHECK_EQ(session_set_owners(c.s, &o, 1), FKV_OK);
    guest_settle(&c);
    CHECK_EQ(p->connects, 2);
    CHECK_EQ(session_set_owners(c.s, NULL, 0), FKV_OK);
    CHECK(p->conn == NULL);
    CHECK(session_peer_of(c.s, 0) == NULL);
    down();
}

TEST(an_owner_whose_addresses_change_keeps_the_connection_that_is_still_named) {
    up();
    session_address a[2] = { { FAB_BROUGHT, "another", 0 }, { FAB_BROUGHT, "puppet", 0 } };
    session_owner_config o = { .owner = 1, .incarnation = p->server_incarnation, .addresses = a, .count = 2 };
    CHECK_EQ(session_set_owners(c.s, &o, 1), FKV_OK);
    CHECK_EQ(p->connects, 1);
    o.count = 1;
    CHECK_EQ(session_set_owners(c.s, &o, 1), FKV_OK);
    guest_settle(&c);
    CHECK_EQ(p->connects, 2);
    CHECK_EQ(c.connected, 2);
    guest_get(&c, "alpha");
    down();
}

TEST(an_owner_with_two_devices_is_soon_tried_at_the_second_when_nobody_answers_at_the_first) {
    p = puppet_new();
    p->mute = "first";
    guest_open(&c, p, NULL);
    session_address a[2] = { { FAB_BROUGHT, "first", 0 }, { FAB_BROUGHT, "second", 1 } };
    session_owner_config o = { .owner = 1, .incarnation = p->server_incarnation, .addresses = a, .count = 2 };
    CHECK_EQ(session_set_owners(c.s, &o, 1), FKV_OK);
    CHECK_EQ(lookup_set_route(c.l, &(lookup_route){ .shard = p->shard, .owner = 1 }), FKV_OK);
    pass(400, NULL);
    CHECK_EQ(c.connected, 1);
    CHECK_EQ(session_peer_of(c.s, p->shard)->rail, fab_place(FAB_BROUGHT, 1));
    puppet_break(p, FAB_RETRY_EXC_ERR);
    pass(500, NULL);
    CHECK_EQ(c.connected, 2);
    p->unreachable = true; /* the second as well, so nobody is in a hurry any more */
    uint64_t before = p->connects;
    puppet_break(p, FAB_RETRY_EXC_ERR);
    pass(1000, NULL);
    CHECK_EQ(p->connects, before + 3); /* both, and the first again */
    pass(2000, NULL);
    CHECK_EQ(p->connects, before + 3);
    down();
}

/* In every state that its connection can be in. What was asked of it waits for the next owner; it is freed once, which
 * the address sanitizer sees, and is not connected again, which we see. */
TEST(an_owner_that_is_removed_while_operations_are_routed_to_it_is_gone_once) {
    enum { UP, CONNECTING, WAITING, IDLE, STATES };
    static const owner_state states[STATES] = { OWNER_UP, OWNER_CONNECTING, OWNER_WAITING, OWNER_IDLE };
    for (int state = UP; state < STATES; state++) {
        outcome sent = { .done = false }, waits;
        up();
        if (state == UP) {
            p->silent = true;
            guest_ask(&c, FKV_OP_PUT, "sent", "one", 60000, &sent);
            guest_settle(&c);
            CHECK(!sent.done);
        } else {
            p->unreachable = true;
            puppet_break(p, FAB_SUCCESS);
            pass(state == IDLE ? 1 : 200, NULL);
        }
        if (state == CONNECTING) {
            p->unreachable = false;
            for (int i = 0; i < 10000 && owner_find(c.s, 1)->state != OWNER_CONNECTING; i++) {
                puppet_pass(p, MS);
                session_tick(c.s);
            }
        }
        if (state == IDLE) session_route(c.s, p->shard, -1);
        guest_ask(&c, FKV_OP_PUT, "waits", "two", 60000, &waits);
        session_owner *o = owner_find(c.s, 1);
        CHECK_EQ(o->state, states[state]);
        CHECK_EQ(o->routes, state != IDLE);
        uint64_t connects = p->connects;
        CHECK_EQ(session_set_owners(c.s, NULL, 0), FKV_OK);
        CHECK(!owner_find(c.s, 1) && !session_peer_of(c.s, p->shard));
        CHECK((state == UP) == (p->conn != NULL));
        pass(OWNER_LINGER_MS + 100, NULL);
        CHECK(p->conn == NULL);
        CHECK_EQ(p->connects, connects);
        CHECK(!waits.done && !sent.done);
        p->unreachable = p->silent = false;
        guest_connect(&c);
        pass(5000, &waits.done);
        CHECK(waits.done && waits.status == FKV_OK);
        if (state == UP) {
            pass(5000, &sent.done);
            CHECK(sent.done && sent.status == FKV_OK);
        }
        down();
    }
}

/* The next owner of the shard knows nothing of it, so it must not be asked. */
TEST(what_is_on_its_way_to_an_owner_that_is_removed_is_answered_by_it) {
    static const fkv_status answers[] = { FKV_OK, FKV_SHARD_CLOSED };
    for (int i = 0; i < 2; i++) {
        outcome sent = { .done = false };
        up();
        p->refuses_with = answers[i];
        guest_ask(&c, FKV_OP_PUT, "sent", "one", 60000, &sent);
        session_flush(c.s); /* the answer is on its way, and not polled yet */
        CHECK_EQ(session_set_owners(c.s, NULL, 0), FKV_OK);
        CHECK(!owner_find(c.s, 1) && p->conn != NULL && !sent.done);
        pass(100, NULL);
        CHECK(p->conn == NULL); /* at once, not when its time is over */
        CHECK_EQ(sent.done, answers[i] == FKV_OK);
        if (answers[i] == FKV_OK) CHECK_EQ(sent.status, FKV_OK);
        p->refuses_with = FKV_OK;
        guest_connect(&c);
        pass(5000, &sent.done);
        CHECK(sent.done && sent.status == FKV_OK);
        CHECK_EQ(p->retries, 0);
        down();
    }
}

int main(int argc, char **argv) {
    RUN(an_owner_that_cannot_be_reached_is_tried_less_and_less_often);
    RUN(a_connection_that_keeps_breaking_is_made_less_and_less_often);
    RUN(a_refused_ticket_waits_for_a_new_one);
    RUN(an_owner_that_only_challenges_is_busy_and_is_asked_again);
    RUN(another_protocol_version_and_garbage_are_refused);
    RUN(an_owner_with_another_incarnation_is_connected_anew);
    RUN(an_owner_whose_addresses_change_keeps_the_connection_that_is_still_named);
    RUN(an_owner_with_two_devices_is_soon_tried_at_the_second_when_nobody_answers_at_the_first);
    RUN(an_owner_that_is_removed_while_operations_are_routed_to_it_is_gone_once);
    RUN(what_is_on_its_way_to_an_owner_that_is_removed_is_answered_by_it);
    return check_end(argc, argv);
}
