/* dataplane_test.c: the owner's answers to a raw client, over each provider: changes, reads, leases, layouts, retries,
 * limits. Shards, leases and layouts are in dataplane_shard_test.c, scans in dataplane_scan_test.c, large values in
 * dataplane_transfer_test.c, lifecycles and hostile clients in dataplane_life_test.c. */
#include "raw_client.h"

static fab_provider provider;
static rig r;
static raw c;

static void up(uint64_t memory) {
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, memory);
    raw_up(&c, &r, 1);
}
static void down(void) {
    raw_down(&c);
    rig_down(&r);
}
static fkv_status ask(fkv_op op, const char *key, fkv_reply *reply) {
    fkv_request q = raw_request(&c, op, key);
    return raw_ask(&c, &q, key, NULL, 0, reply);
}
static fkv_status cas(const char *key, uint64_t expected, const char *value, fkv_reply *reply) {
    fkv_request q = raw_request(&c, FKV_OP_CAS, key);
    q.expected = expected;
    q.value_bytes = (uint32_t)strlen(value);
    return raw_ask(&c, &q, key, value, q.value_bytes, reply);
}
static void expect_none(const char *key) {
    fkv_reply reply;
    CHECK(raw_get(&c, key, &reply) == NULL);
    CHECK_EQ(reply.status, FKV_NOT_FOUND);
}

TEST(a_value_that_was_put_is_got_and_a_deleted_one_is_not) {
    up(TABLE_MEMORY_MIN);
    CHECK_EQ(raw_put(&c, "alpha", "one", 3), FKV_OK);
    raw_expect(&c, "alpha", "one");
    CHECK_EQ(raw_put(&c, "alpha", "two!", 4), FKV_OK);
    raw_expect(&c, "alpha", "two!");
    CHECK_EQ(raw_put(&c, "alpha", "", 0), FKV_OK);
    raw_expect(&c, "alpha", "");
    CHECK_EQ(ask(FKV_OP_DELETE, "alpha", NULL), FKV_OK);
    expect_none("alpha");
    CHECK_EQ(ask(FKV_OP_DELETE, "alpha", NULL), FKV_NOT_FOUND);
    down();
}

TEST(compare_and_swap_takes_effect_only_on_the_expected_version) {
    fkv_reply reply, got;
    up(TABLE_MEMORY_MIN);
    CHECK_EQ(cas("k", 5, "x", &reply), FKV_VERSION_MISMATCH);
    CHECK_EQ(reply.version, 0);
    CHECK_EQ(cas("k", 0, "first", &reply), FKV_OK);
    uint64_t first = reply.version;
    CHECK_EQ(cas("k", 0, "y", &reply), FKV_VERSION_MISMATCH);
    CHECK_EQ(reply.version, first);
    CHECK_EQ(cas("k", first, "second", &reply), FKV_OK);
    CHECK(reply.version > first);
    free(raw_get(&c, "k", &got));
    CHECK_EQ(got.version, reply.version);
    fkv_request q = raw_request(&c, FKV_OP_CAS_DELETE, "k");
    q.expected = first;
    CHECK_EQ(raw_ask(&c, &q, "k", NULL, 0, NULL), FKV_VERSION_MISMATCH);
    raw_expect(&c, "k", "second");
    q = raw_request(&c, FKV_OP_CAS_DELETE, "k");
    q.expected = reply.version;
    CHECK_EQ(raw_ask(&c, &q, "k", NULL, 0, NULL), FKV_OK);
    expect_none("k");
    down();
}

TEST(compare_and_swap_keeps_the_expiry_where_it_is_told_to) {
    fkv_reply before, after;
    up(TABLE_MEMORY_MIN);
    fkv_request q = raw_request(&c, FKV_OP_PUT, "k");
    q.value_bytes = 1;
    q.expiry = 3600000;
    CHECK_EQ(raw_ask(&c, &q, "k", "v", 1, NULL), FKV_OK);
    free(raw_get(&c, "k", &before));
    q = raw_request(&c, FKV_OP_CAS, "k");
    q.value_bytes = 3;
    q.expected = before.version;
    q.flags = FKV_REQUEST_KEEP_EXPIRY;
    CHECK_EQ(raw_ask(&c, &q, "k", "new", 3, NULL), FKV_OK);
    free(raw_get(&c, "k", &after));
    CHECK(after.version > before.version && before.expiry_ms > 0);
    CHECK_EQ(after.expiry_ms, before.expiry_ms);
    raw_expect(&c, "k", "new");
    CHECK_EQ(cas("k", after.version, "for ever", &before), FKV_OK);
    free(raw_get(&c, "k", &after));
    CHECK_EQ(after.expiry_ms, 0);
    q = raw_request(&c, FKV_OP_CAS, "absent");
    q.value_bytes = 1;
    q.flags = FKV_REQUEST_KEEP_EXPIRY;
    CHECK_EQ(raw_ask(&c, &q, "absent", "v", 1, NULL), FKV_OK);
    free(raw_get(&c, "absent", &after));
    CHECK_EQ(after.expiry_ms, 0);
    down();
}

TEST(an_entry_carries_its_flags_and_ends_with_its_time_to_live) {
    fkv_reply reply;
    up(TABLE_MEMORY_MIN);
    fkv_request q = raw_request(&c, FKV_OP_PUT, "k");
    q.value_bytes = 1;
    q.codec = 9;
    q.user_flags = 0xabcdef;
    q.expiry = 3600000;
    uint64_t before = fkv_wall_ms();
    CHECK_EQ(raw_ask(&c, &q, "k", "v", 1, NULL), FKV_OK);
    free(raw_get(&c, "k", &reply));
    CHECK(reply.codec == 9 && reply.user_flags == 0xabcdef);
    CHECK(reply.expiry_ms >= before + 3600000 && reply.expiry_ms <= fkv_wall_ms() + 3600000);
    q = raw_request(&c, FKV_OP_PUT, "k");
    q.value_bytes = 1;
    q.expiry = 1;
    CHECK_EQ(raw_ask(&c, &q, "k", "v", 1, NULL), FKV_OK);
    do free(raw_get(&c, "k", &reply));
    while (reply.status == FKV_OK);
    CHECK_EQ(reply.status, FKV_NOT_FOUND);
    down();
}

/* What comes while the owner's thread is paused, or busy, in the middle of a turn is not judged by the time at the
 * turn's beginning. */
TEST(a_time_to_live_is_judged_by_the_time_after_a_request_came_however_long_the_turn_takes) {
    rig_hold h;
    fkv_reply reply;
    up(TABLE_MEMORY_MIN);
    fkv_request ends = raw_request(&c, FKV_OP_PUT, "ends"), fresh, get = raw_request(&c, FKV_OP_GET, "ends");
    ends.value_bytes = 1;
    ends.expiry = 60000;
    CHECK_EQ(raw_ask(&c, &ends, "ends", "v", 1, NULL), FKV_OK);
    free(raw_get(&c, "ends", &reply));
    CHECK_EQ(reply.status, FKV_OK);
    rig_hold_up(&h, &r);
    fkv_clock_skip((int64_t)61000 * 1000000);
    fresh = raw_request(&c, FKV_OP_PUT, "fresh");
    fresh.value_bytes = 1;
    fresh.expiry = 50000;
    uint64_t put = raw_send(&c, &fresh, "fresh", "v", 1);
    raw_send(&c, &get, "ends", NULL, 0);
    rig_let_go(&h);
    CHECK_EQ(raw_end(&c, put), FKV_OK);
    raw_message *m = raw_receive(&c, get.id);
    CHECK_EQ(m->reply.status, FKV_NOT_FOUND);
    free(m);
    free(raw_get(&c, "fresh", &reply));
    CHECK_EQ(reply.status, FKV_OK);
    fkv_clock_restore();
    down();
}

TEST(namespaces_do_not_see_each_other) {
    fkv_reply reply;
    up(TABLE_MEMORY_MIN);
    fkv_request q = raw_request(&c, FKV_OP_PUT, "k");
    q.space = 3;
    q.shard = raw_shard_of(3, "k", 1);
    q.value_bytes = 1;
    CHECK_EQ(raw_ask(&c, &q, "k", "v", 1, NULL), FKV_OK);
    expect_none("k");
    q = raw_request(&c, FKV_OP_GET, "k");
    q.space = 3;
    q.shard = raw_shard_of(3, "k", 1);
    CHECK_EQ(raw_ask(&c, &q, "k", NULL, 0, &reply), FKV_OK);
    down();
}

TEST(changes_of_one_key_sent_together_take_effect_in_order) {
    enum { N = 60 };
    uint64_t id[N], last = 0;
    up(TABLE_MEMORY_MIN);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++) {
            char value[16];
            snprintf(value, sizeof value, "v%d", i);
            id[i] = raw_put_begin(&c, "hot", value, (uint32_t)strlen(value));
        }
        for (int i = 0; i < N; i++) {
            raw_message *m = raw_receive(&c, id[i]);
            CHECK_EQ(m->reply.status, FKV_OK);
            CHECK(m->reply.version > last);
            last = m->reply.version;
            free(m);
        }
        raw_expect(&c, "hot", "v59");
    }
    down();
}

TEST(a_retry_is_answered_and_not_made_again) {
    fkv_reply first, again;
    up(TABLE_MEMORY_MIN);
    fkv_request q = raw_request(&c, FKV_OP_PUT, "k");
    q.value_bytes = 3;
    CHECK_EQ(raw_ask(&c, &q, "k", "old", 3, &first), FKV_OK);
    CHECK_EQ(raw_put(&c, "k", "new", 3), FKV_OK);
    q.flags = FKV_REQUEST_RETRY;
    q.id = c.next_id++;
    CHECK_EQ(raw_ask(&c, &q, "k", "old", 3, &again), FKV_OK);
    CHECK_EQ(again.version, first.version);
    raw_expect(&c, "k", "new");
    /* Over a new connection of the same client too, and a failed compare-and-swap stays failed. */
    fkv_request lost = raw_request(&c, FKV_OP_CAS, "k");
    lost.expected = 12345;
    CHECK_EQ(raw_ask(&c, &lost, "k", NULL, 0, NULL), FKV_VERSION_MISMATCH);
    raw_hang_up(&c);
    fkv_pass h = raw_pass(1, FKV_TICKET_READ | FKV_TICKET_WRITE);
    CHECK_EQ(raw_connect(&c, 0, &h), FKV_OK);
    CHECK_EQ(raw_ask(&c, &q, "k", "old", 3, &again), FKV_OK);
    CHECK_EQ(again.version, first.version);
    lost.flags = FKV_REQUEST_RETRY;
    CHECK_EQ(raw_ask(&c, &lost, "k", NULL, 0, NULL), FKV_VERSION_MISMATCH);
    raw_expect(&c, "k", "new");
    /* Another client has its own sequences. */
    raw other;
    raw_up(&other, &r, 2);
    q.flags = 0;
    q.value_bytes = 5;
    CHECK_EQ(raw_ask(&other, &q, "k", "other", 5, &again), FKV_OK);
    CHECK(again.version != first.version);
    raw_down(&other);
    /* What lies before the window is not known any more. */
    for (int i = 0; i < FKV_DEDUP_WINDOW; i++) CHECK_EQ(raw_put(&c, "k", "x", 1), FKV_OK);
    q.flags = FKV_REQUEST_RETRY;
    CHECK_EQ(raw_ask(&c, &q, "k", "other", 5, NULL), FKV_STALE_SEQUENCE);
    raw_expect(&c, "k", "x");
    down();
}

TEST(a_ticket_allows_what_it_names) {
    up(TABLE_MEMORY_MIN);
    raw reader, writer;
    fkv_pass h = raw_pass(5, FKV_TICKET_READ);
    raw_open(&reader, &r);
    CHECK_EQ(raw_connect(&reader, 0, &h), FKV_OK);
    CHECK_EQ(raw_put(&c, "k", "v", 1), FKV_OK);
    raw_expect(&reader, "k", "v");
    CHECK_EQ(raw_put(&reader, "k", "w", 1), FKV_UNAUTHORIZED);
    raw_expect(&c, "k", "v");
    h = raw_pass(6, FKV_TICKET_WRITE);
    raw_open(&writer, &r);
    CHECK_EQ(raw_connect(&writer, 0, &h), FKV_OK);
    CHECK_EQ(raw_put(&writer, "k", "w", 1), FKV_OK);
    for (fkv_op op = FKV_OP_LEASE; op <= FKV_OP_GET; op++) {
        fkv_request q = raw_request(&writer, op, op == FKV_OP_GET ? "k" : "");
        q.shard = raw_shard_of(0, "k", 1);
        CHECK_EQ(raw_ask(&writer, &q, "k", NULL, 0, NULL), FKV_UNAUTHORIZED);
    }
    raw_down(&reader);
    raw_down(&writer);
    down();
}

static fkv_status refused_pass(fkv_pass p) {
    raw other;
    raw_open(&other, &r);
    fkv_status s = raw_connect(&other, 0, &p);
    raw_down(&other);
    return s;
}

TEST(a_connection_without_a_good_ticket_is_refused_and_told_why) {
    up(TABLE_MEMORY_MIN);
    fkv_pass good = raw_pass(9, FKV_TICKET_READ), p = good;
    const fkv_seed other = { 1, 1 };
    uint64_t now = fkv_wall_ms();
    CHECK_EQ(refused_pass(good), FKV_OK);
    p.ticket.flags |= FKV_TICKET_WRITE;
    CHECK_EQ(refused_pass(p), FKV_UNAUTHORIZED);
    p = good;
    p.ticket.client++;
    CHECK_EQ(refused_pass(p), FKV_UNAUTHORIZED);
    CHECK_EQ(refused_pass(raw_pass_until(&other, 9, 0, FKV_TICKET_READ, now + 1000)), FKV_UNAUTHORIZED);
    CHECK_EQ(refused_pass(raw_pass_until(&RIG_SECRET, 9, 0, FKV_TICKET_READ, now - 1)), FKV_UNAUTHORIZED);
    CHECK_EQ(refused_pass(raw_pass_until(&RIG_SECRET, 9, 1, FKV_TICKET_READ, now + RIG_TICKET_MS)), FKV_UNAUTHORIZED);
    CHECK_EQ(refused_pass(raw_pass(0, FKV_TICKET_READ)), FKV_UNAUTHORIZED);
    CHECK_EQ(raw_put(&c, "k", "v", 1), FKV_OK);
    down();
}

TEST(more_clients_than_allowed_are_refused_until_one_goes) {
    rig_init(&r, provider, NULL);
    r.config.max_clients = 2;
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw a, b;
    raw_up(&a, &r, 1);
    raw_up(&b, &r, 2);
    /* The provider has its own bound at the same number; whoever refuses, the third is not served. */
    fkv_pass h = raw_pass(3, FKV_TICKET_READ);
    raw_open(&c, &r);
    CHECK(raw_connect(&c, 0, &h) != FKV_OK);
    raw_hang_up(&c);
    raw_down(&b);
    while (raw_connect(&c, 0, &h) != FKV_OK) raw_hang_up(&c);
    raw_down(&a);
    down();
}

TEST(a_full_table_says_so_and_what_was_there_stays_readable) {
    static char value[4000];
    fkv_status s = FKV_OK;
    int n = 0;
    char key[32];
    up(TABLE_MEMORY_MIN);
    while (s == FKV_OK) {
        snprintf(key, sizeof key, "key-%d", n);
        snprintf(value, sizeof value, "value-%d", n);
        s = raw_put(&c, key, value, sizeof value);
        if (s == FKV_OK) n++;
    }
    CHECK_EQ(s, FKV_TABLE_FULL);
    CHECK(n > 100);
    fkv_request refused = raw_request(&c, FKV_OP_PUT, key);
    char late[32];
    memcpy(late, key, sizeof late);
    refused.value_bytes = sizeof value;
    CHECK_EQ(raw_ask(&c, &refused, late, value, sizeof value, NULL), FKV_TABLE_FULL);
    for (int i = 0; i < n; i++) {
        fkv_reply reply;
        snprintf(key, sizeof key, "key-%d", i);
        snprintf(value, sizeof value, "value-%d", i);
        uint8_t *v = raw_get(&c, key, &reply);
        CHECK(v && strcmp((char *)v, value) == 0);
        free(v);
    }
    /* What is deleted makes room, once no reader can be at it any more: until then the PUT waits, or is told to come
     * again. */
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        do s = ask(FKV_OP_DELETE, key, NULL);
        while (s == FKV_BUSY);
        CHECK_EQ(s, FKV_OK);
    }
    refused.flags = FKV_REQUEST_RETRY; /* what was refused was not made, so it is made now */
    do s = raw_ask(&c, &refused, late, value, sizeof value, NULL);
    while (s == FKV_BUSY || s == FKV_TABLE_FULL);
    CHECK_EQ(s, FKV_OK);
    for (int i = 0; i < n / 2; i++) {
        snprintf(key, sizeof key, "again-%d", i);
        do s = raw_put(&c, key, value, sizeof value);
        while (s == FKV_BUSY || s == FKV_TABLE_FULL);
        CHECK_EQ(s, FKV_OK);
    }
    down();
}

TEST(counters_say_what_was_done) {
    up(TABLE_MEMORY_MIN);
    for (int i = 0; i < 10; i++) CHECK_EQ(raw_put(&c, "k", "v", 1), FKV_OK);
    raw_expect(&c, "k", "v");
    fkv_request q = raw_request(&c, FKV_OP_GET, "k");
    q.shard = RIG_SHARDS;
    CHECK_EQ(raw_ask(&c, &q, "k", NULL, 0, NULL), FKV_BAD_REQUEST);
    dataplane_stats *s = rig_stats(&r);
    CHECK(s->workers == 1 && s->shards == RIG_SHARDS);
    CHECK_EQ(s->worker[0].clients, 1);
    CHECK_EQ(s->worker[0].requests[FKV_OP_PUT], 10);
    CHECK_EQ(s->worker[0].requests[FKV_OP_GET], 2);
    CHECK_EQ(s->worker[0].refused[FKV_BAD_REQUEST], 1);
    uint64_t entries = 0;
    for (uint32_t i = 0; i < s->shards; i++) {
        CHECK(s->shard[i].serving);
        entries += s->shard[i].table.entries;
    }
    CHECK_EQ(entries, 1);
    free(s);
    down();
}

/* Each operation another number of times, so that no two kinds have the same count. */
TEST(each_kind_of_request_has_its_own_latencies_and_what_was_refused_has_none) {
    uint64_t count[FKV_OP_COUNT] = { 0 }, refused = 0;
    up(TABLE_MEMORY_MIN);
    dataplane_stats *before = rig_stats(&r);
    for (int op = 1; op < FKV_OP_COUNT; op++) {
        if (!raw_can_ask((fkv_op)op)) continue;
        char key[16];
        for (int times = 0; times < op; times++) {
            snprintf(key, sizeof key, "%s %d", fkv_ops[op].name, times % 2);
            if (times == 0) {
                CHECK_EQ(raw_put(&c, key, "1", 1), FKV_OK);
                count[FKV_OP_PUT]++;
            }
            fkv_request q = raw_well_formed(&c, (fkv_op)op, key);
            fkv_status s = raw_ask(&c, &q, key, raw_value, raw_carried(&q), NULL);
            bool answered = s == FKV_OK || s == FKV_NOT_FOUND || s == FKV_VERSION_MISMATCH;
            if (answered)
                count[fkv_ops[op].counted]++;
            else
                refused++;
        }
    }
    CHECK(refused > 0); /* the fields of what is no hash */
    fkv_request q = raw_request(&c, FKV_OP_GET, "a");
    q.shard = RIG_SHARDS;
    CHECK_EQ(raw_ask(&c, &q, "a", NULL, 0, NULL), FKV_BAD_REQUEST);
    dataplane_stats *s = rig_stats(&r);
    for (uint8_t i = 1; i < FKV_OP_COUNT; i++) {
        if (!fkv_op_reported(i)) continue;
        const dataplane_latency *l = &s->worker[0].latency[i];
        CHECK_EQ(l->count - before->worker[0].latency[i].count, count[i]);
        CHECK(l->p50_ns <= l->p99_ns && l->p99_ns <= l->max_ns && l->max_ns > 0);
    }
    free(before);
    free(s);
    down();
}

static void tests(void) {
    RUN(a_value_that_was_put_is_got_and_a_deleted_one_is_not);
    RUN(compare_and_swap_takes_effect_only_on_the_expected_version);
    RUN(compare_and_swap_keeps_the_expiry_where_it_is_told_to);
    RUN(an_entry_carries_its_flags_and_ends_with_its_time_to_live);
    /* The simulator's time is another. */
    if (provider != FAB_SIM) RUN(a_time_to_live_is_judged_by_the_time_after_a_request_came_however_long_the_turn_takes);
    RUN(namespaces_do_not_see_each_other);
    RUN(changes_of_one_key_sent_together_take_effect_in_order);
    RUN(a_retry_is_answered_and_not_made_again);
    RUN(a_ticket_allows_what_it_names);
    RUN(a_connection_without_a_good_ticket_is_refused_and_told_why);
    RUN(more_clients_than_allowed_are_refused_until_one_goes);
    RUN(a_full_table_says_so_and_what_was_there_stays_readable);
    RUN(counters_say_what_was_done);
    RUN(each_kind_of_request_has_its_own_latencies_and_what_was_refused_has_none);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
