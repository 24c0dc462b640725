/* dataplane_durable_join_test.c: copies of durable shards that are made of what another server has: nobody relies on one
 * before all that it was made from is on its disk. */
#include "../../replication/durable.h"
#include "gated_disk.h"
#include "join_rig.h"
#include "large_values.h"

enum { KEYS = 100, VALUE = 4000, LARGE = 20 << 10, BIG_FILE = 1 << 20 };

static gated_disk disks[NODES];
static uint32_t failed_snapshots; /* atomic */

static uint64_t wanted; /* the copy that the metadata has; 0: the one that the shard was opened with */

static bool recovers(void *ctx, uint32_t shard, uint64_t copy) {
    (void)ctx;
    return copy == (wanted ? wanted : 1000 + shard);
}
static void log_failed(void *ctx, const char *operation, const char *file, int error) {
    (void)ctx, (void)operation, (void)file, (void)error; /* the power goes */
}
static void snapshot_failed(void *ctx, uint32_t shard, const char *operation, const char *file, int error) {
    (void)ctx, (void)operation, (void)file, (void)error;
    CHECK_EQ(shard, number);
    __atomic_fetch_add(&failed_snapshots, 1, __ATOMIC_RELEASE);
}
static uint32_t workers;
static uint64_t sync_ns;
static void configure(int s, rig *r) {
    r->durable = true;
    r->config.workers = workers;
    r->config.log = (dataplane_log){ .disk = &disks[s].table,
                                     .instance = (uint64_t)s,
                                     .file_bytes = BIG_FILE,
                                     .buffer_bytes = 64 << 10,
                                     .sync_ns = sync_ns,
                                     .chunk_bytes = ITEM_CHUNK_MIN,
                                     .shard_memory_bytes = JOIN_MEMORY,
                                     .recovers = recovers };
    r->config.on_log_failed = log_failed;
    r->config.on_snapshot_failed = snapshot_failed;
}

static void put_keys(uint32_t from, uint32_t to) {
    static uint8_t value[VALUE];
    char key[32];
    for (uint32_t i = from; i < to; i++) {
        memset(value, (int)i, sizeof value);
        CHECK_EQ(raw_put(&c, key_at(i, key), value, sizeof value), FKV_OK);
    }
}
static void keys_are_there(uint32_t count) {
    char key[32];
    for (uint32_t i = 0; i < count; i++) {
        fkv_reply r;
        uint8_t *v = raw_get(&c, key_at(i, key), &r);
        CHECK(v && r.value_bytes == VALUE && v[0] == (uint8_t)i && v[VALUE - 1] == (uint8_t)i);
        free(v);
    }
}

static void begin_disks(void) {
    join_configure = configure;
    failed_snapshots = 0;
    wanted = 0;
    workers = 1;
    sync_ns = 0;
    for (int s = 0; s < 3; s++) gated_disk_init(&disks[s], check_seed() + (uint64_t)s);
}
static void begin(void) {
    begin_disks();
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    put_keys(0, KEYS);
}
static void end(void) {
    down();
    for (int s = 0; s < 3; s++) gated_disk_free(&disks[s]);
    fkv_clock_restore();
}

static void a_snapshot_fails(void) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (__atomic_load_n(&failed_snapshots, __ATOMIC_ACQUIRE) == 0) CHECK(fkv_now_ns() < until);
}
static void do_nothing(worker *w, void *ctx) { (void)w, (void)ctx; }
/* On the owner's thread: else a connection that the copy gives up could end, for it, a minute ago. */
static void a_minute_passes(worker *w, void *ctx) {
    (void)ctx;
    fkv_clock_skip(61000000000);
    w->now_ns = fkv_now_ns();
}
static void it_is_tried_again(int s) {
    gated_disk_refuse(&disks[s], NULL);
    rig_visit(&nodes[FIRST].r, a_minute_passes, NULL);
    rig_visit(&nodes[s].r, do_nothing, NULL); /* it may sleep by the clock of before */
}
static void all_lose_their_power(void) {
    for (int s = 0; s < NODES; s++)
        if (nodes[s].runs) gated_disk_off(&disks[s]);
    for (int s = 0; s < NODES; s++) {
        if (!nodes[s].runs) continue;
        node_dies(s);
        gated_disk_on(&disks[s]);
    }
}
static const dataplane_recovered *comes_back(int s) {
    uint32_t count;
    node_starts(s, 1);
    const dataplane_recovered *r = dataplane_get_recovered(plane(s), &count);
    CHECK(count == 1 && r->shard == number && r->id == 1000 + number);
    return r;
}
static void serves_what_it_has(int s, const dataplane_recovered *r, uint32_t epoch) {
    if (!r->whole) check_failed(__FILE__, __LINE__, r->why);
    CHECK_EQ(node_leads(s, 0, epoch, 100 * epoch), FKV_OK);
    node_serves(s);
    raw_up(&c, &nodes[s].r, CLIENT + epoch);
}

TEST(a_copy_joins_when_what_it_was_made_from_is_on_its_disk) {
    uint64_t lsn;
    begin();
    node_up(SECOND, 1);
    gated_disk_refuse(&disks[SECOND], "snapshot");
    node_copies(SECOND, FIRST);
    a_snapshot_fails();
    put_keys(KEYS, KEYS + 10);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(FIRST).peer[0].prepared < KEYS + 10) CHECK(fkv_now_ns() < until); /* in its log */
    for (int i = 0; i < 20; i++) CHECK_EQ(copy_stats(FIRST).peer[0].lease_left_ns, 0);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_BUSY);
    it_is_tried_again(SECOND);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    CHECK_EQ(lsn, KEYS + 10);
    raw_down(&c);
    all_lose_their_power();
    const dataplane_recovered *r = comes_back(SECOND);
    CHECK_EQ(r->prepared, KEYS + 10);
    serves_what_it_has(SECOND, r, 2);
    keys_are_there(KEYS + 10);
    raw_down(&c);
    end();
}

TEST(a_copy_that_lacks_what_it_was_made_from_is_not_whole) {
    begin();
    node_up(SECOND, 1);
    gated_disk_refuse(&disks[SECOND], "snapshot");
    node_copies(SECOND, FIRST);
    a_snapshot_fails();
    put_keys(KEYS, KEYS + 10);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(FIRST).peer[0].prepared < KEYS + 10) CHECK(fkv_now_ns() < until);
    raw_down(&c);
    all_lose_their_power();
    const dataplane_recovered *r = comes_back(SECOND);
    CHECK(!r->whole && strstr(r->why, "it has no snapshot"));
    end();
}

static uint64_t load_made(void) { return __atomic_load_n(&work.made, __ATOMIC_RELAXED); }
static void load_goes_on(uint64_t more) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    for (uint64_t made = load_made(); load_made() < made + more;) CHECK(fkv_now_ns() < until);
}

/* Changes come while the copy is made, while it is written, and behind that. */
TEST(a_copy_of_a_shard_that_is_changed_meanwhile_comes_back_as_its_owner_was) {
    begin_disks();
    up();
    load_begins(&work, FIRST, CLIENT);
    load_goes_on(1000);
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 2);
    load_goes_on(200);
    load_ends(&work);
    all_lose_their_power();
    serves_what_it_has(SECOND, comes_back(SECOND), 2);
    load_is_there(&work, &c);
    raw_down(&c);
    end();
}

/* The policy wants no other copy: what is in the log's buffer is answered, in the turn in which it comes there. */
static void is_alone(uint32_t config) {
    dataplane_copies k = copies_of(NULL, 0, nodes[FIRST].epoch, config, 1);
    k.alone = true;
    rig_call call;
    rig_call_init(&call);
    dataplane_configure_copies(plane(FIRST), number, &k, rig_done, &call);
    CHECK_EQ(rig_wait(&call), FKV_OK);
}

TEST(a_large_value_that_is_answered_before_the_disk_has_it_comes_to_a_copy_that_joins) {
    memory value, same;
    fkv_reply r;
    begin_disks();
    sync_ns = 50000000;
    up();
    is_alone(1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    put_keys(0, 1); /* its log has begun */
    node_up(SECOND, 1);
    node_joined(SECOND, FIRST);
    memory_make(&value, &c, LARGE, 7);
    CHECK_EQ(raw_end(&c, large_put_begin(&c, &value, "alpha", LARGE)), FKV_OK);
    memory_free(&value);
    raw_down(&c);
    node_requires_in_time(FIRST, SECOND);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 2, 1), FKV_OK);
    fails_over(FIRST, SECOND, 0, 2);
    raw_up(&c, &nodes[SECOND].r, CLIENT);
    uint8_t *found = raw_get(&c, "alpha", &r);
    memory_make(&same, &c, LARGE, 7);
    CHECK(found && r.value_bytes == LARGE && memcmp(found, same.region.base, LARGE) == 0);
    free(found);
    memory_free(&same);
    raw_down(&c);
    end();
}

/* ---- a copy that begins with what is there ---- */

/* SECOND has been in sync, and keeps what it has as the base of a copy of another name. */
static void keeps_base(void) {
    begin();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    CHECK_EQ(node_configures(FIRST, 0, 2, 1), FKV_OK);
    CHECK_EQ(node_keeps_base(SECOND), FKV_OK);
    put_keys(KEYS, KEYS + 10);
}

TEST(a_base_that_is_being_changed_is_no_copy_on_the_disk) {
    keeps_base();
    copy_begins(SECOND, FIRST);
    CHECK_EQ(rig_wait(&nodes[SECOND].caught_up), FKV_OK);
    raw_down(&c);
    all_lose_their_power();
    uint32_t count;
    wanted = id_of(SECOND);
    node_starts(SECOND, 1);
    dataplane_get_recovered(plane(SECOND), &count);
    CHECK_EQ(count, 0);
    end();
}

TEST(a_copy_that_joins_with_its_base_gives_no_lease_before_that_is_on_its_disk) {
    uint64_t lsn;
    keeps_base();
    gated_disk_refuse(&disks[SECOND], "snapshot");
    node_copies(SECOND, FIRST);
    CHECK(nodes[SECOND].copied.kept == KEYS && nodes[SECOND].copied.entries == 10);
    a_snapshot_fails();
    put_keys(KEYS + 10, KEYS + 20);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(FIRST).peer[0].prepared < KEYS + 20) CHECK(fkv_now_ns() < until); /* in its log */
    for (int i = 0; i < 20; i++) CHECK_EQ(copy_stats(FIRST).peer[0].lease_left_ns, 0);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_BUSY);
    it_is_tried_again(SECOND);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    raw_down(&c);
    all_lose_their_power();
    uint32_t count;
    wanted = id_of(SECOND);
    node_starts(SECOND, 1);
    const dataplane_recovered *r = dataplane_get_recovered(plane(SECOND), &count);
    CHECK_EQ(count, 1);
    CHECK_EQ(r->id, id_of(SECOND));
    serves_what_it_has(SECOND, r, 2);
    keys_are_there(KEYS + 20);
    raw_down(&c);
    end();
}

/* ---- a shard that is served with what was taken over, and was no copy ---- */

static uint8_t entries[KEYS * (VALUE + 100)];
static uint32_t list_entries(void) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        char key[32];
        fkv_scan_entry e = { .version = i + 1, .value_bytes = VALUE, .has_value = 1 };
        e.key_bytes = (uint16_t)strlen(key_at(i, key));
        memcpy(entries + at, &e, sizeof e);
        memcpy(entries + at + sizeof e, key, e.key_bytes);
        memset(entries + at + sizeof e + e.key_bytes, (int)i, VALUE);
        at += (uint32_t)sizeof e + e.key_bytes + VALUE;
    }
    return at;
}
static void imports(int s, uint32_t shard) {
    rig_call import;
    rig_call_init(&import);
    dataplane_import(plane(s), shard, entries, list_entries(), rig_done, &import);
    CHECK_EQ(rig_wait(&import), FKV_OK);
}

TEST(what_was_taken_over_is_on_the_disk_before_the_shard_is_served) {
    begin_disks();
    node_up(FIRST, 1);
    gated_disk_refuse(&disks[FIRST], "snapshot");
    imports(FIRST, number);
    rig_call serving;
    rig_call_init(&serving);
    dataplane_serve_shard(plane(FIRST), number, rig_done, &serving);
    a_snapshot_fails();
    CHECK(!rig_is_done(&serving));
    rig_call late;
    rig_call_init(&late);
    dataplane_import(plane(FIRST), number, entries, list_entries(), rig_done, &late);
    CHECK_EQ(rig_wait(&late), FKV_BUSY); /* it would be in no snapshot */
    it_is_tried_again(FIRST);
    CHECK_EQ(rig_wait(&serving), FKV_OK);
    free(serving.result);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    keys_are_there(KEYS);
    put_keys(3, 5);
    raw_down(&c);
    all_lose_their_power();
    const dataplane_recovered *r = comes_back(FIRST);
    CHECK_EQ(r->prepared, 3); /* with what was taken over, as one */
    serves_what_it_has(FIRST, r, 2);
    keys_are_there(KEYS);
    raw_down(&c);
    end();
}

TEST(a_shard_that_lacks_what_it_has_taken_over_is_not_whole) {
    begin_disks();
    node_up(FIRST, 1);
    gated_disk_refuse(&disks[FIRST], "snapshot");
    imports(FIRST, number);
    rig_call serving;
    rig_call_init(&serving);
    dataplane_serve_shard(plane(FIRST), number, rig_done, &serving);
    a_snapshot_fails();
    all_lose_their_power();
    CHECK_EQ(rig_wait(&serving), FKV_CLOSED);
    const dataplane_recovered *r = comes_back(FIRST);
    CHECK(!r->whole && strstr(r->why, "it has no snapshot"));
    end();
}

/* Each thread reads its own snapshots and its own log. */
TEST(shards_of_several_threads_come_back_at_the_same_time) {
    enum { WORKERS = 3, SHARDS = RIG_SHARDS };
    begin_disks();
    workers = WORKERS;
    node_starts(FIRST, 1);
    for (uint32_t i = 0; i < SHARDS; i++) {
        CHECK_EQ(rig_open_shard(&nodes[FIRST].r, i, i % WORKERS, JOIN_MEMORY, NULL), FKV_OK);
        imports(FIRST, i);
        rig_serve(&nodes[FIRST].r, i);
    }
    all_lose_their_power();
    uint32_t count;
    node_starts(FIRST, 1);
    const dataplane_recovered *r = dataplane_get_recovered(plane(FIRST), &count);
    CHECK_EQ(count, SHARDS);
    for (uint32_t i = 0; i < count; i++)
        CHECK(r[i].whole && r[i].worker == r[i].shard % WORKERS && r[i].committed == 1);
    dataplane_stats *all = rig_stats(&nodes[FIRST].r);
    for (uint32_t i = 0; i < SHARDS; i++) CHECK_EQ(all->shard[i].table.entries, KEYS);
    free(all);
    end();
}

static void tests(void) {
    RUN(a_copy_joins_when_what_it_was_made_from_is_on_its_disk);
    RUN(a_copy_that_lacks_what_it_was_made_from_is_not_whole);
    RUN(a_copy_of_a_shard_that_is_changed_meanwhile_comes_back_as_its_owner_was);
    RUN(a_large_value_that_is_answered_before_the_disk_has_it_comes_to_a_copy_that_joins);
    RUN(a_base_that_is_being_changed_is_no_copy_on_the_disk);
    RUN(a_copy_that_joins_with_its_base_gives_no_lease_before_that_is_on_its_disk);
    RUN(what_was_taken_over_is_on_the_disk_before_the_shard_is_served);
    RUN(shards_of_several_threads_come_back_at_the_same_time);
    RUN(a_shard_that_lacks_what_it_has_taken_over_is_not_whole);
}
int main(int argc, char **argv) { return join_main(argc, argv, tests, NULL); }
