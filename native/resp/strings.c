/* strings.c: commands that read values, and changes that the owner makes in one step. */
#include <stdlib.h>
#include <string.h>
#include "../base/integer.h"
#include "internal.h"

/* ---- reads ---- */

static void answer_value(resp_job *j, resp_call *k, resp_out *o) {
    if (answered_bad(o, &k->result)) return;
    if (k->result.status == FKV_NOT_FOUND)
        resp_null(o, j->protocol);
    else
        resp_bulk(o, k->value, k->result.value_bytes);
}

static void get_finish(resp_job *j, resp_out *o) { answer_value(j, &j->call[0], o); }
static const resp_work get_work = { .wants_value = true, .start = start_read, .finish = get_finish };

/* Answers from the store's memory straight into the reply; false: it takes a job. */
static bool get_at_once(resp_connection *c, const lookup_key *key) {
    const resp_store *s = &c->server->config.store;
    resp_out *o = connection_answer(c);
    lookup_result r;
    size_t room;
    for (int i = 0; i < 2; i++) {
        uint8_t *to = resp_bulk_begin(o, c->guess, &room);
        if (!to || !s->get_now(s->ctx, key, to, room, &r)) return false;
        if (r.status != FKV_BUFFER_TOO_SMALL) break;
        c->guess = r.value_bytes;
    }
    if (r.status == FKV_BUFFER_TOO_SMALL) return false;
    if (r.status != FKV_OK) c->guess /= 2; /* else each reply without a value would have the room of a large one */
    if (answered_bad(o, &r)) return true;
    if (r.status == FKV_NOT_FOUND) {
        resp_null(o, c->protocol);
        return true;
    }
    resp_bulk_end(o, c->guess, r.value_bytes);
    c->guess = r.value_bytes;
    return true;
}

void get_command(resp_connection *c) {
    resp_bytes b = argument(c, 1);
    lookup_key key = { .bytes = b.bytes, .count = b.n, .space = c->space };
    if (b.n >= 1 && b.n <= FKV_KEY_MAX) {
        key.hash = c->server->config.store.hash(c->server->config.store.ctx, &key);
        key.hashed = true;
        if (!c->changing[mark_of(key.hash)] && get_at_once(c, &key)) return;
    }
    job_new(c, &get_work, 1, 1, 1);
}

static void mget_begin(resp_job *j, resp_out *o) { resp_array(o, j->calls); }
/* As redis-server: what is no string is null among others. */
static void mget_each(resp_job *j, resp_call *k, resp_out *o) {
    if (k->result.status == FKV_OK && k->result.codec)
        resp_null(o, j->protocol);
    else
        answer_value(j, k, o);
}
static const resp_work mget_work = {
    .wants_value = true, .start = start_read, .finish = mget_begin, .each = mget_each
};
void mget_command(resp_connection *c) { job_new(c, &mget_work, c->parser.count - 1, 1, 1); }

static void strlen_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (!answered_bad(o, r)) resp_integer(o, r->status == FKV_OK ? r->value_bytes : 0);
}
static const resp_work strlen_work = { .start = start_read, .finish = strlen_finish };
void strlen_command(resp_connection *c) { job_new(c, &strlen_work, 1, 1, 1); }

/* ---- a part of a value ---- */

static void getrange_finish(resp_job *j, resp_out *o) {
    const resp_call *k = &j->call[0];
    if (answered_bad(o, &k->result)) return;
    int64_t n = k->result.status == FKV_OK ? k->result.value_bytes : 0;
    int64_t from = j->from < 0 ? j->from + n : j->from, to = j->to < 0 ? j->to + n : j->to;
    bool both_before = j->from < 0 && j->to < 0 && j->from > j->to;
    if (from < 0) from = 0;
    if (to < 0) to = 0;
    if (to >= n) to = n - 1;
    if (both_before || from > to)
        resp_bulk(o, NULL, 0);
    else
        resp_bulk(o, k->value + from, (size_t)(to - from + 1));
}
static const resp_work getrange_work = { .wants_value = true, .start = start_read, .finish = getrange_finish };

void getrange_command(resp_connection *c) {
    int64_t from, to;
    if (!integer_argument(c, 2, &from) || !integer_argument(c, 3, &to)) return;
    resp_job *j = job_new(c, &getrange_work, 1, 1, 1);
    if (!j) return;
    j->from = from;
    j->to = to;
}

/* ---- changes ---- */

static void mset_finish(resp_job *j, resp_out *o) {
    for (uint32_t i = 0; i < j->calls; i++) {
        if (j->call[i].result.status == FKV_OK) continue;
        answer_failure(o, j->call[i].result.status);
        return;
    }
    resp_simple(o, "OK");
}
static const resp_work mset_work = { .changes = true, .start = start_change, .finish = mset_finish };

void mset_command(resp_connection *c) {
    if (c->parser.count % 2 == 0) {
        wrong_arguments(c, "mset");
        return;
    }
    resp_job *j = job_new(c, &mset_work, c->parser.count / 2, 1, 2);
    if (!j) return;
    j->ask.op = FKV_OP_PUT;
    j->value_at = 1;
}

static void append_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (r->status == FKV_OK)
        resp_integer(o, (int64_t)r->expiry_ms);
    else
        answer_failure(o, r->status);
}
static const resp_work append_work = { .changes = true, .start = start_change, .finish = append_finish };

void append_command(resp_connection *c) {
    uint32_t n = argument(c, 2).n;
    if (n > FKV_APPEND_MAX) {
        resp_error(connection_answer(c), "ERR APPEND of %u bytes: at most %d at a time, see docs/gateway.md", n,
                   FKV_APPEND_MAX);
        return;
    }
    resp_job *j = job_new(c, &append_work, 1, 1, 1);
    if (!j) return;
    j->ask.op = FKV_OP_APPEND;
    j->value_at = 1;
}

/* ---- numbers ---- */

enum { INCR_ADDS, INCR_ASKS_WHY };

static call_start incr_start(resp_job *j, resp_call *k) {
    return j->step == INCR_ADDS ? start_change(j, k) : start_read(j, k);
}

/* The owner refuses a value that is no number and a sum that is none with the same status; redis-server tells them
 * apart, so the value is looked at. */
static bool incr_ended(resp_job *j, resp_call *k) {
    if (j->step == INCR_ASKS_WHY || k->result.status != FKV_NOT_INTEGER) return true;
    j->step = INCR_ASKS_WHY;
    return false;
}

static void incr_finish(resp_job *j, resp_out *o) {
    const resp_call *k = &j->call[0];
    int64_t n;
    if (j->step == INCR_ADDS && k->result.status == FKV_OK) {
        memcpy(&n, &k->result.expiry_ms, sizeof n);
        resp_integer(o, n);
    } else if (j->step == INCR_ADDS || answered_bad(o, &k->result)) {
        if (j->step == INCR_ADDS) answer_failure(o, k->result.status);
    } else if (k->value && fkv_read_integer(k->value, k->result.value_bytes, &n)) {
        resp_error(o, "ERR increment or decrement would overflow");
    } else {
        answer_failure(o, FKV_NOT_INTEGER);
    }
}
static const resp_work incr_work = {
    .changes = true, .wants_value = true, .start = incr_start, .ended = incr_ended, .finish = incr_finish
};

static void add(resp_connection *c, int64_t by) {
    resp_job *j = job_new(c, &incr_work, 1, 1, 1);
    if (!j || !job_keep(j, 0)) return;
    j->ask.op = FKV_OP_INCREMENT;
    memcpy(&j->ask.expected, &by, sizeof by);
}

void incr_command(resp_connection *c) { add(c, 1); }
void decr_command(resp_connection *c) { add(c, -1); }
void incrby_command(resp_connection *c) {
    int64_t by;
    if (integer_argument(c, 2, &by)) add(c, by);
}
void decrby_command(resp_connection *c) {
    int64_t by;
    if (!integer_argument(c, 2, &by)) return;
    if (by == INT64_MIN)
        resp_error(connection_answer(c), "ERR decrement would overflow");
    else
        add(c, -by);
}
