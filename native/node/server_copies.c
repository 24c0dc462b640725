/* server_copies.c: shards that are being copied to here (client/copy.h), as methods of the class DataPlane
 * (server_binding.c).
 *
 * A copy has a thread, which may have lent memory to the data plane when it is told to stop: it ends when that is given
 * back, which takes as long as memory for the table does. The event loop does not wait for it: Raft's heartbeats and
 * the renewal of leases run there. stopCopy tells the thread and answers when it has nothing under way; then it is
 * joined, which takes no time; so it is when followCopy has settled. Until then the copy stays in the list, so that whoever ends the data plane finds every
 * thread that uses it.
 *
 * The list is the event loop's until the data plane is being closed, and from then on that of whoever closes it. */
#include <stdlib.h>
#include "server.h"

typedef struct copying {
    struct copying *next;
    uint32_t shard;
    uint64_t number; /* never used twice: what is said late of one copy is not of the next of the same shard */
    bool stopping;
    shard_copy *copy;
} copying;

static copying **find_copy(server *s, uint32_t shard) {
    copying **at = &s->copies;
    while (*at && (*at)->shard != shard) at = &(*at)->next;
    return at;
}

static void stop_copy_at(copying **at) {
    copying *k = *at;
    *at = k->next;
    shard_copy_stop(k->copy);
    free(k);
}

void server_stop_copies(server *s) {
    copying *all = __atomic_exchange_n(&s->copies, NULL, __ATOMIC_ACQ_REL);
    while (all) stop_copy_at(&all);
}

void server_copy_stopped(const call *c) {
    server *s = c->s;
    if (s->closing) return;
    copying **at = find_copy(s, c->shard);
    if (*at && (*at)->number == c->number) stop_copy_at(at);
}

napi_value server_copy_shard(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], promise;
    server_copy_options o;
    server *s = server_self(env, info, &self, argv, 1);
    if (!s || !server_read_copy(env, argv[0], &s->options.config, &s->secret, &o)) return NULL;
    call *c = server_begin(env, s, CALL_NOTHING, &promise);
    if (!c) return promise;
    copying *k = *find_copy(s, o.config.shard) ? NULL : calloc(1, sizeof *k);
    o.config.to = s->d;
    fkv_status status = k ? shard_copy_start(&o.config, server_done, c, &k->copy) : FKV_BUSY;
    if (status != FKV_OK) {
        free(k);
        server_done(c, status, NULL);
        return promise;
    }
    k->shard = o.config.shard;
    k->number = ++s->copies_begun;
    k->next = s->copies;
    s->copies = k;
    return promise;
}

/* A call of `kind` that is about the copy of a shard, whose number is the only argument. Returns NULL with *promise to
 * be returned, which is NULL when an exception is pending; *k is NULL where nothing is copied. */
static call *begin_on_copy(napi_env env, napi_callback_info info, call_kind kind, copying **k, napi_value *promise) {
    napi_value self, argv[1];
    uint32_t number;
    *promise = NULL;
    server *s = server_self(env, info, &self, argv, 1);
    if (!s) return NULL;
    if (napi_get_value_uint32(env, argv[0], &number) != napi_ok) {
        binding_bad_option(env, "shard must be an integer");
        return NULL;
    }
    *k = s->closing ? NULL : *find_copy(s, number);
    return server_begin(env, s, kind, promise);
}

napi_value server_follow_copy(napi_env env, napi_callback_info info) {
    napi_value promise;
    copying *k;
    call *c = begin_on_copy(env, info, CALL_FOLLOWED, &k, &promise);
    if (!c) return promise;
    if (k && !k->stopping) {
        c->shard = k->shard;
        c->number = k->number;
        shard_copy_follow(k->copy, server_done, c);
    } else {
        server_done(c, FKV_ABORTED, NULL);
    }
    return promise;
}

napi_value server_stop_copy(napi_env env, napi_callback_info info) {
    napi_value promise;
    copying *k;
    call *c = begin_on_copy(env, info, CALL_STOPPED, &k, &promise);
    if (!c) return promise;
    if (!k) {
        server_done(c, FKV_OK, NULL);
        return promise;
    }
    k->stopping = true;
    c->shard = k->shard;
    c->number = k->number;
    c->waiter = (shard_copy_waiter){ .ended = server_done, .ctx = c };
    shard_copy_cancel(k->copy, &c->waiter);
    return promise;
}
