/* guest.c: the client of a puppet that guest.h describes. */
#include "guest.h"

static const fkv_seed SECRET = { 5, 6 };

static void on_event(void *ctx, const session_event *e) {
    guest *c = ctx;
    c->reason = e->reason;
    c->connected += e->type == SESSION_CONNECTED;
    if (e->type == SESSION_CONNECTED) c->ended = e->ended;
    c->disconnected += e->type == SESSION_DISCONNECTED;
    c->refused += e->type == SESSION_REFUSED;
    c->not_owner += e->type == SESSION_NOT_OWNER;
    c->silent += e->type == SESSION_SILENT;
}
static void set_outcome(outcome *o, fkv_status s, uint64_t version, const uint8_t *value, uint32_t bytes) {
    CHECK(!o->done);
    o->done = true;
    o->status = s;
    o->version = version;
    o->bytes = bytes;
    uint32_t n = bytes < sizeof o->value - 1 ? bytes : (uint32_t)sizeof o->value - 1;
    if (value) memcpy(o->value, value, n);
    o->value[value ? n : 0] = 0;
}
static void on_got(void *ctx, lookup_get *g) {
    (void)ctx;
    const lookup_result *r = lookup_result_of(g);
    set_outcome(lookup_user(g), r->status, r->version, r->status == FKV_OK ? lookup_value(g) : NULL, r->value_bytes);
    lookup_release(g);
}
static void on_answer(void *user, session_answer *a) {
    set_outcome(user, a->status, a->reply.version, a->body, a->body_bytes);
}

lookup_config guest_config(guest *c, puppet *p) {
    lookup_config config = { .seed = p->h->config.seed, .max_gets = 64, .ctx = c, .event = on_event, .done = on_got };
    config.session = (session_config){ .shards = p->shards, .max_requests = 64, .jitter_seed = 7 };
    fkv_ticket t = { .client = 9, .expires_ms = p->h->wall_ms + 3600000, .flags = FKV_TICKET_READ | FKV_TICKET_WRITE };
    fkv_pass_make(&SECRET, &t, &config.session.pass);
    return config;
}
void guest_open(guest *c, puppet *p, const lookup_config *config) {
    *c = (guest){ .p = p };
    lookup_config usual = guest_config(c, p);
    CHECK_EQ(lookup_create(config ? config : &usual, &c->l), FKV_OK);
    c->s = lookup_session(c->l);
}
void guest_connect(guest *c) {
    session_address a = { FAB_BROUGHT, "puppet", 0 };
    session_owner_config o = { .owner = 1, .incarnation = c->p->server_incarnation, .addresses = &a, .count = 1 };
    CHECK_EQ(session_set_owners(c->s, &o, 1), FKV_OK);
    CHECK_EQ(lookup_set_route(c->l, &(lookup_route){ .shard = c->p->shard, .owner = 1 }), FKV_OK);
}
void guest_up(guest *c, puppet *p) {
    guest_open(c, p, NULL);
    guest_connect(c);
    CHECK_EQ(guest_get(c, "some key that is not there").status, FKV_NOT_FOUND);
}
void guest_down(guest *c) {
    lookup_close(c->l);
    puppet_free(c->p);
}
void guest_settle(guest *c) {
    for (int quiet = 0, turns = 0; quiet < 3; turns++) {
        CHECK(turns < 10000);
        session_flush(c->s);
        quiet = session_poll(c->s) ? 0 : quiet + 1;
        session_tick(c->s);
    }
}
void guest_start(guest *c, const char *key, uint32_t ms, outcome *o) {
    lookup_key k = { .bytes = (const uint8_t *)key, .count = (uint32_t)strlen(key) };
    o->done = false;
    fkv_status s = lookup_start(c->l, &k, c->p->now_ns, c->p->now_ns + (uint64_t)ms * 1000000u, o, &o->get);
    if (s != FKV_OK) set_outcome(o, s, 0, NULL, 0);
}
outcome guest_get(guest *c, const char *key) {
    outcome o;
    guest_start(c, key, 1000, &o);
    guest_settle(c);
    CHECK(o.done);
    return o;
}
void guest_expect(guest *c, const char *key, const char *value) {
    outcome o = guest_get(c, key);
    CHECK_EQ(o.status, FKV_OK);
    CHECK(strcmp(o.value, value) == 0);
}
void guest_ask(guest *c, fkv_op op, const char *key, const char *value, uint32_t ms, outcome *o) {
    session_ask a = { .op = op,
                      .shard = c->p->shard,
                      .key = (const uint8_t *)key,
                      .key_bytes = (uint32_t)strlen(key),
                      .value = (const uint8_t *)value,
                      .value_bytes = value ? (uint32_t)strlen(value) : 0,
                      .deadline_ns = c->p->now_ns + (uint64_t)ms * 1000000u,
                      .done = on_answer,
                      .user = o };
    o->done = false;
    fkv_status s = session_request(c->s, &a, &o->request);
    if (s != FKV_OK) set_outcome(o, s, 0, NULL, 0);
}
lookup_stats guest_stats(const guest *c) {
    lookup_stats s;
    lookup_get_stats(c->l, &s);
    return s;
}
