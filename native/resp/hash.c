/* hash.c: changes of hashes, each one step of the owner (serve/derive_fields.c); hash_reads.c has the rest. */
#include <stdio.h>
#include <string.h>
#include "../wire/fields.h"
#include "internal.h"

enum { NAME = 2 }; /* the argument */

bool fields_fit(resp_connection *c, uint64_t bytes) {
    if (bytes <= FKV_APPEND_MAX) return true;
    resp_error(connection_answer(c), "ERR fields of %llu bytes: at most %d at a time, see docs/gateway.md",
               (unsigned long long)bytes, FKV_APPEND_MAX);
    return false;
}

/* A change of the fields that begin at NAME, each with its value if `valued`. NULL: answered. */
static resp_job *change_fields(resp_connection *c, const resp_work *w, fkv_op op, uint32_t arguments, bool valued) {
    uint64_t bytes = 0;
    uint32_t step = valued ? 2 : 1;
    for (uint32_t i = NAME; i < arguments; i++) bytes += argument(c, i).n;
    bytes += (uint64_t)(arguments - NAME) / step * FKV_FIELD_HEAD;
    resp_job *j = fields_fit(c, bytes) ? job_new(c, w, 1, 1, 1) : NULL;
    uint8_t *to = j ? job_keep_room(j, (uint32_t)bytes) : NULL;
    if (!to) return NULL;
    for (uint32_t i = NAME; i < arguments; i += step) {
        resp_bytes name = argument(c, i), value = { 0 };
        if (valued) value = argument(c, i + 1);
        fkv_field f = { .name = name.bytes, .name_bytes = name.n, .value = value.bytes, .value_bytes = value.n };
        to = fkv_put_field(to, &f);
    }
    j->ask.op = op;
    j->ask.codec = FKV_CODEC_FIELDS;
    return j;
}

static void answer_hash_failure(resp_out *o, fkv_status s) {
    if (s == FKV_VALUE_TOO_LARGE)
        resp_error(o, "ERR a hash has at most %d bytes, see docs/gateway.md", FKV_FIELDS_MAX);
    else
        answer_failure(o, s);
}

/* ---- HSET, HMSET, HSETNX ---- */

enum { ANSWERS_COUNT, ANSWERS_OK };

static void set_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (r->status == FKV_VERSION_MISMATCH)
        resp_integer(o, 0);
    else if (r->status != FKV_OK)
        answer_hash_failure(o, r->status);
    else if (j->what == ANSWERS_OK)
        resp_simple(o, "OK");
    else
        resp_integer(o, (int64_t)r->expiry_ms);
}
static const resp_work set_work = { .changes = true, .start = start_change, .finish = set_finish };

static void set_fields(resp_connection *c, const char *name, uint8_t what, uint64_t expected) {
    if (c->parser.count % 2) {
        wrong_arguments(c, name);
        return;
    }
    resp_job *j = change_fields(c, &set_work, FKV_OP_SET_FIELDS, c->parser.count, true);
    if (!j) return;
    j->what = what;
    j->ask.expected = expected;
}
void hset_command(resp_connection *c) { set_fields(c, "hset", ANSWERS_COUNT, 0); }
void hmset_command(resp_connection *c) { set_fields(c, "hmset", ANSWERS_OK, 0); }
void hsetnx_command(resp_connection *c) { set_fields(c, "hsetnx", ANSWERS_COUNT, 1); }

/* ---- HDEL ---- */

static void del_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (r->status == FKV_OK || r->status == FKV_NOT_FOUND)
        resp_integer(o, r->status == FKV_OK ? (int64_t)r->expiry_ms : 0);
    else
        answer_hash_failure(o, r->status);
}
static const resp_work del_work = { .changes = true, .start = start_change, .finish = del_finish };
void hdel_command(resp_connection *c) { change_fields(c, &del_work, FKV_OP_DELETE_FIELDS, c->parser.count, false); }

/* ---- HINCRBY ---- */

static void incrby_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    int64_t n;
    memcpy(&n, &r->expiry_ms, sizeof n);
    if (r->status == FKV_OK)
        resp_integer(o, n);
    else if (r->status == FKV_NOT_INTEGER && n)
        resp_error(o, "ERR increment or decrement would overflow");
    else if (r->status == FKV_NOT_INTEGER)
        resp_error(o, "ERR hash value is not an integer");
    else
        answer_hash_failure(o, r->status);
}
static const resp_work incrby_work = { .changes = true, .start = start_change, .finish = incrby_finish };

void hincrby_command(resp_connection *c) {
    int64_t by;
    if (!integer_argument(c, 3, &by)) return;
    resp_job *j = change_fields(c, &incrby_work, FKV_OP_INCREMENT_FIELD, NAME + 1, false);
    if (j) memcpy(&j->ask.expected, &by, sizeof by);
}
