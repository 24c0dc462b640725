/* client_many.c: getMany: keys are read and looked up in groups, so that the cache misses of one group overlap; what cannot be
 * answered in place becomes an operation of its own. */
#include "client.h"
#include <string.h>

typedef struct batch {
    client *c;
    napi_env env;
    napi_value keys, target, record_array;
    uint8_t *to;
    size_t room, at, used;           /* the target from its offset `at` on */
    uint32_t *records;
    size_t words;                    /* of records */
    uint64_t now_ns, deadline_ns;
    uint32_t pending, flushed;       /* flushed: of them, when the doorbell was last rung */
    uint16_t ns;
} batch;

/* So many that are posted are worth a doorbell: the owners begin while the rest is posted. */
enum { FLUSH_EVERY = 2 * LOOKUP_GROUP };

static void start_one(batch *b, const lookup_key *k, uint32_t index, uint32_t *record) {
    client_op *o = client_op_take(b->c);
    fkv_status s = FKV_BUSY;
    if (o) {
        o->is_get = true;
        b->c->gets++;
        s = lookup_start(b->c->lookup, k, b->now_ns, b->deadline_ns, o, &o->get);
        if (s != FKV_OK) client_op_free(o);
    }
    client_record(record, index, &(lookup_result){ .status = s }, UINT32_MAX);
    if (s != FKV_OK) return;
    record[FIELD_ID] = client_op_id(o);
    record[FIELD_STATUS] = CLIENT_PENDING_STATUS;
    b->pending++;
}

/* The caller's array may have getters, and they may do anything: close the client, detach its buffers. */
static bool still_there(batch *b) {
    uint8_t *to;
    size_t room, words;
    void *records;
    if (!b->c->lookup) {
        binding_throw(b->env, FKV_CLOSED, NULL);
        return false;
    }
    if (!binding_bytes(b->env, b->target, &to, &room)) return false;
    if (napi_get_typedarray_info(b->env, b->record_array, NULL, &words, &records, NULL, NULL) == napi_ok &&
        room >= b->at + b->room && (b->room == 0 || to + b->at == b->to) && words == b->words && records == b->records) return true;
    binding_throw(b->env, FKV_BAD_REQUEST, "the target or the records were taken away while the keys were read");
    return false;
}

/* Records are for `first` and the n - 1 keys after it. False: an exception is pending. */
static bool run_group(batch *b, uint32_t first, int n) {
    client_key read[LOOKUP_GROUP];
    lookup_key key[LOOKUP_GROUP] = { { 0 } };
    lookup_result result[LOOKUP_GROUP];
    size_t at[LOOKUP_GROUP];
    uint32_t index[LOOKUP_GROUP];
    bool done[LOOKUP_GROUP];
    int good = 0;
    for (int i = 0; i < n; i++) {
        napi_value v;
        fkv_status s = FKV_KEY_INVALID;
        if (napi_get_element(b->env, b->keys, first + (uint32_t)i, &v) == napi_ok && b->c->lookup) {
            s = client_key_of(b->c, b->env, v, b->ns, &read[good]);
        }
        if (s != FKV_OK) {
            uint32_t at_key = first + (uint32_t)i;
            if (!still_there(b)) return false;
            client_record(b->records + at_key * CLIENT_WORDS, at_key, &(lookup_result){ .status = s }, UINT32_MAX);
            continue;
        }
        key[good] = read[good].key;
        if (key[good].bytes != read[good].room) {      /* reading the next element may run a getter, which may detach this buffer */
            memcpy(read[good].room, key[good].bytes, key[good].count);
            key[good].bytes = read[good].room;
        }
        index[good++] = first + (uint32_t)i;
    }
    if (!still_there(b)) return false;
    size_t used = lookup_direct_group(b->c->lookup, key, good, b->to + b->used, b->room - b->used, result, at, done);
    for (int i = 0; i < good; i++) {
        uint32_t *record = b->records + index[i] * CLIENT_WORDS;
        uint32_t offset = done[i] && result[i].status == FKV_OK ? (uint32_t)(b->at + b->used + at[i]) : UINT32_MAX;
        if (done[i]) client_record(record, index[i], &result[i], offset);
        else start_one(b, &key[i], index[i], record);
    }
    b->used += used;
    if (b->pending - b->flushed >= FLUSH_EVERY) {
        session_flush(lookup_session(b->c->lookup));
        b->flushed = b->pending;
    }
    return true;
}

napi_value client_get_many(napi_env env, napi_callback_info info) {
    napi_value argv[6];
    client *c = client_arguments(env, info, argv, 6);
    batch b = { .c = c, .env = env };
    napi_typedarray_type type;
    uint32_t ns, keys;
    double offset, ms;
    size_t words;
    void *records;
    bool is_array;
    if (!c) return NULL;
    if (!c->lookup) {
        binding_throw(env, FKV_CLOSED, NULL);
        return NULL;
    }
    bool good = napi_get_value_uint32(env, argv[0], &ns) == napi_ok && ns <= UINT16_MAX;
    good = good && napi_is_array(env, argv[1], &is_array) == napi_ok && is_array;
    good = good && napi_get_array_length(env, argv[1], &keys) == napi_ok;
    if (good && !binding_bytes(env, argv[2], &b.to, &b.room)) return NULL;
    good = good && napi_get_value_double(env, argv[3], &offset) == napi_ok && offset >= 0 && offset <= (double)b.room;
    good = good && napi_get_typedarray_info(env, argv[4], &type, &words, &records, NULL, NULL) == napi_ok;
    if (!good || type != napi_uint32_array || words / CLIENT_WORDS < keys) {
        binding_throw(env, FKV_BAD_REQUEST, "getMany takes a namespace, keys, a target, an offset in it, and a record for each key");
        return NULL;
    }
    if (napi_get_value_double(env, argv[5], &ms) != napi_ok || !(ms > 0)) ms = c->timeout_ms;
    b.at = (size_t)offset;
    b.to += b.at;
    b.room -= b.at;
    b.ns = (uint16_t)ns;
    b.keys = argv[1];
    b.records = records;
    b.target = argv[2];
    b.record_array = argv[4];
    b.words = words;
    b.now_ns = session_now(lookup_session(c->lookup));
    b.deadline_ns = b.now_ns + (uint64_t)((ms > 2147483647.0 ? 2147483647.0 : ms) * 1e6);
    for (uint32_t i = 0; i < keys; i += LOOKUP_GROUP) {
        napi_handle_scope scope;
        if (napi_open_handle_scope(env, &scope) != napi_ok) return NULL;
        bool went = run_group(&b, i, keys - i < LOOKUP_GROUP ? (int)(keys - i) : LOOKUP_GROUP);
        napi_close_handle_scope(env, scope);
        if (!went) return NULL;
    }
    c->many += b.pending;
    return client_answer(env, b.pending);
}
