/* hash_reads.c: reads of hashes: the whole entry is READ, and its fields are looked through here. What it has is what some
 * client put there: one that is no hash, or has more than FKV_FIELDS_MAX bytes, is answered WRONGTYPE. */
#include <stdlib.h>
#include <string.h>
#include "../wire/fields.h"
#include "internal.h"

enum { NAME = 2 };             /* the argument */
enum { HMGET_MAX = 16 << 20 }; /* bytes of the values of its answer */

bool hash_fields(const resp_job *j, resp_out *o, uint32_t *count) {
    const resp_call *k = &j->call[0];
    const lookup_result *r = &k->result;
    fkv_status s = r->status;
    *count = 0;
    if (s == FKV_NOT_FOUND) return true;
    if (s == FKV_OK && r->codec != FKV_CODEC_FIELDS) s = FKV_WRONG_CODEC;
    /* mutation: gateway/damaged-hash */
    if (s == FKV_OK && !fkv_count_fields(k->value, r->value_bytes, count)) s = FKV_WRONG_CODEC;
    if (s == FKV_OK) return true;
    answer_failure(o, s);
    return false;
}

/* *at is 0 at first. */
static bool next_field(const resp_job *j, uint32_t *at, fkv_field *f) {
    const resp_call *k = &j->call[0];
    return k->result.status == FKV_OK && fkv_next_field(k->value, k->result.value_bytes, at, f);
}

/* ---- one field ---- */

enum { OF_FIELD_VALUE, OF_FIELD_LENGTH, OF_FIELD_PRESENCE };

static bool kept_field(const resp_job *j, fkv_field *f) {
    uint32_t at = 0;
    while (next_field(j, &at, f))
        if (f->name_bytes == j->kept_value && memcmp(f->name, j->kept + j->kept_key, f->name_bytes) == 0) return true;
    return false;
}

static void field_finish(resp_job *j, resp_out *o) {
    fkv_field f;
    uint32_t count;
    if (!hash_fields(j, o, &count)) return;
    bool found = kept_field(j, &f);
    if (j->what == OF_FIELD_PRESENCE)
        resp_integer(o, found);
    else if (j->what == OF_FIELD_LENGTH)
        resp_integer(o, found ? f.value_bytes : 0);
    else if (found)
        resp_bulk(o, f.value, f.value_bytes);
    else
        resp_null(o, j->protocol);
}
static const resp_work field_work = { .wants_value = true, .start = start_read, .finish = field_finish };

static void ask_field(resp_connection *c, uint8_t what) {
    resp_job *j = job_new(c, &field_work, 1, 1, 1);
    if (j && job_keep(j, NAME)) j->what = what;
}
void hget_command(resp_connection *c) { ask_field(c, OF_FIELD_VALUE); }
void hstrlen_command(resp_connection *c) { ask_field(c, OF_FIELD_LENGTH); }
void hexists_command(resp_connection *c) { ask_field(c, OF_FIELD_PRESENCE); }

/* ---- several ---- */

/* Those that are kept, sorted, with what was found of each; NULL: no memory. */
static fkv_sought *sought(const resp_job *j, uint32_t count) {
    fkv_sought *list = malloc(count * sizeof *list), *s;
    const uint8_t *names = j->kept + j->kept_key;
    fkv_field f;
    if (!list) return NULL;
    for (uint32_t i = 0, at = 0; i < count && fkv_next_field(names, j->kept_value, &at, &f); i++)
        list[i] = (fkv_sought){ .asked = f };
    fkv_sort_sought(list, count);
    for (uint32_t at = 0; next_field(j, &at, &f);) {
        if (!(s = fkv_find_sought(list, count, &f)) || s->found) continue;
        s->found = true;
        s->value = f.value;
        s->value_bytes = f.value_bytes;
    }
    return list;
}

/* A name may be asked for again and again, and its value be a whole hash. */
static uint64_t values_bytes(const resp_job *j, fkv_sought *list, uint32_t count) {
    uint64_t bytes = 0;
    fkv_field f;
    for (uint32_t at = 0; fkv_next_field(j->kept + j->kept_key, j->kept_value, &at, &f);) {
        const fkv_sought *s = fkv_find_sought(list, count, &f);
        if (s->found) bytes += s->value_bytes;
    }
    return bytes;
}

static void answer_values(resp_job *j, resp_out *o, fkv_sought *list, uint32_t count) {
    fkv_field f;
    resp_array(o, count);
    for (uint32_t at = 0; fkv_next_field(j->kept + j->kept_key, j->kept_value, &at, &f);) {
        const fkv_sought *s = fkv_find_sought(list, count, &f);
        if (s->found)
            resp_bulk(o, s->value, s->value_bytes);
        else
            resp_null(o, j->protocol);
    }
}

static void mget_finish(resp_job *j, resp_out *o) {
    uint32_t there, count = (uint32_t)j->to;
    if (!hash_fields(j, o, &there)) return;
    fkv_sought *list = sought(j, count);
    if (!list)
        answer_failure(o, FKV_NO_MEMORY);
    else if (values_bytes(j, list, count) > HMGET_MAX)
        resp_error(o, "ERR HMGET would answer more than %d bytes, see docs/gateway.md", HMGET_MAX);
    else
        answer_values(j, o, list, count);
    free(list);
}
static const resp_work mget_work = { .wants_value = true, .start = start_read, .finish = mget_finish };

void hmget_command(resp_connection *c) {
    uint32_t count = c->parser.count - NAME;
    uint64_t bytes = (uint64_t)count * FKV_FIELD_HEAD;
    for (uint32_t i = 0; i < count; i++) bytes += argument(c, NAME + i).n;
    resp_job *j = fields_fit(c, bytes) ? job_new(c, &mget_work, 1, 1, 1) : NULL;
    uint8_t *to = j ? job_keep_room(j, (uint32_t)bytes) : NULL;
    if (!to) return;
    j->to = count;
    for (uint32_t i = 0; i < count; i++) {
        resp_bytes name = argument(c, NAME + i);
        to = fkv_put_field(to, &(fkv_field){ .name = name.bytes, .name_bytes = name.n });
    }
}

/* ---- all ---- */

enum { ALL_NAMES = 1, ALL_VALUES = 2, ALL_COUNTED = 4 };

static void put_parts(resp_out *o, const fkv_field *f, uint8_t what) {
    if (what & ALL_NAMES) resp_bulk(o, f->name, f->name_bytes);
    if (what & ALL_VALUES) resp_bulk(o, f->value, f->value_bytes);
}

static void all_finish(resp_job *j, resp_out *o) {
    uint32_t count, at = 0;
    fkv_field f;
    if (!hash_fields(j, o, &count)) return;
    if (j->what == ALL_COUNTED)
        resp_integer(o, count);
    else if (j->what == (ALL_NAMES | ALL_VALUES))
        resp_map(o, j->protocol, count);
    else
        resp_array(o, count);
    while (next_field(j, &at, &f)) put_parts(o, &f, j->what);
}
static const resp_work all_work = { .wants_value = true, .start = start_read, .finish = all_finish };

static void ask_all(resp_connection *c, uint8_t what) {
    resp_job *j = job_new(c, &all_work, 1, 1, 1);
    if (j) j->what = what;
}
void hgetall_command(resp_connection *c) { ask_all(c, ALL_NAMES | ALL_VALUES); }
void hkeys_command(resp_connection *c) { ask_all(c, ALL_NAMES); }
void hvals_command(resp_connection *c) { ask_all(c, ALL_VALUES); }
void hlen_command(resp_connection *c) { ask_all(c, ALL_COUNTED); }
