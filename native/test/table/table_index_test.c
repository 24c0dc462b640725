/* table_index_test.c: the index of a table that loses its entries, and gets new ones: when buckets are merged, what
 * goes back, and scans and expiry meanwhile. One merge by itself is in table_merge_test.c.
 */
#include "../../table/internal.h"
#include "table_host.h"
#include <stdio.h>

static const uint64_t MIB = 1 << 20;
enum { QUARANTINE = 400000000 };

static host *open_with(uint32_t more_buckets) {
    host *h = host_open(16 << 20, 0, 0);
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
static table_stats stats_of(host *h) {
    table_stats s;
    host_check(h);
    table_get_stats(h->t, &s);
    return s;
}
static bool reads(const host *h, uint32_t buckets, const char *key) {
    char value[32];
    fkv_found found;
    return host_read(h, &buckets, key, value, sizeof value, &found) == HOST_HIT;
}

enum { MANY = 60000, FEW = 1500, SOME = 6000 };
static void put_all(host *h, int from, int to) {
    for (int i = from; i < to; i++) CHECK_EQ(host_put_number(h, i, 8), FKV_OK);
}
static void delete_some(host *h, int from, int to) {
    char key[32];
    for (int i = from; i < to; i++) {
        int n = host_number_key(key, sizeof key, i);
        table_op op = host_op(h, TABLE_DELETE, key, (size_t)n, NULL, 0);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    }
}
static void rest(host *h) {
    for (int i = 0; i < 1000 && !table_resting(h->t); i++) host_pass(h, 100000000);
    CHECK(table_resting(h->t));
}
/* The bound of merge.c: what the entries need, and a segment. */
static uint64_t index_most(uint64_t entries) {
    uint64_t needed = entries * 26 + (64 << 10);
    return needed + needed / 16 + (8 << 10);
}
TEST(the_index_of_a_table_that_lost_its_entries_is_small_and_grows_again) {
    host *h = host_open(64 * MIB, 0, 0);
    char key[32];
    for (int round = 0; round < 3; round++) {
        put_all(h, 0, MANY);
        uint32_t buckets = table_buckets(h->t);
        table_stats s = stats_of(h);
        CHECK(s.index_bytes > MIB);
        delete_some(h, SOME, MANY);
        uint64_t from_ns = h->now_ns;
        rest(h);
        s = stats_of(h);
        printf("# %llu bytes of index for %llu entries, after %.1f s\n", (unsigned long long)s.index_bytes,
               (unsigned long long)s.entries, (double)(h->now_ns - from_ns) / 1e9);
        CHECK(s.index_bytes <= index_most(s.entries));
        CHECK(h->index_retired > 10 && s.merges > 5000);
        for (int i = 0; i < SOME; i++) {
            host_number_key(key, sizeof key, i);
            CHECK(host_has_number(h, i, 8) && reads(h, buckets, key) && reads(h, 512, key));
        }
    }
    host_close(h);
}
TEST(index_segments_stay_in_bucket_order_and_the_first_one_stays) {
    host *h = host_open(64 * MIB, 0, 0);
    put_all(h, 0, MANY);
    uint32_t epoch = table_layout_epoch(h->t);
    delete_some(h, 0, MANY);
    rest(h);
    put_all(h, 0, MANY / 4);
    table_segment s[512];
    int n = table_segments(h->t, s, 512);
    CHECK(n <= 512 && h->index_retired > 10 && table_layout_epoch(h->t) > epoch);
    uint64_t buckets = 0;
    for (int i = 0; i < n && s[i].kind == TABLE_INDEX; i++) {
        const host_segment *mine = host_segment_of(h, TABLE_INDEX, (uint32_t)i);
        CHECK(s[i].segment == (uint32_t)i && s[i].tag == mine->tag && !mine->retired);
        buckets += s[i].bytes / FKV_BUCKET_BYTES;
    }
    CHECK(buckets >= table_buckets(h->t) && s[0].bytes == table_first_index_bytes(&h->config));
    stats_of(h);
    for (int i = 0; i < MANY / 4; i++) CHECK(host_has_number(h, i, 8));
    host_close(h);
}
static void take(void *ctx, const table_entry *e) {
    host *h = ctx;
    table_op op = host_op(h, TABLE_PUT, e->key, e->key_bytes, e->value, e->value_bytes);
    CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
}
/* As a copy is made: all keys of some buckets first. */
TEST(a_table_that_is_filled_in_the_order_of_a_scan_begins_with_as_many_buckets) {
    host *from = host_open(64 * MIB, 0, 0);
    put_all(from, 0, MANY);
    host *h = host_open_wide(64 * MIB, 0, 0, table_buckets(from->t));
    CHECK(table_buckets(h->t) >= table_buckets(from->t));
    uint64_t cursor = 0;
    do {
        table_scan(from->t, 0, &cursor, take, h);
        host_pass(h, 200000);
    } while (cursor != 0);
    for (int i = 0; i < MANY; i++) CHECK(host_has_number(h, i, 8));
    CHECK(stats_of(h).index_bytes <= stats_of(from).index_bytes * 9 / 8);
    host_close(h);
    host_close(from);
    h = host_open_wide(64 * MIB, 0, 0, UINT32_MAX);
    CHECK(host_capacity(h) * FKV_BUCKET_BYTES <= 16 * MIB);
    host_close(h);
}
TEST(entries_that_come_again_soon_merge_nothing) {
    host *h = host_open(64 * MIB, 0, 0);
    put_all(h, 0, MANY);
    for (int round = 0; round < 3; round++) {
        delete_some(h, FEW, MANY);
        for (int i = 0; i < 15; i++) host_pass(h, 100000000);
        put_all(h, FEW, MANY);
        host_pass(h, 100000000);
    }
    table_stats s = stats_of(h);
    CHECK(s.merges == 0 && h->index_retired == 0);
    host_close(h);
}
TEST(buckets_that_are_a_third_full_stay_and_a_table_that_is_merged_has_room_to_grow) {
    host *h = host_open(64 * MIB, 0, 0);
    put_all(h, 0, MANY);
    delete_some(h, MANY * 2 / 5, MANY);
    rest(h);
    CHECK_EQ(stats_of(h).merges, 0);
    delete_some(h, MANY / 5, MANY * 2 / 5);
    rest(h);
    table_stats s = stats_of(h);
    CHECK(s.merges > 0 && 200 * s.entries < 68 * LOAD_HALVES * s.buckets);
    uint64_t splits = s.splits, retired = (uint64_t)h->index_retired;
    int came = h->count;
    put_all(h, MANY, MANY + (int)s.entries / 10);
    rest(h);
    CHECK(stats_of(h).splits == splits && (uint64_t)h->index_retired == retired && h->count == came);
    host_close(h);
}
/* So that a miss costs more READs in few buckets only. */
TEST(only_a_part_of_the_buckets_settles_at_a_time) {
    host *h = host_open(64 * MIB, 0, 0);
    put_all(h, 0, MANY);
    delete_some(h, FEW, MANY);
    uint32_t highest = 0;
    for (int i = 0; i < 1000 && !table_resting(h->t); i++) {
        host_pass(h, 20000000);
        CHECK(h->t->settling <= 2 * (h->t->buckets_most / 16 + 64));
        if (h->t->settling > highest) highest = h->t->settling;
    }
    CHECK(highest > 100);
    host_close(h);
}

typedef struct seen {
    int count[FEW];
} seen;
static void see(void *ctx, const table_entry *e) {
    char digits[13] = { 0 };
    memcpy(digits, e->key + 4, 12);
    if (atoi(digits) < FEW) ((seen *)ctx)->count[atoi(digits)]++;
}
/* Cursors of every level: a scan goes on while buckets are split and merged between its steps. */
TEST(a_scan_meets_every_key_that_stays_while_buckets_are_merged_and_split) {
    uint64_t random = check_seed();
    for (int round = 0; round < 4; round++) {
        host *h = host_open(64 * MIB, 1, 0);
        put_all(h, 0, FEW);
        host_add(h, TABLE_INDEX, MIB);
        for (int i = 0; i < 3000; i++) table_split(h->t);
        host_pass(h, 10000000);
        seen *s = calloc(1, sizeof *s);
        uint64_t cursor = 0;
        int repeated = 0;
        do {
            table_scan(h->t, 0, &cursor, see, s);
            random = random * 6364136223846793005u + 1442695040888963407u;
            bool merges = random >> 40 & (round % 2 ? 1 : 3);
            for (int i = 0; i < (int)(random >> 33 & 63); i++)
                if (merges && table_buckets(h->t) > 512)
                    table_merge(h->t);
                else if (!merges)
                    table_split(h->t);
            host_pass(h, 3000000);
        } while (cursor != 0);
        for (int i = 0; i < FEW; i++) {
            CHECK(s->count[i] >= 1);
            repeated += s->count[i] > 1;
        }
        printf("# %d of %d keys came again\n", repeated, FEW);
        free(s);
        host_close(h);
    }
}
/* The hand that looks for expired entries has been where they are now. */
TEST(an_entry_that_a_merge_brings_behind_the_hand_expires) {
    host *h = open_with(400);
    char key[32];
    int i = 0;
    table_busy why;
    put_all(h, 0, 3 * 912); /* or the index gets smaller by itself */
    settle(h);
    for (uint32_t b = 512; b < 562; b++) { /* they will be merged into the first 50 */
        key_in(h, b, &i, key);
        table_op op = host_op(h, TABLE_PUT, key, strlen(key), "value", 5);
        op.expiry_ms = h->wall_ms + (b == 512 ? 1 : 6000);
        CHECK_EQ(host_do(h, &op, NULL, &why), FKV_OK);
    }
    /* One round of 20 s ends, which one entry does not survive; the next one begins when the others have expired. */
    h->wall_ms += 10;
    for (int n = 0; n < 2; n++) table_tick(h->t, h->now_ns += 25000000000u, h->wall_ms, 1000000);
    CHECK(h->t->expired == 1 && h->t->sweep_bucket == 0);
    h->wall_ms += 6000;
    table_tick(h->t, h->now_ns += 8000000000u, h->wall_ms, 1000000);
    CHECK(h->t->sweep_bucket > 50 && h->t->sweep_bucket < 512 && h->t->expired == 1);
    for (int n = 0; n < 400; n++) CHECK(table_merge(h->t));
    host_check(h);
    for (int n = 0; n < 100 && h->t->expiring; n++) {
        host_pass(h, 1000000000);
        host_check(h);
    }
    CHECK(h->t->expiring == 0 && h->t->entries == 3 * 912);
    host_close(h);
}

/* A turn of the owner's loop has a budget; what is left of the splits is for the next turn, not for the next change. */
TEST(growth_that_fell_behind_goes_on_without_changes) {
    host *h = host_open(64 * MIB, 0, 0);
    host_add(h, TABLE_HEAP, 4 * MIB);
    h->refuse = true;
    put_all(h, 0, SOME);
    CHECK_EQ(table_buckets(h->t), 512);
    host_add(h, TABLE_INDEX, 128 << 10);
    bool more = true;
    for (; table_split_wanted(h->t); host_serve(h)) {
        CHECK(more);
        more = table_tick(h->t, h->now_ns, h->wall_ms, 64);
    }
    CHECK(table_buckets(h->t) >= SOME * 2 / LOAD_HALVES);
    host_check(h);
    host_close(h);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    RUN(the_index_of_a_table_that_lost_its_entries_is_small_and_grows_again);
    RUN(index_segments_stay_in_bucket_order_and_the_first_one_stays);
    RUN(a_table_that_is_filled_in_the_order_of_a_scan_begins_with_as_many_buckets);
    RUN(entries_that_come_again_soon_merge_nothing);
    RUN(buckets_that_are_a_third_full_stay_and_a_table_that_is_merged_has_room_to_grow);
    RUN(only_a_part_of_the_buckets_settles_at_a_time);
    RUN(a_scan_meets_every_key_that_stays_while_buckets_are_merged_and_split);
    RUN(an_entry_that_a_merge_brings_behind_the_hand_expires);
    RUN(growth_that_fell_behind_goes_on_without_changes);
    return check_end(argc, argv);
}
