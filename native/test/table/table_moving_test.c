/* table_moving_test.c: what must not go wrong while slots are on the move: between a split, or the shortening of a
 * chain, and the end of the quarantine there are slots that name an extent and are not its entry's. Each test brings
 * one such moment about, with the table's internal functions, and then looks at everything.
 */
#include <stdio.h>
#include "table_host.h"
#include "../../table/internal.h"

/* The next key, from *i on, of bucket `number` of 2^level that the next split leaves there (image 0) or moves (image
 * 1). */
static size_t key_in(const host *h, uint32_t level, uint32_t number, int image, int *i, char key[32]) {
    for (;; ++*i) {
        size_t n = (size_t)snprintf(key, 32, "k%d", *i);
        uint32_t bits = fkv_hash_bucket_bits(host_hash(h, 0, key, n));
        if ((bits & ((1u << level) - 1)) != number || (int)(bits >> level & 1) != image) continue;
        ++*i;
        return n;
    }
}
static uint32_t level_of(const host *h) { return 31u - (uint32_t)__builtin_clz(table_buckets(h->t)); }
static table_prepared prepare(host *h, const char *key, const void *value, size_t bytes) {
    table_op op = host_op(h, TABLE_PUT, key, strlen(key), value, bytes);
    table_prepared p;
    uint64_t present;
    table_busy why;
    CHECK_EQ(table_prepare(h->t, &op, &p, &present, &why), FKV_OK);
    return p;
}
static void grow_index(host *h) { host_add(h, TABLE_INDEX, 64 << 10); }

/* The slot kept for an insert was copied by a split; it is aborted; another key takes the same extent in the old
 * bucket. */
TEST(an_aborted_insert_whose_slot_moved_does_not_meet_its_copy) {
    host *h = host_open(4 << 20, 0, 0);
    grow_index(h);
    char key[32], other[32];
    int i = 0;
    uint32_t level = level_of(h);
    key_in(h, level, 0, 1, &i, key);
    table_prepared p = prepare(h, key, "value", 5);
    CHECK(table_split(h->t));
    host_check(h);
    table_abort(h->t, &p);
    host_check(h);
    key_in(h, level, 0, 0, &i, other);
    CHECK_EQ(host_put(h, other, "value"), FKV_OK);
    host_check(h);
    host_drain(h);
    CHECK(host_has(h, other, "value"));
    host_check(h);
    host_close(h);
}
TEST(a_prepared_change_is_committed_where_a_split_put_its_slot) {
    host *h = host_open(4 << 20, 0, 0);
    grow_index(h);
    char old[32], new[32];
    int i = 0;
    key_in(h, level_of(h), 0, 1, &i, old);
    key_in(h, level_of(h), 0, 1, &i, new);
    CHECK_EQ(host_put(h, old, "before"), FKV_OK);
    table_prepared p = prepare(h, old, "after", 5), q = prepare(h, new, "new", 3);
    CHECK(table_split(h->t));
    host_check(h);
    table_commit(h->t, &p);
    table_commit(h->t, &q);
    host_check(h);
    CHECK(host_has(h, old, "after") && host_has(h, new, "new"));
    host_drain(h);
    CHECK(host_has(h, old, "after") && host_has(h, new, "new"));
    host_check(h);
    host_close(h);
}
/* A moved slot still names an extent of another size range, whose quarantine ends at the same tick: the slot must go
 * first. */
TEST(a_moved_slot_is_cleared_before_what_it_names_is_let_go) {
    host *h = host_open(16 << 20, 1, 0);
    grow_index(h);
    char key[32];
    int i = 0;
    uint8_t *value = calloc(1, 100000);
    key_in(h, level_of(h), 0, 1, &i, key);
    table_op op = host_op(h, TABLE_PUT, key, strlen(key), value, 100000);
    CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    CHECK(table_split(h->t));
    CHECK_EQ(h->t->moving[0], 1);
    CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    CHECK_EQ(h->t->delay[1].tail - h->t->delay[1].head, 1);
    table_tick(h->t, h->now_ns, h->wall_ms, 0);
    h->now_ns += 10000000000;
    table_tick(h->t, h->now_ns, h->wall_ms, 1);
    CHECK(h->t->moving[0] == 0 && h->t->delay[1].tail - h->t->delay[1].head == 1);
    table_tick(h->t, h->now_ns, h->wall_ms, 1);
    CHECK_EQ(h->t->delay[1].tail - h->t->delay[1].head, 0);
    host_check(h);
    free(value);
    host_close(h);
}
/* Evacuation goes by slots: a copy is not the entry's, and a kept slot's extent is still being written. */
TEST(a_segment_is_emptied_while_slots_are_moving) {
    host *h = host_open(16 << 20, 0, 0);
    enum { N = 3000 };
    char key[32];
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "k%d", i);
        CHECK_EQ(host_put(h, key, "value"), FKV_OK);
    }
    for (int i = 20; i < N; i++) { /* a segment that is nearly full is not worth it */
        snprintf(key, sizeof key, "k%d", i);
        if (i % 2) CHECK_EQ(host_delete(h, key), FKV_OK);
    }
    host_drain(h);
    grow_index(h);
    table_prepared p[20];
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, i < 10 ? "new%d" : "k%d", i);
        p[i] = prepare(h, key, i < 10 ? "new" : "after", i < 10 ? 3 : 5);
    }
    for (int i = 0; i < 200; i++) CHECK(table_split(h->t));
    host_add(h, TABLE_HEAP, 256 << 10);
    CHECK(table_evacuate_start(h->t));
    int retired = h->retired;
    for (int pass = 0; pass < 3; pass++) {
        int budget = 1000000;
        table_evacuate_step(h->t, &budget);
        host_check(h);
    }
    CHECK(h->t->evacuated > 0);
    for (int i = 0; i < 20; i++) table_commit(h->t, &p[i]);
    host_check(h);
    host_drain(h);
    host_check(h);
    CHECK(h->retired > retired);
    for (int i = 0; i < N; i++) {
        if (i >= 20 && i % 2) continue;
        snprintf(key, sizeof key, "k%d", i);
        CHECK(host_has(h, key, i >= 10 && i < 20 ? "after" : "value"));
    }
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "new%d", i);
        CHECK(host_has(h, key, "new"));
    }
    host_close(h);
}
/* Its slot is what the change that is prepared will replace. */
TEST(an_entry_with_a_prepared_change_is_not_moved) {
    host *h = host_open(4 << 20, 0, 0);
    CHECK_EQ(host_put(h, "changes", "before"), FKV_OK);
    CHECK_EQ(host_put(h, "rests", "value"), FKV_OK);
    table_entry e, then;
    CHECK_EQ(host_get(h, "changes", 7, &e), FKV_OK);
    table_prepared p = prepare(h, "changes", "after", 5);
    host_add(h, TABLE_HEAP, 256 << 10);
    CHECK(table_evacuate_start(h->t));
    for (int pass = 0; pass < 3; pass++) {
        int budget = 1000000;
        table_evacuate_step(h->t, &budget);
        CHECK_EQ(h->t->evacuated, 1);
    }
    table_abort(h->t, &p);
    CHECK(host_get(h, "changes", 7, &then) == FKV_OK && then.key == e.key);
    p = prepare(h, "changes", "after", 5);
    table_commit(h->t, &p);
    host_check(h);
    host_drain(h);
    CHECK(host_has(h, "changes", "after") && host_has(h, "rests", "value"));
    host_check(h);
    host_close(h);
}
/* Whatever moves it: bytes that are not what was written get no checksum that says so. */
TEST(what_is_damaged_does_not_become_good_by_being_moved) {
    host *h = host_open(4 << 20, 0, 0);
    table_entry e;
    CHECK_EQ(host_put(h, "damaged", "value"), FKV_OK);
    CHECK_EQ(host_put(h, "good", "value"), FKV_OK);
    CHECK_EQ(host_get(h, "damaged", 7, &e), FKV_OK);
    const uint8_t *place = e.key;
    *(uint8_t *)(uintptr_t)&e.value[2] ^= 1;
    host_add(h, TABLE_HEAP, 256 << 10);
    CHECK(table_evacuate_start(h->t));
    for (int pass = 0; pass < 2; pass++) {
        int budget = 1000000;
        table_evacuate_step(h->t, &budget);
    }
    CHECK_EQ(h->t->evacuated, 2);
    CHECK(host_get(h, "damaged", 7, &e) == FKV_OK && e.key != place && !table_is_whole(&e));
    CHECK(host_get(h, "good", 4, &e) == FKV_OK && table_is_whole(&e));
    host_close(h);
}
/* Who read an entry before it was moved, by evacuation or by the growth of the index, may swap it by the version that
 * was read then; and where it was there is nothing that a reader takes, but the same version's bytes where it is. */
TEST(an_entry_that_was_moved_keeps_its_version_for_readers_and_for_compare_and_swap) {
    enum { N = 500 };
    host *h = host_open(16 << 20, 0, 0);
    const fkv_extent *place[N];
    uint64_t version[N];
    uint32_t tag[N], buckets = table_buckets(h->t);
    char key[32];
    table_entry e;
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "k%d", i);
        CHECK_EQ(host_put(h, key, key), FKV_OK);
        CHECK_EQ(host_get(h, key, strlen(key), &e), FKV_OK);
        place[i] = (const fkv_extent *)(const void *)(e.key - FKV_EXTENT_HEADER);
        version[i] = e.version;
        tag[i] = place[i]->tag;
    }
    grow_index(h);
    for (int i = 0; i < 200; i++) CHECK(table_split(h->t));
    host_pass(h, 0);
    host_pass(h, 400000000); /* moved slots are cleared; later the index would get smaller again */
    CHECK_EQ(table_buckets(h->t), buckets + 200);
    host_add(h, TABLE_HEAP, 256 << 10);
    CHECK(table_evacuate_start(h->t));
    for (int pass = 0; pass < 2; pass++) {
        int budget = 1000000;
        table_evacuate_step(h->t, &budget);
    }
    CHECK_EQ(h->t->evacuated, N);
    for (int i = 0; i < N; i++) {
        uint8_t value[32];
        fkv_found found;
        uint32_t known = buckets;
        snprintf(key, sizeof key, "k%d", i);
        fkv_wanted want = { key, (uint16_t)strlen(key), 0, tag[i] };
        CHECK_EQ(fkv_extent_copy(place[i], 64, &want, value, sizeof value, &found), FKV_READ_AGAIN);
        CHECK_EQ(fkv_extent_check(place[i], 64, &want, &found), FKV_READ_AGAIN);
        CHECK_EQ(host_read(h, &known, key, value, sizeof value, &found), HOST_HIT);
        CHECK(found.version == version[i] && memcmp(value, key, strlen(key)) == 0);
        table_op op = host_op(h, TABLE_CAS, key, strlen(key), "swapped", 7);
        table_busy why;
        uint64_t now;
        op.expected_version = version[i] + 1;
        CHECK(host_do(h, &op, &now, &why) == FKV_VERSION_MISMATCH && now == version[i]);
        op.expected_version = version[i];
        CHECK(host_do(h, &op, &now, &why) == FKV_OK && now > version[i]);
    }
    host_check(h);
    host_close(h);
}
/* A chain of two: what its end holds is copied to the front, and a reader that holds the old front still finds it at
 * the end. */
TEST(a_reader_finds_what_the_shortening_of_a_chain_moves) {
    host *h = host_open(4 << 20, 0, 0);
    char keys[18][32];
    int at = 0;
    for (int i = 0; i < 18; i++) {
        key_in(h, level_of(h), 0, 0, &at, keys[i]);
        CHECK_EQ(host_put(h, keys[i], "value"), FKV_OK);
    }
    CHECK_EQ(h->t->overflow_buckets, 1);
    for (int i = 0; i < 4; i++) CHECK_EQ(host_delete(h, keys[i]), FKV_OK);
    CHECK_EQ(h->t->moving[0], 0);
    uint32_t tag;
    fkv_bucket held;
    fkv_bucket_copy(host_bucket(h, 0, &tag), &held);
    CHECK_EQ(host_delete(h, keys[4]), FKV_OK);
    CHECK_EQ(h->t->moving[0], 1);
    host_check(h);
    char value[8];
    fkv_found found;
    for (int i = 5; i < 18; i++) CHECK_EQ(host_read_from(h, held, keys[i], value, sizeof value, &found), HOST_HIT);
    for (int i = 5; i < 18; i++) CHECK(host_has(h, keys[i], "value"));
    CHECK_EQ(host_put(h, keys[17], "changed"), FKV_OK); /* in the front now; its copy at the end is not touched */
    host_check(h);
    CHECK_EQ(host_delete(h, keys[16]), FKV_OK);
    CHECK_EQ(host_put(h, keys[16], "again"), FKV_OK);
    host_check(h);
    CHECK_EQ(h->t->overflow_buckets, 1);
    host_pass(h, 0);
    host_pass(h, 400000000); /* its slots are cleared, then it leaves the chain, and is kept */
    host_check(h);
    CHECK(h->t->overflow_buckets == 0 && h->t->quarantined_of[FKV_CLASS_BUCKET] == 1);
    host_pass(h, 0);
    host_pass(h, 400000000);
    CHECK_EQ(h->t->quarantined_of[FKV_CLASS_BUCKET], 0);
    CHECK(host_has(h, keys[17], "changed") && host_has(h, keys[16], "again") && host_has(h, keys[5], "value"));
    host_check(h);
    host_close(h);
}

int main(int argc, char **argv) {
    RUN(an_aborted_insert_whose_slot_moved_does_not_meet_its_copy);
    RUN(a_prepared_change_is_committed_where_a_split_put_its_slot);
    RUN(a_moved_slot_is_cleared_before_what_it_names_is_let_go);
    RUN(a_segment_is_emptied_while_slots_are_moving);
    RUN(what_is_damaged_does_not_become_good_by_being_moved);
    RUN(an_entry_with_a_prepared_change_is_not_moved);
    RUN(an_entry_that_was_moved_keeps_its_version_for_readers_and_for_compare_and_swap);
    RUN(a_reader_finds_what_the_shortening_of_a_chain_moves);
    return check_end(argc, argv);
}
