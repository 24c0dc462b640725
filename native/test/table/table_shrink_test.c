/* table_shrink_test.c: memory that entries have left goes back, and only then. */
#include "table_host.h"

static const uint64_t MIB = 1 << 20;
enum { N = 60000, VALUE = 300 };

static void fill(host *h, int from, int to) {
    for (int i = from; i < to; i++) {
        CHECK_EQ(host_put_number(h, i, VALUE), FKV_OK);
        if (i % 4000 == 0) host_pass(h, 10000000);
    }
}
static void delete_number(host *h, int i) {
    char key[32];
    int n = host_number_key(key, sizeof key, i);
    table_op op = host_op(h, TABLE_DELETE, key, (size_t)n, NULL, 0);
    CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
}
static void delete_all_but(host *h, int kept_of) {
    for (int i = 0; i < N; i++)
        if (!kept_of || i % kept_of != 0) delete_number(h, i);
}
static table_stats stats_of(host *h) {
    table_stats s;
    table_get_stats(h->t, &s);
    CHECK_EQ(s.heap_bytes, s.live_extent_bytes + s.prepared_bytes + s.overflow_bytes + s.quarantine_bytes +
                               s.slack_bytes + s.free_bytes);
    host_check(h);
    return s;
}
/* Until nothing is left to do, as a data plane ticks. */
static void settle(host *h) {
    for (int i = 0; i < 2000 && !table_resting(h->t); i++) host_pass(h, 100000000);
    CHECK(table_resting(h->t));
}

TEST(segments_that_became_empty_go_back) {
    host *h = host_open(64 * MIB, 0, 0);
    fill(h, 0, N);
    uint64_t before = stats_of(h).heap_bytes;
    delete_all_but(h, 0);
    settle(h);
    table_stats s = stats_of(h);
    CHECK(before > 20 * MIB && s.heap_bytes <= 3 * MIB / 2);
    CHECK_EQ(s.evacuated, 0);
    fill(h, 0, N / 4); /* and comes again */
    for (int i = 0; i < N / 4; i++) CHECK(host_has_number(h, i, VALUE));
    stats_of(h);
    host_close(h);
}

TEST(segments_with_a_little_left_are_emptied_until_little_is_free) {
    host *h = host_open(64 * MIB, 0, 0);
    fill(h, 0, N);
    uint64_t before = stats_of(h).heap_bytes;
    delete_all_but(h, 10);
    settle(h);
    table_stats s = stats_of(h);
    CHECK(s.evacuated > 0);
    CHECK(s.heap_bytes < before / 4);
    CHECK(s.free_bytes <= (s.heap_bytes - s.free_bytes) / 3 + MIB);
    for (int i = 0; i < N; i += 10) CHECK(host_has_number(h, i, VALUE));
    uint32_t buckets = table_buckets(h->t);
    char key[32];
    uint8_t value[VALUE];
    fkv_found found;
    for (int i = 0; i < N; i++) {
        host_number_key(key, sizeof key, i);
        CHECK_EQ(host_read(h, &buckets, key, value, sizeof value, &found), i % 10 ? HOST_MISS : HOST_HIT);
    }
    host_close(h);
}

TEST(what_is_deleted_and_comes_again_soon_moves_nothing) {
    host *h = host_open(64 * MIB, 0, 0);
    fill(h, 0, N);
    host_pass(h, 1000000000);
    CHECK_EQ(h->retired, 0);
    delete_all_but(h, 2);
    for (int i = 0; i < 3; i++) host_pass(h, 400000000); /* the quarantine counts from the first tick */
    CHECK(stats_of(h).free_bytes > 8 * MIB);
    for (int i = 1; i < N; i++)
        if (i % 2) CHECK_EQ(host_put_number(h, i, VALUE), FKV_OK);
    host_pass(h, 400000000);
    CHECK_EQ(h->retired, 0);
    CHECK_EQ(stats_of(h).evacuated, 0);
    host_close(h);
}

/* All lie in one segment, which is full. */
enum { BIG = 3000000, BIGS = 50 };
static void five_of_six_large_values_go(host *h) {
    size_t span = (fkv_class_units(fkv_class_of(FKV_EXTENT_HEADER + 16 + BIG)) * FKV_UNIT + 4095u) / 4096 * 4096;
    host_add(h, TABLE_HEAP, BIGS * span);
    uint8_t *value = calloc(1, BIG);
    char key[32];
    for (int i = 0; i < BIGS; i++) {
        int n = host_number_key(key, sizeof key, i);
        table_op op = host_op(h, TABLE_PUT, key, (size_t)n, value, BIG);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    }
    for (int i = 0; i < BIGS; i++) {
        if (i % 6 == 0) continue;
        int n = host_number_key(key, sizeof key, i);
        table_op op = host_op(h, TABLE_DELETE, key, (size_t)n, NULL, 0);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    }
    free(value);
    CHECK(stats_of(h).heap_bytes > BIGS * span);
}

TEST(growth_gives_nothing_back_and_a_table_with_nothing_to_empty_rests) {
    host *h = host_open(64 * MIB, 0, 0);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(host_put_number(h, i, VALUE), FKV_OK);
        if (i % 500 == 0) host_pass(h, 100000000);
    }
    settle(h);
    CHECK_EQ(h->retired, 0);
    host_close(h);
    h = host_open(512 * MIB, 0, 256 * MIB);
    five_of_six_large_values_go(h);
    settle(h);
    CHECK_EQ(stats_of(h).evacuated, 0);
    host_close(h);
}

/* Segments with values above 2 MiB are never emptied, so the table stays above its bound. One small value needs a new
 * segment whenever it is moved. */
TEST(a_table_that_passes_do_not_make_smaller_rests) {
    host *h = host_open(512 * MIB, 0, 256 * MIB);
    five_of_six_large_values_go(h);
    CHECK_EQ(host_put_number(h, BIGS, 1000), FKV_OK);
    settle(h);
    table_stats s = stats_of(h);
    CHECK(s.evacuated > 0 && s.free_bytes > 8 * MIB);
    host_close(h);
}

/* ---- memory files: pages go back with the last segment of a file ---- */

/* Of each 6,400 keys that came one after the other, 400 are left: in most files a segment is full, and the others are
 * empty. */
TEST(files_with_one_full_segment_are_emptied_as_a_whole) {
    enum { KEYS = 200000, RUN_KEYS = 400, KEPT_OF = 16 };
    host *h = host_open_files(512 * MIB, 256 * MIB, 16, MIB);
    fill(h, 0, KEYS);
    host_drain(h);
    uint64_t before = stats_of(h).heap_bytes;
    for (int i = 0; i < KEYS; i++)
        if (i / RUN_KEYS % KEPT_OF != 0) delete_number(h, i);
    settle(h);
    table_stats s = stats_of(h);
    uint64_t pages = s.heap_bytes + fkv_files_holes(h->files), used = s.heap_bytes - s.free_bytes;
    printf("# %llu of %llu KiB are left for %llu\n", (unsigned long long)pages >> 10, (unsigned long long)before >> 10,
           (unsigned long long)used >> 10);
    CHECK(pages <= used + used / 3 + MIB);
    for (int i = 0; i < KEYS; i++)
        if (i / RUN_KEYS % KEPT_OF == 0) CHECK(host_has_number(h, i, VALUE));
    host_check(h);
    host_close(h);
}

/* ---- values of many sizes: a span holds one size, so what one size gives up another one cannot take ---- */

typedef struct churn {
    host *h;
    uint64_t random;
    int keys;
    uint32_t value_most;
    uint8_t *value;
} churn;

static uint32_t any(churn *c, uint32_t below) {
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return (uint32_t)(c->random >> 11) % below;
}
static churn churn_open(uint64_t memory, int keys, uint32_t value_most) {
    return (churn){ host_open(memory, 0, 0), 88172645463325252u, keys, value_most, calloc(1, value_most) };
}
static void churn_close(churn *c) {
    free(c->value);
    host_close(c->h);
}
/* A change of any key, half of the values small ones, with 400 us between two. */
static void churn_step(churn *c, int i) {
    char key[32];
    int n = host_number_key(key, sizeof key, (int)any(c, (uint32_t)c->keys));
    uint32_t bytes = 1 + any(c, any(c, 2) ? c->value_most : c->value_most / 20);
    bool gone = any(c, 7) == 0;
    table_op op = host_op(c->h, gone ? TABLE_DELETE : TABLE_PUT, key, (size_t)n, c->value, gone ? 0 : bytes);
    fkv_status s = host_do_patiently(c->h, &op, NULL);
    CHECK(s == FKV_OK || (gone && s == FKV_NOT_FOUND));
    if (i % 5 == 0) host_pass(c->h, 2000000);
}
/* What a table at rest may have that is not in use. */
static void check_bound(const table_stats *s) { CHECK(s->free_bytes <= (s->heap_bytes - s->free_bytes) / 3 + MIB); }

TEST(a_table_of_many_sizes_seldom_asks_for_what_it_gave_back) {
    churn c = churn_open(256 * MIB, 500, 20000);
    for (int i = 0; i < 50000; i++) churn_step(&c, i);
    int before = c.h->retired;
    for (int i = 0; i < 50000; i++) churn_step(&c, i);
    printf("# %d segments retired in 20 s of changes, %d before\n", c.h->retired - before, before);
    CHECK(c.h->retired - before < 200);
    stats_of(c.h);
    churn_close(&c);
}

TEST(a_table_of_many_sizes_comes_to_rest_with_little_free_and_asks_for_nothing_more) {
    static const struct {
        int keys, changes;
        uint32_t value_most;
    } of[] = { { 500, 30000, 20000 }, { 2000, 20000, 60000 }, { 300, 4000, 1000000 } };
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++) {
        churn c = churn_open(1024 * MIB, of[k].keys, of[k].value_most);
        for (int i = 0; i < of[k].changes; i++) churn_step(&c, i);
        uint64_t from_ns = c.h->now_ns;
        settle(c.h);
        printf("# up to %u bytes: at rest after %.1f s\n", of[k].value_most, (double)(c.h->now_ns - from_ns) / 1e9);
        CHECK(c.h->now_ns - from_ns < 60000000000u);
        table_stats s = stats_of(c.h);
        check_bound(&s);
        int came = c.h->count;
        for (int i = 0; i < 100; i++) host_pass(c.h, 100000000);
        CHECK_EQ(c.h->count, came);
        churn_close(&c);
    }
}

/* What is free is in spans of one size; the next change has another one, and an empty segment waits for it. */
TEST(the_segment_that_the_next_change_needs_stays) {
    host *h = host_open(64 * MIB, 0, 0);
    fill(h, 0, N);
    delete_all_but(h, 3);
    int came = h->count;
    for (int i = N; h->count < came + 2; i++) CHECK_EQ(host_put_number(h, i, 1000), FKV_OK);
    came = h->count;
    settle(h);
    table_stats s = stats_of(h);
    check_bound(&s);
    printf("# %d segments came\n", h->count - came);
    CHECK(h->count - came < 5);
    host_close(h);
}

TEST(memory_goes_back_in_the_end_also_where_a_segment_comes_again_and_again) {
    host *h = host_open(64 * MIB, 0, 0);
    fill(h, 0, N);
    delete_all_but(h, 4);
    for (int i = 0; i < 5; i++) host_pass(h, 100000000);
    CHECK(stats_of(h).free_bytes > 8 * MIB);
    int retired = h->retired;
    uint64_t from_ns = h->now_ns;
    for (; h->now_ns - from_ns < 25000000000u; host_pass(h, 1500000000)) host_add(h, TABLE_HEAP, 64 << 10);
    CHECK_EQ(h->retired, retired);
    for (; h->now_ns - from_ns < 40000000000u;) {
        host_add(h, TABLE_HEAP, 64 << 10);
        host_pass(h, 1500000000);
        CHECK(!h->segments[h->count - 1].retired); /* whoever asked for it has not tried again */
    }
    CHECK(h->retired > retired);
    host_close(h);
}

int main(int argc, char **argv) {
    RUN(segments_that_became_empty_go_back);
    RUN(segments_with_a_little_left_are_emptied_until_little_is_free);
    RUN(what_is_deleted_and_comes_again_soon_moves_nothing);
    RUN(growth_gives_nothing_back_and_a_table_with_nothing_to_empty_rests);
    RUN(a_table_of_many_sizes_seldom_asks_for_what_it_gave_back);
    RUN(a_table_of_many_sizes_comes_to_rest_with_little_free_and_asks_for_nothing_more);
    RUN(a_table_that_passes_do_not_make_smaller_rests);
    RUN(files_with_one_full_segment_are_emptied_as_a_whole);
    RUN(the_segment_that_the_next_change_needs_stays);
    RUN(memory_goes_back_in_the_end_also_where_a_segment_comes_again_and_again);
    return check_end(argc, argv);
}
