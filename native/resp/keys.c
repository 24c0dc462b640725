/* keys.c: commands about keys and their times to live. */
#include <stdlib.h>
#include "../wire/fields.h"
#include "internal.h"

/* ---- how many ---- */

/* Of the calls that ended well, how many found their key; the first failure instead, if there is one. */
static void count_finish(resp_job *j, resp_out *o) {
    int64_t n = 0;
    for (uint32_t i = 0; i < j->calls; i++) {
        fkv_status s = j->call[i].result.status;
        if (s != FKV_OK && s != FKV_NOT_FOUND) {
            answer_failure(o, s);
            return;
        }
        n += s == FKV_OK;
    }
    resp_integer(o, n);
}
static const resp_work exists_work = { .start = start_read, .finish = count_finish };
static const resp_work change_work = { .changes = true, .start = start_change, .finish = count_finish };

void exists_command(resp_connection *c) { job_new(c, &exists_work, c->parser.count - 1, 1, 1); }

void del_command(resp_connection *c) {
    resp_job *j = job_new(c, &change_work, c->parser.count - 1, 1, 1);
    if (j) j->ask.op = FKV_OP_DELETE;
}

/* ---- what is known of an entry ---- */

static void type_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (r->status != FKV_OK && r->status != FKV_NOT_FOUND)
        answer_failure(o, r->status);
    else
        resp_simple(o, r->status == FKV_NOT_FOUND ? "none" : r->codec == FKV_CODEC_FIELDS ? "hash" : "string");
}
static const resp_work type_work = { .start = start_read, .finish = type_finish };
void type_command(resp_connection *c) { job_new(c, &type_work, 1, 1, 1); }

enum { IN_SECONDS = 1, SINCE_1970 = 2 };

static void ttl_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    uint64_t now = j->what & SINCE_1970 ? 0 : fkv_wall_ms();
    if (r->status == FKV_NOT_FOUND) {
        resp_integer(o, -2);
    } else if (r->status != FKV_OK) {
        answer_failure(o, r->status);
    } else if (!r->expiry_ms) {
        resp_integer(o, -1);
    } else {
        int64_t left = r->expiry_ms > now ? (int64_t)(r->expiry_ms - now) : 0;
        resp_integer(o, j->what & IN_SECONDS ? (left + 500) / 1000 : left);
    }
}
static const resp_work ttl_work = { .start = start_read, .finish = ttl_finish };

static void ask_ttl(resp_connection *c, uint8_t what) {
    resp_job *j = job_new(c, &ttl_work, 1, 1, 1);
    if (j) j->what = what;
}
void ttl_command(resp_connection *c) { ask_ttl(c, IN_SECONDS); }
void pttl_command(resp_connection *c) { ask_ttl(c, 0); }
void expiretime_command(resp_connection *c) { ask_ttl(c, IN_SECONDS | SINCE_1970); }
void pexpiretime_command(resp_connection *c) { ask_ttl(c, SINCE_1970); }

/* ---- when it ends ---- */

static void expire(resp_connection *c, expiry_unit u, const char *name) {
    uint64_t ends_ms;
    if (c->parser.count > 3) {
        resp_error(connection_answer(c), "ERR options of '%s' are not built, see docs/gateway.md", name);
        return;
    }
    if (!expiry_argument(c, 2, u, true, name, &ends_ms)) return;
    resp_job *j = job_new(c, &change_work, 1, 1, 1);
    if (!j) return;
    bool over = ends_ms == 1;
    j->ends_ms = over ? 0 : ends_ms;
    j->ask.op = over ? FKV_OP_DELETE : FKV_OP_TOUCH;
}
void expire_command(resp_connection *c) { expire(c, (expiry_unit){ 1000, false }, "expire"); }
void pexpire_command(resp_connection *c) { expire(c, (expiry_unit){ 1, false }, "pexpire"); }
void expireat_command(resp_connection *c) { expire(c, (expiry_unit){ 1000, true }, "expireat"); }
void pexpireat_command(resp_connection *c) { expire(c, (expiry_unit){ 1, true }, "pexpireat"); }

/* PERSIST: the owner does not say whether there was a time to live, so the entry is read first. */
enum { PERSIST_READS, PERSIST_TOUCHES };

static call_start persist_start(resp_job *j, resp_call *k) {
    return j->step == PERSIST_READS ? start_read(j, k) : start_change(j, k);
}

static bool persist_ended(resp_job *j, resp_call *k) {
    if (j->step == PERSIST_TOUCHES || k->result.status != FKV_OK) return true;
    if (!k->result.expiry_ms) {
        k->result.status = FKV_NOT_FOUND; /* there is nothing to be done */
        return true;
    }
    j->step = PERSIST_TOUCHES;
    return false;
}
static const resp_work persist_work = {
    .changes = true, .start = persist_start, .ended = persist_ended, .finish = count_finish
};

void persist_command(resp_connection *c) {
    resp_job *j = job_new(c, &persist_work, 1, 1, 1);
    if (!j || !job_keep(j, 0)) return;
    j->ask.op = FKV_OP_TOUCH;
}
