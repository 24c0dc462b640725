/* lookup_window_test.c: how many bytes of large extents are READ from an owner at a time (get_window.c), with the READs
 * carried out by hand (guest_steps.h). */
#include <string.h>
#include "guest_steps.h"

/* An extent of such a value has 272 KiB: 15 of them are less than 4 MiB, 7 less than 2. */
enum { VALUE = 256 << 10, GETS = 40, AT_FIRST = 15, HALVED = 7 };

static char key_text[32];
static const char *key_at(int i) {
    snprintf(key_text, sizeof key_text, "large-%d", i);
    return key_text;
}
static void put_large(const char *key, char with) {
    static char value[VALUE];
    memset(value, with, sizeof value);
    table_op op = host_op(p->h, TABLE_PUT, key, strlen(key), value, sizeof value);
    CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
}

/* Completes a READ of a bucket, or one of an extent; false: none is under way. */
static bool complete_one(bool of_bucket) {
    for (int i = 0; i < PUPPET_READS; i++) {
        if (!p->read[i].flying || (p->read[i].r.bytes == FKV_BUCKET_BYTES) != of_bucket) continue;
        puppet_complete(p, &p->read[i]);
        guest_settle(&c);
        return true;
    }
    return false;
}

static outcome o[GETS];
static void begin_all(uint32_t ms) {
    up();
    for (int i = 0; i < GETS; i++) put_large(key_at(i), 'v');
    puppet_register(p);
    CHECK_EQ(guest_get(&c, "none").status, FKV_NOT_FOUND);
    p->by_hand = true;
    for (int i = 0; i < GETS; i++) guest_start(&c, key_at(i), ms, &o[i]);
    guest_settle(&c);
    CHECK_EQ(p->flying, GETS);
    while (complete_one(true)) continue;
}
static void all_are_answered(void) {
    p->by_hand = false;
    guest_settle(&c);
    for (int i = 0; i < GETS; i++) {
        CHECK(o[i].done);
        CHECK_EQ(o[i].status, FKV_OK);
        CHECK_EQ(o[i].bytes, VALUE);
    }
    CHECK_EQ(c.l->shard[0].peer->window.bytes, 0);
}

TEST(large_values_are_read_as_far_as_the_window_goes_and_the_rest_in_their_places) {
    begin_all(900);
    CHECK_EQ(p->flying, AT_FIRST);
    uint64_t reads = p->reads_posted;
    for (int i = 0; i < 5; i++) {
        CHECK(complete_one(false));
        CHECK(p->flying >= AT_FIRST && p->flying <= AT_FIRST + 1); /* what comes in time widens it */
    }
    all_are_answered();
    CHECK_EQ(p->reads_posted, reads + GETS - AT_FIRST); /* the index was not READ again */
    CHECK_EQ(guest_stats(&c).retries, 0);
    down();
}

TEST(a_small_value_does_not_wait_behind_large_ones) {
    begin_all(900);
    put("alpha", "one");
    outcome small;
    guest_start(&c, "alpha", 900, &small);
    guest_settle(&c);
    CHECK_EQ(p->flying, AT_FIRST + 1);
    all_are_answered();
    CHECK(small.done && small.status == FKV_OK);
    down();
}

TEST(when_values_come_too_late_half_as_many_are_read_at_a_time) {
    begin_all(5000);
    puppet_pass(p, 300 * MS); /* longer than a GET of such an extent may live, shorter than the lease */
    for (int i = 0; i < AT_FIRST; i++) CHECK(complete_one(false));
    CHECK_EQ(guest_stats(&c).late, AT_FIRST);
    /* Those that waited are READ; those that were late begin at the index again. */
    CHECK_EQ(p->flying, HALVED + AT_FIRST);
    CHECK_EQ(c.l->shard[0].peer->window.most, 2 << 20); /* and was cut once for all of them */
    all_are_answered();
    CHECK_EQ(guest_stats(&c).late, AT_FIRST);
    down();
}

TEST(a_value_larger_than_the_window_is_read_by_itself) {
    up();
    static char value[5 << 20];
    memset(value, 'v', sizeof value);
    table_op op = host_op(p->h, TABLE_PUT, "huge", 4, value, sizeof value);
    CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
    put_large(key_at(0), 'v');
    puppet_register(p);
    outcome huge, other;
    p->by_hand = true;
    guest_start(&c, "huge", 900, &huge);
    guest_settle(&c);
    while (complete_one(true)) continue;
    uint32_t pieces = p->flying;
    CHECK_EQ(pieces, 6);
    guest_start(&c, key_at(0), 900, &other);
    guest_settle(&c);
    CHECK(complete_one(true));
    CHECK_EQ(p->flying, pieces); /* the other waits */
    for (uint32_t i = 0; i < pieces; i++) CHECK(complete_one(false));
    CHECK(huge.done && huge.status == FKV_OK);
    CHECK_EQ(p->flying, 1);
    finish(&other);
    CHECK_EQ(other.status, FKV_OK);
    down();
}

TEST(a_value_that_was_replaced_while_it_waited_is_read_as_it_is) {
    begin_all(900);
    put("large-39", "anew");
    p->by_hand = false;
    guest_settle(&c);
    for (int i = 0; i < GETS; i++) CHECK(o[i].done && o[i].status == FKV_OK);
    CHECK(strcmp(o[GETS - 1].value, "anew") == 0);
    CHECK_EQ(guest_stats(&c).retries, 1);
    down();
}

TEST(a_get_that_waits_for_the_window_ends_with_its_time_or_by_its_caller) {
    begin_all(100);
    lookup_cancel(o[GETS - 1].get, FKV_ABORTED);
    CHECK(o[GETS - 1].done && o[GETS - 1].status == FKV_ABORTED);
    puppet_pass(p, 150 * MS);
    guest_settle(&c);
    for (int i = 0; i < GETS - 1; i++) CHECK(o[i].done && o[i].status == FKV_TIMEOUT);
    p->by_hand = false;
    guest_settle(&c);
    CHECK_EQ(c.l->shard[0].peer->window.bytes, 0);
    CHECK_EQ(guest_get(&c, "none").status, FKV_NOT_FOUND);
    down();
}

TEST(what_waits_for_the_window_goes_on_over_the_next_connection) {
    begin_all(5000);
    puppet_break(p, FAB_WR_FLUSH_ERR);
    guest_settle(&c);
    CHECK_EQ(c.l->shard[0].peer->window.bytes, 0);
    p->by_hand = false;
    pass(1000, &o[GETS - 1].done);
    all_are_answered();
    CHECK_EQ(c.connected, 2);
    down();
}

TEST(a_client_that_is_closed_ends_what_waits) {
    begin_all(900);
    lookup_close(c.l);
    for (int i = 0; i < GETS; i++) CHECK(o[i].done && o[i].status == FKV_CLOSED);
    puppet_free(p);
}

int main(int argc, char **argv) {
    RUN(large_values_are_read_as_far_as_the_window_goes_and_the_rest_in_their_places);
    RUN(a_small_value_does_not_wait_behind_large_ones);
    RUN(when_values_come_too_late_half_as_many_are_read_at_a_time);
    RUN(a_value_larger_than_the_window_is_read_by_itself);
    RUN(a_value_that_was_replaced_while_it_waited_is_read_as_it_is);
    RUN(a_get_that_waits_for_the_window_ends_with_its_time_or_by_its_caller);
    RUN(what_waits_for_the_window_goes_on_over_the_next_connection);
    RUN(a_client_that_is_closed_ends_what_waits);
    return check_end(argc, argv);
}
