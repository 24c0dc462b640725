/* table_merge_test.c: buckets are merged, one at a time: each rule of layout.h by itself, with the table's internal
 * functions. table_index_test.c has the index as a whole; table_model_test.c and table_concurrent_test.c put all
 * together.
 */
#include "../../table/internal.h"
#include "table_host.h"
#include <stdio.h>

static const uint64_t MIB = 1 << 20;
enum { QUARANTINE = 400000000 };

static host *open_with(uint32_t more_buckets) {
    host *h = host_open(16 << 20, 0, 0);
    host_pass(h, SHRINK_AFTER_NS); /* so that a segment may have come so long ago */
    host_add(h, TABLE_INDEX, 64 << 10);
    for (uint32_t i = 0; i < more_buckets; i++) CHECK(table_split(h->t));
    return h;
}
/* What waits in quarantine is done. */
static void settle(host *h) {
    host_pass(h, 0);
    host_pass(h, QUARANTINE);
    CHECK_EQ(h->t->moving_now, 0);
}
/* The next key, from *i on, of a bucket. */
static void key_in(const host *h, uint32_t number, int *i, char key[32]) {
    do snprintf(key, 32, "k%d", (*i)++);
    while (fkv_bucket_of(fkv_hash_bucket_bits(host_hash(h, 0, key, strlen(key))), table_buckets(h->t)) != number);
}
static fkv_bucket copy_of(const host *h, uint32_t number) {
    fkv_bucket b;
    uint32_t tag;
    fkv_bucket_copy(host_bucket(h, number, &tag), &b);
    return b;
}
static fkv_bucket_state state_of(const host *h, const fkv_bucket *b, uint32_t number, const char *key) {
    uint32_t tag, buckets = table_buckets(h->t);
    host_bucket(h, number, &tag);
    return fkv_bucket_check(b, tag, number, fkv_hash_bucket_bits(host_hash(h, 0, key, strlen(key))), &buckets);
}
static host_answer read_from(const host *h, fkv_bucket b, const char *key) {
    char value[32];
    fkv_found found;
    return host_read_from(h, b, key, value, sizeof value, &found);
}
static bool reads(const host *h, uint32_t buckets, const char *key) {
    char value[32];
    fkv_found found;
    return host_read(h, &buckets, key, value, sizeof value, &found) == HOST_HIT;
}

/* The last index segment, whenever it came. */
static bool retires(host *h) {
    h->t->index[h->t->index_segments - 1].came_ns = 0;
    return table_retire_index(h->t);
}

/* ---- what readers see ---- */

/* A table of 513 buckets: the last one, 512, is merged into bucket 0. */
TEST(a_reader_of_any_age_finds_what_a_merge_moved) {
    host *h = open_with(1);
    char here[32], there[32];
    int i = 0;
    key_in(h, 0, &i, here);
    key_in(h, 512, &i, there);
    CHECK(host_put(h, here, "stays") == FKV_OK && host_put(h, there, "moves") == FKV_OK);
    settle(h);
    fkv_bucket old_b = copy_of(h, 0), old_image = copy_of(h, 512);
    CHECK(table_merge(h->t));
    CHECK_EQ(table_buckets(h->t), 512);
    host_check(h);
    fkv_bucket b = copy_of(h, 0), image = copy_of(h, 512);
    CHECK(!retires(h)); /* the segment that bucket 512 is alone in */

    CHECK_EQ(state_of(h, &image, 512, there), FKV_BUCKET_ELSEWHERE);
    CHECK_EQ(state_of(h, &b, 0, there), FKV_BUCKET_AGAIN);
    CHECK(read_from(h, b, there) == HOST_HIT && read_from(h, b, here) == HOST_HIT);
    for (uint32_t known = 512; known <= 1024; known *= 2) CHECK(reads(h, known, there) && reads(h, known, here));
    /* READs that were under way. An old word 0 of b sends the reader on. An old word 0 of b' comes with its slots,
     * which stay as they are. Slots of b of before the copy come with the mark at most. */
    fkv_bucket late = old_b;
    late.word0 = b.word0;
    CHECK_EQ(state_of(h, &late, 0, there), FKV_BUCKET_AGAIN);
    CHECK_EQ(read_from(h, late, there), HOST_MISS);
    late = image;
    late.word0 = old_image.word0;
    CHECK_EQ(read_from(h, late, there), HOST_HIT);
    host_pass(h, 0);
    host_pass(h, QUARANTINE / 2);
    late = copy_of(h, 512);
    late.word0 = old_image.word0;
    CHECK_EQ(read_from(h, late, there), HOST_HIT);
    late = copy_of(h, 0);
    CHECK_EQ(state_of(h, &late, 0, there), FKV_BUCKET_AGAIN);

    settle(h);
    b = copy_of(h, 0);
    image = copy_of(h, 512);
    CHECK_EQ(state_of(h, &b, 0, there), FKV_BUCKET_HERE);
    CHECK_EQ(state_of(h, &image, 512, there), FKV_BUCKET_ELSEWHERE);
    for (int k = 0; k < FKV_SLOTS; k++) CHECK_EQ(image.slot[k], 0);
    host_check(h);
    CHECK(retires(h));
    host_check(h);
    host_close(h);
}

/* A reader whose B is too high may have a READ of the bucket under way that a split publishes again: word 0 of after
 * it, slots of before. */
static void published_again(bool in_new_memory) {
    host *h = open_with(1);
    char key[32];
    int i = 0;
    key_in(h, 512, &i, key);
    CHECK_EQ(host_put(h, key, "value"), FKV_OK);
    settle(h);
    CHECK(table_merge(h->t));
    settle(h);
    if (in_new_memory) {
        host_pass(h, SHRINK_AFTER_NS);
        host_pass(h, SHRINK_AFTER_NS);
        CHECK_EQ(h->index_retired, 1);
        host_add(h, TABLE_INDEX, 64 << 10);
    }
    fkv_bucket late = copy_of(h, 512);
    CHECK(table_split(h->t));
    late.word0 = copy_of(h, 512).word0;
    CHECK_EQ(state_of(h, &late, 512, key), FKV_BUCKET_AGAIN);
    CHECK_EQ(read_from(h, late, key), HOST_MISS);
    CHECK(reads(h, 512, key) && reads(h, 1024, key));
    /* it may be split further before it has settled */
    while (table_buckets(h->t) <= 1024) CHECK(table_split(h->t) || (host_add(h, TABLE_INDEX, 64 << 10), true));
    while (table_buckets(h->t) <= 1536) CHECK(table_split(h->t) || (host_add(h, TABLE_INDEX, 64 << 10), true));
    CHECK_EQ(fkv_bucket_marks(copy_of(h, 512).word0), FKV_BUCKET_SETTLING);
    CHECK_EQ(fkv_bucket_marks(copy_of(h, 513).word0), 0);
    host_check(h);
    settle(h);
    CHECK_EQ(fkv_bucket_marks(copy_of(h, 512).word0), 0);
    CHECK(reads(h, 512, key));
    host_check(h);
    host_close(h);
}
TEST(a_bucket_whose_number_was_in_use_before_settles) { published_again(false); }
TEST(a_bucket_whose_number_was_in_use_before_settles_in_new_memory_too) { published_again(true); }

TEST(a_lookup_goes_down_level_by_level_and_needs_few_steps) {
    for (uint32_t most = 1; most < 1u << 30; most = most * 3 + 1) {
        for (uint64_t hash = 5; hash <= UINT32_MAX; hash = hash * 7 / 4) {
            uint32_t bits = (uint32_t)hash, buckets = most, number = fkv_bucket_of(bits, buckets), steps = 0;
            for (; number > 0; steps++) { /* all are merged but bucket 0 */
                fkv_bucket merged = { .word0 = fkv_bucket_word0(7, 31u - (uint32_t)__builtin_clz(number) + 1,
                                                                FKV_BUCKET_MERGED) };
                CHECK_EQ(fkv_bucket_check(&merged, 7, number, bits, &buckets), FKV_BUCKET_ELSEWHERE);
                uint32_t next = fkv_bucket_of(bits, buckets);
                CHECK(next < number && buckets <= number);
                number = next;
            }
            CHECK(steps <= 31);
        }
    }
    uint32_t buckets = 4;
    fkv_bucket liar = { .word0 = fkv_bucket_word0(7, 2, FKV_BUCKET_MERGED) };
    CHECK_EQ(fkv_bucket_check(&liar, 7, 0, 0, &buckets), FKV_BUCKET_FOREIGN);
    liar.word0 = fkv_bucket_word0(7, 33, FKV_BUCKET_SETTLING);
    CHECK_EQ(fkv_bucket_check(&liar, 7, 1, 1, &buckets), FKV_BUCKET_FOREIGN);
}

/* ---- when buckets are merged ---- */

TEST(a_number_is_not_used_again_before_its_bucket_is_cleared) {
    host *h = open_with(1);
    char key[32];
    int i = 0;
    key_in(h, 512, &i, key);
    CHECK_EQ(host_put(h, key, "value"), FKV_OK);
    settle(h);
    CHECK(table_merge(h->t));
    CHECK(!table_split(h->t));
    host_check(h);
    settle(h);
    CHECK(table_split(h->t));
    settle(h);
    CHECK(host_has(h, key, "value"));
    host_check(h);
    host_close(h);
}
/* The cleared slots of a moved entry would be those that the merge has just filled, and two merges would end in one
 * mark. */
TEST(a_bucket_is_not_merged_while_slots_move_or_while_it_settles) {
    host *h = open_with(1);
    char key[32];
    int i = 0;
    key_in(h, 512, &i, key);
    CHECK_EQ(host_put(h, key, "value"), FKV_OK);
    settle(h);
    CHECK(table_merge(h->t));
    settle(h);
    CHECK(table_split(h->t));
    CHECK(h->t->moving[0] == 1 && h->t->moving[512] == 1);
    CHECK(!table_merge(h->t));
    settle(h);
    CHECK(table_merge(h->t));
    settle(h);
    CHECK(host_has(h, key, "value"));
    host_check(h);
    host_close(h);
}
/* Between prepare and commit the slot that is kept for an insert goes to another bucket, and so does a slot that will
 * be replaced. */
TEST(a_prepared_change_is_committed_where_a_merge_put_its_slot) {
    host *h = open_with(1);
    char key[3][32];
    int i = 0;
    table_prepared p[3];
    uint64_t present;
    table_busy why;
    for (int k = 0; k < 3; k++) key_in(h, 512, &i, key[k]);
    CHECK_EQ(host_put(h, key[0], "before"), FKV_OK);
    settle(h);
    for (int k = 0; k < 3; k++) {
        table_op op = host_op(h, TABLE_PUT, key[k], strlen(key[k]), "after", 5);
        CHECK_EQ(table_prepare(h->t, &op, &p[k], &present, &why), FKV_OK);
    }
    CHECK(table_merge(h->t));
    host_check(h);
    table_commit(h->t, &p[0]);
    table_commit(h->t, &p[1]);
    table_abort(h->t, &p[2]);
    host_check(h);
    settle(h);
    CHECK(host_has(h, key[0], "after") && host_has(h, key[1], "after") && !host_has(h, key[2], "after"));
    host_check(h);
    host_close(h);
}
/* Fills a bucket until its chain has so many buckets; returns how many keys that took. */
static int fill_chain(host *h, uint32_t number, uint32_t length, int *i, char (*key)[32]) {
    int n = 0;
    for (; h->t->overflow_buckets < length - 1; n++) {
        key_in(h, number, i, key[n]);
        CHECK_EQ(host_put(h, key[n], "value"), FKV_OK);
    }
    return n;
}
TEST(chains_are_merged_and_the_old_one_can_be_read_until_the_quarantine_has_passed) {
    host *h = open_with(1);
    static char key[64][32], more[64][32];
    int i = 0, n = fill_chain(h, 512, 3, &i, key), few = 10;
    for (int k = 0; k < few; k++) {
        key_in(h, 0, &i, more[k]);
        CHECK_EQ(host_put(h, more[k], "value"), FKV_OK);
    }
    settle(h);
    fkv_bucket held = copy_of(h, 512);
    CHECK(table_merge(h->t));
    host_check(h);
    CHECK(h->t->overflow_buckets == 2 && h->t->quarantined_of[FKV_CLASS_BUCKET] == 2);
    for (int k = 0; k < n; k++) CHECK(read_from(h, held, key[k]) == HOST_HIT && reads(h, 1024, key[k]));
    for (int k = 0; k < n; k++) CHECK_EQ(host_put(h, key[k], "again"), FKV_OK);
    for (int k = 0; k < n; k++) CHECK_EQ(read_from(h, held, key[k]), HOST_AGAIN);
    settle(h);
    CHECK_EQ(h->t->quarantined_of[FKV_CLASS_BUCKET], 0);
    for (int k = 0; k < n; k++) CHECK(host_has(h, key[k], "again"));
    for (int k = 0; k < few; k++) CHECK(host_has(h, more[k], "value"));
    host_check(h);
    host_close(h);
}
TEST(chains_that_are_too_long_together_are_not_merged_and_nothing_is_lost_by_trying) {
    host *h = open_with(1);
    host_add(h, TABLE_HEAP, MIB);
    static char key[256][32];
    int i = 0, n = fill_chain(h, 512, 6, &i, key);
    n += fill_chain(h, 0, 11, &i, key + n);
    settle(h);
    uint64_t reserved = h->t->delay[0].reserved, overflow = h->t->overflow_buckets;
    CHECK(!table_merge(h->t));
    CHECK(h->t->delay[0].reserved == reserved && h->t->overflow_buckets == overflow);
    CHECK_EQ(table_buckets(h->t), 513);
    for (int k = 0; k < n; k++) CHECK(host_has(h, key[k], "value"));
    host_check(h);
    host_close(h);
}
/* It cannot grow by splitting the bucket whose number is still to be cleared: that is not for long, so it is not full.
 * */
TEST(a_chain_that_is_full_while_a_split_waits_is_busy_and_not_full) {
    host *h = open_with(1);
    host_add(h, TABLE_HEAP, MIB);
    char key[32];
    int i = 0;
    table_busy why;
    settle(h);
    CHECK(table_merge(h->t));
    h->t->entries += 4096; /* so many, in other buckets */
    for (int n = 0; n < FKV_CHAIN_MAX * FKV_SLOTS; n++) {
        key_in(h, 7, &i, key);
        CHECK_EQ(host_put(h, key, "value"), FKV_OK);
    }
    key_in(h, 7, &i, key);
    table_op op = host_op(h, TABLE_PUT, key, strlen(key), "value", 5);
    CHECK(host_do(h, &op, NULL, &why) == FKV_BUSY && why == TABLE_BUSY_QUARANTINE);
    h->t->entries -= 4096;
    host_check(h);
    host_close(h);
}

/* Nor is it while the segment for the next bucket is on its way. */
TEST(a_chain_that_is_full_while_the_index_waits_for_a_segment_is_busy_and_not_full) {
    host *h = host_open(16 << 20, 0, 0);
    host_add(h, TABLE_HEAP, MIB);
    char key[32];
    int i = 0;
    table_busy why;
    table_prepared p;
    uint64_t present;
    for (int n = 0; n < FKV_CHAIN_MAX * FKV_SLOTS; n++) {
        key_in(h, 7, &i, key);
        CHECK_EQ(host_put(h, key, "value"), FKV_OK);
    }
    h->t->entries += 4096; /* so many, in other buckets */
    key_in(h, 7, &i, key);
    table_op op = host_op(h, TABLE_PUT, key, strlen(key), "value", 5);
    for (int n = 0; n < 2; n++)
        CHECK(table_prepare(h->t, &op, &p, &present, &why) == FKV_BUSY && why == TABLE_BUSY_SEGMENT);
    h->refuse = true;
    host_serve(h);
    CHECK_EQ(table_prepare(h->t, &op, &p, &present, &why), FKV_TABLE_FULL);
    h->t->entries -= 4096;
    host_check(h);
    host_close(h);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    RUN(a_reader_of_any_age_finds_what_a_merge_moved);
    RUN(a_bucket_whose_number_was_in_use_before_settles);
    RUN(a_bucket_whose_number_was_in_use_before_settles_in_new_memory_too);
    RUN(a_lookup_goes_down_level_by_level_and_needs_few_steps);
    RUN(a_number_is_not_used_again_before_its_bucket_is_cleared);
    RUN(a_bucket_is_not_merged_while_slots_move_or_while_it_settles);
    RUN(a_prepared_change_is_committed_where_a_merge_put_its_slot);
    RUN(chains_are_merged_and_the_old_one_can_be_read_until_the_quarantine_has_passed);
    RUN(chains_that_are_too_long_together_are_not_merged_and_nothing_is_lost_by_trying);
    RUN(a_chain_that_is_full_while_a_split_waits_is_busy_and_not_full);
    RUN(a_chain_that_is_full_while_the_index_waits_for_a_segment_is_busy_and_not_full);
    return check_end(argc, argv);
}
