/* resp_rig.h: Redis connections over a store whose answers come when, and in the order, the test says. */
#ifndef FARKV_TEST_RESP_RIG_H
#define FARKV_TEST_RESP_RIG_H
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../resp/internal.h"
#include "../check.h"

enum { ENTRIES = 256, CALLS = 1024, MEMORY = 1 << 30, SHARDS = 4, PAGE_ENTRIES = 3 };

/* ---- a store ---- */

typedef struct entry {
    char key[64];
    uint8_t *value;
    uint32_t bytes;
    uint64_t version, expiry_ms;
    uint8_t codec;
} entry;

typedef struct asked {
    resp_call *call;
    bool is_get, is_walk;
    session_ask a;
    char key[64];
    uint8_t *value;
} asked;

typedef struct world world;
struct world {
    entry entry[ENTRIES];
    asked call[CALLS];
    uint32_t calls, most; /* most: at once */
    uint64_t looked;      /* how often a value was looked for */
    uint64_t versions, seed;
    bool now;      /* GETs are answered at once */
    uint32_t room; /* calls beyond it are BUSY */
    resp_server *server;
    int port;
    lookup_result (*fields)(world *w, const asked *a); /* changes fields of a hash; NULL: none are changed */
};

static inline entry *find(world *w, const char *key) {
    for (int i = 0; i < ENTRIES; i++)
        if (w->entry[i].value && strcmp(w->entry[i].key, key) == 0) return &w->entry[i];
    return NULL;
}

static inline entry *make(world *w, const char *key) {
    entry *e = find(w, key);
    for (int i = 0; !e && i < ENTRIES; i++)
        if (!w->entry[i].value) e = &w->entry[i];
    CHECK(e);
    snprintf(e->key, sizeof e->key, "%s", key);
    return e;
}

static inline void set_value(world *w, entry *e, const void *bytes, uint32_t n) {
    uint8_t *value = malloc(n + 1u);
    CHECK(value);
    if (n) memcpy(value, bytes, n);
    value[n] = '\0'; /* for INCR, which reads text */
    free(e->value);
    e->value = value;
    e->bytes = n;
    e->version = ++w->versions;
}

static inline void put(world *w, const char *key, const void *bytes, uint32_t n) {
    set_value(w, make(w, key), bytes, n);
}

static inline uint64_t hash(void *ctx, const lookup_key *k) {
    (void)ctx;
    uint64_t h = 1469598103934665603u;
    for (uint32_t i = 0; i < k->count; i++) h = (h ^ k->bytes[i]) * 1099511628211u;
    return h ^ h << 32;
}

static inline void key_text(char out[64], const uint8_t *bytes, uint32_t n) {
    CHECK(n < 64);
    memcpy(out, bytes, n);
    out[n] = '\0';
}

static inline lookup_result result_of(const entry *e) {
    if (!e) return (lookup_result){ .status = FKV_NOT_FOUND };
    return (lookup_result){
        .status = FKV_OK, .codec = e->codec, .version = e->version, .value_bytes = e->bytes, .expiry_ms = e->expiry_ms
    };
}

static inline bool get_now(void *ctx, const lookup_key *k, uint8_t *to, size_t room, lookup_result *out) {
    world *w = ctx;
    char key[64];
    w->looked++;
    if (!w->now) return false;
    key_text(key, k->bytes, k->count);
    const entry *e = find(w, key);
    *out = result_of(e);
    if (e && e->bytes > room) out->status = FKV_BUFFER_TOO_SMALL;
    if (out->status == FKV_OK && e->bytes) memcpy(to, e->value, e->bytes);
    return true;
}

static inline asked *begin(world *w, const lookup_key *k, resp_call *call) {
    if (w->calls == w->room) return NULL;
    asked *a = &w->call[w->calls++];
    if (w->calls > w->most) w->most = w->calls;
    *a = (asked){ .call = call };
    key_text(a->key, k->bytes, k->count);
    return a;
}

static inline fkv_status get(void *ctx, const lookup_key *k, resp_call *call) {
    asked *a = begin(ctx, k, call);
    if (a) a->is_get = true;
    return a ? FKV_OK : FKV_BUSY;
}

static inline fkv_status change(void *ctx, const lookup_key *k, session_ask *ask, resp_call *call) {
    asked *a = begin(ctx, k, call);
    if (!a) return FKV_BUSY;
    a->a = *ask;
    a->value = malloc(ask->value_bytes + 1u);
    CHECK(a->value);
    if (ask->value_bytes) memcpy(a->value, ask->value, ask->value_bytes);
    return FKV_OK;
}

static inline fkv_status walk(void *ctx, session_ask *ask, resp_call *call) {
    CHECK(ask->shard < SHARDS && !(ask->flags & FKV_REQUEST_SCAN_SPACES && ask->space)); /* as wire.h has it */
    asked *a = begin(ctx, &(lookup_key){ .bytes = ask->key, .count = ask->key_bytes }, call);
    if (!a) return FKV_BUSY;
    a->is_walk = true;
    a->a = *ask;
    return FKV_OK;
}

/* Every SHARDS-th place is of one shard; a cursor is a place. A page has few entries, or none. */
static inline lookup_result walked(world *w, const asked *a, uint8_t *body) {
    lookup_result r = { .status = FKV_OK };
    uint32_t at = a->a.expected ? (uint32_t)a->a.expected : a->a.shard, looked = 0;
    for (; at < ENTRIES && looked < 2 * PAGE_ENTRIES && r.expiry_ms < PAGE_ENTRIES; at += SHARDS, looked++) {
        const entry *e = &w->entry[at];
        if (!e->value || strncmp(e->key, a->key, strlen(a->key)) != 0) continue;
        fkv_scan_entry s = {
            .version = e->version, .value_bytes = e->bytes, .key_bytes = (uint16_t)strlen(e->key), .codec = e->codec
        };
        memcpy(body + r.value_bytes, &s, sizeof s);
        memcpy(body + r.value_bytes + sizeof s, e->key, s.key_bytes);
        r.value_bytes += (uint32_t)sizeof s + s.key_bytes;
        r.expiry_ms++;
    }
    r.version = at < ENTRIES ? at : 0;
    if (a->a.op == FKV_OP_TALLY) r.value_bytes = 0;
    return r;
}

static inline lookup_result changed(world *w, const asked *a) {
    entry *e = find(w, a->key);
    if (fkv_op_is((uint8_t)a->a.op, FKV_FIELDS)) {
        CHECK(w->fields);
        return w->fields(w, a);
    }
    int64_t by, n;
    char text[32];
    switch (a->a.op) {
    case FKV_OP_CAS:
    case FKV_OP_CAS_DELETE:
        if ((e ? e->version : 0) != a->a.expected) return (lookup_result){ .status = FKV_VERSION_MISMATCH };
        break;
    case FKV_OP_DELETE:
    case FKV_OP_TOUCH:
        if (!e) return (lookup_result){ .status = FKV_NOT_FOUND };
        break;
    case FKV_OP_INCREMENT:
        memcpy(&by, &a->a.expected, sizeof by);
        n = e ? strtoll((char *)e->value, NULL, 10) : 0;
        if (e && e->bytes && (e->value[0] < '0' || e->value[0] > '9') && e->value[0] != '-')
            return (lookup_result){ .status = FKV_NOT_INTEGER };
        if (__builtin_add_overflow(n, by, &n)) return (lookup_result){ .status = FKV_NOT_INTEGER };
        put(w, a->key, text, (uint32_t)snprintf(text, sizeof text, "%lld", (long long)n));
        return (lookup_result){ .status = FKV_OK, .expiry_ms = (uint64_t)n };
    default: break;
    }
    if (a->a.op == FKV_OP_TOUCH) {
        e->expiry_ms = a->a.ttl_ms ? fkv_wall_ms() + a->a.ttl_ms : 0;
    } else if (a->a.op == FKV_OP_DELETE || a->a.op == FKV_OP_CAS_DELETE) {
        free(e->value);
        *e = (entry){ 0 };
    } else {
        put(w, a->key, a->value, a->a.value_bytes);
        find(w, a->key)->codec = a->a.codec;
        if (!(a->a.flags & FKV_REQUEST_KEEP_EXPIRY))
            find(w, a->key)->expiry_ms = a->a.ttl_ms ? fkv_wall_ms() + a->a.ttl_ms : 0;
    }
    return (lookup_result){ .status = FKV_OK };
}

/* Ends the i-th of the calls. */
static inline void answer(world *w, uint32_t i) {
    asked a = w->call[i];
    memmove(&w->call[i], &w->call[i + 1], (--w->calls - i) * sizeof a);
    const entry *e = a.is_get ? find(w, a.key) : NULL;
    uint8_t page[PAGE_ENTRIES * (sizeof(fkv_scan_entry) + sizeof e->key)];
    lookup_result r = a.is_walk ? walked(w, &a, page) : a.is_get ? result_of(e) : changed(w, &a);
    resp_call_ended(a.call, &r, r.value_bytes && a.is_walk ? page : e ? e->value : NULL);
    free(a.value);
}

static inline uint64_t next(world *w) {
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    return w->seed ^= w->seed << 17;
}

/* ---- a server and its clients ---- */

static inline void wake(void *ctx) { (void)ctx; }

static inline world *up(uint32_t connections) {
    world *w = calloc(1, sizeof *w);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(w && fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 64) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    w->port = at.sin_port;
    w->room = CALLS;
    w->seed = check_seed() | 1;
    resp_server_config c = { .listen = fd,
                             .max_connections = connections,
                             .memory_max = MEMORY,
                             .wake = wake,
                             .store = { .ctx = w,
                                        .hash = hash,
                                        .get_now = get_now,
                                        .get = get,
                                        .change = change,
                                        .walk = walk,
                                        .shards = SHARDS } };
    CHECK_EQ(resp_server_create(&c, &w->server), FKV_OK);
    return w;
}

static inline void down(world *w) {
    resp_server_close(w->server);
    while (w->calls) answer(w, 0);
    for (int i = 0; i < ENTRIES; i++) free(w->entry[i].value);
    free(w);
}

static inline int try_to_connect(const world *w, int fd) {
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = (in_port_t)w->port };
    return connect(fd, (struct sockaddr *)&at, sizeof at);
}

static inline int dial(const world *w) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && try_to_connect(w, fd) == 0);
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    return fd;
}

static inline void say(int fd, const char *text) {
    CHECK_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static inline void turns(world *w, int n) {
    while (n--) resp_server_turn(w->server);
}

/* The client is gone with a reset: nobody waits for what is under way. */
static inline void gone(world *w, int fd) {
    struct linger hard = { .l_onoff = 1 };
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    turns(w, 5);
}

/* Waits until so many calls are under way. */
static inline void until_calls(world *w, uint32_t n) {
    for (uint64_t begun = fkv_now_ns(); w->calls < n;) {
        turns(w, 1);
        CHECK(check_in_time(begun));
    }
    turns(w, 3);
    CHECK_EQ(w->calls, n);
}

/* Reads exactly this; answers calls in any order meanwhile if told so. */
static inline void hears_while(world *w, int fd, const char *expected, bool answers) {
    size_t n = strlen(expected), got = 0;
    char *text = calloc(1, n + 1);
    CHECK(text);
    for (uint64_t begun = fkv_now_ns(); got < n;) {
        turns(w, 1);
        if (answers && w->calls) answer(w, (uint32_t)(next(w) % w->calls));
        ssize_t r = recv(fd, text + got, n - got, 0);
        if (r > 0) got += (size_t)r;
        bool same = memcmp(text, expected, got) == 0;
        if (!same || r == 0) printf("heard: %s\nexpected: %s\n", text, expected);
        CHECK(same && r != 0 && check_in_time(begun));
    }
    free(text);
}
static inline void hears(world *w, int fd, const char *expected) { hears_while(w, fd, expected, false); }

/* What is said is answered so, in whatever order the store ends its calls. */
static inline void exchange(world *w, int fd, const char *said, const char *expected) {
    say(fd, said);
    hears_while(w, fd, expected, true);
}

static inline void hears_nothing(world *w, int fd) {
    char c;
    turns(w, 5);
    CHECK_EQ(recv(fd, &c, 1, 0), -1);
}

static inline void hears_the_end(world *w, int fd) {
    char c;
    ssize_t r = -1;
    for (uint64_t begun = fkv_now_ns(); r < 0; r = recv(fd, &c, 1, 0)) {
        turns(w, 1);
        CHECK(check_in_time(begun));
    }
    CHECK_EQ(r, 0);
}

/* A test of one connection: of `w`, by `fd`. */
#define CONVERSATION(name)                   \
    static void name##_of(world *w, int fd); \
    TEST(name) {                             \
        world *w = up(10);                   \
        int fd = dial(w);                    \
        name##_of(w, fd);                    \
        close(fd);                           \
        down(w);                             \
    }                                        \
    static void name##_of(world *w, int fd)

#endif
