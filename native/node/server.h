/* server.h: what the server_*.c files share. Private to them. */
#ifndef FARKV_NODE_SERVER_H
#define FARKV_NODE_SERVER_H
#include "../dataplane/dataplane.h"
#include "../move/copy.h"
#include "binding.h"

/* Objects of addon.ts; NULL with an exception pending. */
napi_value server_layout(napi_env env, const dataplane_layout *l);
napi_value server_stats(napi_env env, const dataplane_stats *s);
napi_value server_addresses(napi_env env, const dataplane *d, const dataplane_config *c);

/* DataPlaneOptions. `room` holds what `listen` points to, `trust` what the configuration does. False with an exception pending. */
enum { SERVER_ADDRESS_MAX = 256 };
typedef struct server_options {
    dataplane_config config;
    dataplane_trust trust[DATAPLANE_TRUSTS_MAX];
    dataplane_listen listen[DATAPLANE_LISTENS_MAX];
    char room[DATAPLANE_LISTENS_MAX][SERVER_ADDRESS_MAX];
} server_options;
bool server_read_options(napi_env env, napi_value v, server_options *out);
bool server_read_shard(napi_env env, napi_value v, const dataplane_config *c, dataplane_shard *out);

/* CopyOptions of addon.ts. `room` holds what config.addresses points to. False with an exception pending. */
enum { SERVER_COPY_ADDRESSES = 64 };
typedef struct server_copy_options {
    shard_copy_config config;
    session_address addresses[SERVER_COPY_ADDRESSES];
    char room[SERVER_COPY_ADDRESSES][SERVER_ADDRESS_MAX];
} server_copy_options;
bool server_read_copy(napi_env env, napi_value v, const dataplane_config *c, server_copy_options *out);
napi_value server_copy_stats(napi_env env, const shard_copy_stats *s);

#endif
