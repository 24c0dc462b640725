/* dataplane_sync_test.c: durable shards that answer before the disk has the change (dataplane_log.sync_ns): what a loss of
 * power leaves is a prefix with all that was synced, and an end loses nothing. dataplane_early_test.c has several copies. */
#include "../../serve/loop.h"
#include "durable_rig.h"

static const uint64_t NEVER_NS = (uint64_t)3600 * 1000000000, SOON_NS = 10000000;

static uint64_t sync_ns;

static bool recovers(void *ctx, uint32_t shard, uint64_t copy) {
    (void)ctx;
    return shard == number && copy == 1000 + number;
}
static void configure_sync(int s, rig *r) {
    configure(s, r);
    r->config.log.sync_ns = sync_ns;
    r->config.log.shard_memory_bytes = COPY_MEMORY;
    r->config.log.recovers = recovers;
}
static void begin_sync(uint64_t ns) {
    begin();
    sync_ns = ns;
    copies_alone = true;
    copies_configure = configure_sync;
}

/* The owner comes back, from its disk, and leads the next epoch alone. Returns the last record that it has. */
static uint64_t comes_back(uint32_t epoch, uint64_t client) {
    server *v = &servers[OWNER];
    uint32_t count;
    disks_stay = true;
    rig_init(&v->r, copies_over, NULL);
    v->r.config.ctx = &v->r;
    v->r.config.wait_ms = RIG_WAIT_MS;
    configure_sync(OWNER, &v->r);
    rig_start(&v->r);
    v->runs = true;
    const dataplane_recovered *r = dataplane_get_recovered(v->r.d, &count);
    CHECK(count == 1 && r->shard == number);
    if (!r->whole) check_failed(__FILE__, __LINE__, r->why);
    uint64_t last = r->prepared;
    server_leads(OWNER, 1, epoch);
    leases_end();
    UNTIL_AT(OWNER, at.committed == at.last && at.begun == epoch);
    CHECK(server_serves(OWNER));
    raw_up(&c, &v->r, client);
    return last;
}

static bool has(uint32_t i) {
    fkv_reply r;
    uint8_t *v = raw_get(&c, key_at(i), &r);
    bool is = v && memcmp(v, &i, sizeof i) == 0;
    free(v);
    return is;
}

TEST(what_was_synced_is_there_and_the_rest_is_gone_whole) {
    begin_sync(SOON_NS);
    up_alone();
    for (uint32_t i = 0; i < 5; i++) put(i);
    UNTIL_AT(OWNER, at.logged == 5);
    gated_disk_hold(&disks[OWNER], true);
    for (uint32_t i = 5; i < 10; i++) put(i); /* answered, and no sync has ended */
    CHECK_EQ(answers, 10);
    look_at(OWNER);
    CHECK(at.logged == 5 && at.committed == 10);
    uint64_t lost = versions[9];
    raw_down(&c);
    loses_power(OWNER);
    gated_disk_hold(&disks[OWNER], false);
    uint64_t last = comes_back(2, CLIENT + 1);
    CHECK(last >= 5 && last <= 10);
    for (uint32_t i = 0; i < 10; i++) CHECK_EQ(has(i), i < last);
    /* No version is drawn twice: who compares with a lost one is refused. */
    put(20);
    CHECK(versions[10] > lost);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

TEST(the_disk_has_what_was_answered_after_the_time) {
    begin_sync(SOON_NS);
    up_alone();
    put(0);
    UNTIL_AT(OWNER, at.logged == 1); /* nothing else comes that would make it go */
    raw_down(&c);
    loses_power(OWNER);
    CHECK_EQ(comes_back(2, CLIENT + 1), 1);
    CHECK(has(0));
    raw_down(&c);
    servers_down();
    disks_free(1);
}

TEST(a_server_that_ends_loses_nothing) {
    begin_sync(NEVER_NS);
    up_alone();
    for (uint32_t i = 0; i < 10; i++) put(i);
    look_at(OWNER);
    CHECK_EQ(at.logged, 0);
    raw_down(&c);
    server_dies(OWNER); /* in good order: dataplane_stop */
    gated_disk_off(&disks[OWNER]);
    gated_disk_on(&disks[OWNER]);
    CHECK_EQ(comes_back(2, CLIENT + 1), 10);
    for (uint32_t i = 0; i < 10; i++) CHECK(has(i));
    raw_down(&c);
    servers_down();
    disks_free(1);
}

static struct { bool holds, idle; } snapshot;
static void do_look_at_snapshot(worker *w, void *ctx) {
    (void)ctx;
    snapshot.holds = w->repl.log->snapshots.holds;
    snapshot.idle = snapshot_is_idle(&w->repl.log->snapshots.writer);
}
static void look_at_snapshot(void) { visit_server(OWNER, do_look_at_snapshot, &(errand){ 0 }); }

TEST(a_snapshot_waits_until_the_log_has_what_it_names) {
    begin_sync(NEVER_NS);
    up_alone();
    for (uint32_t i = 0; i < 10; i++) put(i);
    gated_disk_hold(&disks[OWNER], true);
    rig *r = &servers[OWNER].r;
    rig_call call;
    rig_call_init(&call);
    dataplane_snapshot(r->d, number, rig_done, &call);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    for (look_at_snapshot(); !snapshot.holds; look_at_snapshot()) CHECK(fkv_now_ns() < until);
    give_turns();
    look_at_snapshot();
    look_at(OWNER);
    CHECK(snapshot.holds && at.logged == 0);
    gated_disk_hold(&disks[OWNER], false);
    CHECK_EQ(rig_wait(&call), FKV_OK);
    free(call.result);
    look_at(OWNER);
    CHECK_EQ(at.logged, 10);
    raw_down(&c);
    loses_power(OWNER);
    CHECK_EQ(comes_back(2, CLIENT + 1), 10);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

static struct {
    uint64_t put;
    rig_call asked;
    bool came, begun;
} turn;
/* One turn in which a change comes and a snapshot is asked for: the end of that turn answers the change. */
static void do_turn_with_both(worker *w, void *ctx) {
    uint64_t last = here(w)->repl.owner.last;
    turn.put = raw_put_begin(&c, "alpha", "one", 3);
    dataplane_snapshot(w->d, number, rig_done, &turn.asked);
    worker_turn(w);
    turn.came = here(w)->repl.owner.last == last + 1;
    turn.begun = w->repl.log->snapshots.walks;
    (void)ctx;
}

/* Else none would ever be where each turn has changes, and the log would not be given back. */
TEST(a_snapshot_begins_in_a_turn_that_answers_changes) {
    begin_sync(NEVER_NS);
    up_alone();
    put(0); /* the epoch is in the log */
    rig_call_init(&turn.asked);
    visit_server(OWNER, do_turn_with_both, &(errand){ 0 });
    CHECK(turn.came && turn.begun);
    CHECK_EQ(raw_end(&c, turn.put), FKV_OK);
    CHECK_EQ(rig_wait(&turn.asked), FKV_OK);
    free(turn.asked.result);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

static bool is_under_way;
static void do_look_at_batch(worker *w, void *ctx) {
    (void)ctx;
    is_under_way = w->repl.log->wal.write.base.under_way;
}

/* Nothing is answered before it is there, however long changes may wait. */
TEST(the_beginning_of_an_epoch_goes_to_the_disk_at_once) {
    begin_sync(NEVER_NS);
    server_up(OWNER, COPY_MEMORY);
    UNTIL_AT(OWNER, at.aheads == 2 && at.begun == 1); /* as a copy; the maker of files is at rest */
    gated_disk_hold(&disks[OWNER], true);
    server_leads(OWNER, 1, 2);
    give_turns();
    visit_server(OWNER, do_look_at_batch, &(errand){ 0 });
    CHECK(is_under_way);
    gated_disk_hold(&disks[OWNER], false);
    servers_down();
    disks_free(1);
}

int main(int argc, char **argv) {
    RUN(what_was_synced_is_there_and_the_rest_is_gone_whole);
    RUN(the_disk_has_what_was_answered_after_the_time);
    RUN(a_server_that_ends_loses_nothing);
    RUN(a_snapshot_waits_until_the_log_has_what_it_names);
    RUN(a_snapshot_begins_in_a_turn_that_answers_changes);
    RUN(the_beginning_of_an_epoch_goes_to_the_disk_at_once);
    return check_end(argc, argv);
}
