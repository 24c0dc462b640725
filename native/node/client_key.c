/* client_key.c: keys that are not texts: bytes, and prepared keys.
 *
 * A prepared key is an Int8Array whose bytes are a lookup_prepared: no caller's key is one, so the kind of array tells
 * them apart; and of all kinds it is the one that Node-API recognises first, a BigUint64Array, the eleventh, takes some
 * 30 ns more. It lies in JavaScript's hands, where it may be written to, so what it says is checked as it is read
 * (lookup_read_prepared). */
#include <string.h>
#include "client.h"

fkv_status client_key_of_array(client *c, napi_env env, napi_value v, uint16_t space, lookup_key *out) {
    napi_typedarray_type type;
    size_t n;
    void *at;
    if (napi_get_typedarray_info(env, v, &type, &n, &at, NULL, NULL) != napi_ok) return FKV_KEY_INVALID;
    if (type == napi_int8_array) return lookup_read_prepared(c->lookup, at, n, space, out);
    if (type != napi_uint8_array || n == 0 || n > FKV_KEY_MAX) return FKV_KEY_INVALID;
    *out = (lookup_key){ .bytes = at, .count = (uint32_t)n, .space = space };
    return FKV_OK;
}

napi_value client_prepare_key(napi_env env, napi_callback_info info) {
    napi_value argv[2], buffer, array;
    client *c = client_arguments(env, info, argv, 2);
    client_key k;
    if (!c) return NULL;
    fkv_status s = c->lookup ? client_read_key(c, env, argv[0], argv[1], &k) : FKV_CLOSED;
    if (s != FKV_OK) {
        binding_throw(env, s, NULL);
        return NULL;
    }
    void *at;
    size_t bytes = sizeof(lookup_prepared) + k.key.count;
    if (napi_create_arraybuffer(env, bytes, &at, &buffer) != napi_ok) return NULL;
    lookup_prepare(c->lookup, &k.key, at);
    return napi_create_typedarray(env, napi_int8_array, bytes, buffer, 0, &array) == napi_ok ? array : NULL;
}
