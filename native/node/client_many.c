/* client_many.c: getMany: keys are read and looked up in groups, so that the cache misses of one group overlap; what
 * cannot be answered in place becomes an operation of its own. */
#include "client.h"
#include <string.h>

typedef struct batch {
    client *c;
    napi_env env;
    napi_value keys, target, record_array;
    uint8_t *to;
    size_t room, at, used; /* the target from its offset `at` on */
    uint32_t *records;
    size_t words; /* of records */
    uint64_t now_ns, deadline_ns;
    uint32_t pending, flushed; /* flushed: of them, when the doorbell was last rung */
    uint32_t doorbell;         /* so many that are posted are worth one */
    uint16_t space;
    bool joined; /* keys come from `texts` */
    client_texts texts;
} batch;

/* So many that are posted are worth a doorbell where the caller does not say: the owners begin while the rest is
 * posted. */
enum { DOORBELL = 2 * LOOKUP_GROUP };

static void start_one(batch *b, const lookup_key *k, uint32_t index, uint32_t *record) {
    client_op *o = client_op_take(b->c, &b->c->gets);
    fkv_status s = FKV_BUSY;
    if (o) {
        s = lookup_start(b->c->lookup, k, b->now_ns, b->deadline_ns, o, &o->get);
        if (s != FKV_OK) client_op_free(o);
    }
    client_record(record, index, &(lookup_result){ .status = s }, CLIENT_NO_VALUE);
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
        room >= b->at + b->room && (b->room == 0 || to + b->at == b->to) && words == b->words && records == b->records)
        return true;
    binding_throw(b->env, FKV_BAD_REQUEST, "the target or the records were taken away while the keys were read");
    return false;
}

typedef struct group {
    lookup_key key[LOOKUP_GROUP];
    uint32_t index[LOOKUP_GROUP];
    client_key room[LOOKUP_GROUP];
} group;

static void refuse_key(batch *b, uint32_t i, fkv_status s) {
    client_record(b->records + i * CLIENT_WORDS, i, &(lookup_result){ .status = s }, CLIENT_NO_VALUE);
}

/* Out of the batch's text: JavaScript does not run. Returns how many are keys. */
static int read_joined(batch *b, group *g, uint32_t first, int n) {
    int good = 0;
    for (int i = 0; i < n; i++) {
        fkv_status s = client_texts_next(&b->texts, b->space, &g->key[good]);
        if (s == FKV_OK)
            g->index[good++] = first + (uint32_t)i;
        else
            refuse_key(b, first + (uint32_t)i, s);
    }
    return good;
}

/* One element after the other; -1: an exception is pending. */
static int read_each(batch *b, group *g, uint32_t first, int n) {
    int good = 0;
    for (int i = 0; i < n; i++) {
        napi_value v;
        fkv_status s = FKV_KEY_INVALID;
        client_key *k = &g->room[good];
        if (napi_get_element(b->env, b->keys, first + (uint32_t)i, &v) == napi_ok && b->c->lookup) {
            s = client_key_of(b->c, b->env, v, b->space, k);
        }
        if (s != FKV_OK) {
            if (!still_there(b)) return -1;
            refuse_key(b, first + (uint32_t)i, s);
            continue;
        }
        /* reading the next element may run a getter, which may detach this buffer */
        if (k->key.bytes != k->room) {
            memcpy(k->room, k->key.bytes, k->key.count);
            k->key.bytes = k->room;
        }
        g->key[good] = k->key;
        g->index[good++] = first + (uint32_t)i;
    }
    return still_there(b) ? good : -1;
}

/* Records are for `first` and the n - 1 keys after it. False: an exception is pending. */
static bool run_group(batch *b, uint32_t first, int n) {
    group g;
    lookup_result result[LOOKUP_GROUP];
    size_t at[LOOKUP_GROUP];
    bool done[LOOKUP_GROUP];
    int good = b->joined ? read_joined(b, &g, first, n) : read_each(b, &g, first, n);
    if (good <= 0) return good == 0;
    size_t used = lookup_direct_group(b->c->lookup, g.key, good, b->to + b->used, b->room - b->used, result, at, done);
    for (int i = 0; i < good; i++) {
        uint32_t *record = b->records + g.index[i] * CLIENT_WORDS;
        uint32_t offset = done[i] && result[i].status == FKV_OK ? (uint32_t)(b->at + b->used + at[i]) : CLIENT_NO_VALUE;
        if (done[i])
            client_record(record, g.index[i], &result[i], offset);
        else
            start_one(b, &g.key[i], g.index[i], record);
    }
    b->used += used;
    bool early = b->doorbell > CLIENT_HALF_MAX || b->c->gets.apart >= CLIENT_APART;
    if (early && b->pending - b->flushed >= b->doorbell) {
        session_flush(lookup_session(b->c->lookup));
        b->flushed = b->pending;
    }
    return true;
}

napi_value client_get_many(napi_env env, napi_callback_info info) {
    napi_value argv[9];
    client *c = client_arguments(env, info, argv, 9);
    batch b = { .c = c, .env = env };
    napi_typedarray_type type;
    uint32_t space, keys;
    double offset, ms;
    size_t words;
    void *records;
    bool is_array;
    if (!c) return NULL;
    if (!c->lookup) {
        binding_throw(env, FKV_CLOSED, NULL);
        return NULL;
    }
    bool good = napi_get_value_uint32(env, argv[0], &space) == napi_ok && space <= UINT16_MAX;
    good = good && napi_is_array(env, argv[1], &is_array) == napi_ok && is_array;
    good = good && napi_get_array_length(env, argv[1], &keys) == napi_ok;
    if (good && !binding_bytes(env, argv[2], &b.to, &b.room)) return NULL;
    if (good && b.room > CLIENT_TARGET_MAX) b.room = CLIENT_TARGET_MAX;
    good = good && napi_get_value_double(env, argv[3], &offset) == napi_ok && offset >= 0 && offset <= (double)b.room;
    good = good && napi_get_typedarray_info(env, argv[4], &type, &words, &records, NULL, NULL) == napi_ok;
    if (!good || type != napi_uint32_array || words / CLIENT_WORDS < keys) {
        binding_throw(env, FKV_BAD_REQUEST,
                      "getMany takes a namespace, keys, a target, an offset in it, and a record for each key");
        return NULL;
    }
    if (napi_get_value_double(env, argv[5], &ms) != napi_ok || !(ms > 0)) ms = c->timeout_ms;
    if (napi_get_value_uint32(env, argv[8], &b.doorbell) != napi_ok || b.doorbell == 0) b.doorbell = DOORBELL;
    b.at = (size_t)offset;
    b.to += b.at;
    b.room -= b.at;
    b.space = (uint16_t)space;
    b.keys = argv[1];
    b.records = records;
    b.target = argv[2];
    b.record_array = argv[4];
    b.words = words;
    b.joined = client_texts_read(c, env, argv[6], argv[7], keys, &b.texts);
    b.now_ns = session_now(lookup_session(c->lookup));
    b.deadline_ns = b.now_ns + (uint64_t)((ms > 2147483647.0 ? 2147483647.0 : ms) * 1e6);
    for (uint32_t i = 0; i < keys; i += LOOKUP_GROUP) {
        napi_handle_scope scope;
        if (napi_open_handle_scope(env, &scope) != napi_ok) return NULL;
        bool went = run_group(&b, i, keys - i < LOOKUP_GROUP ? (int)(keys - i) : LOOKUP_GROUP);
        napi_close_handle_scope(env, scope);
        if (!went) return NULL;
    }
    c->gets.many += b.pending;
    c->info[FIELD_BYTES] = (uint32_t)(b.at + b.used);
    return client_answer(env, b.pending);
}
