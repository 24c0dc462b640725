/* lookup_index_test.c: how a GET finds its slot: an index that grows meanwhile, chains, fingerprints that are the same.
 * */
#include "guest_steps.h"

TEST(a_reader_whose_map_is_old_follows_the_growing_index) {
    up();
    uint32_t buckets = c.l->shard[0].buckets;
    grow();
    CHECK_EQ(c.l->shard[0].buckets, buckets);
    for (int i = 0; i < GROWN; i++) guest_expect(&c, grown(i), grown(i));
    CHECK_EQ(guest_get(&c, "grow-x").status, FKV_NOT_FOUND);
    CHECK_EQ(p->gets, 0);
    CHECK(p->layouts >= 2);
    down();
}

/* A provider attaches a bounded number of regions. */
TEST(what_lies_in_a_segment_that_finds_no_place_is_asked_for) {
    p = puppet_new();
    put("alpha", "one");
    p->attach_room = 1; /* the index */
    guest_open(&c, p, NULL);
    guest_connect(&c);
    guest_expect(&c, "alpha", "one");
    CHECK_EQ(p->gets, 1);
    CHECK_EQ(guest_get(&c, "beta").status, FKV_NOT_FOUND); /* this the index says */
    CHECK_EQ(p->gets, 1);
    CHECK_EQ(guest_stats(&c).retries, 0);
    p->attach_room = 0;
    guest_get(&c, "beta"); /* there is a place now */
    guest_expect(&c, "alpha", "one");
    CHECK_EQ(p->gets, 1);
    down();
    p = puppet_new();
    put("alpha", "one");
    p->attach_room = p->attaches = 1; /* not even for the index */
    guest_open(&c, p, NULL);
    guest_connect(&c);
    guest_expect(&c, "alpha", "one");
    CHECK_EQ(p->gets, 1);
    down();
}

/* Keys of one bucket: `n` of them whose low hash bits are those of the first. */
static void keys_of_one_bucket(int n, uint32_t bits, char (*keys)[32]) {
    uint64_t first = 0;
    for (int i = 0, found = 0; found < n; i++) {
        snprintf(keys[found], 32, "chain-%d", i);
        uint64_t h = host_hash(p->h, 0, keys[found], strlen(keys[found]));
        if (found == 0) first = h;
        if (((h ^ first) & ((1u << bits) - 1)) == 0) found++;
    }
}

TEST(a_chain_of_overflow_buckets_is_followed) {
    enum { N = 40 };
    static char keys[N + 1][32];
    up();
    keys_of_one_bucket(N + 1, 14, keys);
    for (int i = 0; i < N; i++) put(keys[i], keys[i]);
    for (int i = 0; i < N; i++) guest_expect(&c, keys[i], keys[i]);
    lookup_stats before = guest_stats(&c);
    CHECK_EQ(guest_get(&c, keys[N]).status, FKV_NOT_FOUND);
    CHECK_EQ(guest_stats(&c).reads - before.reads, 3);
    down();
}

TEST(keys_with_the_same_fingerprint_are_told_apart) {
    enum { N = 60000 };
    static struct {
        uint64_t h;
        int i;
    } all[N];
    up();
    uint32_t buckets = table_buckets(p->h->t), pairs = 0;
    char key[32], other[32];
    static int by_place[1 << 20];
    memset(by_place, -1, sizeof by_place);
    for (int i = 0; i < N && pairs < 3; i++) {
        snprintf(key, sizeof key, "same-%d", i);
        all[i].h = host_hash(p->h, 0, key, strlen(key));
        all[i].i = i;
        uint32_t place = (fkv_bucket_of((uint32_t)all[i].h, buckets) << 16 ^ fkv_hash_fingerprint(all[i].h)) %
                         (1 << 20);
        int before = by_place[place];
        by_place[place] = i;
        if (before < 0 ||
            fkv_bucket_of((uint32_t)all[before].h, buckets) != fkv_bucket_of((uint32_t)all[i].h, buckets) ||
            fkv_hash_fingerprint(all[before].h) != fkv_hash_fingerprint(all[i].h))
            continue;
        pairs++;
        snprintf(other, sizeof other, "same-%d", before);
        put(key, "this");
        CHECK_EQ(guest_get(&c, other).status, FKV_NOT_FOUND);
        put(other, "that");
        guest_expect(&c, key, "this");
        guest_expect(&c, other, "that");
    }
    CHECK(pairs >= 1);
    CHECK_EQ(p->gets, 0);
    down();
}

int main(int argc, char **argv) {
    RUN(a_reader_whose_map_is_old_follows_the_growing_index);
    RUN(what_lies_in_a_segment_that_finds_no_place_is_asked_for);
    RUN(a_chain_of_overflow_buckets_is_followed);
    RUN(keys_with_the_same_fingerprint_are_told_apart);
    return check_end(argc, argv);
}
