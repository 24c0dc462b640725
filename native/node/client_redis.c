/* client_redis.c: listenRedis, endRedis, closeRedis: a Redis gateway (native/resp) on a client's event loop, over the
 * client's own lookup. No command enters JavaScript.
 *
 *   poll      the gateway's sockets have something: a turn
 *   prepare   calls have ended since: a turn, before the client sends what was asked for and the loop sleeps
 *   idle      active while there is more to do at once
 *
 * A call is a client_op that has an owner: it is not drained by JavaScript. What has ended waits in `ended` for the next
 * turn, so that the gateway is never entered from inside the lookup or the session.
 *
 * Life: the gateway ends with closeRedis or with its client. Its handles are among those the client waits for. Calls
 * under way end later, and find no gateway: nothing but their memory is left then.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../resp/server.h"
#include "client.h"

struct client_redis {
    client *c;
    resp_server *server;
    uv_poll_t poll;
    uv_prepare_t prepare;
    uv_idle_t idle;
    uint32_t handles;
    bool more;
    fkv_list ended;
};

static void never_mind(uv_idle_t *idle) { (void)idle; }

/* ---- the store ---- */

static uint64_t store_hash(void *ctx, const lookup_key *k) { return lookup_hash(((client *)ctx)->lookup, k); }

static bool store_get_now(void *ctx, const lookup_key *k, uint8_t *to, size_t room, lookup_result *out) {
    return lookup_direct(((client *)ctx)->lookup, k, to, room, out);
}

static uint64_t deadline(const client *c, uint64_t now) { return now + (uint64_t)(c->timeout_ms * 1e6); }

static void hand_over(client_op *o) {
    resp_call_ended(o->owner, &o->result, o->value);
    client_op_free(o);
}

static void op_ended(client_op *o) {
    client_redis *r = o->c->redis;
    if (!r) {
        hand_over(o);
        return;
    }
    list_remove(&o->link);
    list_push(&r->ended, &o->link);
    r->more = true;
    uv_idle_start(&r->idle, never_mind);
}

static client_op *op_take(client *c, resp_call *call) {
    client_op *o = client_op_take(c, NULL);
    if (!o) return NULL;
    o->ended = op_ended;
    o->owner = call;
    return o;
}

static fkv_status store_get(void *ctx, const lookup_key *k, resp_call *call) {
    client *c = ctx;
    uint64_t now = session_now(lookup_session(c->lookup));
    client_op *o = op_take(c, call);
    if (!o) return FKV_BUSY;
    fkv_status s = lookup_start(c->lookup, k, now, deadline(c, now), o, &o->get);
    if (s != FKV_OK) client_op_free(o);
    return s;
}

static fkv_status store_ask(client *c, client_op *o, session_ask *a) {
    session *s = lookup_session(c->lookup);
    a->deadline_ns = deadline(c, session_now(s));
    a->done = client_request_done;
    a->user = o;
    fkv_status status = session_request(s, a, &o->request);
    if (status != FKV_OK) client_op_free(o);
    return status;
}

static fkv_status store_change(void *ctx, const lookup_key *k, session_ask *a, resp_call *call) {
    client *c = ctx;
    lookup_key key = *k;
    client_op *o = op_take(c, call);
    if (!o) return FKV_BUSY;
    key.hash = lookup_hash(c->lookup, k);
    key.hashed = true;
    lookup_changes(c->lookup, &key);
    a->space = key.space;
    a->key = key.bytes;
    a->key_bytes = key.count;
    a->shard = lookup_shard_of(c->lookup, &key);
    return store_ask(c, o, a);
}

static fkv_status store_walk(void *ctx, session_ask *a, resp_call *call) {
    client *c = ctx;
    client_op *o = op_take(c, call);
    if (!o) return FKV_BUSY;
    a->shard += lookup_first_shard(c->lookup);
    return store_ask(c, o, a);
}

/* ---- turns ---- */

static void hand_over_all(client_redis *r) {
    while (!list_empty(&r->ended)) hand_over(LIST_OF(r->ended.next, client_op, link));
}

static void turn(client_redis *r) {
    hand_over_all(r);
    r->more = resp_server_turn(r->server) || !list_empty(&r->ended);
    if (r->more)
        uv_idle_start(&r->idle, never_mind);
    else
        uv_idle_stop(&r->idle);
}

static void sockets_ready(uv_poll_t *p, int status, int events) {
    (void)status, (void)events;
    turn(p->data);
}

static void before_sleep(uv_prepare_t *p) {
    client_redis *r = p->data;
    if (r->more) turn(r);
}

static void woken(void *ctx) { (void)ctx; /* calls end in hand_over_all alone, and a turn follows */ }

/* ---- life ---- */

static void handle_closed(uv_handle_t *h) {
    client_redis *r = h->data;
    client *c = r->c;
    if (--r->handles == 0) free(r);
    client_handle_closed(c);
}

void client_redis_close(client *c) {
    client_redis *r = c->redis;
    if (!r) return;
    hand_over_all(r);
    c->redis = NULL;
    uv_poll_stop(&r->poll); /* before its descriptor is closed */
    resp_server_close(r->server);
    uv_close((uv_handle_t *)&r->poll, handle_closed);
    uv_close((uv_handle_t *)&r->prepare, handle_closed);
    uv_close((uv_handle_t *)&r->idle, handle_closed);
}

/* A socket that listens there; negative: -errno. */
static int listening(const char *host, uint16_t port, uint16_t *bound) {
    struct addrinfo hints = { .ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
                    *found;
    struct sockaddr_storage own;
    socklen_t n = sizeof own;
    char text[8];
    int on = 1, error = 0;
    snprintf(text, sizeof text, "%u", port);
    if (getaddrinfo(host, text, &hints, &found) != 0) return -EADDRNOTAVAIL;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &n) != 0)
        error = errno;
    freeaddrinfo(found);
    if (error) {
        if (fd >= 0) close(fd);
        return -error;
    }
    *bound = ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                             : ((struct sockaddr_in *)&own)->sin_port);
    return fd;
}

/* The status of a gateway that is there then. */
static fkv_status start(client *c, const char *host, uint16_t port, resp_server_config *config, uint16_t *bound) {
    client_redis *r = calloc(1, sizeof *r);
    int fd = r ? listening(host, port, bound) : -ENOMEM;
    fkv_status s = fd < 0 ? fkv_status_of_errno(fd) : FKV_OK;
    config->listen = fd;
    config->ctx = r;
    if (s == FKV_OK) s = resp_server_create(config, &r->server);
    if (s == FKV_OK && uv_poll_init(c->loop, &r->poll, resp_server_fd(r->server)) != 0) {
        resp_server_close(r->server);
        s = FKV_NO_MEMORY;
    }
    if (s != FKV_OK) {
        free(r);
        return s;
    }
    r->c = c;
    list_init(&r->ended);
    uv_prepare_init(c->loop, &r->prepare);
    uv_idle_init(c->loop, &r->idle);
    r->poll.data = r->prepare.data = r->idle.data = r;
    r->handles = 3;
    c->handles += 3;
    uv_poll_start(&r->poll, UV_READABLE, sockets_ready);
    uv_prepare_start(&r->prepare, before_sleep); /* it runs before the client's, which was started earlier */
    c->redis = r;
    return FKV_OK;
}

/* Of this machine, or of the container, for the connections: a quarter. */
static uint64_t memory_max(void) {
    uint64_t all = uv_get_total_memory(), allowed = uv_get_constrained_memory();
    return (allowed && allowed < all ? allowed : all) / 4;
}

/* Descriptors may be had for so many, beside those of the client and of Node. */
static uint64_t connections_max(void) {
    enum { OTHERS = 64 };
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur == RLIM_INFINITY) return UINT32_MAX;
    return l.rlim_cur > OTHERS ? l.rlim_cur - OTHERS : 1;
}

/* ---- methods ---- */

napi_value client_listen_redis(napi_env env, napi_callback_info info) {
    napi_value argv[1];
    client *c = client_arguments(env, info, argv, 1);
    char host[256];
    uint64_t port, connections, space;
    uint16_t bound = 0;
    if (!c || !binding_text(env, argv[0], "host", host, sizeof host)) return NULL;
    if (!binding_number(env, argv[0], "port", 0, UINT16_MAX, &port)) return NULL;
    if (!binding_number(env, argv[0], "maxConnections", 1, 1 << 20, &connections)) return NULL;
    if (!binding_number(env, argv[0], "namespace", 0, UINT16_MAX, &space)) return NULL;
    if (connections > connections_max()) connections = connections_max();
    resp_server_config config = { .max_connections = (uint32_t)connections,
                                  .memory_max = memory_max(),
                                  .space = (uint16_t)space,
                                  .wake = woken,
                                  .store = { .ctx = c,
                                             .hash = store_hash,
                                             .get_now = store_get_now,
                                             .get = store_get,
                                             .change = store_change,
                                             .walk = store_walk,
                                             .shards = c->lookup ? c->shards - lookup_first_shard(c->lookup) : 0 } };
    fkv_status s = !c->lookup ? FKV_CLOSED : c->redis ? FKV_BAD_REQUEST : FKV_OK;
    if (s == FKV_OK) s = start(c, host, (uint16_t)port, &config, &bound);
    if (s != FKV_OK) {
        binding_throw(env, s, NULL);
        return NULL;
    }
    return client_answer(env, bound);
}

napi_value client_end_redis(napi_env env, napi_callback_info info) {
    client *c = client_arguments(env, info, NULL, 0);
    if (!c) return NULL;
    if (!c->redis) return client_answer(env, 0);
    resp_server_end(c->redis->server);
    turn(c->redis);
    return client_answer(env, (uint32_t)resp_server_get_stats(c->redis->server).connections);
}

napi_value client_close_redis(napi_env env, napi_callback_info info) {
    napi_value undefined;
    client *c = client_arguments(env, info, NULL, 0);
    if (!c) return NULL;
    client_redis_close(c);
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}
