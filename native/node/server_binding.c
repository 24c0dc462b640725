/* server_binding.c: the class DataPlane (addon.ts): calls in, promises out.
 *
 * A call that ends later becomes a `call`; the data plane ends it on one of its threads, from where it is posted to the
 * environment's event loop through a thread-safe function and settled there. Pending calls keep the event loop alive, a running
 * data plane alone does not.
 *
 * Life. The struct has two holders: the JavaScript object and the thread-safe function; it is freed when both are gone. From
 * start to the end of close the object is referenced, so it is not collected while its threads run. close() runs dataplane_stop
 * on a thread of libuv's pool. When the environment ends first (process.exit, worker.terminate), the cleanup hook stops
 * everything before Node.js takes the thread-safe function away. */
#include <stdlib.h>
#include "server.h"

typedef struct server {
    dataplane *d;
    server_options options;
    int holders;
    napi_threadsafe_function to_loop;   /* from start to the end of close */
    napi_ref self;                      /* the same time */
    uint32_t pending;                   /* calls not yet settled */
    bool started, closing, closed;
    napi_async_work stopping;
    struct copying *copies;             /* atomic: its head; the list is the event loop's until close */
    napi_deferred *waiting;             /* promises of close() */
    uint32_t waiting_count;
} server;

/* A shard that is being copied to here. */
typedef struct copying {
    struct copying *next;
    uint32_t shard;
    shard_copy *copy;
} copying;

typedef enum { CALL_NOTHING, CALL_LAYOUT, CALL_STATS, CALL_COPIED, CALL_NOTICE, CALL_UNREACHABLE } call_kind;
typedef struct call {
    server *s;
    call_kind kind;
    napi_deferred deferred;
    fkv_status status;
    void *result;
    uint32_t shard, layout_epoch;       /* CALL_NOTICE */
    fab_provider provider;              /* CALL_UNREACHABLE */
} call;

static void drop(server *s) {
    if (--s->holders) return;
    dataplane_destroy(s->d);
    free(s->waiting);
    free(s);
}

/* ---- on the event loop ---- */

/* The thread-safe function goes when no thread runs any more and the last pending call was settled. */
static void let_loop_go(server *s) {
    if ((s->started && !s->closed) || s->pending || !s->to_loop) return;
    napi_threadsafe_function f = s->to_loop;
    s->to_loop = NULL;
    napi_release_threadsafe_function(f, napi_tsfn_release);
}

static void settle(napi_env env, call *c) {
    server *s = c->s;
    napi_value value = NULL;
    if (c->status == FKV_OK) {
        if (c->kind == CALL_LAYOUT) value = server_layout(env, c->result);
        else if (c->kind == CALL_STATS) value = server_stats(env, c->result);
        else if (c->kind == CALL_COPIED && c->result) value = server_copy_stats(env, c->result);
        else napi_get_undefined(env, &value);
    }
    if (value) {
        napi_resolve_deferred(env, c->deferred, value);
    } else {
        bool pending = false;
        napi_value error = NULL;
        napi_is_exception_pending(env, &pending);
        if (pending) napi_get_and_clear_last_exception(env, &error);
        else error = binding_error(env, c->status == FKV_OK ? FKV_NO_MEMORY : c->status, NULL);
        if (error) napi_reject_deferred(env, c->deferred, error);
    }
    if (--s->pending == 0) napi_unref_threadsafe_function(env, s->to_loop);
    let_loop_go(s);
}

static bool is_notice(const call *c) { return c->kind == CALL_NOTICE || c->kind == CALL_UNREACHABLE; }

static void notify(napi_env env, const call *c) {
    napi_value self, callback, argv[2], error;
    napi_valuetype type;
    size_t argc = c->kind == CALL_NOTICE ? 2 : 1;
    if (!c->s->self || napi_get_reference_value(env, c->s->self, &self) != napi_ok || !self) return;
    if (napi_get_named_property(env, self, c->kind == CALL_NOTICE ? "onLayout" : "onUnreachable", &callback) != napi_ok) return;
    if (napi_typeof(env, callback, &type) != napi_ok || type != napi_function) return;
    if (c->kind == CALL_UNREACHABLE) {
        if (napi_create_string_utf8(env, fab_provider_name(c->provider), NAPI_AUTO_LENGTH, &argv[0]) != napi_ok) return;
    } else {
        if (napi_create_uint32(env, c->shard, &argv[0]) != napi_ok) return;
        if (napi_create_uint32(env, c->layout_epoch, &argv[1]) != napi_ok) return;
    }
    if (napi_call_function(env, self, callback, argc, argv, NULL) != napi_pending_exception) return;
    if (napi_get_and_clear_last_exception(env, &error) == napi_ok) napi_fatal_exception(env, error);
}

/* env is NULL when the environment is going away: then there is nobody to tell. */
static void on_loop(napi_env env, napi_value function, void *context, void *item) {
    (void)function, (void)context;
    call *c = item;
    if (env && is_notice(c)) notify(env, c);
    else if (env) settle(env, c);
    free(c->result);
    free(c);
}

static void loop_gone(napi_env env, void *s, void *hint) {
    (void)env, (void)hint;
    drop(s);
}

/* ---- on the data plane's threads ---- */

static void post(call *c) {
    if (napi_call_threadsafe_function(c->s->to_loop, c, napi_tsfn_nonblocking) == napi_ok) return;
    free(c->result);
    free(c);
}

static void done(void *ctx, fkv_status status, void *result) {
    call *c = ctx;
    c->status = status;
    c->result = result;
    post(c);
}

static void layout_changed(void *ctx, uint32_t shard, uint32_t layout_epoch) {
    call *c = calloc(1, sizeof *c);
    if (!c) return;
    *c = (call){ .s = ctx, .kind = CALL_NOTICE, .shard = shard, .layout_epoch = layout_epoch };
    post(c);
}

static void transport_lost(void *ctx, fab_provider provider) {
    call *c = calloc(1, sizeof *c);
    if (!c) return;
    *c = (call){ .s = ctx, .kind = CALL_UNREACHABLE, .provider = provider };
    post(c);
}

/* ---- methods ---- */

static server *self_of(napi_env env, napi_callback_info info, napi_value *self, napi_value *argv, size_t n) {
    void *s = NULL;
    size_t given = n;
    if (napi_get_cb_info(env, info, &given, argv, self, NULL) != napi_ok) return NULL;
    if (napi_unwrap(env, *self, &s) == napi_ok) return s;
    napi_throw_type_error(env, "ERR_INVALID_THIS", "a DataPlane was expected");
    return NULL;
}

static napi_value rejected(napi_env env, fkv_status status, const char *text) {
    napi_deferred deferred;
    napi_value promise, error = binding_error(env, status, text);
    if (!error || napi_create_promise(env, &deferred, &promise) != napi_ok) return NULL;
    return napi_reject_deferred(env, deferred, error) == napi_ok ? promise : NULL;
}

/* A promise and the call that will settle it; NULL when *promise is all there is to return. */
static call *begin(napi_env env, server *s, call_kind kind, napi_value *promise) {
    *promise = NULL;
    if (!s->started || s->closing) {
        *promise = rejected(env, FKV_CLOSED, s->closing ? "the data plane is closed" : "the data plane is not started");
        return NULL;
    }
    call *c = calloc(1, sizeof *c);
    if (!c || napi_create_promise(env, &c->deferred, promise) != napi_ok) {
        free(c);
        binding_throw(env, FKV_NO_MEMORY, NULL);
        return NULL;
    }
    c->s = s;
    c->kind = kind;
    if (s->pending++ == 0) napi_ref_threadsafe_function(env, s->to_loop);
    return c;
}

static napi_value open_shard(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], promise;
    dataplane_shard shard;
    server *s = self_of(env, info, &self, argv, 1);
    if (!s || !server_read_shard(env, argv[0], &s->options.config, &shard)) return NULL;
    call *c = begin(env, s, CALL_LAYOUT, &promise);
    if (c) dataplane_open_shard(s->d, &shard, done, c);
    return promise;
}

static napi_value call_shard(napi_env env, napi_callback_info info, call_kind kind,
                             void (*f)(dataplane *, uint32_t, dataplane_done, void *)) {
    napi_value self, argv[1], promise;
    double shard;
    server *s = self_of(env, info, &self, argv, 1);
    if (!s) return NULL;
    uint32_t shards = s->options.config.shards;
    if (napi_get_value_double(env, argv[0], &shard) != napi_ok || !(shard >= 0 && shard < shards) || shard != (uint32_t)shard) {
        binding_bad_option(env, "shard must be an integer from 0 to %u", shards - 1);
        return NULL;
    }
    call *c = begin(env, s, kind, &promise);
    if (c) f(s->d, (uint32_t)shard, done, c);
    return promise;
}
static napi_value serve_shard(napi_env env, napi_callback_info info) {
    return call_shard(env, info, CALL_NOTHING, dataplane_serve_shard);
}
static napi_value close_shard(napi_env env, napi_callback_info info) {
    return call_shard(env, info, CALL_NOTHING, dataplane_close_shard);
}
static napi_value pause_shard(napi_env env, napi_callback_info info) {
    return call_shard(env, info, CALL_NOTHING, dataplane_pause_shard);
}
static napi_value layout(napi_env env, napi_callback_info info) {
    return call_shard(env, info, CALL_LAYOUT, dataplane_get_layout);
}

/* ---- a shard that moves ---- */

static napi_value seal_shard(napi_env env, napi_callback_info info) {
    napi_value self, argv[2], promise;
    double shard;
    uint64_t copy;
    bool whole;
    server *s = self_of(env, info, &self, argv, 2);
    if (!s) return NULL;
    uint32_t shards = s->options.config.shards;
    if (napi_get_value_double(env, argv[0], &shard) != napi_ok || !(shard >= 0 && shard < shards) || shard != (uint32_t)shard ||
        napi_get_value_bigint_uint64(env, argv[1], &copy, &whole) != napi_ok || !whole) {
        binding_bad_option(env, "shard must be an integer from 0 to %u, copy a bigint of 64 bits", shards - 1);
        return NULL;
    }
    call *c = begin(env, s, CALL_NOTHING, &promise);
    if (c) dataplane_seal_shard(s->d, (uint32_t)shard, copy, done, c);
    return promise;
}

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

/* By whoever ends the data plane: the event loop begins no more. */
static void stop_copies(server *s) {
    copying *all = __atomic_exchange_n(&s->copies, NULL, __ATOMIC_ACQ_REL);
    while (all) stop_copy_at(&all);
}

static napi_value copy_shard(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], promise;
    server_copy_options o;
    server *s = self_of(env, info, &self, argv, 1);
    if (!s || !server_read_copy(env, argv[0], &s->options.config, &o)) return NULL;
    copying *k = *find_copy(s, o.config.shard) ? NULL : calloc(1, sizeof *k);
    call *c = begin(env, s, CALL_NOTHING, &promise);
    if (!c) {
        free(k);
        return promise;
    }
    o.config.to = s->d;
    fkv_status status = k ? shard_copy_start(&o.config, done, c, &k->copy) : FKV_BUSY;
    if (status != FKV_OK) {
        free(k);
        done(c, status, NULL);
        return promise;
    }
    k->shard = o.config.shard;
    k->next = s->copies;
    s->copies = k;
    return promise;
}

static napi_value finish_copy(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], promise;
    uint32_t shard;
    server *s = self_of(env, info, &self, argv, 1);
    if (!s) return NULL;
    if (napi_get_value_uint32(env, argv[0], &shard) != napi_ok) {
        binding_bad_option(env, "shard must be an integer");
        return NULL;
    }
    call *c = begin(env, s, CALL_COPIED, &promise);
    if (!c) return promise;
    copying *k = *find_copy(s, shard);
    if (k) shard_copy_finish(k->copy, done, c);
    else done(c, FKV_ABORTED, NULL);
    return promise;
}

static napi_value stop_copy(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], undefined;
    uint32_t shard;
    server *s = self_of(env, info, &self, argv, 1);
    if (!s) return NULL;
    if (napi_get_value_uint32(env, argv[0], &shard) == napi_ok && !s->closing && *find_copy(s, shard)) stop_copy_at(find_copy(s, shard));
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

static napi_value stats(napi_env env, napi_callback_info info) {
    napi_value self, promise;
    server *s = self_of(env, info, &self, NULL, 0);
    if (!s) return NULL;
    call *c = begin(env, s, CALL_STATS, &promise);
    if (c) dataplane_get_stats(s->d, done, c);
    return promise;
}

static napi_value set_grant_until(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], undefined;
    uint64_t until;
    bool lossless = false;
    server *s = self_of(env, info, &self, argv, 1);
    if (!s) return NULL;
    if (napi_get_value_bigint_uint64(env, argv[0], &until, &lossless) != napi_ok || !lossless) {
        binding_bad_option(env, "bootNs must be a bigint from 0 to 2^64 - 1");
        return NULL;
    }
    dataplane_set_grant_until(s->d, until);
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

static napi_value set_lease_ms(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], undefined;
    double ms;
    server *s = self_of(env, info, &self, argv, 1);
    if (!s) return NULL;
    if (napi_get_value_double(env, argv[0], &ms) != napi_ok || !(ms >= 1 && ms <= DATAPLANE_LEASE_MS_MAX) || ms != (uint32_t)ms) {
        binding_bad_option(env, "ms must be an integer from 1 to %d", DATAPLANE_LEASE_MS_MAX);
        return NULL;
    }
    dataplane_set_lease_ms(s->d, (uint32_t)ms);
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

/* ---- life ---- */

static void environment_ends(void *arg) {
    server *s = arg;
    s->closing = true;
    stop_copies(s);
    dataplane_stop(s->d);
}

static bool hold_loop(napi_env env, server *s, napi_value self) {
    napi_value name;
    if (napi_create_string_utf8(env, "farkv.DataPlane", NAPI_AUTO_LENGTH, &name) != napi_ok) return false;
    if (napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, s, loop_gone, s, on_loop, &s->to_loop) != napi_ok) {
        return false;
    }
    s->holders++;
    /* After it, so that the hook runs before Node.js takes the function away. */
    return napi_unref_threadsafe_function(env, s->to_loop) == napi_ok &&
           napi_create_reference(env, self, 1, &s->self) == napi_ok &&
           napi_add_env_cleanup_hook(env, environment_ends, s) == napi_ok;
}

static void release_loop(napi_env env, server *s) {
    napi_remove_env_cleanup_hook(env, environment_ends, s);
    if (s->self) napi_delete_reference(env, s->self);
    s->self = NULL;
    let_loop_go(s);
}

static napi_value start(napi_env env, napi_callback_info info) {
    napi_value self;
    char why[512];
    server *s = self_of(env, info, &self, NULL, 0);
    if (!s) return NULL;
    if (s->started || s->closing) {
        binding_throw(env, FKV_CLOSED, s->closing ? "the data plane is closed" : "the data plane was started before");
        return NULL;
    }
    if (!hold_loop(env, s, self)) return NULL;
    fkv_status status = dataplane_start(s->d, why, sizeof why);
    if (status != FKV_OK) {
        release_loop(env, s);
        binding_throw(env, status, why);
        return NULL;
    }
    s->started = true;
    return server_addresses(env, s->d, &s->options.config);
}

static void stop_work(napi_env env, void *arg) {
    (void)env;
    stop_copies(arg);
    dataplane_stop(((server *)arg)->d);
}

static void stop_done(napi_env env, napi_status status, void *arg) {
    (void)status;
    server *s = arg;
    napi_value undefined;
    napi_get_undefined(env, &undefined);
    napi_delete_async_work(env, s->stopping);
    for (uint32_t i = 0; i < s->waiting_count; i++) napi_resolve_deferred(env, s->waiting[i], undefined);
    s->waiting_count = 0;
    s->closed = true;
    release_loop(env, s);
}

static bool stop_later(napi_env env, server *s) {
    napi_value name;
    return napi_create_string_utf8(env, "farkv.DataPlane.close", NAPI_AUTO_LENGTH, &name) == napi_ok &&
           napi_create_async_work(env, NULL, name, stop_work, stop_done, s, &s->stopping) == napi_ok &&
           napi_queue_async_work(env, s->stopping) == napi_ok;
}

static napi_value close_method(napi_env env, napi_callback_info info) {
    napi_value self, promise, undefined;
    napi_deferred deferred;
    server *s = self_of(env, info, &self, NULL, 0);
    if (!s || napi_create_promise(env, &deferred, &promise) != napi_ok) return NULL;
    bool first = !s->closing;
    s->closing = true;
    if (first && s->to_loop && !stop_later(env, s)) {
        stop_copies(s);
        dataplane_stop(s->d);
        s->closed = true;
        release_loop(env, s);
    }
    if (s->closed || !s->to_loop) {
        if (napi_get_undefined(env, &undefined) != napi_ok) return NULL;
        return napi_resolve_deferred(env, deferred, undefined) == napi_ok ? promise : NULL;
    }
    napi_deferred *waiting = realloc(s->waiting, (s->waiting_count + 1) * sizeof *waiting);
    if (!waiting) {
        binding_throw(env, FKV_NO_MEMORY, NULL);
        return NULL;
    }
    s->waiting = waiting;
    s->waiting[s->waiting_count++] = deferred;
    return promise;
}

static void collected(napi_env env, void *arg, void *hint) {
    (void)env, (void)hint;
    drop(arg);
}

static napi_value construct(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], target;
    size_t n = 1;
    if (napi_get_cb_info(env, info, &n, argv, &self, NULL) != napi_ok) return NULL;
    if (napi_get_new_target(env, info, &target) != napi_ok) return NULL;
    if (!target) {
        napi_throw_type_error(env, "ERR_CONSTRUCT_CALL_REQUIRED", "DataPlane is called with new");
        return NULL;
    }
    server *s = calloc(1, sizeof *s);
    if (!s) {
        binding_throw(env, FKV_NO_MEMORY, NULL);
        return NULL;
    }
    s->holders = 1;
    if (!server_read_options(env, argv[0], &s->options)) {
        free(s);
        return NULL;
    }
    s->options.config.on_layout = layout_changed;
    s->options.config.on_unreachable = transport_lost;
    s->options.config.ctx = s;
    fkv_status status = dataplane_create(&s->options.config, &s->d);
    if (status != FKV_OK || napi_wrap(env, self, s, collected, NULL, NULL) != napi_ok) {
        drop(s);
        binding_throw(env, status == FKV_OK ? FKV_INTERNAL : status, NULL);
        return NULL;
    }
    return self;
}

bool binding_init_server(napi_env env, napi_value exports) {
    static const struct { const char *name; napi_callback f; } methods[] = {
        { "start", start }, { "openShard", open_shard }, { "serveShard", serve_shard }, { "closeShard", close_shard },
        { "sealShard", seal_shard }, { "pauseShard", pause_shard }, { "copyShard", copy_shard }, { "finishCopy", finish_copy }, { "stopCopy", stop_copy },
        { "layout", layout }, { "stats", stats }, { "setGrantUntil", set_grant_until },
        { "setLeaseMs", set_lease_ms }, { "close", close_method },
    };
    enum { METHODS = sizeof methods / sizeof *methods };
    napi_property_descriptor properties[METHODS];
    napi_value class;
    for (int i = 0; i < METHODS; i++) {
        properties[i] = (napi_property_descriptor){ .utf8name = methods[i].name, .method = methods[i].f,
                                                    .attributes = napi_default_method };
    }
    return napi_define_class(env, "DataPlane", NAPI_AUTO_LENGTH, construct, NULL, METHODS, properties, &class) == napi_ok &&
           napi_set_named_property(env, exports, "DataPlane", class) == napi_ok;
}
