/* client_binding.c: the class NativeClient (native-client.ts): made, closed, freed; client.h says who holds it. The methods are
 * in the other client_*.c. */
#include <stdlib.h>
#include <string.h>
#include "client.h"

void client_drop(client *c) {
    if (--c->holders) return;
    pthread_mutex_destroy(&c->lines_lock);
    free(c->table);
    free(c);
}

client *client_arguments(napi_env env, napi_callback_info info, napi_value *argv, size_t n) {
    size_t given = n;
    void *c;
    return napi_get_cb_info(env, info, &given, argv, NULL, &c) == napi_ok ? c : NULL;
}

void client_close(client *c) {
    lookup *l = c->lookup;
    if (!l) return;
    client_redis_close(c);
    client_loop_close(c);
    client_ops_close(c);
    c->lookup = NULL;
    lookup_close(l);
    /* What was outstanding has ended with CLOSED; its values, were there any, went with the lookup. */
    for (fkv_list *i = c->ready.next; i != &c->ready; i = i->next) {
        client_op *o = LIST_OF(i, client_op, link);
        if (o->get) o->value = NULL;
        o->get = NULL;
    }
}

static napi_value close_method(napi_env env, napi_callback_info info) {
    napi_value undefined;
    client *c = client_arguments(env, info, NULL, 0);
    if (!c) return NULL;
    client_close(c);
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

static void environment_ends(napi_async_cleanup_hook_handle handle, void *arg) {
    client *c = arg;
    (void)handle; /* removed when the last handle has closed */
    if (c->lookup) client_close(c);
}

/* ---- what JavaScript holds ---- */

static void let_go(napi_env env, void *data, void *hint) {
    (void)env, (void)hint;
    client_drop(data);
}

static void object_collected(napi_env env, void *data, void *hint) {
    client_close(data);
    let_go(env, data, hint);
}

static bool add_method(napi_env env, client *c, napi_value object, const char *name, napi_callback f) {
    napi_value function;
    if (napi_create_function(env, name, NAPI_AUTO_LENGTH, f, c, &function) != napi_ok) return false;
    if (napi_add_finalizer(env, function, c, let_go, NULL, NULL) != napi_ok) return false;
    c->holders++;
    return napi_set_named_property(env, object, name, function) == napi_ok;
}

/* The finalizer of an array buffer is given its memory; the client is the hint. */
static void array_let_go(napi_env env, void *data, void *hint) {
    (void)env, (void)data;
    client_drop(hint);
}

/* A Uint32Array whose memory is the client's own, so that nothing JavaScript does with the array can take it away. */
static bool add_array(napi_env env, client *c, napi_value object, const char *name, uint32_t *words, size_t n) {
    napi_value buffer, array;
    if (napi_create_external_arraybuffer(env, words, n * sizeof *words, array_let_go, c, &buffer) != napi_ok)
        return false;
    c->holders++;
    return napi_create_typedarray(env, napi_uint32_array, n, buffer, 0, &array) == napi_ok &&
           napi_set_named_property(env, object, name, array) == napi_ok;
}

static bool add_members(napi_env env, client *c, napi_value object) {
    static const struct {
        const char *name;
        napi_callback f;
    } methods[] = {
        { "get", client_get },
        { "getSync", client_get_sync },
        { "getMany", client_get_many },
        { "put", client_put },
        { "putMany", client_put_many },
        { "deleteMany", client_delete_many },
        { "compareAndSwap", client_compare_and_swap },
        { "delete", client_delete },
        { "increment", client_increment },
        { "append", client_append },
        { "touch", client_touch },
        { "scan", client_scan },
        { "tally", client_tally },
        { "shardOf", client_shard_of },
        { "hashOf", client_hash_of },
        { "cancel", client_cancel },
        { "flush", client_flush },
        { "drain", client_drain },
        { "take", client_take },
        { "prepareKey", client_prepare_key },
        { "setTicket", client_set_ticket },
        { "setReplicated", client_set_replicated },
        { "setOwners", client_set_owners },
        { "setRoutes", client_set_routes },
        { "listenRedis", client_listen_redis },
        { "endRedis", client_end_redis },
        { "closeRedis", client_close_redis },
        { "stats", client_stats },
        { "takeSteps", client_take_steps },
        { "close", close_method },
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (!add_method(env, c, object, methods[i].name, methods[i].f)) return false;
    }
    return add_array(env, c, object, "info", c->info, CLIENT_WORDS) &&
           add_array(env, c, object, "completions", c->completions, CLIENT_COMPLETIONS * CLIENT_WORDS);
}

/* ---- construction ---- */

static bool function_option(napi_env env, napi_value options, const char *name, napi_ref *out) {
    napi_value v;
    napi_valuetype type;
    if (!binding_field(env, options, name, &v) || napi_typeof(env, v, &type) != napi_ok) return false;
    if (type != napi_function) return binding_bad_option(env, "%s must be a function", name);
    return napi_create_reference(env, v, 1, out) == napi_ok;
}

static bool read_options(napi_env env, napi_value options, client *c, lookup_config *l) {
    napi_value v;
    uint64_t first, shards, timeout_ms, outstanding, unavailable_ms, locations;
    polling how;
    uint8_t *ticket;
    size_t n;
    if (!binding_field(env, options, "hashSeed", &v) || !binding_seed(env, v, "hashSeed", &l->seed)) return false;
    if (!binding_number(env, options, "shards", 1, 65536, &shards)) return false;
    if (!binding_number_or(env, options, "firstShard", 0, 65536 - shards, 0, &first)) return false;
    if (!binding_field(env, options, "ticket", &v) || !binding_bytes(env, v, &ticket, &n)) return false;
    if (n != sizeof(fkv_pass)) return binding_bad_option(env, "ticket must have %zu bytes", sizeof(fkv_pass));
    if (!binding_number(env, options, "timeoutMs", 1, 1u << 31, &timeout_ms)) return false;
    if (!binding_number(env, options, "maxOutstanding", 1, 1u << CLIENT_PLACE_BITS, &outstanding)) return false;
    if (!binding_polling(env, options, &how)) return false;
    if (!binding_number(env, options, "cachedLocations", 0, LOOKUP_LOCATIONS_MAX, &locations)) return false;
    if (!binding_number(env, options, "unavailableMs", 0, UINT32_MAX, &unavailable_ms)) return false;
    if (!binding_bool(env, options, "traced", &l->session.traced)) return false;
    if (!function_option(env, options, "onReady", &c->on_ready)) return false;
    if (!function_option(env, options, "onEvent", &c->on_event)) return false;
    memcpy(&l->session.pass, ticket, sizeof l->session.pass);
    l->first_shard = (uint32_t)first;
    l->session.shards = c->shards = (uint32_t)(first + shards);
    l->session.max_requests = (uint32_t)outstanding;
    l->max_gets = (uint32_t)outstanding;
    l->cached_locations = (uint32_t)locations;
    l->session.unavailable_ms = (uint32_t)unavailable_ms;
    l->session.log = client_transport_says;
    l->session.log_ctx = c;
    l->ctx = c;
    l->event = client_event;
    l->done = client_get_done;
    c->timeout_ms = (double)timeout_ms;
    poller_init(&c->changes.poller, how, fkv_now_ns());
    c->changes.poller.chain = true;
    poller_init(&c->gets.poller, how, fkv_now_ns());
    c->capacity = (uint32_t)outstanding;
    return true;
}

/* Frees a client that never got as far as its event loop. */
static void discard(napi_env env, client *c) {
    if (c->on_ready) napi_delete_reference(env, c->on_ready);
    if (c->on_event) napi_delete_reference(env, c->on_event);
    if (c->resource) napi_delete_reference(env, c->resource);
    lookup_close(c->lookup);
    c->lookup = NULL;
    client_drop(c);
}

static napi_value construct(napi_env env, napi_callback_info info) {
    napi_value options, object, resource;
    size_t n = 1;
    lookup_config config = { 0 };
    client *c = calloc(1, sizeof *c);
    if (!c) {
        binding_throw(env, FKV_NO_MEMORY, NULL);
        return NULL;
    }
    c->env = env;
    c->holders = 1;
    pthread_mutex_init(&c->lines_lock, NULL);
    list_init(&c->free);
    list_init(&c->busy);
    list_init(&c->ready);
    list_init(&c->held);
    fkv_status s = FKV_OK;
    bool good = napi_get_cb_info(env, info, &n, &options, &object, NULL) == napi_ok &&
                read_options(env, options, c, &config);
    good = good && napi_create_object(env, &resource) == napi_ok;
    good = good && napi_create_reference(env, resource, 1, &c->resource) == napi_ok;
    if (good && !client_ops_create(c, c->capacity)) s = FKV_NO_MEMORY;
    if (good && s == FKV_OK) s = lookup_create(&config, &c->lookup);
    if (s != FKV_OK) binding_throw(env, s, NULL);
    if (!good || s != FKV_OK || !client_loop_open(c, env)) {
        discard(env, c);
        return NULL;
    }
    /* From here on the handles of the event loop hold the client, and it ends by client_close. */
    good = napi_add_async_cleanup_hook(env, environment_ends, c, &c->cleanup) == napi_ok;
    if (good) good = napi_wrap(env, object, c, object_collected, NULL, NULL) == napi_ok;
    if (good) c->holders++;
    if (good && add_members(env, c, object)) return object;
    binding_throw(env, FKV_INTERNAL, NULL);
    client_close(c);
    return NULL;
}

bool binding_init_client(napi_env env, napi_value exports) {
    napi_value constructor;
    return napi_define_class(env, "NativeClient", NAPI_AUTO_LENGTH, construct, NULL, 0, NULL, &constructor) ==
               napi_ok &&
           napi_set_named_property(env, exports, "NativeClient", constructor) == napi_ok;
}
