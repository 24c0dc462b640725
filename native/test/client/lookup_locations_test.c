/* lookup_locations_test.c: the location cache: what it keeps and gives up, and that a GET which begins at a cached
 * location returns what one by the index would have (puppet.h puts the owner's steps between its READs). */
#include "guest_steps.h"

/* ---- the cache by itself ---- */

static locations cache;

static uint64_t hash_of(uint64_t i) {
    uint64_t x = i * 0x9e3779b97f4a7c15u + 1;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 29;
}
static location place_of(uint64_t i) { return (location){ .word = 5ull << 40 | 1ull << 24 | (i + 1), .tag = 77 }; }
/* A GET of key i, which lies at place `at`. True: it took one READ. */
static bool visit(uint64_t i, uint64_t at) {
    location l;
    bool guessed = locations_guess(&cache, hash_of(i), &l);
    if (guessed && l.word == place_of(at).word) {
        CHECK_EQ(l.tag, 77);
        locations_good(&cache, hash_of(i));
        return true;
    }
    if (guessed) locations_stale(&cache, hash_of(i));
    locations_learn(&cache, hash_of(i), place_of(at));
    return false;
}

TEST(a_location_that_was_learned_is_guessed) {
    CHECK(locations_create(&cache, 4096));
    for (uint64_t i = 0; i < 1000; i++) CHECK(!visit(i, i));
    uint32_t known = 0;
    for (uint64_t i = 0; i < 1000; i++) known += visit(i, i);
    CHECK(known > 950);
    locations_free(&cache);
}

TEST(a_cache_of_no_entries_is_none_and_one_of_few_is_a_set) {
    location l;
    CHECK(locations_create(&cache, 0));
    locations_learn(&cache, 1, place_of(1));
    CHECK(!locations_guess(&cache, 1, &l));
    locations_good(&cache, 1), locations_stale(&cache, 1), locations_forget(&cache, 1);
    locations_free(&cache);
    CHECK(locations_create(&cache, 1));
    CHECK_EQ(cache.sets, 1);
    for (uint64_t i = 0; i < 100; i++) visit(i, i);
    CHECK_EQ(cache.evicted, 96);
    locations_free(&cache);
}

TEST(a_scan_replaces_only_what_was_used_once) {
    enum { HOT = 400, ENTRIES = 1024, SCANNED = 200000 };
    CHECK(locations_create(&cache, ENTRIES));
    for (int round = 0; round < 20; round++)
        for (uint64_t i = 0; i < HOT; i++) visit(i, i);
    uint64_t hits = 0, visits = 0;
    for (uint64_t i = 0; i < SCANNED; i++) {
        visit(1000000 + i, i);
        if (i % 4 == 0) hits += visit(i / 4 % HOT, i / 4 % HOT), visits++;
    }
    /* least-recently-used would keep none: 1,600 others come before a key comes again */
    CHECK(hits * 100 > visits * 85);
    locations_free(&cache);
}

TEST(what_was_popular_long_ago_gives_way) {
    enum { ENTRIES = 1024 };
    CHECK(locations_create(&cache, ENTRIES));
    for (int round = 0; round < 100; round++)
        for (uint64_t i = 0; i < ENTRIES; i++) visit(i, i);
    uint64_t hits = 0;
    for (int round = 0; round < 500; round++) {
        hits = 0;
        for (uint64_t i = 0; i < 600; i++) hits += visit(5000 + i, i);
    }
    CHECK(hits > 450);
    locations_free(&cache);
}

TEST(a_key_that_changes_more_often_than_it_is_read_is_left_alone_until_it_rests) {
    CHECK(locations_create(&cache, 64));
    location l;
    uint32_t wasted = 0;
    for (uint64_t at = 0; at < 1000; at++) {
        wasted += locations_guess(&cache, hash_of(1), &l);
        if (wasted && cache.bypassed == 0) locations_stale(&cache, hash_of(1));
        locations_learn(&cache, hash_of(1), place_of(at));
    }
    CHECK_EQ(wasted, 1);
    CHECK(cache.bypassed > 990);
    uint32_t gets = 0;
    while (!visit(1, 5)) CHECK(++gets < 10); /* it rests: soon it is trusted again */
    for (int i = 0; i < 100; i++) CHECK(visit(1, 5));
    locations_free(&cache);
}

TEST(a_key_that_changes_less_often_than_it_is_read_keeps_its_place) {
    CHECK(locations_create(&cache, 64));
    uint32_t hits = 0;
    for (int i = 0; i < 3000; i++) hits += visit(1, (uint64_t)i / 3);
    CHECK_EQ(cache.bypassed, 0);
    CHECK(hits >= 1998);
    locations_free(&cache);
}

/* ---- GETs ---- */

static void up_with_a_cache(void) {
    p = puppet_new();
    lookup_config config = guest_config(&c, p);
    config.cached_locations = 1024;
    guest_open(&c, p, &config);
    guest_connect(&c);
    CHECK_EQ(guest_get(&c, "nothing").status, FKV_NOT_FOUND);
}
/* READs of one GET that finds `value`. */
static uint64_t reads_of(const char *key, const char *value) {
    uint64_t before = guest_stats(&c).reads;
    guest_expect(&c, key, value);
    return guest_stats(&c).reads - before;
}

TEST(a_get_of_a_cached_location_is_one_read) {
    up_with_a_cache();
    put("alpha", "one");
    CHECK_EQ(reads_of("alpha", "one"), 2);
    CHECK_EQ(reads_of("alpha", "one"), 1);
    CHECK_EQ(guest_stats(&c).location_hits, 1);
    CHECK_EQ(guest_stats(&c).location_stale, 0);
    down();
}

TEST(after_a_change_the_index_is_asked_and_the_new_place_is_learned) {
    up_with_a_cache();
    put_and_get("alpha", "one");
    put("alpha", "two");
    CHECK_EQ(reads_of("alpha", "two"), 3);
    CHECK_EQ(guest_stats(&c).location_stale, 1);
    CHECK_EQ(guest_stats(&c).retries, 0);
    CHECK_EQ(host_delete(p->h, "alpha"), FKV_OK);
    CHECK_EQ(guest_get(&c, "alpha").status, FKV_NOT_FOUND);
    down();
}

TEST(a_change_by_this_client_costs_no_stale_read) {
    up_with_a_cache();
    put_and_get("alpha", "one");
    lookup_changes(c.l, &(lookup_key){ .bytes = (const uint8_t *)"alpha", .count = 5 });
    put("alpha", "two");
    CHECK_EQ(reads_of("alpha", "two"), 2);
    CHECK_EQ(reads_of("alpha", "two"), 1);
    CHECK_EQ(guest_stats(&c).location_stale, 0);
    down();
}

TEST(what_is_pending_at_a_cached_location_is_not_returned) {
    up_with_a_cache();
    put_and_get("alpha", "one");
    fkv_extent *e = extent_of("alpha");
    e->state = FKV_EXTENT_PENDING;
    outcome o;
    begin("alpha", &o);
    for (int i = 0; i < 5; i++) one_read();
    CHECK(!o.done);
    e->state = FKV_EXTENT_LIVE;
    finish_with(&o, "one");
    down();
}

TEST(another_keys_extent_at_a_cached_location_is_not_returned) {
    up_with_a_cache();
    put_and_get("alpha", "one");
    const fkv_extent *at = extent_of("alpha");
    put("alpha", "two");
    host_drain(p->h); /* out of quarantine: the place is free */
    char key[32];
    bool reused = false;
    for (int i = 0; i < 5000 && !reused; i++) {
        snprintf(key, sizeof key, "al-%d", i);
        put(key, "x");
        reused = extent_of(key) == at;
    }
    CHECK(reused);
    CHECK_EQ(reads_of("alpha", "two"), 3);
    CHECK_EQ(guest_stats(&c).location_stale, 1);
    down();
}

/* The bytes of a value at the place where an extent lay in a table that is gone: whole, LIVE, of this key, under the
 * tag that is right now. Only the tag that the segment had when the place was learned tells. */
TEST(a_location_is_forgotten_when_its_segment_has_another_tag) {
    up_with_a_cache();
    char key[32];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "before-%d", i);
        put(key, "x");
    }
    put_and_get("alpha", "old");
    const fkv_extent *old = extent_of("alpha");
    size_t at = offset_of(old);
    puppet_restart(p, false);
    put("alpha", "new");
    imitate(p->h, old, at);
    puppet_pass(p, 1200 * MS); /* the lease runs out: the next one names the new incarnation */
    CHECK_EQ(guest_get(&c, "nothing").status, FKV_NOT_FOUND);
    guest_expect(&c, "alpha", "new");
    CHECK_EQ(guest_stats(&c).location_hits, 0);
    down();
}

TEST(a_cached_location_is_read_under_a_running_lease_only) {
    up_with_a_cache();
    put_and_get("alpha", "old");
    outcome o;
    cut_off(10 * MS);
    begin("alpha", &o);
    puppet_carry(p, puppet_first(p), UINT32_MAX);
    puppet_pass(p, c.l->shard[0].lease_until - p->now_ns);
    one_read();
    CHECK(!o.done);
    CHECK_EQ(guest_stats(&c).late, 1);
    p->by_hand = false;
    puppet_pass(p, 2000 * MS);
    guest_settle(&c);
    CHECK(o.done && o.status != FKV_OK);
    down();
}

/* What the owner retires is deregistered when the leases that do not tell of it are over: who knows of a newer layout
 * must not go by an old location. */
TEST(no_location_is_guessed_while_the_layout_is_known_to_be_old) {
    up_with_a_cache();
    put_and_get("alpha", "one");
    p->silent = true; /* so that it stays so */
    c.l->shard[0].outdated = true;
    CHECK_EQ(reads_of("alpha", "one"), 2);
    c.l->shard[0].outdated = false;
    CHECK_EQ(reads_of("alpha", "one"), 1);
    down();
}

TEST(locations_outlive_a_connection) {
    up_with_a_cache();
    put_and_get("alpha", "one");
    puppet_break(p, FAB_RETRY_EXC_ERR);
    outcome o;
    guest_start(&c, "alpha", 900, &o); /* by the index, for the segments have to be attached again */
    pass(900, &o.done);
    finish_with(&o, "one");
    CHECK_EQ(reads_of("alpha", "one"), 1);
    down();
}

TEST(a_refused_read_at_a_cached_location_is_no_error_and_not_repeated) {
    up_with_a_cache();
    put_and_get("alpha", "one");
    outcome o;
    begin("alpha", &o);
    puppet_fail(p, puppet_first(p), FAB_REM_ACCESS_ERR);
    p->by_hand = false;
    while (!o.done) {
        guest_settle(&c);
        puppet_pass(p, 5 * MS);
    }
    finish_with(&o, "one");
    CHECK_EQ(guest_stats(&c).location_hits, 0);
    down();
}

/* The index is READ as by a GET that begins after the failed guess: the time of the guess does not count against it. */
TEST(a_stale_guess_takes_nothing_from_the_gets_life) {
    up_with_a_cache();
    p->lease_ns = 60000 * MS;
    puppet_pass(p, 2000 * MS);
    put_and_get("alpha", "one");
    put("alpha", "two");
    outcome o;
    begin("alpha", &o);
    puppet_pass(p, 200 * MS);
    one_read();
    puppet_pass(p, 200 * MS);
    finish_with(&o, "two");
    CHECK_EQ(guest_stats(&c).late, 0);
    down();
}

int main(int argc, char **argv) {
    RUN(a_location_that_was_learned_is_guessed);
    RUN(a_cache_of_no_entries_is_none_and_one_of_few_is_a_set);
    RUN(a_scan_replaces_only_what_was_used_once);
    RUN(what_was_popular_long_ago_gives_way);
    RUN(a_key_that_changes_more_often_than_it_is_read_is_left_alone_until_it_rests);
    RUN(a_key_that_changes_less_often_than_it_is_read_keeps_its_place);
    RUN(a_get_of_a_cached_location_is_one_read);
    RUN(after_a_change_the_index_is_asked_and_the_new_place_is_learned);
    RUN(a_change_by_this_client_costs_no_stale_read);
    RUN(what_is_pending_at_a_cached_location_is_not_returned);
    RUN(another_keys_extent_at_a_cached_location_is_not_returned);
    RUN(a_location_is_forgotten_when_its_segment_has_another_tag);
    RUN(a_cached_location_is_read_under_a_running_lease_only);
    RUN(no_location_is_guessed_while_the_layout_is_known_to_be_old);
    RUN(locations_outlive_a_connection);
    RUN(a_refused_read_at_a_cached_location_is_no_error_and_not_repeated);
    RUN(a_stale_guess_takes_nothing_from_the_gets_life);
    return check_end(argc, argv);
}
