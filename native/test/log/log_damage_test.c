/* log_damage_test.c: a log whose files were damaged, exchanged or lost. What is wrong is said, with its place; nothing
 * is replayed that is not what was appended; and no length or count in a file is believed. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "../../base/hash.h"
#include "../check.h"
#include "log_rig.h"

static rig r;

typedef struct place {
    uint32_t file, at, bytes; /* of a batch */
} place;
static place batches[256];
static int batch_count;

static memory_file *file_of(uint32_t number) {
    char name[WAL_NAME_MAX];
    wal_file_name(name, rig_identity.thread, number);
    return memory_disk_file(&r.disk, name);
}
static wal_batch head_at(uint32_t number, uint32_t at) {
    wal_batch h;
    memcpy(&h, file_of(number)->bytes + at, sizeof h);
    return h;
}
/* Three files with batches, two for the future. */
static void fill(uint64_t seed) {
    rig_filled(&r, seed, 3);
    batch_count = 0;
    for (uint32_t n = 1; n <= 3; n++)
        for (uint32_t at = WAL_BLOCK; at < RIG_FILE && head_at(n, at).bytes; at += batches[batch_count++].bytes)
            batches[batch_count] = (place){ n, at, wal_whole_blocks(head_at(n, at).bytes) };
    CHECK(batch_count > 6 && batches[batch_count - 1].file == 3);
}
static void replay(void) {
    rig_replay(&r);
    wal_files_free(&r.found.files);
}
static void check_found(wal_verdict verdict, uint32_t file, uint64_t offset) {
    char name[WAL_NAME_MAX];
    wal_file_name(name, rig_identity.thread, file);
    CHECK_EQ(r.found.verdict, verdict);
    CHECK(strcmp(r.found.file, name) == 0);
    CHECK_EQ(r.found.offset, offset);
}
/* Which batch it is in; batch_count: in none. */
static int batch_of(uint32_t file, uint32_t at) {
    for (int i = 0; i < batch_count; i++)
        if (batches[i].file == file && at - batches[i].at < batches[i].bytes) return i;
    return batch_count;
}

static void flip(uint32_t file, uint32_t at, uint32_t bit) {
    file_of(file)->bytes[at] ^= (uint8_t)(1 << bit);
    replay();
    int batch = batch_of(file, at);
    if (at < WAL_BLOCK)
        check_found(WAL_DAMAGED, file, 0);
    else if (batch == batch_count)
        CHECK_EQ(r.found.verdict, WAL_WHOLE);
    else
        check_found(batch == batch_count - 1 ? WAL_TORN : WAL_DAMAGED, file, batches[batch].at);
    if (batch < batch_count) CHECK(r.to < r.count);
    file_of(file)->bytes[at] ^= (uint8_t)(1 << bit);
}

TEST(a_flipped_bit_is_a_torn_tail_in_the_last_batch_and_damage_elsewhere) {
    fill(check_seed());
    for (uint32_t file = 1; file <= 5; file++) {
        for (uint32_t i = 0; i < sizeof(wal_file_head) * 8; i++) flip(file, i / 8, i % 8);
        for (uint32_t at = WAL_BLOCK / 2; at < RIG_FILE; at += 61) flip(file, at, at % 8);
    }
    for (int i = 0; i < batch_count; i++) {
        const uint32_t heads = sizeof(wal_batch) + sizeof(wal_section);
        for (uint32_t at = 0; at < heads; at++) flip(batches[i].file, batches[i].at + at, (at + (uint32_t)i) % 8);
    }
    replay();
    CHECK_EQ(r.found.verdict, WAL_WHOLE);
    CHECK(r.from == 0 && r.to == r.count);
    rig_free(&r);
}

TEST(a_torn_tail_is_cut_off_and_no_damage_once_the_log_has_gone_on) {
    fill(check_seed());
    CHECK(rig_recover(&r));
    for (int i = 0; i < 2; i++) { /* one that is whole before it, in the same file */
        rig_settle(&r);
        CHECK(rig_append(&r, 1, 1, 1000));
    }
    rig_settle(&r);
    rig_end(&r, true);
    const uint32_t file = 4, at = 2 * WAL_BLOCK;
    memset(file_of(file)->bytes + at + 512, 0, WAL_BLOCK - 512);
    r.durable--; /* the disk lied about the last batch */
    uint32_t count = r.count;
    CHECK(rig_recover(&r));
    check_found(WAL_TORN, file, at);
    CHECK_EQ(r.count, count - 1);
    rig_settle(&r);
    CHECK(rig_append(&r, 1, 1, 100));
    rig_settle(&r);
    rig_end(&r, true);
    CHECK(rig_recover(&r));
    CHECK_EQ(r.found.verdict, WAL_WHOLE);
    rig_free(&r);
}

/* A client may guess all of a batch but the salt, and store a value of that: at the place of a block it is no batch. */
TEST(a_value_that_looks_like_a_batch_is_none) {
    fill(check_seed());
    place last = batches[batch_count - 1];
    wal_batch head = head_at(last.file, last.at);
    uint8_t *behind = file_of(last.file)->bytes + last.at + last.bytes;
    memcpy(behind, behind - last.bytes, last.bytes);
    memcpy(behind + last.bytes, behind, last.bytes);
    head.salt ^= 1;
    head.number++;
    wal_seal_batch(behind, &head);
    head.number++;
    wal_seal_batch(behind + last.bytes, &head);
    replay();
    check_found(WAL_TORN, last.file, last.at + last.bytes); /* as remains of one could look */
    CHECK(r.from == 0 && r.to == r.count);
    rig_free(&r);
}

/* ---- files ---- */

static void lose(uint32_t number) {
    char name[WAL_NAME_MAX];
    wal_file_name(name, rig_identity.thread, number);
    CHECK_EQ(r.disk.table.remove(&r.disk.table, name), 0);
    CHECK_EQ(r.disk.table.sync_directory(&r.disk.table), 0);
}

TEST(a_missing_file_is_named_with_the_first_batch_that_is_gone) {
    fill(check_seed());
    uint64_t gone = head_at(2, WAL_BLOCK).number;
    lose(5); /* in which nothing was */
    replay();
    CHECK_EQ(r.found.verdict, WAL_WHOLE);
    lose(2);
    replay();
    check_found(WAL_FILE_MISSING, 2, 0);
    CHECK_EQ(r.found.batch, gone);
    CHECK(r.to < r.count);
    rig_free(&r);
}

/* The one that was written last: files for the future lie behind it, in which no batch says that one is gone. */
TEST(the_newest_file_is_missed_as_well) {
    fill(check_seed());
    uint64_t gone = head_at(3, WAL_BLOCK).number;
    lose(3);
    replay();
    check_found(WAL_FILE_MISSING, 3, 0);
    CHECK_EQ(r.found.batch, gone);
    lose(5);
    replay();
    CHECK_EQ(r.found.verdict, WAL_WHOLE); /* a start that makes files anew may leave it so: docs/log.md */
    rig_free(&r);
    rig_filled(&r, check_seed(), 1);
    lose(1); /* the only one with batches */
    replay();
    check_found(WAL_FILE_MISSING, 1, 0);
    CHECK_EQ(r.found.batch, 1);
    rig_free(&r);
}

TEST(a_file_that_has_lost_its_batches_is_damaged) {
    fill(check_seed());
    memset(file_of(2)->bytes + WAL_BLOCK, 0, RIG_FILE - WAL_BLOCK);
    replay();
    check_found(WAL_DAMAGED, 2, WAL_BLOCK);
    memset(file_of(1)->bytes + WAL_BLOCK, 0, RIG_FILE - WAL_BLOCK);
    replay();
    check_found(WAL_DAMAGED, 1, WAL_BLOCK);
    rig_free(&r);
}

TEST(a_file_that_is_too_short_or_too_long_is_damaged_where_it_ends) {
    fill(check_seed());
    memory_file *f = file_of(2);
    uint64_t whole = f->size;
    f->size = f->size_now = whole - 100;
    replay();
    check_found(WAL_DAMAGED, 2, whole - 100);
    f->size = f->size_now = 100;
    replay();
    check_found(WAL_DAMAGED, 2, 0);
    rig_free(&r);
}

static void put_head(uint32_t file, const wal_file_head *h) {
    uint8_t *block = file_of(file)->bytes;
    wal_put_file_head(block, h);
    if (h->format == 0) return; /* this version's */
    memcpy(block + offsetof(wal_file_head, format), &h->format, sizeof h->format);
    memset(block + offsetof(wal_file_head, crc), 0, sizeof h->crc);
    uint32_t crc = fkv_crc32c(0, block, WAL_BLOCK);
    memcpy(block + offsetof(wal_file_head, crc), &crc, sizeof crc);
}

TEST(a_file_of_another_owner_or_of_a_later_format_is_named) {
    fill(check_seed());
    wal_file_head own, h;
    memcpy(&own, file_of(3)->bytes, sizeof own);
    own.format = 0;
    h = own;
    h.cluster[3] ^= 1;
    put_head(3, &h);
    replay();
    check_found(WAL_OTHER_CLUSTER, 3, 0);
    h = own;
    h.instance++;
    put_head(3, &h);
    replay();
    check_found(WAL_OTHER_INSTANCE, 3, 0);
    h = own;
    h.format = WAL_FORMAT + 1;
    h.instance++;
    put_head(3, &h);
    replay();
    check_found(WAL_LATER_FORMAT, 3, 0);
    CHECK_EQ(r.found.format, WAL_FORMAT + 1);
    h = own;
    h.number = 2; /* a file under another's name */
    put_head(3, &h);
    replay();
    check_found(WAL_DAMAGED, 3, 0);
    h = own;
    h.thread++;
    put_head(3, &h);
    replay();
    check_found(WAL_DAMAGED, 3, 0);
    h = own;
    h.bytes += WAL_BLOCK;
    put_head(3, &h);
    replay();
    check_found(WAL_DAMAGED, 3, RIG_FILE);
    const uint32_t strides[] = { 0, WAL_BLOCK, 2 * WAL_BLOCK + 1, WAL_STRIDE(RIG_BUFFER) - 8, UINT32_MAX };
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        h = own;
        h.stride = strides[i];
        put_head(3, &h);
        replay();
        check_found(WAL_DAMAGED, 3, 0);
    }
    h.stride = UINT32_MAX / WAL_BLOCK * WAL_BLOCK; /* beyond the file: then all of it is one */
    put_head(3, &h);
    replay();
    CHECK_EQ(r.found.verdict, WAL_WHOLE);
    put_head(3, &own);
    replay();
    CHECK_EQ(r.found.verdict, WAL_WHOLE);
    rig_free(&r);
}

TEST(what_the_disk_refuses_to_read_is_said) {
    fill(check_seed());
    r.disk.unreadable = -5;
    replay();
    check_found(WAL_UNREADABLE, 1, 0);
    CHECK_EQ(r.found.error, -5);
    r.disk.unreadable = 0;
    rig_free(&r);
}

/* ---- hostile ---- */

static void seal(place p, const wal_batch *h) { wal_seal_batch(file_of(p.file)->bytes + p.at, h); }

TEST(a_batch_with_a_good_crc_whose_sections_are_none_is_damaged) {
    fill(check_seed());
    place p = batches[batch_count - 1]; /* so that it could be taken for a torn one */
    uint8_t *bytes = file_of(p.file)->bytes + p.at, kept[WAL_BLOCK];
    memcpy(kept, bytes, sizeof kept);
    wal_batch head = head_at(p.file, p.at);
    wal_section own, bad[6];
    memcpy(&own, bytes + sizeof head, sizeof own);
    for (int i = 0; i < 6; i++) bad[i] = own;
    bad[0].bytes = UINT32_MAX;
    bad[1].bytes += 1;
    bad[2].bytes -= 1;
    bad[3].bytes = 0;
    bad[4].first = 0;
    bad[5].first = UINT64_MAX;
    for (int i = 0; i < 6; i++) {
        memcpy(bytes + sizeof head, &bad[i], sizeof own);
        seal(p, &head);
        replay();
        check_found(WAL_DAMAGED, p.file, p.at);
        memcpy(bytes, kept, sizeof kept);
    }
    wal_batch alone = head; /* that section, and nothing behind it */
    alone.sections = 1;
    alone.bytes = sizeof head + sizeof own;
    memcpy(bytes + sizeof head, &bad[3], sizeof own);
    seal(p, &alone);
    replay();
    check_found(WAL_DAMAGED, p.file, p.at);
    memcpy(bytes, kept, sizeof kept);
    p = batches[3]; /* in the middle of a file */
    head = head_at(p.file, p.at);
    wal_batch numbers[4] = { head, head, head, head };
    numbers[0].number += 1;
    numbers[1].number -= 1;
    numbers[2].sections += 1;
    numbers[3].sections = 0;
    for (int i = 0; i < 4; i++) {
        seal(p, &numbers[i]);
        replay();
        check_found(WAL_DAMAGED, p.file, p.at);
    }
    rig_free(&r);
}

static bool touch(void *arg, const wal_section *s, const uint8_t *records) {
    *(uint32_t *)arg = fkv_crc32c(*(uint32_t *)arg, records, s->bytes);
    return true;
}

TEST(no_number_in_a_file_leads_out_of_it) {
    static const uint32_t words[] = { 0, 1, 63, 64, 4096, WAL_BATCH_MAX, WAL_BATCH_MAX + 1, 1u << 31, UINT32_MAX };
    fill(check_seed());
    uint32_t sum = 0, verdicts[WAL_UNREADABLE + 1] = { 0 };
    for (int n = 0; n < 4000; n++) {
        place p = batches[memory_random(&r.disk, (uint64_t)batch_count)];
        uint8_t *bytes = file_of(p.file)->bytes + p.at, kept[RIG_FILE];
        uint32_t size = RIG_FILE - p.at;
        memcpy(kept, bytes, size);
        uint32_t at = (uint32_t)memory_random(&r.disk, (sizeof(wal_batch) + sizeof(wal_section)) / 4) * 4;
        uint32_t word = words[memory_random(&r.disk, sizeof words / sizeof *words)];
        memcpy(bytes + at, &word, sizeof word);
        wal_batch h;
        memcpy(&h, bytes, sizeof h);
        if (h.bytes >= sizeof h && h.bytes <= size) seal(p, &h);
        wal_found found;
        wal_replay(&r.disk.table, &rig_identity, touch, &sum, &found);
        verdicts[found.verdict]++;
        wal_files_free(&found.files);
        memcpy(bytes, kept, size);
    }
    CHECK(verdicts[WAL_DAMAGED] > 1000 && verdicts[WAL_WHOLE] > 100);
    rig_free(&r);
}

/* Files of the tests are small; what is read at once is not. */
TEST(a_file_that_is_larger_than_what_is_read_at_once_is_replayed_and_its_lengths_are_not_believed) {
    rig_init(&r, check_seed(), 4096);
    r.config.file_bytes = 3 * WAL_BATCH_MAX;
    CHECK(rig_recover(&r));
    rig_settle(&r);
    while (r.log.next_batch < 800) {
        uint32_t records = 1 + (uint32_t)memory_random(&r.disk, 4);
        CHECK(rig_append(&r, (uint32_t)memory_random(&r.disk, RIG_SHARDS), records, 2900));
        rig_settle(&r);
    }
    CHECK(LIST_LAST(&r.log.kept, wal_file, link)->at > WAL_BATCH_MAX + 2 * RIG_BUFFER);
    rig_end(&r, true);
    replay();
    CHECK(r.found.verdict == WAL_WHOLE && r.from == 0 && r.to == r.count);

    uint8_t *first = file_of(1)->bytes + WAL_BLOCK;
    wal_batch head;
    memcpy(&head, first, sizeof head);
    const uint32_t lengths[] = { 2 * WAL_BATCH_MAX, WAL_BATCH_MAX + 1, WAL_BATCH_MAX, UINT32_MAX, 63, 0 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        head.bytes = lengths[i];
        memcpy(first, &head, sizeof head);
        replay();
        check_found(WAL_DAMAGED, 1, WAL_BLOCK);
    }
    rig_free(&r);
}

static bool refuse(void *arg, const wal_section *s, const uint8_t *records) {
    (void)records;
    return s->count == 0 || (*(int *)arg)-- > 0;
}
TEST(a_section_that_the_caller_refuses_is_damage) {
    fill(check_seed());
    int accepted = 1;
    wal_found found;
    wal_replay(&r.disk.table, &rig_identity, refuse, &accepted, &found);
    CHECK(found.verdict == WAL_DAMAGED && strcmp(found.file, "2-1") == 0);
    CHECK_EQ(found.offset, batches[1].at);
    wal_files_free(&found.files);
    rig_free(&r);
}

TEST(each_verdict_has_a_text_with_its_facts) {
    static const char *const texts[] = {
        [WAL_WHOLE] = "the log is whole up to batch 8",
        [WAL_TORN] = "0-7: the last batch, at 4096, was not written to its end and is cut off",
        [WAL_DAMAGED] = "0-7: damaged at 4096",
        [WAL_FILE_MISSING] = "0-7 is missing, with batch 9 and later ones",
        [WAL_OTHER_CLUSTER] = "0-7 belongs to another cluster",
        [WAL_OTHER_INSTANCE] = "0-7 belongs to another data directory",
        [WAL_LATER_FORMAT] = "0-7 has format 3, of a later version of farkv: start that one; this one reads up to 1",
        [WAL_UNREADABLE] = "0-7: cannot be read at 4096: Input/output error",
    };
    for (uint32_t v = WAL_WHOLE; v <= WAL_UNREADABLE; v++) {
        wal_found f = {
            .verdict = (wal_verdict)v, .file = "0-7", .offset = 4096, .batch = 9, .format = 3, .error = -5
        };
        char text[200];
        wal_found_text(&f, text, sizeof text);
        CHECK(strcmp(text, texts[v]) == 0);
    }
    wal_found all = { .verdict = WAL_FILE_MISSING, .file = "0-1", .batch = 1 };
    char text[200];
    wal_found_text(&all, text, sizeof text);
    CHECK(strcmp(text, "0-1 is missing, with all that was in the log") == 0);
}

int main(int argc, char **argv) {
    RUN(a_flipped_bit_is_a_torn_tail_in_the_last_batch_and_damage_elsewhere);
    RUN(a_torn_tail_is_cut_off_and_no_damage_once_the_log_has_gone_on);
    RUN(a_value_that_looks_like_a_batch_is_none);
    RUN(a_missing_file_is_named_with_the_first_batch_that_is_gone);
    RUN(the_newest_file_is_missed_as_well);
    RUN(a_file_that_has_lost_its_batches_is_damaged);
    RUN(a_file_that_is_too_short_or_too_long_is_damaged_where_it_ends);
    RUN(a_file_of_another_owner_or_of_a_later_format_is_named);
    RUN(what_the_disk_refuses_to_read_is_said);
    RUN(a_batch_with_a_good_crc_whose_sections_are_none_is_damaged);
    RUN(no_number_in_a_file_leads_out_of_it);
    RUN(a_file_that_is_larger_than_what_is_read_at_once_is_replayed_and_its_lengths_are_not_believed);
    RUN(a_section_that_the_caller_refuses_is_damage);
    RUN(each_verdict_has_a_text_with_its_facts);
    return check_end(argc, argv);
}
