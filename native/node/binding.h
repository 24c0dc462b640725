/* binding.h: what the files of the Node-API layer share. Arguments in, results out, no logic. */
#ifndef FARKV_NODE_BINDING_H
#define FARKV_NODE_BINDING_H
#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/hash.h"
#include "../base/status.h"
#include "../fabric/fabric.h"

/* Each adds its exports; false with a JavaScript exception pending. */
bool binding_init_common(napi_env env, napi_value exports); /* common.c: constants, makeTicket, hashKey, ... */
bool binding_init_server(napi_env env, napi_value exports); /* server_binding.c: DataPlane */
bool binding_init_client(napi_env env, napi_value exports); /* client_binding.c: NativeClient */

/* common.c: throws an Error whose `code` is the status's name and whose message is `text`, or the status's own. */
void binding_throw(napi_env env, fkv_status s, const char *text);
/* An Error object of the same kind, not thrown (for rejected promises). */
napi_value binding_error(napi_env env, fkv_status s, const char *text);
/* A Uint8Array or Buffer's bytes. False, with an exception pending, when the value is not one. */
bool binding_bytes(napi_env env, napi_value v, uint8_t **bytes, size_t *n);
/* The UTF-8 of a string that is to be a key, in `room` of FKV_KEY_MAX + 4 bytes; *n beyond FKV_KEY_MAX: it is too long;
 * 0: it is empty, or has half a surrogate pair. False: not a string. */
bool binding_key_text(napi_env env, napi_value v, uint8_t *room, size_t *n);
/* A key: UTF-8 of a string, or bytes; written to or pointed at. `room` must hold FKV_KEY_MAX + 4 bytes. Returns FKV_OK
 * or FKV_KEY_INVALID (empty, too long, half a surrogate pair, or neither string nor bytes); never throws. */
fkv_status binding_key(napi_env env, napi_value v, uint8_t *room, const uint8_t **key, size_t *n);
/* 16 bytes of a hash seed or secret. `name` is for the exception. */
bool binding_seed(napi_env env, napi_value v, const char *name, fkv_seed *out);

/* arguments.c: an options object's fields. Each throws an Error with code ERR_CONFIG that names the field, and returns
 * false, when the field is missing, of another type, or outside min..max. */
bool binding_number(napi_env env, napi_value object, const char *name, uint64_t min, uint64_t max, uint64_t *out);
bool binding_number_or(napi_env env, napi_value object, const char *name, uint64_t min, uint64_t max,
                       uint64_t otherwise, uint64_t *out); /* `otherwise` where it is missing */
bool binding_u64(napi_env env, napi_value object, const char *name, uint64_t *out); /* a bigint */
bool binding_bool(napi_env env, napi_value object, const char *name, bool *out);
/* Text of 1 to room - 1 bytes. */
bool binding_text(napi_env env, napi_value object, const char *name, char *out, size_t room);
/* The field `provider`: the name of one; and `device` (fab_place), which is left out where it is 0. */
bool binding_provider(napi_env env, napi_value object, fab_provider *out, uint32_t *device);
/* The field `polling`. */
bool binding_polling(napi_env env, napi_value object, polling *out);
/* The field as it is; an array for binding_array, with its length. */
bool binding_field(napi_env env, napi_value object, const char *name, napi_value *out);
bool binding_array(napi_env env, napi_value object, const char *name, napi_value *out, uint32_t *n);
/* throws; false */
bool binding_bad_option(napi_env env, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fields of a result; false with an exception pending. */
bool binding_set_number(napi_env env, napi_value object, const char *name, double v);
bool binding_set_u64(napi_env env, napi_value object, const char *name, uint64_t v);   /* a bigint */
bool binding_set_hex64(napi_env env, napi_value object, const char *name, uint64_t v); /* 16 hex digits */
bool binding_set_text(napi_env env, napi_value object, const char *name, const char *v);
bool binding_set_provider(napi_env env, napi_value object, fab_provider p, uint32_t device);
/* PollingStats of data-plane-stats.ts */
bool binding_set_polling(napi_env env, napi_value object, const char *name, const poller_stats *p);
bool binding_set_function(napi_env env, napi_value object, const char *name, napi_callback f, void *ctx);

#endif
