/* log_write_test.c: what the log promises its data-plane thread: room, when a section is durable, which files there are. */
#include <stdlib.h>
#include <string.h>
#include "../check.h"
#include "log_rig.h"

static rig r;

static void up(void) {
    rig_init(&r, check_seed(), 4096);
    CHECK(rig_recover(&r));
    CHECK_EQ(wal_room(&r.log), 0); /* no file is there yet */
    rig_settle(&r);
}
static uint32_t largest(void) { return RIG_BUFFER - sizeof(wal_batch) - sizeof(wal_section); }

/* The files in the directory, by their names, in order; at most 9 of numbers below 100. */
static char listing[200];
static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void list_one(void *arg, const char *name) {
    int **end = arg;
    uint64_t number;
    if (wal_file_number(name, rig_identity.thread, &number)) *(*end)++ = (int)number;
}
static void count_spare(void *arg, const char *name) { *(int *)arg += wal_is_spare(name, rig_identity.thread); }
/* Files that were set aside. */
static int spares(void) {
    int n = 0;
    CHECK_EQ(r.disk.table.list(&r.disk.table, count_spare, &n), 0);
    return n;
}
/* Those that a start reads. */
static const char *files(void) {
    int numbers[MEMORY_FILES], *end = numbers;
    CHECK_EQ(r.disk.table.list(&r.disk.table, list_one, &end), 0);
    qsort(numbers, (size_t)(end - numbers), sizeof *numbers, by_number);
    char *at = listing;
    for (const int *n = numbers; n < end; n++) {
        if (n > numbers) *at++ = ' ';
        if (*n >= 10) *at++ = (char)('0' + *n / 10);
        *at++ = (char)('0' + *n % 10);
    }
    *at = 0;
    return listing;
}

TEST(nothing_is_durable_before_its_batch_is_synced) {
    up();
    CHECK(rig_append(&r, 0, 1, 100));
    CHECK(!wal_is_idle(&r.log));
    mailbox_run(&r.home);
    CHECK_EQ(r.durable, 0);
    wal_flush(&r.log);
    mailbox_run(&r.home);
    CHECK_EQ(r.durable, 0);
    uint64_t before = r.disk.operations;
    CHECK_EQ(helper_drain(&r.writer), 1);
    CHECK_EQ(r.disk.operations, before + 2); /* one write, one sync */
    mailbox_run(&r.home);
    CHECK_EQ(r.durable, 1);
    CHECK(wal_is_idle(&r.log));
    rig_free(&r);
}

TEST(one_batch_is_under_way_and_what_comes_meanwhile_goes_with_the_next) {
    up();
    CHECK(rig_append(&r, 0, 1, 100));
    wal_flush(&r.log);
    for (int i = 0; i < 5; i++) {
        CHECK(rig_append(&r, (uint32_t)i % 2, 1, 100));
        wal_flush(&r.log);
    }
    CHECK_EQ(helper_drain(&r.writer), 1);
    mailbox_run(&r.home);
    CHECK_EQ(r.durable, 1);
    rig_settle(&r);
    CHECK_EQ(r.durable, 6);
    CHECK_EQ(r.log.next_batch, 3);
    rig_free(&r);
}

TEST(room_is_what_a_section_may_have_and_two_full_buffers_leave_none) {
    up();
    CHECK_EQ(wal_room(&r.log), largest());
    CHECK(rig_append(&r, 0, 1, largest()));
    CHECK_EQ(wal_room(&r.log), largest()); /* the first can be given away */
    CHECK(rig_append(&r, 1, 1, largest() - sizeof(wal_section) - 10));
    CHECK_EQ(wal_room(&r.log), 10);
    CHECK(!rig_append(&r, 2, 1, 16));
    CHECK(rig_begin_epoch(&r, 2, 0)); /* takes no records */
    CHECK_EQ(wal_room(&r.log), 0);
    CHECK(!rig_begin_epoch(&r, 1, 0));
    helper_drain(&r.writer);
    CHECK_EQ(wal_room(&r.log), 0); /* it has not come home */
    mailbox_run(&r.home);
    CHECK_EQ(wal_room(&r.log), largest());
    rig_settle(&r);
    CHECK_EQ(r.durable, r.count);
    rig_end(&r, true);
    CHECK(rig_recover(&r));
    CHECK_EQ(r.count, 3);
    rig_free(&r);
}

static uint32_t sections;
static bool count_sections(void *arg, const wal_section *s, const uint8_t *records) {
    (void)arg;
    (void)s;
    (void)records;
    sections++;
    return true;
}
TEST(sections_of_one_copy_that_follow_each_other_are_one) {
    up();
    for (int i = 0; i < 4; i++) CHECK(rig_append(&r, 0, 2, 50));
    CHECK(rig_begin_epoch(&r, 0, 1));
    CHECK(rig_append(&r, 0, 1, 50));
    CHECK(rig_append(&r, 0, 1, 50));
    CHECK(rig_append(&r, 1, 1, 50));
    CHECK(rig_append(&r, 0, 1, 50));
    rig_settle(&r);
    CHECK_EQ(r.durable, r.count);
    rig_end(&r, true);
    wal_found found;
    sections = 0;
    wal_replay(&r.disk.table, &rig_identity, count_sections, NULL, &found);
    wal_files_free(&found.files);
    CHECK_EQ(sections, 5);
    CHECK(rig_recover(&r)); /* and compares all records */
    rig_free(&r);
}

static void fill_files(uint32_t shard, int count) {
    for (uint64_t end = r.log.next_file + (uint64_t)count; r.log.next_file < end;) {
        CHECK(rig_append(&r, shard, 2, 1500));
        rig_settle(&r);
    }
}
static uint64_t first_kept(void) { return LIST_FIRST(&r.log.kept, wal_file, link)->number; }

TEST(files_are_given_back_from_the_oldest_on_when_snapshots_have_all_of_them) {
    up();
    CHECK(strcmp(files(), "1 2") == 0);
    fill_files(0, 2);
    fill_files(1, 4);
    CHECK(strcmp(files(), "1 2 3 4 5 6 7 8") == 0); /* 6 is written */
    rig_snapshot(&r, 1);
    rig_settle(&r);
    CHECK(strcmp(files(), "1 2 3 4 5 6 7 8") == 0); /* shard 0 needs the first */
    rig_snapshot(&r, 0);
    rig_settle(&r);
    CHECK(strcmp(files(), "6 7 8") == 0);
    CHECK_EQ(spares(), 2); /* two wait to be used again */
    fill_files(1, 2);
    CHECK(strcmp(files(), "6 7 8 9 10") == 0);
    CHECK_EQ(spares(), 0);
    rig_snapshot(&r, 1);
    rig_settle(&r);
    CHECK_EQ(spares(), 2);
    rig_end(&r, true);
    CHECK(rig_recover(&r));
    rig_settle(&r);
    CHECK(strcmp(files(), "8 9 10") == 0);
    CHECK_EQ(spares(), 0);
    rig_free(&r);
}

/* Else each file of a log that may be long would be written with zeros first, each time. */
TEST(as_many_files_wait_as_the_log_may_become_long) {
    up();
    wal_may_keep(&r.log, 6 * RIG_FILE);
    fill_files(0, 5);
    rig_snapshot(&r, 0);
    rig_settle(&r);
    CHECK(strcmp(files(), "5 6 7") == 0);
    CHECK_EQ(spares(), 4);
    uint64_t grown = r.disk.growths;
    fill_files(0, 4);
    CHECK_EQ(r.disk.growths, grown);
    rig_snapshot(&r, 0);
    rig_settle(&r);
    wal_may_keep(&r.log, RIG_FILE);
    fill_files(0, 1);
    CHECK_EQ(spares(), 2);
    rig_free(&r);
}

/* So a log without any batch is a new one. */
TEST(the_last_file_with_a_batch_stays_until_there_is_one_behind_it) {
    up();
    fill_files(0, 1);
    rig_end(&r, true);
    CHECK(rig_recover(&r));
    rig_settle(&r);
    rig_snapshot(&r, 0);
    rig_settle(&r);
    CHECK(wal_holds_back(&r.log) && r.log.spares == 0);
    CHECK(rig_append(&r, 0, 1, 100));
    wal_flush(&r.log);
    rig_snapshot(&r, 0);
    CHECK(wal_holds_back(&r.log) && r.log.spares == 0); /* the batch is under way */
    rig_settle(&r);
    rig_snapshot(&r, 0);
    CHECK(wal_holds_back(&r.log)); /* the next one: it is being written, and all of it is covered */
    CHECK_EQ(first_kept(), 2);
    rig_free(&r);
}

TEST(an_epoch_that_no_snapshot_has_keeps_its_file) {
    up();
    CHECK(rig_append(&r, 0, 1, 100));
    rig_settle(&r);
    uint64_t lsn = r.shards[0].durable_next - 1;
    CHECK(rig_begin_epoch(&r, 0, 0)); /* cuts nothing off */
    fill_files(1, 3);
    rig_snapshot(&r, 1);
    r.shards[0].snapshot = lsn;
    r.shards[0].snapshot_epoch = 0;
    rig_snapshot(&r, 1);
    rig_settle(&r);
    CHECK_EQ(first_kept(), 1);
    r.shards[0].snapshot_epoch = 1;
    rig_snapshot(&r, 1);
    rig_settle(&r);
    CHECK_EQ(first_kept(), 4);
    rig_free(&r);
}

TEST(what_a_record_has_in_front_of_it_keeps_its_file_until_a_snapshot_has_the_record) {
    up();
    CHECK(rig_append(&r, 0, 1, 100));
    rig_settle(&r);
    uint64_t lsn = r.shards[0].durable_next;
    static const uint8_t bytes[16];
    wal_section part = { .shard = 0, .copy = 100, .first = lsn, .bytes = sizeof bytes };
    CHECK(wal_append(&r.log, &part, bytes));
    r.items[r.count++] = (rig_item){ .shard = 0, .lsn = lsn };
    fill_files(1, 3);
    rig_snapshot(&r, 1);
    r.shards[0].snapshot = lsn - 1;
    rig_snapshot(&r, 1);
    rig_settle(&r);
    CHECK_EQ(first_kept(), 1);
    r.shards[0].snapshot = lsn;
    rig_snapshot(&r, 1);
    rig_settle(&r);
    CHECK_EQ(first_kept(), 4);
    rig_free(&r);
}

/* All that was in the log is in snapshots, and its files are gone but for those that are used again. */
TEST(batches_of_an_earlier_life_of_a_file_are_none) {
    up();
    fill_files(0, 4);
    rig_snapshot(&r, 0);
    rig_settle(&r);
    fill_files(0, 3); /* 5 to 7; 8 has old batches */
    rig_snapshot(&r, 0);
    rig_settle(&r);
    rig_end(&r, true);
    const char *all = files();
    CHECK(strcmp(all, "7 8 9") == 0);
    /* As if only files without new batches were left: nothing comes out of them, and the others are missed. */
    char name[WAL_NAME_MAX];
    wal_file_name(name, rig_identity.thread, 7);
    CHECK_EQ(r.disk.table.remove(&r.disk.table, name), 0);
    wal_found found;
    sections = 0;
    wal_replay(&r.disk.table, &rig_identity, count_sections, NULL, &found);
    CHECK_EQ(sections, 0);
    CHECK_EQ(found.batch, 1);
    CHECK(found.verdict == WAL_FILE_MISSING && strcmp(found.file, "2-7") == 0);
    wal_files_free(&found.files);
    rig_free(&r);
}

TEST(files_of_another_size_are_read_and_then_removed) {
    up();
    fill_files(0, 2);
    rig_end(&r, true);
    r.config.file_bytes = RIG_FILE + WAL_BLOCK;
    CHECK(rig_recover(&r));
    rig_settle(&r);
    CHECK(strcmp(files(), "1 2 3 4") == 0);
    uint64_t bytes;
    int file = r.disk.table.open(&r.disk.table, "2-3", DISK_READ);
    CHECK_EQ(r.disk.table.size(&r.disk.table, file, &bytes), 0);
    r.disk.table.close(&r.disk.table, file);
    CHECK_EQ(bytes, RIG_FILE + WAL_BLOCK);
    fill_files(0, 1);
    rig_snapshot(&r, 0);
    rig_settle(&r);
    CHECK(strcmp(files(), "3 4 5") == 0);
    rig_free(&r);
}

TEST(a_log_that_is_stopped_posts_nothing_more_but_reports_what_was_under_way) {
    up();
    CHECK(rig_append(&r, 0, 1, 100));
    wal_flush(&r.log);
    CHECK(rig_append(&r, 0, 1, 100));
    wal_stop(&r.log);
    CHECK_EQ(wal_room(&r.log), 0);
    wal_flush(&r.log);
    CHECK_EQ(helper_drain(&r.writer), 1);
    CHECK_EQ(helper_drain(&r.maker), 1);
    mailbox_run(&r.home);
    wal_flush(&r.log);
    CHECK_EQ(helper_drain(&r.writer) + helper_drain(&r.maker), 0);
    CHECK_EQ(r.durable, 1);
    rig_free(&r);
}

TEST(names_are_those_of_the_thread_as_they_are_written) {
    uint64_t n;
    CHECK(wal_file_number("2-1", 2, &n) && n == 1);
    CHECK(wal_file_number("2-4611686018427387903", 2, &n));
    static const char *const none[] = { "3-1",
                                        "2-",
                                        "2-0",
                                        "2-01",
                                        "2-1x",
                                        "2--1",
                                        "2",
                                        "2-+1",
                                        "2-1-1",
                                        "02-1",
                                        "",
                                        "2-spare",
                                        ".",
                                        "2- 1",
                                        "2-18446744073709551615",
                                        "2-4611686018427387904" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) CHECK(!wal_file_number(none[i], 2, &n));
}

int main(int argc, char **argv) {
    RUN(nothing_is_durable_before_its_batch_is_synced);
    RUN(one_batch_is_under_way_and_what_comes_meanwhile_goes_with_the_next);
    RUN(room_is_what_a_section_may_have_and_two_full_buffers_leave_none);
    RUN(sections_of_one_copy_that_follow_each_other_are_one);
    RUN(files_are_given_back_from_the_oldest_on_when_snapshots_have_all_of_them);
    RUN(as_many_files_wait_as_the_log_may_become_long);
    RUN(the_last_file_with_a_batch_stays_until_there_is_one_behind_it);
    RUN(an_epoch_that_no_snapshot_has_keeps_its_file);
    RUN(what_a_record_has_in_front_of_it_keeps_its_file_until_a_snapshot_has_the_record);
    RUN(batches_of_an_earlier_life_of_a_file_are_none);
    RUN(files_of_another_size_are_read_and_then_removed);
    RUN(a_log_that_is_stopped_posts_nothing_more_but_reports_what_was_under_way);
    RUN(names_are_those_of_the_thread_as_they_are_written);
    return check_end(argc, argv);
}
