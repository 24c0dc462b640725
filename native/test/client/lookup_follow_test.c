/* lookup_follow_test.c: GETs whose READ of a bucket is followed by the owner's end of the fabric (fabric.h): one READ
 * where two were, and the same answers. What the owner sent along is believed no more than what was READ by itself. */
#include "guest_steps.h"

static lookup_stats before;

static void follows(void) {
    up();
    p->follows = true;
    before = guest_stats(&c);
}
static uint64_t reads(void) { return guest_stats(&c).reads - before.reads; }
static uint64_t followed(void) { return guest_stats(&c).followed - before.followed; }

TEST(a_get_whose_location_is_not_known_is_one_read) {
    follows();
    put("alpha", "one");
    guest_expect(&c, "alpha", "one");
    CHECK_EQ(reads(), 1);
    CHECK_EQ(followed(), 1);
    CHECK_EQ(guest_get(&c, "beta").status, FKV_NOT_FOUND);
    CHECK_EQ(reads(), 2);
    CHECK_EQ(followed(), 1);
    CHECK_EQ(p->gets, 0);
    down();
}

TEST(where_reads_are_not_followed_none_asks_for_it) {
    up();
    put("alpha", "one");
    outcome o;
    begin("alpha", &o);
    CHECK_EQ(puppet_first(p)->r.next_bytes, 0);
    finish_with(&o, "one");
    CHECK_EQ(guest_stats(&c).followed, 0);
    down();
}

static void another_value(puppet *q) {
    q->between = NULL;
    put("alpha", "two");
}
TEST(an_extent_that_died_after_its_bucket_was_read_is_looked_for_again) {
    follows();
    put("alpha", "one");
    p->between = another_value;
    guest_expect(&c, "alpha", "two");
    CHECK_EQ(guest_stats(&c).retries, 1);
    CHECK_EQ(reads(), 2);
    down();
}

static void pending(puppet *q) {
    q->between = NULL;
    extent_of("alpha")->state = FKV_EXTENT_PENDING;
}
TEST(a_pending_extent_that_was_sent_along_is_not_returned) {
    follows();
    put("alpha", "one");
    fkv_extent *e = extent_of("alpha");
    outcome o;
    p->between = pending;
    begin("alpha", &o);
    one_read();
    CHECK(!o.done);
    e->state = FKV_EXTENT_LIVE;
    finish_with(&o, "one");
    down();
}

TEST(torn_bytes_that_were_sent_along_fail_their_checksum) {
    follows();
    put("alpha", "forty letters or so, of which one is another");
    uint8_t *value = (uint8_t *)extent_of("alpha") + FKV_EXTENT_HEADER + 5;
    outcome o;
    begin("alpha", &o);
    value[20] ^= 0x20;
    one_read();
    value[20] ^= 0x20;
    CHECK(!o.done);
    finish_with(&o, "forty letters or so, of which one is another");
    CHECK_EQ(guest_stats(&c).torn, 1);
    down();
}

/* What lay in the buffer before makes the missing bytes good. */
TEST(less_than_the_extent_is_none) {
    follows();
    put("alpha", "as long as it takes to have more than one line");
    guest_expect(&c, "alpha", "as long as it takes to have more than one line");
    before = guest_stats(&c);
    p->next_cut = 8;
    guest_expect(&c, "alpha", "as long as it takes to have more than one line");
    CHECK_EQ(reads(), 2);
    CHECK_EQ(guest_stats(&c).retries, before.retries);
    down();
}

TEST(an_extent_larger_than_the_room_is_read_by_itself_and_the_next_comes_along) {
    follows();
    char large[3000];
    memset(large, 'l', sizeof large);
    large[2999] = 0;
    put("alpha", large);
    guest_expect(&c, "alpha", large);
    CHECK_EQ(reads(), 2);
    CHECK_EQ(followed(), 0);
    guest_expect(&c, "alpha", large);
    CHECK_EQ(reads(), 3);
    CHECK_EQ(followed(), 1);
    down();
}

/* Two keys of one bucket with the same fingerprint: among many keys there are two sooner than one like a given key. */
static void twins(char first[32], char second[32]) {
    enum { PLACES = 1 << 20 };
    typedef struct seen {
        uint64_t bucket_and_print;
        int number; /* of the key; 0: none */
    } seen;
    seen *place = calloc(PLACES, sizeof *place);
    CHECK(place != NULL);
    uint32_t buckets = c.l->shard[0].buckets;
    for (int i = 1;; i++) {
        int n = sprintf(second, "twin%d", i);
        lookup_key k = { .bytes = (const uint8_t *)second, .count = (uint32_t)n };
        uint64_t hash = lookup_hash(c.l, &k);
        uint64_t both = (uint64_t)fkv_bucket_of(fkv_hash_bucket_bits(hash), buckets) << 16 | fkv_hash_fingerprint(hash);
        seen *at = &place[both * 0x9e3779b97f4a7c15u >> 44];
        if (at->number && at->bucket_and_print == both) {
            sprintf(first, "twin%d", at->number);
            break;
        }
        *at = (seen){ both, i };
    }
    free(place);
}
TEST(an_extent_of_another_key_with_the_fingerprint_is_passed_over) {
    follows();
    char first[32], second[32];
    twins(first, second);
    put(first, "the first's");
    put(second, "the second's");
    guest_expect(&c, second, "the second's");
    guest_expect(&c, first, "the first's");
    CHECK_EQ(reads(), 3);
    CHECK_EQ(followed(), 2);
    CHECK_EQ(guest_stats(&c).retries, 0);
    down();
}

/* As for READs that were posted one by one: the lease is compared with the time after the completion. */
TEST(what_was_sent_along_is_not_returned_after_the_lease_has_run_out) {
    follows();
    put("alpha", "one");
    outcome o;
    begin("alpha", &o);
    puppet_complete(p, puppet_first(p));
    p->silent = true;
    puppet_time(p, p->lease_ns + 300 * MS);
    guest_settle(&c);
    CHECK(!o.done || o.status != FKV_OK);
    CHECK_EQ(guest_stats(&c).late, 1);
    p->silent = false;
    p->by_hand = false;
    pass(2000, &o.done);
    down();
}

TEST(a_location_that_came_along_is_learned) {
    p = puppet_new();
    lookup_config config = guest_config(&c, p);
    config.cached_locations = 1024;
    guest_open(&c, p, &config);
    guest_connect(&c);
    p->follows = true;
    put("alpha", "one");
    guest_expect(&c, "alpha", "one");
    before = guest_stats(&c);
    outcome o;
    begin("alpha", &o);
    CHECK_EQ(puppet_first(p)->r.next_bytes, 0); /* the extent itself */
    finish_with(&o, "one");
    CHECK_EQ(reads(), 1);
    CHECK_EQ(followed(), 0);
    CHECK_EQ(guest_stats(&c).location_hits, 1);
    down();
}

int main(int argc, char **argv) {
    RUN(a_get_whose_location_is_not_known_is_one_read);
    RUN(where_reads_are_not_followed_none_asks_for_it);
    RUN(an_extent_that_died_after_its_bucket_was_read_is_looked_for_again);
    RUN(a_pending_extent_that_was_sent_along_is_not_returned);
    RUN(torn_bytes_that_were_sent_along_fail_their_checksum);
    RUN(less_than_the_extent_is_none);
    RUN(an_extent_larger_than_the_room_is_read_by_itself_and_the_next_comes_along);
    RUN(an_extent_of_another_key_with_the_fingerprint_is_passed_over);
    RUN(what_was_sent_along_is_not_returned_after_the_lease_has_run_out);
    RUN(a_location_that_came_along_is_learned);
    return check_end(argc, argv);
}
