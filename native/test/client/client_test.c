/* client_test.c: a client against a real data plane in this process, over each provider in turn. */
#include "client_kit.h"

static fab_provider provider;

/* The simulator's time runs on while the data plane's thread is not scheduled, so that connections may be lost and made
 * again. */
static bool steady(void) { return provider != FAB_SIM; }

static rig r;
static kit k;

/* Every GET was READs alone, but for those whose READs came after the end of a lease, again and again: where processors
 * are busy a READ of megabytes may take longer than a lease. */
static bool one_sided(void) {
    lookup_stats s = kit_stats(&k);
    return s.two_sided <= s.late;
}

static void serve(uint64_t memory) {
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, memory);
}
static void up(uint64_t memory) {
    serve(memory);
    kit_up(&k, &r, 100);
}
static void down(void) {
    kit_down(&k);
    rig_down(&r);
}
/* An owner that serves, and a client with this configuration that has no route yet. */
static void serve_client(const lookup_config *c) {
    serve(4 << 20);
    kit_create(&k, &r, c);
}
static void route_all(void) {
    for (uint32_t i = 0; i < RIG_SHARDS; i++) kit_route(&k, i, 1);
}

TEST(what_was_put_is_got_and_what_was_deleted_is_not) {
    up(4 << 20);
    kit_expect_none(&k, "alpha");
    CHECK_EQ(kit_put(&k, "alpha", "one", 3, 5000).status, FKV_OK);
    kit_expect(&k, "alpha", "one");
    answer two = kit_put(&k, "alpha", "two", 3, 5000);
    CHECK_EQ(two.status, FKV_OK);
    kit_expect(&k, "alpha", "two");
    answer a = kit_get(&k, "alpha", 5000);
    CHECK(a.version == two.version);
    free(a.value);
    CHECK_EQ(kit_delete(&k, "alpha", 5000).status, FKV_OK);
    kit_expect_none(&k, "alpha");
    CHECK_EQ(kit_delete(&k, "alpha", 5000).status, FKV_NOT_FOUND);
    CHECK(!steady() || one_sided());
    CHECK(!steady() || k.connected == 1);
    down();
}

/* A responder in software follows a READ of a bucket by itself, also into segments that came when the table grew. */
TEST(a_cold_get_is_one_read_over_tcp_and_two_elsewhere) {
    enum { KEYS = 2000 };
    up(8 << 20);
    char key[16], value[512];
    memset(value, 'v', sizeof value);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "key%d", i);
        CHECK_EQ(kit_put(&k, key, value, sizeof value, 5000).status, FKV_OK);
    }
    for (int i = 0; i < 40; i++) { /* it knows the layouts, and how large values are */
        snprintf(key, sizeof key, "key%d", i);
        free(kit_get(&k, key, 5000).value);
    }
    lookup_stats before = kit_stats(&k);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "key%d", i);
        answer a = kit_get(&k, key, 5000);
        CHECK_EQ(a.status, FKV_OK);
        free(a.value);
    }
    lookup_stats after = kit_stats(&k);
    uint64_t reads = after.reads - before.reads, followed = after.followed - before.followed;
    uint64_t again = after.retries - before.retries; /* where processors are busy, READs come too late to count */
    CHECK_EQ(followed != 0, provider == FAB_TCP);
    if (provider == FAB_TCP) {
        CHECK(followed <= KEYS + again && followed + again > KEYS * 9 / 10);
        CHECK(reads < KEYS * 11 / 10 + 2 * again);
    }
    CHECK(!steady() || reads + followed >= 2 * KEYS); /* chains make them more */
    down();
}

TEST(empty_values_and_the_longest_keys_go_both_ways) {
    up(4 << 20);
    char key[FKV_KEY_MAX + 2];
    memset(key, 'k', sizeof key);
    key[FKV_KEY_MAX] = 0;
    CHECK_EQ(kit_put(&k, key, "", 0, 5000).status, FKV_OK);
    kit_expect(&k, key, "");
    key[FKV_KEY_MAX] = 'k';
    key[FKV_KEY_MAX + 1] = 0;
    CHECK_EQ(kit_put(&k, key, "", 0, 5000).status, FKV_KEY_INVALID);
    CHECK_EQ(kit_get(&k, key, 5000).status, FKV_KEY_INVALID);
    CHECK_EQ(kit_get(&k, "", 5000).status, FKV_KEY_INVALID);
    down();
}

TEST(a_compare_and_swap_wins_only_with_the_present_version) {
    up(4 << 20);
    answer first = kit_cas(&k, "counter", 0, "1", 5000);
    CHECK_EQ(first.status, FKV_OK);
    answer lost = kit_cas(&k, "counter", 0, "2", 5000);
    CHECK_EQ(lost.status, FKV_VERSION_MISMATCH);
    CHECK(lost.version == first.version);
    CHECK_EQ(kit_cas(&k, "counter", first.version, "2", 5000).status, FKV_OK);
    kit_expect(&k, "counter", "2");
    CHECK_EQ(kit_cas(&k, "counter", first.version, NULL, 5000).status, FKV_VERSION_MISMATCH);
    down();
}

TEST(many_gets_and_puts_are_under_way_at_once) {
    enum { N = 200, ROUNDS = 20 };
    up(16 << 20);
    static answer a[N];
    char key[32], value[32];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            snprintf(key, sizeof key, "many-%d-%d", round, i);
            snprintf(value, sizeof value, "value-%d", round * N + i);
            kit_put_begin(&k, key, value, (uint32_t)strlen(value), 10000, &a[i]);
        }
        for (int i = 0; i < N; i++) {
            kit_until(&k, &a[i].done);
            CHECK_EQ(a[i].status, FKV_OK);
        }
        for (int i = 0; i < N; i++) {
            snprintf(key, sizeof key, "many-%d-%d", round, i);
            kit_get_begin(&k, key, 10000, &a[i]);
        }
        for (int i = 0; i < N; i++) {
            kit_until(&k, &a[i].done);
            CHECK_EQ(a[i].status, FKV_OK);
            snprintf(value, sizeof value, "value-%d", round * N + i);
            CHECK(strcmp((char *)a[i].value, value) == 0);
            free(a[i].value);
        }
    }
    CHECK(!steady() || one_sided());
    down();
}

/* The index grows and segments come while a client reads: none of what is there is ever missed. */
TEST(a_growing_table_is_read_without_a_miss) {
    enum { KEYS = 24000, STEP = 200 };
    kit writer;
    up(32 << 20);
    kit_up(&writer, &r, 101);
    static answer put[STEP], got[STEP];
    char key[32], value[40];
    memset(value, 'v', sizeof value);
    uint64_t random = check_seed();
    for (int n = 0; n < KEYS; n += STEP) {
        for (int i = 0; i < STEP; i++) {
            snprintf(key, sizeof key, "grow-%d", n + i);
            kit_put_begin(&writer, key, value, sizeof value, 10000, &put[i]);
        }
        for (int i = 0; i < STEP; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            snprintf(key, sizeof key, "grow-%d", n ? (int)((random >> 33) % (uint64_t)n) : 0);
            if (n) kit_get_begin(&k, key, 10000, &got[i]);
        }
        for (int i = 0; i < STEP; i++) {
            while (!put[i].done) {
                kit_turn(&writer);
                session_poll(k.s);
            }
            CHECK_EQ(put[i].status, FKV_OK);
            if (!n) continue;
            kit_until(&k, &got[i].done);
            CHECK_EQ(got[i].status, FKV_OK);
            CHECK_EQ(got[i].bytes, sizeof value);
            free(got[i].value);
        }
    }
    for (int n = 0; n < KEYS; n++) {
        snprintf(key, sizeof key, "grow-%d", n);
        answer a = kit_get(&k, key, 10000);
        CHECK_EQ(a.status, FKV_OK);
        free(a.value);
    }
    dataplane_stats *s = rig_stats(&r);
    CHECK(s->shard[0].table.splits > 0);
    free(s);
    kit_down(&writer);
    down();
}

TEST(large_values_go_by_rendezvous_and_come_by_reads) {
    up(128 << 20);
    static const uint32_t sizes[] = { 16000, 16384, 20000, 100000, 1 << 20, 9 << 20 };
    char key[32];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *value = malloc(sizes[i]);
        for (uint32_t b = 0; b < sizes[i]; b++) value[b] = (uint8_t)(b * 31 + i);
        snprintf(key, sizeof key, "large-%u", sizes[i]);
        CHECK_EQ(kit_put(&k, key, value, sizes[i], 20000).status, FKV_OK);
        answer a = kit_get(&k, key, 20000);
        CHECK_EQ(a.status, FKV_OK);
        CHECK(a.bytes == sizes[i] && memcmp(a.value, value, sizes[i]) == 0);
        free(a.value);
        free(value);
    }
    CHECK(!steady() || one_sided());
    down();
}

TEST(a_two_sided_get_brings_a_large_value_in_pieces) {
    up(64 << 20);
    uint32_t bytes = 3 << 20;
    uint8_t *value = malloc(bytes);
    for (uint32_t b = 0; b < bytes; b++) value[b] = (uint8_t)(b >> 8);
    CHECK_EQ(kit_put(&k, "pieces", value, bytes, 20000).status, FKV_OK);
    answer a;
    session_ask ask = { .op = FKV_OP_GET };
    kit_ask(&k, &ask, "pieces", 20000, &a);
    kit_until(&k, &a.done);
    CHECK_EQ(a.status, FKV_OK);
    CHECK(a.bytes == bytes && memcmp(a.value, value, bytes) == 0);
    free(a.value);
    free(value);
    down();
}

TEST(a_scan_returns_every_key) {
    enum { KEYS = 1000 };
    up(16 << 20);
    static bool seen[KEYS];
    char key[32];
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "scan-%d", i);
        CHECK_EQ(kit_put(&k, key, "v", 1, 5000).status, FKV_OK);
    }
    for (uint32_t shard = 0; shard < RIG_SHARDS; shard++) {
        uint64_t cursor = 0, id;
        do {
            answer a = { 0 };
            session_ask ask = { .op = FKV_OP_SCAN,
                                .shard = shard,
                                .expected = cursor,
                                .value_bytes = 100,
                                .deadline_ns = kit_deadline(&k, 5000),
                                .done = kit_answered,
                                .user = &a };
            CHECK_EQ(session_request(k.s, &ask, &id), FKV_OK);
            kit_until(&k, &a.done);
            CHECK_EQ(a.status, FKV_OK);
            uint32_t at = 0;
            fkv_scan_entry e;
            const uint8_t *found, *value;
            while (wire_next_scan_entry(a.value, a.bytes, &at, &e, &found, &value)) {
                snprintf(key, sizeof key, "%.*s", (int)e.key_bytes, (const char *)found);
                seen[atoi(key + 5)] = true;
            }
            free(a.value);
            cursor = a.version;
        } while (cursor);
    }
    for (int i = 0; i < KEYS; i++) CHECK(seen[i]);
    down();
}

TEST(a_layout_from_the_metadata_needs_no_question_to_the_owner) {
    lookup_config c = kit_config(&k, 100);
    serve_client(&c);
    kit_set_owner(&k, r.config.server_incarnation);
    for (uint32_t i = 0; i < RIG_SHARDS; i++) {
        rig_call call;
        rig_call_init(&call);
        dataplane_get_layout(r.d, i, rig_done, &call);
        CHECK_EQ(rig_wait(&call), FKV_OK);
        kit_route_with_layout(&k, i, call.result);
        free(call.result);
    }
    kit_expect_none(&k, "alpha");
    CHECK_EQ(kit_put(&k, "alpha", "one", 3, 5000).status, FKV_OK);
    kit_expect(&k, "alpha", "one");
    dataplane_stats *s = rig_stats(&r);
    CHECK(!steady() || s->worker[0].requests[FKV_OP_LAYOUT] == 0);
    CHECK(!steady() || s->worker[0].requests[FKV_OP_GET] == 0);
    free(s);
    down();
}

TEST(an_expired_entry_is_not_returned) {
    up(4 << 20);
    answer a;
    session_ask ask = { .op = FKV_OP_PUT, .value = (const uint8_t *)"v", .value_bytes = 1, .ttl_ms = 200 };
    kit_ask(&k, &ask, "brief", 5000, &a);
    kit_until(&k, &a.done);
    CHECK_EQ(a.status, FKV_OK);
    uint64_t put_at = fkv_wall_ms();
    for (;;) {
        uint64_t asked_at = fkv_wall_ms();
        a = kit_get(&k, "brief", 5000);
        free(a.value);
        if (a.status == FKV_NOT_FOUND) break;
        CHECK_EQ(a.status, FKV_OK);
        CHECK(asked_at <= put_at + 200);
    }
    down();
}

/* GETs end with the reason once it is known. How far one comes in its time is a matter of the machine. */
static void expect_closed(const char *key) {
    answer a = kit_get(&k, key, 100);
    while (a.status == FKV_TIMEOUT) a = kit_get(&k, key, 100);
    CHECK_EQ(a.status, FKV_SHARD_CLOSED);
}

TEST(a_shard_that_closes_and_opens_again_is_read_anew) {
    up(4 << 20);
    lookup_key key = kit_key("alpha");
    uint32_t shard = lookup_shard_of(k.l, &key);
    CHECK_EQ(kit_put(&k, "alpha", "old", 3, 5000).status, FKV_OK);
    kit_expect(&k, "alpha", "old");
    rig_close(&r, shard);
    rig_call call;
    rig_call_init(&call);
    dataplane_shard again = { .shard = shard, .worker = 0, .epoch = 4, .incarnation = 9999, .memory_bytes = 4 << 20 };
    dataplane_open_shard(r.d, &again, rig_done, &call);
    CHECK_EQ(rig_wait(&call), FKV_OK);
    free(call.result);
    expect_closed("alpha");
    rig_serve(&r, shard);
    kit_expect_none(&k, "alpha");
    CHECK_EQ(kit_put(&k, "alpha", "new", 3, 5000).status, FKV_OK);
    kit_expect(&k, "alpha", "new");
    down();
}

TEST(operations_wait_for_an_owner_that_is_not_there_until_their_time_is_over) {
    up(4 << 20);
    CHECK_EQ(kit_put(&k, "alpha", "one", 3, 5000).status, FKV_OK);
    char address[128];
    snprintf(address, sizeof address, "%s", dataplane_address(r.d, 0));
    dataplane_destroy(r.d);
    expect_closed("alpha");
    answer a = kit_put(&k, "alpha", "two", 3, 100);
    while (a.status == FKV_TIMEOUT) a = kit_put(&k, "alpha", "two", 3, 100);
    CHECK(a.status == FKV_SHARD_CLOSED || a.status == FKV_STALE_SEQUENCE);
    answer waiting_get, waiting_put;
    kit_get_begin(&k, "alpha", 20000, &waiting_get);
    kit_put_begin(&k, "beta", "three", 5, 20000, &waiting_put);
    for (int i = 0; i < 4; i++) kit_turn(&k);
    CHECK(!waiting_get.done && !waiting_put.done);
    /* It comes back at the same address, as another incarnation. */
    dataplane_listen listen = { provider, 0, address, 0 };
    r.config.listen = &listen;
    r.config.server_incarnation = 78;
    rig_up(&r, RIG_SHARDS, 4 << 20);
    kit_until(&k, &waiting_get.done);
    kit_until(&k, &waiting_put.done);
    CHECK_EQ(waiting_get.status, FKV_NOT_FOUND);
    CHECK_EQ(waiting_put.status, FKV_OK);
    kit_expect(&k, "beta", "three");
    CHECK(!steady() || (k.connected == 2 && k.disconnected == 1));
    down();
}

TEST(a_refused_ticket_is_told_and_a_new_one_connects) {
    lookup_config c = kit_config(&k, 100);
    fkv_pass good = c.session.pass;
    c.session.pass.key.k0 ^= 1;
    serve_client(&c);
    kit_set_owner(&k, 77);
    route_all();
    while (k.reason != FKV_UNAUTHORIZED) kit_turn(&k);
    CHECK(k.connected == 0);
    session_set_pass(k.s, &good);
    kit_expect_none(&k, "alpha");
    CHECK(k.connected >= 1);
    down();
}

TEST(a_client_that_is_given_tickets_in_time_keeps_its_connection) {
    lookup_config c = kit_config(&k, 100);
    serve_client(&c);
    kit_set_owner(&k, 77);
    route_all();
    kit_expect_none(&k, "alpha");
    for (int i = 0; i < 5; i++) {
        fkv_pass next = raw_pass(100, FKV_TICKET_READ | FKV_TICKET_WRITE); /* for 600 s */
        session_set_pass(k.s, &next);
        kit_expect_none(&k, "alpha");
        CHECK_EQ(kit_put(&k, "beta", "v", 1, 10000).status, FKV_OK);
        fkv_clock_skip(400 * 1000000000ll);
    }
    CHECK(!steady() || (k.connected == 1 && k.disconnected == 0));
    down();
    fkv_clock_restore();
}

TEST(the_next_address_is_tried_when_one_fails) {
    lookup_config c = kit_config(&k, 100);
    serve_client(&c);
    const char *nobody = provider == FAB_SHM   ? "unix:/tmp/farkv-test-nobody.sock"
                         : provider == FAB_TCP ? "127.0.0.1:1"
                                               : "sim:no";
    session_address a[2] = { { provider, nobody, 0 }, { provider, dataplane_address(r.d, 0), 0 } };
    session_owner_config o = { .owner = 1, .incarnation = 77, .addresses = a, .count = 2 };
    CHECK_EQ(session_set_owners(k.s, &o, 1), FKV_OK);
    route_all();
    kit_expect_none(&k, "alpha");
    CHECK(k.refused >= 1 && k.connected >= 1);
    CHECK(!steady() || (k.refused == 1 && k.connected == 1));
    down();
}

TEST(a_cancelled_operation_ends_at_once) {
    rig_init(&r, provider, NULL);
    rig_start(&r); /* no shard is open */
    kit_up(&k, &r, 100);
    answer got, put;
    kit_get_begin(&k, "alpha", 20000, &got);
    uint64_t id = kit_put_begin(&k, "alpha", "v", 1, 20000, &put);
    while (!k.connected) kit_turn(&k);
    for (int i = 0; i < 10; i++) kit_turn(&k);
    CHECK(!got.done && !put.done);
    lookup_cancel(got.get, FKV_ABORTED);
    session_cancel(k.s, id, FKV_ABORTED);
    CHECK(got.done && got.status == FKV_ABORTED);
    /* waiting after a refusal, or sent again */
    CHECK(put.done && (put.status == FKV_ABORTED || put.status == FKV_STALE_SEQUENCE));
    down();
}

TEST(closing_ends_what_is_outstanding) {
    rig_init(&r, provider, NULL);
    rig_start(&r);
    kit_up(&k, &r, 100);
    answer got[20], put[20];
    for (int i = 0; i < 20; i++) {
        kit_get_begin(&k, "alpha", 20000, &got[i]);
        kit_put_begin(&k, "alpha", "v", 1, 20000, &put[i]);
    }
    for (int i = 0; i < 5; i++) kit_turn(&k);
    kit_down(&k);
    for (int i = 0; i < 20; i++) {
        CHECK(got[i].done && got[i].status == FKV_CLOSED);
        /* not sent, or sent */
        CHECK(put[i].done && (put[i].status == FKV_CLOSED || put[i].status == FKV_STALE_SEQUENCE));
    }
    rig_down(&r);
}

static void all_of(fab_provider p) {
    provider = p;
    RUN(what_was_put_is_got_and_what_was_deleted_is_not);
    RUN(a_cold_get_is_one_read_over_tcp_and_two_elsewhere);
    RUN(empty_values_and_the_longest_keys_go_both_ways);
    RUN(a_compare_and_swap_wins_only_with_the_present_version);
    RUN(many_gets_and_puts_are_under_way_at_once);
    RUN(a_growing_table_is_read_without_a_miss);
    RUN(large_values_go_by_rendezvous_and_come_by_reads);
    RUN(a_two_sided_get_brings_a_large_value_in_pieces);
    RUN(a_scan_returns_every_key);
    RUN(a_layout_from_the_metadata_needs_no_question_to_the_owner);
    RUN(an_expired_entry_is_not_returned);
    RUN(a_shard_that_closes_and_opens_again_is_read_anew);
    RUN(operations_wait_for_an_owner_that_is_not_there_until_their_time_is_over);
    RUN(a_refused_ticket_is_told_and_a_new_one_connects);
    RUN(a_client_that_is_given_tickets_in_time_keeps_its_connection);
    RUN(the_next_address_is_tried_when_one_fails);
    RUN(a_cancelled_operation_ends_at_once);
    RUN(closing_ends_what_is_outstanding);
}

int main(int argc, char **argv) {
    all_of(FAB_SHM);
    all_of(FAB_TCP);
    all_of(FAB_SIM);
    return check_end(argc, argv);
}
