/* server.h: what the server_*.c files share. Private to them. */
#ifndef FARKV_NODE_SERVER_H
#define FARKV_NODE_SERVER_H
#include <pthread.h>
#include "../dataplane/dataplane.h"
#include "../client/copy.h"
#include "binding.h"
#include "lines.h"

/* Objects of data-plane.ts; NULL with an exception pending. */
napi_value server_layout(napi_env env, const dataplane_layout *l);
napi_value server_stats(napi_env env, const dataplane_stats *s);
napi_value server_addresses(napi_env env, const dataplane *d, const dataplane_config *c);

/* DataPlaneOptions. `room` holds what `listen` points to, `tenant` what the configuration does. False with an exception
 * pending. */
enum { SERVER_ADDRESS_MAX = 256 };
typedef struct server_options {
    dataplane_config config;
    dataplane_tenant tenant[DATAPLANE_TENANTS_MAX];
    dataplane_listen listen[DATAPLANE_LISTENS_MAX];
    char room[DATAPLANE_LISTENS_MAX][SERVER_ADDRESS_MAX];
    uint64_t traced_slow_ns;
} server_options;
bool server_read_options(napi_env env, napi_value v, server_options *out);
bool server_read_shard(napi_env env, napi_value v, const dataplane_config *c, dataplane_shard *out);

enum { SERVER_COPY_ADDRESSES = 64 };
/* Addresses of data-plane threads; those behind the last that there is room for are left out. */
typedef struct server_addresses_in {
    uint32_t count;
    session_address address[SERVER_COPY_ADDRESSES];
    char room[SERVER_COPY_ADDRESSES][SERVER_ADDRESS_MAX];
} server_addresses_in;
bool server_read_addresses(napi_env env, napi_value v, server_addresses_in *out);
/* CopyOptions of data-plane.ts. `addresses` holds what config.addresses points to. False with an exception pending. */
typedef struct server_copy_options {
    shard_copy_config config;
    server_addresses_in addresses;
} server_copy_options;
bool server_read_copy(napi_env env, napi_value v, const dataplane_config *c, const dataplane_secret *secret,
                      server_copy_options *out);
/* CopyConfig of data-plane.ts. `id` has room for DATAPLANE_COPIES_MAX, and is what out->id is. */
typedef struct server_copy_ids {
    uint64_t in_sync[DATAPLANE_COPIES_MAX], eligible[DATAPLANE_COPIES_MAX], joining[DATAPLANE_COPIES_MAX];
} server_copy_ids;
bool server_read_config(napi_env env, napi_value v, const dataplane_config *c, uint32_t *shard, server_copy_ids *ids,
                        dataplane_copies *out);
bool server_read_shard_number(napi_env env, napi_value v, const dataplane_config *c, uint32_t *out);
/* DataPlaneAccess of addon.ts. *revoked is of malloc. False with an exception pending. */
bool server_read_access(napi_env env, napi_value v, dataplane_access *out, dataplane_revocation **revoked);
napi_value server_copy_stats(napi_env env, const shard_copy_stats *s);
napi_value server_required(napi_env env, uint64_t lsn);

/* Where durable shards' records go; nothing where `open` is not set. */
typedef struct server_log {
    disk_os disk;
    bool open;
    uint32_t recovers;
    struct {
        uint32_t shard;
        uint64_t copy;
    } * recover;                    /* of malloc: copies that are wanted of what is there */
    uint64_t read_bytes, all_bytes; /* atomic */
    bool given_up;                  /* atomic: a start that reads them ends */
} server_log;

typedef struct server {
    dataplane *d;
    server_options options;
    dataplane_secret secret; /* that tickets are made with now */
    int holders;
    napi_threadsafe_function to_loop; /* from start to the end of close */
    napi_ref self;                    /* the same time */
    uint32_t pending;                 /* calls not yet settled */
    bool started, closing, closed;
    napi_async_work stopping;
    struct copying *copies; /* atomic: its head (server_copies.c) */
    uint64_t copies_begun;
    napi_deferred *waiting; /* promises of close() */
    uint32_t waiting_count;
    server_log log;
    /* Start on a thread of the pool, if `start_work`; `starting` is held by whoever starts or ends the data plane. */
    pthread_mutex_t starting;
    napi_async_work start_work;
    napi_deferred start_promise;
    fkv_status start_status;
    char start_why[512];
    pthread_mutex_t lines_lock;
    line_budget lines[6]; /* of each FAB_LOG_*, of slow requests, of traced ones, and of scans among those */
} server;

typedef enum {
    CALL_NOTHING,
    CALL_LAYOUT,
    CALL_STATS,
    CALL_STOPPED,
    CALL_FOLLOWED,
    CALL_REQUIRED,
    CALL_NOTICE,
    CALL_UNREACHABLE,
    CALL_COPY,
    CALL_SUSPICION,
    CALL_LOG_FAILED,
    CALL_SNAPSHOT_FAILED,
    CALL_ENDED,
    CALL_FABRIC_LOG,
    CALL_SLOW
} call_kind;
/* The result of CALL_LOG_FAILED and CALL_SNAPSHOT_FAILED; a positive errno. */
typedef struct log_failure {
    char operation[32], file[DISK_NAME_MAX];
    int error;
} log_failure;
/* The result of CALL_FABRIC_LOG. */
typedef struct fabric_line {
    int level; /* FAB_LOG_* */
    uint32_t omitted;
    char text[512];
} fabric_line;
typedef struct call {
    server *s;
    call_kind kind;
    napi_deferred deferred;
    fkv_status status;
    void *result;
    uint32_t shard, layout_epoch;  /* CALL_NOTICE; the shard also CALL_STOPPED, CALL_FOLLOWED, CALL_COPY */
    uint64_t number;               /* CALL_STOPPED, CALL_FOLLOWED: of the copy; CALL_COPY: its id */
    dataplane_copy_event event;    /* CALL_COPY */
    dataplane_suspicion suspicion; /* CALL_SUSPICION */
    shard_copy_waiter waiter;      /* CALL_STOPPED */
    fab_provider provider;         /* CALL_UNREACHABLE */
    uint32_t device;               /* the same */
    dataplane_ended end;           /* CALL_ENDED */
    dataplane_slow slow;           /* CALL_SLOW */
    uint32_t omitted;              /* CALL_SLOW: before it */
} call;

/* server_call.c, on the event loop. */
void server_drop(server *s); /* by each of the two holders, once */
/* the thread-safe function goes when no thread runs any more and no call is pending */
void server_let_loop_go(server *s);
void server_on_loop(napi_env env, napi_value function, void *context, void *item);
void server_loop_gone(napi_env env, void *s, void *hint);
/* Of a method's call: the server and the first n arguments; NULL with an exception pending. */
server *server_self(napi_env env, napi_callback_info info, napi_value *self, napi_value *argv, size_t n);
napi_value server_rejected(napi_env env, fkv_status status, const char *text);
/* The number of a shard; false with an exception pending. */
bool server_shard_argument(napi_env env, const server *s, napi_value v, uint32_t *out);
/* A promise and the call that will settle it; NULL when *promise is all there is to return. */
call *server_begin(napi_env env, server *s, call_kind kind, napi_value *promise);

/* server_copies.c: methods, and what follows from them. */
napi_value server_copy_shard(napi_env env, napi_callback_info info);
napi_value server_stop_copy(napi_env env, napi_callback_info info);
napi_value server_follow_copy(napi_env env, napi_callback_info info);
void server_copy_stopped(const call *c); /* on the event loop, for CALL_STOPPED and CALL_FOLLOWED */
/* by whoever ends the data plane: waits, and the event loop begins no more */
void server_stop_copies(server *s);

/* server_replicas.c: methods. */
napi_value server_follow_owner(napi_env env, napi_callback_info info);
napi_value server_lead_copy(napi_env env, napi_callback_info info);
napi_value server_configure_copies(napi_env env, napi_callback_info info);
napi_value server_require_copy(napi_env env, napi_callback_info info);
napi_value server_drop_copy(napi_env env, napi_callback_info info);
napi_value server_keep_base(napi_env env, napi_callback_info info);
napi_value server_hand_over(napi_env env, napi_callback_info info);
napi_value server_step_down(napi_env env, napi_callback_info info);

napi_value server_discard_copy(napi_env env, napi_callback_info info);

/* server_binding.c: of its life, for server_durable.c. False with an exception pending. */
bool server_hold_loop(napi_env env, server *s, napi_value self);
void server_release_loop(napi_env env, server *s);
void server_closes(napi_env env, server *s); /* on a thread of the pool; what waits for it is told then */

/* server_durable.c. DataPlaneOptions.log into the server's options; methods; what a failure is told with. */
bool server_read_log(napi_env env, napi_value options, server *s);
void server_free_log(server *s);
void server_give_up(server *s); /* a `recover` that is under way */
napi_value server_recover(napi_env env, napi_callback_info info);
napi_value server_progress(napi_env env, napi_callback_info info);
size_t server_failure_arguments(napi_env env, const call *c, napi_value *argv);
void server_log_failed(void *server, const char *operation, const char *file, int error);
void server_snapshot_failed(void *server, uint32_t shard, const char *operation, const char *file, int error);

/* server_call.c, on the data plane's threads: a dataplane_done, and what dataplane_config names. */
void server_post(call *c); /* to the event loop */
void server_done(void *call, fkv_status status, void *result);
void server_layout_changed(void *server, uint32_t shard, uint32_t layout_epoch);
void server_transport_lost(void *server, fab_provider provider, uint32_t device);
void server_client_ended(void *server, const dataplane_ended *e);
void server_slow(void *server, const dataplane_slow *s);
void server_fabric_says(void *server, int level, const char *text);
void server_copy_noticed(void *server, uint32_t shard, uint64_t copy, dataplane_copy_event what);
void server_owner_suspected(void *server, const dataplane_suspicion *o);

#endif
