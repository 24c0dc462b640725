/* client_drain.c: moves what has ended out to JavaScript: records, and values into the slab. */
#include <string.h>
#include "client.h"

typedef struct slab {
    uint8_t *bytes;
    size_t room, used;
} slab;

/* False when the slab has no room left for it, but would have had empty: it waits for the next drain. */
static bool take_out(client_op *o, slab *s, uint32_t *record) {
    client *c = o->c;
    uint32_t bytes = o->value && o->result.status == FKV_OK ? o->result.value_bytes : 0, at = CLIENT_NO_VALUE;
    bool keep = false;
    if (o->value && o->result.status == FKV_OK) {
        if (bytes > s->room - s->used && bytes <= s->room) return false;
        keep = bytes > s->room;
        if (!keep) {
            at = (uint32_t)s->used;
            if (bytes) memcpy(s->bytes + s->used, o->value, bytes);
            s->used += bytes;
        }
    }
    lookup_result r = o->result;
    if (keep) r.status = FKV_BUFFER_TOO_SMALL;
    client_record(record, client_op_id(o), &r, at);
    if (keep) {
        list_remove(&o->link);
        list_push(&c->held, &o->link);
        o->state = OP_HELD;
        c->ready_count--;
        c->outstanding--;
        client_keep_alive(c);
    } else {
        client_op_free(o);
    }
    return true;
}

napi_value client_drain(napi_env env, napi_callback_info info) {
    napi_value argv[1];
    client *c = client_arguments(env, info, argv, 1);
    slab s = { 0 };
    uint32_t n = 0;
    if (!c || !binding_bytes(env, argv[0], &s.bytes, &s.room)) return NULL;
    if (s.room > CLIENT_TARGET_MAX) s.room = CLIENT_TARGET_MAX;
    if (c->lookup) session_poll(lookup_session(c->lookup));
    while (n < CLIENT_COMPLETIONS && !list_empty(&c->ready)) {
        client_op *o = LIST_OF(c->ready.next, client_op, link);
        if (!take_out(o, &s, c->completions + n * CLIENT_WORDS)) break;
        n++;
    }
    c->info[FIELD_ID] = c->ready_count != 0;
    c->info[FIELD_BYTES] = (uint32_t)s.used;
    c->told = c->ready_count != 0;
    return client_answer(env, n);
}

napi_value client_take(napi_env env, napi_callback_info info) {
    napi_value argv[2], undefined;
    client *c = client_arguments(env, info, argv, 2);
    uint32_t id;
    uint8_t *to;
    size_t room;
    if (!c || !binding_bytes(env, argv[1], &to, &room)) return NULL;
    client_op *o = napi_get_value_uint32(env, argv[0], &id) == napi_ok ? client_op_of(c, id) : NULL;
    if (!o || o->state != OP_HELD) {
        binding_throw(env, FKV_BAD_REQUEST, "no value is held under this id");
        return NULL;
    }
    /* the client was closed, and there was no memory to keep the value in (client_ops_close) */
    if (o->result.status != FKV_OK) {
        fkv_status why = o->result.status;
        client_op_free(o);
        binding_throw(env, why, NULL);
        return NULL;
    }
    if (o->result.value_bytes > room) {
        binding_throw(env, FKV_BUFFER_TOO_SMALL, NULL);
        return NULL;
    }
    memcpy(to, o->value, o->result.value_bytes);
    client_op_free(o);
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}
