/* dataplane_join_test.c: copies of a shard join under load, are required, lead; by the calls of their servers, between
 * real data planes, each with a thread of its own. What was answered is found at each next owner. */
#include "../../replication/copies.h"
#include "join_rig.h"

static uint64_t ask_again(const char *key, const char *value, uint64_t sequence) {
    fkv_request q = raw_request(&c, FKV_OP_PUT, key);
    c.sequence[number]--;
    q.sequence = sequence;
    q.flags = FKV_REQUEST_RETRY;
    q.value_bytes = (uint32_t)strlen(value);
    return raw_send(&c, &q, key, value, q.value_bytes);
}
/* ---- all of it ---- */

TEST(a_copy_that_joins_under_load_and_leads_has_all_that_was_answered) {
    up();
    load_begins(&work, FIRST, 1);
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    fkv_reply made = put("alpha", "one");
    CHECK_EQ(made.status, FKV_OK);
    uint64_t sequences = c.sequence[number];
    raw_down(&c);
    load_ends(&work);
    dataplane_copy_stats owner = copy_stats(FIRST), copy = copy_stats(SECOND);
    CHECK(owner.known && owner.leads && owner.peers == 1 && owner.config == 1 && owner.committed == owner.prepared);
    CHECK(owner.peer[0].id == id_of(SECOND) && owner.peer[0].standing == REPLICA_IN_SYNC);
    CHECK(owner.peer[0].linked == join_over && owner.peer[0].prepared == owner.prepared);
    CHECK(copy.known && !copy.leads && copy.follows && copy.id == id_of(SECOND));
    CHECK_EQ(copy.prepared, owner.prepared);
    fails_over(FIRST, SECOND, 0, 2);
    raw_up(&c, &nodes[SECOND].r, CLIENT);
    c.sequence[number] = sequences;
    load_is_there(&work, &c);
    raw_message *m = raw_receive(&c, ask_again("alpha", "one", sequences));
    CHECK(m->reply.status == FKV_OK && m->reply.version == made.version); /* one write */
    free(m);
    CHECK(put("alpha", "two").version > fkv_version(2, 0));
    raw_down(&c);
    /* And the next, of an owner that was a copy. */
    load_begins(&work, SECOND, 2);
    node_up(THIRD, 2);
    node_joins(THIRD, SECOND, 0, 201);
    load_ends(&work);
    fails_over(SECOND, THIRD, 0, 3);
    raw_up(&c, &nodes[THIRD].r, CLIENT);
    load_is_there(&work, &c);
    raw_expect(&c, "alpha", "two");
    raw_down(&c);
    down();
}

TEST(the_other_copy_follows_the_one_that_leads) {
    up();
    load_begins(&work, FIRST, 1);
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    node_up(THIRD, 1);
    node_joins(THIRD, FIRST, 1 << SECOND, 2);
    load_ends(&work);
    node_dies(FIRST);
    CHECK_EQ(node_leads(SECOND, 1 << THIRD, 2, 200), FKV_OK);
    node_follows(THIRD, SECOND);
    node_serves(SECOND);
    load_begins(&work, SECOND, 2);
    raw_up(&c, &nodes[SECOND].r, CLIENT);
    for (int i = 0; i < 200; i++) CHECK_EQ(put("alpha", "v").status, FKV_OK);
    raw_down(&c);
    load_ends(&work);
    fails_over(SECOND, THIRD, 0, 3);
    raw_up(&c, &nodes[THIRD].r, CLIENT);
    load_is_there(&work, &c);
    raw_expect(&c, "alpha", "v");
    raw_down(&c);
    down();
}

/* ---- one at a time ---- */

/* The table has work, and does not do it yet. */
static void lent_to(int s) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (!mailbox_ready(&plane(s)->worker[0]->box)) CHECK(fkv_now_ns() < until);
}

/* The copy's thread has lent its last page to the table, which is held up; what is changed now comes by the link. The page
 * before it makes sure that the thread does not ask for the last one too early. */
TEST(what_is_deleted_while_the_last_page_is_taken_over_does_not_come_back) {
    rig_hold h, again;
    char key[32];
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    node_up(SECOND, 1);
    copy_begins(SECOND, FIRST);
    CHECK_EQ(rig_wait(&nodes[SECOND].caught_up), FKV_OK);
    rig_hold_up_by(&h, &nodes[SECOND].r, number);
    CHECK_EQ(put(key_at(1, key), "before").status, FKV_OK);
    lent_to(SECOND);
    shard_copy_follow(nodes[SECOND].copy, rig_done, &nodes[SECOND].followed);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    CHECK_EQ(put(key_at(2, key), "stays").status, FKV_OK);
    rig_let_go(&h);
    rig_hold_up_by(&again, &nodes[SECOND].r, number);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(FIRST).peers == 0) CHECK(fkv_now_ns() < until);
    fkv_request q = raw_request(&c, FKV_OP_DELETE, "alpha");
    CHECK_EQ(raw_ask(&c, &q, "alpha", NULL, 0, NULL), FKV_OK);
    CHECK_EQ(put("alpha", "two").status, FKV_OK);
    q = raw_request(&c, FKV_OP_DELETE, "alpha");
    CHECK_EQ(raw_ask(&c, &q, "alpha", NULL, 0, NULL), FKV_OK);
    raw_down(&c);
    rig_let_go(&again);
    CHECK_EQ(rig_wait(&nodes[SECOND].followed), FKV_OK);
    node_stops_copying(SECOND);
    uint64_t lsn;
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    CHECK_EQ(lsn, 6);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 1, 1), FKV_OK);
    fails_over(FIRST, SECOND, 0, 2);
    raw_up(&c, &nodes[SECOND].r, CLIENT);
    CHECK_EQ(get("alpha"), FKV_NOT_FOUND);
    raw_expect(&c, key_at(1, key), "before");
    raw_expect(&c, key_at(2, key), "stays");
    raw_down(&c);
    down();
}

/* Its thread may not join in the middle of the keys. */
TEST(a_copy_that_is_told_to_follow_at_once_has_all_keys) {
    enum { KEYS = 1500 };
    char key[32];
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    for (uint32_t i = 0; i < KEYS; i++) CHECK_EQ(put(key_at(i, key), "v").status, FKV_OK);
    raw_down(&c);
    node_up(SECOND, 1);
    copy_begins(SECOND, FIRST);
    CHECK_EQ(copy_ends(SECOND), FKV_OK);
    CHECK_EQ(rig_wait(&nodes[SECOND].caught_up), FKV_OK);
    uint64_t lsn;
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 1, 1), FKV_OK);
    fails_over(FIRST, SECOND, 0, 2);
    raw_up(&c, &nodes[SECOND].r, CLIENT);
    for (uint32_t i = 0; i < KEYS; i++) raw_expect(&c, key_at(i, key), "v");
    raw_down(&c);
    down();
}

static fkv_request scan_changed(raw *x, uint64_t place, uint8_t flags) {
    return (fkv_request){ .op = FKV_OP_SCAN,
                          .flags = (uint8_t)(FKV_REQUEST_SCAN_COPY | FKV_REQUEST_SCAN_CHANGED | flags),
                          .shard = number,
                          .id = x->next_id++,
                          .expected = place,
                          .expiry = flags ? 55 : 0,
                          .value_bytes = 100 };
}

/* A change and the question come in one turn: the change is listed, and who made it, or its record is behind the place. */
TEST(a_copy_joins_behind_what_is_in_the_table) {
    rig_hold h;
    raw x;
    fkv_reply reply;
    up();
    fkv_pass p = raw_pass(CLIENT, FKV_TICKET_READ | FKV_TICKET_WRITE | FKV_TICKET_COPY);
    raw_open(&x, &nodes[FIRST].r);
    CHECK_EQ(raw_connect(&x, 0, &p), FKV_OK);
    fkv_request q = scan_changed(&x, 0, 0);
    CHECK_EQ(raw_ask(&x, &q, NULL, NULL, 0, &reply), FKV_OK);
    rig_hold_up_by(&h, &nodes[FIRST].r, number);
    uint64_t id = raw_put_begin(&x, "alpha", "one", 3);
    q = scan_changed(&x, reply.version, FKV_REQUEST_SCAN_FROM_HERE);
    raw_send(&x, &q, NULL, NULL, 0);
    rig_let_go(&h);
    raw_message *m = raw_receive(&x, q.id);
    CHECK(m->reply.status == FKV_OK && m->reply.user_flags & FKV_CHANGED_JOINED);
    fkv_scan_entry e;
    const uint8_t *key, *value;
    uint64_t lsn = 0, listed = 0, remembered = 0;
    for (uint32_t at = 0; wire_next_scan_entry(m->body, m->bytes, &at, &e, &key, &value);) {
        listed += e.kind == FKV_SCAN_ENTRY && e.version != 0;
        fkv_join_sequence made;
        for (uint32_t i = 0; e.kind == FKV_SCAN_SEQUENCES && i < e.value_bytes / sizeof made; i++) {
            memcpy(&made, value + i * sizeof made, sizeof made);
            if (made.client == CLIENT) remembered = made.sequence;
        }
        if (e.kind != FKV_SCAN_JOIN_POINT) continue;
        fkv_join_point at_lsn;
        CHECK_EQ(e.value_bytes, sizeof at_lsn);
        memcpy(&at_lsn, value, sizeof at_lsn);
        lsn = at_lsn.lsn;
    }
    CHECK_EQ(lsn, listed);
    CHECK_EQ(remembered, listed); /* its first change: no retry of it is made by the copy */
    free(m);
    CHECK_EQ(raw_end(&x, id), FKV_OK);
    raw_down(&x);
    down();
}

TEST(only_a_server_may_ask_to_join) {
    fkv_reply reply;
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    fkv_request q = scan_changed(&c, 1, FKV_REQUEST_SCAN_FROM_HERE);
    CHECK_EQ(raw_ask(&c, &q, NULL, NULL, 0, &reply), FKV_UNAUTHORIZED);
    CHECK_EQ(copy_stats(FIRST).peers, 0);
    raw_down(&c);
    down();
}

/* So its values are on two servers from the first. Nobody else is answered before. */
TEST(a_new_shard_is_copied_before_it_is_served) {
    work = (load){ 0 };
    node_up(FIRST, 1);
    node_up(SECOND, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    CHECK_EQ(get("alpha"), FKV_SHARD_CLOSED);
    fkv_request q = raw_request(&c, FKV_OP_LAYOUT, "");
    q.shard = number;
    CHECK_EQ(raw_ask(&c, &q, "", NULL, 0, NULL), FKV_SHARD_CLOSED);
    node_joins(SECOND, FIRST, 0, 1);
    CHECK_EQ(get("alpha"), FKV_SHARD_CLOSED);
    node_serves(FIRST);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    raw_down(&c);
    fails_over(FIRST, SECOND, 0, 2);
    raw_up(&c, &nodes[SECOND].r, CLIENT);
    raw_expect(&c, "alpha", "one");
    raw_down(&c);
    down();
}

/* What came with a shard may not have taken effect yet. */
TEST(a_copy_that_leads_is_not_copied_before_it_serves) {
    fkv_reply reply;
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    node_dies(FIRST);
    CHECK_EQ(node_leads(SECOND, 0, 2, 200), FKV_OK);
    fkv_pass p = raw_pass(CLIENT, FKV_TICKET_READ | FKV_TICKET_COPY);
    raw_open(&c, &nodes[SECOND].r);
    CHECK_EQ(raw_connect(&c, 0, &p), FKV_OK);
    fkv_request q = scan_changed(&c, 0, 0);
    CHECK_EQ(raw_ask(&c, &q, NULL, NULL, 0, &reply), FKV_SHARD_CLOSED);
    node_serves(SECOND);
    q = scan_changed(&c, 0, 0);
    CHECK_EQ(raw_ask(&c, &q, NULL, NULL, 0, &reply), FKV_OK);
    raw_down(&c);
    down();
}

TEST(a_retry_of_what_was_made_before_a_copy_joined_is_no_second_write) {
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    CHECK_EQ(put("alpha", "two").status, FKV_OK);
    raw_down(&c);
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    fails_over(FIRST, SECOND, 0, 2);
    raw_up(&c, &nodes[SECOND].r, CLIENT);
    c.sequence[number] = 2;
    CHECK_EQ(raw_end(&c, ask_again("alpha", "one", 1)), FKV_STALE_SEQUENCE);
    CHECK_EQ(raw_end(&c, ask_again("alpha", "two", 2)), FKV_STALE_SEQUENCE);
    raw_expect(&c, "alpha", "two");
    CHECK_EQ(put("alpha", "three").status, FKV_OK);
    raw_down(&c);
    down();
}

/* An owner that had another before it knows nothing of that one's clients, and neither does its copy: a retry of before is
 * made nowhere, also when the client was seen since. */
TEST(what_an_owner_does_not_know_its_copy_does_not_know_either) {
    work = (load){ 0 };
    node_up(FIRST, 2);
    node_serves(FIRST);
    node_up(SECOND, 2);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT + 1);
    c.sequence[number] = 5; /* of which the owner before has seen five */
    CHECK_EQ(put("alpha", "six").status, FKV_OK);
    raw_down(&c);
    fails_over(FIRST, SECOND, 0, 3);
    raw_up(&c, &nodes[SECOND].r, CLIENT);
    CHECK_EQ(raw_end(&c, ask_again("alpha", "old", 1)), FKV_STALE_SEQUENCE);
    raw_down(&c);
    raw_up(&c, &nodes[SECOND].r, CLIENT + 1);
    c.sequence[number] = 6;
    CHECK_EQ(raw_end(&c, ask_again("alpha", "old", 4)), FKV_STALE_SEQUENCE);
    raw_expect(&c, "alpha", "six");
    raw_down(&c);
    down();
}

/* A lease that a client was granted when the copy was not waited for, and could not know of it. */
TEST(a_copy_is_proposed_when_clients_leases_of_before_are_over) {
    uint64_t lsn;
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    node_up(SECOND, 1);
    node_joined(SECOND, FIRST);
    fkv_request q = { .op = FKV_OP_LEASE, .id = c.next_id++ };
    fkv_reply reply;
    uint64_t asked = fkv_now_ns(); /* before it is granted */
    raw_ask(&c, &q, NULL, NULL, 0, &reply);
    CHECK(reply.status == FKV_OK && reply.expiry_ms > 0);
    CHECK(reply.expiry_ms <= 100000000); /* nanoseconds, as long as a copy joins */
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    CHECK(fkv_now_ns() - asked >= reply.expiry_ms);
    raw_down(&c);
    down();
}

TEST(changes_without_enough_copies_are_refused_and_have_no_effect) {
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    CHECK_EQ(node_configures(FIRST, 0, 1, 2), FKV_OK);
    CHECK_EQ(put("alpha", "two").status, FKV_TOO_FEW_COPIES);
    raw_expect(&c, "alpha", "one"); /* reads go on */
    node_up(SECOND, 1);
    uint64_t lsn;
    node_joined(SECOND, FIRST);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 2, 2), FKV_OK);
    CHECK_EQ(put("alpha", "two").status, FKV_OK);
    raw_down(&c);
    down();
}

TEST(a_copy_that_stands_still_is_late_and_is_back) {
    rig_hold h;
    join_slow_ms = 100;
    join_lease_ms = 3000;
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    rig_hold_up_by(&h, &nodes[SECOND].r, number);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_LATE);
    rig_let_go(&h);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_BACK);
    node_dies(SECOND);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_LATE);
    /* Only the metadata lets it go. */
    CHECK_EQ(node_drops(FIRST, id_of(SECOND)), FKV_BUSY);
    CHECK_EQ(node_configures(FIRST, 0, 2, 1), FKV_OK);
    CHECK_EQ(put("alpha", "two").status, FKV_OK);
    CHECK_EQ(copy_stats(FIRST).peers, 0);
    raw_down(&c);
    down();
    join_slow_ms = 0;
    join_lease_ms = LEASE_MS;
}

/* Nobody changes anything: what ends is its lease, and with it the owner's right. */
TEST(a_copy_that_is_silent_is_late_without_a_change) {
    rig_hold h;
    join_slow_ms = 100;
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    rig_hold_up_by(&h, &nodes[SECOND].r, number);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_LATE);
    rig_let_go(&h);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_BACK);
    down();
    join_slow_ms = 0;
}

static void tests(void) {
    RUN(a_copy_that_joins_under_load_and_leads_has_all_that_was_answered);
    RUN(the_other_copy_follows_the_one_that_leads);
    RUN(what_is_deleted_while_the_last_page_is_taken_over_does_not_come_back);
    RUN(a_copy_that_is_told_to_follow_at_once_has_all_keys);
    RUN(a_copy_joins_behind_what_is_in_the_table);
    RUN(only_a_server_may_ask_to_join);
    RUN(a_new_shard_is_copied_before_it_is_served);
    RUN(a_copy_that_leads_is_not_copied_before_it_serves);
    RUN(a_retry_of_what_was_made_before_a_copy_joined_is_no_second_write);
    RUN(what_an_owner_does_not_know_its_copy_does_not_know_either);
    RUN(a_copy_is_proposed_when_clients_leases_of_before_are_over);
    RUN(changes_without_enough_copies_are_refused_and_have_no_effect);
    RUN(a_copy_that_stands_still_is_late_and_is_back);
    RUN(a_copy_that_is_silent_is_late_without_a_change);
}

static void encrypted(void) {
    RUN(a_copy_that_joins_under_load_and_leads_has_all_that_was_answered);
    RUN(the_other_copy_follows_the_one_that_leads);
}

int main(int argc, char **argv) { return join_main(argc, argv, tests, encrypted); }
