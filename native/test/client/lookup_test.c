/* lookup_test.c: one GET at a time, with the owner's steps put exactly between its READs (guest_steps.h). Each
 * mechanism that keeps a GET from returning what is not true has a test here, or in lookup_lease_test.c or
 * lookup_index_test.c, that fails without it. */
#include "guest_steps.h"

TEST(a_hit_takes_two_reads_and_a_miss_takes_one) {
    up();
    put("alpha", "one");
    lookup_stats before = guest_stats(&c);
    guest_expect(&c, "alpha", "one");
    CHECK_EQ(guest_stats(&c).reads - before.reads, 2);
    CHECK_EQ(guest_get(&c, "beta").status, FKV_NOT_FOUND);
    CHECK_EQ(guest_stats(&c).reads - before.reads, 3);
    CHECK_EQ(p->gets, 0);
    CHECK_EQ(guest_stats(&c).hits, 1);
    down();
}

/* The extent is freed, leaves quarantine and is used for another entry while half of it is on its way. */
TEST(a_torn_extent_is_read_again) {
    up();
    char old[900], other[900], new[900];
    memset(old, 'o', sizeof old), memset(other, 'x', sizeof other), memset(new, 'n', sizeof new);
    old[899] = other[899] = new[899] = 0;
    put("alpha", old);
    uint8_t *at = (uint8_t *)extent_of("alpha");
    outcome o;
    begin("alpha", &o);
    one_read();
    puppet_carry(p, puppet_first(p), 480);
    put("alpha", new);
    host_drain(p->h); /* the table's time only: the GET's own bound is not what is tested */
    for (int i = 0; i < 64 && (uint8_t *)extent_of("alpha") != at; i++) {
        put("alpha", i % 2 ? new : other);
        host_drain(p->h);
    }
    CHECK(at == (uint8_t *)extent_of("alpha"));
    put("beta", other);
    finish(&o);
    CHECK_EQ(o.status, FKV_OK);
    CHECK(strcmp(o.value, new) == 0 || strcmp(o.value, other) == 0);
    CHECK(guest_stats(&c).torn == 1);
    down();
}

TEST(bytes_that_changed_under_way_fail_their_checksum) {
    up();
    put("alpha", "what was there at first, forty letters...");
    outcome o;
    begin("alpha", &o);
    one_read();
    uint8_t *value = (uint8_t *)extent_of("alpha") + FKV_EXTENT_HEADER + 5;
    puppet_carry(p, puppet_first(p), FKV_EXTENT_HEADER + 5 + 10);
    value[20] ^= 0x20; /* half of another value */
    puppet_carry(p, puppet_first(p), UINT32_MAX);
    value[20] ^= 0x20;
    finish_with(&o, "what was there at first, forty letters...");
    CHECK_EQ(guest_stats(&c).torn, 1);
    CHECK_EQ(guest_stats(&c).retries, 1);
    down();
}

TEST(a_pending_extent_is_not_returned_before_it_takes_effect) {
    up();
    put("alpha", "one");
    fkv_extent *e = extent_of("alpha");
    outcome o;
    e->state = FKV_EXTENT_PENDING;
    begin("alpha", &o);
    for (int i = 0; i < 6; i++) one_read();
    CHECK(!o.done);
    e->state = FKV_EXTENT_LIVE;
    finish_with(&o, "one");
    CHECK_EQ(guest_stats(&c).retries, 3);
    CHECK_EQ(p->gets, 0);
    down();
}

TEST(a_dead_extent_sends_the_reader_back_to_the_index) {
    up();
    put("alpha", "one");
    outcome o;
    begin("alpha", &o);
    one_read();
    put("alpha", "two");
    finish_with(&o, "two");
    CHECK_EQ(guest_stats(&c).retries, 1);
    begin("alpha", &o);
    one_read();
    CHECK_EQ(host_delete(p->h, "alpha"), FKV_OK);
    finish(&o);
    CHECK_EQ(o.status, FKV_NOT_FOUND);
    down();
}

TEST(after_bounded_retries_the_owner_is_asked) {
    up();
    put("alpha", "one");
    extent_of("alpha")->state = FKV_EXTENT_DEAD;
    lookup_stats before = guest_stats(&c);
    CHECK_EQ(guest_get(&c, "alpha").status, FKV_NOT_FOUND); /* as the owner sees it */
    CHECK_EQ(guest_stats(&c).reads - before.reads, 2 * (LOOKUP_RETRIES + 1));
    CHECK_EQ(p->gets, 1);
    CHECK_EQ(guest_stats(&c).two_sided, 1);
    down();
}

TEST(reads_that_were_under_way_when_the_connection_broke_are_done_again) {
    up();
    put("alpha", "one");
    put("beta", "two");
    outcome a, b;
    begin("alpha", &a);
    begin("beta", &b);
    one_read();
    puppet_break(p, FAB_RETRY_EXC_ERR);
    p->by_hand = false;
    while (!a.done || !b.done) {
        guest_settle(&c);
        puppet_pass(p, 5 * MS);
    }
    finish_with(&a, "one");
    finish_with(&b, "two");
    CHECK_EQ(p->layouts, 1); /* rkeys outlive a connection */
    down();
}

TEST(a_completion_that_comes_twice_is_believed_once) {
    p = puppet_new();
    guest_up(&c, p);
    uint32_t bytes = 3 << 20;
    char *value = malloc(bytes);
    memset(value, 'v', bytes);
    table_op op = host_op(p->h, TABLE_PUT, "large", 5, value, bytes);
    CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
    guest_get(&c, "large");
    p->duplicates = true;
    outcome o;
    begin("large", &o);
    one_read();
    /* of four pieces the first fails, the others are flushed */
    puppet_fail(p, puppet_first(p), FAB_RETRY_EXC_ERR);
    p->by_hand = false;
    while (!o.done) {
        guest_settle(&c);
        puppet_pass(p, 5 * MS);
    }
    CHECK_EQ(o.status, FKV_OK);
    CHECK_EQ(o.bytes, bytes);
    free(value);
    down();
}

TEST(a_get_that_took_longer_than_its_life_is_discarded) {
    up();
    p->lease_ns = 60000 * MS;
    puppet_pass(p, 2000 * MS);
    put("alpha", "one");
    guest_get(&c, "beta");
    outcome o;
    p->by_hand = true;
    guest_start(&c, "alpha", 5000, &o);
    guest_settle(&c);
    one_read();
    puppet_pass(p, FKV_GET_LIFE_NS + 10 * MS);
    one_read();
    CHECK(!o.done);
    CHECK_EQ(guest_stats(&c).late, 1);
    finish_with(&o, "one");
    /* A miss no less. */
    p->by_hand = true;
    guest_start(&c, "beta", 5000, &o);
    guest_settle(&c);
    puppet_pass(p, FKV_GET_LIFE_NS + 10 * MS);
    one_read();
    CHECK(!o.done);
    finish(&o);
    CHECK_EQ(o.status, FKV_NOT_FOUND);
    down();
}

TEST(an_entry_is_not_returned_after_its_expiry_by_the_owners_clock) {
    up();
    p->lease_ns = 60000 * MS;
    puppet_pass(p, 2000 * MS);
    table_op op = host_op(p->h, TABLE_PUT, "brief", 5, "v", 1);
    op.expiry_ms = p->h->wall_ms + 100;
    CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
    guest_expect(&c, "brief", "v");
    puppet_time(p, 98 * MS); /* the table does not tick: it has not removed it */
    guest_expect(&c, "brief", "v");
    puppet_time(p, 3 * MS);
    CHECK_EQ(guest_get(&c, "brief").status, FKV_NOT_FOUND);
    CHECK_EQ(p->gets, 0);
    down();
}

TEST(gets_beyond_what_the_queue_takes_wait_their_turn) {
    enum { N = 60 };
    static outcome o[N];
    up();
    char key[32];
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "many-%d", i);
        put(key, key);
    }
    p->queue_room = 3;
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "many-%d", i);
        guest_start(&c, key, 1000, &o[i]);
    }
    guest_settle(&c);
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "many-%d", i);
        finish_with(&o[i], key);
    }
    down();
}

/* The second GET finds no room in the queue; its owner is freed before it gets any. */
TEST(a_get_that_waits_for_room_goes_to_the_next_owner) {
    up();
    put("alpha", "one");
    put("beta", "two");
    p->queue_room = 1;
    outcome a, b;
    begin("alpha", &a);
    begin("beta", &b);
    CHECK_EQ(session_set_owners(c.s, NULL, 0), FKV_OK);
    session_address at = { FAB_BROUGHT, "puppet", 0 };
    session_owner_config next = { .owner = 2, .incarnation = p->server_incarnation, .addresses = &at, .count = 1 };
    CHECK_EQ(session_set_owners(c.s, &next, 1), FKV_OK);
    CHECK_EQ(lookup_set_route(c.l, &(lookup_route){ .shard = p->shard, .owner = 2 }), FKV_OK);
    p->by_hand = false;
    while (!a.done || !b.done) {
        guest_settle(&c);
        puppet_pass(p, 5 * MS);
    }
    CHECK_EQ(a.status, FKV_OK);
    CHECK_EQ(b.status, FKV_OK);
    down();
}

/* It is in no list then: what was its place may be another GET's when the connection breaks. */
TEST(a_get_that_ends_between_two_pieces_ends_once) {
    up();
    put("alpha", "one");
    uint32_t bytes = 3 << 20;
    char *value = malloc(bytes);
    memset(value, 'v', bytes);
    table_op op = host_op(p->h, TABLE_PUT, "large", 5, value, bytes);
    CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
    p->by_hand = false;
    guest_get(&c, "large"); /* segments are known */
    guest_get(&c, "alpha");
    p->by_hand = true;
    p->queue_room = 1;
    outcome large, a;
    begin("large", &large);
    begin("alpha", &a);
    one_read(); /* the bucket of large: its first piece takes that place, the rest waits behind alpha */
    one_read(); /* the piece */
    CHECK(large.get->pending == 0 && large.get->posted < large.get->bytes && !list_empty(&large.get->link));
    const lookup_get *place = large.get;
    lookup_cancel(large.get, FKV_ABORTED);
    CHECK(large.done && large.status == FKV_ABORTED);
    CHECK(list_empty(&place->flying));
    finish_with(&a, "one");
    puppet_break(p, FAB_RETRY_EXC_ERR);
    for (int i = 0; i < 50; i++) {
        guest_settle(&c);
        puppet_pass(p, 5 * MS);
    }
    CHECK_EQ((int)place->state, (int)GET_FREE);
    free(value);
    down();
}

TEST(a_large_extent_is_read_in_pieces_and_checked_as_a_whole) {
    p = puppet_new();
    guest_up(&c, p);
    uint32_t bytes = 5 << 20;
    char *value = malloc(bytes);
    for (uint32_t i = 0; i < bytes; i++) value[i] = (char)('a' + i % 26);
    table_op op = host_op(p->h, TABLE_PUT, "large", 5, value, bytes);
    CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
    p->queue_room = 2;
    outcome o = guest_get(&c, "large"); /* makes its segment known */
    lookup_stats before = guest_stats(&c);
    uint64_t posted = p->reads_posted;
    o = guest_get(&c, "large");
    CHECK_EQ(o.status, FKV_OK);
    CHECK_EQ(o.bytes, bytes);
    CHECK_EQ(guest_stats(&c).reads - before.reads, 2);
    CHECK(p->reads_posted - posted >= 6);
    /* One piece fails: all of it is read again, over the next connection. */
    p->by_hand = true;
    guest_start(&c, "large", 1000, &o);
    guest_settle(&c);
    one_read();
    one_read();
    puppet_fail(p, puppet_first(p), FAB_RETRY_EXC_ERR);
    p->by_hand = false;
    while (!o.done) {
        guest_settle(&c);
        puppet_pass(p, 5 * MS);
    }
    CHECK_EQ(o.status, FKV_OK);
    free(value);
    down();
}

TEST(a_get_whose_read_has_no_memory_to_land_in_ends_at_once) {
    up();
    put_and_get("alpha", "one");
    p->unpinned = true;
    outcome o = guest_get(&c, "alpha");
    CHECK_EQ(o.status, FKV_NO_MEMORY);
    CHECK_EQ(c.disconnected, 0);
    /* The place of the value: the bucket came before. */
    p->unpinned = false;
    p->by_hand = true;
    put("beta", "two");
    guest_start(&c, "beta", 1000, &o);
    guest_settle(&c);
    p->unpinned = true;
    one_read();
    guest_settle(&c);
    CHECK(o.done && o.status == FKV_NO_MEMORY);
    p->unpinned = p->by_hand = false;
    guest_expect(&c, "alpha", "one");
    down();
}

TEST(a_get_whose_time_is_over_ends_although_its_read_is_under_way) {
    up();
    put("alpha", "one");
    outcome o;
    begin("alpha", &o);
    one_read();
    puppet_pass(p, 950 * MS);
    session_tick(c.s);
    CHECK(o.done && o.status == FKV_TIMEOUT);
    outcome next;
    begin("alpha", &next); /* does not get the memory into which the old READ will still land */
    one_read();
    finish_with(&next, "one");
    down();
}

TEST(closing_with_reads_under_way_frees_nothing_too_early) {
    up();
    put("alpha", "one");
    outcome o;
    begin("alpha", &o);
    one_read();
    down();
    CHECK(o.done && o.status == FKV_CLOSED);
}

int main(int argc, char **argv) {
    RUN(a_hit_takes_two_reads_and_a_miss_takes_one);
    RUN(a_torn_extent_is_read_again);
    RUN(bytes_that_changed_under_way_fail_their_checksum);
    RUN(a_pending_extent_is_not_returned_before_it_takes_effect);
    RUN(a_dead_extent_sends_the_reader_back_to_the_index);
    RUN(after_bounded_retries_the_owner_is_asked);
    RUN(reads_that_were_under_way_when_the_connection_broke_are_done_again);
    RUN(a_completion_that_comes_twice_is_believed_once);
    RUN(a_get_that_took_longer_than_its_life_is_discarded);
    RUN(an_entry_is_not_returned_after_its_expiry_by_the_owners_clock);
    RUN(gets_beyond_what_the_queue_takes_wait_their_turn);
    RUN(a_get_that_waits_for_room_goes_to_the_next_owner);
    RUN(a_get_that_ends_between_two_pieces_ends_once);
    RUN(a_large_extent_is_read_in_pieces_and_checked_as_a_whole);
    RUN(a_get_whose_read_has_no_memory_to_land_in_ends_at_once);
    RUN(a_get_whose_time_is_over_ends_although_its_read_is_under_way);
    RUN(closing_with_reads_under_way_frees_nothing_too_early);
    return check_end(argc, argv);
}
