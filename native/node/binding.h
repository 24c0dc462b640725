/* binding.h: what the files of the Node-API layer share. Arguments in, results out, no logic. */
#ifndef FARKV_NODE_BINDING_H
#define FARKV_NODE_BINDING_H
#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/status.h"

/* Each adds its exports; false with a JavaScript exception pending. */
bool binding_init_common(napi_env env, napi_value exports);   /* common.c: constants, makeTicket, hashKey, ... */
bool binding_init_server(napi_env env, napi_value exports);   /* server_binding.c: DataPlane */
bool binding_init_client(napi_env env, napi_value exports);   /* client_binding.c: NativeClient */

/* common.c: throws an Error whose `code` is the status's name and whose message is `text`, or the status's own. */
void binding_throw(napi_env env, fkv_status s, const char *text);
/* An Error object of the same kind, not thrown (for rejected promises). */
napi_value binding_error(napi_env env, fkv_status s, const char *text);
/* A Uint8Array or Buffer's bytes. False, with an exception pending, when the value is not one. */
bool binding_bytes(napi_env env, napi_value v, uint8_t **bytes, size_t *n);
/* A key: UTF-8 of a string, or bytes; written to or pointed at. `room` must hold FKV_KEY_MAX + 4 bytes. Returns FKV_OK or
 * FKV_KEY_INVALID (empty, too long, or neither string nor bytes); never throws. */
fkv_status binding_key(napi_env env, napi_value v, uint8_t *room, const uint8_t **key, size_t *n);

#endif
