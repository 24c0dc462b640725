/* flush.c: FLUSHDB and FLUSHALL: the keys of each page of a walk are deleted, one after the other. So keys that are put
 * meanwhile may go or stay, and a failure leaves those that were not reached. */
#include <stdlib.h>
#include "walk.h"

enum { PAGE = 256 };
enum { FLUSH_LISTS, FLUSH_DELETES };

/* The next key of the page, which is `old` from `from` on, that is of this gateway's databases; false: no more. */
static bool next_key(resp_job *j, lookup_key *out) {
    fkv_scan_entry e;
    const uint8_t *key, *value;
    uint32_t at = (uint32_t)j->from;
    bool found = false;
    while (!found && j->old && wire_next_scan_entry(j->old, j->old_bytes, &at, &e, &key, &value))
        found = !j->what || e.space >= j->c->server->config.space;
    j->from = at;
    if (found) *out = (lookup_key){ .bytes = key, .count = e.key_bytes, .space = j->what ? e.space : j->space };
    return found;
}

static call_start flush_start(resp_job *j, resp_call *k) {
    const resp_store *s = &j->c->server->config.store;
    int64_t before = j->from;
    lookup_key key;
    if (j->step == FLUSH_LISTS) return walk_page_start(j, k, FKV_OP_SCAN, j->what ? FKV_REQUEST_SCAN_SPACES : 0, PAGE);
    if (!next_key(j, &key)) {
        k->result = (lookup_result){ .status = FKV_NOT_FOUND };
        return CALL_DONE;
    }
    session_ask a = { .op = FKV_OP_DELETE };
    call_start started = call_started(j, k, s->change(s->ctx, &key, &a, k));
    if (started == CALL_LATER) j->from = before;
    return started;
}

static void take_page(resp_job *j, resp_call *k) {
    free(j->old);
    j->old = k->value;
    j->old_bytes = k->value ? k->result.value_bytes : 0;
    j->from = 0;
    k->value = NULL;
}

/* Whether that was the last key of the last page. */
static bool flush_ended(resp_job *j, resp_call *k) {
    lookup_result *r = &k->result;
    if (j->step == FLUSH_LISTS) {
        if (!walk_page_ended(j->walk, r)) return true;
        take_page(j, k);
        j->step = FLUSH_DELETES;
    } else if (r->status == FKV_NOT_FOUND) {
        r->status = FKV_OK;
    }
    if (r->status != FKV_OK) return true;
    if (j->from < j->old_bytes) return false;
    j->step = FLUSH_LISTS;
    return j->walk->shard == walk_shards(j);
}

static void flush_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (r->status == FKV_OK)
        resp_simple(o, "OK");
    else
        answer_failure(o, r->status);
}
static const resp_work flush_work = {
    .walks = true, .wants_value = true, .start = flush_start, .ended = flush_ended, .finish = flush_finish
};

static void flush(resp_connection *c, bool all) {
    uint32_t n = c->parser.count;
    if (n > 2 || (n == 2 && !is_word(argument(c, 1), "sync") && !is_word(argument(c, 1), "async"))) {
        resp_error(connection_answer(c), "ERR syntax error");
        return;
    }
    resp_job *j = walk_new(c, &flush_work, WALK_EVERYTHING);
    if (j) j->what = all;
}

void flushdb_command(resp_connection *c) { flush(c, false); }
void flushall_command(resp_connection *c) { flush(c, true); }
