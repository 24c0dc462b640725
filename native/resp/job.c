/* job.c: commands under way: their calls are started in order, as keys and bounds allow, and answered in order.
 *
 * Invariant: `marks` count each call from its first start to its end, so that no other call of the connection on its
 * key is started meanwhile, unless both read.
 */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

enum { CALLS_A_STEP = 16 };

static size_t job_bytes(uint32_t calls) { return sizeof(resp_job) + calls * sizeof(resp_call); }

static resp_job *make(resp_connection *c, const resp_work *w, uint32_t calls, uint32_t first, uint32_t step) {
    resp_job *j = calloc(1, job_bytes(calls));
    if (!j) {
        answer_failure(connection_answer(c), FKV_NO_MEMORY);
        return NULL;
    }
    j->c = c;
    j->work = w;
    j->calls = calls;
    j->protocol = c->protocol;
    j->space = c->space;
    c->queued += job_bytes(calls);
    for (uint32_t i = 0; i < calls; i++) {
        list_init(&j->call[i].link);
        j->call[i].job = j;
        j->call[i].argument = first + i * step;
    }
    list_push(&c->jobs, &j->link);
    c->issuing = j;
    return j;
}

resp_job *job_new(resp_connection *c, const resp_work *w, uint32_t calls, uint32_t first, uint32_t step) {
    for (uint32_t i = 0; i < calls; i++) {
        uint32_t n = argument(c, first + i * step).n;
        if (n >= 1 && n <= FKV_KEY_MAX) continue;
        resp_error(connection_answer(c), "ERR a key of %u bytes: farkv's have 1 to %d, see docs/gateway.md", n,
                   FKV_KEY_MAX);
        return NULL;
    }
    return make(c, w, calls, first, step);
}

resp_job *job_new_walk(resp_connection *c, const resp_work *w, resp_walk *walk) {
    resp_job *j = make(c, w, 1, 0, 0);
    if (!j) return NULL;
    j->walk = walk;
    job_count(&j->call[0], walk_bytes(walk));
    return j;
}

uint8_t *job_keep_room(resp_job *j, uint32_t bytes) {
    resp_bytes k = argument(j->c, j->call[0].argument);
    j->kept = malloc((size_t)k.n + bytes + 1);
    if (!j->kept) {
        resp_connection *c = j->c;
        job_free(j);
        c->issuing = NULL;
        answer_failure(connection_answer(c), FKV_NO_MEMORY);
        return NULL;
    }
    memcpy(j->kept, k.bytes, k.n);
    j->kept_key = k.n;
    j->kept_value = bytes;
    j->c->held += (size_t)k.n + bytes;
    return j->kept + k.n;
}

bool job_keep(resp_job *j, uint32_t value) {
    resp_bytes v = { 0 };
    if (value) v = argument(j->c, value);
    uint8_t *to = job_keep_room(j, v.n);
    if (to && v.n) memcpy(to, v.bytes, v.n);
    return to;
}

void job_free(resp_job *j) {
    resp_connection *c = j->c;
    c->queued -= job_bytes(j->calls);
    c->held -= j->after.room + (size_t)j->kept_key + j->kept_value;
    for (uint32_t i = j->answered; i < j->issued; i++) {
        list_remove(&j->call[i].link);
        job_count(&j->call[i], 0);
        free(j->call[i].key);
        free(j->call[i].value);
    }
    list_remove(&j->link);
    resp_out_free(&j->after);
    free(j->kept);
    free(j->old);
    walk_free(j->walk);
    free(j);
}

/* ---- calls ---- */

static void mark(resp_connection *c, const resp_call *k, int by) {
    if (k->job->work->walks) return;
    uint8_t *count = k->job->work->changes ? c->changing : c->reading;
    count[k->mark] = (uint8_t)(count[k->mark] + by);
}

bool job_full(const resp_connection *c, size_t bytes) { return resp_out_bytes(&c->out) + c->held + bytes > OUT_MAX; }

void job_count(resp_call *k, size_t bytes) {
    k->job->c->held += bytes - k->counted;
    k->counted = bytes;
}

/* Whether its answer is the next to be sent. Were it to wait until the others fit, all would. */
static bool is_next(const resp_call *k) {
    const resp_job *j = k->job;
    return j->link.prev == &j->c->jobs && k == &j->call[j->answered] && resp_out_bytes(&j->c->out) <= OUT_MAX;
}

/* Follows larger values at once, smaller ones slowly. */
static void expect(resp_connection *c, size_t bytes) {
    if (bytes > c->expected)
        c->expected = bytes;
    else
        c->expected -= (c->expected - bytes) / 4;
}

/* What it has read is what it holds; nothing is coming but what it makes. */
static void count_read(resp_call *k) {
    const resp_job *j = k->job;
    size_t n = (size_t)(k->value ? k->result.value_bytes : 0) + (j->old ? j->old_bytes : 0) + walk_bytes(j->walk);
    job_count(k, !k->done && n < j->makes ? j->makes : n);
}

static void call_done(resp_call *k) {
    resp_job *j = k->job;
    mark(j->c, k, -1);
    k->done = true;
    free(k->key);
    k->key = NULL;
    j->left--;
    count_read(k);
}

/* Starts it, again and again as long as it ends at once and has to go on. False: later. */
static bool call_run(resp_call *k) {
    resp_job *j = k->job;
    for (;;) {
        call_start s = j->work->start(j, k);
        if (s == CALL_LATER) {
            count_read(k);
            return false;
        }
        if (s == CALL_FLYING) {
            j->c->calls++;
            j->c->server->calls++;
            return true;
        }
        if (!j->work->ended || j->work->ended(j, k)) break;
        count_read(k);
    }
    call_done(k);
    return true;
}

void resp_call_ended(resp_call *k, const lookup_result *r, const uint8_t *value) {
    resp_job *j = k->job;
    resp_connection *c = j->c;
    resp_server *s = c->server;
    c->calls--;
    s->calls--;
    list_append(&s->ready, &s->starved); /* whosever call it was */
    if (!s->closing) s->config.wake(s->config.ctx);
    k->result = *r;
    bool wanted = value && r->status == FKV_OK && j->work->wants_value && !c->closed;
    if (wanted) expect(c, r->value_bytes);
    k->large = wanted && r->value_bytes > k->counted && !is_next(k) && job_full(c, r->value_bytes - k->counted)
                   ? r->value_bytes
                   : 0;
    if (wanted && !k->large) {
        k->value = malloc((size_t)r->value_bytes + 1);
        if (k->value)
            memcpy(k->value, value, r->value_bytes);
        else
            k->result.status = FKV_NO_MEMORY;
    }
    if (k->large) {
        job_count(k, 0);
        list_push(&c->again, &k->link);
    } else if (c->closed || !j->work->ended || j->work->ended(j, k)) {
        call_done(k);
    } else {
        count_read(k);
        list_push(&c->again, &k->link);
    }
    if (c->closed) {
        if (!c->calls) connection_close(c);
        return;
    }
    server_ready(c);
}

void job_retry(resp_connection *c) {
    for (fkv_list *l = c->again.next, *next; l != &c->again; l = next) {
        resp_call *k = LIST_OF(l, resp_call, link);
        next = l->next;
        if (k->large && !is_next(k) && job_full(c, k->large)) continue;
        if (!call_run(k)) {
            server_starved(c);
            return;
        }
        list_remove(&k->link);
    }
}

/* As far as what is under way before it is concerned. */
static bool may_start(resp_job *j, resp_call *k) {
    const resp_connection *c = j->c;
    const resp_store *s = &c->server->config.store;
    if (j->work->walks) return c->calls == 0;
    resp_bytes key = argument(c, k->argument);
    k->mark = mark_of(s->hash(s->ctx, &(lookup_key){ .bytes = key.bytes, .count = key.n, .space = j->space }));
    return !c->changing[k->mark] && !(j->work->changes && c->reading[k->mark]);
}

bool job_issue(resp_connection *c) {
    resp_job *j = c->issuing;
    for (int left = CALLS_A_STEP; j->issued < j->calls; left--) {
        if (left == 0) return true; /* where the store answers at once, nothing else would end it */
        resp_call *k = &j->call[j->issued];
        if (c->calls >= CALLS_MAX || !list_empty(&c->again) || (job_full(c, 0) && !is_next(k))) return false;
        if (!may_start(j, k)) return false;
        j->issued++;
        j->left++;
        mark(c, k, 1);
        if (call_run(k)) continue;
        mark(c, k, -1);
        j->issued--;
        j->left--;
        free(k->key);
        k->key = NULL;
        server_starved(c);
        return false;
    }
    c->issuing = NULL;
    return true;
}

/* ---- answers ---- */

/* Answers for the calls at the front that have ended; false: for none. */
static bool each_answered(resp_job *j) {
    resp_connection *c = j->c;
    bool any = false;
    if (!j->begun) {
        j->begun = any = true;
        j->work->finish(j, &c->out);
    }
    for (; j->answered < j->issued && j->call[j->answered].done && resp_out_bytes(&c->out) <= OUT_MAX;
         j->answered++, any = true) {
        resp_call *k = &j->call[j->answered];
        j->work->each(j, k, &c->out);
        job_count(k, 0);
        free(k->value);
        k->value = NULL;
    }
    return any;
}

static bool ended(const resp_job *j) {
    return j->issued == j->calls && !j->left && (!j->work->each || j->answered == j->calls);
}

bool job_drain(resp_connection *c) {
    bool any = false;
    while (!list_empty(&c->jobs) && resp_out_bytes(&c->out) <= OUT_MAX) {
        resp_job *j = LIST_OF(c->jobs.next, resp_job, link);
        if (j->work->each && each_answered(j)) any = true;
        if (!ended(j) || c->issuing == j) return any;
        if (!j->work->each) j->work->finish(j, &c->out);
        c->held -= j->after.room;
        resp_out_move(&c->out, &j->after);
        job_free(j);
        any = true;
    }
    return any;
}
