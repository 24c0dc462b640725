/* dataplane_snapshot_test.c: snapshots of a shard that is served, with the threads of the product: when they are made, what
 * of the log is given back for them, and that a server which comes back has what was answered. */
#include <errno.h>
#include "durable_rig.h"

enum { VALUE = 4000, ANSWERS = 300 };

static uint64_t snapshot_bytes, bytes_per_s;
static uint32_t failed_snapshots; /* atomic */
static uint8_t value[VALUE];

static void snapshot_failed(void *ctx, uint32_t shard, const char *operation, const char *file, int error) {
    (void)ctx, (void)operation, (void)file, (void)error;
    CHECK_EQ(shard, number);
    __atomic_fetch_add(&failed_snapshots, 1, __ATOMIC_RELEASE);
}
static bool recovers(void *ctx, uint32_t shard, uint64_t copy) {
    (void)ctx;
    return shard == number && copy == 1000 + number;
}
static void configure_snapshots(int s, rig *r) {
    configure(s, r);
    r->config.log.snapshot_bytes = snapshot_bytes;
    r->config.log.snapshot_bytes_per_s = bytes_per_s;
    r->config.log.chunk_bytes = ITEM_CHUNK_MIN;
    r->config.log.shard_memory_bytes = COPY_MEMORY;
    r->config.log.recovers = recovers;
    r->config.on_snapshot_failed = snapshot_failed;
}
static void begin_snapshots(void) {
    begin();
    copies_configure = configure_snapshots;
    snapshot_bytes = bytes_per_s = 0;
    failed_snapshots = 0;
}

static struct {
    uint32_t files;
    bool made, under_way;
    uint64_t committed, bytes, left;
} kept;
static void do_look_at_log(worker *w, void *ctx) {
    (void)ctx;
    const wal *g = &w->repl.log->wal;
    kept.files = 0;
    for (const fkv_list *l = g->kept.next; l != &g->kept; l = l->next) kept.files++;
    const shard *s = here(w);
    kept.made = s && s->repl.snapshot.made;
    kept.committed = s ? s->repl.snapshot.has.committed : 0;
    kept.bytes = wal_kept_bytes(g);
    const wal_file *last = LIST_LAST(&g->kept, wal_file, link);
    kept.left = last ? last->bytes - last->at : 0;
    kept.under_way = !snapshot_is_idle(&w->repl.log->snapshots.writer);
}
static void look_at_log(void) { visit_server(OWNER, do_look_at_log, &(errand){ 0 }); }
#define UNTIL_LOG(e)                                                           \
    do {                                                                       \
        uint64_t until_ = fkv_now_ns() + check_patience_ms() * 1000000u;       \
        for (look_at_log(); !(e); look_at_log()) CHECK(fkv_now_ns() < until_); \
    } while (0)

static uint32_t put_of[64];
static void put_key(uint32_t k, uint32_t n) {
    memset(value, (int)n, sizeof value);
    CHECK_EQ(end_noted(raw_put_begin(&c, key_at(k), value, sizeof value)), FKV_OK);
    put_of[k] = n;
}
static void expect_key(uint32_t k) {
    fkv_reply r;
    uint8_t *v = raw_get(&c, key_at(k), &r);
    CHECK(v && r.value_bytes == VALUE && v[0] == (uint8_t)put_of[k] && v[VALUE - 1] == (uint8_t)put_of[k]);
    free(v);
}

/* The owner comes back, from its disk, and leads the next epoch alone. */
static const dataplane_recovered *comes_back(uint32_t epoch, uint64_t client) {
    server *v = &servers[OWNER];
    uint32_t count;
    disks_stay = true;
    rig_init(&v->r, copies_over, NULL);
    v->r.config.ctx = &v->r;
    v->r.config.client_quota = 8192;
    v->r.config.wait_ms = RIG_WAIT_MS;
    configure_snapshots(OWNER, &v->r);
    rig_start(&v->r);
    v->runs = true;
    const dataplane_recovered *r = dataplane_get_recovered(v->r.d, &count);
    CHECK(count == 1 && r->shard == number && r->id == 1000 + number && r->worker == 0);
    if (!r->whole) check_failed(__FILE__, __LINE__, r->why);
    server_leads(OWNER, 1, epoch);
    leases_end();
    UNTIL_AT(OWNER, at.committed == at.last && at.begun == epoch);
    CHECK(server_serves(OWNER));
    raw_up(&c, &v->r, client);
    return r;
}

TEST(a_snapshot_that_is_asked_for_gives_the_log_back) {
    begin_snapshots();
    up_alone();
    for (uint32_t n = 0; n < ANSWERS; n++) put_key(n % 50, n);
    look_at_log();
    CHECK(kept.files > 4 && !kept.made);
    CHECK_EQ(rig_shard_call(&servers[OWNER].r, dataplane_snapshot, number), FKV_OK);
    UNTIL_LOG(kept.made && kept.files <= 2);
    CHECK_EQ(kept.committed, ANSWERS);
    for (uint32_t n = ANSWERS; n < ANSWERS + 20; n++) put_key(n % 50, n);
    raw_down(&c);
    loses_power(OWNER);
    const dataplane_recovered *r = comes_back(2, CLIENT + 1);
    CHECK_EQ(r->prepared, ANSWERS + 20);
    for (uint32_t k = 0; k < 50; k++) expect_key(k);
    put_key(3, 99);
    CHECK_EQ(rig_shard_call(&servers[OWNER].r, dataplane_snapshot, number), FKV_OK);
    raw_down(&c);
    loses_power(OWNER);
    comes_back(3, CLIENT + 2);
    expect_key(3);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

/* A start finds all of the log in a snapshot, and keeps the last file until there is a batch behind it. */
TEST(what_a_start_holds_back_of_the_log_is_given_back_with_the_next_batch) {
    begin_snapshots();
    up_alone();
    for (uint32_t n = 0; n < 20; n++) put_key(n, n);
    CHECK_EQ(rig_shard_call(&servers[OWNER].r, dataplane_snapshot, number), FKV_OK);
    UNTIL_LOG(kept.committed == 20 && !kept.under_way);
    raw_down(&c);
    loses_power(OWNER);
    comes_back(2, CLIENT + 1); /* and its epoch begins in the next file */
    UNTIL_LOG(kept.files == 1);
    for (uint32_t k = 0; k < 20; k++) expect_key(k);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

/* It was never served, and counts from now on. */
TEST(a_new_shard_is_on_the_disk_when_it_is_asked_for) {
    begin_snapshots();
    server_up(OWNER, COPY_MEMORY);
    rig *r = &servers[OWNER].r;
    /* The log has all of the shard before, which bears the same name here: nothing of it comes too late. */
    CHECK_EQ(rig_shard_call(r, dataplane_snapshot, number), FKV_OK);
    rig_close(r, number);
    CHECK_EQ(rig_open_shard(r, number, 0, COPY_MEMORY, NULL), FKV_OK);
    CHECK_EQ(rig_shard_call(r, dataplane_snapshot, number), FKV_OK);
    loses_power(OWNER);
    CHECK_EQ(comes_back(2, CLIENT)->prepared, 0);
    put_key(3, 7);
    expect_key(3);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

TEST(a_snapshot_is_made_when_the_log_is_too_long) {
    begin_snapshots();
    snapshot_bytes = 1 << 20;
    up_alone();
    uint32_t n = 0;
    for (look_at_log(); kept.bytes < snapshot_bytes / 2; look_at_log()) put_key(n % 60, n), n++;
    CHECK(!kept.made && !kept.under_way);
    for (; !kept.made && n < MOST; look_at_log()) put_key(n % 60, n), n++;
    UNTIL_LOG(kept.made && !kept.under_way && kept.bytes <= snapshot_bytes);
    raw_down(&c);
    loses_power(OWNER);
    comes_back(2, CLIENT + 1);
    for (uint32_t k = 0; k < 60; k++) expect_key(k);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

/* A change that comes alone takes a block of the disk, however small it is. */
TEST(a_log_of_small_changes_is_no_longer) {
    begin_snapshots();
    snapshot_bytes = 4 * LOG_FILE;
    up_alone();
    for (look_at_log(); !kept.made && !kept.under_way; look_at_log()) {
        CHECK(kept.bytes <= snapshot_bytes + LOG_FILE);
        CHECK_EQ(raw_put(&c, key_at(0), "small", 5), FKV_OK);
    }
    UNTIL_LOG(kept.bytes <= snapshot_bytes && !kept.under_way);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

/* Each start goes on in a file of its own, of which a server that is killed again and again writes little. */
TEST(a_log_stays_short_over_many_starts) {
    begin_snapshots();
    snapshot_bytes = 4 * LOG_FILE;
    up_alone();
    for (uint32_t start = 1; start <= 12; start++) {
        put_key(start, start);
        raw_down(&c);
        loses_power(OWNER);
        comes_back(1 + start, CLIENT + start);
    }
    UNTIL_LOG(kept.files <= 5 && !kept.under_way);
    for (uint32_t k = 1; k <= 12; k++) expect_key(k);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

/* Else a large table would be written again and again for a few changes. */
TEST(no_snapshot_is_made_while_the_log_is_shorter_than_the_tables) {
    enum { LARGE = 12 << 10 };
    static uint8_t large[LARGE];
    begin_snapshots();
    snapshot_bytes = 1;
    up_alone();
    for (uint32_t k = 0; k < 100; k++) CHECK_EQ(raw_put(&c, key_at(k), large, LARGE), FKV_OK);
    CHECK_EQ(rig_shard_call(&servers[OWNER].r, dataplane_snapshot, number), FKV_OK);
    UNTIL_LOG(kept.files <= 2 && !kept.under_way);
    uint64_t committed = kept.committed;
    for (uint32_t k = 0; k < 25; k++) CHECK_EQ(raw_put(&c, key_at(k), large, LARGE), FKV_OK);
    give_turns();
    look_at_log();
    CHECK(kept.committed == committed && !kept.under_way);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

TEST(a_shard_that_rests_does_not_hold_up_the_log) {
    begin_snapshots();
    snapshot_bytes = 1 << 20;
    up_alone();
    rig *r = &servers[OWNER].r;
    uint32_t other = (number + 1) % RIG_SHARDS, k = 0;
    char key[32] = "";
    do snprintf(key, sizeof key, "rests-%u", k++);
    while (raw_shard_of(0, key, strlen(key)) != other);
    CHECK_EQ(rig_open_shard(r, other, 0, COPY_MEMORY, NULL), FKV_OK);
    rig_serve(r, other);
    CHECK_EQ(raw_put(&c, key, "one", 3), FKV_OK);
    for (uint32_t n = 0; n < 400; n++) put_key(n % 50, n);
    UNTIL_LOG(kept.bytes < 2 * snapshot_bytes && !kept.under_way);
    raw_expect(&c, key, "one");
    raw_down(&c);
    servers_down();
    disks_free(1);
}

/* It takes as long as the rate says, however small its steps. Until then changes are answered as ever. */
TEST(changes_are_answered_while_a_snapshot_is_made) {
    begin_snapshots();
    bytes_per_s = 400 << 10;
    up_alone();
    for (uint32_t n = 0; n < 60; n++) put_key(n, n);
    rig_call call;
    rig_call_init(&call);
    dataplane_snapshot(servers[OWNER].r.d, number, rig_done, &call);
    uint32_t meanwhile = 0;
    for (uint32_t n = 60; !rig_is_done(&call) && answers < MOST; n++, meanwhile++) put_key(n % 60, n);
    CHECK(meanwhile > 0);
    CHECK_EQ(rig_wait(&call), FKV_OK);
    raw_down(&c);
    loses_power(OWNER);
    comes_back(2, CLIENT + 1);
    for (uint32_t k = 0; k < 60; k++) expect_key(k);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

/* With what is in the snapshot, and with what is in the log behind it. */
TEST(a_retry_is_answered_as_before_after_a_loss_of_power) {
    fkv_request q[2];
    fkv_reply first[2];
    begin_snapshots();
    up_alone();
    for (int i = 0; i < 2; i++) {
        q[i] = raw_request(&c, FKV_OP_PUT, "alpha");
        q[i].value_bytes = 3;
        raw_message *m = raw_receive(&c, raw_send(&c, &q[i], "alpha", "one", 3));
        first[i] = m->reply;
        CHECK_EQ(m->reply.status, FKV_OK);
        free(m);
        if (i == 0) CHECK_EQ(rig_shard_call(&servers[OWNER].r, dataplane_snapshot, number), FKV_OK);
    }
    raw_down(&c);
    loses_power(OWNER);
    comes_back(2, CLIENT);
    for (int i = 0; i < 2; i++) {
        q[i].flags |= FKV_REQUEST_RETRY;
        q[i].id = c.next_id++;
        raw_message *m = raw_receive(&c, raw_send(&c, &q[i], "alpha", "one", 3));
        CHECK(m->reply.status == FKV_OK && m->reply.version == first[i].version);
        free(m);
    }
    raw_down(&c);
    servers_down();
    disks_free(1);
}

static int snapshot_error(void) {
    dataplane_stats *s = rig_stats(&servers[OWNER].r);
    CHECK_EQ(s->shards, 1);
    int error = s->shard[0].snapshot_error;
    free(s);
    return error;
}

TEST(a_snapshot_that_fails_is_reported_and_made_later) {
    begin_snapshots();
    up_alone();
    put_key(0, 1);
    gated_disk_fill(&disks[OWNER], true);
    CHECK_EQ(rig_shard_call(&servers[OWNER].r, dataplane_snapshot, number), FKV_TABLE_FULL);
    CHECK_EQ(__atomic_load_n(&failed_snapshots, __ATOMIC_ACQUIRE), 1);
    gated_disk_fill(&disks[OWNER], false);
    give_turns();
    look_at_log();
    CHECK(!kept.made);
    CHECK_EQ(snapshot_error(), -ENOSPC);
    fkv_clock_skip(61000000000);
    UNTIL_LOG(kept.made);
    CHECK_EQ(snapshot_error(), 0);
    CHECK_EQ(__atomic_load_n(&failures, __ATOMIC_ACQUIRE), 0);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

/* The names of the log's files lie there too. */
TEST(a_directory_that_cannot_be_synced_ends_the_log) {
    begin_snapshots();
    up_alone();
    put_key(0, 1);
    gated_disk_fail_directory(&disks[OWNER], -EIO);
    CHECK_EQ(rig_shard_call(&servers[OWNER].r, dataplane_snapshot, number), FKV_CORRUPT);
    CHECK_EQ(__atomic_load_n(&failures, __ATOMIC_ACQUIRE), 1);
    CHECK_EQ(__atomic_load_n(&failed_with, __ATOMIC_RELAXED), -EIO);
    uint64_t id = raw_put_begin(&c, key_at(1), value, sizeof value);
    give_turns();
    CHECK(!is_answered(id));
    CHECK_EQ(__atomic_load_n(&failures, __ATOMIC_ACQUIRE), 1);
    raw_down(&c);
    loses_power(OWNER);
    comes_back(2, CLIENT + 1);
    expect_key(0);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

static void look_for_snapshots(void *arg, const char *name) { *(uint32_t *)arg += strncmp(name, "snapshot", 8) == 0; }

TEST(a_shard_that_is_closed_leaves_nothing_on_the_disk) {
    begin_snapshots();
    up_alone();
    for (uint32_t n = 0; n < ANSWERS; n++) put_key(n % 50, n);
    CHECK_EQ(rig_shard_call(&servers[OWNER].r, dataplane_snapshot, number), FKV_OK);
    for (uint32_t n = 0; n < ANSWERS / 2; n++) put_key(n % 50, n);
    bytes_per_s = 0;
    rig_call call;
    rig_call_init(&call);
    dataplane_snapshot(servers[OWNER].r.d, number, rig_done, &call); /* it may be under way */
    rig_close(&servers[OWNER].r, number);
    fkv_status s = rig_wait(&call);
    CHECK(s == FKV_ABORTED || s == FKV_OK);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    uint32_t there;
    do {
        CHECK(fkv_now_ns() < until);
        look_at_log();
        there = 0;
        disks[OWNER].table.list(&disks[OWNER].table, look_for_snapshots, &there);
    } while (there > 0 || kept.files > 1);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

/* Nobody asks for another snapshot while the oldest file is covered, so what a snapshot found being written has to be
 * given back by itself once it is full. */
TEST(a_file_that_was_covered_while_it_was_written_is_given_back) {
    begin_snapshots();
    snapshot_bytes = 1 << 20;
    up_alone();
    uint32_t n = 0;
    for (look_at_log(); n < 4 || kept.left >= 8192; look_at_log()) put_key(n % 10, n), n++;
    CHECK_EQ(rig_shard_call(&servers[OWNER].r, dataplane_snapshot, number), FKV_OK);
    UNTIL_LOG(kept.made && !kept.under_way && kept.committed == n);
    for (int i = 0; i < 400; i++) put_key(n % 10, n), n++;
    UNTIL_LOG(kept.bytes < 2 * snapshot_bytes && !kept.under_way);
    raw_down(&c);
    servers_down();
    disks_free(1);
}

int main(int argc, char **argv) {
    RUN(a_snapshot_that_is_asked_for_gives_the_log_back);
    RUN(what_a_start_holds_back_of_the_log_is_given_back_with_the_next_batch);
    RUN(a_new_shard_is_on_the_disk_when_it_is_asked_for);
    RUN(a_snapshot_is_made_when_the_log_is_too_long);
    RUN(a_log_of_small_changes_is_no_longer);
    RUN(a_log_stays_short_over_many_starts);
    RUN(no_snapshot_is_made_while_the_log_is_shorter_than_the_tables);
    RUN(a_shard_that_rests_does_not_hold_up_the_log);
    RUN(changes_are_answered_while_a_snapshot_is_made);
    RUN(a_retry_is_answered_as_before_after_a_loss_of_power);
    RUN(a_snapshot_that_fails_is_reported_and_made_later);
    RUN(a_directory_that_cannot_be_synced_ends_the_log);
    RUN(a_shard_that_is_closed_leaves_nothing_on_the_disk);
    RUN(a_file_that_was_covered_while_it_was_written_is_given_back);
    return check_end(argc, argv);
}
