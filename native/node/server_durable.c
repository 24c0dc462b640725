/* server_durable.c: what durable shards need of the class DataPlane (server_binding.c): where their logs lie, a start that
 * reads them, and what was found.
 *
 * `recover` runs dataplane_start on a thread of libuv's pool, since there may be much to read: the event loop has Raft's
 * heartbeats. Whoever ends the data plane meanwhile has it given up, and waits until it
 * is (`starting`). */
#include <stdlib.h>
#include <string.h>
#include "server.h"

enum { PATH_ROOM = 4096 };

/* ---- options ---- */

static bool read_recovers(napi_env env, napi_value v, server_log *out) {
    napi_value list, item;
    uint64_t shard;
    if (!binding_array(env, v, "recovers", &list, &out->recovers)) return false;
    out->recover = calloc(out->recovers + 1, sizeof *out->recover);
    if (!out->recover) return binding_throw(env, FKV_NO_MEMORY, NULL), false;
    for (uint32_t i = 0; i < out->recovers; i++) {
        if (napi_get_element(env, list, i, &item) != napi_ok ||
            !binding_number(env, item, "shard", 0, DATAPLANE_SHARDS_MAX - 1, &shard) ||
            !binding_u64(env, item, "copy", &out->recover[i].copy))
            return false;
        out->recover[i].shard = (uint32_t)shard;
    }
    return true;
}

static bool recovers(void *ctx, uint32_t shard, uint64_t copy) {
    const server_log *l = ctx;
    for (uint32_t i = 0; i < l->recovers; i++)
        if (l->recover[i].shard == shard && l->recover[i].copy == copy) return true;
    return false;
}

static bool progressed(void *ctx, uint64_t bytes, uint64_t all) {
    server_log *l = ctx;
    __atomic_store_n(&l->all_bytes, all, __ATOMIC_RELAXED);
    __atomic_store_n(&l->read_bytes, bytes, __ATOMIC_RELAXED);
    return !__atomic_load_n(&l->given_up, __ATOMIC_RELAXED);
}

void server_give_up(server *s) { __atomic_store_n(&s->log.given_up, true, __ATOMIC_RELAXED); }

bool server_read_log(napi_env env, napi_value options, server *s) {
    char path[PATH_ROOM];
    bool given;
    napi_value v;
    fkv_seed cluster;
    dataplane_log *c = &s->options.config.log;
    if (napi_has_named_property(env, options, "log", &given) != napi_ok) return false;
    if (!given) return true;
    if (!binding_field(env, options, "log", &v) || !binding_text(env, v, "directory", path, sizeof path) ||
        !binding_field(env, v, "cluster", &options) || !binding_seed(env, options, "cluster", &cluster) ||
        !binding_u64(env, v, "instance", &c->instance) ||
        !binding_number(env, v, "shardMemoryBytes", TABLE_MEMORY_MIN, 9007199254740991u, &c->shard_memory_bytes) ||
        !binding_number_or(env, v, "syncMs", 0, 10000, 0, &c->sync_ns) ||
        !binding_number_or(env, v, "snapshotBytes", 1, 9007199254740991u, 0, &c->snapshot_bytes) ||
        !read_recovers(env, v, &s->log))
        return false;
    c->sync_ns *= 1000000;
    _Static_assert(sizeof cluster == sizeof c->cluster, "both are 16 bytes");
    memcpy(c->cluster, &cluster, sizeof c->cluster);
    int e = disk_os_open(&s->log.disk, path);
    if (e != 0) return binding_bad_option(env, "%s cannot be used for logs: %s", path, strerror(-e));
    s->log.open = true;
    c->disk = &s->log.disk.table;
    c->recovers = recovers;
    c->on_progress = progressed;
    c->ctx = &s->log;
    return true;
}

void server_free_log(server *s) {
    if (s->log.open) disk_os_close(&s->log.disk);
    free(s->log.recover);
}

/* ---- start ---- */

static bool add_copy(napi_env env, napi_value list, uint32_t i, const dataplane_recovered *r) {
    napi_value o, whole;
    return napi_create_object(env, &o) == napi_ok && napi_set_element(env, list, i, o) == napi_ok &&
           napi_get_boolean(env, r->whole, &whole) == napi_ok &&
           napi_set_named_property(env, o, "whole", whole) == napi_ok &&
           binding_set_number(env, o, "shard", r->shard) && binding_set_number(env, o, "worker", r->worker) &&
           binding_set_u64(env, o, "copy", r->id) && binding_set_text(env, o, "why", r->why) &&
           binding_set_number(env, o, "epoch", r->epoch) &&
           binding_set_number(env, o, "prepared", (double)r->prepared) &&
           binding_set_number(env, o, "committed", (double)r->committed);
}

/* What was cut off of logs, in sentences. */
static bool set_torn(napi_env env, napi_value o, const server *s) {
    napi_value list, text;
    uint32_t n = 0;
    if (napi_create_array(env, &list) != napi_ok) return false;
    for (uint32_t i = 0; i < s->options.config.workers; i++) {
        const char *torn = dataplane_get_torn(s->d, i);
        if (!torn[0]) continue;
        if (napi_create_string_utf8(env, torn, NAPI_AUTO_LENGTH, &text) != napi_ok ||
            napi_set_element(env, list, n++, text) != napi_ok)
            return false;
    }
    return napi_set_named_property(env, o, "torn", list) == napi_ok;
}

static napi_value recovered(napi_env env, const server *s) {
    napi_value o, list, addresses = server_addresses(env, s->d, &s->options.config);
    uint32_t count;
    const dataplane_recovered *r = dataplane_get_recovered(s->d, &count);
    if (!addresses || napi_create_object(env, &o) != napi_ok || napi_create_array(env, &list) != napi_ok) return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (!add_copy(env, list, i, &r[i])) return NULL;
    bool good = napi_set_named_property(env, o, "addresses", addresses) == napi_ok &&
                napi_set_named_property(env, o, "copies", list) == napi_ok && set_torn(env, o, s);
    return good ? o : NULL;
}

static void start_work(napi_env env, void *arg) {
    (void)env;
    server *s = arg;
    pthread_mutex_lock(&s->starting);
    s->start_status = s->closing ? FKV_CLOSED : dataplane_start(s->d, s->start_why, sizeof s->start_why);
    pthread_mutex_unlock(&s->starting);
}

static void start_done(napi_env env, napi_status status, void *arg) {
    server *s = arg;
    napi_value value = NULL, error = NULL;
    napi_delete_async_work(env, s->start_work);
    s->start_work = NULL;
    bool good = status == napi_ok && s->start_status == FKV_OK;
    if (good) {
        s->started = true;
        value = recovered(env, s);
    }
    if (value)
        napi_resolve_deferred(env, s->start_promise, value);
    else if ((error = binding_error(env, good ? FKV_NO_MEMORY : s->start_status, good ? NULL : s->start_why)))
        napi_reject_deferred(env, s->start_promise, error);
    if (s->closing)
        server_closes(env, s);
    else if (!good)
        server_release_loop(env, s);
}

napi_value server_recover(napi_env env, napi_callback_info info) {
    napi_value self, name, promise;
    server *s = server_self(env, info, &self, NULL, 0);
    if (!s) return NULL;
    if (s->started || s->closing || s->start_work)
        return server_rejected(env, FKV_CLOSED,
                               s->closing ? "the data plane is closed" : "the data plane was started before");
    if (napi_create_promise(env, &s->start_promise, &promise) != napi_ok || !server_hold_loop(env, s, self))
        return NULL;
    if (napi_create_string_utf8(env, "farkv.DataPlane.recover", NAPI_AUTO_LENGTH, &name) != napi_ok ||
        napi_create_async_work(env, NULL, name, start_work, start_done, s, &s->start_work) != napi_ok)
        return NULL;
    return napi_queue_async_work(env, s->start_work) == napi_ok ? promise : NULL;
}

napi_value server_progress(napi_env env, napi_callback_info info) {
    napi_value self, o;
    server *s = server_self(env, info, &self, NULL, 0);
    if (!s || napi_create_object(env, &o) != napi_ok) return NULL;
    double bytes = (double)__atomic_load_n(&s->log.read_bytes, __ATOMIC_RELAXED);
    double all = (double)__atomic_load_n(&s->log.all_bytes, __ATOMIC_RELAXED);
    return binding_set_number(env, o, "bytes", bytes) && binding_set_number(env, o, "all", all) ? o : NULL;
}

/* ---- told by the data plane ---- */

static void failed(server *s, call_kind kind, uint32_t shard, const char *operation, const char *file, int error) {
    call *c = calloc(1, sizeof *c);
    log_failure *f = calloc(1, sizeof *f);
    if (!c || !f) {
        free(c);
        free(f);
        return;
    }
    *f = (log_failure){ .error = -error };
    strncpy(f->operation, operation, sizeof f->operation - 1);
    strncpy(f->file, file, sizeof f->file - 1);
    *c = (call){ .s = s, .kind = kind, .shard = shard, .result = f };
    server_post(c);
}
void server_log_failed(void *ctx, const char *operation, const char *file, int error) {
    failed(ctx, CALL_LOG_FAILED, 0, operation, file, error);
}
void server_snapshot_failed(void *ctx, uint32_t shard, const char *operation, const char *file, int error) {
    failed(ctx, CALL_SNAPSHOT_FAILED, shard, operation, file, error);
}

/* Arguments of what is told of it: operation, file, errno; how many. */
size_t server_failure_arguments(napi_env env, const call *c, napi_value *argv) {
    const log_failure *f = c->result;
    bool good = napi_create_string_utf8(env, f->operation, NAPI_AUTO_LENGTH, &argv[0]) == napi_ok &&
                napi_create_string_utf8(env, f->file, NAPI_AUTO_LENGTH, &argv[1]) == napi_ok &&
                napi_create_int32(env, f->error, &argv[2]) == napi_ok;
    return good ? 3 : 0;
}
