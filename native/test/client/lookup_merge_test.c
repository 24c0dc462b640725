/* lookup_merge_test.c: GETs of a client whose idea of the number of buckets is too high or too low while buckets are
 * merged, at exact moments between the words of a READ (guest_steps.h). */
#include "../table/index_steps.h"
#include "guest_steps.h"

/* A table with one bucket more than its first segment holds: the last one, number FIRST, is the other half of bucket 0.
 * */
enum { FIRST = 512 };
static char there[32]; /* a key of the last bucket */

static void more_buckets(int n) {
    host_add(p->h, TABLE_INDEX, 64 << 10);
    for (int i = 0; i < n; i++) CHECK(index_split(p->h));
}
static void key_of_the_last(void) {
    uint32_t last = table_buckets(p->h->t) - 1;
    int i = 0;
    do snprintf(there, sizeof there, "k%d", i++);
    while (fkv_bucket_of(fkv_hash_bucket_bits(host_hash(p->h, 0, there, strlen(there))), last + 1) != last);
}
static void settle(void) {
    puppet_pass(p, MS);
    puppet_pass(p, 400 * MS);
    table_stats s;
    table_get_stats(p->h->t, &s);
    CHECK_EQ(s.moving, 0);
}
static void up_grown(int more) {
    p = puppet_new();
    CHECK_EQ(table_buckets(p->h->t), FIRST);
    more_buckets(more);
    key_of_the_last();
    put(there, "one");
    settle();
    guest_up(&c, p);
    p->lease_ns = 60000 * MS;
    CHECK_EQ(c.l->shard[0].buckets, FIRST + (uint32_t)more);
}
static uint8_t *bucket_in_table(uint32_t number) {
    uint32_t tag;
    return (uint8_t *)(uintptr_t)host_bucket(p->h, number, &tag);
}

/* The words of a READ have no order: the slots here are of before the merge, word 0 is of after it. */
TEST(slots_of_before_a_merge_with_the_word_of_after_it_make_no_miss) {
    up_grown(1);
    outcome o;
    fkv_bucket before;
    memcpy(&before, bucket_in_table(0), sizeof before);
    CHECK(index_merge(p->h));
    c.l->shard[0].buckets = FIRST;
    begin(there, &o);
    puppet_read *r = puppet_first(p);
    puppet_complete(p, r);
    memcpy(((fkv_bucket *)r->r.local)->slot, before.slot, sizeof before.slot);
    guest_settle(&c);
    CHECK(!o.done);
    one_read(); /* the bucket once more */
    CHECK(!o.done);
    finish_with(&o, "one");
    CHECK(p->gets == 0 && guest_stats(&c).retries == 0);
    down();
}
/* The same for a bucket whose number was in use before. */
TEST(slots_of_before_a_split_that_uses_a_number_again_make_no_miss) {
    up_grown(1);
    outcome o;
    fkv_bucket before;
    CHECK(index_merge(p->h));
    settle();
    memcpy(&before, bucket_in_table(FIRST), sizeof before);
    CHECK(index_split(p->h));
    begin(there, &o);
    puppet_read *r = puppet_first(p);
    puppet_complete(p, r);
    memcpy(((fkv_bucket *)r->r.local)->slot, before.slot, sizeof before.slot);
    guest_settle(&c);
    CHECK(!o.done);
    finish_with(&o, "one");
    CHECK(p->gets == 0 && guest_stats(&c).retries == 0);
    down();
}
TEST(a_miss_in_a_settling_bucket_takes_one_read_more_and_no_retry) {
    up_grown(1);
    CHECK_EQ(host_delete(p->h, there), FKV_OK);
    CHECK(index_merge(p->h));
    c.l->shard[0].buckets = FIRST;
    uint64_t reads = guest_stats(&c).reads;
    CHECK_EQ(guest_get(&c, there).status, FKV_NOT_FOUND);
    CHECK(guest_stats(&c).reads == reads + 2 && guest_stats(&c).retries == 0);
    settle();
    CHECK_EQ(guest_get(&c, there).status, FKV_NOT_FOUND);
    CHECK_EQ(guest_stats(&c).reads, reads + 3);
    down();
}
TEST(a_client_that_knows_too_many_buckets_goes_where_they_were_merged) {
    up_grown(300);
    while (table_buckets(p->h->t) > FIRST) CHECK(index_merge(p->h));
    guest_expect(&c, there, "one");
    CHECK(c.l->shard[0].buckets < FIRST + 300);
    for (int i = 0; i < 50; i++) {
        char key[32];
        snprintf(key, sizeof key, "other %d", i);
        put_and_get(key, "two");
    }
    settle();
    c.l->shard[0].buckets = FIRST + 300;
    guest_expect(&c, there, "one");
    CHECK(p->gets == 0 && guest_stats(&c).retries == 0 && guest_stats(&c).foreign == 0);
    down();
}
/* Two buckets that send readers to each other: memory that is not what the layout says, or a lie. */
static void lie(void) {
    uint32_t tag, level = 10;
    host_bucket(p->h, 0, &tag);
    uint64_t word0 = fkv_bucket_word0(tag, level, 0);
    memcpy(bucket_in_table(0), &word0, sizeof word0);
    host_bucket(p->h, FIRST, &tag);
    word0 = fkv_bucket_word0(tag, level, FKV_BUCKET_MERGED);
    memcpy(bucket_in_table(FIRST), &word0, sizeof word0);
}
TEST(buckets_that_send_a_reader_to_each_other_end_at_the_owner) {
    up_grown(1);
    lie();
    uint64_t reads = guest_stats(&c).reads;
    guest_expect(&c, there, "one");
    CHECK_EQ(p->gets, 1);
    CHECK(guest_stats(&c).reads - reads <= FKV_BUCKET_STEPS + 2);
    down();
}
TEST(buckets_that_send_a_reader_to_each_other_end_a_look_in_place) {
    p = puppet_new();
    p->direct = true;
    more_buckets(1);
    key_of_the_last();
    settle();
    guest_up(&c, p);
    lookup_key k = { .bytes = (const uint8_t *)there, .count = (uint32_t)strlen(there) };
    lookup_result r;
    uint8_t value[16];
    CHECK(lookup_direct(c.l, &k, value, sizeof value, &r) && r.status == FKV_NOT_FOUND);
    lie();
    CHECK(!c.l->shard[0].outdated);
    CHECK(!lookup_direct(c.l, &k, value, sizeof value, &r));
    CHECK(c.l->shard[0].outdated); /* its GETs ask for the layout first */
    down();
}
TEST(a_look_in_place_finds_what_a_merge_moved) {
    p = puppet_new();
    p->direct = true;
    more_buckets(1);
    key_of_the_last();
    put(there, "one");
    settle();
    guest_up(&c, p);
    lookup_key k = { .bytes = (const uint8_t *)there, .count = (uint32_t)strlen(there) };
    lookup_result r;
    uint8_t value[16];
    for (int i = 0; i < 3; i++) { /* the old slots are there; they are cleared; the number is known to be too high */
        if (i == 0) CHECK(index_merge(p->h));
        if (i == 1) settle();
        CHECK(lookup_direct(c.l, &k, value, sizeof value, &r) && r.status == FKV_OK && r.value_bytes == 3);
    }
    CHECK_EQ(c.l->shard[0].buckets, FIRST);
    CHECK_EQ(host_delete(p->h, there), FKV_OK);
    for (int settled = 1; settled >= 0; settled--) { /* a miss in a settling bucket is looked for once more */
        CHECK(lookup_direct(c.l, &k, value, sizeof value, &r)); /* after a rest it looks twice */
        uint64_t reads = guest_stats(&c).reads;
        CHECK(lookup_direct(c.l, &k, value, sizeof value, &r) && r.status == FKV_NOT_FOUND);
        CHECK_EQ(guest_stats(&c).reads - reads, settled ? 2 : 3);
        if (settled) CHECK(index_split(p->h) && (settle(), index_merge(p->h)));
    }
    down();
}

/* ---- index segments that are gone ---- */

/* Its memory is deregistered, as it is when no lease is left that was granted before. */
static void retire(void) {
    while (table_buckets(p->h->t) > FIRST) CHECK(index_merge(p->h));
    settle();
    CHECK(p->h->index_retired == 1 || index_retire(p->h));
}
TEST(a_client_that_comes_back_reads_nothing_by_an_outdated_layout) {
    p = puppet_new();
    more_buckets(300);
    key_of_the_last();
    put(there, "one");
    settle();
    guest_up(&c, p);
    puppet_pass(p, 2 * p->lease_ns);
    retire();
    puppet_register(p);
    uint64_t layouts = p->layouts;
    CHECK_EQ(c.l->shard[0].buckets, FIRST + 300);
    guest_expect(&c, there, "one");
    CHECK_EQ(p->layouts, layouts + 1);
    CHECK(c.disconnected == 0 && guest_stats(&c).retries == 0);
    CHECK_EQ(c.l->shard[0].layout->capacity, FIRST);
    down();
}
TEST(under_the_lease_of_before_the_index_is_read_while_the_layout_is_asked_for) {
    p = puppet_new();
    more_buckets(300);
    key_of_the_last();
    put(there, "one");
    settle();
    p->lease_ns = 10000 * MS;
    guest_up(&c, p);
    puppet_pass(p, p->lease_ns * 6 / 10);
    retire(); /* and it stays registered */
    outcome o;
    guest_start(&c, "alpha", 900, &o); /* asks for the lease, which tells of the new layout */
    guest_settle(&c);
    CHECK(o.done && c.l->shard[0].outdated);
    p->silent = true;
    guest_expect(&c, there, "one");
    puppet_pass(p, c.l->shard[0].index_until - p->now_ns);
    begin(there, &o);
    CHECK(puppet_first(p) == NULL && !o.done); /* by now it may be gone */
    p->silent = p->by_hand = false;
    layout_drop(c.l, 0);
    down();
}

int main(int argc, char **argv) {
    RUN(slots_of_before_a_merge_with_the_word_of_after_it_make_no_miss);
    RUN(slots_of_before_a_split_that_uses_a_number_again_make_no_miss);
    RUN(a_miss_in_a_settling_bucket_takes_one_read_more_and_no_retry);
    RUN(a_client_that_knows_too_many_buckets_goes_where_they_were_merged);
    RUN(buckets_that_send_a_reader_to_each_other_end_at_the_owner);
    RUN(buckets_that_send_a_reader_to_each_other_end_a_look_in_place);
    RUN(a_look_in_place_finds_what_a_merge_moved);
    RUN(a_client_that_comes_back_reads_nothing_by_an_outdated_layout);
    RUN(under_the_lease_of_before_the_index_is_read_while_the_layout_is_asked_for);
    return check_end(argc, argv);
}
