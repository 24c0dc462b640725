/* client_put_many.c: putMany and deleteMany: many changes in one crossing. Each is an operation of its own, as if put or
 * delete had been called for it, but that none is polled for: the owner works on the first while the last is being
 * sent. */
#include <string.h>
#include "client.h"

enum { FLUSH_EVERY = 32, PUTS_MAX = 1024 };

typedef struct put_call {
    client *c;
    napi_env env;
    napi_value keys, values;   /* values: of puts */
    session_ask ask;           /* what all have in common */
    uint32_t answer[PUTS_MAX]; /* PENDING_BASE + id, or the status */
    uint32_t pending;
    bool full, joined; /* joined: keys come from `texts` */
    client_texts texts;
} put_call;

/* Both elements are fetched before either is looked at: an array may have getters, which may do anything, such as close
 * the client or take a buffer away. */
static fkv_status put_one(put_call *p, uint32_t i, client_op **o) {
    napi_value key, value;
    fkv_status s = FKV_OK;
    napi_typedarray_type type;
    client_key k;
    size_t n;
    void *bytes;
    session_ask a = p->ask;
    bool valued = fkv_op_is(a.op, FKV_VALUED);
    if (p->joined)
        s = client_texts_next(&p->texts, a.space, &k.key);
    else if (napi_get_element(p->env, p->keys, i, &key) != napi_ok)
        return FKV_KEY_INVALID;
    if (valued && napi_get_element(p->env, p->values, i, &value) != napi_ok) return FKV_BAD_REQUEST;
    if (!p->c->lookup) return FKV_CLOSED;
    if (!p->joined) s = client_key_of(p->c, p->env, key, a.space, &k);
    if (s != FKV_OK) return s;
    if (valued) {
        if (napi_get_typedarray_info(p->env, value, &type, &n, &bytes, NULL, NULL) != napi_ok ||
            type != napi_uint8_array)
            return FKV_BAD_REQUEST;
        if (n > FKV_VALUE_MAX) return FKV_VALUE_TOO_LARGE;
        a.value = bytes;
        a.value_bytes = (uint32_t)n;
    }
    k.key.hash = lookup_hash(p->c->lookup, &k.key);
    k.key.hashed = true;
    a.key = k.key.bytes;
    a.key_bytes = k.key.count;
    a.shard = lookup_shard_of(p->c->lookup, &k.key);
    lookup_changes(p->c->lookup, &k.key);
    return client_send(p->c, &a, &p->c->changes, o);
}

static bool put_group(put_call *p, uint32_t first, uint32_t end) {
    napi_handle_scope scope;
    if (napi_open_handle_scope(p->env, &scope) != napi_ok) return false;
    bool exception = false;
    for (uint32_t i = first; i < end && !exception; i++) {
        client_op *o;
        fkv_status s = p->full ? FKV_BUSY : put_one(p, i, &o);
        p->full = s == FKV_BUSY; /* the rest comes behind it: changes keep their order */
        p->answer[i] = s == FKV_OK ? CLIENT_PENDING_BASE + client_op_id(o) : (uint32_t)s;
        p->pending += s == FKV_OK;
        exception = napi_is_exception_pending(p->env, &exception) != napi_ok || exception;
    }
    napi_close_handle_scope(p->env, scope);
    if (p->c->lookup) {
        session *s = lookup_session(p->c->lookup);
        session_flush(s);
        session_poll(s);
    }
    return !exception;
}

static bool answers_of(const put_call *p, napi_value v, uint32_t n, void **out) {
    napi_typedarray_type type;
    size_t words;
    return napi_get_typedarray_info(p->env, v, &type, &words, out, NULL, NULL) == napi_ok &&
           type == napi_uint32_array && words >= n;
}

typedef struct many_arguments {
    napi_value space, answers, timeout, text, lengths;
} many_arguments;

/* Posts a change of each of p->keys; `good`: the arguments that only one of the two calls has are. */
static napi_value change_many(put_call *p, const many_arguments *a, bool good, const char *takes) {
    uint32_t space, n;
    double ms;
    void *answers;
    good = good && napi_get_value_uint32(p->env, a->space, &space) == napi_ok && space <= UINT16_MAX &&
           napi_get_array_length(p->env, p->keys, &n) == napi_ok && n <= PUTS_MAX &&
           answers_of(p, a->answers, n, &answers);
    if (napi_get_value_double(p->env, a->timeout, &ms) != napi_ok || !(ms > 0)) ms = p->c->timeout_ms;
    p->ask.space = good ? (uint16_t)space : 0;
    p->ask.deadline_ns = session_now(lookup_session(p->c->lookup)) +
                         (uint64_t)((ms > 2147483647.0 ? 2147483647.0 : ms) * 1e6);
    p->joined = good && client_texts_read(p->c, p->env, a->text, a->lengths, n, &p->texts);
    bool went = good;
    p->c->texts_in_use |= p->joined;
    for (uint32_t i = 0; went && i < n; i += FLUSH_EVERY)
        went = put_group(p, i, i + FLUSH_EVERY < n ? i + FLUSH_EVERY : n);
    if (p->joined) p->c->texts_in_use = false;
    if (good && !went) return NULL;
    if (!good || !answers_of(p, a->answers, n, &answers)) { /* looked at again: see put_one */
        binding_throw(p->env, FKV_BAD_REQUEST, takes);
        return NULL;
    }
    memcpy(answers, p->answer, n * sizeof *p->answer);
    return client_answer(p->env, p->pending);
}

/* False: an exception is pending. */
static bool begins(put_call *p, napi_callback_info info, napi_value *argv, size_t argc) {
    p->c = client_arguments(p->env, info, argv, argc);
    if (!p->c) return false;
    if (!p->c->lookup) binding_throw(p->env, FKV_CLOSED, NULL);
    return p->c->lookup;
}

napi_value client_put_many(napi_env env, napi_callback_info info) {
    napi_value argv[8];
    uint32_t codec, n, values;
    put_call p = { .env = env };
    if (!begins(&p, info, argv, 8)) return NULL;
    bool good = napi_get_array_length(env, argv[1], &n) == napi_ok &&
                napi_get_array_length(env, argv[2], &values) == napi_ok && values == n &&
                napi_get_value_uint32(env, argv[3], &codec) == napi_ok && codec <= UINT8_MAX;
    p.keys = argv[1];
    p.values = argv[2];
    p.ask = (session_ask){ .op = FKV_OP_PUT, .codec = good ? (uint8_t)codec : 0 };
    many_arguments a = { argv[0], argv[4], argv[5], argv[6], argv[7] };
    return change_many(&p, &a, good,
                       "putMany takes a namespace, keys, as many values, a codec, and an answer for each");
}

napi_value client_delete_many(napi_env env, napi_callback_info info) {
    napi_value argv[6];
    put_call p = { .env = env, .ask = { .op = FKV_OP_DELETE } };
    if (!begins(&p, info, argv, 6)) return NULL;
    p.keys = argv[1];
    many_arguments a = { argv[0], argv[2], argv[3], argv[4], argv[5] };
    return change_many(&p, &a, true, "deleteMany takes a namespace, keys, and an answer for each");
}
