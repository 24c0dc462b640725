/* dataplane_durable_test.c: durable shards: what is answered is in the logs of the owner and of its backup, whatever
 * becomes of power and disks. Loss of power among other faults: failover.c. */
#include <errno.h>
#include "durable_rig.h"
#include "../../replication/replication.h"

TEST(nothing_is_answered_before_it_is_in_the_log_of_its_owner) {
    begin();
    up();
    put(0);
    gated_disk_hold(&disks[OWNER], true);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    UNTIL_AT(OWNER, at.peer == 2);
    give_turns();
    look_at(OWNER);
    CHECK(at.committed == 1 && at.logged == 1 && at.held == 1 && !is_answered(id));
    gated_disk_hold(&disks[OWNER], false);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    raw_expect(&c, "alpha", "one");
    look_at(OWNER);
    CHECK(at.committed == 2 && at.logged == 2);
    down();
    disks_free(2);
}

TEST(nothing_is_acknowledged_before_it_is_in_the_log_of_the_backup) {
    begin();
    up();
    put(0);
    gated_disk_hold(&disks[NEXT], true);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    UNTIL_AT(NEXT, at.last == 2);
    UNTIL_AT(OWNER, at.logged == 2);
    give_turns();
    look_at(OWNER);
    CHECK(at.peer == 1 && at.committed == 1 && !is_answered(id));
    gated_disk_hold(&disks[NEXT], false);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    down();
    disks_free(2);
}

TEST(a_shard_without_copies_waits_for_its_own_log) {
    begin();
    up_alone();
    put(0);
    gated_disk_hold(&disks[OWNER], true);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    UNTIL_AT(OWNER, at.last == 2);
    give_turns();
    CHECK(at.committed == 1 && !is_answered(id));
    gated_disk_hold(&disks[OWNER], false);
    CHECK_EQ(end_noted(id), FKV_OK);
    raw_down(&c);
    loses_power(OWNER);
    has_all_that_was_answered(OWNER);
    CHECK_EQ(read_back.last, 2);
    servers_down();
    disks_free(1);
}

TEST(a_backup_gives_no_lease_before_the_epoch_is_in_its_log) {
    begin();
    server_up(OWNER, COPY_MEMORY);
    server_up(NEXT, COPY_MEMORY);
    server_leads(OWNER, BOTH, 2);
    UNTIL_AT(NEXT, at.begun == 1); /* in which it was opened */
    gated_disk_hold(&disks[NEXT], true);
    follow(OWNER, NEXT);
    UNTIL(OWNER, seen.fed);
    give_turns();
    look(OWNER);
    CHECK_EQ(seen.right_ns, 0);
    gated_disk_hold(&disks[NEXT], false);
    UNTIL(OWNER, seen.right_ns > fkv_now_ns());
    look_at(NEXT);
    CHECK_EQ(at.begun, 2);
    servers_down();
    disks_free(2);
}

/* What it inherits it has acknowledged, so that is in its log. */
TEST(a_new_owner_commits_nothing_before_its_epoch_is_in_its_log) {
    begin();
    up();
    for (uint32_t i = 0; i < 5; i++) put(i);
    raw_down(&c);
    loses_power(OWNER);
    has_all_that_was_answered(OWNER);
    gated_disk_hold(&disks[NEXT], true);
    server_leads(NEXT, 1 << NEXT, 2);
    look_at(NEXT);
    CHECK(at.begun == 1 && at.logged == 5);
    gated_disk_hold(&disks[NEXT], false);
    UNTIL_AT(NEXT, at.begun == 2 && at.committed == 5);
    leases_end();
    CHECK(server_serves(NEXT));
    raw_up(&c, &servers[NEXT].r, CLIENT + 1);
    put(5);
    for (uint32_t i = 0; i < 6; i++) {
        fkv_reply r;
        uint8_t *v = raw_get(&c, key_at(i), &r);
        CHECK(v && memcmp(v, &i, sizeof i) == 0);
        free(v);
    }
    raw_down(&c);
    loses_power(NEXT);
    has_all_that_was_answered(NEXT);
    CHECK(read_back.epoch == 2 && read_back.at[6].epoch == 2 && read_back.at[5].epoch == 1);
    servers_down();
    disks_free(2);
}

TEST(what_was_answered_is_in_both_logs_when_all_lose_their_power) {
    enum { PUTS = 100 };
    begin();
    up();
    uint64_t id[PUTS];
    for (uint32_t i = 0; i < PUTS; i++) id[i] = raw_put_begin(&c, key_at(i % 30), &i, sizeof i);
    for (uint32_t i = 0; i < PUTS / 2; i++) CHECK_EQ(end_noted(id[i]), FKV_OK);
    gated_disk_off(&disks[OWNER]);
    gated_disk_off(&disks[NEXT]);
    raw_poll(&c); /* what was answered by then */
    for (uint32_t i = PUTS / 2; i < PUTS; i++)
        if (is_here(&c, id[i])) end_noted(id[i]);
    raw_down(&c);
    loses_power(OWNER);
    loses_power(NEXT);
    for (int s = 0; s < 2; s++) has_all_that_was_answered(s);
    servers_down();
    disks_free(2);
}

/* What is in the log is found again after a loss of power: so it is made, however late. */
TEST(a_change_that_is_logged_when_the_owners_lease_is_over_is_made) {
    begin();
    up_alone();
    gated_disk_hold(&disks[OWNER], true);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    UNTIL_AT(OWNER, at.last == 1);
    dataplane_set_grant_until(servers[OWNER].r.d, fkv_now_ns());
    gated_disk_hold(&disks[OWNER], false);
    CHECK_EQ(end_noted(id), FKV_OK);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

/* Sections of the shard as it was are on their way when it is opened anew. */
TEST(what_the_log_reports_of_a_closed_shard_is_not_taken_for_that_of_the_next) {
    begin();
    up_alone();
    gated_disk_hold(&disks[OWNER], true);
    uint64_t id[3];
    for (uint32_t i = 0; i < 3; i++) id[i] = raw_put_begin(&c, key_at(i), "v", 1);
    UNTIL_AT(OWNER, at.last == 3);
    rig_close(&servers[OWNER].r, number);
    for (uint32_t i = 0; i < 3; i++) CHECK_EQ(raw_end(&c, id[i]), FKV_UNDECIDED);
    opens_again(2000);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    for (look_at(OWNER); at.begun == 0; look_at(OWNER)) {
        CHECK(fkv_now_ns() < until);
        if (gated_disk_waiting(&disks[OWNER])) gated_disk_pass(&disks[OWNER]);
        give_turns();
    }
    give_turns();
    CHECK_EQ(gated_disk_waiting(&disks[OWNER]), 0); /* its own beginning is on the disk, not what was before */
    CHECK_EQ(at.logged, 0);
    gated_disk_hold(&disks[OWNER], false);
    raw_down(&c);
    loses_power(OWNER);
    logged_read(&disks[OWNER].table, &identity, number, 1000 + number, &read_back);
    CHECK_EQ(read_back.last, 3);
    logged_read(&disks[OWNER].table, &identity, number, 2000, &read_back);
    CHECK(read_back.begun && read_back.last == 0);
    servers_down();
    disks_free(1);
}

TEST(a_durable_shard_is_refused_where_there_is_no_log) {
    copies_configure = NULL;
    server_up(OWNER, COPY_MEMORY);
    servers[OWNER].r.durable = true;
    CHECK_EQ(rig_open_shard(&servers[OWNER].r, (number + 1) % RIG_SHARDS, 0, COPY_MEMORY, NULL), FKV_BAD_REQUEST);
    servers_down();
}

/* ---- disks ---- */

static dataplane_log_stats log_stats(void) {
    dataplane_stats *s = rig_stats(&servers[OWNER].r);
    CHECK(s->worker[0].has_log);
    dataplane_log_stats l = s->worker[0].log;
    free(s);
    return l;
}

TEST(a_log_counts_bytes_records_and_syncs) {
    uint64_t id[3], began = fkv_now_ns(); /* before the first sync, too */
    begin();
    up_alone();
    while (log_stats().free_files < 2) give_turns();
    gated_disk_hold(&disks[OWNER], true);
    for (uint32_t i = 0; i < 3; i++) id[i] = raw_put_begin(&c, key_at(i), "one", 3);
    UNTIL_AT(OWNER, at.last == 3);
    while (gated_disk_waiting(&disks[OWNER]) == 0) give_turns(); /* the log's: files are made */
    const dataplane_log_stats before = log_stats();
    CHECK_EQ(before.records, 0);
    uint64_t is_held = fkv_now_ns();
    while (fkv_now_ns() - is_held < 2000000) give_turns();
    gated_disk_hold(&disks[OWNER], false);
    for (uint32_t i = 0; i < 3; i++) CHECK_EQ(end_noted(id[i]), FKV_OK);
    const dataplane_log_stats l = log_stats();
    CHECK_EQ(l.records, 3);
    CHECK(l.sync.count > before.sync.count && l.sync.count <= before.sync.count + 3);
    CHECK(l.sync.max_ns >= 2000000 && l.sync.max_ns <= fkv_now_ns() - began);
    CHECK(l.bytes >= before.bytes && l.bytes % WAL_BLOCK == 0 && l.bytes > WAL_BLOCK);
    CHECK_EQ(l.free_files, 2);
    CHECK(!l.disk_full);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

TEST(a_full_disk_refuses_changes_after_a_while_and_takes_them_again) {
    static uint8_t value[4000];
    begin();
    wait_ms = 50;
    up_alone();
    uint32_t n = 0;
    fkv_status s = end_noted(raw_put_begin(&c, key_at(n++), value, sizeof value));
    gated_disk_fill(&disks[OWNER], true);
    /* BUSY: one waited for its memory for 50 ms, as on a busy machine, before the log knew that its disk is full. */
    while ((s == FKV_OK || s == FKV_BUSY) && n < MOST)
        s = end_noted(raw_put_begin(&c, key_at(n++ % 50), value, sizeof value));
    CHECK_EQ(s, FKV_TABLE_FULL);
    CHECK(log_stats().disk_full);
    fkv_reply r;
    uint8_t *v = raw_get(&c, key_at(0), &r);
    CHECK(v && memcmp(v, value, sizeof value) == 0);
    free(v);
    gated_disk_fill(&disks[OWNER], false);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    do CHECK(fkv_now_ns() < until);
    while (end_noted(raw_put_begin(&c, "alpha", "one", 3)) != FKV_OK);
    CHECK(!log_stats().disk_full);
    raw_down(&c);
    loses_power(OWNER);
    has_all_that_was_answered(OWNER);
    servers_down();
    disks_free(1);
}

static bool is_full, is_told;
static void do_look_for_space(worker *w, void *ctx) {
    (void)ctx;
    is_full = repl_disk_full(here(w));
}
static void do_look_for_room(worker *w, void *ctx) {
    (void)ctx;
    is_told = here(w)->repl.place[0].limit <= here(w)->repl.drawn_bytes;
}
/* Those that had their numbers before the owner knew wait for space. */
TEST(a_backup_whose_disk_is_full_has_no_room) {
    static uint8_t value[4000];
    begin();
    copies_lease_ms = 1000; /* with a beat every fifth of it */
    up();
    gated_disk_fill(&disks[NEXT], true);
    uint64_t id = 0;
    fkv_status s = FKV_OK;
    for (is_full = is_told = false; s == FKV_OK && !is_told;) {
        CHECK(answers < MOST);
        id = raw_put_begin(&c, key_at(answers % 50), value, sizeof value);
        uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
        while (!is_answered(id) && !is_told) {
            CHECK(fkv_now_ns() < until);
            visit_server(NEXT, do_look_for_space, &(errand){ 0 });
            if (is_full) visit_server(OWNER, do_look_for_room, &(errand){ 0 });
        }
        if (is_answered(id)) s = end_noted(id);
    }
    if (s == FKV_OK) CHECK_EQ(end_noted(raw_put_begin(&c, "alpha", "one", 3)), FKV_TABLE_FULL);
    CHECK(s == FKV_OK || s == FKV_TABLE_FULL);
    gated_disk_fill(&disks[NEXT], false);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    do CHECK(fkv_now_ns() < until);
    while (end_noted(raw_put_begin(&c, "alpha", "one", 3)) != FKV_OK);
    down();
    disks_free(2);
    copies_lease_ms = COPY_LEASE_MS;
}

TEST(a_write_that_fails_ends_acknowledging) {
    begin();
    up_alone();
    put(0);
    gated_disk_fail(&disks[OWNER], -EIO);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (!__atomic_load_n(&failures, __ATOMIC_ACQUIRE)) CHECK(fkv_now_ns() < until);
    CHECK_EQ(failed_with, -EIO);
    give_turns();
    look_at(OWNER);
    CHECK(!is_here(&c, id) && at.committed == 1);
    CHECK_EQ(__atomic_load_n(&failures, __ATOMIC_ACQUIRE), 1);
    raw_down(&c);
    loses_power(OWNER);
    has_all_that_was_answered(OWNER);
    servers_down();
    disks_free(1);
}

TEST(a_copy_whose_log_failed_gives_no_lease) {
    begin();
    up();
    put(0);
    gated_disk_fail(&disks[NEXT], -EIO);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (!__atomic_load_n(&failures, __ATOMIC_ACQUIRE)) CHECK(fkv_now_ns() < until);
    errand e = { 0 };
    visit_server(NEXT, do_ack, &e);
    CHECK(!e.yes && !is_answered(id));
    down();
    disks_free(2);
}

/* ---- large values ---- */

TEST(a_large_value_is_in_both_logs_before_it_is_answered) {
    enum { BYTES = 1 << 20 };
    memory m;
    begin();
    up();
    memory_make(&m, &c, BYTES, 3);
    uint32_t crc = fkv_crc32c(0, m.region.base, BYTES);
    gated_disk_hold(&disks[NEXT], true);
    uint64_t id = large_put_begin(&c, &m, "alpha", BYTES);
    UNTIL_AT(NEXT, at.last == 1);
    give_turns();
    CHECK(!is_answered(id));
    gated_disk_hold(&disks[NEXT], false);
    CHECK_EQ(end_noted(id), FKV_OK);
    for (uint32_t i = 0; i < 5; i++) put(i);
    CHECK_EQ(end_noted(large_put_begin(&c, &m, "alpha", BYTES / 2)), FKV_OK);
    memory_free(&m);
    raw_down(&c);
    for (int s = 0; s < 2; s++) {
        loses_power(s);
        has_all_that_was_answered(s);
        const logged_record *r = logged_find(&read_back, versions[0]);
        CHECK(r->head.value_bytes == BYTES && r->value_crc == crc);
        CHECK(read_back.pieces > BYTES / LOG_BUFFER);
    }
    servers_down();
    disks_free(2);
}

int main(int argc, char **argv) {
    RUN(nothing_is_answered_before_it_is_in_the_log_of_its_owner);
    RUN(nothing_is_acknowledged_before_it_is_in_the_log_of_the_backup);
    RUN(a_shard_without_copies_waits_for_its_own_log);
    RUN(a_backup_gives_no_lease_before_the_epoch_is_in_its_log);
    RUN(a_new_owner_commits_nothing_before_its_epoch_is_in_its_log);
    RUN(what_was_answered_is_in_both_logs_when_all_lose_their_power);
    RUN(a_change_that_is_logged_when_the_owners_lease_is_over_is_made);
    RUN(what_the_log_reports_of_a_closed_shard_is_not_taken_for_that_of_the_next);
    RUN(a_durable_shard_is_refused_where_there_is_no_log);
    RUN(a_log_counts_bytes_records_and_syncs);
    RUN(a_full_disk_refuses_changes_after_a_while_and_takes_them_again);
    RUN(a_backup_whose_disk_is_full_has_no_room);
    RUN(a_write_that_fails_ends_acknowledging);
    RUN(a_copy_whose_log_failed_gives_no_lease);
    RUN(a_large_value_is_in_both_logs_before_it_is_answered);
    return check_end(argc, argv);
}
