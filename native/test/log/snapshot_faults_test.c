/* snapshot_faults_test.c: a disk that fails or fills up costs the snapshot that is written, never the one before; and
 * the promises of the writer: its rate, its memory, what is dropped. */
#include <errno.h>
#include <string.h>
#include "../check.h"
#include "snapshot_rig.h"

static snap_rig r;

static void start(uint64_t seed) {
    snap_init(&r, seed, 512);
    CHECK(snap_start(&r));
}
static void end_and_start(void) {
    snap_end(&r, true);
    CHECK(snap_start(&r));
}

/* A failure in operation `at` of the second snapshot. False: it was over before. */
static bool failure_at(uint64_t seed, uint64_t at, int error) {
    start(seed);
    CHECK_EQ(snap_make(&r, 0), 1);
    r.disk.fail_at = r.disk.operations + at;
    r.disk.fail_with = error;
    snap_make(&r, 0);
    CHECK(!r.disk.used_after_failure);
    CHECK(r.ended == 2 && snapshot_is_idle(&r.w));
    if (r.outcome == SNAPSHOT_DONE) {
        bool reached = r.disk.operations >= r.disk.fail_at;
        CHECK(!reached);
        snap_free(&r);
        return false;
    }
    CHECK_EQ(r.failure.error, error);
    CHECK(strlen(r.failure.operation) > 0 && strlen(r.failure.file) > 0);
    bool directory = strcmp(r.failure.file, "the directory") == 0;
    bool space = error == -ENOSPC && !directory;
    CHECK_EQ(r.outcome, directory ? SNAPSHOT_UNCERTAIN : space ? SNAPSHOT_NO_SPACE : SNAPSHOT_FAILED);
    CHECK_EQ(snap_make(&r, 0), 3); /* the next one may begin */
    CHECK_EQ(r.outcome, SNAPSHOT_DONE);
    end_and_start();
    CHECK_EQ(r.copies[0].done, 3);
    snap_free(&r);
    return true;
}

TEST(an_operation_that_fails_costs_the_snapshot_that_is_written) {
    static const int errors[] = { -EIO, -EROFS, -ENOSPC };
    uint64_t seed = check_seed(), at = 1;
    for (int i = 0; i < 3; i++)
        for (at = 1; failure_at(seed + at, at, errors[i]); at++) {}
    CHECK(at > 8);
}

TEST(the_one_before_is_there_after_any_failure) {
    uint64_t seed = check_seed();
    for (uint64_t at = 1;; at++) {
        start(seed + at);
        snap_make(&r, 0);
        r.disk.fail_at = r.disk.operations + at;
        r.disk.fail_with = -EIO;
        snap_make(&r, 0);
        bool failed = r.outcome != SNAPSHOT_DONE;
        end_and_start();
        CHECK(r.copies[0].done > 0);
        snap_free(&r);
        if (!failed) break;
    }
}

TEST(a_sync_that_failed_is_not_tried_again_and_its_file_is_removed) {
    start(check_seed());
    snap_put_all(&r, 0);
    r.disk.fail_at = r.disk.operations + 3; /* behind the last items and the foot */
    r.disk.fail_with = -EIO;
    snap_finish(&r);
    snap_settle(&r);
    CHECK_EQ(r.outcome, SNAPSHOT_FAILED);
    CHECK(strcmp(r.failure.operation, "sync") == 0 && strcmp(r.failure.file, "snapshot-0-abc0000000000000-new") == 0);
    CHECK(!r.disk.used_after_failure);
    CHECK_EQ(r.disk.table.sync_directory(&r.disk.table), 0);
    CHECK(memory_disk_file(&r.disk, "snapshot-0-abc0000000000000-new") == NULL);
    snap_free(&r);
}

TEST(a_full_disk_is_told_from_one_that_fails_and_is_tried_anew) {
    uint64_t seed = check_seed();
    int full = 0;
    for (uint64_t growth = 1;; growth++) {
        start(seed + growth);
        snap_make(&r, 1);
        r.disk.full_from = r.disk.growths + growth;
        snap_make(&r, 1);
        if (r.outcome == SNAPSHOT_DONE) break;
        CHECK_EQ(r.outcome, SNAPSHOT_NO_SPACE);
        full++;
        end_and_start();
        CHECK_EQ(r.copies[1].done, 1);
        r.disk.full_from = 0;
        snap_make(&r, 1);
        CHECK_EQ(r.outcome, SNAPSHOT_DONE);
        snap_free(&r);
    }
    snap_free(&r);
    CHECK(full > 5);
}

/* ---- promises ---- */

TEST(one_chunk_is_under_way_while_the_next_one_fills) {
    start(check_seed());
    snap_begin(&r, 0);
    while (snap_put(&r)) {}
    uint32_t put = r.put;
    CHECK(put > 2 && put < SNAP_ITEMS && r.w.work.base.under_way);
    CHECK_EQ(r.disk.operations, 1); /* the sync at the start */
    helper_drain(&r.writer);
    CHECK_EQ(r.disk.operations, 4); /* created, head, chunk */
    CHECK(!snap_put(&r));           /* it is not home */
    mailbox_run(&r.home);
    CHECK_EQ(r.rooms, 1);
    CHECK(snap_put(&r));
    snap_free(&r);
}

TEST(a_chunk_that_is_full_waits_for_its_time) {
    snap_init(&r, check_seed(), 4096);
    r.config.bytes_per_s = 4096 * 1000; /* a block each ms */
    CHECK(snap_start(&r));
    snap_begin(&r, 0);
    uint64_t waited = 0;
    while (r.put < SNAP_ITEMS) {
        if (snap_put(&r)) continue;
        snap_settle(&r);
        if (snap_put(&r)) continue;
        uint64_t due = snapshot_due_ns(&r.w, r.now_ns);
        CHECK(due > r.now_ns && due <= r.now_ns + 3000000);
        CHECK(!snap_put(&r));
        waited += due - r.now_ns;
        r.now_ns = due;
        CHECK_EQ(snapshot_due_ns(&r.w, r.now_ns), UINT64_MAX);
        CHECK(snap_put(&r));
    }
    snap_finish(&r);
    snap_settle(&r);
    CHECK_EQ(r.outcome, SNAPSHOT_DONE);
    snapshot_found found;
    snap_read(&r, 0, &found);
    /* head, foot and the last two chunks wait for nothing */
    CHECK(waited + 8 * 1000000 >= found.bytes / 4096 * 1000000 && waited < found.bytes / 4096 * 1000000);
    snap_free(&r);
}

/* Else the sync at the end would hold up those of logs. */
TEST(what_is_written_is_synced_a_part_at_a_time) {
    enum { MIB = 1 << 20 };
    snap_init(&r, check_seed(), 4096);
    r.config.chunk_bytes = MIB;
    CHECK(snap_start(&r));
    snap_begin(&r, 0);
    uint64_t most = 0;
    for (int i = 0; i < 30; i++) {
        uint32_t bytes = snapshot_item_max(&r.w);
        uint8_t *to = snapshot_put(&r.w, 1, bytes, r.now_ns);
        CHECK(to != NULL);
        memset(to, i, bytes);
        snap_settle(&r);
        uint64_t unsynced = 0;
        for (int f = 0; f < MEMORY_FILES; f++)
            for (const memory_write *w = r.disk.files[f].unsynced; w; w = w->next) unsynced += w->bytes;
        if (unsynced > most) most = unsynced;
    }
    CHECK(most > 4 * MIB && most <= 8 * MIB);
    snapshot_drop(&r.w);
    snap_settle(&r);
    snap_free(&r);
}

TEST(what_is_dropped_leaves_nothing_behind) {
    uint64_t seed = check_seed();
    for (uint32_t n = 0; n < 40; n++) {
        start(seed + n);
        snap_make(&r, 0);
        snap_begin(&r, 0);
        for (uint32_t i = 0; i < n; i++)
            if (!snap_put(&r) && i % 3) snap_settle(&r);
        snapshot_drop(&r.w);
        snap_settle(&r);
        CHECK(r.ended == 2 && r.outcome == SNAPSHOT_DROPPED && snapshot_is_idle(&r.w));
        CHECK_EQ(r.disk.table.sync_directory(&r.disk.table), 0);
        CHECK(memory_disk_file(&r.disk, "snapshot-0-abc0000000000000-new") == NULL);
        snapshot_drop(&r.w); /* none is under way */
        end_and_start();
        CHECK_EQ(r.copies[0].done, 1);
        snap_free(&r);
    }
}

TEST(a_snapshot_of_a_copy_that_is_gone_is_removed) {
    start(check_seed());
    snap_make(&r, 0);
    snap_make(&r, 1);
    snapshot_remove(&r.w, 0, 0xabc0000000000000u);
    snapshot_remove(&r.w, 2, 0xabc0000000000002u); /* there is none */
    snap_settle(&r);
    r.copies[0].maybe_removed = true;
    CHECK_EQ(r.disk.table.sync_directory(&r.disk.table), 0);
    end_and_start();
    CHECK(r.copies[0].done == 0 && r.copies[1].done == 2);
    snap_free(&r);
}

int main(int argc, char **argv) {
    RUN(an_operation_that_fails_costs_the_snapshot_that_is_written);
    RUN(the_one_before_is_there_after_any_failure);
    RUN(a_sync_that_failed_is_not_tried_again_and_its_file_is_removed);
    RUN(a_full_disk_is_told_from_one_that_fails_and_is_tried_anew);
    RUN(one_chunk_is_under_way_while_the_next_one_fills);
    RUN(a_chunk_that_is_full_waits_for_its_time);
    RUN(what_is_written_is_synced_a_part_at_a_time);
    RUN(what_is_dropped_leaves_nothing_behind);
    RUN(a_snapshot_of_a_copy_that_is_gone_is_removed);
    return check_end(argc, argv);
}
