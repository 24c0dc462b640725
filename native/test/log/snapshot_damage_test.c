/* snapshot_damage_test.c: snapshots that were damaged, exchanged or forged. What is wrong is said, with its place; no
 * chunk that is damaged reaches the caller; and no length or count in a file is believed. */
#include <stddef.h>
#include <string.h>
#include "../../base/hash.h"
#include "../check.h"
#include "snapshot_rig.h"

static snap_rig r;
static snapshot_found found;

typedef struct place {
    uint32_t at, bytes;
} place;
static place chunks[SNAP_ITEMS + 2]; /* the last is the foot */
static uint32_t count;
static memory_file *file;

static snapshot_chunk head_at(uint32_t at) {
    snapshot_chunk c;
    memcpy(&c, file->bytes + at, sizeof c);
    return c;
}
static void fill(uint64_t seed) {
    snap_init(&r, seed, 4096);
    CHECK(snap_start(&r));
    snap_make(&r, 0);
    snap_make(&r, 1);
    file = memory_disk_file(&r.disk, "snapshot-0-abc0000000000000");
    CHECK(file != NULL);
    count = 0;
    for (uint32_t at = WAL_BLOCK; at < file->size; at += chunks[count++].bytes) {
        snapshot_chunk c = head_at(at);
        chunks[count] = (place){ at, snapshot_blocks(&c) };
    }
    CHECK(count > 8 && head_at(chunks[count - 1].at).kind == SNAPSHOT_FOOT);
}
static void check_found(wal_verdict v, uint64_t offset) {
    snap_read(&r, 0, &found);
    CHECK_EQ(found.verdict, v);
    CHECK_EQ(found.offset, offset);
    CHECK(strcmp(found.file, "snapshot-0-abc0000000000000") == 0);
}

/* The place of the chunk, or the head, that has the byte. */
static uint32_t begin_of(uint32_t at) {
    uint32_t i = count;
    while (i > 0 && chunks[i - 1].at > at) i--;
    return i ? chunks[i - 1].at : 0;
}
static void flip(uint32_t at, uint32_t bit) {
    file->bytes[at] ^= (uint8_t)(1 << bit);
    check_found(WAL_DAMAGED, begin_of(at));
    file->bytes[at] ^= (uint8_t)(1 << bit);
}

TEST(a_flipped_bit_is_damage_wherever_it_is) {
    fill(check_seed());
    for (uint32_t i = 0; i < sizeof(snapshot_head) * 8; i++) flip(i / 8, i % 8);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t b = 0; b < sizeof(snapshot_chunk) * 8; b++) flip(chunks[i].at + b / 8, b % 8);
        for (uint32_t at = chunks[i].at; at < chunks[i].at + chunks[i].bytes; at += 257) flip(at, at % 8);
    }
    for (uint32_t b = 0; b < sizeof(snapshot_foot); b++)
        flip(chunks[count - 1].at + (uint32_t)sizeof(snapshot_chunk) + b, b % 8);
    check_found(WAL_WHOLE, 0);
    snap_free(&r);
}

/* ---- chunks with good crcs ---- */

static void seal(uint32_t at, const snapshot_chunk *c) { snapshot_seal(file->bytes + at, c); }
static void set_size(uint64_t size) { file->size = file->size_now = size; }

TEST(a_file_that_ends_early_or_late_is_damaged) {
    fill(check_seed());
    uint64_t whole = file->size;
    for (uint32_t i = 0; i < count; i++) {
        set_size(chunks[i].at); /* without a foot */
        check_found(WAL_DAMAGED, chunks[i].at);
    }
    set_size(whole - 100);
    check_found(WAL_DAMAGED, whole - 100);
    set_size(100);
    check_found(WAL_DAMAGED, 100);
    set_size(0);
    check_found(WAL_DAMAGED, 0);
    set_size(whole);
    check_found(WAL_WHOLE, 0);
    uint8_t more[WAL_BLOCK];
    memcpy(more, file->bytes + chunks[0].at, sizeof more);
    CHECK(file->room >= whole + WAL_BLOCK);
    memcpy(file->bytes + whole, more, sizeof more); /* a foot with something behind it */
    set_size(whole + WAL_BLOCK);
    check_found(WAL_DAMAGED, chunks[count - 1].at);
    snap_free(&r);
}

TEST(a_chunk_that_is_missing_exchanged_or_of_another_snapshot_is_damage) {
    fill(check_seed());
    uint32_t one = 0, other = 0;
    for (uint32_t i = 0; i < count - 1; i++) /* two of the same length */
        for (uint32_t k = i + 1; k < count - 1; k++)
            if (chunks[i].bytes == chunks[k].bytes) one = i, other = k;
    CHECK(one != other);
    uint32_t bytes = chunks[one].bytes;
    uint8_t kept[2][SNAP_CHUNK];
    memcpy(kept[0], file->bytes + chunks[one].at, bytes);
    memcpy(kept[1], file->bytes + chunks[other].at, bytes);
    memcpy(file->bytes + chunks[one].at, kept[1], bytes);
    memcpy(file->bytes + chunks[other].at, kept[0], bytes);
    check_found(WAL_DAMAGED, chunks[one].at);
    memcpy(file->bytes + chunks[one].at, kept[0], bytes);
    memcpy(file->bytes + chunks[other].at, kept[1], bytes);

    /* The same number, with another crc: the foot alone notices. */
    snapshot_chunk c = head_at(chunks[0].at);
    uint8_t *behind = file->bytes + chunks[0].at + sizeof c + c.bytes;
    CHECK(chunks[0].bytes > sizeof c + c.bytes);
    c.crc = 0;
    memcpy(kept[0], file->bytes + chunks[0].at, chunks[0].bytes);
    memcpy(file->bytes + chunks[0].at, &c, sizeof c);
    *behind = 1; /* in what should be zeros */
    c.crc = fkv_crc32c(0, file->bytes + chunks[0].at, chunks[0].bytes);
    memcpy(file->bytes + chunks[0].at, &c, sizeof c);
    check_found(WAL_DAMAGED, chunks[count - 1].at);
    memcpy(file->bytes + chunks[0].at, kept[0], chunks[0].bytes);

    memmove(file->bytes + chunks[3].at, file->bytes + chunks[4].at, file->size - chunks[4].at); /* one is left out */
    set_size(file->size - chunks[3].bytes);
    check_found(WAL_DAMAGED, chunks[3].at);
    snap_free(&r);
}

TEST(a_foot_that_says_something_else_than_what_is_there_is_damage) {
    fill(check_seed());
    uint32_t at = chunks[count - 1].at;
    snapshot_chunk c = head_at(at);
    uint8_t *items = file->bytes + at + sizeof c;
    snapshot_foot own, bad[4];
    memcpy(&own, items, sizeof own);
    for (int i = 0; i < 4; i++) bad[i] = own;
    bad[0].chunks++;
    bad[1].items--;
    bad[2].bytes++;
    bad[3].crcs ^= 1;
    for (int i = 0; i < 4; i++) {
        memcpy(items, &bad[i], sizeof own);
        seal(at, &c);
        check_found(WAL_DAMAGED, at);
    }
    memcpy(items, &own, sizeof own);
    snapshot_chunk wrong[3] = { c, c, c };
    wrong[0].bytes--;
    wrong[1].bytes = 0;
    wrong[2].count = 2;
    for (int i = 0; i < 3; i++) {
        seal(at, &wrong[i]);
        check_found(WAL_DAMAGED, at);
        memcpy(items, &own, sizeof own);
    }
    seal(at, &c);
    check_found(WAL_WHOLE, 0);
    snap_free(&r);
}

/* ---- heads ---- */

static void put_head(const snapshot_head *h, uint32_t format) {
    uint8_t *block = file->bytes;
    snapshot_put_head(block, h);
    memcpy(block + offsetof(snapshot_head, format), &format, sizeof format);
    memset(block + offsetof(snapshot_head, crc), 0, sizeof h->crc);
    uint32_t crc = fkv_crc32c(0, block, WAL_BLOCK);
    memcpy(block + offsetof(snapshot_head, crc), &crc, sizeof crc);
}

TEST(a_snapshot_of_another_owner_or_of_a_later_format_is_named) {
    fill(check_seed());
    snapshot_head own, h;
    memcpy(&own, file->bytes, sizeof own);
    h = own;
    h.cluster[3] ^= 1;
    put_head(&h, SNAPSHOT_FORMAT);
    check_found(WAL_OTHER_CLUSTER, 0);
    h = own;
    h.instance++;
    put_head(&h, SNAPSHOT_FORMAT);
    check_found(WAL_OTHER_INSTANCE, 0);
    put_head(&h, SNAPSHOT_FORMAT + 1);
    check_found(WAL_LATER_FORMAT, 0);
    CHECK_EQ(found.format, SNAPSHOT_FORMAT + 1);
    h = own;
    h.copy++; /* a file under another's name */
    put_head(&h, SNAPSHOT_FORMAT);
    check_found(WAL_DAMAGED, 0);
    h = own;
    h.shard++;
    put_head(&h, SNAPSHOT_FORMAT);
    check_found(WAL_DAMAGED, 0);
    h = own;
    h.buckets++; /* the caller refuses it */
    put_head(&h, SNAPSHOT_FORMAT);
    check_found(WAL_DAMAGED, 0);
    put_head(&own, SNAPSHOT_FORMAT);
    check_found(WAL_WHOLE, 0);
    snap_free(&r);
}

TEST(what_the_disk_refuses_to_read_is_said) {
    fill(check_seed());
    r.disk.unreadable = -5;
    check_found(WAL_UNREADABLE, 0);
    CHECK_EQ(found.error, -5);
    r.disk.unreadable = 0;
    snap_read(&r, 2, &found); /* there is none */
    CHECK(found.verdict == WAL_UNREADABLE && found.error == -2);
    snap_free(&r);
}

/* ---- hostile ---- */

static bool any_head(void *arg, const snapshot_head *h) {
    (void)arg, (void)h;
    return true;
}
static bool touch(void *arg, const snapshot_chunk *c, const uint8_t *items) {
    *(uint32_t *)arg = fkv_crc32c(*(uint32_t *)arg, items, c->bytes);
    return true;
}

TEST(no_number_in_a_file_leads_out_of_it) {
    static const uint32_t words[] = {
        0, 1, 31, 32, 4096, SNAPSHOT_CHUNK_MAX - 32, SNAPSHOT_CHUNK_MAX, SNAPSHOT_CHUNK_MAX + 1, 1u << 31, UINT32_MAX
    };
    fill(check_seed());
    uint32_t sum = 0, verdicts[WAL_UNREADABLE + 1] = { 0 };
    const snapshot_reader to = { .head = any_head, .chunk = touch, .arg = &sum };
    static uint8_t kept[1 << 20];
    CHECK(file->size <= sizeof kept);
    memcpy(kept, file->bytes, file->size);
    for (int n = 0; n < 4000; n++) {
        place p = chunks[memory_random(&r.disk, count)];
        uint32_t at = (uint32_t)memory_random(&r.disk, sizeof(snapshot_chunk) / 4) * 4;
        uint32_t word = words[memory_random(&r.disk, sizeof words / sizeof *words)];
        memcpy(file->bytes + p.at + at, &word, sizeof word);
        snapshot_chunk c = head_at(p.at);
        if (c.bytes <= file->size && p.at + snapshot_blocks(&c) <= file->size) seal(p.at, &c);
        snapshot_read(&r.disk.table, &snap_identity, 0, 0xabc0000000000000u, &to, &found);
        verdicts[found.verdict]++;
        memcpy(file->bytes, kept, file->size);
    }
    CHECK(verdicts[WAL_DAMAGED] > 1500 && verdicts[WAL_WHOLE] > 300);
    CHECK_EQ(verdicts[WAL_DAMAGED] + verdicts[WAL_WHOLE], 4000);
    snap_free(&r);
}

/* Chunks of the tests are small; what is read at once is not. */
TEST(a_chunk_that_is_longer_than_what_is_read_at_once_is_damage) {
    snap_init(&r, check_seed(), 4096);
    r.config.chunk_bytes = SNAPSHOT_CHUNK_MAX;
    CHECK(snap_start(&r));
    snap_begin(&r, 0);
    for (int i = 0; i < 4; i++) {
        CHECK(snapshot_put(&r.w, 1, snapshot_item_max(&r.w), r.now_ns) != NULL);
        snap_settle(&r);
    }
    const snapshot_foot f = { .last = 1 };
    snapshot_finish(&r.w, &f);
    snap_settle(&r);
    uint32_t sum = 0;
    const snapshot_reader to = { .head = any_head, .chunk = touch, .arg = &sum };
    snapshot_read(&r.disk.table, &snap_identity, 0, 0xabc0000000000000u, &to, &found);
    CHECK_EQ(found.verdict, WAL_WHOLE);
    file = memory_disk_file(&r.disk, "snapshot-0-abc0000000000000");
    static const uint32_t lengths[] = { 2 << 20, SNAPSHOT_CHUNK_MAX, SNAPSHOT_CHUNK_MAX - 31, UINT32_MAX };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        snapshot_chunk c = head_at(WAL_BLOCK);
        c.bytes = lengths[i];
        memcpy(file->bytes + WAL_BLOCK, &c, sizeof c);
        snapshot_read(&r.disk.table, &snap_identity, 0, 0xabc0000000000000u, &to, &found);
        CHECK(found.verdict == WAL_DAMAGED && found.offset == WAL_BLOCK);
    }
    snap_free(&r);
}

static bool refuse(void *arg, const snapshot_chunk *c, const uint8_t *items) {
    (void)c, (void)items;
    return (*(int *)arg)-- > 0;
}
TEST(a_chunk_that_the_caller_refuses_is_damage) {
    fill(check_seed());
    int accepted = 2;
    const snapshot_reader to = { .head = any_head, .chunk = refuse, .arg = &accepted };
    snapshot_read(&r.disk.table, &snap_identity, 0, 0xabc0000000000000u, &to, &found);
    CHECK_EQ(found.verdict, WAL_DAMAGED);
    CHECK_EQ(found.offset, chunks[2].at);
    snap_free(&r);
}

TEST(names_are_those_that_are_written) {
    static const char *const not [] = { "snapshot-1",        "snapshot-01-ab", "snapshot-1-AB",        "snapshot-1-ab-",
                                        "snapshot-1-ab-old", "snapshot--1-ab", "snapshot-1-0ab",       "2-1",
                                        "2-spare",           "snapshot-1-",    "snapshot-4294967296-1" };
    uint32_t shard;
    uint64_t copy;
    char name[WAL_NAME_MAX];
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        CHECK_EQ(snapshot_named(not [i], &shard, &copy), SNAPSHOT_NO_NAME);
    snapshot_name(name, 65535, UINT64_MAX);
    CHECK(snapshot_named(name, &shard, &copy) == SNAPSHOT_NAME && shard == 65535 && copy == UINT64_MAX);
    snapshot_new_name(name, 65535, UINT64_MAX);
    CHECK(snapshot_named(name, &shard, &copy) == SNAPSHOT_NEW_NAME && shard == 65535 && copy == UINT64_MAX);
}

TEST(each_verdict_has_a_text_with_its_facts) {
    char text[200];
    snapshot_found f = { .verdict = WAL_WHOLE, .file = "snapshot-3-ab", .foot.last = 77 };
    snapshot_found_text(&f, text, sizeof text);
    CHECK(strcmp(text, "snapshot-3-ab is whole up to record 77") == 0);
    f.verdict = WAL_DAMAGED;
    f.offset = 8192;
    snapshot_found_text(&f, text, sizeof text);
    CHECK(strcmp(text, "snapshot-3-ab: damaged at 8192") == 0);
}

int main(int argc, char **argv) {
    RUN(a_flipped_bit_is_damage_wherever_it_is);
    RUN(a_file_that_ends_early_or_late_is_damaged);
    RUN(a_chunk_that_is_missing_exchanged_or_of_another_snapshot_is_damage);
    RUN(a_foot_that_says_something_else_than_what_is_there_is_damage);
    RUN(a_snapshot_of_another_owner_or_of_a_later_format_is_named);
    RUN(what_the_disk_refuses_to_read_is_said);
    RUN(no_number_in_a_file_leads_out_of_it);
    RUN(a_chunk_that_is_longer_than_what_is_read_at_once_is_damage);
    RUN(a_chunk_that_the_caller_refuses_is_damage);
    RUN(names_are_those_that_are_written);
    RUN(each_verdict_has_a_text_with_its_facts);
    return check_end(argc, argv);
}
