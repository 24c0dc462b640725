/* table_reader_test.c: the checks of reader.h. What it must refuse, byte by byte; and that a copy of an extent which is
 * being rewritten all the time, with no quarantine at all, is either whole or refused: the sequence lock and the
 * checksum stand alone here.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "../check.h"
#include "../../table/reader.h"
#include "../../table/words.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { COPIES = 20000 };
#else
enum { COPIES = 300000 };
#endif
enum { TAG = 0x1234abcd, NS = 5, BYTES = 512, KEY_BYTES = 13 };
static const char key[] = "the key is 13";
static const fkv_wanted want = { key, KEY_BYTES, NS, TAG };

/* ---- an extent whose bytes follow from its version ---- */
static uint32_t value_bytes_of(uint64_t version) { return 200 + (uint32_t)(version * 37 % 250); }
static uint8_t value_byte(uint64_t version, uint32_t i) { return (uint8_t)(version * 11 + i * (1 + version % 5)); }

static void write_extent(uint8_t *at, uint64_t version) {
    fkv_extent *e = (fkv_extent *)(void *)at;
    fkv_extent h = { .version = version,
                     .tag = TAG,
                     .value_bytes = value_bytes_of(version),
                     .expiry_space = fkv_expiry_space(version, NS),
                     .key_bytes = KEY_BYTES,
                     .codec = (uint8_t)version,
                     .user_flags = (uint32_t)version };
    uint8_t value[BYTES];
    for (uint32_t i = 0; i < h.value_bytes; i++) value[i] = value_byte(version, i);
    uint32_t crc = fkv_crc32c(fkv_crc32c(fkv_crc32c(0, (uint8_t *)&h + 8, 32), key, KEY_BYTES), value, h.value_bytes);
    __atomic_store_n(&e->state, FKV_EXTENT_PENDING, __ATOMIC_RELAXED);
    fkv_store_fence();
    fkv_copy_in(at + 8, (uint8_t *)&h + 8, 32);
    fkv_copy_in(at + FKV_EXTENT_HEADER, key, KEY_BYTES);
    fkv_copy_in(at + FKV_EXTENT_HEADER + KEY_BYTES, value, h.value_bytes);
    __atomic_store_n(&e->crc, crc, FKV_SHARED_STORE);
    __atomic_store_n(&e->state, FKV_EXTENT_LIVE, __ATOMIC_RELEASE);
}
static void check_whole(const fkv_found *f, const uint8_t *value) {
    uint64_t v = f->version;
    CHECK(f->value_bytes == value_bytes_of(v) && f->expiry_ms == v && f->codec == (uint8_t)v &&
          f->user_flags == (uint32_t)v);
    for (uint32_t i = 0; i < f->value_bytes; i++) CHECK(value[i] == value_byte(v, i));
}

/* Both ways must agree on memory that rests. */
static fkv_read read_both(uint8_t *at, const fkv_wanted *wanted, size_t room, fkv_found *found) {
    uint8_t value[BYTES];
    fkv_found other;
    fkv_read a = fkv_extent_copy(at, BYTES, wanted, value, room, found),
             b = fkv_extent_check(at, BYTES, wanted, &other);
    if (a == FKV_READ_TOO_SMALL)
        CHECK_EQ(b, FKV_READ_OK);
    else
        CHECK_EQ(a, b);
    if (a == FKV_READ_OK) check_whole(found, value);
    return a;
}
TEST(a_live_extent_is_read_whole) {
    _Alignas(32) uint8_t at[BYTES] = { 0 };
    fkv_found found;
    for (uint64_t version = 1; version < 600; version++) {
        write_extent(at, version);
        CHECK_EQ(read_both(at, &want, BYTES, &found), FKV_READ_OK);
        CHECK_EQ(found.version, version);
        CHECK_EQ(read_both(at, &want, found.value_bytes - 1, &found), FKV_READ_TOO_SMALL);
        CHECK_EQ(found.value_bytes, value_bytes_of(version));
    }
}
TEST(an_extent_that_is_not_live_or_of_another_segment_or_key_is_refused) {
    _Alignas(32) uint8_t at[BYTES] = { 0 };
    fkv_extent *e = (fkv_extent *)(void *)at;
    fkv_found found;
    write_extent(at, 9);
    static const uint32_t states[] = { FKV_EXTENT_FREE, FKV_EXTENT_PENDING, FKV_EXTENT_DEAD, 1, 0xffffffff };
    for (int i = 0; i < 5; i++) {
        e->state = states[i];
        CHECK_EQ(read_both(at, &want, BYTES, &found), FKV_READ_AGAIN);
    }
    e->state = FKV_EXTENT_LIVE;
    fkv_wanted other = want;
    other.tag++;
    CHECK_EQ(read_both(at, &other, BYTES, &found), FKV_READ_AGAIN);
    other = want;
    other.space++;
    CHECK_EQ(read_both(at, &other, BYTES, &found), FKV_READ_OTHER_KEY);
    other = want;
    other.key_bytes--;
    CHECK_EQ(read_both(at, &other, BYTES, &found), FKV_READ_OTHER_KEY);
    other = want;
    other.key = "the key is 14";
    CHECK_EQ(read_both(at, &other, BYTES, &found), FKV_READ_OTHER_KEY);
}
/* Lengths that reach beyond the class must not be followed (the sanitizer watches), whatever else the header says. */
TEST(lengths_that_do_not_fit_are_refused_before_they_are_followed) {
    uint8_t *at = aligned_alloc(32, BYTES);
    fkv_extent *e = (fkv_extent *)(void *)at;
    fkv_found found;
    static const uint32_t values[] = { BYTES - FKV_EXTENT_HEADER - KEY_BYTES + 1, 0x7fffffff, 0xffffffff,
                                       0xffffffff - 52 };
    for (int i = 0; i < 4; i++) {
        memset(at, 0, BYTES);
        write_extent(at, 3);
        e->value_bytes = values[i];
        CHECK_EQ(read_both(at, &want, SIZE_MAX, &found), FKV_READ_AGAIN);
    }
    static const uint16_t keys[] = { 0, FKV_KEY_MAX + 1, 0xffff, BYTES - FKV_EXTENT_HEADER + 1 };
    for (int i = 0; i < 4; i++) {
        write_extent(at, 3);
        e->key_bytes = keys[i];
        CHECK_EQ(read_both(at, &want, BYTES, &found), FKV_READ_AGAIN);
    }
    CHECK_EQ(fkv_extent_check(at, FKV_EXTENT_HEADER - 1, &want, &found), FKV_READ_AGAIN);
    free(at);
}
TEST(one_flipped_bit_of_a_landed_extent_is_found) {
    _Alignas(32) uint8_t at[BYTES] = { 0 };
    fkv_found found;
    write_extent(at, 77);
    uint32_t bytes = FKV_EXTENT_HEADER + KEY_BYTES + value_bytes_of(77);
    for (uint32_t bit = 0; bit < bytes * 8; bit++) {
        at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_EQ(fkv_extent_check(at, BYTES, &want, &found), FKV_READ_AGAIN);
        at[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    CHECK_EQ(fkv_extent_check(at, BYTES, &want, &found), FKV_READ_OK);
}

/* ---- while it is rewritten ---- */
static _Alignas(64) uint8_t shared[BYTES];
static int finished;

static void *rewrite(void *arg) {
    (void)arg;
    for (uint64_t version = 2; !__atomic_load_n(&finished, __ATOMIC_RELAXED); version++) write_extent(shared, version);
    return NULL;
}
static void hammer(int landed) {
    pthread_t writer;
    memset(shared, 0, sizeof shared);
    write_extent(shared, 1);
    finished = 0;
    CHECK_EQ(pthread_create(&writer, NULL, rewrite, NULL), 0);
    uint64_t last = 0, whole = 0;
    for (int i = 0; i < COPIES || whole < 100; i++) {
        _Alignas(8) uint8_t copy[BYTES];
        fkv_found found;
        fkv_read r;
        if (landed) {
            fkv_copy_shared(copy, shared, BYTES);
            fkv_copy_shared_end();
            r = fkv_extent_check(copy, BYTES, &want, &found);
        } else {
            r = fkv_extent_copy(shared, BYTES, &want, copy, BYTES, &found);
        }
        CHECK(r == FKV_READ_OK || r == FKV_READ_AGAIN); /* never another key: that would be a miss */
        if (r != FKV_READ_OK) continue;
        check_whole(&found, landed ? copy + found.value_offset : copy);
        CHECK(found.version >= last);
        last = found.version;
        whole++;
    }
    __atomic_store_n(&finished, 1, __ATOMIC_RELAXED);
    pthread_join(writer, NULL);
}
TEST(a_copy_of_an_extent_that_is_being_rewritten_is_whole_or_refused) { hammer(0); }
TEST(a_landed_extent_that_was_being_rewritten_is_whole_or_refused) { hammer(1); }

/* ---- buckets ---- */
TEST(a_reader_learns_of_growth_from_the_level_and_ends_at_the_right_bucket) {
    srandom((unsigned)check_seed());
    for (int round = 0; round < 20000; round++) {
        uint32_t buckets = 1 + (uint32_t)random() % 100000, known = 1 + (uint32_t)random() % buckets;
        uint32_t bits = (uint32_t)random() << 1;
        uint32_t level = 31u - (uint32_t)__builtin_clz(buckets), steps = 0;
        for (;;) {
            uint32_t number = fkv_bucket_of(bits, known);
            CHECK(number < buckets && ++steps < 40);
            bool further = number < buckets - (1u << level) || number >= 1u << level;
            fkv_bucket b = { .word0 = fkv_bucket_word0(TAG, level + further, 0) };
            fkv_bucket_state s = fkv_bucket_check(&b, TAG, number, bits, &known);
            CHECK(known <= buckets && s != FKV_BUCKET_FOREIGN);
            if (s == FKV_BUCKET_HERE) {
                CHECK_EQ(number, fkv_bucket_of(bits, buckets));
                break;
            }
        }
    }
}
TEST(a_bucket_of_another_segment_is_foreign) {
    uint32_t known = 8;
    fkv_bucket b = { .word0 = fkv_bucket_word0(TAG, 3, 0) };
    CHECK_EQ(fkv_bucket_check(&b, TAG, 2, 2, &known), FKV_BUCKET_HERE);
    CHECK_EQ(fkv_bucket_check(&b, TAG + 1, 2, 2, &known), FKV_BUCKET_FOREIGN);
    b.word0 = 0;
    CHECK_EQ(fkv_bucket_check(&b, TAG, 2, 2, &known), FKV_BUCKET_FOREIGN);
    b.word0 = fkv_bucket_word0(TAG, 40, 0);
    CHECK_EQ(fkv_bucket_check(&b, TAG, 2, 2, &known), FKV_BUCKET_FOREIGN);
    CHECK_EQ(known, 8);
}
TEST(a_location_outside_its_segment_is_refused) {
    uint64_t offset;
    uint32_t bytes;
    CHECK(fkv_location_range(fkv_location(1, 100), 4, 105 * FKV_UNIT, &offset, &bytes) && offset == 3200 &&
          bytes == 160);
    CHECK(!fkv_location_range(fkv_location(1, 100), 4, 104 * FKV_UNIT, &offset, &bytes));
    CHECK(!fkv_location_range(fkv_location(1, 0), 250, 1 << 20, &offset, &bytes));
    CHECK(!fkv_location_range(fkv_location(1, 0xffffff), 244, 512 << 20, &offset, &bytes));
}

int main(int argc, char **argv) {
    RUN(a_live_extent_is_read_whole);
    RUN(an_extent_that_is_not_live_or_of_another_segment_or_key_is_refused);
    RUN(lengths_that_do_not_fit_are_refused_before_they_are_followed);
    RUN(one_flipped_bit_of_a_landed_extent_is_found);
    RUN(a_copy_of_an_extent_that_is_being_rewritten_is_whole_or_refused);
    RUN(a_landed_extent_that_was_being_rewritten_is_whole_or_refused);
    RUN(a_reader_learns_of_growth_from_the_level_and_ends_at_the_right_bucket);
    RUN(a_bucket_of_another_segment_is_foreign);
    RUN(a_location_outside_its_segment_is_refused);
    return check_end(argc, argv);
}
