/* set.c: SET with its options and its relatives.
 *
 * Plain SET is a PUT, SET NX a compare-and-swap with the version 0. Where the present entry decides (XX, GET, KEEPTTL) it
 * is read, and what follows changes the version that was read; if that has gone meanwhile, all begins again. So each is
 * one step of the key.
 */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

enum { SET_NX = 1, SET_XX = 2, SET_GET = 4, SET_KEEPTTL = 8, SET_DELETES = 16, SET_NUMBER = 32, SET_PERSIST = 64 };
enum { SET_OTHER_TTL = SET_KEEPTTL | SET_PERSIST }; /* than one that is given */

/* ---- one call ---- */

static void put_finish(resp_job *j, resp_out *o) {
    fkv_status s = j->call[0].result.status;
    bool refused = (j->what & SET_NX) && s == FKV_VERSION_MISMATCH;
    if (s != FKV_OK && !refused && !(j->what & SET_DELETES && s == FKV_NOT_FOUND))
        answer_failure(o, s);
    else if (j->what & SET_NUMBER)
        resp_integer(o, !refused);
    else if (refused)
        resp_null(o, j->protocol);
    else
        resp_simple(o, "OK");
}
static const resp_work put_work = { .changes = true, .start = start_change, .finish = put_finish };

/* ---- read, then change what was read ---- */

static bool may_change(resp_job *j, const lookup_result *r) {
    bool there = r->status == FKV_OK;
    if (there && ((r->codec && j->what & SET_GET) || j->what & SET_NX)) return false;
    return there || !(j->what & (SET_XX | SET_DELETES));
}

static void swap_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    bool refused = j->what & SET_NX ? j->was_there : j->what & SET_XX && !j->was_there;
    bool failed = r->status != FKV_OK && (j->step == STEP_CHANGE || r->status != FKV_NOT_FOUND);
    if (failed)
        answer_failure(o, r->status);
    else if (j->what & SET_GET && j->step == STEP_REFUSED && answered_bad(o, r))
        return;
    else if (j->what & SET_GET ? !j->was_there : refused)
        resp_null(o, j->protocol);
    else if (j->what & SET_GET)
        resp_bulk(o, j->old, j->old_bytes);
    else
        resp_simple(o, "OK");
}
static const resp_work swap_work = { .changes = true,
                                     .wants_value = true,
                                     .start = swap_start,
                                     .ended = swap_ended,
                                     .decides = may_change,
                                     .finish = swap_finish };
static const resp_work look_and_swap_work = {
    .changes = true, .start = swap_start, .ended = swap_ended, .decides = may_change, .finish = swap_finish
};

/* ---- commands ---- */

/* Sets argument 1 to the one at `value`. ends_ms 1: it has ended already, so that nothing stays. */
static void set(resp_connection *c, uint32_t value, uint8_t what, uint64_t ends_ms) {
    bool deletes = ends_ms == 1, looks = what & (SET_XX | SET_GET | SET_KEEPTTL) || (deletes && what & SET_NX);
    const resp_work *w = !looks ? &put_work : what & SET_GET ? &swap_work : &look_and_swap_work;
    resp_job *j = job_new(c, w, 1, 1, 1);
    if (!j || (looks && !job_keep(j, deletes ? 0 : value))) return;
    j->what = deletes ? what | SET_DELETES : what;
    j->ends_ms = deletes ? 0 : ends_ms;
    if (what & SET_KEEPTTL) j->ask.flags = FKV_REQUEST_KEEP_EXPIRY;
    j->until_ns = fkv_now_ns() + WAIT_NS;
    j->value_at = deletes ? 0 : value - 1;
    if (looks)
        j->ask.op = deletes ? FKV_OP_CAS_DELETE : FKV_OP_CAS;
    else
        j->ask.op = deletes ? FKV_OP_DELETE : what & SET_NX ? FKV_OP_CAS : FKV_OP_PUT;
}

/* Of one given twice the last counts. */
typedef struct set_options {
    uint8_t what;
    uint32_t expiry; /* the argument; 0: none */
    expiry_unit unit;
} set_options;

/* GETEX takes `persist`, SET the other flags. */
static bool read_flag(resp_bytes b, set_options *s, bool of_getex) {
    static const struct {
        const char *name;
        uint8_t what, excludes;
    } flags[] = { { "nx", SET_NX, SET_XX },
                  { "xx", SET_XX, SET_NX },
                  { "get", SET_GET, 0 },
                  { "keepttl", SET_KEEPTTL, 0 },
                  { "persist", SET_PERSIST, 0 } };
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
        if (!is_word(b, flags[k].name) || of_getex != (flags[k].what == SET_PERSIST)) continue;
        if (s->what & flags[k].excludes || (flags[k].what & SET_OTHER_TTL && s->expiry)) return false;
        s->what |= flags[k].what;
        return true;
    }
    return false;
}

static bool read_time(resp_connection *c, uint32_t *i, set_options *s) {
    static const struct {
        const char *name;
        expiry_unit unit;
    } times[] = {
        { "ex", { 1000, false } }, { "px", { 1, false } }, { "exat", { 1000, true } }, { "pxat", { 1, true } }
    };
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
        expiry_unit u = times[k].unit;
        if (!is_word(argument(c, *i), times[k].name)) continue;
        bool another = s->expiry && (s->unit.unit_ms != u.unit_ms || s->unit.absolute != u.absolute);
        if (another || s->what & SET_OTHER_TTL || *i + 1 >= c->parser.count) return false;
        s->expiry = ++*i;
        s->unit = u;
        return true;
    }
    return false;
}

/* False: answered. */
static bool read_options(resp_connection *c, uint32_t first, bool of_getex, set_options *s) {
    for (uint32_t i = first; i < c->parser.count; i++) {
        if (read_flag(argument(c, i), s, of_getex) || read_time(c, &i, s)) continue;
        resp_error(connection_answer(c), "ERR syntax error");
        return false;
    }
    return true;
}

void set_command(resp_connection *c) {
    set_options s = { 0 };
    uint64_t ends_ms = 0;
    if (!read_options(c, 3, false, &s)) return;
    if (s.expiry && !expiry_argument(c, s.expiry, s.unit, false, "set", &ends_ms)) return;
    set(c, 2, s.what, ends_ms);
}

void setnx_command(resp_connection *c) { set(c, 2, SET_NX | SET_NUMBER, 0); }

void setex_command(resp_connection *c) {
    uint64_t ends_ms;
    if (expiry_argument(c, 2, (expiry_unit){ 1000, false }, false, "setex", &ends_ms)) set(c, 3, 0, ends_ms);
}

void psetex_command(resp_connection *c) {
    uint64_t ends_ms;
    if (expiry_argument(c, 2, (expiry_unit){ 1, false }, false, "psetex", &ends_ms)) set(c, 3, 0, ends_ms);
}

void getset_command(resp_connection *c) { set(c, 2, SET_GET, 0); }

void getdel_command(resp_connection *c) {
    resp_job *j = job_new(c, &swap_work, 1, 1, 1);
    if (!j || !job_keep(j, 0)) return;
    j->what = SET_GET | SET_DELETES;
    j->until_ns = fkv_now_ns() + WAIT_NS;
    j->ask.op = FKV_OP_CAS_DELETE;
}

/* ---- GETEX ---- */

/* The same value is put again with its other time to live, so that what is answered is what got it. A time that is none
 * is told only of a key that is there, as by redis-server. */
enum { GETEX_BAD = 3 /* an expiry_kind */, GETEX_PERSISTS = 4 };

static bool getex_decides(resp_job *j, const lookup_result *r) {
    if (r->status != FKV_OK || r->codec || j->what & GETEX_BAD) return false;
    j->ask.user_flags = r->user_flags;
    return !(j->what & GETEX_PERSISTS) || r->expiry_ms;
}

static void getex_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (answered_bad(o, r)) return;
    if (!j->was_there)
        resp_null(o, j->protocol);
    else if (j->what & GETEX_BAD)
        refuse_expiry(o, j->what & GETEX_BAD, "getex");
    else
        resp_bulk(o, j->old, j->old_bytes);
}
static const resp_work getex_work = { .changes = true,
                                      .wants_value = true,
                                      .start = swap_start,
                                      .ended = swap_ended,
                                      .decides = getex_decides,
                                      .finish = getex_finish };

void getex_command(resp_connection *c) {
    set_options s = { 0 };
    uint64_t ends_ms = 0;
    expiry_kind kind = EXPIRY_GOOD;
    if (!read_options(c, 2, true, &s)) return;
    if (!s.expiry && !s.what) {
        get_command(c);
        return;
    }
    if (s.expiry) kind = read_expiry(argument(c, s.expiry), s.unit, false, &ends_ms);
    resp_job *j = job_new(c, &getex_work, 1, 1, 1);
    if (!j || !job_keep(j, 0)) return;
    bool over = ends_ms == 1;
    j->what = (uint8_t)(kind | (s.what & SET_PERSIST ? GETEX_PERSISTS : 0));
    j->until_ns = fkv_now_ns() + WAIT_NS;
    j->ends_ms = over ? 0 : ends_ms;
    j->puts_old = !over;
    j->ask.op = over ? FKV_OP_CAS_DELETE : FKV_OP_CAS;
}
