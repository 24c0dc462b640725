/* derive_fields.c: changes of the fields of a hash (wire/fields.h): SET_FIELDS, DELETE_FIELDS, INCREMENT_FIELD.
 *
 * The hash is gone through once, and of each of its fields it is looked whether the request names it. What comes of it is
 * written into memory of the worker: first the fields that are sought, then the value. An entry that is no hash, or has a
 * name twice, is WRONG_CODEC, so that what is made has at most the bytes of both.
 *
 * Bounds: the request's body is at most FKV_APPEND_MAX, the hash at most FKV_FIELDS_MAX. */
#include <stdlib.h>
#include <string.h>
#include "../dataplane/worker.h"
#include "../wire/fields.h"
#include "derive.h"

typedef struct edit {
    const op *o;
    derived *d;
    fkv_sought *list; /* of the request, sorted, each name once */
    uint32_t count;
    uint32_t there; /* of them, in the hash */
    uint8_t *from, *to;
} edit;

/* Room for so many bytes, kept for the next. */
static uint8_t *make_room(worker *w, size_t bytes) {
    if (w->made_room >= bytes) return w->made;
    uint8_t *larger = realloc(w->made, bytes);
    if (!larger) return NULL;
    w->made = larger;
    w->made_room = bytes;
    return larger;
}

/* Of one that is named twice the place is that of the first, and the value that of the last. */
static void seek(edit *e) {
    fkv_field f;
    uint32_t at = 0, all = 0, n = 0;
    while (fkv_next_field(e->o->body, e->o->request.value_bytes, &at, &f)) e->list[all++] = (fkv_sought){ .asked = f };
    fkv_sort_sought(e->list, all);
    for (uint32_t i = 0; i < all; i++) {
        fkv_field *asked = &e->list[i].asked;
        fkv_sought *same = n ? fkv_find_sought(&e->list[n - 1], 1, asked) : NULL;
        if (!same) {
            e->list[n++] = e->list[i];
            continue;
        }
        same->asked.value = asked->value;
        same->asked.value_bytes = asked->value_bytes;
    }
    e->count = n;
}

/* Writes what the request makes of a field; `present` NULL: the hash has none of its name. */
static fkv_status change(edit *e, fkv_sought *s, const fkv_field *present) {
    if (e->o->request.op == FKV_OP_DELETE_FIELDS) return FKV_OK;
    if (e->o->request.op == FKV_OP_INCREMENT_FIELD) {
        fkv_status status = derive_sum(e->o, present ? present->value : NULL, present ? present->value_bytes : 0, e->d);
        if (status != FKV_OK) return status;
        s->asked.value = e->d->tail;
        s->asked.value_bytes = e->d->tail_bytes;
    }
    e->to = fkv_put_field(e->to, &s->asked);
    return FKV_OK;
}

static fkv_status go_through(edit *e, const table_entry *present) {
    fkv_field f;
    uint32_t at = 0;
    fkv_status status = FKV_OK;
    while (status == FKV_OK && fkv_next_field(present->value, present->value_bytes, &at, &f)) {
        fkv_sought *s = fkv_find_sought(e->list, e->count, &f);
        if (s && s->found) return FKV_WRONG_CODEC;
        if (s) {
            s->found = true;
            e->there++;
            status = change(e, s, &f);
        } else {
            e->to = fkv_put_field(e->to, &f);
        }
    }
    return status == FKV_OK && at < present->value_bytes ? FKV_WRONG_CODEC : status;
}

/* Those that are new, in the order of the request. */
static fkv_status go_on(edit *e) {
    fkv_field f;
    uint32_t at = 0;
    fkv_status status = FKV_OK;
    while (status == FKV_OK && fkv_next_field(e->o->body, e->o->request.value_bytes, &at, &f)) {
        fkv_sought *s = fkv_find_sought(e->list, e->count, &f);
        if (s->found) continue;
        s->found = true;
        status = change(e, s, NULL);
    }
    return status;
}

static fkv_status conclude(edit *e) {
    const fkv_request *r = &e->o->request;
    derived *d = e->d;
    d->kept = 0;
    d->tail = e->from;
    d->tail_bytes = (uint32_t)(e->to - e->from);
    d->removes = d->tail_bytes == 0;
    if (r->op == FKV_OP_DELETE_FIELDS) d->answer = e->there;
    if (r->op == FKV_OP_DELETE_FIELDS && !e->there) return FKV_NOT_FOUND;
    if (r->op == FKV_OP_SET_FIELDS) d->answer = e->count - e->there;
    if (r->op == FKV_OP_SET_FIELDS && r->expected && e->there) return FKV_VERSION_MISMATCH;
    return d->tail_bytes > FKV_FIELDS_MAX ? FKV_VALUE_TOO_LARGE : FKV_OK;
}

fkv_status derive_fields(const op *o, const table_entry *present, derived *d) {
    uint32_t fields = o->request.value_bytes / FKV_FIELD_HEAD, before = present ? present->value_bytes : 0;
    size_t list_bytes = fields * sizeof(fkv_sought);
    if (before > FKV_FIELDS_MAX) return FKV_VALUE_TOO_LARGE;
    uint8_t *room = make_room(o->worker, list_bytes + before + o->request.value_bytes + sizeof d->text);
    if (!room) return FKV_NO_MEMORY;
    edit e = { .o = o, .d = d, .list = (fkv_sought *)(void *)room, .from = room + list_bytes, .to = room + list_bytes };
    seek(&e);
    fkv_status s = present ? go_through(&e, present) : FKV_OK;
    if (s == FKV_OK) s = go_on(&e);
    return s == FKV_OK ? conclude(&e) : s;
}
