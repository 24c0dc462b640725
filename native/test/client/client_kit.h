/* client_kit.h: a client (session and lookup) for tests, with calls that wait for their answer. Waits end with the
 * event; a wait that takes longer than check_patience_ms() fails the test. The data plane that it talks to is dataplane_rig.h's. */
#ifndef FARKV_TEST_CLIENT_KIT_H
#define FARKV_TEST_CLIENT_KIT_H
#include "../../client/lookup/lookup.h"
#include "../dataplane/raw_client.h"

typedef struct kit {
    rig *r;
    lookup *l;
    session *s;
    uint32_t connected, disconnected, refused, not_owner; /* events seen */
    fkv_status reason;                                    /* of the last one */
    uint64_t idle_turns;
} kit;

/* How an operation ended. */
typedef struct answer {
    bool done;
    fkv_status status;
    uint64_t version;
    uint32_t bytes;
    uint32_t user_flags;
    uint8_t codec;
    uint8_t *value; /* of malloc */
    lookup_get *get;
} answer;

static inline void kit_event(void *ctx, const session_event *e) {
    kit *k = ctx;
    k->reason = e->reason;
    if (e->type == SESSION_CONNECTED) k->connected++;
    if (e->type == SESSION_DISCONNECTED) k->disconnected++;
    if (e->type == SESSION_REFUSED) k->refused++;
    if (e->type == SESSION_NOT_OWNER) k->not_owner++;
}
static inline void kit_got(void *ctx, lookup_get *g) {
    (void)ctx;
    answer *a = lookup_user(g);
    const lookup_result *r = lookup_result_of(g);
    CHECK(!a->done);
    *a = (answer){ .done = true,
                   .status = r->status,
                   .version = r->version,
                   .bytes = r->value_bytes,
                   .user_flags = r->user_flags,
                   .codec = r->codec };
    if (r->status == FKV_OK) {
        a->value = malloc(r->value_bytes + 1);
        if (r->value_bytes) memcpy(a->value, lookup_value(g), r->value_bytes);
        a->value[r->value_bytes] = 0;
    }
    lookup_release(g);
}
static inline void kit_answered(void *user, session_answer *s) {
    answer *a = user;
    CHECK(!a->done);
    *a = (answer){ .done = true, .status = s->status, .version = s->reply.version, .bytes = s->body_bytes };
    if (s->body_bytes) a->value = session_take_body(s);
}

/* One turn of a loop; sleeps when nothing happened and nothing is due. */
static inline void kit_turn(kit *k) {
    session_flush(k->s);
    int n = session_poll(k->s);
    session_tick(k->s);
    if (n) return;
    k->idle_turns++;
    fab_cq *cq[SESSION_PLACES];
    struct pollfd f[SESSION_PLACES];
    int queues = session_queues(k->s, cq, SESSION_PLACES);
    for (int i = 0; i < queues; i++) {
        if (k->r->provider == FAB_SIM) {
            usleep(50); /* the simulator's time goes on by polling */
            return;
        }
        if (fab_arm(cq[i]) != 0) return;
        f[i] = (struct pollfd){ .fd = fab_fd(cq[i]), .events = POLLIN };
    }
    uint64_t due = session_next_tick(k->s), now = session_now(k->s);
    int ms = due == UINT64_MAX ? 1000 : due > now ? (int)((due - now) / 1000000) + 1 : 0;
    poll(f, (nfds_t)queues, ms > 1000 ? 1000 : ms);
}
static inline void kit_until(kit *k, const bool *done) {
    uint64_t start = fkv_now_ns();
    while (!*done) {
        kit_turn(k);
        CHECK(check_in_time(start));
    }
}

static inline uint64_t kit_deadline(kit *k, uint32_t ms) { return session_now(k->s) + (uint64_t)ms * 1000000u; }

static inline lookup_key kit_key(const char *key) {
    return (lookup_key){ .bytes = (const uint8_t *)key, .count = (uint32_t)strlen(key) };
}

static inline void kit_get_begin(kit *k, const char *key, uint32_t ms, answer *a) {
    lookup_key key_of = kit_key(key);
    *a = (answer){ 0 };
    fkv_status s = lookup_start(k->l, &key_of, session_now(k->s), kit_deadline(k, ms), a, &a->get);
    if (s != FKV_OK) *a = (answer){ .done = true, .status = s };
}
static inline answer kit_get(kit *k, const char *key, uint32_t ms) {
    answer a;
    kit_get_begin(k, key, ms, &a);
    kit_until(k, &a.done);
    return a;
}
static inline uint64_t kit_ask(kit *k, session_ask *ask, const char *key, uint32_t ms, answer *a) {
    lookup_key key_of = kit_key(key);
    uint64_t id = 0;
    *a = (answer){ 0 };
    ask->key = key_of.bytes;
    ask->key_bytes = key_of.count;
    ask->shard = lookup_shard_of(k->l, &key_of);
    ask->deadline_ns = kit_deadline(k, ms);
    ask->done = kit_answered;
    ask->user = a;
    fkv_status s = session_request(k->s, ask, &id);
    if (s != FKV_OK) *a = (answer){ .done = true, .status = s };
    return id;
}
static inline uint64_t kit_put_begin(kit *k, const char *key, const void *value, uint32_t bytes, uint32_t ms,
                                     answer *a) {
    session_ask ask = { .op = FKV_OP_PUT, .value = value, .value_bytes = bytes };
    return kit_ask(k, &ask, key, ms, a);
}
static inline answer kit_put(kit *k, const char *key, const void *value, uint32_t bytes, uint32_t ms) {
    answer a;
    kit_put_begin(k, key, value, bytes, ms, &a);
    kit_until(k, &a.done);
    return a;
}
static inline answer kit_delete(kit *k, const char *key, uint32_t ms) {
    answer a;
    session_ask ask = { .op = FKV_OP_DELETE };
    kit_ask(k, &ask, key, ms, &a);
    kit_until(k, &a.done);
    return a;
}
static inline answer kit_cas(kit *k, const char *key, uint64_t expected, const char *value, uint32_t ms) {
    answer a;
    session_ask ask = { .op = value ? FKV_OP_CAS : FKV_OP_CAS_DELETE,
                        .expected = expected,
                        .value = (const uint8_t *)value,
                        .value_bytes = value ? (uint32_t)strlen(value) : 0 };
    kit_ask(k, &ask, key, ms, &a);
    kit_until(k, &a.done);
    return a;
}
static inline void kit_expect(kit *k, const char *key, const char *value) {
    answer a = kit_get(k, key, 10000);
    CHECK_EQ(a.status, FKV_OK);
    CHECK(a.bytes == strlen(value) && memcmp(a.value, value, a.bytes) == 0);
    free(a.value);
}
static inline void kit_expect_none(kit *k, const char *key) { CHECK_EQ(kit_get(k, key, 10000).status, FKV_NOT_FOUND); }

/* The lookup_config of a usual client of the rig. */
static inline lookup_config kit_config(kit *k, uint64_t client) {
    lookup_config c = { .seed = RIG_SEED, .max_gets = 256, .ctx = k, .event = kit_event, .done = kit_got };
    c.session = (session_config){ .shards = RIG_SHARDS, .max_requests = 256, .jitter_seed = 7 };
    c.session.pass = raw_pass(client, FKV_TICKET_READ | FKV_TICKET_WRITE);
    return c;
}
static inline void kit_create(kit *k, rig *r, const lookup_config *c) {
    *k = (kit){ .r = r };
    CHECK_EQ(lookup_create(c, &k->l), FKV_OK);
    k->s = lookup_session(k->l);
}
/* Owner 1 is the rig's first listener. */
static inline void kit_set_owner(kit *k, uint64_t incarnation) {
    session_address a = { k->r->provider, dataplane_address(k->r->d, 0), 0 };
    session_owner_config o = { .owner = 1, .incarnation = incarnation, .addresses = &a, .count = 1 };
    CHECK_EQ(session_set_owners(k->s, &o, 1), FKV_OK);
}
/* A route without regions: the lookup has to ask the owner. */
static inline void kit_route(kit *k, uint32_t shard, int64_t owner) {
    lookup_route r = { .shard = shard, .owner = owner };
    CHECK_EQ(lookup_set_route(k->l, &r), FKV_OK);
}
/* The route as the metadata would have it. */
static inline void kit_route_with_layout(kit *k, uint32_t shard, const dataplane_layout *y) {
    lookup_region *regions = calloc(y->count, sizeof *regions);
    for (uint32_t i = 0; i < y->count; i++) {
        regions[i] = (lookup_region){ .provider = y->region[i].provider,
                                      .device = y->region[i].device,
                                      .kind = (uint8_t)y->region[i].kind,
                                      .segment = y->region[i].segment,
                                      .tag = y->region[i].tag,
                                      .bytes = y->region[i].bytes,
                                      .addr = y->region[i].addr,
                                      .rkey = y->region[i].rkey };
    }
    lookup_route r = { .shard = shard,
                       .owner = 1,
                       .epoch = y->epoch,
                       .incarnation = y->incarnation,
                       .layout_epoch = y->layout_epoch,
                       .buckets = y->buckets,
                       .regions = regions,
                       .count = y->count };
    CHECK_EQ(lookup_set_route(k->l, &r), FKV_OK);
    free(regions);
}
static inline void kit_up(kit *k, rig *r, uint64_t client) {
    lookup_config c = kit_config(k, client);
    kit_create(k, r, &c);
    kit_set_owner(k, r->config.server_incarnation);
    for (uint32_t i = 0; i < RIG_SHARDS; i++) kit_route(k, i, 1);
}
static inline void kit_down(kit *k) { lookup_close(k->l); }

static inline lookup_stats kit_stats(kit *k) {
    lookup_stats s;
    lookup_get_stats(k->l, &s);
    return s;
}
#endif
