/* store.h: what the commands need of the store behind them. The addon implements it with a client (node/client_redis.c),
 * tests with a table of their own. */
#ifndef FARKV_RESP_STORE_H
#define FARKV_RESP_STORE_H
#include "../client/lookup/lookup.h"

/* A call that was started. It ends once, by resp_call_ended, never from inside the call that starts it. */
typedef struct resp_call resp_call;

typedef struct resp_store {
    void *ctx;
    uint64_t (*hash)(void *ctx, const lookup_key *k);
    /* The whole GET at once, as lookup_direct; false: not possible now. */
    bool (*get_now)(void *ctx, const lookup_key *k, uint8_t *to, size_t room, lookup_result *out);
    /* Start a call. BUSY: not now, later; what else is not OK ends it as well. Keys and values are copied. */
    fkv_status (*get)(void *ctx, const lookup_key *k, resp_call *call);
    /* The store adds shard and deadline. */
    fkv_status (*change)(void *ctx, const lookup_key *k, session_ask *a, resp_call *call);
    /* A page of a SCAN, which ends with its body as the value, or of a TALLY, of one of `shards`, counted from 0. */
    fkv_status (*walk)(void *ctx, session_ask *a, resp_call *call);
    uint32_t shards;
} resp_store;

/* What came of it: result, and the value of a GET or SCAN that has one, valid until this returns. */
void resp_call_ended(resp_call *call, const lookup_result *r, const uint8_t *value);

#endif
