/* dataplane_early_test.c: durable shards of several copies that answer before their disks (docs/early-answers.md): an owner
 * and its backup count what is in the buffers of their logs, an owner alone does not, and answers are given only in time. */
#include "durable_rig.h"

static const uint64_t NEVER_NS = (uint64_t)3600 * 1000000000;

static void configure_early(int s, rig *r) {
    configure(s, r);
    r->config.log.sync_ns = NEVER_NS;
}
static void begin_early(void) {
    begin();
    copies_configure = configure_early;
}
static void hold(bool held) {
    gated_disk_hold(&disks[OWNER], held);
    gated_disk_hold(&disks[NEXT], held);
}
/* Both follow each other, and makers of files are at rest. */
static void up_early(void) {
    up();
    UNTIL_AT(NEXT, at.aheads == 2 && at.rests);
    UNTIL_AT(OWNER, at.aheads == 2 && at.rests);
}
static fkv_status rely(void) { return rig_shard_call(&servers[OWNER].r, dataplane_rely_on_disk, number); }

TEST(a_change_is_answered_when_both_logs_have_it_in_their_buffers) {
    begin_early();
    up_early();
    hold(true);
    for (uint32_t i = 0; i < 5; i++) put(i);
    look_at(OWNER);
    CHECK(at.logged == 0 && at.committed == 5 && at.peer == 5);
    UNTIL_AT(NEXT, at.last == 5 && at.logged == 0);
    hold(false);
    down();
    disks_free(2);
}

TEST(an_owner_that_is_left_alone_waits_for_its_disk) {
    begin_early();
    up_early();
    put(0);
    server_is_left(OWNER, 1, 1, 2);
    UNTIL_AT(OWNER, at.logged == 1); /* at once, though nothing else would make it go */
    gated_disk_hold(&disks[OWNER], true);
    uint64_t id = raw_put_begin(&c, key_at(1), "one", 3);
    UNTIL_AT(OWNER, at.last == 2);
    give_turns();
    look_at(OWNER);
    CHECK(at.committed == 1 && !is_answered(id));
    gated_disk_hold(&disks[OWNER], false);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    down();
    disks_free(2);
}

static struct {
    bool done;
    fkv_status status;
} relied;
static void relies(void *ctx, fkv_status s, void *result) {
    (void)ctx, (void)result;
    relied.status = s;
    __atomic_store_n(&relied.done, true, __ATOMIC_RELEASE);
}

TEST(an_owner_relies_on_its_disk_until_its_config_is_another_one) {
    begin_early();
    up_early();
    gated_disk_hold(&disks[OWNER], true);
    put(0); /* answered, and on no disk */
    relied.done = false;
    dataplane_rely_on_disk(servers[OWNER].r.d, number, relies, NULL);
    uint64_t id = raw_put_begin(&c, key_at(1), "one", 3);
    UNTIL_AT(OWNER, at.peer == 2);
    give_turns();
    CHECK(!is_answered(id) && !__atomic_load_n(&relied.done, __ATOMIC_ACQUIRE));
    CHECK_EQ(rely(), FKV_BUSY);
    gated_disk_hold(&disks[OWNER], false);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    UNTIL_AT(OWNER, __atomic_load_n(&relied.done, __ATOMIC_ACQUIRE));
    CHECK_EQ(relied.status, FKV_OK);
    CHECK_EQ(rely(), FKV_OK);
    server_is_left(OWNER, BOTH, 1, 2); /* the copy stays */
    UNTIL_AT(OWNER, at.rests);
    hold(true);
    put(2);
    hold(false);
    down();
    disks_free(2);
}

/* The copy that is to go may stay, and its owner would wait for a disk that never has all. */
TEST(what_an_owner_is_asked_to_rely_on_ends_with_its_config) {
    begin_early();
    up_early();
    gated_disk_hold(&disks[OWNER], true);
    put(0);
    relied.done = false;
    dataplane_rely_on_disk(servers[OWNER].r.d, number, relies, NULL);
    server_is_left(OWNER, BOTH, 1, 2);
    UNTIL_AT(OWNER, __atomic_load_n(&relied.done, __ATOMIC_ACQUIRE));
    CHECK_EQ(relied.status, FKV_ABORTED);
    put(1); /* answered early again */
    gated_disk_hold(&disks[OWNER], false);
    CHECK_EQ(rely(), FKV_OK);
    down();
    disks_free(2);
}

/* Others may have the shard then, and what is lost. */
TEST(a_change_is_not_answered_early_when_its_owner_has_no_right_any_more) {
    begin_early();
    up_alone(); /* it waits for its disk */
    put(0);
    gated_disk_hold(&disks[OWNER], true);
    fkv_request q = raw_request(&c, FKV_OP_PUT, "alpha");
    fkv_reply r;
    q.value_bytes = 3;
    uint64_t id = raw_send(&c, &q, "alpha", "one", 3);
    UNTIL_AT(OWNER, at.last == 2);
    dataplane_set_grant_until(servers[OWNER].r.d, fkv_now_ns());
    gated_disk_hold(&disks[OWNER], false);
    CHECK_EQ(raw_end(&c, id), FKV_UNDECIDED);
    /* It was made, and is answered so when its owner has the right again. */
    dataplane_set_grant_until(servers[OWNER].r.d, UINT64_MAX);
    q.flags |= FKV_REQUEST_RETRY;
    CHECK_EQ(raw_ask(&c, &q, "alpha", "one", 3, &r), FKV_OK);
    look_at(OWNER);
    CHECK(at.last == 2 && r.version > versions[0]);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

static struct { bool holds; } snapshot;
static void do_look_at_snapshot(worker *w, void *ctx) {
    (void)ctx;
    snapshot.holds = w->repl.log->snapshots.holds;
}

TEST(a_snapshot_of_a_backup_waits_until_its_log_has_what_it_names) {
    begin_early();
    up_early();
    gated_disk_hold(&disks[NEXT], true);
    for (uint32_t i = 0; i < 3; i++) put(i);
    rig_call call;
    rig_call_init(&call);
    UNTIL(NEXT, seen.committed >= 2);
    dataplane_snapshot(servers[NEXT].r.d, number, rig_done, &call);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    do {
        visit_server(NEXT, do_look_at_snapshot, &(errand){ 0 });
        CHECK(fkv_now_ns() < until);
    } while (!snapshot.holds);
    for (int i = 0; i < 20; i++) visit_server(NEXT, do_look_at_snapshot, &(errand){ 0 });
    look_at(NEXT);
    CHECK(snapshot.holds && at.logged == 0);
    gated_disk_hold(&disks[NEXT], false);
    CHECK_EQ(rig_wait(&call), FKV_OK);
    free(call.result);
    look_at(NEXT);
    CHECK(at.logged >= 2);
    down();
    disks_free(2);
}

/* Its owner is gone: it may be the only copy soon. */
TEST(a_backup_without_an_owner_has_all_on_its_disk_at_once) {
    begin_early();
    up_early();
    put(0);
    look_at(NEXT);
    CHECK_EQ(at.logged, 0);
    raw_down(&c);
    server_dies(OWNER);
    UNTIL_AT(NEXT, at.logged == 1);
    servers_down();
    disks_free(2);
}

int main(int argc, char **argv) {
    RUN(a_change_is_answered_when_both_logs_have_it_in_their_buffers);
    RUN(an_owner_that_is_left_alone_waits_for_its_disk);
    RUN(an_owner_relies_on_its_disk_until_its_config_is_another_one);
    RUN(what_an_owner_is_asked_to_rely_on_ends_with_its_config);
    RUN(a_change_is_not_answered_early_when_its_owner_has_no_right_any_more);
    RUN(a_snapshot_of_a_backup_waits_until_its_log_has_what_it_names);
    RUN(a_backup_without_an_owner_has_all_on_its_disk_at_once);
    return check_end(argc, argv);
}
