/* client.h: the object behind NativeClient, shared by the files client_*.c. Private to native/node.
 *
 *   client_binding.c   the class: constructor, close, life     client_loop.c      libuv: waiting, timers, callbacks
 *   client_calls.c     get, getSync, put: one crossing each    client_many.c      getMany
 *   client_key.c       keys: texts, bytes, prepared ones       client_put_many.c  putMany
 *   client_texts.c     the keys of a batch as one text         client_drain.c     drain, take
 *   client_ops.c       the table of operations                 client_stats.c     stats
 *   client_map.c       setTicket, setReplicated, setOwners, setRoutes
 *   client_steps.c     takeSteps: what a traced client did
 *   client_lines.c     what transports say
 *   client_redis.c     listenRedis, endRedis, closeRedis: a Redis gateway over this client
 *
 * Life. A client is one block of memory with a count of those who hold it: libuv's handles until they are closed, the
 * JavaScript object, each of its methods (they are made for the object and carry the pointer, so no call has to look it
 * up), and the two arrays that lie in it. It is open until close(), the end of the environment, or the collection of
 * the object; what follows finds `lookup` NULL.
 *
 * Operations. get, put and the others either answer at once or leave a client_op, which ends exactly once: it becomes
 * READY and waits to be drained. JavaScript's memory is never kept beyond a call: values that are sent are copied
 * before it returns, and values that came later leave native memory only when drain or take copies them.
 */
#ifndef FARKV_NODE_CLIENT_H
#define FARKV_NODE_CLIENT_H
#include <pthread.h>
#include <uv.h>
#include "../base/list.h"
#include "../base/poller.h"
#include "../client/lookup/lookup.h"
#include "binding.h"
#include "lines.h"

enum {
    CLIENT_QUEUES = SESSION_PLACES,
    CLIENT_EVENTS = 256,         /* waiting to be told; more are dropped */
    CLIENT_LINES = 16,           /* likewise */
    CLIENT_COMPLETIONS = 512,    /* records of one drain */
    CLIENT_WORDS = 10,           /* CompletionField.Words in native-client.ts */
    CLIENT_TEXTS_MAX = 64 << 10, /* TEXTS_MAX in native-client.ts */
    CLIENT_TEXTS_KEYS = 1024,    /* PUTS_MAX in native-client.ts */
    CLIENT_HALF_MIN = 8,         /* of 16 in flight */
    CLIENT_HALF_MAX = 16,        /* larger parts are asked for by themselves wherever the owner is */
    CLIENT_APART = 8,
    CLIENT_PENDING_STATUS = 255, /* PENDING_STATUS in native-client.ts */
    /* of an id are the place in the table, CLIENT_PLACE_BITS in native-client.ts; the rest is a generation */
    CLIENT_PLACE_BITS = 16,
    CLIENT_ID_BITS = 30,          /* with PENDING_BASE still a small integer of V8, for which no object is made */
    CLIENT_PENDING_BASE = 1 << 30 /* PENDING_BASE in native-client.ts */
};

/* The offset of a record that has no value: no place in any memory, and nothing may be computed with it. NO_VALUE in
 * native-client.ts. */
#define CLIENT_NO_VALUE   UINT32_MAX
/* So many bytes of a target are used at most, so that every offset in it, its end too, is below CLIENT_NO_VALUE. */
#define CLIENT_TARGET_MAX (UINT32_MAX - 1)

/* CompletionField in native-client.ts. */
enum {
    FIELD_ID,
    FIELD_STATUS,
    FIELD_BYTES,
    FIELD_OFFSET,
    FIELD_CODEC,
    FIELD_USER_FLAGS,
    FIELD_VERSION_LOW,
    FIELD_VERSION_HIGH,
    FIELD_RESULT_LOW,
    FIELD_RESULT_HIGH
};

/* HELD: too large for a slab, waits for take */
typedef enum { OP_FREE, OP_OUTSTANDING, OP_READY, OP_HELD } client_op_state;

typedef struct client client;
typedef struct client_redis client_redis;

typedef struct client_op {
    fkv_list link; /* free, busy, ready, held */
    client *c;
    uint32_t index, generation;
    client_op_state state;
    struct client_kind *kind; /* whose outstanding ones it is counted among; NULL: of no such kind */
    lookup_get *get;          /* NULL: not a GET, or released */
    uint64_t request;         /* of the session, for what is not a GET */
    lookup_result result;
    uint8_t *value; /* the lookup's while `get`, else of malloc; NULL: none */
    /* Of one without a kind. Not NULL: called instead of having it drained; whoever set it frees the operation. */
    void (*ended)(struct client_op *o);
    void *owner;
} client_op;

typedef struct client_watch {
    uv_poll_t poll;
    client *c;
    fab_cq *cq;
} client_watch;

/* GETs, or changes: what is polled for before the event loop goes on. */
typedef struct client_kind {
    uint32_t outstanding; /* not yet ready */
    /* which getMany started since the last flush; of putMany none: its owner needs the processor longer */
    uint32_t many;
    poller poller;
    uint32_t apart; /* flushes after which not everything was answered at once; from CLIENT_APART on, halves pay */
} client_kind;

typedef struct client_line {
    int level;        /* FAB_LOG_* */
    uint32_t omitted; /* so many before it were not told */
    char text[512];
} client_line;

struct client {
    lookup *lookup; /* NULL: closed */
    napi_env env;
    uint32_t holders;
    uint32_t shards; /* their numbers are below it */
    double timeout_ms;

    /* operations */
    client_op *table;
    uint32_t places;                             /* of the table that were ever in use */
    uint32_t capacity, outstanding, ready_count; /* outstanding: neither free nor held */
    fkv_list free, busy, ready, held;
    client_kind gets, changes;

    /* the loop */
    uv_loop_t *loop;
    uv_prepare_t prepare;
    uv_idle_t idle;
    uv_timer_t timer;
    uint64_t timer_due_ns;
    uint64_t looked_ns,
        idle_ns; /* when it was last looked whether the loop is held, and how long it had slept by then */
    client_watch *watch[CLIENT_QUEUES];
    uint32_t watches, handles; /* handles: open ones of libuv */
    bool keeps_alive, told;    /* told: onReady was called and the ready list was not empty since */
    bool delivering;
    napi_async_context context;
    napi_async_cleanup_hook_handle cleanup;
    napi_ref on_ready, on_event, resource;
    session_event events[CLIENT_EVENTS];
    client_redis *redis; /* NULL: none */
    uint32_t event_first, event_count;
    client_line lines[CLIENT_LINES]; /* of transports, waiting to be told; under the lock */
    uint32_t line_first, line_count; /* line_count is read without it */
    line_budget lines_budget;
    pthread_mutex_t lines_lock;

    /* arrays shared with JavaScript */
    uint32_t info[CLIENT_WORDS];
    uint32_t completions[CLIENT_COMPLETIONS * CLIENT_WORDS];

    /* the keys of a batch (client_texts.c) */
    bool texts_in_use; /* they are not to be read anew: JavaScript may run before the last is taken */
    uint32_t text_length[CLIENT_TEXTS_KEYS];
    uint8_t texts[CLIENT_TEXTS_MAX + 8]; /* a text that was cut has more than CLIENT_TEXTS_MAX bytes here */
};

/* client_binding.c */
void client_drop(client *c); /* one holder less */
void client_close(client *c);
/* The client of a callback and its arguments, missing ones undefined; NULL with an exception pending. */
client *client_arguments(napi_env env, napi_callback_info info, napi_value *argv, size_t n);

/* client_ops.c */
bool client_ops_create(client *c, uint32_t capacity);
client_op *client_op_take(client *c, client_kind *k); /* NULL: too many are outstanding */
void client_op_free(client_op *o);
void client_op_ready(client_op *o, fkv_status s); /* ended: waits to be drained */
uint32_t client_op_id(const client_op *o);
client_op *client_op_of(client *c, uint32_t id);
void client_get_done(void *ctx, lookup_get *g); /* lookup_config.done */
void client_request_done(void *user, session_answer *a);
void client_record(uint32_t *words, uint32_t id, const lookup_result *r, uint32_t offset);
void client_ops_close(client *c); /* values that lie in the lookup's memory are saved */

/* client_calls.c */
/* Sends a request; `*out` is its operation. BUSY and the like: it was not sent, and there is none. */
fkv_status client_send(client *c, session_ask *a, client_kind *k, client_op **out);

/* client_key.c */
typedef struct client_key {
    uint8_t room[FKV_KEY_MAX + 4];
    lookup_key key; /* its bytes lie in `room`, or in memory of JavaScript until that runs again */
} client_key;
fkv_status client_key_of_array(client *c, napi_env env, napi_value v, uint16_t space, lookup_key *out);
static inline fkv_status client_key_of(client *c, napi_env env, napi_value v, uint16_t space, client_key *out) {
    size_t n;
    if (!binding_key_text(env, v, out->room, &n)) return client_key_of_array(c, env, v, space, &out->key);
    out->key = (lookup_key){ .bytes = out->room, .count = (uint32_t)n, .space = space };
    return n >= 1 && n <= FKV_KEY_MAX ? FKV_OK : FKV_KEY_INVALID;
}
static inline fkv_status client_read_key(client *c, napi_env env, napi_value space, napi_value v, client_key *out) {
    uint32_t number;
    if (napi_get_value_uint32(env, space, &number) != napi_ok || number > UINT16_MAX) return FKV_BAD_REQUEST;
    return client_key_of(c, env, v, (uint16_t)number, out);
}

/* client_texts.c */
typedef struct client_texts {
    const uint8_t *next;    /* of what is not taken yet, in the client's `texts` */
    const uint32_t *length; /* in its `text_length` */
} client_texts;
/* False: there is none, or it is not of the kind that can be read so; its keys are to be read one by one. */
bool client_texts_read(client *c, napi_env env, napi_value text, napi_value lengths, uint32_t keys, client_texts *out);
/* The next key; its bytes stay where they are until the next batch is read. */
static inline fkv_status client_texts_next(client_texts *t, uint16_t space, lookup_key *out) {
    *out = (lookup_key){ .bytes = t->next, .count = *t->length, .space = space };
    t->next += *t->length++;
    return out->count >= 1 && out->count <= FKV_KEY_MAX ? FKV_OK : FKV_KEY_INVALID;
}

/* client_redis.c */
void client_redis_close(client *c);

/* client_loop.c */
bool client_loop_open(client *c, napi_env env);
void client_loop_watch(client *c); /* completion queues that are new */
void client_loop_close(client *c);
void client_handle_closed(client *c);                 /* one of its `handles` is gone */
void client_keep_alive(client *c);                    /* as long as something is outstanding */
void client_event(void *ctx, const session_event *e); /* lookup_config.event */

/* Methods. */
napi_value client_get(napi_env env, napi_callback_info info);
napi_value client_get_sync(napi_env env, napi_callback_info info);
napi_value client_get_many(napi_env env, napi_callback_info info);
napi_value client_put(napi_env env, napi_callback_info info);
napi_value client_put_many(napi_env env, napi_callback_info info);
napi_value client_delete_many(napi_env env, napi_callback_info info);
napi_value client_compare_and_swap(napi_env env, napi_callback_info info);
napi_value client_delete(napi_env env, napi_callback_info info);
napi_value client_increment(napi_env env, napi_callback_info info);
napi_value client_append(napi_env env, napi_callback_info info);
napi_value client_touch(napi_env env, napi_callback_info info);
napi_value client_scan(napi_env env, napi_callback_info info);
napi_value client_tally(napi_env env, napi_callback_info info);
napi_value client_shard_of(napi_env env, napi_callback_info info);
napi_value client_hash_of(napi_env env, napi_callback_info info);
napi_value client_cancel(napi_env env, napi_callback_info info);
napi_value client_flush(napi_env env, napi_callback_info info);
napi_value client_drain(napi_env env, napi_callback_info info);
napi_value client_take(napi_env env, napi_callback_info info);
napi_value client_prepare_key(napi_env env, napi_callback_info info);
napi_value client_set_ticket(napi_env env, napi_callback_info info);
napi_value client_set_replicated(napi_env env, napi_callback_info info);
napi_value client_set_owners(napi_env env, napi_callback_info info);
napi_value client_set_routes(napi_env env, napi_callback_info info);
napi_value client_listen_redis(napi_env env, napi_callback_info info);
napi_value client_end_redis(napi_env env, napi_callback_info info);
napi_value client_close_redis(napi_env env, napi_callback_info info);
napi_value client_stats(napi_env env, napi_callback_info info);
napi_value client_take_steps(napi_env env, napi_callback_info info);

/* client_lines.c */
void client_transport_says(void *client, int level, const char *text); /* by any thread */
bool client_next_line(client *c, client_line *out);

/* An answer: done, or -(status). */
static inline napi_value client_answer(napi_env env, double v) {
    napi_value out;
    return napi_create_double(env, v, &out) == napi_ok ? out : NULL;
}
static inline napi_value client_refuse(napi_env env, fkv_status s) {
    napi_value out;
    return napi_create_int32(env, -(int32_t)s, &out) == napi_ok ? out : NULL;
}
static inline napi_value client_pending(napi_env env, const client_op *o) {
    napi_value out;
    /* a small integer: no object */
    return napi_create_uint32(env, CLIENT_PENDING_BASE + client_op_id(o), &out) == napi_ok ? out : NULL;
}

#endif
