/* table_memory_test.c: what an entry costs beyond its key and value, index included, and that it is at most 80 bytes.
 *
 * `used` counts registered bytes that cannot take another entry (table_stats.used_bytes); `registered` counts all memory, also
 * what is free for the next entries; `private` is what the owner keeps besides. Under sanitizers a tenth of the
 * entries, in a tenth of the memory.
 */
#include <stdio.h>
#include "table_host.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SCALE = 10 };
#else
enum { SCALE = 1 };
#endif

static double beyond(const table_stats *s, uint64_t bytes) { return (double)(bytes - s->key_value_bytes) / (double)s->entries; }

static void print(const char *when, const table_stats *s) {
    unsigned long long entries = s->entries, value_bytes = s->key_value_bytes / s->entries - 16;
    printf("# %8llu entries of 16 + %4llu B %-11s used %5.1f  registered %5.1f  private %4.2f  (bytes an entry beyond both)\n",
           entries, value_bytes, when, beyond(s, s->used_bytes), beyond(s, s->index_bytes + s->heap_bytes),
           (double)s->private_bytes / (double)s->entries);
}
static void measure(int entries, uint32_t value_bytes, uint64_t memory_bytes) {
    host *h = host_open(memory_bytes / SCALE, 0, 0);
    uint8_t value[1000] = { 1, 2, 3 };
    table_stats s;
    for (int i = 0; i < entries / SCALE; i++) {
        char key[32];
        snprintf(key, sizeof key, "user%012d", i);
        table_op op = host_op(h, TABLE_PUT, key, 16, value, value_bytes);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
        if (i % 64 == 0) host_pass(h, 64 * 1000);    /* a million a second: all within a life of a GET or a few */
    }
    table_get_stats(h->t, &s);
    print("after load", &s);
    CHECK(beyond(&s, s.used_bytes) <= 80);
    host_drain(h);
    table_get_stats(h->t, &s);
    print("at rest", &s);
    CHECK(beyond(&s, s.used_bytes) <= 64);
    CHECK((double)s.private_bytes / (double)s.entries <= 8);
    host_check(h);
    host_close(h);
}
TEST(a_hundred_thousand_entries_of_100_bytes) { measure(100000, 100, 256ull << 20); }
TEST(a_hundred_thousand_entries_of_1000_bytes) { measure(100000, 1000, 256ull << 20); }
TEST(a_million_entries_of_100_bytes) { measure(1000000, 100, 2048ull << 20); }
TEST(a_million_entries_of_1000_bytes) { measure(1000000, 1000, 2048ull << 20); }

int main(int argc, char **argv) {
    RUN(a_hundred_thousand_entries_of_100_bytes);
    RUN(a_hundred_thousand_entries_of_1000_bytes);
    RUN(a_million_entries_of_100_bytes);
    RUN(a_million_entries_of_1000_bytes);
    return check_end(argc, argv);
}
