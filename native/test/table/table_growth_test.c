/* table_growth_test.c: buckets, chains, segments and scans while a table grows and shrinks. */
#include "table_host.h"
#include "../../table/internal.h"

#ifdef __SANITIZE_THREAD__ /* one thread here: nothing to be found, and slow */
enum { MANY = 40000 };
#else
enum { MANY = 150000 };
#endif
static const uint64_t MIB = 1 << 20;

TEST(a_table_grows_bucket_by_bucket_and_stays_whole) {
    host *h = host_open(64 * MIB, 0, 0);
    enum { N = MANY };
    uint32_t old_buckets = table_buckets(h->t);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(host_put_number(h, i, 8), FKV_OK);
        if (i % 20000 == 0) {
            host_pass(h, 10000000);
            host_check(h);
        }
    }
    table_stats s;
    table_get_stats(h->t, &s);
    CHECK(s.longest_chain <= 6);
    CHECK(!table_resting(h->t) && s.moving > 0);
    host_drain(h);
    host_check(h);
    /* a chain is shortened from its end, step by step */
    for (int i = 0; i < 20 && !table_resting(h->t); i++) host_drain(h);
    CHECK(table_resting(h->t));
    table_get_stats(h->t, &s);
    CHECK_EQ(s.moving, 0);
    CHECK(s.buckets > N / 8 && s.buckets < N / 7);
    CHECK(s.overflow_buckets < s.buckets / 8);
    for (int i = 0; i < N; i++) {
        CHECK(host_has_number(h, i, 8));
        char key[32];
        host_number_key(key, sizeof key, i);
        uint8_t value[8];
        fkv_found found;
        uint32_t buckets = i % 2 ? old_buckets : table_buckets(h->t);
        CHECK_EQ(host_read(h, &buckets, key, value, 8, &found), HOST_HIT);
    }
    host_close(h);
}
/* A READ has no order within a bucket. The reader has loaded a header, then the table grows for a whole GET's life,
 * then the reader loads the slots; or it has loaded the whole bucket, and goes on to the rest of the chain. */
TEST(a_reader_that_holds_an_old_header_never_misses_a_key) {
    host *h = host_open(16 * MIB, 0, 0);
    enum { BEFORE = 3800, AFTER = 60000 };
    uint32_t buckets = table_buckets(h->t), tag;
    for (int i = 0; i < BEFORE; i++) CHECK_EQ(host_put_number(h, i, 8), FKV_OK);
    CHECK_EQ(table_buckets(h->t), buckets);
    fkv_bucket *held = calloc(BEFORE, sizeof *held);
    uint32_t *number = calloc(BEFORE, sizeof *number);
    char key[32];
    for (int i = 0; i < BEFORE; i++) {
        int n = host_number_key(key, sizeof key, i);
        number[i] = fkv_bucket_of(fkv_hash_bucket_bits(host_hash(h, 0, key, (size_t)n)), buckets);
        fkv_bucket_copy(host_bucket(h, number[i], &tag), &held[i]);
    }
    table_busy why;
    for (int i = 0; i < AFTER; i++) {
        int n = host_number_key(key, sizeof key, BEFORE + i);
        table_op op = host_op(h, TABLE_PUT, key, (size_t)n, "tttttttt", 8);
        CHECK_EQ(host_do(h, &op, NULL, &why), FKV_OK);
        if (i % 600 == 0) host_pass(h, FKV_GET_LIFE_NS / (AFTER / 600));
    }
    CHECK(table_buckets(h->t) > 8 * buckets);
    uint8_t value[8];
    fkv_found found;
    for (int i = 0; i < BEFORE; i++) {
        fkv_bucket late;
        fkv_bucket_copy(host_bucket(h, number[i], &tag), &late);
        late.word0 = held[i].word0;
        host_number_key(key, sizeof key, i);
        CHECK_EQ(host_read_from(h, late, key, value, 8, &found), HOST_HIT);
        CHECK_EQ(host_read_from(h, held[i], key, value, 8, &found), HOST_HIT);
    }
    free(held);
    free(number);
    host_close(h);
}
TEST(chains_shorten_when_keys_go) {
    host *h = host_open(16 * MIB, 0, 0);
    host_add(h, TABLE_HEAP, MIB);
    h->refuse = true; /* no more index: chains must take what comes */
    int n = 0;
    while (n < 20000 && host_put_number(h, n, 8) == FKV_OK) n++;
    table_stats s;
    table_get_stats(h->t, &s);
    CHECK(s.overflow_buckets > 100 && s.longest_chain > 2);
    host_check(h);
    char key[32];
    for (int i = 0; i < n; i++) {
        if (i % 8 == 0) continue;
        int k = host_number_key(key, sizeof key, i);
        table_op op = host_op(h, TABLE_DELETE, key, (size_t)k, NULL, 0);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
        if (i % 1000 == 0) host_check(h);
    }
    host_drain(h);
    table_get_stats(h->t, &s);
    CHECK(s.overflow_buckets <= 5);
    for (int i = 0; i < n; i += 8) CHECK(host_has_number(h, i, 8));
    host_check(h);
    host_close(h);
}
TEST(a_refused_segment_is_a_full_table_and_is_asked_for_again) {
    host *h = host_open(64 * MIB, 0, 0);
    h->refuse = true;
    int n = 0;
    while (host_put_number(h, n, 1000) == FKV_OK) n++;
    CHECK(n >= 50 && n < 200);
    h->refuse = false;
    host_pass(h, 200000000);
    CHECK_EQ(host_put_number(h, n, 1000), FKV_OK);
    host_check(h);
    host_close(h);
}

typedef struct seen {
    uint8_t count[40000];
    int others;
} seen;
TEST(a_table_fills_its_limit_and_goes_on_when_that_rises) {
    host *h = host_open(4 * MIB, 0, 0);
    int n = 0, first;
    while (host_put_number(h, n, 1000) == FKV_OK) n++;
    first = n;
    table_set_memory(h->t, 8 * MIB);
    while (host_put_number(h, n, 1000) == FKV_OK) n++;
    CHECK(n > 19 * first / 10 && n < 22 * first / 10);
    table_stats s;
    table_get_stats(h->t, &s);
    CHECK(s.memory_bytes == 8 * MIB && s.index_bytes + s.heap_bytes <= 8 * MIB);
    host_check(h);
    /* Below what there is: nothing goes, and nothing comes before room is made. */
    table_set_memory(h->t, 4 * MIB);
    CHECK_EQ(host_put_number(h, n, 1000), FKV_TABLE_FULL);
    for (int i = 0; i < n; i++) CHECK(host_has_number(h, i, 1000));
    for (int i = 0; i < n / 2 + n / 8; i++) {
        char key[32];
        int k = host_number_key(key, sizeof key, i);
        table_op op = host_op(h, TABLE_DELETE, key, (size_t)k, NULL, 0);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    }
    host_drain(h);
    CHECK_EQ(host_put_number(h, n, 1000), FKV_OK);
    host_check(h);
    host_close(h);
}
static void see(void *ctx, const table_entry *e) {
    seen *s = ctx;
    char digits[13] = { 0 };
    memcpy(digits, e->key + 4, 12);
    int i = atoi(digits);
    if (i < 40000)
        s->count[i]++;
    else
        s->others++;
}
TEST(a_scan_meets_every_key_that_stays_once_while_the_table_grows) {
    host *h = host_open(64 * MIB, 0, 0);
    enum { STAY = 20000 };
    for (int i = 0; i < STAY; i++) CHECK_EQ(host_put_number(h, i, 8), FKV_OK);
    uint32_t before = table_buckets(h->t);
    seen *s = calloc(1, sizeof *s);
    uint64_t cursor = 0;
    int steps = 0;
    do {
        table_scan(h->t, 0, &cursor, see, s);
        for (int i = 0; i < 40 && steps < 3000; i++) CHECK_EQ(host_put_number(h, 1000000 + steps * 40 + i, 8), FKV_OK);
        if (steps < 3000) host_pass(h, 1000000);
        steps++;
    } while (cursor != 0);
    CHECK(table_buckets(h->t) > 4 * before);
    for (int i = 0; i < STAY; i++) CHECK_EQ(s->count[i], 1);
    cursor = 0;
    int other_namespace = s->others;
    do table_scan(h->t, 1, &cursor, see, s);
    while (cursor != 0);
    CHECK_EQ(s->others, other_namespace);
    cursor = 1ull << 40; /* a stranger's cursor */
    table_scan(h->t, 0, &cursor, see, s);
    CHECK_EQ(cursor, 0);
    free(s);
    host_close(h);
}
TEST(the_layout_tells_of_every_segment_in_order) {
    host *h = host_open(64 * MIB, 0, 0);
    for (int i = 0; i < 60000; i++) CHECK_EQ(host_put_number(h, i, 300), FKV_OK);
    table_segment s[512];
    int n = table_segments(h->t, s, 512), index = 0;
    CHECK(n <= 512);
    CHECK(n > 6 && n == h->count - h->retired && (uint32_t)n == table_layout_epoch(h->t) - 2 * (uint32_t)h->retired);
    while (index < n && s[index].kind == TABLE_INDEX) {
        CHECK_EQ(s[index].segment, index);
        index++;
    }
    CHECK(index > 1);
    for (int i = 0; i < n; i++) {
        const host_segment *mine = host_segment_of(h, s[i].kind, s[i].segment);
        CHECK(mine->tag == s[i].tag && mine->region.base == s[i].region->base && mine->region.bytes == s[i].bytes);
        CHECK(i < index || (s[i].kind == TABLE_HEAP && s[i].segment > 0));
    }
    uint32_t segment;
    fkv_region odd = { .fd = -1, .base = (uint8_t *)s, .bytes = 6000 };
    CHECK_EQ(table_add_segment(h->t, TABLE_HEAP, &odd, 1, &segment), FKV_BAD_REQUEST);
    host_close(h);
}
/* As where all memory is to be of huge pages: also at the limit, where what is left is no whole one. */
TEST(with_a_grain_every_segment_is_whole_ones_and_the_limit_holds) {
    enum { GRAIN = 2 << 20 };
    host *h = calloc(1, sizeof *h);
    h->now_ns = 1000000000;
    h->config = (table_config){ .epoch = 7,
                                .seed = { 11, 13 },
                                .memory_bytes = 33 * MIB,
                                .segment_grain = GRAIN,
                                .want_segment = host_want,
                                .retire_segment = host_retire,
                                .ctx = h };
    CHECK_EQ(table_create(&h->config, &h->t), FKV_OK);
    CHECK_EQ(table_first_index_bytes(&h->config), GRAIN);
    CHECK_EQ(table_first_heap_bytes(&h->config), GRAIN);
    host_add(h, TABLE_INDEX, GRAIN);
    host_add(h, TABLE_HEAP, GRAIN);
    int n = 0;
    while (host_put_number(h, n, 100) == FKV_OK) n++;
    table_stats s;
    table_get_stats(h->t, &s);
    for (int i = 0; i < h->count; i++) CHECK_EQ(h->segments[i].region.bytes % GRAIN, 0);
    CHECK_EQ(s.index_bytes + s.heap_bytes, 32 * MIB);
    CHECK(s.index_bytes > GRAIN && (uint64_t)n * 160 > 20 * MIB);
    host_check(h);
    for (int i = 0; i < n; i += 7) CHECK(host_has_number(h, i, 100));
    host_close(h);
}
/* Puts numbered entries of 8 bytes; segments of huge pages that are asked for are kept back in *late, which has to be 0
 * for it. */
static bool grow_without_huge(host *h, int from, int to, size_t *late, int *bridges) {
    for (int i = from; i < to; i++) {
        char key[32];
        int n = host_number_key(key, sizeof key, i);
        table_op op = host_op(h, TABLE_PUT, key, (size_t)n, "eight...", 8);
        table_prepared p;
        table_busy why;
        uint64_t present;
        if (i % 64 == 0) table_tick(h->t, h->now_ns += 64000, h->wall_ms, 256);
        if (table_prepare(h->t, &op, &p, &present, &why) != FKV_OK) return false;
        table_commit(h->t, &p);
        for (int k = 0; k < h->asks; k++) {
            if (h->asked[k].kind != TABLE_HEAP || h->asked[k].bytes % FKV_HUGE_PAGE != 0) continue;
            CHECK_EQ(*late, 0); /* asked for once */
            *late = h->asked[k].bytes;
            h->asked[k] = h->asked[--h->asks];
        }
        for (int k = 0; *late && k < h->asks; k++) *bridges += h->asked[k].kind == TABLE_HEAP;
        host_serve(h);
    }
    return true;
}
/* Huge pages take long to make where all cores are busy, and no change is to wait for that. */
TEST(while_huge_pages_are_late_small_segments_come_in_between) {
    enum { FIRST = 560000, MORE = 60000 };
    host *h = host_open(512 * MIB, 0, 0);
    size_t late = 0;
    int bridges = 0, n = 0;
    for (; late == 0; n += 1000) {
        CHECK(n < FIRST);
        CHECK(grow_without_huge(h, n, n + 1000, &late, &bridges));
    }
    for (int until = n + MORE; n < until; n += 1000) CHECK(grow_without_huge(h, n, n + 1000, &late, &bridges));
    CHECK(bridges > 1);
    table_stats s;
    table_get_stats(h->t, &s);
    CHECK(s.free_bytes < late); /* each comes when it is wanted, not all of them at once */
    host_add(h, TABLE_HEAP, late);
    late = 0;
    bridges = 0;
    for (int until = n + 1000; n < until; n += 1000) CHECK(grow_without_huge(h, n, n + 1000, &late, &bridges));
    CHECK_EQ(bridges, 0);
    host_check(h);
    host_close(h);
}
/* No more than two are asked for at a time, which may be too small for a third size: that is no full table. */
TEST(a_size_that_neither_segment_on_its_way_is_for_waits) {
    host *h = host_open(64 * MIB, 0, 0);
    uint8_t *value = calloc(1, 200000);
    char key[32];
    int waits = 0;
    for (int i = 0; i < 200; i++) {
        int n = host_number_key(key, sizeof key, i);
        table_op op = host_op(h, TABLE_PUT, key, (size_t)n, value, (size_t)(i + 1) * 1000);
        table_prepared p;
        uint64_t present;
        table_busy why;
        fkv_status s = table_prepare(h->t, &op, &p, &present, &why);
        CHECK(s == FKV_OK || (s == FKV_BUSY && why == TABLE_BUSY_SEGMENT));
        if (s == FKV_OK)
            table_commit(h->t, &p);
        else
            waits++;
    }
    CHECK(waits > 50 && h->asks == 2);
    host_serve(h);
    host_check(h);
    free(value);
    host_close(h);
}
/* Of two segments that were asked for, what comes is one of them and not the other. */
TEST(a_bridge_that_comes_is_not_taken_for_the_segment_that_is_late) {
    host *h = host_open(64 * MIB, 0, 0);
    for (int i = 0; i < 1000; i++) CHECK_EQ(host_put_number(h, i, 100), FKV_OK);
    CHECK_EQ(h->asks, 0);
    h->t->asked_heap = 4 * MIB;
    h->t->asked_large = MIB;
    host_add(h, TABLE_HEAP, MIB);
    CHECK(h->t->asked_heap == 4 * MIB && h->t->asked_large == 0);
    h->t->asked_large = MIB;
    host_add(h, TABLE_HEAP, 4 * MIB);
    CHECK(h->t->asked_heap == 0 && h->t->asked_large == MIB);
    host_add(h, TABLE_HEAP, MIB);
    h->t->asked_heap = 64 << 10; /* the second for an extent that the first has no room for */
    h->t->asked_large = 2 * MIB;
    host_add(h, TABLE_HEAP, 2 * MIB);
    CHECK(h->t->asked_heap == 64 << 10 && h->t->asked_large == 0);
    host_close(h);
}
/* Their heaps are the same at every moment, so without that they would all ask together. */
TEST(shards_that_grow_alike_ask_for_memory_at_different_times) {
    enum { SHARDS = 8, N = 60000 };
    int at[SHARDS] = { 0 }, different = 0;
    for (int k = 0; k < SHARDS; k++) {
        host *h = calloc(1, sizeof *h);
        h->now_ns = 1000000000;
        h->config = (table_config){ .shard = (uint32_t)k,
                                    .epoch = 7,
                                    .seed = { 11, 13 },
                                    .memory_bytes = 64 * MIB,
                                    .want_segment = host_want,
                                    .retire_segment = host_retire,
                                    .ctx = h };
        CHECK_EQ(table_create(&h->config, &h->t), FKV_OK);
        host_add(h, TABLE_INDEX, table_first_index_bytes(&h->config));
        host_add(h, TABLE_HEAP, 8 * MIB);
        int asks = 0;
        for (int i = 0; i < N && asks == 0; i++) {
            char key[32], value[200] = "";
            int n = host_number_key(key, sizeof key, i);
            table_op op = host_op(h, TABLE_PUT, key, (size_t)n, value, sizeof value);
            table_prepared p;
            table_busy why;
            uint64_t present;
            CHECK_EQ(table_prepare(h->t, &op, &p, &present, &why), FKV_OK);
            table_commit(h->t, &p);
            for (int j = 0; j < h->asks; j++) asks += h->asked[j].kind == TABLE_HEAP;
            at[k] = i;
            host_serve(h);
        }
        CHECK_EQ(asks, 1);
        for (int j = 0; j <= k; j++) {
            if (j == k)
                different++;
            else if (at[j] == at[k])
                break;
        }
        host_close(h);
    }
    CHECK(different >= 4);
}

int main(int argc, char **argv) {
    RUN(a_table_grows_bucket_by_bucket_and_stays_whole);
    RUN(a_reader_that_holds_an_old_header_never_misses_a_key);
    RUN(chains_shorten_when_keys_go);
    RUN(a_refused_segment_is_a_full_table_and_is_asked_for_again);
    RUN(a_table_fills_its_limit_and_goes_on_when_that_rises);
    RUN(a_scan_meets_every_key_that_stays_once_while_the_table_grows);
    RUN(while_huge_pages_are_late_small_segments_come_in_between);
    RUN(a_size_that_neither_segment_on_its_way_is_for_waits);
    RUN(a_bridge_that_comes_is_not_taken_for_the_segment_that_is_late);
    RUN(shards_that_grow_alike_ask_for_memory_at_different_times);
    RUN(with_a_grain_every_segment_is_whole_ones_and_the_limit_holds);
    RUN(the_layout_tells_of_every_segment_in_order);
    return check_end(argc, argv);
}
