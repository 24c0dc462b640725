/* dataplane_durable_life_test.c: durable shards that come and go, and copies of them that join, while the log lags behind. */
#include "durable_rig.h"
#include "../../replication/replication.h"

/* An owner's, without copies of it. */
TEST(a_shard_that_is_no_copy_begins_its_epoch_in_the_log_when_it_is_served) {
    char key[32];
    begin();
    server_up(OWNER, COPY_MEMORY);
    uint32_t other = (number + 1) % RIG_SHARDS, n = 0;
    rig *r = &servers[OWNER].r;
    CHECK_EQ(rig_open_shard(r, other, 0, COPY_MEMORY, NULL), FKV_OK);
    rig_serve(r, other);
    raw_up(&c, r, CLIENT);
    do snprintf(key, sizeof key, "key-%u", n++);
    while (raw_shard_of(0, key, strlen(key)) != other);
    CHECK_EQ(end_noted(raw_put_begin(&c, key, "one", 3)), FKV_OK);
    raw_down(&c);
    loses_power(OWNER);
    logged_read(&disks[OWNER].table, &identity, other, 1000 + other, &read_back);
    CHECK(read_back.begun && read_back.epoch == 1 && read_back.last == 1);
    CHECK(logged_find(&read_back, versions[0]));
    servers_down();
    disks_free(1);
}

/* Half of it is in the log when the shard is closed, and when the server is stopped. */
TEST(a_shard_ends_while_a_value_is_on_its_way_to_the_log) {
    enum { BYTES = 1 << 20 };
    memory m;
    begin();
    up_alone();
    put(0);
    memory_make(&m, &c, BYTES, 3);
    gated_disk_hold(&disks[OWNER], true);
    uint64_t id = large_put_begin(&c, &m, "alpha", BYTES);
    UNTIL_AT(OWNER, at.last == 2);
    rig *r = &servers[OWNER].r;
    rig_close(r, number);
    CHECK_EQ(raw_end(&c, id), FKV_UNDECIDED);
    gated_disk_hold(&disks[OWNER], false);
    opens_again(2000);
    server_leads(OWNER, 1, 2);
    leases_end();
    CHECK(server_serves(OWNER));
    put(1);
    gated_disk_hold(&disks[OWNER], true);
    large_put_begin(&c, &m, "alpha", BYTES);
    UNTIL_AT(OWNER, at.last == 2);
    memory_free(&m);
    raw_down(&c);
    loses_power(OWNER);
    for (uint32_t i = 0; i < 2; i++) {
        logged_read(&disks[OWNER].table, &identity, number, i ? 2000 : 1000 + number, &read_back);
        CHECK(read_back.last == 1 && logged_find(&read_back, versions[i]));
    }
    servers_down();
    disks_free(1);
}

/* Nobody waits for the copy: its owner goes on. Nothing more is logged there. */
static void up_with_a_copy_that_joins(void) {
    begin();
    up();
    put(0);
    replica_config k = { .epoch = 1, .config = 2, .min_in_sync = 1, .joining = 1, .joining_id = { id_of(NEXT) } };
    visit_server(OWNER, do_configure, &(errand){ .config = k });
    UNTIL_AT(NEXT, at.logged == 1);
    gated_disk_hold(&disks[NEXT], true);
}

TEST(a_copy_that_joins_is_not_sent_more_than_it_keeps_while_its_log_lags) {
    enum { BATCH = 500, BATCHES = 2 * REPLICA_WINDOW / BATCH };
    uint64_t id[BATCH];
    up_with_a_copy_that_joins();
    for (uint32_t b = 0; b < BATCHES; b++) {
        for (uint32_t i = 0; i < BATCH; i++) id[i] = raw_put_begin(&c, key_at(b * BATCH + i), &i, sizeof i);
        for (uint32_t i = 0; i < BATCH; i++) CHECK_EQ(raw_end(&c, id[i]), FKV_OK);
    }
    look_at(NEXT);
    CHECK(at.logged == 1 && at.last < REPLICA_WINDOW);
    gated_disk_hold(&disks[NEXT], false);
    UNTIL_AT(NEXT, at.logged == 1 + BATCH * BATCHES);
    down();
    disks_free(2);
}

/* Its owner has committed the first change of the key, and made the next. */
TEST(a_copy_that_joins_waits_with_a_keys_next_change_until_its_log_has_the_one_before) {
    up_with_a_copy_that_joins();
    for (uint32_t i = 0; i < 3; i++) put(1);
    UNTIL(NEXT, seen.waits);
    look_at(NEXT);
    CHECK(at.last == 2 && at.logged == 1);
    gated_disk_hold(&disks[NEXT], false);
    UNTIL_AT(NEXT, at.logged == 4);
    down();
    disks_free(2);
}

static bool is_full;
static fkv_status failed;
static void do_look_at_copy(worker *w, void *ctx) {
    (void)ctx;
    is_full = repl_disk_full(here(w));
    failed = here(w)->repl.copy->failed;
}
/* Its log will have nothing more, and other shards of the link need its messages. */
TEST(a_copy_that_joins_and_has_a_full_disk_does_not_wait_for_its_log) {
    static uint8_t value[4000];
    up_with_a_copy_that_joins();
    gated_disk_hold(&disks[NEXT], false);
    gated_disk_fill(&disks[NEXT], true);
    is_full = false;
    for (uint32_t i = 1; !is_full; visit_server(NEXT, do_look_at_copy, &(errand){ 0 }))
        CHECK_EQ(raw_end(&c, raw_put_begin(&c, key_at(i++), value, sizeof value)), FKV_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(raw_end(&c, raw_put_begin(&c, "alpha", "one", 3)), FKV_OK);
    UNTIL_AT(NEXT, (visit_server(NEXT, do_look_at_copy, &(errand){ 0 }), failed == FKV_TABLE_FULL));
    down();
    disks_free(2);
}

int main(int argc, char **argv) {
    RUN(a_shard_that_is_no_copy_begins_its_epoch_in_the_log_when_it_is_served);
    RUN(a_shard_ends_while_a_value_is_on_its_way_to_the_log);
    RUN(a_copy_that_joins_is_not_sent_more_than_it_keeps_while_its_log_lags);
    RUN(a_copy_that_joins_waits_with_a_keys_next_change_until_its_log_has_the_one_before);
    RUN(a_copy_that_joins_and_has_a_full_disk_does_not_wait_for_its_log);
    return check_end(argc, argv);
}
