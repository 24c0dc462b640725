/* raw_client.h: clients of a data plane under test. They speak wire.h over fabric.h by hand, so that they can also do what
 * a real one never would. Waits end as those of dataplane_rig.h do. */
#ifndef FARKV_TEST_RAW_CLIENT_H
#define FARKV_TEST_RAW_CLIENT_H
#include "../../wire/fields.h"
#include "dataplane_rig.h"

typedef struct raw_message {
    struct raw_message *next;
    uint32_t bytes;
    fkv_reply reply;
    uint8_t body[];
} raw_message;
typedef struct raw {
    rig *r;
    fab_domain *domain;
    fab_cq *cq;
    fab_conn *conn;
    raw_message *first, **last;
    uint64_t next_id;
    uint64_t sequence[RIG_SHARDS];
    fkv_status welcome;
    uint8_t version;
    uint32_t quota; /* of the welcome, as the next */
    fkv_end ended;
    fkv_challenge challenge; /* number 0: not challenged */
    uint8_t answered_nonce[FKV_NONCE_BYTES];
    fkv_pass shown;            /* where connections are encrypted: under which */
    bool answered, gone, keep; /* keep: received messages are not given back until raw_release_kept */
    const void *kept[1024];
    int kept_count;
} raw;

/* Longer than any window is kept, so that only tests of tickets see one end. */
enum { RIG_TICKET_MS = 2 * FKV_DEDUP_IDLE_MS };
static inline fkv_pass raw_pass_until(const fkv_seed *secret, uint64_t client, uint32_t tenant, uint32_t flags,
                                      uint64_t expires_ms) {
    fkv_pass p;
    fkv_ticket t = { .client = client,
                     .expires_ms = expires_ms,
                     .life_ms = RIG_TICKET_MS,
                     .tenant = (uint16_t)tenant,
                     .flags = (uint8_t)flags };
    fkv_pass_make(secret, &t, &p);
    return p;
}
static inline fkv_pass raw_pass(uint64_t client, uint32_t flags) {
    return raw_pass_until(&RIG_SECRET, client, 0, flags, fkv_wall_ms() + RIG_TICKET_MS);
}
static inline void raw_poll(raw *c) {
    fab_wc wc[32];
    int n = fab_poll(c->cq, wc, 32);
    for (int i = 0; i < n; i++) {
        if (wc[i].opcode == FAB_WC_CONNECT) {
            fkv_welcome w = { 0 };
            c->answered = true;
            c->challenge.number = 0;
            if (wc[i].bytes >= sizeof c->challenge) memcpy(&c->challenge, wc[i].data, sizeof c->challenge);
            if (c->challenge.magic != FKV_CHALLENGE_MAGIC) c->challenge.number = 0;
            if (wc[i].bytes >= sizeof w) memcpy(&w, wc[i].data, sizeof w);
            c->welcome = wc[i].bytes >= sizeof w        ? (fkv_status)w.status
                         : wc[i].status == FAB_AUTH_ERR ? FKV_UNAUTHORIZED
                                                        : FKV_DISCONNECTED;
            c->version = w.version;
            c->quota = w.quota;
            c->ended = (fkv_end)w.ended;
        } else if (wc[i].opcode == FAB_WC_RECV) {
            raw_message *m = malloc(sizeof *m + wc[i].bytes);
            const uint8_t *body;
            CHECK_EQ(wire_parse_reply(wc[i].data, wc[i].bytes, &m->reply, &body), FKV_OK);
            memcpy(m->body, body, m->reply.body_bytes);
            m->bytes = m->reply.body_bytes;
            m->next = NULL;
            *c->last = m;
            c->last = &m->next;
            if (!c->keep)
                fab_release(wc[i].conn, wc[i].data);
            else
                c->kept[c->kept_count++] = wc[i].data;
        } else if (wc[i].opcode == FAB_WC_DISCONNECT) {
            c->gone = true;
        }
    }
    fab_flush(c->cq);
}
static inline void raw_release_kept(raw *c) {
    while (c->kept_count) fab_release(c->conn, c->kept[--c->kept_count]);
    c->keep = false;
    fab_flush(c->cq);
}
/* One poll; sleeps until something may have come when there is nothing. */
static inline void raw_turn(raw *c, const bool *unless) {
    raw_poll(c);
    if (*unless || c->first || c->gone) return;
    if (fab_arm(c->cq) != 0) return;
    struct pollfd f = { .fd = fab_fd(c->cq), .events = POLLIN };
    CHECK(poll(&f, 1, (int)check_patience_ms()) > 0);
}
static inline void raw_open(raw *c, rig *r) {
    *c = (raw){ .r = r, .next_id = 1, .shown = raw_pass(0xf00d, FKV_TICKET_READ) };
    c->last = &c->first;
    /* However busy the machine is: nobody is refused for being slow but where a test is about that. */
    fab_options o = { .provider = r->provider, .op_timeout_ms = 20000, .handshake_ms = 20000 };
    CHECK_EQ(fab_open(&o, &c->domain), 0);
    CHECK_EQ(fab_cq_create(c->domain, &c->cq), 0);
}
static inline void raw_drop_messages(raw *c) {
    while (c->first) {
        raw_message *m = c->first;
        c->first = m->next;
        free(m);
    }
    c->last = &c->first;
}
static inline void raw_hang_up(raw *c) {
    c->kept_count = 0;
    if (c->conn) fab_disconnect(c->conn);
    fab_flush(c->cq);
    c->conn = NULL;
    raw_drop_messages(c);
}
/* One connection, with whatever hello. */
static inline fkv_status raw_dial(raw *c, const char *address, const void *hello, uint32_t bytes) {
    c->answered = c->gone = false;
    fab_identity who = { .bytes = FKV_NAME_BYTES };
    memcpy(who.name, c->shown.name, sizeof c->shown.name);
    memcpy(who.key, &c->shown.key, sizeof c->shown.key);
    CHECK_EQ(fab_connect_as(c->cq, address, &who, hello, bytes, NULL, &c->conn), 0);
    fab_flush(c->cq);
    while (!c->answered) raw_turn(c, &c->answered);
    return c->welcome;
}
/* Asks for a challenge; false: was refused. */
static inline bool raw_challenge(raw *c, const char *address, fkv_challenge *out) {
    fkv_hello asks = fkv_hello_make(NULL, NULL);
    raw_dial(c, address, &asks, sizeof asks);
    *out = c->challenge;
    if (out->number) raw_hang_up(c);
    return out->number != 0;
}
static inline fkv_status raw_connect_to(raw *c, const char *address, const fkv_pass *p) {
    fkv_challenge challenge;
    c->shown = *p;
    if (!raw_challenge(c, address, &challenge)) return c->welcome;
    fkv_hello h = fkv_hello_make(p, &challenge);
    memcpy(c->answered_nonce, challenge.nonce, sizeof c->answered_nonce);
    return raw_dial(c, address, &h, sizeof h);
}
static inline fkv_status raw_connect(raw *c, uint32_t listener, const fkv_pass *p) {
    return raw_connect_to(c, dataplane_address(c->r->d, listener), p);
}
static inline void raw_up(raw *c, rig *r, uint64_t client) {
    fkv_pass p = raw_pass(client, FKV_TICKET_READ | FKV_TICKET_WRITE);
    raw_open(c, r);
    CHECK_EQ(raw_connect(c, 0, &p), FKV_OK);
}
static inline void raw_down(raw *c) {
    raw_hang_up(c);
    fab_cq_destroy(c->cq);
    fab_close(c->domain);
}
static inline uint32_t raw_shard_of(uint16_t space, const void *key, size_t n) {
    return fkv_hash_shard(fkv_hash_key(&RIG_SEED, space, key, n), RIG_SHARDS);
}
/* A request for a key; value NULL: none. The caller may change it before raw_send. */
static inline fkv_request raw_request(raw *c, fkv_op op, const char *key) {
    fkv_request q = { .op = (uint8_t)op, .id = c->next_id++, .key_bytes = (uint16_t)strlen(key) };
    q.shard = raw_shard_of(0, key, strlen(key));
    if (fkv_op_is(op, FKV_CHANGES)) q.sequence = ++c->sequence[q.shard];
    return q;
}
/* A request of this operation that is well formed, by its traits (ops.h); the key is for those that have one. What it
 * carries is raw_value: a value of one byte, or one field, whose name is empty. */
static const uint8_t raw_value[FKV_APPEND_MAX];
static inline fkv_request raw_well_formed(raw *c, fkv_op op, const char *key) {
    fkv_request q = raw_request(c, op, fkv_op_is(op, FKV_KEYED) ? key : "");
    if (fkv_op_is(op, FKV_VALUED)) q.value_bytes = 1;
    if (fkv_op_is(op, FKV_COUNTED)) q.value_bytes = 10;
    if (fkv_op_is(op, FKV_FIELDS)) {
        q.codec = FKV_CODEC_FIELDS;
        q.value_bytes = FKV_FIELD_HEAD;
    }
    return q;
}
/* Whether it is well formed like that and answered: not what is about a request or a ticket. */
static inline bool raw_can_ask(fkv_op op) {
    return fkv_op_answer(op) != FKV_BODY_NO_REPLY && !fkv_op_is(op, FKV_RENEWS);
}
/* Bytes of raw_value behind it. */
static inline uint32_t raw_carried(const fkv_request *q) { return fkv_op_is(q->op, FKV_VALUED) ? q->value_bytes : 0; }
static inline int raw_try(raw *c, const fkv_request *q, const char *key, const void *rest, uint32_t rest_bytes) {
    struct iovec v[3] = { { (void *)(uintptr_t)q, sizeof *q },
                          { (void *)(uintptr_t)key, q->key_bytes },
                          { (void *)(uintptr_t)rest, rest_bytes } };
    int e = fab_send(c->conn, v, rest_bytes ? 3 : q->key_bytes ? 2 : 1);
    fab_flush(c->cq);
    return e;
}
static inline uint64_t raw_send(raw *c, const fkv_request *q, const char *key, const void *rest, uint32_t rest_bytes) {
    int e;
    while ((e = raw_try(c, q, key, rest, rest_bytes)) == -EAGAIN) raw_poll(c);
    CHECK_EQ(e, 0);
    return q->id;
}
/* The next message with this id; the caller frees it. */
static inline raw_message *raw_receive(raw *c, uint64_t id) {
    bool never = false;
    for (;;) {
        for (raw_message **m = &c->first; *m; m = &(*m)->next) {
            if ((*m)->reply.id != id) continue;
            raw_message *found = *m;
            *m = found->next;
            if (c->last == &found->next) c->last = m;
            return found;
        }
        CHECK(!c->gone);
        raw_message *kept = c->first;
        c->first = NULL; /* raw_turn may sleep although messages for others are here */
        raw_message **last = c->last;
        c->last = &c->first;
        raw_turn(c, &never);
        if (kept) {
            *last = c->first;
            if (!c->first) c->last = last;
            c->first = kept;
        }
    }
}
static inline fkv_status raw_ask(raw *c, const fkv_request *q, const char *key, const void *rest, uint32_t rest_bytes,
                                 fkv_reply *reply) {
    raw_message *m = raw_receive(c, raw_send(c, q, key, rest, rest_bytes));
    fkv_reply r = m->reply;
    free(m);
    if (reply) *reply = r;
    return (fkv_status)r.status;
}
static inline uint64_t raw_put_begin(raw *c, const char *key, const void *value, uint32_t bytes) {
    fkv_request q = raw_request(c, FKV_OP_PUT, key);
    q.value_bytes = bytes;
    return raw_send(c, &q, key, value, bytes);
}
static inline fkv_status raw_end(raw *c, uint64_t id) {
    raw_message *m = raw_receive(c, id);
    fkv_status s = (fkv_status)m->reply.status;
    free(m);
    return s;
}
static inline fkv_status raw_put(raw *c, const char *key, const void *value, uint32_t bytes) {
    return raw_end(c, raw_put_begin(c, key, value, bytes));
}
/* The value, of malloc, put together from its pieces; NULL: *reply's status says why. */
static inline uint8_t *raw_get(raw *c, const char *key, fkv_reply *reply) {
    fkv_request q = raw_request(c, FKV_OP_GET, key);
    uint64_t id = raw_send(c, &q, key, NULL, 0);
    uint8_t *value = NULL;
    uint32_t at = 0;
    for (;;) {
        raw_message *m = raw_receive(c, id);
        *reply = m->reply;
        if (m->reply.status != FKV_OK) {
            free(value);
            free(m);
            return NULL;
        }
        if (!value) value = malloc(m->reply.value_bytes + 1);
        CHECK_EQ(m->reply.offset, at);
        memcpy(value + at, m->body, m->bytes);
        at += m->bytes;
        bool more = m->reply.flags & FKV_REPLY_MORE;
        free(m);
        if (more) continue;
        CHECK_EQ(at, reply->value_bytes);
        return value;
    }
}
static inline void raw_expect(raw *c, const char *key, const char *value) {
    fkv_reply r;
    uint8_t *v = raw_get(c, key, &r);
    CHECK(v && r.value_bytes == strlen(value) && memcmp(v, value, r.value_bytes) == 0);
    free(v);
}
#endif
