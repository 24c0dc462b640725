/* derive.c: see derive.h. Invariant: an entry that is there, and stays, keeps its codec, its flags and, but for TOUCH,
 * its expiry. */
#include "derive.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "../base/integer.h"
#include "../table/layout.h"

fkv_status derive_sum(const op *o, const uint8_t *value, uint32_t value_bytes, derived *d) {
    int64_t before = 0, by, sum;
    memcpy(&by, &o->request.expected, sizeof by);
    d->answer = 0;
    if (value && !fkv_read_integer(value, value_bytes, &before)) return FKV_NOT_INTEGER;
    d->answer = 1;
    if (__builtin_add_overflow(before, by, &sum)) return FKV_NOT_INTEGER;
    d->tail = (const uint8_t *)d->text;
    d->tail_bytes = (uint32_t)snprintf(d->text, sizeof d->text, "%" PRId64, sum);
    memcpy(&d->answer, &sum, sizeof sum);
    return FKV_OK;
}

static fkv_status increment(const op *o, const table_entry *e, derived *d) {
    d->kept = 0;
    return derive_sum(o, e ? e->value : NULL, e ? e->value_bytes : 0, d);
}

static fkv_status append(const op *o, derived *d) {
    d->tail = o->body;
    d->tail_bytes = o->request.value_bytes;
    if (d->tail_bytes > FKV_VALUE_MAX - d->kept) return FKV_VALUE_TOO_LARGE;
    d->answer = d->kept + d->tail_bytes;
    return FKV_OK;
}

fkv_status derive(const op *o, const table_entry *e, derived *d) {
    const fkv_request *r = &o->request;
    *d = (derived){ .codec = r->codec, .user_flags = r->user_flags, .expiry_ms = r->expiry };
    if (e) {
        d->present = e->value;
        d->kept = e->value_bytes;
        d->codec = e->codec;
        d->user_flags = e->user_flags;
        d->expiry_ms = r->op == FKV_OP_TOUCH ? r->expiry : e->expiry_ms;
    }
    if (r->op == FKV_OP_TOUCH) return e ? FKV_OK : FKV_NOT_FOUND;
    if (e && e->codec != r->codec) return FKV_WRONG_CODEC;
    if (fkv_op_is(r->op, FKV_FIELDS)) return derive_fields(o, e, d);
    return r->op == FKV_OP_INCREMENT ? increment(o, e, d) : append(o, d);
}
