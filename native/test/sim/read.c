/* read.c: READs of the sim provider, and what can go wrong with one.
 *
 * A READ leaves at fab_flush; it reaches the owner's memory, as a whole or line by line; its answer comes back. Without
 * faults each of these is in order with the READs before it on its connection. Memory is looked up at each line: a
 * region that was deregistered meanwhile refuses.
 */
#include <errno.h>
#include <stdlib.h>
#include "../../base/shared_copy.h"
#include "private.h"

static void let_go(sim_read *r) {
    if (--r->references > 0) return;
    sim_let_go(r->conn);
    free(r);
}

static sim_read *hold(sim_read *r) {
    r->references++;
    return r;
}

int sim_post_reads(fab_conn *conn, const fab_read *requests, int n) {
    sim_conn *c = (sim_conn *)conn;
    int taken = 0;
    sim_lock(c->world);
    if (c->state != SIM_UP) taken = -ENOTCONN;
    while (taken >= 0 && taken < n && c->reads_outstanding < SIM_DEPTH) {
        sim_read *r = calloc(1, sizeof *r);
        if (!r) abort();
        r->conn = sim_hold(c);
        r->references = 1;
        r->request = requests[taken++];
        r->number = c->reads_posted++;
        if (!fab_local_ok(&r->request)) r->status = FAB_LOC_PROT_ERR;
        c->reads_outstanding++;
        list_push(&c->staged_reads, &r->link);
        sim_mark_flushable(c);
    }
    sim_unlock(c->world);
    return taken;
}

/* ---- ends ---- */

static void complete(sim_conn *c, sim_read *r, fab_wc_status status) {
    fab_wc wc = { .opcode = FAB_WC_READ, .status = status, .wr_id = r->request.wr_id };
    list_remove(&r->link);
    r->ended = true;
    c->reads_outstanding--;
    sim_say(c->world, "c%u read %llu: %s", c->name, (unsigned long long)r->number, fab_wc_status_name(status));
    sim_complete(c, wc);
    if (status != FAB_SUCCESS && !c->gone && sim_chance(c->world, sim_faults_of(c)->duplicate_error)) {
        c->world->counts.duplicated++;
        sim_complete(c, wc);
    }
    let_go(r);
}

void sim_flush_failed(sim_conn *c, fab_wc_status first) {
    list_append(&c->reads, &c->staged_reads);
    for (sim_read *r; (r = LIST_FIRST(&c->reads, sim_read, link)); first = FAB_WR_FLUSH_ERR) complete(c, r, first);
}

/* Gives what can be given: the oldest READs that have arrived, and those that overtake. */
static void give(sim_conn *c) {
    sim_read *r, *next;
    bool in_order = true;
    for (r = LIST_FIRST(&c->reads, sim_read, link); r && c->state == SIM_UP; r = next) {
        next = LIST_AFTER(&c->reads, r, sim_read, link);
        if (r->arrived && (in_order || (r->may_overtake && r->status == FAB_SUCCESS))) {
            if (!in_order) c->world->counts.overtaken++;
            fab_wc_status status = r->status;
            complete(c, r, status);
            /* The owner's end of a refused READ is in error for the same reason. */
            if (status != FAB_SUCCESS) sim_fail_both(c, FAB_WR_FLUSH_ERR, status);
        } else {
            in_order = false;
        }
    }
}

static void answered(void *arg, bool live) {
    sim_read *r = arg;
    if (live && !r->ended) {
        r->arrived = true;
        give(r->conn);
    }
    let_go(r);
}

static void answer(sim_read *r, fab_wc_status status) {
    sim_conn *c = r->conn;
    uint64_t at = c->world->now + sim_delay(c);
    if (!r->may_overtake && at < c->next_answer) at = c->next_answer;
    if (!r->may_overtake) c->next_answer = at;
    r->status = status;
    sim_at(c->world, at, answered, hold(r));
}

/* ---- at the owner's memory ---- */

/* From the place `from` of the READ on, one line or all. */
static bool copy(sim_read *r, uint64_t from, uint64_t bytes) {
    sim_conn *c = r->conn, *peer = c->peer;
    const fab_read *q = &r->request;
    const uint8_t *at = peer && !peer->gone ? sim_find(peer->domain, q->rkey, q->remote_addr, q->bytes, peer->tenant)
                                            : NULL;
    if (!at) return false;
    fkv_copy_shared((uint8_t *)q->local + from, at + from, bytes);
    fkv_copy_shared_end();
    return true;
}

typedef struct line {
    sim_read *read;
    uint32_t from, bytes;
} line;

static void take_line(void *arg, bool live) {
    line *l = arg;
    sim_read *r = l->read;
    if (live && !r->ended && r->status == FAB_SUCCESS) {
        sim_say(r->conn->world, "c%u read %llu: line at %u", r->conn->name, (unsigned long long)r->number, l->from);
        fab_wc_status status = copy(r, l->from, l->bytes) ? FAB_SUCCESS : FAB_REM_ACCESS_ERR;
        r->lines_left--;
        if (status != FAB_SUCCESS || r->lines_left == 0) answer(r, status);
    }
    let_go(r);
    free(l);
}

static void tear(sim_read *r) {
    sim_world *w = r->conn->world;
    const fab_read *q = &r->request;
    w->counts.torn++;
    for (uint32_t from = 0; from < q->bytes;) {
        uint32_t to_line_end = SIM_LINE - (uint32_t)((q->remote_addr + from) % SIM_LINE);
        line *l = malloc(sizeof *l);
        if (!l) abort();
        *l = (line){ hold(r), from, to_line_end < q->bytes - from ? to_line_end : q->bytes - from };
        from += l->bytes;
        r->lines_left++;
        w->counts.torn_lines++;
        sim_at(w, w->now + sim_between(w, 0, sim_faults_of(r->conn)->tear_span_ns), take_line, l);
    }
}

static void reach_memory(void *arg, bool live) {
    sim_read *r = arg;
    sim_conn *c = r->conn;
    if (live && !r->ended && sim_is_cut(c)) {
        sim_at(c->world, c->world->now + SIM_RETRY_NS, reach_memory, r);
        return;
    }
    if (live && !r->ended) {
        const sim_faults *f = sim_faults_of(c);
        sim_say(c->world, "c%u read %llu: %u bytes at %llx", c->name, (unsigned long long)r->number, r->request.bytes,
                (unsigned long long)r->request.remote_addr);
        if (r->request.bytes > SIM_LINE && sim_chance(c->world, f->tear)) {
            tear(r);
        } else if (sim_chance(c->world, f->access_error)) {
            c->world->counts.access_errors++;
            answer(r, FAB_REM_ACCESS_ERR);
        } else {
            answer(r, copy(r, 0, r->request.bytes) ? FAB_SUCCESS : FAB_REM_ACCESS_ERR);
        }
    }
    let_go(r);
}

/* ---- leaving ---- */

static void dropped(void *arg, bool live) {
    sim_read *r = arg;
    if (live && !r->ended) sim_fail_both(r->conn, FAB_RETRY_EXC_ERR, FAB_RETRY_EXC_ERR);
    let_go(r);
}

static void leave(sim_conn *c, sim_read *r) {
    sim_world *w = c->world;
    const sim_faults *f = sim_faults_of(c);
    w->counts.reads++;
    if (r->status != FAB_SUCCESS) { /* refused here */
        answer(r, r->status);
        return;
    }
    if (sim_chance(w, f->drop)) {
        w->counts.dropped++;
        sim_say(w, "c%u read %llu: dropped", c->name, (unsigned long long)r->number);
        sim_at(w, w->now + (uint64_t)c->domain->options.op_timeout_ms * 1000000u, dropped, hold(r));
        return;
    }
    r->may_overtake = sim_chance(w, f->overtake);
    bool reorder = sim_chance(w, f->reorder) || r->may_overtake;
    uint64_t at = w->now + sim_delay(c);
    w->counts.reordered += reorder;
    if (!reorder && at < c->next_access) at = c->next_access;
    if (!reorder) c->next_access = at;
    sim_at(w, at, reach_memory, hold(r));
}

void sim_flush_reads(sim_conn *c) {
    sim_world *w = c->world;
    sim_read *r;
    while ((r = LIST_FIRST(&c->staged_reads, sim_read, link))) {
        const sim_faults *f = sim_faults_of(c);
        list_remove(&r->link);
        list_push(&c->reads, &r->link);
        if (sim_chance(w, f->break_conn)) {
            w->counts.broken++;
            sim_fail_both(c, FAB_RETRY_EXC_ERR, FAB_RETRY_EXC_ERR);
        } else if (sim_chance(w, f->flush_error)) {
            w->counts.flush_errors++;
            sim_fail_both(c, FAB_WR_FLUSH_ERR, FAB_WR_FLUSH_ERR);
        } else {
            leave(c, r);
        }
    }
}
