/* server_replicas.c: a shard's copies, as methods of the class DataPlane (server_binding.c): whom a copy follows, that it
 * leads, and what an owner is told of its copies. How a copy is made is in server_copies.c. */
#include "server.h"

napi_value server_follow_owner(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], promise;
    server_addresses_in in;
    uint32_t shard;
    server *s = server_self(env, info, &self, argv, 1);
    if (!s || !server_read_shard_number(env, argv[0], &s->options.config, &shard) ||
        !server_read_addresses(env, argv[0], &in))
        return NULL;
    dataplane_owner_address address[SERVER_COPY_ADDRESSES];
    for (uint32_t i = 0; i < in.count; i++)
        address[i] = (dataplane_owner_address){ in.address[i].provider, in.address[i].text, in.address[i].device };
    call *c = server_begin(env, s, CALL_NOTHING, &promise);
    if (c) dataplane_follow_owner(s->d, shard, address, in.count, server_done, c);
    return promise;
}

napi_value server_lead_copy(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], promise;
    uint64_t incarnation;
    server_copy_ids ids;
    dataplane_copies k;
    uint32_t shard;
    server *s = server_self(env, info, &self, argv, 1);
    if (!s || !server_read_config(env, argv[0], &s->options.config, &shard, &ids, &k) ||
        !binding_u64(env, argv[0], "incarnation", &incarnation) || !binding_bool(env, argv[0], "handed", &k.handed))
        return NULL;
    call *c = server_begin(env, s, CALL_LAYOUT, &promise);
    if (c) dataplane_lead_copy(s->d, shard, incarnation, &k, server_done, c);
    return promise;
}

napi_value server_configure_copies(napi_env env, napi_callback_info info) {
    napi_value self, argv[1], promise;
    server_copy_ids ids;
    dataplane_copies k;
    uint32_t shard;
    server *s = server_self(env, info, &self, argv, 1);
    if (!s || !server_read_config(env, argv[0], &s->options.config, &shard, &ids, &k)) return NULL;
    call *c = server_begin(env, s, CALL_NOTHING, &promise);
    if (c) dataplane_configure_copies(s->d, shard, &k, server_done, c);
    return promise;
}

static napi_value about_copy(napi_env env, napi_callback_info info, call_kind kind,
                             void (*f)(dataplane *, uint32_t, uint64_t, dataplane_done, void *)) {
    napi_value self, argv[2], promise;
    uint32_t shard;
    uint64_t id;
    bool whole;
    server *s = server_self(env, info, &self, argv, 2);
    if (!s || !server_shard_argument(env, s, argv[0], &shard)) return NULL;
    if (napi_get_value_bigint_uint64(env, argv[1], &id, &whole) != napi_ok || !whole) {
        binding_bad_option(env, "id must be a bigint of 64 bits");
        return NULL;
    }
    call *c = server_begin(env, s, kind, &promise);
    if (c) f(s->d, shard, id, server_done, c);
    return promise;
}
napi_value server_require_copy(napi_env env, napi_callback_info info) {
    return about_copy(env, info, CALL_REQUIRED, dataplane_require_copy);
}
napi_value server_drop_copy(napi_env env, napi_callback_info info) {
    return about_copy(env, info, CALL_NOTHING, dataplane_drop_copy);
}
napi_value server_discard_copy(napi_env env, napi_callback_info info) {
    return about_copy(env, info, CALL_NOTHING, dataplane_discard_copy);
}
napi_value server_keep_base(napi_env env, napi_callback_info info) {
    return about_copy(env, info, CALL_NOTHING, dataplane_keep_base);
}
napi_value server_hand_over(napi_env env, napi_callback_info info) {
    return about_copy(env, info, CALL_NOTHING, dataplane_hand_over);
}
napi_value server_step_down(napi_env env, napi_callback_info info) {
    return about_copy(env, info, CALL_NOTHING, dataplane_step_down);
}
