/* dataplane_limits_test.c: what one client can do to the others and to the owner has bounds: connections that end while
 * their replies wait, replies that must come to an end, memory and time that are shared. */
#include "raw_client.h"

static fab_provider provider;
static rig r;

static void up(raw *c, uint64_t memory) {
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, memory);
    raw_up(c, &r, 1);
}
static void down(raw *c) {
    raw_down(c);
    rig_down(&r);
}

static uint64_t blocked_clients(void) {
    dataplane_stats *s = rig_stats(&r);
    uint64_t n = s->worker[0].blocked;
    free(s);
    return n;
}

/* ---- an end while replies wait ---- */

/* Its credits come back in the turn in which a message too short to be a request dooms it: whether they come before or
 * after that message depends on the provider and on how the two ends meet, hence many rounds. */
static void end_while_blocked(uint64_t number) {
    raw c;
    raw_up(&c, &r, number);
    c.keep = true;
    for (int i = 0; i < 60; i++) {
        fkv_request q = raw_request(&c, FKV_OP_GET, "big");
        if (raw_try(&c, &q, "big", NULL, 0) != 0) break;
    }
    for (int i = 0; i < 200 && !blocked_clients(); i++) raw_poll(&c);
    struct iovec v = { "too short", 8 };
    bool sent = fab_send(c.conn, &v, 1) == 0; /* not on a busy machine, whose server has read nothing yet */
    if (number & 1) fab_flush(c.cq);
    raw_release_kept(&c);
    for (int i = 0; i < 3; i++) raw_poll(&c);
    while (sent && !c.gone && number % 3 == 0) raw_turn(&c, &c.gone);
    raw_down(&c);
}

TEST(credits_that_come_to_a_connection_that_is_ending_do_not_bring_it_back) {
    static const uint8_t value[12000];
    raw good;
    up(&good, TABLE_MEMORY_MIN);
    CHECK_EQ(raw_put(&good, "big", value, sizeof value), FKV_OK);
    for (uint64_t i = 0; i < 100; i++) end_while_blocked(100 + i);
    CHECK_EQ(raw_put(&good, "big", value, sizeof value), FKV_OK);
    down(&good);
}

/* ---- connections ---- */

static uint64_t ask_layout(raw *c, uint32_t shard) {
    fkv_request q = raw_request(c, FKV_OP_LAYOUT, "");
    q.shard = shard;
    return raw_send(c, &q, "", NULL, 0);
}

TEST(a_client_has_no_more_than_a_few_connections_and_the_newest_stay) {
    enum { FEW = 4, MORE = 3 };
    raw c[FEW + MORE], other;
    up(&c[0], TABLE_MEMORY_MIN);
    raw_up(&other, &r, 2);
    for (int i = 1; i < FEW + MORE; i++) {
        raw_up(&c[i], &r, 1);
        if (i < FEW) continue;
        raw *oldest = &c[i - FEW];
        while (!oldest->gone) raw_turn(oldest, &oldest->gone);
    }
    for (int i = MORE; i < FEW + MORE; i++) CHECK_EQ(raw_end(&c[i], ask_layout(&c[i], 0)), FKV_OK);
    CHECK_EQ(raw_end(&other, ask_layout(&other, 0)), FKV_OK);
    dataplane_stats *s = rig_stats(&r);
    CHECK_EQ(s->worker[0].clients, FEW + 1);
    free(s);
    for (int i = 1; i < FEW + MORE; i++) raw_down(&c[i]);
    raw_down(&other);
    down(&c[0]);
}

/* ---- quotas ---- */

static uint64_t requests_of(fkv_op kind) {
    dataplane_stats *s = rig_stats(&r);
    uint64_t n = s->worker[0].requests[kind];
    free(s);
    return n;
}

/* With its quota used up, and no credits to be answered with: the LAYOUT of each shard is taken in once, a second one
 * refused. */
TEST(a_layout_does_not_count_against_the_quota_and_is_asked_for_once_at_a_time) {
    enum { QUOTA = 8 };
    uint64_t put[QUOTA], layout[2][RIG_SHARDS];
    raw c;
    rig_init(&r, provider, NULL);
    r.config.client_quota = QUOTA;
    r.config.stall_ms = 60000;
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&c, &r, 1);
    c.keep = true;
    uint64_t asked = 0;
    while (!blocked_clients()) {
        layout[0][0] = ask_layout(&c, 0);
        asked++;
        while (requests_of(FKV_OP_LAYOUT) < asked) raw_poll(&c);
        raw_poll(&c);
    }
    for (int i = 0; i < QUOTA; i++) put[i] = raw_put_begin(&c, "k", "v", 1);
    for (uint32_t i = 1; i < RIG_SHARDS; i++) layout[0][i] = ask_layout(&c, i);
    for (uint32_t i = 0; i < RIG_SHARDS; i++) layout[1][i] = ask_layout(&c, i);
    while (requests_of(FKV_OP_LAYOUT) < asked + 2 * RIG_SHARDS - 1) raw_poll(&c);
    raw_release_kept(&c);
    for (int i = 0; i < QUOTA; i++) CHECK_EQ(raw_end(&c, put[i]), FKV_OK);
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < RIG_SHARDS; i++) CHECK_EQ(raw_end(&c, layout[k][i]), k ? FKV_BUSY : FKV_OK);
    CHECK_EQ(raw_end(&c, ask_layout(&c, 0)), FKV_OK);
    down(&c);
}

/* Takes no more replies, until one waits at the owner. */
static void take_no_more(raw *c) {
    c->keep = true;
    for (uint64_t asked = requests_of(FKV_OP_LAYOUT); !blocked_clients();) {
        ask_layout(c, 0);
        asked++;
        while (requests_of(FKV_OP_LAYOUT) < asked) raw_poll(c);
        raw_poll(c);
    }
}

/* The first read of each shard needs its LAYOUT: of many shards that is more than twice the quota, at once. */
TEST(layouts_of_more_shards_than_the_quota_allows_requests_do_not_end_a_client) {
    uint64_t layout[RIG_SHARDS];
    raw c;
    rig_init(&r, provider, NULL);
    r.config.client_quota = 1;
    r.config.stall_ms = 60000;
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&c, &r, 1);
    take_no_more(&c);
    uint64_t asked = requests_of(FKV_OP_LAYOUT);
    for (uint32_t i = 1; i < RIG_SHARDS; i++) layout[i] = ask_layout(&c, i);
    uint64_t put = raw_put_begin(&c, "k", "v", 1);
    while (requests_of(FKV_OP_LAYOUT) < asked + RIG_SHARDS - 1 || requests_of(FKV_OP_PUT) < 1) {
        raw_poll(&c);
        CHECK(!c.gone);
    }
    raw_release_kept(&c);
    for (uint32_t i = 1; i < RIG_SHARDS; i++) CHECK_EQ(raw_end(&c, layout[i]), FKV_OK);
    CHECK_EQ(raw_end(&c, put), FKV_OK);
    down(&c);
}

/* ---- why a connection was ended ---- */

static dataplane_ended told;
static void on_ended(void *ctx, const dataplane_ended *e) {
    (void)ctx;
    told = *e;
}

static void beyond_the_quota(raw *c) {
    take_no_more(c);
    while (!c->gone) {
        fkv_request q = raw_request(c, FKV_OP_PUT, "k");
        q.value_bytes = 1;
        raw_try(c, &q, "k", "v", 1);
        raw_poll(c);
    }
}
static void no_request(raw *c) {
    struct iovec v = { "too short", 8 };
    CHECK_EQ(fab_send(c->conn, &v, 1), 0);
    while (!c->gone) raw_turn(c, &c->gone);
}
static void no_replies(raw *c) {
    take_no_more(c);
    while (!c->gone) raw_turn(c, &c->gone);
}

TEST(the_operator_and_the_next_connection_are_told_why_one_was_ended) {
    enum { QUOTA = 4 };
    static const struct {
        void (*f)(raw *c);
        fkv_end why;
    } cases[] = { { beyond_the_quota, FKV_END_QUOTA },
                  { no_request, FKV_END_MALFORMED },
                  { no_replies, FKV_END_STALL } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        raw c;
        told = (dataplane_ended){ 0 };
        rig_init(&r, provider, NULL);
        r.config.client_quota = QUOTA;
        r.config.stall_ms = cases[i].why == FKV_END_STALL ? 200 : 60000;
        r.config.on_ended = on_ended;
        rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
        raw_up(&c, &r, 77);
        CHECK_EQ(c.quota, QUOTA);
        CHECK_EQ(c.ended, FKV_END_NONE);
        cases[i].f(&c);
        raw_down(&c);
        raw_up(&c, &r, 77);
        CHECK_EQ(c.ended, cases[i].why);
        raw_down(&c);
        raw_up(&c, &r, 77);
        CHECK_EQ(c.ended, FKV_END_NONE); /* told once */
        down(&c);
        CHECK_EQ(told.why, cases[i].why);
        CHECK_EQ(told.client, 77);
        CHECK_EQ(told.provider, provider);
        CHECK(cases[i].why != FKV_END_QUOTA || told.requests == 2 * QUOTA + 1);
    }
}

/* A request that is refused is in nobody's hands any more when the next one, which came with it, is looked at. */
TEST(what_is_refused_leaves_room_for_what_comes_behind_it) {
    enum { QUOTA = 2, REFUSED = 3 * QUOTA };
    uint64_t refused[REFUSED];
    raw c;
    rig_init(&r, provider, NULL);
    r.config.client_quota = QUOTA;
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&c, &r, 1);
    for (int i = 0; i < REFUSED; i++) {
        fkv_request q = raw_request(&c, FKV_OP_LAYOUT, "");
        q.shard = RIG_SHARDS;
        refused[i] = q.id;
        CHECK_EQ(fab_send(c.conn, &(struct iovec){ &q, sizeof q }, 1), 0);
    }
    uint64_t put = raw_put_begin(&c, "k", "v", 1); /* which sends them all */
    for (int i = 0; i < REFUSED; i++) CHECK_EQ(raw_end(&c, refused[i]), FKV_BAD_REQUEST);
    CHECK_EQ(raw_end(&c, put), FKV_OK);
    down(&c);
}

/* ---- replies come to an end ---- */

/* Scans the shard of `key` from its start, a reply at a time; each message carries an entry or is a reply's last. */
static uint32_t scan_with_values(raw *c, const char *key, uint32_t *values) {
    fkv_request q = raw_request(c, FKV_OP_SCAN, "");
    uint32_t entries = 0;
    q.shard = raw_shard_of(0, key, strlen(key));
    q.flags = FKV_REQUEST_SCAN_VALUES;
    q.value_bytes = 10;
    *values = 0;
    do {
        q.id = c->next_id++;
        uint64_t id = raw_send(c, &q, "", NULL, 0);
        for (bool more = true; more;) {
            raw_message *m = raw_receive(c, id);
            CHECK_EQ(m->reply.status, FKV_OK);
            more = m->reply.flags & FKV_REPLY_MORE;
            CHECK(m->bytes > 0 || !more);
            fkv_scan_entry e;
            const uint8_t *k, *v;
            for (uint32_t at = 0; wire_next_scan_entry(m->body, m->bytes, &at, &e, &k, &v); entries++)
                *values += e.has_value;
            q.expected = m->reply.version;
            free(m);
        }
    } while (q.expected);
    return entries;
}

/* Sizes on both sides of what one message of the reply takes, and between that and what one message of the connection
 * takes. */
TEST(a_scan_ends_whatever_the_size_of_a_value) {
    static const uint8_t value[20000];
    raw c;
    up(&c, TABLE_MEMORY_MIN);
    const uint32_t fits = FKV_SCAN_REPLY_MAX - (uint32_t)sizeof(fkv_scan_entry) - 1;
    const uint32_t sizes[] = { 1, fits - 1, fits, fits + 1, 13000, 14000, 16000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t values;
        if (sizeof(fkv_request) + 1 + sizes[i] > fab_max_message(c.conn)) continue;
        CHECK_EQ(raw_put(&c, "k", value, sizes[i]), FKV_OK);
        CHECK_EQ(scan_with_values(&c, "k", &values), 1);
        CHECK_EQ(values, sizes[i] <= fits);
    }
    down(&c);
}

/* ---- time is shared ---- */

static uint64_t scan_begin(raw *c) { /* of a namespace without entries: it ends only where it has to */
    fkv_request q = { .op = FKV_OP_SCAN, .id = c->next_id++, .space = 77, .value_bytes = 1 };
    struct iovec v = { &q, sizeof q };
    int e;
    while ((e = fab_send(c->conn, &v, 1)) == -EAGAIN) raw_poll(c);
    CHECK_EQ(e, 0);
    return q.id;
}
static bool scan_is_whole(raw *c, uint64_t id) {
    raw_message *m = raw_receive(c, id);
    CHECK_EQ(m->reply.status, FKV_OK);
    bool whole = m->reply.version == 0;
    free(m);
    return whole;
}

/* A SCAN that is alone walks all of this table at once; many that come together do not each. */
TEST(scans_that_come_together_share_the_time_of_one) {
    enum { SCANS = 32, KEYS = 6000, ATONCE = 50 };
    uint64_t id[ATONCE];
    char key[32];
    raw c;
    up(&c, 32 << 20);
    for (int i = 0; i < KEYS; i += ATONCE) {
        for (int k = 0; k < ATONCE; k++) {
            snprintf(key, sizeof key, "key-%d", i + k);
            id[k] = raw_put_begin(&c, key, key, 8);
        }
        for (int k = 0; k < ATONCE; k++) CHECK_EQ(raw_end(&c, id[k]), FKV_OK);
    }
    uint64_t alone = scan_begin(&c);
    fab_flush(c.cq);
    CHECK(scan_is_whole(&c, alone));
    for (uint32_t whole = SCANS; whole == SCANS;) { /* again while they did not come together */
        whole = 0;
        for (int i = 0; i < SCANS; i++) id[i] = scan_begin(&c);
        fab_flush(c.cq);
        for (int i = 0; i < SCANS; i++) whole += scan_is_whole(&c, id[i]);
    }
    down(&c);
}

static dataplane_reports reported(raw *c, const fkv_report *report) {
    fkv_request q = raw_request(c, FKV_OP_LEASE, "");
    q.value_bytes = sizeof *report;
    CHECK_EQ(raw_ask(c, &q, "", report, sizeof *report, NULL), FKV_OK);
    dataplane_stats *s = rig_stats(&r);
    dataplane_reports all = s->worker[0].reports;
    free(s);
    return all;
}

/* A client may say anything of its GETs. Figures never fall for it, and bytes are no more than its READs can have had. */
TEST(what_clients_report_of_their_gets_makes_no_figure_fall) {
    raw c;
    up(&c, 16 << 20);
    fkv_report lie = { .reads = 2, .read_bytes = UINT64_MAX };
    CHECK_EQ(reported(&c, &lie).read_bytes, 2ull * FKV_VALUE_MAX);
    lie = (fkv_report){ .hits = UINT32_MAX, .reads = UINT32_MAX, .read_bytes = UINT64_MAX };
    uint64_t before = 0;
    for (int i = 0; i < 80; i++) { /* 2^58 bytes each */
        dataplane_reports all = reported(&c, &lie);
        CHECK(all.read_bytes >= before);
        before = all.read_bytes;
    }
    CHECK_EQ(before, UINT64_MAX);
    down(&c);
}

/* A client that ends sends its last report, whether or not the owner still has a LEASE of it in its hands. */
TEST(a_report_counts_also_with_a_lease_that_is_refused_for_another_under_way) {
    enum { LEASES = 8 };
    raw c;
    uint64_t id[LEASES], sent = 0;
    fkv_report one = { .hits = 1 };
    up(&c, 16 << 20);
    for (uint32_t refused = 0; refused == 0;) { /* again while they did not come together */
        for (int i = 0; i < LEASES; i++, sent++) {
            fkv_request q = raw_request(&c, FKV_OP_LEASE, "");
            q.value_bytes = sizeof one;
            struct iovec message[] = { { &q, sizeof q }, { &one, sizeof one } };
            CHECK_EQ(fab_send(c.conn, message, 2), 0);
            id[i] = q.id;
        }
        fab_flush(c.cq);
        for (int i = 0; i < LEASES; i++) refused += raw_end(&c, id[i]) == FKV_BUSY;
    }
    dataplane_stats *s = rig_stats(&r);
    CHECK_EQ(s->worker[0].reports.hits, sent);
    free(s);
    down(&c);
}

static void tests(void) {
    RUN(a_client_has_no_more_than_a_few_connections_and_the_newest_stay);
    RUN(credits_that_come_to_a_connection_that_is_ending_do_not_bring_it_back);
    RUN(a_layout_does_not_count_against_the_quota_and_is_asked_for_once_at_a_time);
    RUN(layouts_of_more_shards_than_the_quota_allows_requests_do_not_end_a_client);
    RUN(the_operator_and_the_next_connection_are_told_why_one_was_ended);
    RUN(what_is_refused_leaves_room_for_what_comes_behind_it);
    RUN(a_scan_ends_whatever_the_size_of_a_value);
    RUN(what_clients_report_of_their_gets_makes_no_figure_fall);
    RUN(a_report_counts_also_with_a_lease_that_is_refused_for_another_under_way);
    RUN(scans_that_come_together_share_the_time_of_one);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
