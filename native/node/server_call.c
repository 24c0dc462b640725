/* server_call.c: the calls of the class DataPlane (server_binding.c) that end later: begun by a method on the event
 * loop, ended by the data plane on one of its threads, from where they are posted to the environment's event loop
 * through a thread-safe function, and settled there. What the data plane tells of itself goes the same way.
 *
 * Pending calls keep the event loop alive, a running data plane alone does not. */
#include <stdio.h>
#include <stdlib.h>
#include "../base/clock.h"
#include "server.h"

enum { LINES_TRACED = 1000, SLOW_LINES = 3, TRACED_LINES = 4, SCAN_LINES = 5 };

void server_drop(server *s) {
    if (--s->holders) return;
    dataplane_destroy(s->d);
    server_free_log(s);
    pthread_mutex_destroy(&s->starting);
    pthread_mutex_destroy(&s->lines_lock);
    free(s->waiting);
    free(s);
}

/* ---- on the event loop ---- */

/* The thread-safe function goes when no thread runs any more and the last pending call was settled. */
void server_let_loop_go(server *s) {
    if ((s->started && !s->closed) || s->pending || !s->to_loop) return;
    napi_threadsafe_function f = s->to_loop;
    s->to_loop = NULL;
    napi_release_threadsafe_function(f, napi_tsfn_release);
}

static void settle(napi_env env, call *c) {
    server *s = c->s;
    napi_value value = NULL;
    if (c->kind == CALL_STOPPED || c->kind == CALL_FOLLOWED) server_copy_stopped(c);
    if (c->status == FKV_OK) {
        if (c->kind == CALL_LAYOUT)
            value = server_layout(env, c->result);
        else if (c->kind == CALL_STATS)
            value = server_stats(env, c->result);
        else if (c->kind == CALL_FOLLOWED && c->result)
            value = server_copy_stats(env, c->result);
        else if (c->kind == CALL_REQUIRED)
            value = server_required(env, *(const uint64_t *)c->result);
        else
            napi_get_undefined(env, &value);
    }
    if (value) {
        napi_resolve_deferred(env, c->deferred, value);
    } else {
        bool pending = false;
        napi_value error = NULL;
        napi_is_exception_pending(env, &pending);
        if (pending)
            napi_get_and_clear_last_exception(env, &error);
        else
            error = binding_error(env, c->status == FKV_OK ? FKV_NO_MEMORY : c->status, NULL);
        if (error) napi_reject_deferred(env, c->deferred, error);
    }
    if (--s->pending == 0) napi_unref_threadsafe_function(env, s->to_loop);
    server_let_loop_go(s);
}

static bool is_notice(const call *c) { return c->kind >= CALL_NOTICE; }

static napi_value ended_object(napi_env env, const dataplane_ended *e) {
    napi_value o, client;
    bool good = napi_create_object(env, &o) == napi_ok &&
                napi_create_bigint_uint64(env, e->client, &client) == napi_ok &&
                napi_set_named_property(env, o, "client", client) == napi_ok &&
                binding_set_number(env, o, "worker", e->worker) &&
                binding_set_number(env, o, "requests", e->requests) &&
                binding_set_text(env, o, "provider", fab_provider_name(e->provider)) &&
                binding_set_text(env, o, "why", fkv_end_name(e->why));
    return good ? o : NULL;
}

static bool fabric_arguments(napi_env env, const fabric_line *l, napi_value *argv) {
    static const char *const levels[] = { "error", "warn", "info" }; /* by FAB_LOG_* */
    return napi_create_string_utf8(env, levels[l->level], NAPI_AUTO_LENGTH, &argv[0]) == napi_ok &&
           napi_create_string_utf8(env, l->text, NAPI_AUTO_LENGTH, &argv[1]) == napi_ok &&
           napi_create_uint32(env, l->omitted, &argv[2]) == napi_ok;
}

static bool set_u64_unless_0(napi_env env, napi_value o, const char *name, uint64_t value) {
    return value == 0 || binding_set_hex64(env, o, name, value);
}

static bool set_last(napi_env env, napi_value o, const dataplane_slow *s) {
    if (s->last == DATAPLANE_LAST_NONE) return true;
    return binding_set_number(env, o, "queuedMs", (double)s->queued_ns / 1e6) &&
           binding_set_number(env, o, "heldMs", (double)s->held_ns / 1e6) &&
           (s->last == DATAPLANE_LAST_DISK     ? binding_set_text(env, o, "last", "disk")
            : s->last == DATAPLANE_LAST_LOG    ? binding_set_text(env, o, "last", "log")
            : s->last == DATAPLANE_LAST_CONFIG ? binding_set_text(env, o, "last", "config")
                                               : binding_set_hex64(env, o, "last", s->last));
}

static bool is_traced(const server *s) { return s->options.config.slow_ns == 1; }

/* Else it is told since all are. */
static bool is_slow(const server *s, const dataplane_slow *slow) {
    uint64_t ns = s->options.traced_slow_ns;
    return !is_traced(s) || (ns && slow->ns >= ns);
}

static napi_value slow_object(napi_env env, const server *to, const dataplane_slow *s) {
    napi_value o, slow;
    bool good = napi_create_object(env, &o) == napi_ok && binding_set_text(env, o, "operation", fkv_ops[s->op].name) &&
                binding_set_text(env, o, "result", s->status == FKV_OK ? "ok" : fkv_status_name(s->status)) &&
                binding_set_number(env, o, "ms", (double)s->ns / 1e6) &&
                binding_set_number(env, o, "worker", s->worker) && binding_set_number(env, o, "shard", s->shard) &&
                napi_get_boolean(env, is_slow(to, s), &slow) == napi_ok &&
                napi_set_named_property(env, o, "slow", slow) == napi_ok && set_last(env, o, s) &&
                set_u64_unless_0(env, o, "keyHash", s->hash) && set_u64_unless_0(env, o, "client", s->client);
    return good ? o : NULL;
}

/* How many; 0: there is no memory. */
static size_t arguments_of(napi_env env, const call *c, napi_value argv[4]) {
    static const char *const events[] = { [DATAPLANE_COPY_JOINED] = "joined",   [DATAPLANE_COPY_LATE] = "late",
                                          [DATAPLANE_COPY_BACK] = "back",       [DATAPLANE_COPY_UNLINKED] = "unlinked",
                                          [DATAPLANE_COPY_DAMAGED] = "damaged", [DATAPLANE_COPY_UNKNOWN] = "unknown",
                                          [DATAPLANE_COPY_REFUSED] = "refused", [DATAPLANE_COPY_FULL] = "full" };
    if (c->kind == CALL_UNREACHABLE) {
        const char *name = fab_provider_name(c->provider);
        bool good = napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &argv[0]) == napi_ok &&
                    napi_create_uint32(env, c->device, &argv[1]) == napi_ok;
        return good ? 2 : 0;
    }
    if (c->kind == CALL_LOG_FAILED) return server_failure_arguments(env, c, argv);
    if (c->kind == CALL_FABRIC_LOG) return fabric_arguments(env, c->result, argv) ? 3 : 0;
    if (c->kind == CALL_SLOW) {
        bool good = (argv[0] = slow_object(env, c->s, &c->slow)) &&
                    napi_create_uint32(env, c->omitted, &argv[1]) == napi_ok;
        return good ? 2 : 0;
    }
    if (c->kind == CALL_ENDED) return (argv[0] = ended_object(env, &c->end)) != NULL;
    if (napi_create_uint32(env, c->shard, &argv[0]) != napi_ok) return 0;
    if (c->kind == CALL_SNAPSHOT_FAILED) return server_failure_arguments(env, c, argv + 1) ? 4 : 0;
    if (c->kind == CALL_NOTICE) return napi_create_uint32(env, c->layout_epoch, &argv[1]) == napi_ok ? 2 : 0;
    if (c->kind == CALL_SUSPICION) {
        bool good = napi_create_bigint_uint64(env, c->suspicion.id, &argv[1]) == napi_ok &&
                    napi_get_boolean(env, c->suspicion.gone, &argv[2]) == napi_ok &&
                    napi_create_int64(env, (int64_t)c->suspicion.prepared, &argv[3]) == napi_ok;
        return good ? 4 : 0;
    }
    bool good = napi_create_bigint_uint64(env, c->number, &argv[1]) == napi_ok &&
                napi_create_string_utf8(env, events[c->event], NAPI_AUTO_LENGTH, &argv[2]) == napi_ok;
    return good ? 3 : 0;
}

static void notify(napi_env env, const call *c) {
    static const char *const names[] = { [CALL_NOTICE] = "onLayout",
                                         [CALL_UNREACHABLE] = "onUnreachable",
                                         [CALL_COPY] = "onCopy",
                                         [CALL_SUSPICION] = "onSuspicion",
                                         [CALL_LOG_FAILED] = "onLogFailed",
                                         [CALL_SNAPSHOT_FAILED] = "onSnapshotFailed",
                                         [CALL_ENDED] = "onEnded",
                                         [CALL_FABRIC_LOG] = "onFabricLog",
                                         [CALL_SLOW] = "onSlow" };
    napi_value self, callback, argv[4], error;
    napi_valuetype type;
    if (!c->s->self || napi_get_reference_value(env, c->s->self, &self) != napi_ok || !self) return;
    if (napi_get_named_property(env, self, names[c->kind], &callback) != napi_ok) return;
    if (napi_typeof(env, callback, &type) != napi_ok || type != napi_function) return;
    size_t argc = arguments_of(env, c, argv);
    if (argc == 0) return;
    if (napi_call_function(env, self, callback, argc, argv, NULL) != napi_pending_exception) return;
    if (napi_get_and_clear_last_exception(env, &error) == napi_ok) napi_fatal_exception(env, error);
}

/* env is NULL when the environment is going away: then there is nobody to tell. */
void server_on_loop(napi_env env, napi_value function, void *context, void *item) {
    (void)function, (void)context;
    call *c = item;
    if (env && is_notice(c))
        notify(env, c);
    else if (env)
        settle(env, c);
    free(c->result);
    free(c);
}

void server_loop_gone(napi_env env, void *s, void *hint) {
    (void)env, (void)hint;
    server_drop(s);
}

/* ---- on the data plane's threads ---- */

void server_post(call *c) {
    if (napi_call_threadsafe_function(c->s->to_loop, c, napi_tsfn_nonblocking) == napi_ok) return;
    free(c->result);
    free(c);
}

void server_done(void *ctx, fkv_status status, void *result) {
    call *c = ctx;
    c->status = status;
    c->result = result;
    server_post(c);
}

void server_layout_changed(void *ctx, uint32_t shard, uint32_t layout_epoch) {
    call *c = calloc(1, sizeof *c);
    if (!c) return;
    *c = (call){ .s = ctx, .kind = CALL_NOTICE, .shard = shard, .layout_epoch = layout_epoch };
    server_post(c);
}

void server_transport_lost(void *ctx, fab_provider provider, uint32_t device) {
    call *c = calloc(1, sizeof *c);
    if (!c) return;
    *c = (call){ .s = ctx, .kind = CALL_UNREACHABLE, .provider = provider, .device = device };
    server_post(c);
}

void server_client_ended(void *ctx, const dataplane_ended *e) {
    call *c = calloc(1, sizeof *c);
    if (!c) return;
    *c = (call){ .s = ctx, .kind = CALL_ENDED, .end = *e };
    server_post(c);
}

/* As line_passes. */
static bool may_say(server *s, int level, uint32_t *omitted) {
    uint32_t most = level >= TRACED_LINES ? LINES_TRACED : LINES;
    pthread_mutex_lock(&s->lines_lock);
    bool passes = line_passes(&s->lines[level], most, fkv_now_ns(), omitted);
    pthread_mutex_unlock(&s->lines_lock);
    return passes;
}

void server_slow(void *ctx, const dataplane_slow *s) {
    /* Servers that make copies scan all the time: that must not hide what clients ask for. */
    int level = is_slow(ctx, s) ? SLOW_LINES : s->op == FKV_OP_SCAN ? SCAN_LINES : TRACED_LINES;
    uint32_t omitted;
    if (!may_say(ctx, level, &omitted)) return;
    call *c = calloc(1, sizeof *c);
    if (!c) return;
    *c = (call){ .s = ctx, .kind = CALL_SLOW, .slow = *s, .omitted = omitted };
    server_post(c);
}

void server_fabric_says(void *ctx, int level, const char *text) {
    uint32_t omitted;
    if (!may_say(ctx, level, &omitted)) return;
    call *c = calloc(1, sizeof *c);
    fabric_line *line = calloc(1, sizeof *line);
    if (!c || !line) {
        free(c);
        free(line);
        return;
    }
    line->level = level;
    line->omitted = omitted;
    snprintf(line->text, sizeof line->text, "%s", text);
    *c = (call){ .s = ctx, .kind = CALL_FABRIC_LOG, .result = line };
    server_post(c);
}

void server_copy_noticed(void *ctx, uint32_t shard, uint64_t copy, dataplane_copy_event what) {
    call *c = calloc(1, sizeof *c);
    if (!c) return;
    *c = (call){ .s = ctx, .kind = CALL_COPY, .shard = shard, .number = copy, .event = what };
    server_post(c);
}

void server_owner_suspected(void *ctx, const dataplane_suspicion *o) {
    call *c = calloc(1, sizeof *c);
    if (!c) return;
    *c = (call){ .s = ctx, .kind = CALL_SUSPICION, .shard = o->shard, .suspicion = *o };
    server_post(c);
}

/* ---- on the event loop again: what methods begin with ---- */

server *server_self(napi_env env, napi_callback_info info, napi_value *self, napi_value *argv, size_t n) {
    void *s = NULL;
    size_t given = n;
    if (napi_get_cb_info(env, info, &given, argv, self, NULL) != napi_ok) return NULL;
    if (napi_unwrap(env, *self, &s) == napi_ok) return s;
    napi_throw_type_error(env, "ERR_INVALID_THIS", "a DataPlane was expected");
    return NULL;
}

bool server_shard_argument(napi_env env, const server *s, napi_value v, uint32_t *out) {
    double shard;
    uint32_t shards = s->options.config.shards;
    if (napi_get_value_double(env, v, &shard) != napi_ok || !(shard >= 0 && shard < shards) || shard != (uint32_t)shard)
        return binding_bad_option(env, "shard must be an integer from 0 to %u", shards - 1);
    *out = (uint32_t)shard;
    return true;
}

napi_value server_rejected(napi_env env, fkv_status status, const char *text) {
    napi_deferred deferred;
    napi_value promise, error = binding_error(env, status, text);
    if (!error || napi_create_promise(env, &deferred, &promise) != napi_ok) return NULL;
    return napi_reject_deferred(env, deferred, error) == napi_ok ? promise : NULL;
}

/* A promise and the call that will settle it; NULL when *promise is all there is to return. */
call *server_begin(napi_env env, server *s, call_kind kind, napi_value *promise) {
    *promise = NULL;
    if (!s->started || s->closing) {
        *promise = server_rejected(env, FKV_CLOSED,
                                   s->closing ? "the data plane is closed" : "the data plane is not started");
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
