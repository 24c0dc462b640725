/* client_ops.c: operations that did not end inside their call: a fixed table, ids with a generation, and the list of
 * those that have ended and wait to be drained. */
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "client.h"

enum { GENERATIONS = 1 << (CLIENT_ID_BITS - CLIENT_PLACE_BITS) };
/* Places come into use so many at a time: ids are to come again late, but a walk through all places would miss the
 * caches each time. */
enum { PLACES_AT_ONCE = 512 };

bool client_ops_create(client *c, uint32_t capacity) {
    c->table = calloc(capacity, sizeof *c->table);
    if (!c->table) return false;
    c->capacity = capacity;
    return true;
}

static bool more_places(client *c) {
    uint32_t end = c->capacity - c->places < PLACES_AT_ONCE ? c->capacity : c->places + PLACES_AT_ONCE;
    if (c->places == end) return false;
    for (; c->places < end; c->places++) {
        client_op *o = &c->table[c->places];
        o->c = c;
        o->index = c->places;
        o->generation = 1;
        list_push(&c->free, &o->link);
    }
    return true;
}

client_op *client_op_take(client *c, client_kind *k) {
    if (list_empty(&c->free) && !more_places(c)) return NULL;
    /* The one that was free the longest, so that ids come again as late as possible. */
    client_op *o = LIST_OF(c->free.next, client_op, link);
    list_remove(&o->link);
    list_push(&c->busy, &o->link);
    o->state = OP_OUTSTANDING;
    o->kind = k;
    if (k)
        k->outstanding++;
    else
        o->ended = NULL;
    o->get = NULL;
    o->request = 0;
    o->value = NULL;
    o->result = (lookup_result){ 0 };
    c->outstanding++;
    client_keep_alive(c);
    return o;
}

void client_op_free(client_op *o) {
    client *c = o->c;
    fkv_assert(o->state != OP_FREE);
    if (o->get)
        lookup_release(o->get);
    else
        free(o->value);
    o->get = NULL;
    o->value = NULL;
    if (o->state == OP_READY) c->ready_count--;
    if (o->state == OP_OUTSTANDING && o->kind) o->kind->outstanding--;
    if (o->state != OP_HELD) c->outstanding--;
    o->state = OP_FREE;
    o->generation = o->generation + 1 < GENERATIONS ? o->generation + 1 : 1; /* no id is 0 */
    list_remove(&o->link);
    list_push(&c->free, &o->link);
    client_keep_alive(c);
}

void client_op_ready(client_op *o, fkv_status s) {
    client *c = o->c;
    fkv_assert(o->state == OP_OUTSTANDING); /* an operation ends once */
    o->result.status = s;
    if (o->kind) {
        o->kind->outstanding--;
    } else if (o->ended) {
        o->ended(o);
        return;
    }
    o->state = OP_READY;
    list_remove(&o->link);
    list_push(&c->ready, &o->link);
    c->ready_count++;
}

uint32_t client_op_id(const client_op *o) { return o->generation << CLIENT_PLACE_BITS | o->index; }

client_op *client_op_of(client *c, uint32_t id) {
    uint32_t index = id & ((1u << CLIENT_PLACE_BITS) - 1);
    if (index >= c->capacity) return NULL;
    client_op *o = &c->table[index];
    return o->state != OP_FREE && client_op_id(o) == id ? o : NULL;
}

void client_get_done(void *ctx, lookup_get *g) {
    (void)ctx;
    client_op *o = lookup_user(g);
    o->get = g;
    o->result = *lookup_result_of(g);
    if (o->result.status == FKV_OK) o->value = (uint8_t *)(uintptr_t)lookup_value(g);
    client_op_ready(o, o->result.status);
}

void client_request_done(void *user, session_answer *a) {
    client_op *o = user;
    fkv_status s = a->status;
    o->result = (lookup_result){ .codec = a->reply.codec,
                                 .user_flags = a->reply.user_flags,
                                 .version = a->reply.version,
                                 .expiry_ms = a->reply.expiry_ms };
    if (s == FKV_OK && a->reply.op == FKV_OP_SCAN && a->body_bytes) {
        o->result.value_bytes = a->body_bytes;
        o->value = session_take_body(a);
        if (!o->value) s = FKV_NO_MEMORY;
    }
    client_op_ready(o, s);
}

void client_record(uint32_t *w, uint32_t id, const lookup_result *r, uint32_t offset) {
    w[FIELD_ID] = id;
    w[FIELD_STATUS] = r->status;
    w[FIELD_BYTES] = r->value_bytes;
    w[FIELD_OFFSET] = offset;
    w[FIELD_CODEC] = r->codec;
    w[FIELD_USER_FLAGS] = r->user_flags;
    w[FIELD_VERSION_LOW] = (uint32_t)r->version;
    w[FIELD_VERSION_HIGH] = (uint32_t)(r->version >> 32);
    w[FIELD_RESULT_LOW] = (uint32_t)r->expiry_ms;
    w[FIELD_RESULT_HIGH] = (uint32_t)(r->expiry_ms >> 32);
}

static void save_value(client_op *o) {
    if (!o->get) return;
    if (o->value) {
        uint8_t *copy = malloc(o->result.value_bytes ? o->result.value_bytes : 1);
        if (copy)
            memcpy(copy, o->value, o->result.value_bytes);
        else
            o->result.status = FKV_NO_MEMORY;
        o->value = copy;
    }
    lookup_release(o->get);
    o->get = NULL;
}

void client_ops_close(client *c) {
    for (fkv_list *l = c->ready.next; l != &c->ready; l = l->next) save_value(LIST_OF(l, client_op, link));
    for (fkv_list *l = c->held.next; l != &c->held; l = l->next) save_value(LIST_OF(l, client_op, link));
}
