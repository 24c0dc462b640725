/* log_faults_test.c: a disk that fails is reported once and never believed again; a disk that is full is waited for. */
#include <errno.h>
#include <string.h>
#include "../check.h"
#include "log_rig.h"

static rig r;

static void recover_and_go_on(void) {
    CHECK(rig_recover(&r));
    rig_settle(&r);
    CHECK(rig_append(&r, 0, 1, 100));
    rig_settle(&r);
    CHECK_EQ(r.durable, r.count);
    rig_end(&r, true);
    CHECK(rig_recover(&r));
}

/* A failure in operation `at` of a random history. False: the history was over before. */
static bool failure_at(uint64_t seed, uint64_t at, bool power) {
    rig_init(&r, seed, 512);
    CHECK(rig_recover(&r));
    at += r.disk.operations;
    r.disk.fail_at = at;
    r.disk.fail_with = at % 2 ? -EIO : -EROFS;
    rig_random_steps(&r, 300);
    for (int i = 0; i < 4 && r.disk.operations < at; i++) rig_settle(&r);
    bool reached = r.disk.operations >= at;
    if (reached) {
        rig_settle(&r);
        uint32_t durable = r.durable;
        CHECK_EQ(r.failures, 1);
        CHECK_EQ(r.failure.error, r.disk.fail_with);
        CHECK(r.failure.file[0] && strlen(r.failure.operation) > 0);
        uint64_t operations = r.disk.operations;
        CHECK_EQ(wal_room(&r.log), 0);
        CHECK(!rig_append(&r, 0, 1, 100));
        rig_settle(&r);
        rig_snapshot(&r, 0);
        wal_retry(&r.log);
        rig_settle(&r);
        CHECK_EQ(r.disk.operations, operations); /* nothing more is done */
        CHECK_EQ(r.durable, durable);
        CHECK_EQ(r.failures, 1);
    }
    CHECK(!r.disk.used_after_failure);
    rig_end(&r, power);
    recover_and_go_on();
    rig_free(&r);
    return reached;
}

TEST(an_operation_that_fails_is_reported_once_and_nothing_is_durable_afterwards) {
    uint64_t seed = check_seed();
    for (uint64_t n = 0; n < 6; n++) {
        uint64_t at = 1;
        while (failure_at(seed + n * 1000, at, at % 3 != 0)) at++;
        CHECK(at > 20);
    }
}

/* The kernel forgets the bytes of a sync that failed, and lets the next one succeed. */
TEST(a_sync_that_failed_is_not_tried_again) {
    rig_init(&r, check_seed(), 4096);
    CHECK(rig_recover(&r));
    rig_settle(&r);
    CHECK(rig_append(&r, 0, 2, 500));
    r.disk.fail_at = r.disk.operations + 2;
    r.disk.fail_with = -EIO;
    rig_settle(&r);
    CHECK_EQ(r.failures, 1);
    CHECK(strcmp(r.failure.operation, "sync") == 0 && strcmp(r.failure.file, "2-1") == 0);
    CHECK_EQ(r.durable, 0);
    CHECK(!r.disk.used_after_failure);
    rig_end(&r, true);
    CHECK(rig_recover(&r));
    CHECK_EQ(r.count, 0);
    rig_free(&r);
}

/* A failure of the maker's counts for a batch that is under way, too: which bytes the disk has is not known any more. */
TEST(a_batch_that_is_under_way_when_another_file_fails_is_not_reported) {
    rig_init(&r, check_seed(), 4096);
    CHECK(rig_recover(&r));
    helper_drain(&r.maker);
    mailbox_run(&r.home); /* one file is there, the next is asked for */
    CHECK(rig_append(&r, 0, 2, 500));
    wal_flush(&r.log);
    r.disk.fail_at = r.disk.operations + 1;
    r.disk.fail_with = -EIO;
    helper_drain(&r.maker);
    helper_drain(&r.writer);
    mailbox_run(&r.home);
    CHECK(r.failures == 1 && strcmp(r.failure.operation, "open") == 0 && strcmp(r.failure.file, "2-spare") == 0);
    CHECK_EQ(r.durable, 0);
    rig_end(&r, true);
    CHECK(rig_recover(&r));
    CHECK_EQ(r.count, 2); /* it was synced all the same */
    rig_free(&r);
}

TEST(a_sync_that_fails_at_the_start_is_why_the_log_does_not_open) {
    rig_filled(&r, check_seed(), 2);
    rig_replay(&r);
    r.disk.fail_at = r.disk.operations + 2;
    r.disk.fail_with = -EIO;
    disk_failure why;
    CHECK_EQ(wal_open(&r.log, &r.config, &r.found, &why), -EIO);
    CHECK(why.error == -EIO && strcmp(why.operation, "sync") == 0 && strcmp(why.file, "2-2") == 0);
    rig_end(&r, true);
    recover_and_go_on();
    rig_free(&r);
}

/* ---- a full disk ---- */

static uint32_t full;

static bool full_from(uint64_t seed, uint64_t growth) {
    rig_init(&r, seed, 512);
    r.disk.full_from = growth;
    CHECK(rig_recover(&r));
    rig_random_steps(&r, 200);
    rig_settle(&r);
    bool reached = r.disk.growths >= growth;
    if (wal_disk_full(&r.log)) { /* else files that were given back are enough */
        CHECK(reached);
        full++;
        CHECK_EQ(wal_room(&r.log), 0);
        CHECK(!rig_append(&r, 0, 1, 100) && !rig_begin_epoch(&r, 0, 0));
        CHECK_EQ(r.durable, r.count); /* all that had room before got its place */
        wal_retry(&r.log);
        CHECK_EQ(wal_room(&r.log), 0); /* not before there is a file */
        rig_settle(&r);
        CHECK(wal_disk_full(&r.log));
        r.disk.full_from = 0;
        wal_retry(&r.log);
        rig_settle(&r);
    }
    r.disk.full_from = 0;
    CHECK_EQ(r.failures, 0);
    CHECK(!wal_disk_full(&r.log) && wal_room(&r.log) > 0);
    CHECK(rig_append(&r, 0, 1, 100));
    rig_settle(&r);
    CHECK_EQ(r.durable, r.count);
    rig_end(&r, true);
    recover_and_go_on();
    rig_free(&r);
    return reached;
}

TEST(a_disk_that_is_full_leaves_no_room_until_there_is_space_again) {
    uint64_t seed = check_seed();
    for (uint64_t n = 0; n < 8; n++)
        for (uint64_t growth = 1; full_from(seed + n * 1000, growth); growth++) {}
    CHECK(full > 20);
}

TEST(on_a_full_disk_files_that_snapshots_have_are_used_again) {
    rig_init(&r, check_seed(), 4096);
    CHECK(rig_recover(&r));
    rig_settle(&r);
    r.disk.full_from = r.disk.growths + 1;
    while (rig_append(&r, 0, 2, 1500)) rig_settle(&r);
    CHECK(wal_disk_full(&r.log));
    CHECK_EQ(r.durable, r.count);
    CHECK(rig_append(&r, 0, 1, 16) == false);
    CHECK_EQ(LIST_FIRST(&r.log.kept, wal_file, link)->number, 1);
    rig_snapshot(&r, 0); /* the file that is written is not given back: it is the only one so far */
    CHECK_EQ(r.log.spares, 0);
    rig_end(&r, true);

    r.disk.full_from = 0;
    CHECK(rig_recover(&r)); /* now in the second file */
    rig_settle(&r);
    CHECK(rig_append(&r, 0, 2, 1500));
    rig_settle(&r);
    r.disk.full_from = r.disk.growths + 1;
    while (rig_append(&r, 0, 2, 1500)) rig_settle(&r);
    CHECK(wal_disk_full(&r.log));
    rig_snapshot(&r, 0); /* the first file */
    rig_settle(&r);
    CHECK(!wal_disk_full(&r.log) && wal_room(&r.log) > 0);
    CHECK(rig_append(&r, 0, 1, 16));
    rig_settle(&r);
    CHECK_EQ(r.durable, r.count);
    CHECK_EQ(r.failures, 0);
    rig_end(&r, true);
    recover_and_go_on();
    rig_free(&r);
}

int main(int argc, char **argv) {
    RUN(an_operation_that_fails_is_reported_once_and_nothing_is_durable_afterwards);
    RUN(a_sync_that_failed_is_not_tried_again);
    RUN(a_batch_that_is_under_way_when_another_file_fails_is_not_reported);
    RUN(a_sync_that_fails_at_the_start_is_why_the_log_does_not_open);
    RUN(a_disk_that_is_full_leaves_no_room_until_there_is_space_again);
    RUN(on_a_full_disk_files_that_snapshots_have_are_used_again);
    return check_end(argc, argv);
}
