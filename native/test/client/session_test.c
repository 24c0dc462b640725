/* session_test.c: requests, their retries and their ends; large values; timers. Connections are in
 * session_owner_test.c. The owner and the time are the test's (guest_steps.h). */
#include "../../client/session/internal.h"
#include "guest_steps.h"

/* ---- changes and their retries ---- */

TEST(a_change_is_sent_once_and_answered) {
    up();
    outcome o;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 1000, &o);
    guest_settle(&c);
    CHECK(o.done && o.status == FKV_OK && o.version != 0);
    CHECK_EQ(p->last_sequence, 1);
    guest_ask(&c, FKV_OP_DELETE, "alpha", NULL, 1000, &o);
    guest_settle(&c);
    CHECK(o.done && o.status == FKV_OK);
    CHECK_EQ(p->last_sequence, 2);
    CHECK_EQ(p->retries, 0);
    guest_ask(&c, FKV_OP_CAS_DELETE, "alpha", NULL, 1000, &o);
    guest_settle(&c);
    CHECK(o.done && o.status == FKV_NOT_FOUND);
    down();
}

TEST(a_change_without_answer_is_sent_again_as_the_same_after_a_new_connection) {
    up();
    outcome o;
    p->silent = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 5000, &o);
    guest_settle(&c);
    CHECK_EQ(p->retries, 0);
    puppet_break(p, FAB_RETRY_EXC_ERR);
    p->silent = false;
    pass(100, &o.done);
    CHECK(o.done && o.status == FKV_OK);
    CHECK_EQ(p->retries, 1);
    CHECK_EQ(p->last_sequence, 1);
    CHECK_EQ(p->connects, 2);
    down();
}

TEST(a_change_that_was_sent_and_not_answered_in_time_is_indeterminate) {
    up();
    outcome o;
    p->silent = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 50, &o);
    pass(100, &o.done);
    CHECK(o.done && o.status == FKV_STALE_SEQUENCE);
    CHECK_EQ(p->cancels, 1);
    /* Also when the connection is lost meanwhile. */
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 50, &o);
    guest_settle(&c);
    puppet_break(p, FAB_RETRY_EXC_ERR);
    p->unreachable = true;
    pass(100, &o.done);
    CHECK(o.done && o.status == FKV_STALE_SEQUENCE);
    down();
}

TEST(a_change_that_was_sent_and_is_given_up_is_indeterminate_whatever_the_reason) {
    up();
    outcome sent, waits, read, closed, never;
    p->silent = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 5000, &sent);
    guest_ask(&c, FKV_OP_GET, "alpha", NULL, 5000, &read);
    guest_settle(&c);
    p->no_credits = true;
    guest_ask(&c, FKV_OP_DELETE, "alpha", NULL, 5000, &waits);
    guest_settle(&c);
    session_cancel(c.s, sent.request, FKV_ABORTED);
    session_cancel(c.s, waits.request, FKV_ABORTED);
    session_cancel(c.s, read.request, FKV_ABORTED);
    CHECK(sent.done && sent.status == FKV_STALE_SEQUENCE);
    CHECK(waits.done && waits.status == FKV_ABORTED);
    CHECK(read.done && read.status == FKV_ABORTED);
    puppet_credits(p);
    guest_ask(&c, FKV_OP_PUT, "alpha", "two", 5000, &closed);
    guest_settle(&c);
    p->no_credits = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", "three", 5000, &never);
    session_shutdown(c.s);
    CHECK(closed.done && closed.status == FKV_STALE_SEQUENCE);
    CHECK(never.done && never.status == FKV_CLOSED);
    down();
}

/* What owners remember is the other client's: a retry would be a change of its own. */
TEST(under_another_client_s_ticket_nothing_is_sent_again_and_the_rest_goes_on) {
    outcome sent, retried, unsent;
    up();
    p->silent = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 5000, &retried);
    guest_settle(&c);
    puppet_break(p, FAB_RETRY_EXC_ERR);
    pass(100, NULL);
    CHECK_EQ(p->retries, 1);
    guest_ask(&c, FKV_OP_PUT, "beta", "two", 5000, &sent);
    guest_settle(&c);
    p->no_credits = true;
    guest_ask(&c, FKV_OP_PUT, "gamma", "three", 5000, &unsent);
    guest_settle(&c);
    session_set_pass(c.s, &(fkv_pass){ .ticket = { .client = 10 } });
    p->silent = p->no_credits = false;
    CHECK(sent.done && sent.status == FKV_STALE_SEQUENCE && retried.done && retried.status == FKV_STALE_SEQUENCE);
    pass(100, &unsent.done);
    CHECK(unsent.done && unsent.status == FKV_OK);
    CHECK_EQ(c.connected, 3);
    CHECK_EQ(p->retries, 1);
    down();
}

/* The hello that shows the first client is out: what that connection would carry would be the first client's. */
TEST(a_connection_that_is_being_made_is_another_client_s_after_the_pass) {
    outcome o;
    p = puppet_new();
    guest_open(&c, p, NULL);
    guest_connect(&c);
    session_set_pass(c.s, &(fkv_pass){ .ticket = { .client = 10 } });
    p->silent = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 5000, &o);
    guest_settle(&c);
    CHECK_EQ(p->connects, 2);
    const session_owner *owner = LIST_OF(c.s->owners.next, session_owner, link);
    CHECK_EQ(owner->shown.client, 10);
    down();
}

TEST(a_change_that_was_never_sent_had_no_effect) {
    up();
    outcome o;
    p->no_credits = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 50, &o);
    pass(100, &o.done);
    CHECK(o.done && o.status == FKV_TIMEOUT);
    puppet_credits(p);
    puppet_break(p, FAB_SUCCESS);
    p->unreachable = true;
    guest_settle(&c);
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 50, &o);
    pass(100, &o.done);
    CHECK(o.done && o.status == FKV_SHARD_CLOSED);
    CHECK_EQ(p->changes, 0);
    down();
}

TEST(a_read_without_answer_in_time_is_a_timeout) {
    up();
    outcome o;
    p->silent = true;
    guest_ask(&c, FKV_OP_GET, "alpha", NULL, 50, &o);
    pass(100, &o.done);
    CHECK(o.done && o.status == FKV_TIMEOUT);
    down();
}

/* A change that is sent again so late may be one that its owner has forgotten. Asking once more harms nobody. */
TEST(a_read_is_sent_again_as_long_as_its_time_lasts_and_a_change_is_not) {
    up();
    put("alpha", "one");
    p->silent = true;
    outcome read, change;
    guest_ask(&c, FKV_OP_GET, "alpha", NULL, 2 * FKV_DEDUP_IDLE_MS, &read);
    guest_ask(&c, FKV_OP_PUT, "beta", "two", 2 * FKV_DEDUP_IDLE_MS, &change);
    guest_settle(&c);
    puppet_pass(p, ((uint64_t)FKV_DEDUP_IDLE_MS / 2 + 1) * MS);
    guest_settle(&c);
    CHECK(!read.done && !change.done);
    p->silent = false;
    puppet_break(p, FAB_RETRY_EXC_ERR);
    pass(100, &read.done);
    CHECK(read.done && read.status == FKV_OK);
    CHECK(change.done && change.status == FKV_STALE_SEQUENCE);
    down();
}

TEST(requests_without_credits_go_out_in_order_when_credits_come) {
    enum { N = 10 };
    up();
    outcome o[N];
    char value[16];
    p->no_credits = true;
    for (int i = 0; i < N; i++) {
        snprintf(value, sizeof value, "%d", i);
        guest_ask(&c, FKV_OP_PUT, "alpha", value, 1000, &o[i]);
    }
    guest_settle(&c);
    CHECK_EQ(p->changes, 0);
    puppet_credits(p);
    guest_settle(&c);
    for (int i = 0; i < N; i++) {
        CHECK(o[i].done && o[i].status == FKV_OK);
        CHECK(i == 0 || o[i].version > o[i - 1].version);
    }
    CHECK(host_has(p->h, "alpha", "9"));
    down();
}

TEST(a_change_that_was_refused_at_first_goes_out_again_under_a_new_sequence) {
    static const fkv_status refusals[] = { FKV_BUSY, FKV_SHARD_CLOSED, FKV_NOT_OWNER };
    for (int i = 0; i < 3; i++) {
        up();
        outcome o;
        p->refuses_with = refusals[i];
        guest_ask(&c, FKV_OP_PUT, "alpha", "one", 1000, &o);
        guest_settle(&c);
        CHECK(!o.done);
        CHECK_EQ(c.not_owner, refusals[i] == FKV_NOT_OWNER);
        p->refuses_with = FKV_OK;
        pass(200, &o.done);
        CHECK(o.done && o.status == FKV_OK);
        CHECK_EQ(p->last_sequence, 2);
        CHECK_EQ(p->retries, 0);
        down();
    }
}

TEST(a_refusal_that_lasts_is_the_reason_at_the_end) {
    static const struct {
        fkv_status refusal, end;
    } cases[] = { { FKV_BUSY, FKV_BUSY }, { FKV_SHARD_CLOSED, FKV_SHARD_CLOSED }, { FKV_NOT_OWNER, FKV_SHARD_CLOSED } };
    for (int i = 0; i < 3; i++) {
        up();
        outcome o;
        p->refuses_with = cases[i].refusal;
        uint64_t sends = p->sends;
        guest_ask(&c, FKV_OP_PUT, "alpha", "one", 1000, &o);
        pass(1100, &o.done);
        CHECK(o.done && o.status == cases[i].end);
        CHECK(p->sends - sends > 5 && p->sends - sends < 60); /* it is asked less and less often */
        down();
    }
}

/* A retry that is refused stays the same request: its first copy may have had its effect. */
TEST(a_refused_retry_keeps_its_sequence) {
    up();
    outcome o;
    p->silent = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 5000, &o);
    guest_settle(&c);
    puppet_break(p, FAB_RETRY_EXC_ERR);
    p->silent = false;
    p->refuses_with = FKV_SHARD_CLOSED;
    pass(100, NULL);
    CHECK(!o.done && p->retries > 1);
    p->refuses_with = FKV_OK;
    pass(200, &o.done);
    CHECK(o.done && o.status == FKV_OK);
    CHECK_EQ(p->last_sequence, 1);
    down();
}

/* What its owner has sent to a backup may still take effect: it is no other request when it goes out again, also when
 * the next owner refuses it at first. */
TEST(an_undecided_change_keeps_its_sequence_and_says_that_it_was_sent_before) {
    up();
    outcome o;
    p->refuses_with = FKV_UNDECIDED;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 5000, &o);
    guest_settle(&c);
    CHECK(!o.done && p->retries == 0);
    p->refuses_with = FKV_BUSY;
    for (int i = 0; i < 1000 && p->retries == 0; i++) pass(1, NULL);
    CHECK(!o.done && p->retries == 1);
    p->refuses_with = FKV_OK;
    pass(300, &o.done);
    CHECK(o.done && o.status == FKV_OK);
    CHECK(p->last_sequence == 1 && p->retries >= 2);
    down();
}
TEST(an_undecided_change_is_indeterminate_when_its_time_is_up) {
    up();
    outcome o;
    p->refuses_with = FKV_UNDECIDED;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 50, &o);
    pass(100, &o.done);
    CHECK(o.done && o.status == FKV_STALE_SEQUENCE);
    down();
}

TEST(a_late_reply_is_for_nobody) {
    up();
    outcome o, next;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 50, &o);
    session_flush(c.s); /* answered, but not yet polled */
    session_cancel(c.s, o.request, FKV_ABORTED);
    CHECK(o.done && o.status == FKV_STALE_SEQUENCE);
    p->silent = true;
    guest_ask(&c, FKV_OP_PUT, "beta", "two", 1000, &next); /* may have the same place in the table */
    guest_settle(&c);
    CHECK(!next.done);
    down();
}

TEST(no_more_changes_are_outstanding_on_a_shard_than_its_owner_remembers) {
    enum { N = FKV_DEDUP_WINDOW + 100 };
    static outcome o[N];
    up_with(&(session_config){ .max_requests = 4096 });
    uint64_t sends = p->sends;
    ask_in_vain(o, N);
    CHECK_EQ(p->sends - sends, FKV_DEDUP_WINDOW);
    session_cancel(c.s, o[1].request, FKV_ABORTED); /* not the oldest: the window stays */
    guest_settle(&c);
    CHECK_EQ(p->sends - sends, FKV_DEDUP_WINDOW + 1); /* CANCEL itself */
    session_cancel(c.s, o[0].request, FKV_ABORTED);
    guest_settle(&c);
    CHECK_EQ(p->sends - sends, FKV_DEDUP_WINDOW + 2 + 2);
    p->silent = false;
    puppet_break(p, FAB_SUCCESS);
    for (int i = 0; i < 2000 && !o[N - 1].done; i++) pass(1, NULL);
    for (int i = 2; i < N; i++) CHECK(o[i].done && o[i].status == FKV_OK);
    down();
}

TEST(more_requests_than_agreed_are_refused_at_once) {
    enum { N = 70 };
    static outcome o[N];
    up();
    p->silent = true;
    for (int i = 0; i < N; i++) guest_ask(&c, FKV_OP_GET, "alpha", NULL, 1000, &o[i]);
    for (int i = 0; i < N; i++) CHECK(i < 64 ? !o[i].done : o[i].done && o[i].status == FKV_BUSY);
    down();
    for (int i = 0; i < 64; i++) CHECK(o[i].done && o[i].status == FKV_CLOSED);
}

TEST(requests_follow_the_route) {
    up();
    outcome put, get;
    guest_ask(&c, FKV_OP_GET, "beta", NULL, 1000, &get);
    CHECK_EQ(lookup_set_route(c.l, &(lookup_route){ .shard = 0, .owner = -1 }), FKV_OK);
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 1000, &put);
    guest_settle(&c);
    CHECK(!put.done && !get.done);
    CHECK(p->conn == NULL); /* nobody names it any more */
    CHECK_EQ(lookup_set_route(c.l, &(lookup_route){ .shard = 0, .owner = 1 }), FKV_OK);
    guest_settle(&c);
    CHECK(put.done && put.status == FKV_OK && get.done && get.status == FKV_NOT_FOUND);
    down();
}

static bool is_heard;
static void hear(puppet *owner, const fkv_request *q) {
    (void)owner;
    is_heard |= q->op == FKV_OP_PUT;
}

TEST(a_new_owner_that_does_not_serve_yet_is_asked_again_at_once) {
    up();
    outcome put;
    p->heard = hear;
    p->refuses_with = FKV_NOT_OWNER;
    guest_ask(&c, FKV_OP_PUT, "alpha", "one", 5000, &put);
    pass(200, NULL); /* by now it is asked every 64 ms */
    is_heard = false;
    for (int owner = -1; owner <= 1; owner += 2)
        CHECK_EQ(lookup_set_route(c.l, &(lookup_route){ .shard = 0, .owner = owner }), FKV_OK);
    pass(10, &is_heard);
    CHECK(is_heard && !put.done);
    p->refuses_with = FKV_OK;
    pass(2, &put.done);
    CHECK(put.done && put.status == FKV_OK);
    down();
}

/* ---- large values ---- */

TEST(a_large_value_waits_in_registered_memory_until_its_owner_has_answered) {
    up();
    outcome o;
    lend_in_vain(&o);
    CHECK_EQ(p->cancels, 0); /* the owner may be READing: it is let finish */
    int kept = 0;
    for (uint32_t i = 0; i < c.s->capacity; i++) kept += c.s->table[i].state == REQUEST_ABANDONED;
    CHECK_EQ(kept, 1);
    puppet_break(p, FAB_SUCCESS);
    guest_settle(&c);
    for (uint32_t i = 0; i < c.s->capacity; i++) CHECK(c.s->table[i].state != REQUEST_ABANDONED);
    down();
}

TEST(memory_for_large_values_is_bounded) {
    p = puppet_new();
    lookup_config config = guest_config(&c, p);
    config.session.rendezvous_bytes = 256 << 10;
    guest_open(&c, p, &config);
    guest_connect(&c);
    outcome o[3];
    char *value = malloc(100001);
    memset(value, 'v', 100000), value[100000] = 0;
    for (int i = 0; i < 3; i++) guest_ask(&c, FKV_OP_PUT, "alpha", value, 1000, &o[i]);
    CHECK(!o[0].done && !o[1].done && o[2].done && o[2].status == FKV_BUSY);
    free(value);
    down();
}

/* ---- timers ---- */

typedef struct probe {
    timer_node t;
    timers *w;
    uint64_t at_ns, fired_ns, now;
} probe;
static uint64_t probe_now;
static void probe_fired(timer_node *t) {
    probe *b = LIST_OF(t, probe, t);
    CHECK(b->fired_ns == 0);
    b->fired_ns = probe_now;
    CHECK(probe_now >= b->at_ns);
}

TEST(timers_fire_in_time_and_never_early) {
    enum { N = 500 };
    static probe b[N];
    static timers w;
    uint64_t random = check_seed();
    probe_now = 5000 * MS + 17;
    timers_init(&w, probe_now);
    CHECK(timers_next_ns(&w) == UINT64_MAX);
    for (int i = 0; i < N; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        b[i] = (probe){ .at_ns = probe_now + (random >> 33) % (i % 3 ? 50 * MS : 20000 * MS) };
        timer_init(&b[i].t, probe_fired);
        timer_set(&w, &b[i].t, b[i].at_ns);
        if (i % 5 == 0) timer_clear(&w, &b[i].t);
        if (i % 7 == 0) timer_set(&w, &b[i].t, b[i].at_ns);
    }
    for (int turns = 0; timers_next_ns(&w) != UINT64_MAX; turns++) {
        CHECK(turns < 100000);
        uint64_t next = timers_next_ns(&w);
        for (int i = 0; i < N; i++) CHECK(!b[i].t.armed || next <= b[i].at_ns + MS);
        probe_now = next > probe_now ? next : probe_now;
        timers_run(&w, probe_now);
    }
    for (int i = 0; i < N; i++) {
        bool armed = i % 5 != 0 || i % 7 == 0;
        CHECK_EQ(b[i].fired_ns != 0, armed);
        if (armed) CHECK(b[i].fired_ns - b[i].at_ns < 2 * MS);
    }
}

int main(int argc, char **argv) {
    RUN(a_change_is_sent_once_and_answered);
    RUN(a_change_without_answer_is_sent_again_as_the_same_after_a_new_connection);
    RUN(a_change_that_was_sent_and_not_answered_in_time_is_indeterminate);
    RUN(a_change_that_was_sent_and_is_given_up_is_indeterminate_whatever_the_reason);
    RUN(under_another_client_s_ticket_nothing_is_sent_again_and_the_rest_goes_on);
    RUN(a_connection_that_is_being_made_is_another_client_s_after_the_pass);
    RUN(a_change_that_was_never_sent_had_no_effect);
    RUN(a_read_without_answer_in_time_is_a_timeout);
    RUN(a_read_is_sent_again_as_long_as_its_time_lasts_and_a_change_is_not);
    RUN(requests_without_credits_go_out_in_order_when_credits_come);
    RUN(a_change_that_was_refused_at_first_goes_out_again_under_a_new_sequence);
    RUN(a_refusal_that_lasts_is_the_reason_at_the_end);
    RUN(a_refused_retry_keeps_its_sequence);
    RUN(an_undecided_change_keeps_its_sequence_and_says_that_it_was_sent_before);
    RUN(an_undecided_change_is_indeterminate_when_its_time_is_up);
    RUN(a_late_reply_is_for_nobody);
    RUN(no_more_changes_are_outstanding_on_a_shard_than_its_owner_remembers);
    RUN(more_requests_than_agreed_are_refused_at_once);
    RUN(requests_follow_the_route);
    RUN(a_new_owner_that_does_not_serve_yet_is_asked_again_at_once);
    RUN(a_large_value_waits_in_registered_memory_until_its_owner_has_answered);
    RUN(memory_for_large_values_is_bounded);
    RUN(timers_fire_in_time_and_never_early);
    return check_end(argc, argv);
}
