/* hash_test.c: published vectors of SipHash and CRC32C, the instructions against the tables, and the status names. */
#include "../check.h"
#include "../../base/hash.h"
#include "../../base/status.h"
#include <stdlib.h>
#include <string.h>

static const fkv_seed counting = { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u };

static void fill_counting(uint8_t *m, size_t n) {
    for (size_t i = 0; i < n; i++) m[i] = (uint8_t)i;
}

/* The vectors' message of length n is 00 01 02 ...: its first two bytes are the namespace here, the rest is the key. */
TEST(keys_are_hashed_with_siphash_1_3) {
    static const uint64_t of_length[] = {
        /* from 2 */
        0x82cb9b024dc7d44d, 0x8bf80ab8e7ddf7fb, 0xcf75576088d38328, 0xdef9d52f49533b67, 0xc50d2b50c59f22a7,
        0xd3927d989bb11140, 0x369095118d299a8e, 0x25a48eb36c063de4, 0x79de85ee92ff097f, 0x70c118c1f94dc352,
        0x78a384b157b4d9a2, 0x306f760c1229ffa7, 0x605aa111c0f95d34, 0xd320d86d2a519956, 0xcc4fdd1a7d908b66,
        0x9cf2689063dbd80c, 0x8ffc389cb473e63e, 0xf21f9de58d297d1c,
    };
    uint8_t m[300];
    fill_counting(m, sizeof m);
    for (size_t i = 0; i < sizeof of_length / 8; i++) CHECK(fkv_hash_key(&counting, 0x0100, m + 2, i) == of_length[i]);
    CHECK(fkv_hash_key(&counting, 0x0100, m + 2, 61) == 0x9d199062b7bbb3a8);
    CHECK(fkv_hash_key(&counting, 0x0100, m + 2, 298) == 0x4016a23bda5a2224); /* the length enters modulo 256 */
}
TEST(a_namespace_is_part_of_the_key) {
    CHECK(fkv_hash_key(&counting, 0, "k", 1) != fkv_hash_key(&counting, 1, "k", 1));
    CHECK(fkv_hash_key(&counting, 0x6100, "b", 1) != fkv_hash_key(&counting, 0x00, "ab", 2));
}
TEST(messages_are_signed_with_siphash_2_4_128) {
    static const struct {
        size_t n;
        uint8_t mac[16];
    } vectors[] = {
        { 0, { 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93 } },
        { 1, { 0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45 } },
        { 7, { 0xa1, 0xf1, 0xeb, 0xbe, 0xd8, 0xdb, 0xc1, 0x53, 0xc0, 0xb8, 0x4a, 0xa6, 0x1f, 0xf0, 0x82, 0x39 } },
        { 8, { 0x3b, 0x62, 0xa9, 0xba, 0x62, 0x58, 0xf5, 0x61, 0x0f, 0x83, 0xe2, 0x64, 0xf3, 0x14, 0x97, 0xb4 } },
        { 15, { 0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11, 0x7e, 0x08, 0xec, 0x0f, 0x97, 0xcf, 0xc3, 0xd9 } },
        { 24, { 0x2d, 0xb4, 0x79, 0xae, 0x78, 0xbd, 0x50, 0xd8, 0x88, 0x2a, 0x8a, 0x17, 0x8a, 0x61, 0x32, 0xad } },
        { 63, { 0x51, 0x50, 0xd1, 0x77, 0x2f, 0x50, 0x83, 0x4a, 0x50, 0x3e, 0x06, 0x9a, 0x97, 0x3f, 0xbd, 0x7c } },
    };
    uint8_t m[64], mac[16];
    fill_counting(m, sizeof m);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        fkv_mac(&counting, m, vectors[i].n, mac);
        CHECK(memcmp(mac, vectors[i].mac, 16) == 0);
    }
}

typedef uint32_t (*crc_fn)(uint32_t, const void *, size_t);

static void check_rfc3720(crc_fn crc) {
    uint8_t m[32];
    memset(m, 0, sizeof m);
    CHECK_EQ(crc(0, m, 32), 0x8a9136aa);
    memset(m, 0xff, sizeof m);
    CHECK_EQ(crc(0, m, 32), 0x62a8ab43);
    fill_counting(m, sizeof m);
    CHECK_EQ(crc(0, m, 32), 0x46dd794e);
    for (int i = 0; i < 32; i++) m[i] = (uint8_t)(31 - i);
    CHECK_EQ(crc(0, m, 32), 0x113fdb5c);
    static const uint8_t iscsi_read[48] = {
        [0] = 0x01, [1] = 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02,
    };
    CHECK_EQ(crc(0, iscsi_read, 48), 0xd9963a56);
    CHECK_EQ(crc(0, "123456789", 9), 0xe3069283);
    CHECK_EQ(crc(0, "", 0), 0);
}
TEST(crc32c_gives_the_vectors_of_rfc_3720) {
    check_rfc3720(fkv_crc32c);
    check_rfc3720(fkv_crc32c_portable);
}
/* Every length to beyond the first two lane sizes, at every alignment, then a few around the largest lanes. */
TEST(crc32c_instructions_agree_with_the_tables) {
    size_t room = 3 * 4096 * 3 + 64;
    uint8_t *m = malloc(room);
    srandom((unsigned)check_seed());
    for (size_t i = 0; i < room; i++) m[i] = (uint8_t)random();
    for (size_t n = 0; n < 2200; n++) {
        size_t at = (size_t)random() % 8;
        uint32_t start = (uint32_t)random();
        CHECK(fkv_crc32c(start, m + at, n) == fkv_crc32c_portable(start, m + at, n));
    }
    for (int i = 0; i < 300; i++) {
        size_t n = 3 * 4096 * (size_t)(1 + i % 3) + (size_t)(random() % 17) - 8, at = (size_t)random() % 16;
        CHECK(fkv_crc32c(0, m + at, n) == fkv_crc32c_portable(0, m + at, n));
    }
    free(m);
}
TEST(crc32c_chains) {
    uint8_t m[1500];
    fill_counting(m, sizeof m);
    uint32_t whole = fkv_crc32c(0, m, sizeof m);
    for (size_t cut = 0; cut <= sizeof m; cut += 7)
        CHECK(fkv_crc32c(fkv_crc32c(0, m, cut), m + cut, sizeof m - cut) == whole);
}
TEST(random_bytes_differ) {
    uint64_t a[4] = { 0 }, b[4] = { 0 };
    fkv_random(a, sizeof a);
    fkv_random(b, sizeof b);
    for (int i = 0; i < 4; i++) CHECK(a[i] != b[i] && a[i] != 0);
}
TEST(a_status_outside_the_set_is_an_internal_error) {
    CHECK(strcmp(fkv_status_name(FKV_TABLE_FULL), "ERR_TABLE_FULL") == 0);
    CHECK(strcmp(fkv_status_name((fkv_status)200), "ERR_INTERNAL") == 0);
    CHECK(strcmp(fkv_status_name((fkv_status)-1), "ERR_INTERNAL") == 0);
    for (int s = 0; s < FKV_STATUS_COUNT; s++) CHECK(fkv_status_name((fkv_status)s) && fkv_status_text((fkv_status)s));
}
TEST(statuses_of_one_name_are_counted_as_one) {
    uint64_t count[FKV_STATUS_COUNT] = { [FKV_STALE_SEQUENCE] = 3, [FKV_UNDECIDED] = 4, [FKV_TIMEOUT] = 5 };
    CHECK(fkv_status_count(count, FKV_STALE_SEQUENCE) == 7 && fkv_status_count(count, FKV_UNDECIDED) == 0);
    CHECK(fkv_status_count(count, FKV_TIMEOUT) == 5 && fkv_status_count(count, FKV_BUSY) == 0);
    count[FKV_STALE_SEQUENCE] = 0;
    CHECK(fkv_status_count(count, FKV_STALE_SEQUENCE) == 4);
    uint64_t all = 0, once = 0;
    for (int s = 0; s < FKV_STATUS_COUNT; s++) all += count[s], once += fkv_status_count(count, (fkv_status)s);
    CHECK(all == once);
}

int main(int argc, char **argv) {
    RUN(keys_are_hashed_with_siphash_1_3);
    RUN(a_namespace_is_part_of_the_key);
    RUN(messages_are_signed_with_siphash_2_4_128);
    RUN(crc32c_gives_the_vectors_of_rfc_3720);
    RUN(crc32c_instructions_agree_with_the_tables);
    RUN(crc32c_chains);
    RUN(random_bytes_differ);
    RUN(a_status_outside_the_set_is_an_internal_error);
    RUN(statuses_of_one_name_are_counted_as_one);
    return check_end(argc, argv);
}
