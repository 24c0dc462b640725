/* server_binding.c: the class DataPlane (data-plane.ts): calls in, promises out.
 *
 * A call that ends later becomes a `call`, which server_call.c settles.
 *
 * Life. The struct has two holders: the JavaScript object and the thread-safe function; it is freed when both are gone.
 * From start to the end of close the object is referenced, so it is not collected while its threads run. close() runs
 * dataplane_stop on a thread of libuv's pool. When the environment ends first (process.exit, worker.terminate), the
 * cleanup hook stops everything before Node.js takes the thread-safe function away. */
#include <stdlib.h>
#include "server.h"

/* ---- methods ---- */

static napi_value open_shard(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], promise;
    dataplane_shard shard;
    server *s = server_self(env, info, &self, argv, 1);
    if (!s || !server_read_shard(env, argv[0], &s->options.config, &shard)) return NULL;
    call *c = server_begin(env, s, CALL_LAYOUT, &promise);
    if (c) dataplane_open_shard(s->d, &shard, server_done, c);
    return promise;
}

static napi_value call_shard(napi_env env, napi_callback_info info, call_kind kind,
                             void (*f)(dataplane *, uint32_t, dataplane_done, void *)) {
    napi_value self, argv[1], promise;
    uint32_t shard;
    server *s = server_self(env, info, &self, argv, 1);
    if (!s || !server_shard_argument(env, s, argv[0], &shard)) return NULL;
    call *c = server_begin(env, s, kind, &promise);
    if (c) f(s->d, shard, server_done, c);
    return promise;
}
static napi_value serve_shard(napi_env env, napi_callback_info info) {
    return call_shard(env, info, CALL_NOTHING, dataplane_serve_shard);
}
static napi_value rely_on_disk(napi_env env, napi_callback_info info) {
    return call_shard(env, info, CALL_NOTHING, dataplane_rely_on_disk);
}
static napi_value close_shard(napi_env env, napi_callback_info info) {
    return call_shard(env, info, CALL_NOTHING, dataplane_close_shard);
}
static napi_value snapshot(napi_env env, napi_callback_info info) {
    return call_shard(env, info, CALL_NOTHING, dataplane_snapshot);
}
static napi_value pause_shard(napi_env env, napi_callback_info info) {
    return call_shard(env, info, CALL_NOTHING, dataplane_pause_shard);
}
static napi_value layout(napi_env env, napi_callback_info info) {
    return call_shard(env, info, CALL_LAYOUT, dataplane_get_layout);
}

static napi_value stats(napi_env env, napi_callback_info info) {
    napi_value self, promise;
    server *s = server_self(env, info, &self, NULL, 0);
    if (!s) return NULL;
    call *c = server_begin(env, s, CALL_STATS, &promise);
    if (c) dataplane_get_stats(s->d, server_done, c);
    return promise;
}

static napi_value set_grant_until(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], undefined;
    uint64_t until;
    bool lossless = false;
    server *s = server_self(env, info, &self, argv, 1);
    if (!s) return NULL;
    if (napi_get_value_bigint_uint64(env, argv[0], &until, &lossless) != napi_ok || !lossless) {
        binding_bad_option(env, "bootNs must be a bigint from 0 to 2^64 - 1");
        return NULL;
    }
    dataplane_set_grant_until(s->d, until);
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

static napi_value set_access(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], undefined;
    dataplane_access a;
    dataplane_revocation *revoked;
    server *s = server_self(env, info, &self, argv, 1);
    if (!s || !server_read_access(env, argv[0], &a, &revoked)) return NULL;
    fkv_status status = dataplane_set_access(s->d, &a);
    free(revoked);
    if (status != FKV_OK) {
        binding_throw(env, status, NULL);
        return NULL;
    }
    s->secret = a.secret[0];
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

static napi_value set_table_memory(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], undefined;
    double bytes;
    server *s = server_self(env, info, &self, argv, 1);
    if (!s) return NULL;
    if (napi_get_value_double(env, argv[0], &bytes) != napi_ok ||
        !(bytes >= TABLE_MEMORY_MIN && bytes <= 9007199254740991.0) || bytes != (double)(uint64_t)bytes) {
        binding_bad_option(env, "bytes must be an integer from %d", TABLE_MEMORY_MIN);
        return NULL;
    }
    dataplane_set_table_memory(s->d, (uint64_t)bytes);
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

/* ---- life ---- */

static void environment_ends(void *arg) {
    server *s = arg;
    s->closing = true;
    server_give_up(s);
    pthread_mutex_lock(&s->starting);
    server_stop_copies(s);
    dataplane_stop(s->d);
    pthread_mutex_unlock(&s->starting);
}

bool server_hold_loop(napi_env env, server *s, napi_value self) {
    napi_value name;
    if (napi_create_string_utf8(env, "farkv.DataPlane", NAPI_AUTO_LENGTH, &name) != napi_ok) return false;
    if (napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, s, server_loop_gone, s, server_on_loop,
                                        &s->to_loop) != napi_ok) {
        return false;
    }
    s->holders++;
    /* After it, so that the hook runs before Node.js takes the function away. */
    return napi_unref_threadsafe_function(env, s->to_loop) == napi_ok &&
           napi_create_reference(env, self, 1, &s->self) == napi_ok &&
           napi_add_env_cleanup_hook(env, environment_ends, s) == napi_ok;
}

void server_release_loop(napi_env env, server *s) {
    napi_remove_env_cleanup_hook(env, environment_ends, s);
    if (s->self) napi_delete_reference(env, s->self);
    s->self = NULL;
    server_let_loop_go(s);
}

static napi_value start(napi_env env, napi_callback_info info) {
    napi_value self;
    char why[512];
    server *s = server_self(env, info, &self, NULL, 0);
    if (!s) return NULL;
    if (s->started || s->closing || s->start_work) {
        binding_throw(env, FKV_CLOSED, s->closing ? "the data plane is closed" : "the data plane was started before");
        return NULL;
    }
    if (!server_hold_loop(env, s, self)) return NULL;
    fkv_status status = dataplane_start(s->d, why, sizeof why);
    if (status != FKV_OK) {
        server_release_loop(env, s);
        binding_throw(env, status, why);
        return NULL;
    }
    s->started = true;
    return server_addresses(env, s->d, &s->options.config);
}

static void stop_work(napi_env env, void *arg) {
    (void)env;
    server_stop_copies(arg);
    dataplane_stop(((server *)arg)->d);
}

/* Whether all that was answered is on the disk. */
static napi_value is_synced(napi_env env, const server *s) {
    napi_value v = NULL;
    return napi_get_boolean(env, dataplane_is_synced(s->d), &v) == napi_ok ? v : NULL;
}

static void stop_ended(napi_env env, server *s) {
    for (uint32_t i = 0; i < s->waiting_count; i++) napi_resolve_deferred(env, s->waiting[i], is_synced(env, s));
    s->waiting_count = 0;
    s->closed = true;
    server_release_loop(env, s);
}

static void stop_done(napi_env env, napi_status status, void *arg) {
    (void)status;
    server *s = arg;
    napi_delete_async_work(env, s->stopping);
    stop_ended(env, s);
}

static bool stop_later(napi_env env, server *s) {
    napi_value name;
    return napi_create_string_utf8(env, "farkv.DataPlane.close", NAPI_AUTO_LENGTH, &name) == napi_ok &&
           napi_create_async_work(env, NULL, name, stop_work, stop_done, s, &s->stopping) == napi_ok &&
           napi_queue_async_work(env, s->stopping) == napi_ok;
}

void server_closes(napi_env env, server *s) {
    if (stop_later(env, s)) return;
    stop_work(env, s);
    stop_ended(env, s);
}

static napi_value close_method(napi_env env, napi_callback_info info) {
    napi_value self, promise;
    napi_deferred deferred;
    server *s = server_self(env, info, &self, NULL, 0);
    if (!s || napi_create_promise(env, &deferred, &promise) != napi_ok) return NULL;
    bool first = !s->closing;
    s->closing = true;
    server_give_up(s);
    if (first && s->to_loop && !s->start_work) server_closes(env, s);
    if (s->closed || !s->to_loop) {
        return napi_resolve_deferred(env, deferred, is_synced(env, s)) == napi_ok ? promise : NULL;
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
    server_drop(arg);
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
    pthread_mutex_init(&s->starting, NULL);
    pthread_mutex_init(&s->lines_lock, NULL);
    if (!server_read_options(env, argv[0], &s->options) || !server_read_log(env, argv[0], s)) {
        server_drop(s);
        return NULL;
    }
    s->secret.seed = s->options.config.ticket_secret;
    s->options.config.on_layout = server_layout_changed;
    s->options.config.on_unreachable = server_transport_lost;
    s->options.config.on_ended = server_client_ended;
    s->options.config.on_slow = server_slow;
    s->options.config.on_fabric_log = server_fabric_says;
    s->options.config.on_copy = server_copy_noticed;
    s->options.config.on_suspicion = server_owner_suspected;
    s->options.config.on_log_failed = server_log_failed;
    s->options.config.on_snapshot_failed = server_snapshot_failed;
    s->options.config.ctx = s;
    fkv_status status = dataplane_create(&s->options.config, &s->d);
    if (status != FKV_OK || napi_wrap(env, self, s, collected, NULL, NULL) != napi_ok) {
        server_drop(s);
        binding_throw(env, status == FKV_OK ? FKV_INTERNAL : status, NULL);
        return NULL;
    }
    return self;
}

bool binding_init_server(napi_env env, napi_value exports) {
    static const struct {
        const char *name;
        napi_callback f;
    } methods[] = {
        { "start", start },
        { "recover", server_recover },
        { "progress", server_progress },
        { "openShard", open_shard },
        { "serveShard", serve_shard },
        { "closeShard", close_shard },
        { "relyOnDisk", rely_on_disk },
        { "pauseShard", pause_shard },
        { "snapshot", snapshot },
        { "discardCopy", server_discard_copy },
        { "copyShard", server_copy_shard },
        { "stopCopy", server_stop_copy },
        { "followCopy", server_follow_copy },
        { "followOwner", server_follow_owner },
        { "leadCopy", server_lead_copy },
        { "configureCopies", server_configure_copies },
        { "requireCopy", server_require_copy },
        { "dropCopy", server_drop_copy },
        { "keepBase", server_keep_base },
        { "handOver", server_hand_over },
        { "stepDown", server_step_down },
        { "layout", layout },
        { "stats", stats },
        { "setGrantUntil", set_grant_until },
        { "setAccess", set_access },
        { "setTableMemory", set_table_memory },
        { "close", close_method },
    };
    enum { METHODS = sizeof methods / sizeof *methods };
    napi_property_descriptor properties[METHODS];
    napi_value class;
    for (int i = 0; i < METHODS; i++) {
        properties[i] = (napi_property_descriptor){ .utf8name = methods[i].name,
                                                    .method = methods[i].f,
                                                    .attributes = napi_default_method };
    }
    return napi_define_class(env, "DataPlane", NAPI_AUTO_LENGTH, construct, NULL, METHODS, properties, &class) ==
               napi_ok &&
           napi_set_named_property(env, exports, "DataPlane", class) == napi_ok;
}
