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
static void delete_all_but(host *h, int kept_of) {
    char key[32];
    for (int i = 0; i < N; i++) {
        if (kept_of && i % kept_of == 0) continue;
        int n = host_number_key(key, sizeof key, i);
        table_op op = host_op(h, TABLE_DELETE, key, (size_t)n, NULL, 0);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    }
}
static table_stats stats_of(host *h) {
    table_stats s;
    table_get_stats(h->t, &s);
    CHECK_EQ(s.heap_bytes, s.live_extent_bytes + s.prepared_bytes + s.overflow_bytes + s.quarantine_bytes + s.slack_bytes + s.free_bytes);
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
    fill(h, 0, N / 4);    /* and comes again */
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
    for (int i = 0; i < 3; i++) host_pass(h, 400000000);    /* the quarantine counts from the first tick */
    CHECK(stats_of(h).free_bytes > 8 * MIB);
    for (int i = 1; i < N; i++) if (i % 2) CHECK_EQ(host_put_number(h, i, VALUE), FKV_OK);
    host_pass(h, 400000000);
    CHECK_EQ(h->retired, 0);
    CHECK_EQ(stats_of(h).evacuated, 0);
    host_close(h);
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
    /* Five of six large values go: their segments are never emptied. */
    enum { BIG = 300000, BIGS = 50 };
    h = host_open(64 * MIB, 0, 32 * MIB);
    host_add(h, TABLE_HEAP, 16 * MIB);    /* where all of them lie */
    uint8_t *value = calloc(1, BIG);
    char key[32];
    for (int i = 0; i < BIGS; i++) {
        table_op op = host_op(h, TABLE_PUT, key, (size_t)host_number_key(key, sizeof key, i), value, BIG);
        op.hash = host_hash(h, 0, key, op.key_bytes);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    }
    for (int i = 0; i < BIGS; i++) {
        if (i % 6 == 0) continue;
        int n = host_number_key(key, sizeof key, i);
        table_op op = host_op(h, TABLE_DELETE, key, (size_t)n, NULL, 0);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    }
    settle(h);
    CHECK_EQ(stats_of(h).evacuated, 0);
    CHECK(stats_of(h).free_bytes > 8 * MIB);
    free(value);
    host_close(h);
}

int main(int argc, char **argv) {
    RUN(segments_that_became_empty_go_back);
    RUN(segments_with_a_little_left_are_emptied_until_little_is_free);
    RUN(what_is_deleted_and_comes_again_soon_moves_nothing);
    RUN(growth_gives_nothing_back_and_a_table_with_nothing_to_empty_rests);
    return check_end(argc, argv);
}
