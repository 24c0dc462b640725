/* lookup_lease_test.c: what a GET may be answered under: leases, incarnations, layouts and rkeys, of owners that live,
 * die and come again, at exact moments between its READs (guest_steps.h). */
#include "guest_steps.h"

TEST(a_get_may_only_be_answered_under_a_lease) {
    p = puppet_new();
    p->grants = false;
    put("alpha", "one");
    guest_open(&c, p, NULL);
    guest_connect(&c);
    guest_expect(&c, "alpha", "one"); /* by asking the owner */
    CHECK_EQ(p->reads_posted, 0);
    CHECK_EQ(p->gets, 1);
    puppet_pass(p, 50 * MS);
    p->grants = true;
    guest_expect(&c, "alpha", "one");
    puppet_pass(p, 50 * MS);
    guest_expect(&c, "alpha", "one");
    CHECK(p->reads_posted > 0);
    down();
}

/* A cut-off owner's memory is still there to be read; a new owner has taken the shard over. */
TEST(an_old_value_is_not_returned_after_the_lease_has_run_out) {
    up();
    put_and_get("alpha", "old");
    outcome o;
    cut_off(10 * MS);
    begin("alpha", &o);
    one_read();
    puppet_carry(p, puppet_first(p), UINT32_MAX);
    puppet_pass(p, c.l->shard[0].lease_until - p->now_ns); /* not a nanosecond more is needed */
    p->by_hand = false;
    guest_settle(&c);
    CHECK(!o.done);
    CHECK_EQ(guest_stats(&c).late, 1);
    puppet_pass(p, 1000 * MS);
    guest_settle(&c);
    CHECK(o.done && o.status == FKV_TIMEOUT);
    /* The shard is another owner's now, and the client learns of it. */
    puppet_restart(p, false);
    p->silent = false;
    put_and_get("alpha", "new");
    down();
}

TEST(a_get_that_ends_just_inside_the_lease_is_answered) {
    up();
    put_and_get("alpha", "old");
    lookup_shard *sh = &c.l->shard[0];
    outcome o;
    cut_off(100 * MS);
    begin("alpha", &o);
    one_read();
    puppet_pass(p, sh->lease_until - p->now_ns - 1);
    finish_with(&o, "old");
    down();
}

TEST(a_lease_counts_from_when_it_was_asked_for) {
    up();
    puppet_pass(p, 2000 * MS);
    outcome o;
    put("alpha", "one");
    p->by_hand = true;
    guest_start(&c, "alpha", 5000, &o);
    session_flush(c.s); /* LEASE is sent now, and its reply arrives late */
    uint64_t sent = p->now_ns;
    puppet_pass(p, 600 * MS);
    session_poll(c.s);
    lookup_shard *sh = &c.l->shard[0];
    CHECK(sh->lease_until == sent + p->lease_ns - p->lease_ns / 1000);
    finish_with(&o, "one");
    down();
}

TEST(a_lease_for_another_incarnation_ends_the_old_layout) {
    up();
    put_and_get("alpha", "old");
    puppet_restart(p, false);
    put("alpha", "new");
    puppet_pass(p, 1200 * MS);
    guest_expect(&c, "alpha", "new");
    CHECK_EQ(p->layouts, 2);
    CHECK_EQ(guest_stats(&c).foreign, 0); /* nothing was read where the old table was */
    CHECK_EQ(c.disconnected, 0);
    down();
}

TEST(a_read_by_an_old_layout_is_not_covered_by_a_lease_of_the_next_incarnation) {
    up();
    put_and_get("alpha", "old");
    outcome o;
    int known = p->memories;
    begin("alpha", &o);
    one_read();
    puppet_restart(p, false);
    for (int i = 0; i < known; i++) p->memory[i].revoked = false; /* a dead owner's memory, still mapped */
    put("alpha", "new");
    CHECK(session_renew(c.s, session_peer_of(c.s, 0)));
    guest_settle(&c);
    finish_with(&o, "new");
    CHECK_EQ(guest_stats(&c).late, 1);
    down();
}

/* The same address and rkey can come again for other memory: the tag tells. */
TEST(memory_under_a_reused_rkey_is_not_believed_when_it_holds_no_such_key) {
    up();
    puppet_restart(p, true);
    put_and_get("alpha", "new");
    CHECK_EQ(guest_stats(&c).foreign, 1);
    down();
}
TEST(an_extent_in_memory_under_a_reused_rkey_is_not_believed) {
    up();
    put("alpha", "old");
    const fkv_extent *old = extent_of("alpha");
    size_t at = offset_of(old);
    outcome o;
    begin("alpha", &o);
    one_read();
    puppet_restart(p, true);
    /* The other table has an entry of this key at the very place. */
    imitate(p->old[0], old, at);
    put("alpha", "new");
    finish_with(&o, "new");
    down();
}

TEST(a_refused_rkey_brings_the_new_layout_and_not_an_error) {
    up();
    put_and_get("alpha", "old");
    outcome o;
    begin("alpha", &o);
    one_read();
    puppet_restart(p, false);
    put("alpha", "new");
    p->by_hand = false;
    guest_settle(&c);
    CHECK(!o.done); /* the connection broke; a new one is made after a moment */
    while (!o.done) {
        puppet_pass(p, 5 * MS);
        guest_settle(&c);
    }
    finish_with(&o, "new");
    CHECK_EQ(p->connects, 2);
    CHECK_EQ(guest_stats(&c).foreign, 1);
    down();
}

TEST(a_dead_server_and_a_new_one_are_told_apart_by_their_reason) {
    up();
    outcome o;
    puppet_break(p, FAB_SUCCESS);
    p->unreachable = true;
    guest_start(&c, "alpha", 500, &o);
    for (int i = 0; i < 60 && !o.done; i++) {
        guest_settle(&c);
        puppet_pass(p, 10 * MS);
    }
    CHECK(o.done && o.status == FKV_SHARD_CLOSED);
    CHECK_EQ(lookup_set_route(c.l, &(lookup_route){ .shard = 0, .owner = -1 }), FKV_OK);
    guest_start(&c, "alpha", 100, &o);
    puppet_pass(p, 200 * MS);
    guest_settle(&c);
    CHECK(o.done && o.status == FKV_SHARD_CLOSED);
    down();
}

/* ---- what waits for a layout is woken however the request for it ends ---- */

TEST(a_refused_layout_does_not_leave_a_get_waiting) {
    p = puppet_new();
    p->lease_ns = 60000 * MS;
    guest_up(&c, p);
    grow(); /* the index has segments that the guest does not know */
    p->refuses_with = FKV_BUSY;
    outcome o = { 0 };
    for (int k = 0; k < GROWN; k++) {
        guest_start(&c, grown(k), 9000, &o);
        guest_settle(&c);
        if (!o.done) break;
    }
    CHECK(!o.done);
    p->refuses_with = FKV_OK;
    pass(5000, &o.done);
    finish(&o);
    CHECK_EQ(o.status, FKV_OK);
    down();
}

/* From the LAYOUT on it answers nothing but LEASEs. */
static void without_layouts(puppet *q, const fkv_request *r) { q->silent = r->op != FKV_OP_LEASE; }

TEST(a_lease_is_not_asked_for_again_while_the_layout_is_missing) {
    p = puppet_new();
    guest_open(&c, p, NULL);
    guest_connect(&c);
    guest_settle(&c);
    p->heard = without_layouts;
    outcome o;
    guest_start(&c, "alpha", 500, &o);
    guest_settle(&c);
    CHECK(p->leases <= 2);
    p->heard = NULL;
    p->silent = false;
    down();
}

int main(int argc, char **argv) {
    RUN(a_get_may_only_be_answered_under_a_lease);
    RUN(an_old_value_is_not_returned_after_the_lease_has_run_out);
    RUN(a_get_that_ends_just_inside_the_lease_is_answered);
    RUN(a_lease_counts_from_when_it_was_asked_for);
    RUN(a_lease_for_another_incarnation_ends_the_old_layout);
    RUN(a_read_by_an_old_layout_is_not_covered_by_a_lease_of_the_next_incarnation);
    RUN(memory_under_a_reused_rkey_is_not_believed_when_it_holds_no_such_key);
    RUN(an_extent_in_memory_under_a_reused_rkey_is_not_believed);
    RUN(a_refused_rkey_brings_the_new_layout_and_not_an_error);
    RUN(a_dead_server_and_a_new_one_are_told_apart_by_their_reason);
    RUN(a_refused_layout_does_not_leave_a_get_waiting);
    RUN(a_lease_is_not_asked_for_again_while_the_layout_is_missing);
    return check_end(argc, argv);
}
