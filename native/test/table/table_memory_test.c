/* table_memory_test.c: what an entry costs beyond its key and value, index included: at most 80 bytes of registered
 * memory, also just after growth, in shards of few entries and of many; and that all registered memory is accounted
 * for.
 *
 * `used` counts registered bytes that cannot take another entry (table_stats.used_bytes); `registered` counts all
 * memory, also what is free for the next entries; `private` is what the owner keeps besides. Under sanitizers a tenth
 * of the entries, in a tenth of the memory.
 */
#include <stdio.h>
#include "table_host.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SCALE = 10 };
#else
enum { SCALE = 1 };
#endif

/* of a shard: with fewer, a segment of the least size is more than the rest to 80 bytes */
enum { ENTRIES_LEAST = 8000 };

static double beyond(const table_stats *s, uint64_t bytes) {
    return (double)(bytes - s->key_value_bytes) / (double)s->entries;
}

static void print(const char *when, const table_stats *s) {
    unsigned long long entries = s->entries, value_bytes = s->key_value_bytes / s->entries - 16;
    printf("# %8llu entries of 16 + %4llu B %-11s used %5.1f  registered %5.1f  private %4.2f  (bytes an entry beyond "
           "both)\n",
           entries, value_bytes, when, beyond(s, s->used_bytes), beyond(s, s->index_bytes + s->heap_bytes),
           (double)s->private_bytes / (double)s->entries);
}
static void check_sum(const table_stats *s) {
    CHECK_EQ(s->index_bytes, s->buckets * FKV_BUCKET_BYTES + s->index_free_bytes);
    CHECK_EQ(s->heap_bytes, s->live_extent_bytes + s->prepared_bytes + s->overflow_bytes + s->quarantine_bytes +
                                s->slack_bytes + s->free_bytes);
    CHECK_EQ(s->used_bytes, s->index_bytes + s->heap_bytes - s->index_free_bytes - s->free_bytes);
}
/* Growth stays geometric: 64 KiB at a time at first, then at most 98 segments of the heap to a doubling, and 11 of the
 * index. */
static void check_segments(const host *h) {
    int doublings = 0;
    for (uint64_t bytes = 4 << 20; bytes < h->config.memory_bytes; bytes *= 2) doublings++;
    CHECK(h->count < 100 + 16 + doublings * 109);
}
static void measure(int entries, uint32_t value_bytes, uint64_t memory_bytes) {
    host *h = host_open(memory_bytes / SCALE, 0, 0);
    uint8_t value[1000] = { 1, 2, 3 };
    table_stats s, peak = { 0 };
    for (int i = 0; i < entries / SCALE; i++) {
        char key[32];
        snprintf(key, sizeof key, "user%012d", i);
        table_op op = host_op(h, TABLE_PUT, key, 16, value, value_bytes);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
        if (i % 64 == 0) host_pass(h, 64 * 1000); /* a million a second: all within a life of a GET or a few */
        if (i < entries / SCALE / 2 || i < ENTRIES_LEAST) continue;
        table_get_stats(h->t, &s);
        double here = beyond(&s, s.index_bytes + s.heap_bytes);
        if (!peak.entries || here > beyond(&peak, peak.index_bytes + peak.heap_bytes)) peak = s;
    }
    print("at the peak", &peak);
    CHECK(beyond(&peak, peak.index_bytes + peak.heap_bytes) <= 80);
    table_get_stats(h->t, &s);
    check_sum(&s);
    check_segments(h);
    print("after load", &s);
    host_drain(h);
    table_get_stats(h->t, &s);
    check_sum(&s);
    print("at rest", &s);
    CHECK(beyond(&s, s.used_bytes) <= 64);
    CHECK((double)s.private_bytes / (double)s.entries <= 8);
    host_check(h);
    host_close(h);
}
TEST(ten_thousand_entries_of_100_bytes) { measure(SCALE * 10000, 100, SCALE * (64ull << 20)); }
TEST(ten_thousand_entries_of_1000_bytes) { measure(SCALE * 10000, 1000, SCALE * (64ull << 20)); }
TEST(a_hundred_thousand_entries_of_100_bytes) { measure(100000, 100, 256ull << 20); }
TEST(a_hundred_thousand_entries_of_1000_bytes) { measure(100000, 1000, 256ull << 20); }
TEST(a_million_entries_of_100_bytes) { measure(1000000, 100, 2048ull << 20); }
TEST(a_million_entries_of_1000_bytes) { measure(1000000, 1000, 2048ull << 20); }
TEST(each_part_of_the_memory_is_counted_where_it_is) {
    host *h = host_open(16 << 20, 0, 0);
    table_stats empty, s;
    table_get_stats(h->t, &empty);
    check_sum(&empty);
    CHECK(empty.used_bytes == empty.buckets * FKV_BUCKET_BYTES && empty.free_bytes == empty.heap_bytes);
    char value[1000] = { 0 };
    for (int i = 0; i < 100; i++) CHECK_EQ(host_put_number(h, i, 1000), FKV_OK);
    table_op op = host_op(h, TABLE_PUT, "held", 4, value, 40);
    table_prepared p;
    table_busy why;
    uint64_t present;
    while (table_prepare(h->t, &op, &p, &present, &why) != FKV_OK) {
        CHECK_EQ(why, TABLE_BUSY_SEGMENT);
        CHECK(h->asks > 0);
        host_serve(h);
    }
    CHECK_EQ(host_put_number(h, 0, 1000), FKV_OK);
    table_get_stats(h->t, &s);
    check_sum(&s);
    CHECK(s.live_extent_bytes == 100 * 1056 && s.prepared_bytes == 96 && s.quarantine_bytes == 1056 &&
          s.slack_bytes > 0);
    table_abort(h->t, &p);
    table_get_stats(h->t, &s);
    check_sum(&s);
    CHECK(s.prepared_bytes == 0 && s.quarantine_bytes == 1056 + 96);
    host_drain(h);
    table_get_stats(h->t, &s);
    check_sum(&s);
    CHECK(s.quarantine_bytes == 0 && s.live_extent_bytes == 100 * 1056);
    host_check(h);
    host_close(h);
}

int main(int argc, char **argv) {
    RUN(each_part_of_the_memory_is_counted_where_it_is);
    RUN(ten_thousand_entries_of_100_bytes);
    RUN(ten_thousand_entries_of_1000_bytes);
    RUN(a_hundred_thousand_entries_of_100_bytes);
    RUN(a_hundred_thousand_entries_of_1000_bytes);
    RUN(a_million_entries_of_100_bytes);
    RUN(a_million_entries_of_1000_bytes);
    return check_end(argc, argv);
}
