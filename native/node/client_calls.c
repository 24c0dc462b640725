/* client_calls.c: the methods that ask for something: arguments in, an answer or an operation out. None throws for what
 * a user's operation may bring: that is an answer. */
#include <sched.h>
#include <string.h>
#include "client.h"

enum { PARTS = 4 };         /* of what is in flight, one is waited for */
enum { MORE_NS = 10000 };   /* and no longer than this, once something came */
enum { MANY_NS = 2000000 }; /* for so long at most the answers to one call are polled for, as they keep coming */

/* A number of milliseconds from `now`; what is not one is the client's own. */
static uint64_t deadline_of(client *c, napi_env env, napi_value v, uint64_t now) {
    double ms;
    if (napi_get_value_double(env, v, &ms) != napi_ok || !(ms > 0)) ms = c->timeout_ms;
    if (ms > 2147483647.0) ms = 2147483647.0;
    return now + (uint64_t)(ms * 1e6);
}

/* False when `target` is neither bytes nor undefined, or `offset` lies outside of it. */
static inline bool read_target(napi_env env, napi_value target, napi_value offset, uint8_t **to, size_t *room) {
    napi_typedarray_type type;
    napi_valuetype kind;
    void *bytes;
    double d;
    if (napi_get_typedarray_info(env, target, &type, room, &bytes, NULL, NULL) != napi_ok) {
        *to = NULL;
        *room = 0;
        return napi_typeof(env, target, &kind) == napi_ok && kind == napi_undefined;
    }
    if (type != napi_uint8_array || napi_get_value_double(env, offset, &d) != napi_ok) return false;
    if (!(d >= 0 && d <= (double)*room)) return false;
    *to = (uint8_t *)bytes + (size_t)d;
    *room -= (size_t)d;
    return true;
}

static napi_value answer_result(client *c, napi_env env, const lookup_result *r) {
    napi_value out;
    client_record(c->info, 0, r, CLIENT_NO_VALUE);
    if (r->status != FKV_OK) return client_refuse(env, r->status);
    /* a small integer: no object is made */
    return napi_create_uint32(env, r->value_bytes, &out) == napi_ok ? out : NULL;
}

static napi_value refuse(client *c, napi_env env, fkv_status s) {
    return answer_result(c, env, &(lookup_result){ .status = s });
}

/* ---- GET ---- */

/* Starts a GET that cannot be answered in place. */
static fkv_status start_get(client *c, napi_env env, const lookup_key *k, napi_value timeout, client_op **out) {
    uint64_t now = session_now(lookup_session(c->lookup));
    client_op *o = client_op_take(c, &c->gets);
    if (!o) return FKV_BUSY;
    fkv_status s = lookup_start(c->lookup, k, now, deadline_of(c, env, timeout, now), o, &o->get);
    if (s != FKV_OK) client_op_free(o);
    *out = o;
    return s;
}

typedef struct get_call {
    napi_value argv[5];
    client *c;
    client_key k;
    uint8_t *to; /* NULL: no target */
    size_t room;
} get_call;

/* The arguments of get and getSync. True: read. Else `*answer` is to be returned, which is NULL when an exception is
 * pending. */
static bool read_get(napi_env env, napi_callback_info info, get_call *g, napi_value *answer) {
    *answer = NULL;
    g->c = client_arguments(env, info, g->argv, 5);
    if (!g->c) return false;
    fkv_status s = g->c->lookup ? client_read_key(g->c, env, g->argv[0], g->argv[1], &g->k) : FKV_CLOSED;
    if (s == FKV_OK && !read_target(env, g->argv[2], g->argv[3], &g->to, &g->room)) s = FKV_BAD_REQUEST;
    if (s != FKV_OK) *answer = refuse(g->c, env, s);
    return s == FKV_OK;
}

napi_value client_get(napi_env env, napi_callback_info info) {
    get_call g;
    napi_value answer;
    lookup_result r;
    client_op *o;
    if (!read_get(env, info, &g, &answer)) return answer;
    if (g.to && lookup_direct(g.c->lookup, &g.k.key, g.to, g.room, &r)) return answer_result(g.c, env, &r);
    fkv_status s = start_get(g.c, env, &g.k.key, g.argv[4], &o);
    return s == FKV_OK ? client_pending(env, o) : refuse(g.c, env, s);
}

/* Polls once; now and then, when there is nothing, gives the processor to an owner that may share it. `i` counts the
 * caller's polls from 1. */
static void poll_or_yield(session *s, uint32_t i) {
    if (session_poll(s) == 0 && i % 16 == 0) sched_yield();
}

/* Polls until the operation has ended. */
static void spin(client *c, const client_op *o) {
    session *s = lookup_session(c->lookup);
    for (uint32_t i = 1; o->state == OP_OUTSTANDING; i++) {
        session_flush(s);
        poll_or_yield(s, i);
        if (i % 64 == 0) session_tick(s);
    }
}

napi_value client_get_sync(napi_env env, napi_callback_info info) {
    get_call g;
    napi_value answer;
    lookup_result r;
    client_op *o;
    if (!read_get(env, info, &g, &answer)) return answer;
    client *c = g.c;
    if (!g.to) return refuse(c, env, FKV_BAD_REQUEST);
    if (lookup_direct(c->lookup, &g.k.key, g.to, g.room, &r)) return answer_result(c, env, &r);
    fab_provider p = lookup_provider_of(c->lookup, lookup_shard_of(c->lookup, &g.k.key));
    if (p != FAB_NONE && !fab_can(p, FAB_CAN_SPIN)) return refuse(c, env, FKV_UNSUPPORTED);
    fkv_status s = start_get(c, env, &g.k.key, g.argv[4], &o);
    if (s != FKV_OK) return refuse(c, env, s);
    spin(c, o);
    r = o->result;
    if (r.status == FKV_OK && r.value_bytes > g.room) r.status = FKV_BUFFER_TOO_SMALL;
    if (r.status == FKV_OK && r.value_bytes) memcpy(g.to, o->value, r.value_bytes);
    client_op_free(o);
    return answer_result(c, env, &r);
}

/* ---- what travels by SEND ---- */

fkv_status client_send(client *c, session_ask *a, client_kind *k, client_op **out) {
    client_op *o = *out = client_op_take(c, k);
    if (!o) return FKV_BUSY;
    a->done = client_request_done;
    a->user = o;
    fkv_status status = session_request(lookup_session(c->lookup), a, &o->request);
    if (status != FKV_OK) client_op_free(o);
    return status;
}

static napi_value send_request(client *c, napi_env env, session_ask *a, napi_value timeout, client_kind *k) {
    client_op *o;
    a->deadline_ns = deadline_of(c, env, timeout, session_now(lookup_session(c->lookup)));
    fkv_status status = client_send(c, a, k, &o);
    return status == FKV_OK ? client_pending(env, o) : refuse(c, env, status);
}

static bool read_u32(napi_env env, napi_value v, uint32_t max, uint32_t *out) {
    return napi_get_value_uint32(env, v, out) == napi_ok && *out <= max;
}

static bool read_u64(napi_env env, napi_value v, uint64_t *out) {
    bool lossless;
    return napi_get_value_bigint_uint64(env, v, out, &lossless) == napi_ok && lossless;
}

/* space, key and value; the key lies in *k. False: *s says why. */
static bool read_change(client *c, napi_env env, const napi_value *argv, client_key *k, session_ask *a, fkv_status *s) {
    *s = c->lookup ? client_read_key(c, env, argv[0], argv[1], k) : FKV_CLOSED;
    if (*s != FKV_OK) return false;
    a->space = k->key.space;
    a->key = k->key.bytes;
    a->key_bytes = k->key.count;
    k->key.hash = lookup_hash(c->lookup, &k->key);
    k->key.hashed = true;
    a->shard = lookup_shard_of(c->lookup, &k->key);
    lookup_changes(c->lookup, &k->key);
    return true;
}

static bool read_ttl(napi_env env, napi_value v, session_ask *a) {
    double ttl;
    if (napi_get_value_double(env, v, &ttl) != napi_ok) return false;
    bool keeps = ttl == -1 && a->op == FKV_OP_CAS; /* KEEP_TTL */
    if (!keeps && !(ttl >= 0 && ttl <= (double)FKV_TTL_MAX)) return false;
    a->flags |= keeps ? FKV_REQUEST_KEEP_EXPIRY : 0;
    a->ttl_ms = keeps ? 0 : (uint64_t)ttl;
    return true;
}
static bool read_codec(napi_env env, napi_value v, session_ask *a) {
    uint32_t codec;
    if (!read_u32(env, v, UINT8_MAX, &codec)) return false;
    a->codec = (uint8_t)codec;
    return true;
}
/* ttlMs, userFlags, codec. */
static bool read_attributes(napi_env env, const napi_value *argv, session_ask *a) {
    return read_ttl(env, argv[0], a) && read_u32(env, argv[1], UINT32_MAX, &a->user_flags) &&
           read_codec(env, argv[2], a);
}

static fkv_status read_value(napi_env env, napi_value v, session_ask *a) {
    napi_typedarray_type type;
    size_t n;
    void *bytes;
    if (napi_get_typedarray_info(env, v, &type, &n, &bytes, NULL, NULL) != napi_ok) return FKV_BAD_REQUEST;
    if (type != napi_uint8_array) return FKV_BAD_REQUEST;
    if (n > FKV_VALUE_MAX) return FKV_VALUE_TOO_LARGE;
    a->value = bytes;
    a->value_bytes = (uint32_t)n;
    return FKV_OK;
}

napi_value client_put(napi_env env, napi_callback_info info) {
    napi_value argv[7];
    client *c = client_arguments(env, info, argv, 7);
    client_key k;
    fkv_status s;
    session_ask a = { .op = FKV_OP_PUT };
    if (!c) return NULL;
    if (!read_change(c, env, argv, &k, &a, &s)) return refuse(c, env, s);
    s = read_value(env, argv[2], &a);
    if (s != FKV_OK) return refuse(c, env, s);
    if (!read_attributes(env, argv + 3, &a)) return refuse(c, env, FKV_BAD_REQUEST);
    return send_request(c, env, &a, argv[6], &c->changes);
}

napi_value client_compare_and_swap(napi_env env, napi_callback_info info) {
    napi_value argv[8];
    client *c = client_arguments(env, info, argv, 8);
    client_key k;
    fkv_status s;
    napi_valuetype type;
    session_ask a = { .op = FKV_OP_CAS };
    if (!c) return NULL;
    if (!read_change(c, env, argv, &k, &a, &s)) return refuse(c, env, s);
    if (!read_u64(env, argv[2], &a.expected)) return refuse(c, env, FKV_BAD_REQUEST);
    if (napi_typeof(env, argv[3], &type) != napi_ok) return NULL;
    if (type == napi_undefined) {
        a.op = FKV_OP_CAS_DELETE;
    } else {
        s = read_value(env, argv[3], &a);
        if (s != FKV_OK) return refuse(c, env, s);
        if (!read_attributes(env, argv + 4, &a)) return refuse(c, env, FKV_BAD_REQUEST);
    }
    return send_request(c, env, &a, argv[7], &c->changes);
}

napi_value client_delete(napi_env env, napi_callback_info info) {
    napi_value argv[3];
    client *c = client_arguments(env, info, argv, 3);
    client_key k;
    fkv_status s;
    session_ask a = { .op = FKV_OP_DELETE };
    if (!c) return NULL;
    if (!read_change(c, env, argv, &k, &a, &s)) return refuse(c, env, s);
    return send_request(c, env, &a, argv[2], &c->changes);
}

napi_value client_increment(napi_env env, napi_callback_info info) {
    napi_value argv[6];
    client *c = client_arguments(env, info, argv, 6);
    client_key k;
    fkv_status s;
    int64_t by;
    bool lossless;
    session_ask a = { .op = FKV_OP_INCREMENT };
    if (!c) return NULL;
    if (!read_change(c, env, argv, &k, &a, &s)) return refuse(c, env, s);
    bool good = napi_get_value_bigint_int64(env, argv[2], &by, &lossless) == napi_ok && lossless &&
                read_ttl(env, argv[3], &a) && read_codec(env, argv[4], &a);
    if (!good) return refuse(c, env, FKV_BAD_REQUEST);
    memcpy(&a.expected, &by, sizeof by);
    return send_request(c, env, &a, argv[5], &c->changes);
}

napi_value client_append(napi_env env, napi_callback_info info) {
    napi_value argv[6];
    client *c = client_arguments(env, info, argv, 6);
    client_key k;
    fkv_status s;
    session_ask a = { .op = FKV_OP_APPEND };
    if (!c) return NULL;
    if (!read_change(c, env, argv, &k, &a, &s)) return refuse(c, env, s);
    s = read_value(env, argv[2], &a);
    if (s != FKV_OK) return refuse(c, env, s);
    if (!read_ttl(env, argv[3], &a) || !read_codec(env, argv[4], &a)) return refuse(c, env, FKV_BAD_REQUEST);
    return send_request(c, env, &a, argv[5], &c->changes);
}

napi_value client_touch(napi_env env, napi_callback_info info) {
    napi_value argv[4];
    client *c = client_arguments(env, info, argv, 4);
    client_key k;
    fkv_status s;
    session_ask a = { .op = FKV_OP_TOUCH };
    if (!c) return NULL;
    if (!read_change(c, env, argv, &k, &a, &s)) return refuse(c, env, s);
    if (!read_ttl(env, argv[2], &a)) return refuse(c, env, FKV_BAD_REQUEST);
    return send_request(c, env, &a, argv[3], &c->changes);
}

/* Bytes that keys begin with, or undefined. */
static bool read_prefix(napi_env env, napi_value v, session_ask *a) {
    napi_valuetype kind;
    napi_typedarray_type type;
    size_t n;
    void *bytes;
    if (napi_typeof(env, v, &kind) != napi_ok) return false;
    if (kind == napi_undefined) return true;
    if (napi_get_typedarray_info(env, v, &type, &n, &bytes, NULL, NULL) != napi_ok) return false;
    if (type != napi_uint8_array || n > FKV_KEY_MAX) return false;
    a->key = bytes;
    a->key_bytes = (uint32_t)n;
    return true;
}

enum { EVERY_SPACE = 1 << 16 }; /* in the place of a namespace: all of them */

napi_value client_scan(napi_env env, napi_callback_info info) {
    napi_value argv[7];
    client *c = client_arguments(env, info, argv, 7);
    uint32_t space;
    bool values;
    session_ask a = { .op = FKV_OP_SCAN };
    if (!c) return NULL;
    if (!c->lookup) return refuse(c, env, FKV_CLOSED);
    bool good = read_u32(env, argv[0], EVERY_SPACE, &space) && read_u32(env, argv[1], c->shards - 1, &a.shard) &&
                read_u64(env, argv[2], &a.expected) && read_u32(env, argv[3], UINT32_MAX, &a.value_bytes) &&
                napi_get_value_bool(env, argv[4], &values) == napi_ok && read_prefix(env, argv[6], &a);
    if (!good || a.value_bytes == 0) return refuse(c, env, FKV_BAD_REQUEST);
    a.flags = values ? FKV_REQUEST_SCAN_VALUES : 0;
    if (space == EVERY_SPACE)
        a.flags |= FKV_REQUEST_SCAN_SPACES;
    else
        a.space = (uint16_t)space;
    return send_request(c, env, &a, argv[5], NULL);
}

napi_value client_tally(napi_env env, napi_callback_info info) {
    napi_value argv[5];
    client *c = client_arguments(env, info, argv, 5);
    uint32_t space;
    session_ask a = { .op = FKV_OP_TALLY };
    if (!c) return NULL;
    if (!c->lookup) return refuse(c, env, FKV_CLOSED);
    bool good = read_u32(env, argv[0], UINT16_MAX, &space) && read_u32(env, argv[1], c->shards - 1, &a.shard) &&
                read_u64(env, argv[2], &a.expected) && read_prefix(env, argv[4], &a);
    if (!good) return refuse(c, env, FKV_BAD_REQUEST);
    a.space = (uint16_t)space;
    return send_request(c, env, &a, argv[3], NULL);
}

napi_value client_shard_of(napi_env env, napi_callback_info info) {
    napi_value argv[2];
    client *c = client_arguments(env, info, argv, 2);
    client_key k;
    if (!c) return NULL;
    if (!c->lookup) return client_refuse(env, FKV_CLOSED);
    fkv_status s = client_read_key(c, env, argv[0], argv[1], &k);
    return s == FKV_OK ? client_answer(env, lookup_shard_of(c->lookup, &k.key)) : client_refuse(env, s);
}

napi_value client_hash_of(napi_env env, napi_callback_info info) {
    napi_value argv[2], hash;
    client *c = client_arguments(env, info, argv, 2);
    client_key k;
    if (!c) return NULL;
    if (!c->lookup) return client_refuse(env, FKV_CLOSED);
    fkv_status s = client_read_key(c, env, argv[0], argv[1], &k);
    if (s != FKV_OK) return client_refuse(env, s);
    return napi_create_bigint_uint64(env, lookup_hash(c->lookup, &k.key), &hash) == napi_ok ? hash : NULL;
}

/* ---- the rest ---- */

napi_value client_cancel(napi_env env, napi_callback_info info) {
    napi_value argv[1], undefined;
    client *c = client_arguments(env, info, argv, 1);
    uint32_t id;
    if (!c) return NULL;
    client_op *o = c->lookup && napi_get_value_uint32(env, argv[0], &id) == napi_ok ? client_op_of(c, id) : NULL;
    if (o && o->state == OP_OUTSTANDING) {
        if (o->get)
            lookup_cancel(o->get, FKV_ABORTED);
        else
            session_cancel(lookup_session(c->lookup), o->request, FKV_ABORTED);
    }
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

/* ---- flush ---- */

/* After a flush, of all that was asked for. That each was answered by then means that the owner had this processor
 * meanwhile: it needs no doorbell before the last. Where it has another one, each half is asked for while it answers
 * the other. Tried anew now and then, for either can change. */
static void note_first_look(client_kind *k, uint32_t asked) {
    enum { FLUSHES = 1024 };
    if (asked < 2 * CLIENT_HALF_MIN) return;
    if (k->outstanding == 0)
        k->apart = 0;
    else if (++k->apart == FLUSHES)
        k->apart = CLIENT_APART - 2;
}

/* Only at a flush, when the program has asked for all that it asks for in this turn: were each call polled for, calls
 * that could go together would go one after the other. The answers to one call for many keys come in few large pieces,
 * and are polled for until all are there; of other operations in flight a part is enough to go on with, so that the
 * owner has the rest meanwhile.
 *
 * It looks once in any case: an owner that was woken on this processor has answered before the flush came back. */
static void poll_for(client *c, client_kind *k) {
    session *s = lookup_session(c->lookup);
    bool many = k->outstanding <= k->many;
    uint32_t left = k->outstanding, enough = left / PARTS + 1;
    k->many = 0;
    if (!left || c->ready_count || k->poller.how == POLLING_NEVER) return;
    uint64_t now = session_now(s), end = now + MANY_NS, came = now;
    poller_found(&k->poller, now); /* what the program did meanwhile is no wait */
    session_poll(s);
    note_first_look(k, left);
    for (;; session_poll(s)) {
        now = session_now(s);
        if (k->outstanding != left) {
            poller_found(&k->poller, now);
            left = k->outstanding;
            came = now;
        }
        if (many ? !left || now >= end : c->ready_count >= enough || (c->ready_count && now - came >= MORE_NS)) return;
        poll_step step = poller_nothing(&k->poller, now);
        if (step == POLL_SLEEP) return;
        poller_step(step);
    }
}

napi_value client_flush(napi_env env, napi_callback_info info) {
    client *c = client_arguments(env, info, NULL, 0);
    if (!c) return NULL;
    if (c->lookup) {
        session_flush(lookup_session(c->lookup));
        poll_for(c, &c->gets);
        poll_for(c, &c->changes);
    }
    return client_answer(env, c->ready_count);
}
