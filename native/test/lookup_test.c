/* lookup_test.c: one GET at a time, with the owner's steps put exactly between its READs (puppet.h). Each mechanism that keeps a
 * GET from returning what is not true has a test here that fails without it. */
#include <stdio.h>
#include "puppet.h"
#include "../lookup/lookup_internal.h"

static const uint64_t MS = 1000000;

static puppet *p;
static guest c;

static void up(void) {
    p = puppet_new();
    guest_up(&c, p);
}
static void down(void) { guest_down(&c); }

static void put(const char *key, const char *value) { CHECK_EQ(host_put(p->h, key, value), FKV_OK); }

/* The extent of a key in the owner's memory. */
static fkv_extent *extent_of(const char *key) {
    table_entry e;
    CHECK_EQ(host_get(p->h, key, strlen(key), &e), FKV_OK);
    return (fkv_extent *)(void *)(uintptr_t)(e.key - FKV_EXTENT_HEADER);
}

/* Starts a GET whose READs are carried out by hand; its first is posted. */
static void begin(const char *key, outcome *o) {
    p->by_hand = true;
    guest_start(&c, key, 900, o);
    guest_settle(&c);
}
/* Completes the READ that was posted first; the next one may be posted after. */
static void one_read(void) {
    CHECK(puppet_first(p) != NULL);
    puppet_complete(p, puppet_first(p));
    guest_settle(&c);
}
/* The rest goes by itself. */
static void finish(outcome *o) {
    p->by_hand = false;
    guest_settle(&c);
    CHECK(o->done);
}
static void finish_with(outcome *o, const char *value) {
    finish(o);
    CHECK_EQ(o->status, FKV_OK);
    CHECK(strcmp(o->value, value) == 0);
}

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

TEST(a_get_may_only_be_answered_under_a_lease) {
    p = puppet_new();
    p->grants = false;
    put("alpha", "one");
    guest_open(&c, p, NULL);
    guest_connect(&c);
    guest_expect(&c, "alpha", "one");      /* by asking the owner */
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
    host_drain(p->h);                       /* the table's time only: the GET's own bound is not what is tested */
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
    value[20] ^= 0x20;                      /* half of another value */
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
    CHECK_EQ(guest_get(&c, "alpha").status, FKV_NOT_FOUND);   /* as the owner sees it */
    CHECK_EQ(guest_stats(&c).reads - before.reads, 2 * (LOOKUP_RETRIES + 1));
    CHECK_EQ(p->gets, 1);
    CHECK_EQ(guest_stats(&c).two_sided, 1);
    down();
}

/* A cut-off owner's memory is still there to be read; a new owner has taken the shard over. */
TEST(an_old_value_is_not_returned_after_the_lease_has_run_out) {
    up();
    put("alpha", "old");
    guest_expect(&c, "alpha", "old");
    outcome o;
    p->silent = true;
    puppet_pass(p, c.l->shard[0].lease_until - p->now_ns - 10 * MS);
    begin("alpha", &o);
    one_read();
    puppet_carry(p, puppet_first(p), UINT32_MAX);
    puppet_pass(p, c.l->shard[0].lease_until - p->now_ns);   /* not a nanosecond more is needed */
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
    put("alpha", "new");
    guest_expect(&c, "alpha", "new");
    down();
}

TEST(a_get_that_ends_just_inside_the_lease_is_answered) {
    up();
    put("alpha", "old");
    guest_expect(&c, "alpha", "old");
    lookup_shard *sh = &c.l->shard[0];
    outcome o;
    p->silent = true;
    puppet_pass(p, sh->lease_until - p->now_ns - 100 * MS);
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
    session_flush(c.s);                     /* LEASE is sent now, and its reply arrives late */
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
    put("alpha", "old");
    guest_expect(&c, "alpha", "old");
    puppet_restart(p, false);
    put("alpha", "new");
    puppet_pass(p, 1200 * MS);
    guest_expect(&c, "alpha", "new");
    CHECK_EQ(p->layouts, 2);
    CHECK_EQ(guest_stats(&c).foreign, 0);   /* nothing was read where the old table was */
    CHECK_EQ(c.disconnected, 0);
    down();
}

TEST(a_read_by_an_old_layout_is_not_covered_by_a_lease_of_the_next_incarnation) {
    up();
    put("alpha", "old");
    guest_expect(&c, "alpha", "old");
    outcome o;
    int known = p->memories;
    begin("alpha", &o);
    one_read();
    puppet_restart(p, false);
    for (int i = 0; i < known; i++) p->memory[i].revoked = false;   /* a dead owner's memory, still mapped */
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
    put("alpha", "new");
    guest_expect(&c, "alpha", "new");
    CHECK_EQ(guest_stats(&c).foreign, 1);
    down();
}
TEST(an_extent_in_memory_under_a_reused_rkey_is_not_believed) {
    up();
    put("alpha", "old");
    fkv_extent *old = extent_of("alpha");
    size_t at = (size_t)((uint8_t *)old - p->h->segments[1].region.base);
    outcome o;
    begin("alpha", &o);
    one_read();
    puppet_restart(p, true);
    /* The other table has an entry of this key at the very place. */
    host *third = p->old[0];
    memcpy(third->segments[1].region.base + at, old, 128);
    fkv_extent *forged = (fkv_extent *)(void *)(third->segments[1].region.base + at);
    forged->tag = third->segments[1].tag;
    forged->crc = fkv_extent_crc(forged, forged->key_bytes, forged->value_bytes);
    put("alpha", "new");
    finish_with(&o, "new");
    down();
}

TEST(a_refused_rkey_brings_the_new_layout_and_not_an_error) {
    up();
    put("alpha", "old");
    guest_expect(&c, "alpha", "old");
    outcome o;
    begin("alpha", &o);
    one_read();
    puppet_restart(p, false);
    put("alpha", "new");
    p->by_hand = false;
    guest_settle(&c);
    CHECK(!o.done);                          /* the connection broke; a new one is made after a moment */
    while (!o.done) {
        puppet_pass(p, 5 * MS);
        guest_settle(&c);
    }
    finish_with(&o, "new");
    CHECK_EQ(p->connects, 2);
    CHECK_EQ(guest_stats(&c).foreign, 1);
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
    CHECK_EQ(p->layouts, 1);                 /* rkeys outlive a connection */
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
    puppet_fail(p, puppet_first(p), FAB_RETRY_EXC_ERR);      /* of four pieces the first fails, the others are flushed */
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
    puppet_time(p, 98 * MS);                    /* the table does not tick: it has not removed it */
    guest_expect(&c, "brief", "v");
    puppet_time(p, 3 * MS);
    CHECK_EQ(guest_get(&c, "brief").status, FKV_NOT_FOUND);
    CHECK_EQ(p->gets, 0);
    down();
}

TEST(a_reader_whose_map_is_old_follows_the_growing_index) {
    up();
    char key[32], value[32];
    uint32_t buckets = table_buckets(p->h->t);
    for (int i = 0; i < 12000; i++) {
        snprintf(key, sizeof key, "grow-%d", i);
        table_op op = host_op(p->h, TABLE_PUT, key, strlen(key), key, strlen(key));
        CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
        if (i % 100 == 0) host_pass(p->h, MS);
    }
    host_drain(p->h);
    CHECK(table_buckets(p->h->t) > 2 * buckets);
    CHECK_EQ(c.l->shard[0].buckets, buckets);
    for (int i = 0; i < 12000; i++) {
        snprintf(key, sizeof key, "grow-%d", i);
        snprintf(value, sizeof value, "grow-%d", i);
        guest_expect(&c, key, value);
    }
    CHECK_EQ(guest_get(&c, "grow-x").status, FKV_NOT_FOUND);
    CHECK_EQ(p->gets, 0);
    CHECK(p->layouts >= 2);
    down();
}

/* Keys of one bucket: `n` of them whose low hash bits are those of the first. */
static void keys_of_one_bucket(int n, uint32_t bits, char (*keys)[32]) {
    uint64_t first = 0;
    for (int i = 0, found = 0; found < n; i++) {
        snprintf(keys[found], 32, "chain-%d", i);
        uint64_t h = host_hash(p->h, 0, keys[found], strlen(keys[found]));
        if (found == 0) first = h;
        if (((h ^ first) & ((1u << bits) - 1)) == 0) found++;
    }
}

TEST(a_chain_of_overflow_buckets_is_followed) {
    enum { N = 40 };
    static char keys[N + 1][32];
    up();
    keys_of_one_bucket(N + 1, 14, keys);
    for (int i = 0; i < N; i++) put(keys[i], keys[i]);
    for (int i = 0; i < N; i++) guest_expect(&c, keys[i], keys[i]);
    lookup_stats before = guest_stats(&c);
    CHECK_EQ(guest_get(&c, keys[N]).status, FKV_NOT_FOUND);
    CHECK_EQ(guest_stats(&c).reads - before.reads, 3);
    down();
}

TEST(keys_with_the_same_fingerprint_are_told_apart) {
    enum { N = 60000 };
    static struct { uint64_t h; int i; } all[N];
    up();
    uint32_t buckets = table_buckets(p->h->t), pairs = 0;
    char key[32], other[32];
    static int by_place[1 << 20];
    memset(by_place, -1, sizeof by_place);
    for (int i = 0; i < N && pairs < 3; i++) {
        snprintf(key, sizeof key, "same-%d", i);
        all[i].h = host_hash(p->h, 0, key, strlen(key));
        all[i].i = i;
        uint32_t place = (fkv_bucket_of((uint32_t)all[i].h, buckets) << 16 ^ fkv_hash_fingerprint(all[i].h)) % (1 << 20);
        int before = by_place[place];
        by_place[place] = i;
        if (before < 0 || fkv_bucket_of((uint32_t)all[before].h, buckets) != fkv_bucket_of((uint32_t)all[i].h, buckets) ||
            fkv_hash_fingerprint(all[before].h) != fkv_hash_fingerprint(all[i].h)) continue;
        pairs++;
        snprintf(other, sizeof other, "same-%d", before);
        put(key, "this");
        CHECK_EQ(guest_get(&c, other).status, FKV_NOT_FOUND);
        put(other, "that");
        guest_expect(&c, key, "this");
        guest_expect(&c, other, "that");
    }
    CHECK(pairs >= 1);
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

TEST(a_large_extent_is_read_in_pieces_and_checked_as_a_whole) {
    p = puppet_new();
    guest_up(&c, p);
    uint32_t bytes = 5 << 20;
    char *value = malloc(bytes);
    for (uint32_t i = 0; i < bytes; i++) value[i] = (char)('a' + i % 26);
    table_op op = host_op(p->h, TABLE_PUT, "large", 5, value, bytes);
    CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
    p->queue_room = 2;
    outcome o = guest_get(&c, "large");     /* makes its segment known */
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
    begin("alpha", &next);                   /* does not get the memory into which the old READ will still land */
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
    guest c;
    puppet *p = puppet_new();
    p->lease_ns = 60000 * MS;
    guest_up(&c, p);
    char key[32];
    for (int i = 0; i < 12000; i++) {       /* until the index has segments that the guest does not know */
        snprintf(key, sizeof key, "grow-%d", i);
        table_op op = host_op(p->h, TABLE_PUT, key, strlen(key), key, strlen(key));
        CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
        if (i % 100 == 0) host_pass(p->h, MS);
    }
    host_drain(p->h);
    p->refuses_with = FKV_BUSY;
    outcome o = { 0 };
    for (int k = 0; k < 12000; k++) {
        snprintf(key, sizeof key, "grow-%d", k);
        guest_start(&c, key, 9000, &o);
        guest_settle(&c);
        if (!o.done) break;
    }
    CHECK(!o.done);
    p->refuses_with = FKV_OK;
    for (int i = 0; i < 5000 && !o.done; i++) {
        puppet_pass(p, MS);
        guest_settle(&c);
    }
    CHECK(o.done);
    CHECK_EQ(o.status, FKV_OK);
    guest_down(&c);
}

int main(int argc, char **argv) {
    RUN(a_hit_takes_two_reads_and_a_miss_takes_one);
    RUN(a_get_may_only_be_answered_under_a_lease);
    RUN(a_torn_extent_is_read_again);
    RUN(bytes_that_changed_under_way_fail_their_checksum);
    RUN(a_pending_extent_is_not_returned_before_it_takes_effect);
    RUN(a_dead_extent_sends_the_reader_back_to_the_index);
    RUN(after_bounded_retries_the_owner_is_asked);
    RUN(an_old_value_is_not_returned_after_the_lease_has_run_out);
    RUN(a_get_that_ends_just_inside_the_lease_is_answered);
    RUN(a_lease_counts_from_when_it_was_asked_for);
    RUN(a_lease_for_another_incarnation_ends_the_old_layout);
    RUN(a_read_by_an_old_layout_is_not_covered_by_a_lease_of_the_next_incarnation);
    RUN(memory_under_a_reused_rkey_is_not_believed_when_it_holds_no_such_key);
    RUN(an_extent_in_memory_under_a_reused_rkey_is_not_believed);
    RUN(a_refused_rkey_brings_the_new_layout_and_not_an_error);
    RUN(reads_that_were_under_way_when_the_connection_broke_are_done_again);
    RUN(a_completion_that_comes_twice_is_believed_once);
    RUN(a_get_that_took_longer_than_its_life_is_discarded);
    RUN(an_entry_is_not_returned_after_its_expiry_by_the_owners_clock);
    RUN(a_reader_whose_map_is_old_follows_the_growing_index);
    RUN(a_chain_of_overflow_buckets_is_followed);
    RUN(keys_with_the_same_fingerprint_are_told_apart);
    RUN(gets_beyond_what_the_queue_takes_wait_their_turn);
    RUN(a_large_extent_is_read_in_pieces_and_checked_as_a_whole);
    RUN(a_get_whose_time_is_over_ends_although_its_read_is_under_way);
    RUN(closing_with_reads_under_way_frees_nothing_too_early);
    RUN(a_dead_server_and_a_new_one_are_told_apart_by_their_reason);
    RUN(a_refused_layout_does_not_leave_a_get_waiting);
    return check_end(argc, argv);
}
