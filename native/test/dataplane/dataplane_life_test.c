/* dataplane_life_test.c: the data plane is stopped in every state it can be in, meets clients that behave badly, and
 * rests when nobody asks anything. */
#include <dirent.h>
#include "../../table/layout.h"
#include "raw_client.h"

static fab_provider provider;
static rig r;

static int open_files(void) {
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}
static uint64_t state;
static uint64_t rnd(void) { /* splitmix64 */
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- stopping ---- */

enum {
    STAGE_CREATED,
    STAGE_STARTED,
    STAGE_OPENING,
    STAGE_OPEN,
    STAGE_SERVED,
    STAGE_CONNECTED,
    STAGE_PUTS,
    STAGE_LARGE,
    STAGE_CLOSING,
    STAGES
};

static void stop_at(int stage) {
    rig_call call[3];
    raw c = { 0 };
    fkv_region region = { 0 };
    fab_mr *mr = NULL;
    for (int i = 0; i < 3; i++) rig_call_init(&call[i]);
    rig_init(&r, provider, NULL);
    CHECK_EQ(dataplane_create(&r.config, &r.d), FKV_OK);
    char why[128];
    if (stage >= STAGE_STARTED) CHECK_EQ(dataplane_start(r.d, why, sizeof why), FKV_OK);
    dataplane_shard s = { .shard = raw_shard_of(0, "k", 1), .incarnation = 1, .memory_bytes = 256 << 20 };
    if (stage >= STAGE_OPENING) dataplane_open_shard(r.d, &s, rig_done, &call[0]);
    if (stage >= STAGE_OPEN) CHECK_EQ(rig_wait(&call[0]), FKV_OK);
    if (stage >= STAGE_SERVED) rig_serve(&r, s.shard);
    if (stage >= STAGE_CONNECTED) raw_up(&c, &r, 1);
    if (stage >= STAGE_PUTS)
        for (int i = 0; i < 30; i++) raw_put_begin(&c, "k", "value", 5);
    if (stage >= STAGE_LARGE) {
        CHECK_EQ(fkv_region_alloc("test", FKV_VALUE_MAX, FKV_REGION_PREFAULT, &region), 0);
        CHECK_EQ(fab_reg(c.domain, &region, 0, &mr), 0);
        fkv_request q = raw_request(&c, FKV_OP_PUT, "k");
        q.flags = FKV_REQUEST_RENDEZVOUS;
        q.value_bytes = FKV_VALUE_MAX;
        fkv_rendezvous v = { fab_mr_rkey(mr), fab_mr_addr(mr), fab_mr_addr(mr), region.bytes };
        raw_send(&c, &q, "k", &v, sizeof v);
    }
    if (stage >= STAGE_CLOSING) {
        fkv_request q = raw_request(&c, FKV_OP_LEASE, "");
        CHECK_EQ(raw_ask(&c, &q, "", NULL, 0, NULL), FKV_OK);
        dataplane_close_shard(r.d, s.shard, rig_done, &call[1]);
    }
    dataplane_get_stats(r.d, rig_done, &call[2]);
    dataplane_stop(r.d);
    dataplane_stop(r.d);
    /* Every call has ended; the clients know. */
    CHECK(rig_is_done(&call[2]) && (call[2].status == FKV_OK || call[2].status == FKV_CLOSED));
    if (stage >= STAGE_OPENING)
        CHECK(rig_is_done(&call[0]) && (call[0].status == FKV_OK || call[0].status == FKV_CLOSED));
    if (stage >= STAGE_CLOSING)
        CHECK(rig_is_done(&call[1]) && (call[1].status == FKV_OK || call[1].status == FKV_CLOSED));
    if (stage >= STAGE_CONNECTED) {
        while (!c.gone) raw_turn(&c, &c.gone);
        fab_dereg(mr);
        raw_down(&c);
        fkv_region_free(&region);
    }
    CHECK_EQ(rig_shard_call(&r, dataplane_serve_shard, 0), FKV_CLOSED);
    rig_down(&r);
    if (provider == FAB_SHM) CHECK(access(r.path[0] + 5, F_OK) != 0);
    for (int i = 0; i < 3; i++) free(call[i].result);
}

TEST(it_stops_in_every_state_and_leaves_nothing_behind) {
    stop_at(STAGE_CLOSING); /* what is opened once for all is open then */
    int before = open_files();
    for (int round = 0; round < 3; round++)
        for (int stage = 0; stage < STAGES; stage++) stop_at(stage);
    CHECK_EQ(open_files(), before);
}

TEST(an_address_that_cannot_be_had_is_named_and_another_start_may_succeed) {
    rig second;
    char why[256];
    rig_init(&r, provider, NULL);
    rig_start(&r);
    rig_init(&second, provider, r.sim);
    second.listen[0].address = dataplane_address(r.d, 0);
    CHECK_EQ(dataplane_create(&second.config, &second.d), FKV_OK);
    CHECK_EQ(dataplane_start(second.d, why, sizeof why), FKV_ADDRESS_IN_USE);
    CHECK(strstr(why, dataplane_address(r.d, 0)) != NULL);
    dataplane_stop(r.d);
    CHECK_EQ(dataplane_start(second.d, why, sizeof why), FKV_OK);
    CHECK_EQ(dataplane_start(second.d, why, sizeof why), FKV_CLOSED);
    rig_down(&second);
    rig_down(&r);
    rig_init(&r, provider, NULL);
    r.listen[0].address = "nonsense";
    CHECK_EQ(dataplane_create(&r.config, &r.d), FKV_OK);
    CHECK_EQ(dataplane_start(r.d, why, sizeof why), FKV_ADDRESS_INVALID);
    CHECK(strstr(why, "nonsense") != NULL);
    rig_down(&r);
}

TEST(each_worker_answers_for_its_own_shards_only) {
    raw a, b;
    rig_init(&r, provider, NULL);
    r.config.workers = 2;
    r.config.listens = 2;
    rig_start(&r);
    const char *key = "k";
    uint32_t shard = raw_shard_of(0, key, 1);
    CHECK_EQ(rig_open_shard(&r, shard, 1, TABLE_MEMORY_MIN, NULL), FKV_OK);
    rig_serve(&r, shard);
    raw_up(&a, &r, 1);
    fkv_pass h = raw_pass(1, FKV_TICKET_READ | FKV_TICKET_WRITE);
    raw_open(&b, &r);
    CHECK_EQ(raw_connect(&b, 1, &h), FKV_OK);
    CHECK_EQ(raw_put(&a, key, "v", 1), FKV_NOT_OWNER);
    CHECK_EQ(raw_put(&b, key, "v", 1), FKV_OK);
    raw_expect(&b, key, "v");
    fkv_request q = raw_request(&a, FKV_OP_LEASE, "");
    raw_message *m = raw_receive(&a, raw_send(&a, &q, "", NULL, 0));
    CHECK_EQ(m->bytes, 0);
    free(m);
    dataplane_stats *s = rig_stats(&r);
    CHECK(s->workers == 2 && s->worker[0].clients == 1 && s->worker[1].clients == 1 && s->shard[0].worker == 1);
    free(s);
    raw_down(&a);
    raw_down(&b);
    rig_down(&r);
}

/* ---- clients that behave badly ---- */

TEST(messages_that_are_none_do_no_harm) {
    raw good, bad;
    static uint8_t bytes[4000];
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&good, &r, 1);
    state = check_seed();
    fkv_pass h = raw_pass(2, FKV_TICKET_READ | FKV_TICKET_WRITE);
    raw_open(&bad, &r);
    for (int round = 0; round < 60; round++) {
        CHECK_EQ(raw_connect(&bad, 0, &h), FKV_OK);
        for (int i = 0; i < 40 && !bad.gone; i++) {
            uint32_t n = (uint32_t)(1 + rnd() % sizeof bytes);
            for (uint32_t k = 0; k < n; k++) bytes[k] = (uint8_t)rnd();
            fkv_request *q = (fkv_request *)(void *)bytes;
            if (rnd() % 4) { /* nearly a request */
                *q = (fkv_request){ .op = (uint8_t)(rnd() % 11),
                                    .flags = (uint8_t)(rnd() % 8),
                                    .shard = (uint32_t)(rnd() % 6),
                                    .id = rnd(),
                                    .sequence = rnd() % 3 ? rnd() % 2000 : rnd(),
                                    .expected = rnd() % 2,
                                    .key_bytes = (uint16_t)(rnd() % 20),
                                    .value_bytes = (uint32_t)(rnd() % 100) };
                n = (uint32_t)sizeof *q + q->key_bytes + (q->flags & FKV_REQUEST_RENDEZVOUS ? 32 : q->value_bytes);
            }
            if (rnd() % 50 == 0) n = (uint32_t)(rnd() % sizeof *q + 1); /* too short to be answered */
            struct iovec v = { bytes, n };
            int e = fab_send(bad.conn, &v, 1);
            CHECK(e == 0 || e == -EAGAIN || e == -ENOTCONN);
            fab_flush(bad.cq);
            raw_poll(&bad);
            raw_drop_messages(&bad);
        }
        raw_hang_up(&bad);
        CHECK_EQ(raw_put(&good, "k", "v", 1), FKV_OK);
        raw_expect(&good, "k", "v");
    }
    raw_down(&bad);
    raw_down(&good);
    rig_down(&r);
}

TEST(a_message_too_short_to_be_answered_ends_its_connection) {
    raw bad;
    rig_init(&r, provider, NULL);
    rig_up(&r, 1, TABLE_MEMORY_MIN);
    raw_up(&bad, &r, 2);
    struct iovec v = { "short", 5 };
    CHECK_EQ(fab_send(bad.conn, &v, 1), 0);
    fab_flush(bad.cq);
    while (!bad.gone) raw_turn(&bad, &bad.gone);
    raw_down(&bad);
    rig_down(&r);
}

static uint64_t requests_of(fkv_op kind) {
    dataplane_stats *s = rig_stats(&r);
    uint64_t n = s->worker[0].requests[kind];
    free(s);
    return n;
}
/* Until the owner has taken `n` requests of a kind in, and has ended the turn in which it did. */
static void wait_for_requests(fkv_op kind, uint64_t n) {
    while (requests_of(kind) < n) {}
    requests_of(kind);
}
/* Takes replies without giving credits back, until the owner can send no more: one reply stays in its hands. */
static void take_no_more(raw *c) {
    c->keep = true;
    for (uint32_t sent = 1, blocked = 0; !blocked; sent++) {
        fkv_request q = raw_request(c, FKV_OP_LAYOUT, "");
        q.shard = 0;
        raw_send(c, &q, "", NULL, 0);
        wait_for_requests(FKV_OP_LAYOUT, sent);
        raw_poll(c);
        dataplane_stats *s = rig_stats(&r);
        blocked = s->worker[0].blocked;
        free(s);
    }
}

TEST(a_client_that_takes_no_replies_is_ended_and_others_go_on) {
    raw deaf, good;
    rig_init(&r, provider, NULL);
    r.config.stall_ms = 300;
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&deaf, &r, 1);
    raw_up(&good, &r, 2);
    take_no_more(&deaf);
    for (bool there = true; there;) {
        CHECK_EQ(raw_put(&good, "k", "v", 1), FKV_OK);
        dataplane_stats *s = rig_stats(&r);
        there = s->worker[0].clients == 2;
        free(s);
    }
    raw_down(&deaf);
    raw_down(&good);
    rig_down(&r);
}

TEST(beyond_its_quota_a_client_is_told_to_come_later) {
    enum { QUOTA = 8, MORE = 5 };
    uint64_t id[QUOTA + MORE];
    raw c;
    int busy = 0, done = 0;
    rig_init(&r, provider, NULL);
    r.config.client_quota = QUOTA;
    r.config.stall_ms = 60000;
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&c, &r, 1);
    take_no_more(&c); /* a LAYOUT is in the owner's hands by now, which does not count */
    for (int i = 0; i < QUOTA + MORE; i++) id[i] = raw_put_begin(&c, "k", "v", 1);
    wait_for_requests(FKV_OP_PUT, QUOTA + MORE);
    raw_release_kept(&c);
    for (int i = 0; i < QUOTA + MORE; i++) {
        fkv_status s = raw_end(&c, id[i]);
        CHECK(s == FKV_OK || s == FKV_BUSY);
        if (s == FKV_OK)
            done++;
        else
            busy++;
    }
    CHECK_EQ(done, QUOTA);
    CHECK_EQ(busy, MORE);
    CHECK_EQ(raw_put(&c, "k", "v", 1), FKV_OK);
    raw_down(&c);
    rig_down(&r);
}

/* ---- resting ---- */

TEST(a_data_plane_that_is_asked_nothing_does_not_wake_up) {
    raw c;
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&c, &r, 1);
    CHECK_EQ(raw_put(&c, "k", "v", 1), FKV_OK);
    CHECK_EQ(raw_put(&c, "k", "w", 1), FKV_OK);
    /* Once the replaced value has left quarantine, a stretch of time passes with no more wake-ups than the questions
     * about it. */
    uint64_t woken = 100;
    for (int tries = 0; woken > 2; tries++) {
        CHECK(tries < 50);
        dataplane_stats *a = rig_stats(&r);
        poll(NULL, 0, 300);
        dataplane_stats *b = rig_stats(&r);
        woken = b->worker[0].polling.sleeps - a->worker[0].polling.sleeps;
        free(a);
        free(b);
    }
    raw_down(&c);
    rig_down(&r);
}

static void tests(void) {
    RUN(it_stops_in_every_state_and_leaves_nothing_behind);
    RUN(an_address_that_cannot_be_had_is_named_and_another_start_may_succeed);
    RUN(each_worker_answers_for_its_own_shards_only);
    RUN(messages_that_are_none_do_no_harm);
    RUN(a_message_too_short_to_be_answered_ends_its_connection);
    RUN(a_client_that_takes_no_replies_is_ended_and_others_go_on);
    RUN(beyond_its_quota_a_client_is_told_to_come_later);
    RUN(a_data_plane_that_is_asked_nothing_does_not_wake_up);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
