/* table_scrub_test.c: tables with the same entries have the same digest, and a scrub finds one flipped bit, whatever
 * changes meanwhile. */
#include "table_host.h"

static const uint64_t MIB = 1 << 20;
static uint64_t state;

/* Below `end`. */
static uint64_t any(uint64_t end) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 32) % end;
}

/* Of so many bytes a step, to the end. */
static table_scrub_result scrub(host *h, size_t budget) {
    table_scrub_result r;
    for (int i = 0; (r = table_scrub(h->t, budget)) == TABLE_SCRUB_GOES_ON; i++) CHECK(i < 1000000);
    return r;
}

static void put_version(host *h, int i, size_t bytes, uint64_t version, uint64_t expiry_ms) {
    static char value[4 << 20];
    char key[32];
    int n = host_number_key(key, sizeof key, i);
    memset(value, 'a' + i % 26, bytes);
    table_op op = host_op(h, TABLE_PUT, key, (size_t)n, value, bytes);
    op.version = version;
    op.expiry_ms = expiry_ms;
    CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
}
static void delete_number(host *h, int i) {
    char key[32];
    int n = host_number_key(key, sizeof key, i);
    table_op op = host_op(h, TABLE_DELETE, key, (size_t)n, NULL, 0);
    fkv_status s = host_do_patiently(h, &op, NULL);
    CHECK(s == FKV_OK || s == FKV_NOT_FOUND);
}

TEST(the_same_entries_have_the_same_digest_however_they_came) {
    host *a = host_open(64 * MIB, 0, 0), *b = host_open(64 * MIB, 0, 0);
    enum { N = 3000 };
    for (int i = 0; i < N; i++) put_version(a, i, 100, fkv_version(7, 1000 + (uint64_t)i), 0);
    for (int i = N - 1; i >= 0; i--) {
        put_version(b, i, 10, fkv_version(7, 10), 0);
        put_version(b, N + i, 10, fkv_version(7, 10), 0);
        put_version(b, i, 100, fkv_version(7, 1000 + (uint64_t)i), 0);
    }
    CHECK(table_digest(a->t) != table_digest(b->t));
    for (int i = 0; i < N; i++) delete_number(b, N + i);
    CHECK_EQ(table_digest(a->t), table_digest(b->t));
    delete_number(b, 5);
    CHECK(table_digest(a->t) != table_digest(b->t));
    delete_number(a, 5);
    put_version(a, 6, 100, fkv_version(7, 9000), 0);
    CHECK(table_digest(a->t) != table_digest(b->t)); /* of another version */
    put_version(b, 6, 100, fkv_version(7, 9000), 0);
    CHECK_EQ(table_digest(a->t), table_digest(b->t));
    host_check(a);
    host_check(b);
    host_close(a);
    host_close(b);
}

TEST(what_expires_is_in_no_digest) {
    host *a = host_open(64 * MIB, 0, 0), *b = host_open(64 * MIB, 0, 0);
    put_version(a, 1, 100, fkv_version(7, 10), 0);
    put_version(b, 1, 100, fkv_version(7, 10), 0);
    put_version(a, 2, 100, fkv_version(7, 11), a->wall_ms + 1000);
    put_version(b, 2, 100, fkv_version(7, 11), b->wall_ms + 1000);
    host_drain(b); /* here its entry is gone, there it is not */
    CHECK_EQ(table_digest(a->t), table_digest(b->t));
    put_version(a, 2, 100, fkv_version(7, 12), 0);
    put_version(b, 2, 100, fkv_version(7, 12), 0);
    CHECK_EQ(table_digest(a->t), table_digest(b->t));
    put_version(a, 1, 100, fkv_version(7, 13), a->wall_ms + 1000);
    CHECK(table_digest(a->t) != table_digest(b->t));
    delete_number(b, 1);
    CHECK_EQ(table_digest(a->t), table_digest(b->t));
    CHECK_EQ(scrub(a, 1000), TABLE_SCRUB_WHOLE);
    host_close(a);
    host_close(b);
}

/* Grows, shrinks, splits, merges, evacuates, expires; values of one byte to two MiB; steps of all sizes between. */
TEST(what_changes_during_a_scrub_is_no_damage) {
    host *h = host_open(256 * MIB, 0, 0);
    state = check_seed();
    enum { KEYS = 30000 };
    int ended = 0;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 20000; i++) {
            int key = (int)(any(KEYS));
            size_t bytes = any(2000) == 0 ? any(2 * MIB) : any(300);
            if (any(8) < (round % 2 ? 7 : 2))
                delete_number(h, key);
            else
                put_version(h, key, bytes, 0, any(4) == 0 ? h->wall_ms + any(5000) : 0);
            table_scrub_result s = table_scrub(h->t, 1 + any(3000));
            CHECK(s != TABLE_SCRUB_DAMAGED);
            ended += s == TABLE_SCRUB_WHOLE;
            if (i % 500 == 0) host_pass(h, 20000000);
        }
        for (int i = 0; i < 100; i++) {
            host_pass(h, 50000000);
            table_scrub_result s = table_scrub(h->t, 100000);
            CHECK(s != TABLE_SCRUB_DAMAGED);
            ended += s == TABLE_SCRUB_WHOLE;
        }
        host_check(h);
    }
    CHECK(ended >= 6);
    host_close(h);
}

static void flip(void *at, uint64_t bit) { ((uint8_t *)at)[bit / 8] ^= (uint8_t)(1 << bit % 8); }

TEST(one_flipped_bit_is_found) {
    host *h = host_open(64 * MIB, 0, 0);
    state = check_seed();
    enum { N = 2000, VALUE = 200 };
    for (int i = 0; i < N; i++) CHECK_EQ(host_put_number(h, i, VALUE), FKV_OK);
    host_drain(h);
    CHECK_EQ(scrub(h, 4096), TABLE_SCRUB_WHOLE);
    for (int i = 0; i < 400; i++) {
        char key[32];
        int number = (int)(any(N)), n = host_number_key(key, sizeof key, number);
        table_entry e;
        CHECK_EQ(host_get(h, key, (size_t)n, &e), FKV_OK);
        /* checksum, version, lengths, key, value */
        uint8_t *from = (uint8_t *)(uintptr_t)e.key - FKV_EXTENT_HEADER;
        uint64_t bits = 8 * (uint64_t)(FKV_EXTENT_HEADER + n + VALUE), bit = any(bits);
        CHECK(table_is_whole(&e));
        flip(from, bit);
        CHECK(bit < 32 || !table_is_whole(&e)); /* in front of the checksum lies the state */
        CHECK_EQ(scrub(h, 1 + any(10000)), TABLE_SCRUB_DAMAGED);
        flip(from, bit);
    }
    for (int i = 0; i < 400;) {
        uint32_t tag, number = (uint32_t)(any(table_buckets(h->t)));
        fkv_bucket *b = (fkv_bucket *)(uintptr_t)host_bucket(h, number, &tag);
        uint64_t *slot = &b->slot[any(FKV_SLOTS)];
        if (*slot == 0) continue;
        uint64_t bit = any(64);
        flip(slot, bit);
        CHECK_EQ(scrub(h, 1 + any(10000)), TABLE_SCRUB_DAMAGED);
        flip(slot, bit);
        i++;
    }
    CHECK_EQ(scrub(h, 4096), TABLE_SCRUB_WHOLE);
    host_check(h);
    host_close(h);
}

TEST(an_entry_that_is_not_there_any_more_is_found) {
    host *h = host_open(64 * MIB, 0, 0);
    for (int i = 0; i < 100; i++) CHECK_EQ(host_put_number(h, i, 10), FKV_OK);
    host_drain(h);
    for (uint32_t number = 0, tag; number < table_buckets(h->t); number++) {
        uint64_t *slot = (uint64_t *)(uintptr_t)host_bucket(h, number, &tag)->slot, word = *slot;
        if (word == 0) continue;
        *slot = 0;
        CHECK_EQ(scrub(h, 1000), TABLE_SCRUB_DAMAGED);
        *slot = word;
    }
    CHECK_EQ(scrub(h, 1000), TABLE_SCRUB_WHOLE);
    host_close(h);
}

int main(int argc, char **argv) {
    RUN(the_same_entries_have_the_same_digest_however_they_came);
    RUN(what_expires_is_in_no_digest);
    RUN(what_changes_during_a_scrub_is_no_damage);
    RUN(one_flipped_bit_is_found);
    RUN(an_entry_that_is_not_there_any_more_is_found);
    return check_end(argc, argv);
}
