/* session_quota_test.c: how many requests a client leaves at an owner, which says in its welcome how many it allows; what
 * a client is told of connections that an owner ended; and time in which the program held the event loop. */
#include "../../client/session/internal.h"
#include "guest_steps.h"

enum { QUOTA = 8, ALL = 30 };

static void up_with_quota(uint32_t quota) {
    p = puppet_new();
    p->quota = quota;
    guest_up(&c, p);
}

static fkv_request heard[ALL];
static uint32_t heard_count;
static void hear(puppet *pp, const fkv_request *q) {
    (void)pp;
    if (fkv_op_is(q->op, FKV_ASIDE) || q->op == FKV_OP_CANCEL) return;
    CHECK(heard_count < ALL);
    heard[heard_count++] = *q;
}

static void reply_to(const fkv_request *q) {
    fkv_reply r = { .op = q->op, .status = FKV_OK, .shard = q->shard, .id = q->id, .version = 5 };
    puppet_deliver(p, &r, sizeof r);
    guest_settle(&c);
}

static void ask(outcome *o, int n, uint32_t ms) {
    heard_count = 0;
    p->heard = hear;
    p->silent = true;
    for (int i = 0; i < n; i++) {
        char key[16];
        snprintf(key, sizeof key, "key-%d", i);
        fkv_op op = i % 3 == 0 ? FKV_OP_PUT : i % 3 == 1 ? FKV_OP_DELETE : FKV_OP_CAS_DELETE;
        guest_ask(&c, op, key, op == FKV_OP_PUT ? "v" : NULL, ms, &o[i]);
    }
    guest_settle(&c);
}

TEST(no_more_requests_are_at_an_owner_than_its_welcome_allows) {
    static outcome o[ALL];
    up_with_quota(QUOTA);
    ask(o, ALL, 60000);
    CHECK_EQ(heard_count, QUOTA);
    for (uint32_t i = 0; i < ALL; i++) {
        reply_to(&heard[i]);
        CHECK(o[i].done && o[i].status == FKV_OK);
        CHECK_EQ(heard_count, i + 1 + QUOTA < ALL ? i + 1 + QUOTA : ALL);
    }
    down();
}

TEST(an_owner_that_names_no_quota_gets_all) {
    static outcome o[ALL];
    up_with_quota(0);
    ask(o, ALL, 60000);
    CHECK_EQ(heard_count, ALL);
    down();
}

/* What the client has given up is still at the owner, until that answers. */
TEST(a_request_that_was_given_up_counts_until_its_reply_has_come) {
    static outcome o[ALL];
    up_with_quota(QUOTA);
    ask(o, ALL, 60000);
    for (int i = 0; i < QUOTA; i++) session_cancel(c.s, o[i].request, FKV_TIMEOUT);
    guest_settle(&c);
    for (int i = 0; i < QUOTA; i++) CHECK(o[i].done && o[i].status == FKV_STALE_SEQUENCE);
    CHECK_EQ(heard_count, QUOTA);
    reply_to(&heard[0]);
    CHECK_EQ(heard_count, QUOTA + 1);
    puppet_break(p, FAB_RETRY_EXC_ERR);
    p->silent = false;
    p->heard = NULL;
    pass(200, &o[ALL - 1].done);
    for (int i = QUOTA; i < ALL; i++) CHECK(o[i].done);
    down();
}

TEST(what_a_client_asks_for_itself_is_sent_beyond_the_quota) {
    static outcome o[ALL];
    up_with_quota(QUOTA);
    ask(o, ALL, 60000);
    uint64_t sends = p->sends;
    CHECK(session_renew(c.s, session_peer_of(c.s, 0)));
    guest_settle(&c);
    CHECK_EQ(p->sends, sends + 1);
    CHECK_EQ(heard_count, QUOTA);
    down();
}

TEST(a_client_learns_why_its_owner_ended_the_connection_before) {
    up_with_quota(QUOTA);
    CHECK_EQ(c.ended, FKV_END_NONE);
    p->ended = FKV_END_STALL;
    puppet_break(p, FAB_SUCCESS);
    pass(100, NULL);
    CHECK_EQ(c.connected, 2);
    CHECK_EQ(c.ended, FKV_END_STALL);
    p->ended = FKV_END_COUNT; /* of a later version */
    puppet_break(p, FAB_SUCCESS);
    pass(100, NULL);
    CHECK_EQ(c.connected, 3);
    CHECK_EQ(c.ended, FKV_END_NONE);
    down();
}

/* Nothing could come in that time. */
TEST(time_in_which_the_event_loop_was_held_does_not_count_once) {
    outcome put, get;
    up_with_quota(0);
    p->silent = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 50, &put);
    p->by_hand = true;
    guest_start(&c, "beta", 50, &get);
    puppet_pass(p, 200 * MS);
    session_held(c.s, 200 * MS);
    guest_settle(&c);
    CHECK(!put.done && !get.done);
    session_held(c.s, 200 * MS);
    pass(190, NULL);
    CHECK(!put.done && !get.done);
    pass(20, NULL);
    CHECK(put.done && get.done);
    CHECK(put.status == FKV_STALE_SEQUENCE && get.status == FKV_TIMEOUT);
    guest_ask(&c, FKV_OP_PUT, "alpha", "two", 50, &put);
    pass(60, NULL);
    CHECK(put.done); /* what was held before it began is nothing to it */
    down();
}

int main(int argc, char **argv) {
    RUN(no_more_requests_are_at_an_owner_than_its_welcome_allows);
    RUN(an_owner_that_names_no_quota_gets_all);
    RUN(a_request_that_was_given_up_counts_until_its_reply_has_come);
    RUN(what_a_client_asks_for_itself_is_sent_beyond_the_quota);
    RUN(a_client_learns_why_its_owner_ended_the_connection_before);
    RUN(time_in_which_the_event_loop_was_held_does_not_count_once);
    return check_end(argc, argv);
}
