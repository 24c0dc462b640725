/* failover_clients.c: clients of failover.c: they ask for entries of a few keys, several at a time, and go where the config
 * says that they have heard of. */
#include <stdio.h>
#include "../fields_text.h"
#include "../../replication/sender.h"
#include "failover_life.h"

/* By whichever clock: of the simulation, or of the machine when disks are looked at. */
#define AGES_MS (FKV_TTL_MAX / 2)

void life_route(player *p) {
    const config *c = &life.at[p->config];
    lookup_route r = { .shard = 0, .owner = (int64_t)c->owner, .epoch = c->epoch, .incarnation = c->id[c->owner] };
    CHECK_EQ(lookup_set_route(p->l, &r), FKV_OK);
}
static void event(void *ctx, const session_event *e) { (void)ctx, (void)e; }

static void ended(slot *at, fkv_status s, uint64_t version, const uint8_t *value, uint32_t bytes) {
    uint32_t number = at->number;
    const asked *a = &life.history.all[number];
    life.counts->large += s == FKV_OK && a->kind != ASKED_GET && a->bytes > PEER_MESSAGE_MIN;
    at->number = 0;
    life.history.all[number].ended_ns = fkv_now_ns();
    history_end(&life.history, number, s, version, value, bytes);
}
static void got(void *ctx, lookup_get *g) {
    const lookup_result *r = lookup_result_of(g);
    (void)ctx;
    ended(lookup_user(g), r->status, r->version, lookup_value(g), r->value_bytes);
    lookup_release(g);
}
static void changed(void *user, session_answer *a) {
    slot *at = user;
    uint64_t result = a->reply.expiry_ms;
    bool tail = history_is_tail(life.history.all[at->number].key);
    ended(at, a->status, a->replied ? a->reply.version : 0, tail ? (const uint8_t *)&result : NULL,
          tail ? sizeof result : 0);
}

void life_player_up(uint32_t i) {
    player *p = &life.player[i];
    *p = (player){ .config = 1 };
    for (int k = 0; k < SLOTS; k++) p->slot[k].of = p;
    lookup_config c = { .seed = HASH_SEED, .max_gets = SLOTS, .event = event, .done = got, .cached_locations = 64 };
    c.session = (session_config){ .shards = 1, .max_requests = 64, .jitter_seed = 1 + i };
    fkv_ticket t = { .client = 50 + i, .expires_ms = UINT64_MAX, .flags = FKV_TICKET_READ | FKV_TICKET_WRITE };
    fkv_pass_make(&SECRET, &t, &c.session.pass);
    CHECK_EQ(lookup_create(&c, &p->l), FKV_OK);
    session_owner_config owner[SERVERS];
    session_address address[SERVERS];
    static char text[SERVERS][32];
    for (uint32_t s = 0; s < SERVERS; s++) {
        snprintf(text[s], sizeof text[s], "sim:server-%u", s);
        address[s] = (session_address){ FAB_SIM, text[s], 0 };
        owner[s] = (session_owner_config){ .owner = s, .incarnation = 10 + s, .addresses = &address[s], .count = 1 };
    }
    session_set_replicated(lookup_session(p->l), true);
    CHECK_EQ(session_set_owners(lookup_session(p->l), owner, SERVERS), FKV_OK);
    life_route(p);
}

void life_player_turn(player *p) {
    session *s = lookup_session(p->l);
    session_flush(s);
    session_poll(s);
    session_tick(s);
}

/* Some fit no message of a link, a few are READ in several pieces. */
static uint32_t some_bytes(void) {
    uint32_t what = any(100);
    return 4 + any(what < 2 ? HISTORY_VALUE - 4 : what < 10 ? 60000 : what < 25 ? 6000 : 200);
}

void life_ask(player *p, asked_kind kind, int key, uint64_t patience_ns) {
    static uint8_t value[HISTORY_VALUE];
    char name[16];
    slot *at = NULL;
    for (int i = 0; i < SLOTS; i++)
        if (!p->slot[i].number) at = &p->slot[i];
    if (!at) return;
    uint32_t key_bytes = (uint32_t)snprintf(name, sizeof name, "key-%d", key);
    uint64_t now = fkv_now_ns(), deadline = now + patience_ns;
    bool writes = kind == ASKED_PUT || kind == ASKED_CAS;
    uint32_t bytes = writes ? some_bytes() : kind == ASKED_APPEND ? sizeof(uint32_t) : 0;
    bool of_field = kind == ASKED_INCREMENT_FIELD;
    uint64_t expected = kind == ASKED_CAS ? life.history.floor[key].version : kind == ASKED_INCREMENT || of_field;
    at->number = history_begin(&life.history, kind, key, bytes);
    life.history.all[at->number].began_ns = now;
    fkv_status s;
    if (kind == ASKED_GET) {
        lookup_get *g;
        lookup_key k = { .bytes = (uint8_t *)name, .count = key_bytes };
        s = lookup_start(p->l, &k, now, deadline, at, &g);
    } else {
        if (bytes) history_value(at->number, bytes, value);
        if (of_field) bytes = fields_of("n", value);
        uint64_t id;
        static const fkv_op ops[] = { [ASKED_PUT] = FKV_OP_PUT,
                                      [ASKED_DELETE] = FKV_OP_DELETE,
                                      [ASKED_CAS] = FKV_OP_CAS,
                                      [ASKED_APPEND] = FKV_OP_APPEND,
                                      [ASKED_INCREMENT] = FKV_OP_INCREMENT,
                                      [ASKED_TOUCH] = FKV_OP_TOUCH,
                                      [ASKED_INCREMENT_FIELD] = FKV_OP_INCREMENT_FIELD };
        session_ask q = { .op = ops[kind],
                          .codec = of_field ? FKV_CODEC_FIELDS : 0,
                          .key = (uint8_t *)name,
                          .key_bytes = key_bytes,
                          .value = value,
                          .value_bytes = bytes,
                          .expected = expected,
                          .ttl_ms = kind == ASKED_TOUCH && any(2) ? AGES_MS : 0,
                          .deadline_ns = deadline,
                          .done = changed,
                          .user = at };
        s = session_request(lookup_session(p->l), &q, &id);
    }
    if (s != FKV_OK) ended(at, s, 0, NULL, 0);
}

static void ask_of_tail(player *p, uint64_t patience_ns) {
    static const asked_kind grow[] = { ASKED_APPEND, ASKED_INCREMENT, ASKED_INCREMENT_FIELD };
    int key = any(2) ? HISTORY_LIST : life.history.count % 2 ? HISTORY_COUNTER : HISTORY_HASH;
    asked_kind grows = grow[key - HISTORY_LIST];
    uint32_t what = any(8);
    life_ask(p, what == 0 ? ASKED_TOUCH : what < 3 ? ASKED_GET : grows, key, patience_ns);
}

void life_ask_something(player *p) {
    static const asked_kind kinds[] = { ASKED_GET, ASKED_GET, ASKED_GET, ASKED_PUT,
                                        ASKED_PUT, ASKED_PUT, ASKED_CAS, ASKED_DELETE };
    uint64_t patience_ns = (20 + any(any(4) ? 150 : 1500)) * MS;
    if (any(4) == 0)
        ask_of_tail(p, patience_ns);
    else
        life_ask(p, kinds[any(8)], (int)any(HISTORY_KEYS), patience_ns);
}
