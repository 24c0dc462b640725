/* recovery_test.c: copies come back from their snapshots and logs, whatever the power does; and what is damaged, or lacks
 * something, is reported, never served. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "../../replication/snapshot_items.h"
#include "../../base/clock.h"
#include "../../log/disk_names.h"
#include "../../log/snapshot_file.h"
#include "../check.h"
#include "recovery_life.h"

TEST(copies_come_back_as_they_were_after_cuts_in_any_operation) {
    uint64_t seed = check_seed();
    recovery_counts c = { 0 };
    for (uint64_t n = 0; c.cuts < 250; n++) {
        check_replays(seed);
        recovery_live(seed + n * 0x9e3779b97f4a7c15u, n % 3 ? 60 : 400, &c);
    }
    CHECK(c.copies > 200 && c.from_snapshots > 40 && c.large > 40 && c.epochs > 200 && c.same_epochs > 100);
    CHECK(c.starts_cut > 8 && c.trims > 8);
}

/* ---- found, or not ---- */

static char why[256];
static uint32_t count;

static memory_file *snapshot_of(uint32_t shard) {
    char name[WAL_NAME_MAX];
    snapshot_name(name, shard, recovery_id(shard));
    return memory_disk_file(recovery_disk(), name);
}
static const dataplane_recovered *found(const dataplane_recovered *r, uint32_t shard) {
    for (uint32_t i = 0; i < count; i++)
        if (r[i].shard == shard) return &r[i];
    CHECK(!"it was found");
    return NULL;
}
/* Shard 0 is not whole, for this reason; the other one is. */
static const dataplane_recovered *is_not_whole(const char *reason) {
    const dataplane_recovered *r = recovery_starts(&count, why);
    if (!r) check_failed(__FILE__, __LINE__, why);
    CHECK_EQ(count, 2);
    const dataplane_recovered *x = found(r, 0);
    CHECK(!x->whole && x->id == recovery_id(0));
    if (!strstr(x->why, reason)) check_failed(__FILE__, __LINE__, x->why);
    recovery_check(found(r, 1));
    return r;
}
static void history(uint64_t seed) {
    recovery_begin(seed);
    for (uint32_t i = 0; i < RECOVERY_SHARDS; i++) {
        recovery_send(i, 150, true);
        recovery_snapshot(i, 0);
        recovery_send(i, 30, true);
        recovery_send(i, 10, false);
    }
}

TEST(what_was_acknowledged_is_found_committed_or_prepared) {
    history(check_seed());
    recovery_power_goes();
    const dataplane_recovered *r = recovery_starts(&count, why);
    CHECK(r && count == 2);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(r[i].whole && r[i].prepared == 191 && r[i].committed >= 180 && r[i].committed <= 181);
        recovery_check(&r[i]);
    }
    CHECK(recovery_bytes_all > 0 && recovery_bytes_read == recovery_bytes_all);
    recovery_end();
}

/* However long the log is: who has read it may have waited long enough. */
TEST(leases_that_a_copy_has_given_end_a_lease_after_the_start_began) {
    recovery_begin(check_seed());
    recovery_send(0, 50, true);
    recovery_power_goes();
    recovery_takes_ns = 150 * 1000 * 1000;
    uint64_t began = fkv_now_ns(), granted = recovery_starts(&count, why) ? recovery_granted_until_ns(0) : 0;
    recovery_takes_ns = 0;
    CHECK(granted >= began + 100 * 1000 * 1000 && granted < began + 110 * 1000 * 1000);
    CHECK(fkv_now_ns() > granted);
    recovery_end();
}

TEST(a_copy_whose_snapshot_is_damaged_is_not_whole_and_kept_until_it_is_discarded) {
    history(check_seed());
    uint32_t files = recovery_log_files();
    recovery_power_goes();
    snapshot_of(0)->bytes[WAL_BLOCK + 100] ^= 1;
    is_not_whole("damaged at 4096");
    recovery_snapshot(1, 0);
    CHECK(recovery_log_files() >= files); /* what it has in the log may still be wanted */
    CHECK_EQ(recovery_discards(1), FKV_NOT_FOUND);
    CHECK_EQ(recovery_discards(0), FKV_OK);
    CHECK_EQ(recovery_discards(0), FKV_NOT_FOUND);
    recovery_power_goes();
    const dataplane_recovered *r = recovery_starts(&count, why);
    CHECK(r != NULL);
    for (uint32_t i = 0; i < count; i++) CHECK(r[i].shard == 1 || !r[i].whole);
    recovery_check(found(r, 1));
    recovery_end();
}

static void remove_file(const char *name) {
    disk *d = &recovery_disk()->table;
    CHECK_EQ(d->remove(d, name), 0);
    CHECK_EQ(d->sync_directory(d), 0);
}

static void remove_logs(uint32_t thread) {
    disk_names n;
    uint64_t number;
    CHECK_EQ(disk_names_read(&n, &recovery_disk()->table), 0);
    for (uint32_t i = 0; i < n.count; i++)
        if (wal_file_number(n.name[i], thread, &number)) remove_file(n.name[i]);
    disk_names_free(&n);
}

TEST(a_copy_whose_snapshot_is_gone_is_not_whole) {
    history(check_seed());
    for (int n = 0; n < 20; n++) {
        recovery_send(0, 20, true);
        recovery_send(1, 20, true);
    }
    recovery_snapshot(0, 0);
    recovery_snapshot(1, 0);
    recovery_send(0, 5, true);
    recovery_power_goes();
    char name[WAL_NAME_MAX];
    snapshot_name(name, 0, recovery_id(0));
    remove_file(name);
    is_not_whole("it has no snapshot");
    recovery_end();
}

/* So it is not known whose thread it was. */
TEST(a_snapshot_that_nobody_can_read_is_of_the_thread_whose_log_has_its_copy) {
    recovery_workers = 2;
    recovery_of_worker = 1;
    history(check_seed());
    recovery_power_goes();
    snapshot_of(0)->bytes[20] ^= 1;
    const dataplane_recovered *r = is_not_whole("damaged at 0");
    CHECK(found(r, 0)->worker == 1 && found(r, 1)->worker == 1);
    recovery_power_goes();
    remove_logs(1);
    char name[WAL_NAME_MAX];
    snapshot_name(name, 1, recovery_id(1));
    remove_file(name); /* else it would tell that its log is lost */
    r = recovery_starts(&count, why);
    CHECK(r && count == 1 && !found(r, 0)->whole && strstr(found(r, 0)->why, "damaged at 0"));
    CHECK_EQ(recovery_discards(0), FKV_OK);
    recovery_end();
    recovery_workers = 1;
    recovery_of_worker = 0;
}

TEST(an_epoch_that_begins_while_a_snapshot_is_made_does_no_harm) {
    uint64_t seed = check_seed();
    for (uint64_t n = 0; n < 5; n++) {
        recovery_begin(seed + n);
        recovery_send(0, 300, true);
        recovery_send(0, 40, false);
        recovery_snapshot_across_epochs(0, 20);
        recovery_power_goes();
        const dataplane_recovered *r = recovery_starts(&count, why);
        CHECK(r && count == 2);
        recovery_check(found(r, 0));
        CHECK_EQ(found(r, 0)->epoch, 2);
        recovery_end();
    }
}

/* Else a start would find a snapshot of an epoch that its log does not know. */
TEST(a_snapshot_begins_when_its_epoch_is_in_the_log) {
    recovery_begin(check_seed());
    recovery_send(0, 50, true);
    recovery_snapshot_in_a_new_epoch(0);
    recovery_power_goes();
    const dataplane_recovered *r = recovery_starts(&count, why);
    CHECK(r && count == 2 && found(r, 0)->epoch == 2);
    recovery_check(found(r, 0));
    recovery_end();
}

TEST(a_copy_of_a_later_life_knows_nothing_of_earlier_ones) {
    for (recovery_epoch = 1; recovery_epoch < 4; recovery_epoch += 2) {
        recovery_begin(check_seed());
        recovery_power_goes();
        const dataplane_recovered *r = recovery_starts(&count, why);
        CHECK(r && count == 2);
        recovery_check(&r[0]);
        CHECK((recovery_doubt_ns(0) > 0) == (recovery_epoch > 1));
        recovery_end();
    }
    recovery_epoch = 1;
}

/* What the walk has seen was in the log. */
static bool ends_later_than_it_began(const memory_file *f) {
    snapshot_head head;
    snapshot_foot foot;
    memcpy(&head, f->bytes, sizeof head);
    memcpy(&foot, f->bytes + f->size - WAL_BLOCK + sizeof(snapshot_chunk), sizeof foot);
    return foot.last > head.committed;
}
static void keep_the_first_batch(uint32_t thread) {
    bool kept = false;
    for (uint32_t number = 1; number < 100; number++) {
        char name[WAL_NAME_MAX];
        wal_file_name(name, thread, number);
        memory_file *f = memory_disk_file(recovery_disk(), name);
        if (!f) continue;
        wal_batch head;
        memcpy(&head, f->bytes + WAL_BLOCK, sizeof head);
        uint64_t from = WAL_BLOCK + (kept ? 0 : wal_whole_blocks(head.bytes));
        memset(f->bytes + from, 0, f->size - from);
        kept = true;
    }
}
TEST(a_copy_whose_log_ends_before_its_snapshot_does_is_not_whole) {
    uint64_t seed = check_seed();
    bool later = false;
    recovery_rate = 100000;
    while (!later) {
        recovery_begin(seed++);
        recovery_send(0, 300, true);
        recovery_snapshot(1, 0);
        recovery_snapshot(0, 3);
        recovery_power_goes();
        later = ends_later_than_it_began(snapshot_of(0));
        if (later) {
            keep_the_first_batch(0);
            is_not_whole("its log ends with record");
        }
        recovery_end();
    }
    recovery_rate = 1000000000;
}

TEST(snapshots_whose_log_is_lost_are_not_gone_on_with) {
    history(check_seed());
    recovery_power_goes();
    remove_logs(0);
    CHECK(recovery_starts(&count, why) == NULL);
    CHECK(strcmp(why, "the write-ahead log cannot be gone on with: 0-1 is missing, with all that was in the log") == 0);
    CHECK_EQ(recovery_started, FKV_CORRUPT);
    recovery_end();
}

static memory_file *first_log(uint32_t thread) {
    char name[WAL_NAME_MAX];
    for (uint32_t number = 1; number < 100; number++) {
        wal_file_name(name, thread, number);
        memory_file *f = memory_disk_file(recovery_disk(), name);
        if (f) return f;
    }
    CHECK(!"there is a log");
    return NULL;
}
static void is_of_a_later_format(memory_file *f) {
    wal_file_head h;
    memcpy(&h, f->bytes, sizeof h);
    h.format++;
    memcpy(f->bytes, &h, sizeof h);
    h.crc = wal_crc_without(f->bytes, WAL_BLOCK, offsetof(wal_file_head, crc));
    memcpy(f->bytes, &h, sizeof h);
}
static void does_not_start(fkv_status status, const char *reason) {
    CHECK(recovery_starts(&count, why) == NULL);
    if (!strstr(why, reason)) check_failed(__FILE__, __LINE__, why);
    CHECK_EQ(recovery_started, status);
}

/* Of a damaged log the server may make its copies anew; another one may be there by mistake. */
TEST(a_damaged_log_is_told_from_one_that_must_not_be_touched) {
    recovery_workers = 2;
    history(check_seed());
    recovery_power_goes();
    first_log(0)->bytes[WAL_BLOCK + 100] ^= 1;
    does_not_start(FKV_CORRUPT, "damaged at 4096");
    recovery_instance++;
    does_not_start(FKV_DATA_DIR, "belongs to another data directory");
    recovery_instance--;
    is_of_a_later_format(first_log(1));
    does_not_start(FKV_DATA_DIR, "of a later version");
    recovery_end();
    recovery_workers = 1;
}

/* An entry that a mistake left out, in a file that is whole. */
TEST(a_copy_that_is_not_what_it_was_is_not_whole) {
    recovery_begin(check_seed());
    recovery_send(0, 150, true);
    recovery_snapshot(0, 0);
    recovery_snapshot(1, 0);
    recovery_power_goes();
    memory_file *f = snapshot_of(0);
    snapshot_foot counted = { 0 }, foot;
    snapshot_head head;
    memcpy(&head, f->bytes, sizeof head);
    snapshot_count_head(&counted, head.crc);
    bool changed = false;
    for (uint64_t at = WAL_BLOCK; at < f->size;) {
        snapshot_chunk c;
        memcpy(&c, f->bytes + at, sizeof c);
        uint8_t *items = f->bytes + at + sizeof c;
        if (c.kind == ITEM_ENTRIES && !changed) {
            fkv_scan_entry e;
            memcpy(&e, items, sizeof e);
            e.version += 1; /* as if another change had taken effect */
            memcpy(items, &e, sizeof e);
            changed = true;
        }
        if (c.kind == SNAPSHOT_FOOT) {
            memcpy(&foot, items, sizeof foot);
            foot.crcs = counted.crcs;
            memcpy(items, &foot, sizeof foot);
        }
        snapshot_count(&counted, &c, snapshot_seal(f->bytes + at, &c));
        at += snapshot_blocks(&c);
    }
    CHECK(changed);
    is_not_whole("it is not what it was at record");
    recovery_end();
}

TEST(what_was_damaged_in_memory_does_not_come_back_as_good) {
    uint64_t seed = check_seed();
    for (uint32_t small = 0, large = 0; small < 2 || large < 2; seed++) {
        recovery_begin(seed);
        recovery_send(0, 600, true);
        bool is_large = seed % 2 && recovery_damages(0, ITEM_LARGE_BYTES + 1);
        if (!is_large) CHECK(recovery_damages(0, 1));
        *(is_large ? &large : &small) += 1;
        CHECK_EQ(recovery_damaged(0), 1);
        recovery_snapshot(0, 0);
        recovery_power_goes();
        const dataplane_recovered *r = recovery_starts(&count, why);
        CHECK(r && count == 2 && found(r, 0)->whole);
        CHECK_EQ(recovery_damaged(0), 1);
        recovery_end();
    }
}

TEST(a_copy_that_its_memory_does_not_hold_is_not_whole) {
    recovery_begin(check_seed());
    recovery_sends_largest(0, 100); /* 200 KiB each, of 60 keys */
    recovery_snapshot(0, 0);
    recovery_power_goes();
    recovery_memory = TABLE_MEMORY_MIN;
    const dataplane_recovered *r = recovery_starts(&count, why);
    CHECK(r && count == 2 && found(r, 1)->whole);
    const dataplane_recovered *x = found(r, 0);
    CHECK(!x->whole && strstr(x->why, "no memory"));
    recovery_memory = 16 << 20;
    recovery_power_goes();
    r = recovery_starts(&count, why);
    CHECK(r && count == 2 && r[0].whole && r[1].whole); /* nothing was lost by that */
    recovery_check(&r[0]);
    recovery_check(&r[1]);
    recovery_end();
}

TEST(a_server_with_fewer_threads_than_logs_does_not_start) {
    recovery_workers = 2;
    recovery_begin(check_seed());
    for (int n = 0; n < 20; n++) recovery_send(0, 1, true);
    recovery_power_goes();
    recovery_workers = 1;
    CHECK(recovery_starts(&count, why) == NULL);
    CHECK(strcmp(why, "there is the log of thread 1, and 1 threads: start with 2 of them") == 0);
    recovery_end();
}

/* With threads: what is stepped ends as a server that has run. */
TEST(a_start_that_fails_after_a_value_that_was_cut_off_ends) {
    history(check_seed());
    recovery_cuts_value_off(0);
    CHECK(recovery_starts(&count, why));
    CHECK(recovery_begins_epoch(0));
    recovery_power_goes(); /* before it is in the log */
    recovery_fails_to_start(why);
    CHECK(why[0]);
    const dataplane_recovered *r = recovery_starts(&count, why);
    CHECK(r && count == 2 && recovery_begins_epoch(0));
    for (uint32_t i = 0; i < 2; i++) recovery_check(&r[i]);
    recovery_end();
}

/* Of files that are mostly empty it says at the end what was read, and not what they have. */
TEST(progress_ends_where_what_was_written_ends) {
    recovery_log_file = 24 << 20;
    recovery_begin(check_seed());
    recovery_send(0, 50, true);
    recovery_power_goes();
    CHECK(recovery_starts(&count, why));
    CHECK(recovery_bytes_read == recovery_bytes_all && recovery_bytes_all < recovery_log_file);
    recovery_end();
    recovery_log_file = 256 << 10;
}

TEST(a_start_that_is_given_up_ends_and_changes_nothing_that_is_wanted) {
    history(check_seed());
    recovery_power_goes();
    CHECK(recovery_starts(&count, why));
    uint64_t all = recovery_bytes_all;
    CHECK(all > 0);
    recovery_power_goes();
    for (uint64_t n = 0; n < 8; n++) {
        recovery_stops_at = n * all / 8;
        CHECK(recovery_starts(&count, why) == NULL);
        CHECK(recovery_bytes_read >= recovery_stops_at);
    }
    recovery_stops_at = UINT64_MAX;
    const dataplane_recovered *r = recovery_starts(&count, why);
    CHECK(r && count == 2 && r[0].whole && r[1].whole);
    recovery_check(&r[0]);
    recovery_check(&r[1]);
    recovery_end();
}

int main(int argc, char **argv) {
    RUN(copies_come_back_as_they_were_after_cuts_in_any_operation);
    RUN(what_was_acknowledged_is_found_committed_or_prepared);
    RUN(progress_ends_where_what_was_written_ends);
    RUN(leases_that_a_copy_has_given_end_a_lease_after_the_start_began);
    RUN(a_copy_whose_snapshot_is_damaged_is_not_whole_and_kept_until_it_is_discarded);
    RUN(a_copy_whose_snapshot_is_gone_is_not_whole);
    RUN(a_snapshot_that_nobody_can_read_is_of_the_thread_whose_log_has_its_copy);
    RUN(an_epoch_that_begins_while_a_snapshot_is_made_does_no_harm);
    RUN(a_snapshot_begins_when_its_epoch_is_in_the_log);
    RUN(a_copy_of_a_later_life_knows_nothing_of_earlier_ones);
    RUN(a_copy_whose_log_ends_before_its_snapshot_does_is_not_whole);
    RUN(snapshots_whose_log_is_lost_are_not_gone_on_with);
    RUN(a_damaged_log_is_told_from_one_that_must_not_be_touched);
    RUN(a_copy_that_is_not_what_it_was_is_not_whole);
    RUN(what_was_damaged_in_memory_does_not_come_back_as_good);
    RUN(a_copy_that_its_memory_does_not_hold_is_not_whole);
    RUN(a_server_with_fewer_threads_than_logs_does_not_start);
    RUN(a_start_that_fails_after_a_value_that_was_cut_off_ends);
    RUN(a_start_that_is_given_up_ends_and_changes_nothing_that_is_wanted);
    return check_end(argc, argv);
}
