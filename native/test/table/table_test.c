/* table_test.c: what a table promises, one promise a test. Growth is in table_growth_test.c, random histories in
 * table_model_test.c, threads in table_concurrent_test.c, memory in table_memory_test.c. */
#include <stdio.h>
#include "table_host.h"
#include "../../table/internal.h"

static const uint64_t MIB = 1 << 20;

TEST(a_class_is_the_smallest_that_holds_the_bytes) {
    for (uint32_t cls = 1; cls < FKV_CLASS_COUNT; cls++) CHECK(fkv_class_units(cls) > fkv_class_units(cls - 1));
    for (uint64_t units = 1; units <= fkv_class_units(FKV_CLASS_COUNT - 1); units += 1 + units / 1000) {
        for (uint64_t bytes = units * FKV_UNIT - 1; bytes <= units * FKV_UNIT; bytes++) {
            uint32_t cls = fkv_class_of(bytes);
            CHECK((uint64_t)fkv_class_units(cls) * FKV_UNIT >= bytes);
            CHECK(cls == 0 || (uint64_t)fkv_class_units(cls - 1) * FKV_UNIT < bytes);
        }
    }
    CHECK_EQ(fkv_class_of(FKV_EXTENT_HEADER + FKV_KEY_MAX + (size_t)FKV_VALUE_MAX), 244);
    CHECK_EQ(fkv_class_units(fkv_class_of(1056)) * FKV_UNIT, 1056);
}
TEST(what_was_put_is_found_replaced_and_deleted) {
    host *h = host_open(4 * MIB, 0, 0);
    table_entry e;
    CHECK_EQ(host_get(h, "a", 1, &e), FKV_NOT_FOUND);
    CHECK_EQ(host_put(h, "a", "one"), FKV_OK);
    CHECK(host_has(h, "a", "one"));
    CHECK_EQ(host_put(h, "a", "another"), FKV_OK);
    CHECK_EQ(host_put(h, "b", ""), FKV_OK);
    CHECK(host_has(h, "a", "another") && host_has(h, "b", ""));
    CHECK_EQ(host_delete(h, "a"), FKV_OK);
    CHECK_EQ(host_get(h, "a", 1, &e), FKV_NOT_FOUND);
    CHECK_EQ(host_delete(h, "a"), FKV_NOT_FOUND);
    CHECK(host_has(h, "b", ""));
    host_check(h);
    host_close(h);
}
TEST(an_entry_carries_its_namespace_codec_flags_and_expiry) {
    host *h = host_open(4 * MIB, 0, 0);
    table_op op = { .kind = TABLE_PUT,
                    .space = 9,
                    .key = "key",
                    .key_bytes = 3,
                    .codec = 4,
                    .value = "v",
                    .value_bytes = 1,
                    .user_flags = 0xfeedbeef,
                    .expiry_ms = h->wall_ms + 5,
                    .hash = host_hash(h, 9, "key", 3) };
    table_busy why;
    uint64_t version;
    CHECK_EQ(host_do(h, &op, &version, &why), FKV_OK);
    table_entry e;
    CHECK_EQ(table_get(h->t, 9, "key", 3, op.hash, &e, &why), FKV_OK);
    CHECK(e.space == 9 && e.codec == 4 && e.user_flags == 0xfeedbeef && e.expiry_ms == h->wall_ms + 5 &&
          e.version == version);
    CHECK(e.key_bytes == 3 && memcmp(e.key, "key", 3) == 0);
    CHECK_EQ(host_get(h, "key", 3, &e), FKV_NOT_FOUND);
    host_close(h);
}
TEST(versions_rise_and_begin_with_the_ownership_epoch) {
    host *h = host_open(4 * MIB, 0, 0);
    uint64_t last = 0, version;
    table_busy why;
    for (int i = 0; i < 10; i++) {
        table_op op = host_op(h, i % 3 ? TABLE_PUT : TABLE_DELETE, "k", 1, "v", 1);
        if (host_do(h, &op, &version, &why) != FKV_OK) continue;
        CHECK(version > last && version >> 44 == 7);
        last = version;
    }
    host_close(h);
}
TEST(versions_end_before_they_would_repeat) {
    host *h = host_open(4 << 20, 0, 0);
    h->t->sequence = (1ull << 44) - 2;
    uint64_t version;
    table_busy why;
    table_op op = host_op(h, TABLE_PUT, "k", 1, "v", 1);
    CHECK_EQ(host_do(h, &op, &version, &why), FKV_OK);
    CHECK_EQ(version, 8ull * (1ull << 44) - 1);
    CHECK_EQ(host_do(h, &op, &version, &why), FKV_SHARD_CLOSED);
    CHECK(host_has(h, "k", "v"));
    host_close(h);
}

TEST(keys_and_values_outside_the_limits_are_refused) {
    host *h = host_open(4 * MIB, 0, 0);
    char key[FKV_KEY_MAX + 1] = { 0 };
    table_busy why;
    table_op op = host_op(h, TABLE_PUT, key, 0, "", 0);
    CHECK_EQ(host_do(h, &op, NULL, &why), FKV_KEY_INVALID);
    op.key_bytes = FKV_KEY_MAX + 1;
    CHECK_EQ(host_do(h, &op, NULL, &why), FKV_KEY_INVALID);
    op = host_op(h, TABLE_PUT, key, FKV_KEY_MAX, key, 100);
    CHECK_EQ(host_do(h, &op, NULL, &why), FKV_OK);
    op = host_op(h, TABLE_PUT, "k", 1, NULL, (size_t)FKV_VALUE_MAX + 1);
    CHECK_EQ(host_do(h, &op, NULL, &why), FKV_VALUE_TOO_LARGE);
    host_check(h);
    host_close(h);
}

static fkv_status cas(host *h, table_op_kind kind, uint64_t expected, const char *value, uint64_t *version) {
    table_op op = host_op(h, kind, "k", 1, value, strlen(value));
    op.expected_version = expected;
    table_busy why;
    return host_do(h, &op, version, &why);
}
TEST(compare_and_swap_takes_exactly_the_version_that_is_there) {
    host *h = host_open(4 * MIB, 0, 0);
    uint64_t v1, v2, there;
    CHECK(cas(h, TABLE_CAS, 5, "x", &there) == FKV_VERSION_MISMATCH && there == 0);
    CHECK_EQ(cas(h, TABLE_CAS, 0, "one", &v1), FKV_OK);
    CHECK(cas(h, TABLE_CAS, 0, "two", &there) == FKV_VERSION_MISMATCH && there == v1);
    CHECK_EQ(cas(h, TABLE_CAS, v1, "two", &v2), FKV_OK);
    CHECK(cas(h, TABLE_CAS_DELETE, v1, "", &there) == FKV_VERSION_MISMATCH && there == v2);
    CHECK(host_has(h, "k", "two"));
    CHECK_EQ(cas(h, TABLE_CAS_DELETE, v2, "", &there), FKV_OK);
    CHECK(cas(h, TABLE_CAS_DELETE, v2, "", &there) == FKV_VERSION_MISMATCH && there == 0);
    CHECK_EQ(cas(h, TABLE_CAS_DELETE, 0, "", &there), FKV_NOT_FOUND);
    host_check(h);
    host_close(h);
}
/* A refused operation must cost nothing: no extent, no slot, no place in quarantine, no version that is seen. */
TEST(a_refused_change_leaves_nothing_behind) {
    host *h = host_open(4 * MIB, 0, 0);
    uint64_t there;
    table_stats before, after;
    host_put(h, "k", "v");
    table_get_stats(h->t, &before);
    for (int i = 0; i < 1000; i++) CHECK_EQ(cas(h, TABLE_CAS, 1, "x", &there), FKV_VERSION_MISMATCH);
    table_get_stats(h->t, &after);
    CHECK_EQ(before.used_bytes, after.used_bytes);
    CHECK_EQ(after.prepared, 0);
    host_check(h);
    host_close(h);
}

TEST(a_prepared_change_is_seen_by_nobody_and_blocks_its_key) {
    host *h = host_open(4 * MIB, 0, 0);
    CHECK_EQ(host_put(h, "old", "before"), FKV_OK);
    const char *keys[] = { "old", "new" };
    for (int i = 0; i < 2; i++) {
        table_op op = host_op(h, TABLE_PUT, keys[i], 3, "after!", 6),
                 remove = host_op(h, TABLE_DELETE, keys[i], 3, NULL, 0);
        table_prepared p, q;
        uint64_t present;
        table_busy why = 0;
        table_entry e;
        CHECK_EQ(table_prepare(h->t, &op, &p, &present, &why), FKV_OK);
        CHECK(table_prepare(h->t, &op, &q, &present, &why) == FKV_BUSY && why == TABLE_BUSY_KEY);
        CHECK(table_prepare(h->t, &remove, &q, &present, &why) == FKV_BUSY && why == TABLE_BUSY_KEY);
        CHECK(table_get(h->t, 0, keys[i], 3, op.hash, &e, &why) == FKV_BUSY && why == TABLE_BUSY_KEY);
        char value[16];
        fkv_found found;
        uint32_t buckets = table_buckets(h->t);
        host_answer seen = host_read(h, &buckets, keys[i], value, sizeof value, &found);
        CHECK(i == 0 ? seen == HOST_HIT && memcmp(value, "before", 6) == 0 : seen == HOST_MISS);
        CHECK_EQ(host_put(h, "other", "fine"), FKV_OK);
        host_check(h);
        table_commit(h->t, &p);
        CHECK(host_has(h, keys[i], "after!"));
        CHECK(host_read(h, &buckets, keys[i], value, sizeof value, &found) == HOST_HIT &&
              memcmp(value, "after!", 6) == 0);
        CHECK_EQ(found.version, p.version);
    }
    host_check(h);
    host_close(h);
}
TEST(an_aborted_change_leaves_what_was_there) {
    host *h = host_open(4 * MIB, 0, 0);
    CHECK_EQ(host_put(h, "old", "before"), FKV_OK);
    const char *keys[] = { "old", "new" };
    for (int i = 0; i < 4; i++) {
        table_op op = host_op(h, i < 2 ? TABLE_PUT : TABLE_DELETE, keys[i % 2], 3, "after", 5);
        table_prepared p;
        uint64_t present;
        table_busy why;
        if (table_prepare(h->t, &op, &p, &present, &why) == FKV_OK) table_abort(h->t, &p);
        table_entry e;
        CHECK(host_has(h, "old", "before") && host_get(h, "new", 3, &e) == FKV_NOT_FOUND);
        host_check(h);
    }
    table_stats s;
    host_drain(h);
    table_get_stats(h->t, &s);
    CHECK(s.entries == 1 && s.prepared == 0 && s.quarantine_bytes == 0);
    host_check(h);
    host_close(h);
}
TEST(a_reserved_value_is_written_and_sealed_later) {
    host *h = host_open(160 * MIB, 0, 0);
    uint32_t n = FKV_VALUE_MAX - 3;
    uint8_t *value = malloc(n);
    for (uint32_t i = 0; i < n; i++) value[i] = (uint8_t)(i * 2654435761u >> 24);
    table_op op = host_op(h, TABLE_PUT, "a large one", 11, NULL, n);
    table_prepared p;
    uint64_t present;
    table_busy why = 0;
    CHECK(table_prepare(h->t, &op, &p, &present, &why) == FKV_BUSY && why == TABLE_BUSY_SEGMENT);
    host_serve(h);
    CHECK_EQ(table_prepare(h->t, &op, &p, &present, &why), FKV_OK);
    fkv_copy_in(p.value, value, 1000001);
    fkv_copy_in(p.value + 1000001, value + 1000001, n - 1000001);
    table_seal(h->t, &p);
    table_commit(h->t, &p);
    table_entry e;
    CHECK(host_get(h, "a large one", 11, &e) == FKV_OK && e.value_bytes == n && memcmp(e.value, value, n) == 0);
    host_check(h); /* the checksum too */
    uint8_t *copy = malloc(n);
    fkv_found found;
    uint32_t buckets = table_buckets(h->t);
    CHECK(host_read(h, &buckets, "a large one", copy, n, &found) == HOST_HIT && memcmp(copy, value, n) == 0);
    free(value);
    free(copy);
    host_close(h);
}

TEST(an_expired_entry_is_absent_at_once_and_its_memory_comes_back) {
    host *h = host_open(4 * MIB, 0, 0);
    table_busy why;
    for (int i = 0; i < 1000; i++) {
        char key[16];
        int n = snprintf(key, sizeof key, "k%d", i);
        table_op op = host_op(h, TABLE_PUT, key, (size_t)n, "value", 5);
        op.expiry_ms = i % 2 ? h->wall_ms + 10 : 0;
        CHECK_EQ(host_do(h, &op, NULL, &why), FKV_OK);
    }
    table_entry e;
    CHECK(host_has(h, "k1", "value"));
    table_tick(h->t, h->now_ns, h->wall_ms + 10, 0);
    CHECK_EQ(host_get(h, "k1", 2, &e), FKV_NOT_FOUND);
    CHECK_EQ(host_delete(h, "k1"), FKV_NOT_FOUND);
    uint64_t there;
    table_op op = host_op(h, TABLE_CAS, "k1", 2, "again", 5);
    CHECK_EQ(host_do(h, &op, &there, &why), FKV_OK); /* expected 0: must be absent */
    CHECK(host_has(h, "k1", "again"));
    for (int i = 0; i < 100; i++) host_pass(h, 1000000000);
    table_stats s;
    table_get_stats(h->t, &s);
    CHECK_EQ(s.entries, 501);
    CHECK_EQ(s.expired, 499);
    CHECK_EQ(s.quarantine_bytes, 0);
    host_check(h);
    host_close(h);
}
TEST(the_hand_leaves_an_expired_entry_that_a_prepared_change_replaces) {
    host *h = host_open(4 * MIB, 0, 0);
    table_busy why;
    uint64_t present;
    table_prepared p;
    table_op op = host_op(h, TABLE_PUT, "k", 1, "old", 3);
    op.expiry_ms = h->wall_ms + 10;
    CHECK_EQ(host_do(h, &op, NULL, &why), FKV_OK);
    op = host_op(h, TABLE_PUT, "k", 1, "new", 3);
    CHECK_EQ(table_prepare(h->t, &op, &p, &present, &why), FKV_OK);
    for (int i = 0; i < 50; i++) host_pass(h, 1000000000);
    host_check(h);
    table_commit(h->t, &p);
    CHECK(host_has(h, "k", "new"));
    host_check(h);
    host_close(h);
}

TEST(a_full_table_says_so_and_loses_nothing) {
    host *h = host_open(4 * MIB, 0, 0);
    int n = 0;
    fkv_status s;
    while ((s = host_put_number(h, n, 1000)) == FKV_OK) n++;
    CHECK_EQ(s, FKV_TABLE_FULL);
    CHECK(n > 3400); /* 85 % of 4 MiB in entries of 1,056 B and their index */
    for (int i = 0; i < n; i++) CHECK(host_has_number(h, i, 1000));
    CHECK_EQ(host_put_number(h, 5, 1000), FKV_TABLE_FULL);
    CHECK(host_has_number(h, 5, 1000));
    host_check(h);
    char key[32];
    host_number_key(key, sizeof key, 3);
    CHECK_EQ(host_delete(h, key), FKV_OK);
    table_busy why = 0;
    table_op op = host_op(h, TABLE_PUT, "user000000000new", 16, key, 30);
    op.value_bytes = 1000;
    op.value = calloc(1, 1000);
    CHECK(host_do(h, &op, NULL, &why) == FKV_BUSY && why == TABLE_BUSY_QUARANTINE);
    CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    CHECK_EQ(host_put_number(h, n, 1000), FKV_TABLE_FULL);
    host_check(h);
    free((void *)(uintptr_t)op.value);
    host_close(h);
}
TEST(memory_that_one_size_has_given_up_serves_another) {
    host *h = host_open(8 * MIB, 0, 0);
    int small = 0;
    while (host_put_number(h, small, 100) == FKV_OK) small++;
    for (int i = 0; i < small; i++) {
        if (i % 20 == 0) continue;
        char key[32];
        int n = host_number_key(key, sizeof key, i);
        table_op op = host_op(h, TABLE_DELETE, key, (size_t)n, NULL, 0);
        CHECK_EQ(host_do_patiently(h, &op, NULL), FKV_OK);
    }
    host_drain(h);
    int large = 0;
    while (host_put_number(h, 1000000 + large, 1000) == FKV_OK) large++;
    CHECK(large > 4000); /* of the 6,800 that would fill an empty table */
    table_stats s;
    table_get_stats(h->t, &s);
    CHECK(s.evacuated > 0 && h->retired > 0);
    for (int i = 0; i < small; i += 20) CHECK(host_has_number(h, i, 100));
    for (int i = 0; i < large; i++) CHECK(host_has_number(h, 1000000 + i, 1000));
    host_check(h);
    host_close(h);
}
TEST(expired_entries_make_room_in_a_full_table) {
    host *h = host_open(4 * MIB, 0, 0);
    char value[1000] = { 1 };
    table_busy why;
    int n = 0;
    for (;; n++) {
        char key[32];
        int k = host_number_key(key, sizeof key, n);
        table_op op = host_op(h, TABLE_PUT, key, (size_t)k, value, sizeof value);
        op.expiry_ms = h->wall_ms + 60000;
        fkv_status s = host_do(h, &op, NULL, &why);
        if (s == FKV_TABLE_FULL) break;
        if (s == FKV_BUSY) host_pass(h, 1000000);
    }
    host_pass(h, 61000000000u);
    for (int i = 0; i < n; i++) CHECK_EQ(host_put_number(h, 100000 + i, 1000), FKV_OK);
    host_check(h);
    host_close(h);
}

TEST(a_freed_extent_keeps_its_bytes_until_the_quarantine_has_passed) {
    host *h = host_open(4 * MIB, 100000000, 0);
    CHECK_EQ(host_put(h, "k", "0123456789"), FKV_OK);
    table_entry e, f;
    CHECK_EQ(host_get(h, "k", 1, &e), FKV_OK);
    CHECK_EQ(host_put(h, "k", "abcdefghij"), FKV_OK);
    for (int i = 0; i < 9; i++) {
        host_pass(h, 11000000);
        CHECK_EQ(host_put(h, "j", "##########"), FKV_OK);
        CHECK(memcmp(e.value, "0123456789", 10) == 0);
    }
    for (int i = 0; i < 100; i++) {
        host_pass(h, 11000000);
        CHECK_EQ(host_put(h, "j", "##########"), FKV_OK);
    }
    CHECK_EQ(host_get(h, "k", 1, &f), FKV_OK);
    CHECK(memcmp(f.value, "abcdefghij", 10) == 0 && memcmp(e.value, "##########", 10) == 0);
    host_check(h);
    host_close(h);
}
/* The clock of the table stands still between ticks; what dies late in a long turn must not be let go early. */
TEST(quarantine_counts_from_the_tick_after_an_extent_died) {
    host *h = host_open(4 * MIB, 100000000, 0);
    CHECK_EQ(host_put(h, "k", "0123456789"), FKV_OK);
    table_entry e;
    CHECK_EQ(host_get(h, "k", 1, &e), FKV_OK);
    CHECK_EQ(host_put(h, "k", "abcdefghij"), FKV_OK);
    h->now_ns += 150000000; /* a slow turn: the extent may have died at its end */
    table_tick(h->t, h->now_ns, h->wall_ms, 1000);
    table_stats s;
    table_get_stats(h->t, &s);
    CHECK(s.quarantine_bytes > 0);
    host_pass(h, 90000000);
    table_get_stats(h->t, &s);
    CHECK(s.quarantine_bytes > 0);
    host_pass(h, 20000000);
    table_get_stats(h->t, &s);
    CHECK_EQ(s.quarantine_bytes, 0);
    host_close(h);
}
TEST(a_full_quarantine_pushes_back_and_one_item_always_fits) {
    host *h = host_open(16 * MIB, 0, 4096);
    char value[8000] = { 2 };
    table_op op = host_op(h, TABLE_PUT, "k", 1, value, sizeof value);
    table_busy why = 0;
    CHECK_EQ(host_do(h, &op, NULL, &why), FKV_OK);
    CHECK_EQ(host_do(h, &op, NULL, &why), FKV_OK);
    CHECK(host_do(h, &op, NULL, &why) == FKV_BUSY && why == TABLE_BUSY_QUARANTINE);
    CHECK_EQ(host_delete(h, "k"), FKV_BUSY);
    CHECK_EQ(host_put(h, "new keys need no quarantine", ""), FKV_OK);
    host_drain(h);
    CHECK_EQ(host_delete(h, "k"), FKV_OK);
    host_check(h);
    host_close(h);
}

/* Aborted extents wait like any other, so a client that aborts without end must not fill the memory with them. */
TEST(changes_that_are_aborted_again_and_again_are_pushed_back_before_they_fill_the_memory) {
    enum { QUARANTINE = 64 << 10, VALUE = 1000 };
    host *h = host_open(16 * MIB, 0, QUARANTINE);
    char value[VALUE] = { 1 };
    table_stats s;
    table_prepared p;
    uint64_t present;
    table_busy why = 0;
    CHECK_EQ(host_put(h, "there already", "a value"), FKV_OK);
    table_op insert = host_op(h, TABLE_PUT, "new", 3, value, VALUE);
    table_op replace = host_op(h, TABLE_PUT, "there already", 13, value, VALUE);
    for (int round = 0; round < 3; round++) {
        int aborted = 0;
        fkv_status status;
        while ((status = table_prepare(h->t, aborted % 2 ? &replace : &insert, &p, &present, &why)) == FKV_OK &&
               aborted < 10000) {
            table_abort(h->t, &p);
            CHECK_EQ(p.extent->state, FKV_EXTENT_DEAD);
            host_serve(h);
            aborted++;
        }
        CHECK(status == FKV_BUSY && why == TABLE_BUSY_QUARANTINE);
        CHECK(aborted > QUARANTINE / 1200 && aborted <= QUARANTINE / VALUE);
        table_get_stats(h->t, &s);
        CHECK(s.quarantine_bytes <= QUARANTINE && s.heap_bytes < 4 * MIB);
        CHECK(host_has(h, "there already", "a value"));
        host_check(h);
        host_drain(h);
    }
    CHECK_EQ(host_put(h, "new", "a value"), FKV_OK);
    host_check(h);
    host_close(h);
}
/* What a change wrote before it was aborted may be on its way to a reader that had kept the location: bytes of it must
 * not come together with those of the next life. */
TEST(the_extent_of_an_aborted_change_keeps_its_bytes_until_the_quarantine_has_passed) {
    host *h = host_open(4 * MIB, 0, 0);
    char before[500], value[500];
    memset(value, 'a', sizeof value);
    table_op op = host_op(h, TABLE_PUT, "aborted", 7, value, sizeof value);
    table_prepared p;
    uint64_t present;
    table_busy why = 0;
    CHECK_EQ(table_prepare(h->t, &op, &p, &present, &why), FKV_OK);
    table_abort(h->t, &p);
    memcpy(before, p.value, sizeof before);
    char key[32];
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "o%06d", i);
        memset(value, 'b', sizeof value);
        op = host_op(h, TABLE_PUT, key, 7, value, sizeof value);
        CHECK_EQ(host_do(h, &op, NULL, &why), FKV_OK);
        host_pass(h, 1000000);
        CHECK(memcmp(before, p.value, sizeof before) == 0 && p.extent->state == FKV_EXTENT_DEAD);
    }
    host_drain(h);
    for (int i = 200; i < 210; i++) {
        snprintf(key, sizeof key, "o%06d", i);
        op = host_op(h, TABLE_PUT, key, 7, value, sizeof value);
        CHECK_EQ(host_do(h, &op, NULL, &why), FKV_OK);
    }
    CHECK(p.extent->state == FKV_EXTENT_LIVE);
    host_check(h);
    host_close(h);
}

TEST(a_table_is_not_made_with_too_little_memory_or_too_high_an_epoch) {
    table_config c = { .memory_bytes = TABLE_MEMORY_MIN - 1, .want_segment = host_want, .retire_segment = host_retire };
    table *t;
    CHECK_EQ(table_create(&c, &t), FKV_BAD_REQUEST);
    c.memory_bytes = TABLE_MEMORY_MIN;
    c.epoch = 1 << 20;
    CHECK_EQ(table_create(&c, &t), FKV_BAD_REQUEST);
    c.epoch--;
    CHECK_EQ(table_create(&c, &t), FKV_OK);
    table_op op = { .kind = TABLE_PUT, .key = "k", .key_bytes = 1, .value = "", .value_bytes = 0 };
    table_prepared p;
    uint64_t present;
    table_busy why = 0;
    CHECK(table_prepare(t, &op, &p, &present, &why) == FKV_BUSY && why == TABLE_BUSY_SEGMENT);
    table_destroy(t);
}

int main(int argc, char **argv) {
    RUN(a_class_is_the_smallest_that_holds_the_bytes);
    RUN(what_was_put_is_found_replaced_and_deleted);
    RUN(an_entry_carries_its_namespace_codec_flags_and_expiry);
    RUN(versions_rise_and_begin_with_the_ownership_epoch);
    RUN(versions_end_before_they_would_repeat);
    RUN(keys_and_values_outside_the_limits_are_refused);
    RUN(compare_and_swap_takes_exactly_the_version_that_is_there);
    RUN(a_refused_change_leaves_nothing_behind);
    RUN(a_prepared_change_is_seen_by_nobody_and_blocks_its_key);
    RUN(an_aborted_change_leaves_what_was_there);
    RUN(a_reserved_value_is_written_and_sealed_later);
    RUN(an_expired_entry_is_absent_at_once_and_its_memory_comes_back);
    RUN(the_hand_leaves_an_expired_entry_that_a_prepared_change_replaces);
    RUN(a_full_table_says_so_and_loses_nothing);
    RUN(memory_that_one_size_has_given_up_serves_another);
    RUN(expired_entries_make_room_in_a_full_table);
    RUN(a_freed_extent_keeps_its_bytes_until_the_quarantine_has_passed);
    RUN(quarantine_counts_from_the_tick_after_an_extent_died);
    RUN(a_full_quarantine_pushes_back_and_one_item_always_fits);
    RUN(changes_that_are_aborted_again_and_again_are_pushed_back_before_they_fill_the_memory);
    RUN(the_extent_of_an_aborted_change_keeps_its_bytes_until_the_quarantine_has_passed);
    RUN(a_table_is_not_made_with_too_little_memory_or_too_high_an_epoch);
    return check_end(argc, argv);
}
