/* dataplane_rig.h: a data plane and raw clients for its tests. The client speaks wire.h over fabric.h by hand, so that
 * it can also do what a real one never would. Waits end with the event, or after check_patience_ms() with a failed check. */
#ifndef FARKV_TEST_DATAPLANE_RIG_H
#define FARKV_TEST_DATAPLANE_RIG_H
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../dataplane/dataplane.h"
#include "../sim/sim.h"
#include "../../wire/wire.h"
#include "../check.h"

enum { RIG_SHARDS = 4, RIG_WAIT_MS = 60000 };
static const fkv_seed RIG_SEED = { 0x1234, 0x5678 }, RIG_SECRET = { 0x9abc, 0xdef0 };

/* ---- calls that are waited for ---- */

typedef struct rig_call {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    fkv_status status;
    void *result;
} rig_call;

static inline void rig_done(void *ctx, fkv_status s, void *result) {
    rig_call *c = ctx;
    pthread_mutex_lock(&c->lock);
    c->done = true;
    c->status = s;
    c->result = result;
    pthread_cond_signal(&c->cond);
    pthread_mutex_unlock(&c->lock);
}
static inline void rig_call_init(rig_call *c) {
    *c = (rig_call){ .done = false };
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->cond, NULL);
}
static inline bool rig_is_done(rig_call *c) {
    pthread_mutex_lock(&c->lock);
    bool done = c->done;
    pthread_mutex_unlock(&c->lock);
    return done;
}
static inline fkv_status rig_wait(rig_call *c) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(check_patience_ms() / 1000) + 1;
    pthread_mutex_lock(&c->lock);
    while (!c->done) CHECK(pthread_cond_timedwait(&c->cond, &c->lock, &until) == 0);
    pthread_mutex_unlock(&c->lock);
    return c->status;
}

/* ---- the data plane ---- */

typedef struct rig {
    fab_provider provider;
    dataplane_config config;
    dataplane_listen listen[2];
    char path[2][64];
    dataplane *d;
    sim_world *sim;
    bool encrypted;          /* set between rig_init and rig_start: over tcp */
    bool owns_sim, sim_over; /* sim_over: atomic */
    pthread_t sim_time;
    uint32_t epoch; /* of the shards that rig_open_shard opens */
    bool durable;   /* so are they */
} rig;

/* Owner and clients have threads of their own here, so the world's time goes on with the machine's: would it jump to
 * the next event, that would often be a time-out of what the other thread has not come to yet. */
static inline uint64_t rig_real_ns(void) { /* which no test moves */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline void *rig_sim_time(void *arg) {
    rig *r = arg;
    uint64_t ahead = sim_now(r->sim) - rig_real_ns();
    while (!__atomic_load_n(&r->sim_over, __ATOMIC_ACQUIRE)) {
        sim_run_until(r->sim, rig_real_ns() + ahead);
        struct timespec tick = { .tv_nsec = 20000 };
        nanosleep(&tick, NULL);
    }
    return NULL;
}

enum { RIG_HANGS_S = 300 }; /* from one rig to the next: longer than a test takes on a busy machine */

/* Over sim it makes a world of its own, unless one is given. */
static inline void rig_init(rig *r, fab_provider p, sim_world *sim) {
    static unsigned number;
    alarm(RIG_HANGS_S);
    *r = (rig){ .provider = p, .sim = sim, .epoch = DATAPLANE_EPOCH_FIRST };
    if (p == FAB_SIM && !sim) {
        r->sim = sim = sim_world_create(check_seed());
        r->owns_sim = true;
        CHECK_EQ(pthread_create(&r->sim_time, NULL, rig_sim_time, r), 0);
    }
    number++;
    for (int i = 0; i < 2; i++) {
        if (p == FAB_SHM)
            snprintf(r->path[i], sizeof r->path[i], "unix:/tmp/farkv-test-%d-%u-%d.sock", (int)getpid(), number, i);
        else if (p == FAB_TCP)
            snprintf(r->path[i], sizeof r->path[i], "127.0.0.1:0");
        else
            snprintf(r->path[i], sizeof r->path[i], "sim:dataplane-%u-%d", number, i);
        r->listen[i] = (dataplane_listen){ p, (uint32_t)i, r->path[i] };
    }
    r->config = (dataplane_config){ .server_incarnation = 77,
                                    .hash_seed = RIG_SEED,
                                    .ticket_secret = RIG_SECRET,
                                    .shards = RIG_SHARDS,
                                    .workers = 1,
                                    .lease_ms = 200,
                                    .drift_ppm = 1000,
                                    .max_clients = 64,
                                    .client_quota = 256,
                                    .polling = POLLING_NEVER,
                                    .listen = r->listen,
                                    .listens = 1 };
}
static inline void rig_start(rig *r) {
    char why[256];
    for (int i = 0; i < 2 && r->encrypted; i++) snprintf(r->path[i], sizeof r->path[i], "tls:127.0.0.1:0");
    CHECK_EQ(dataplane_create(&r->config, &r->d), FKV_OK);
    fkv_status s = dataplane_start(r->d, why, sizeof why);
    if (s != FKV_OK) fprintf(stderr, "%s\n", why);
    CHECK_EQ(s, FKV_OK);
}
static inline fkv_status rig_open_shard(rig *r, uint32_t shard, uint32_t worker, uint64_t memory,
                                        dataplane_layout **layout) {
    rig_call c;
    rig_call_init(&c);
    dataplane_shard s = { .shard = shard,
                          .worker = worker,
                          .epoch = r->epoch,
                          .incarnation = 1000 + shard,
                          .memory_bytes = memory,
                          .durable = r->durable };
    dataplane_open_shard(r->d, &s, rig_done, &c);
    fkv_status status = rig_wait(&c);
    if (layout)
        *layout = c.result;
    else
        free(c.result);
    return status;
}
static inline fkv_status rig_shard_call(rig *r, void (*f)(dataplane *, uint32_t, dataplane_done, void *),
                                        uint32_t shard) {
    rig_call c;
    rig_call_init(&c);
    f(r->d, shard, rig_done, &c);
    fkv_status s = rig_wait(&c);
    free(c.result);
    return s;
}
static inline void rig_serve(rig *r, uint32_t shard) {
    CHECK_EQ(rig_shard_call(r, dataplane_serve_shard, shard), FKV_OK);
}
static inline void rig_close(rig *r, uint32_t shard) {
    CHECK_EQ(rig_shard_call(r, dataplane_close_shard, shard), FKV_OK);
}
static inline dataplane_stats *rig_stats(rig *r) {
    rig_call c;
    rig_call_init(&c);
    dataplane_get_stats(r->d, rig_done, &c);
    CHECK_EQ(rig_wait(&c), FKV_OK);
    return c.result;
}
/* Started, with `shards` shards of `memory` bytes served by worker 0. */
static inline void rig_up(rig *r, uint32_t shards, uint64_t memory) {
    rig_start(r);
    for (uint32_t i = 0; i < shards; i++) {
        CHECK_EQ(rig_open_shard(r, i, 0, memory, NULL), FKV_OK);
        rig_serve(r, i);
    }
}
/* Its world, if that is its own, goes on for others. */
static inline void rig_dies(rig *r) { dataplane_destroy(r->d); }
static inline void rig_end_world(rig *r) {
    if (!r->owns_sim) return;
    r->owns_sim = false;
    __atomic_store_n(&r->sim_over, true, __ATOMIC_RELEASE);
    pthread_join(r->sim_time, NULL);
    sim_world_destroy(r->sim);
}
static inline void rig_down(rig *r) {
    rig_dies(r);
    rig_end_world(r);
}

/* ---- a thread that is held up ---- */

typedef struct rig_hold {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool here, go;
} rig_hold;

static inline void rig_hold_here(void *ctx, fkv_status s, void *result) {
    rig_hold *h = ctx;
    (void)s;
    free(result);
    pthread_mutex_lock(&h->lock);
    h->here = true;
    pthread_cond_broadcast(&h->cond);
    while (!h->go) pthread_cond_wait(&h->cond, &h->lock);
    pthread_mutex_unlock(&h->lock);
}
/* By a shard that is open there. Worker 0's thread stands still in the middle of a turn, after its beginning, until it is let go. */
static inline void rig_hold_up_by(rig_hold *h, rig *r, uint32_t shard) {
    *h = (rig_hold){ .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
    dataplane_get_layout(r->d, shard, rig_hold_here, h);
    pthread_mutex_lock(&h->lock);
    while (!h->here) pthread_cond_wait(&h->cond, &h->lock);
    pthread_mutex_unlock(&h->lock);
}
static inline void rig_hold_up(rig_hold *h, rig *r) { rig_hold_up_by(h, r, 0); }
static inline void rig_let_go(rig_hold *h) {
    pthread_mutex_lock(&h->lock);
    h->go = true;
    pthread_cond_broadcast(&h->cond);
    pthread_mutex_unlock(&h->lock);
}

/* ---- a raw client ---- */

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
    fab_options o = { .provider = r->provider, .op_timeout_ms = 20000 };
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
/* Runs the tests over each provider, or the one that FARKV_PROVIDER names. */
static inline int rig_main(int argc, char **argv, fab_provider *provider, void (*tests)(void)) {
    static const fab_provider providers[] = { FAB_SHM, FAB_TCP, FAB_SIM };
    const char *only = getenv("FARKV_PROVIDER");
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++) {
        if (only && strcmp(only, fab_provider_name(providers[i])) != 0) continue;
        *provider = providers[i];
        tests();
    }
    return check_end(argc, argv);
}
#endif
