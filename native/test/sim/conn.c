/* conn.c: the life of a connection of the sim provider: its references, its faults, its end. */
#include <errno.h>
#include <stdlib.h>
#include "private.h"

sim_conn *sim_conn_new(sim_cq *cq, void *user) {
    sim_conn *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    fab_conn_init(&c->head, &fab_sim_ops, &cq->head, user);
    c->world = cq->world;
    c->domain = (sim_domain *)cq->head.domain;
    c->name = ++c->world->conns;
    c->references = 1;
    c->credits = SIM_CREDITS;
    list_push(&c->world->all, &c->all_link);
    list_init(&c->staged_reads);
    list_init(&c->reads);
    list_init(&c->staged);
    list_init(&c->unreleased);
    return c;
}

sim_conn *sim_hold(sim_conn *c) {
    c->references++;
    return c;
}

void sim_let_go(sim_conn *c) {
    if (--c->references > 0) return;
    list_remove(&c->all_link);
    if (c->listener) sim_listener_let_go(c->listener);
    free(c);
}

/* ---- faults ---- */

const sim_faults *sim_faults_of(const sim_conn *c) { return c->own_faults ? &c->faults : &c->world->faults; }

uint64_t sim_delay(sim_conn *c) {
    const sim_faults *f = sim_faults_of(c);
    return sim_between(c->world, f->delay_min_ns, f->delay_max_ns);
}

uint64_t sim_arrival(sim_conn *c) {
    uint64_t at = c->world->now + sim_delay(c);
    if (at < c->next_arrival) at = c->next_arrival;
    c->next_arrival = at;
    return at;
}

/* The domain of a connection that its user freed may be gone. */
static bool end_is_cut(const sim_conn *c) { return c && !c->gone && c->domain->cut; }
static bool pair_is_cut(const sim_world *w, const sim_domain *a, const sim_domain *b) {
    for (int i = 0; i < SIM_PAIRS; i++)
        if (w->cut[i].a && ((w->cut[i].a == a && w->cut[i].b == b) || (w->cut[i].a == b && w->cut[i].b == a)))
            return true;
    return false;
}
bool sim_is_cut(const sim_conn *c) {
    if (end_is_cut(c) || end_is_cut(c->peer)) return true;
    return c->peer && !c->gone && !c->peer->gone && pair_is_cut(c->world, c->domain, c->peer->domain);
}

void sim_set_conn_faults(fab_conn *conn, const sim_faults *f) {
    sim_conn *c = (sim_conn *)conn;
    sim_lock(c->world);
    c->own_faults = f != NULL;
    if (f) c->faults = *f;
    sim_unlock(c->world);
}

/* ---- ends ---- */

void sim_mark_flushable(sim_conn *c) {
    if (c->is_flushable) return;
    c->is_flushable = true;
    list_push(&((sim_cq *)c->head.cq)->flushable, &c->flush_link);
}

static void drop_staged(sim_conn *c) {
    sim_message *m;
    while ((m = LIST_FIRST(&c->staged, sim_message, link))) {
        list_remove(&m->link);
        free(m);
    }
}

static void uncount(sim_conn *c) {
    if (c->counted) c->listener->live--;
    c->counted = false;
}

void sim_fail(sim_conn *c, fab_wc_status first, fab_wc_status reason) {
    if (c->state == SIM_ERROR) return;
    bool connecting = c->state == SIM_CONNECTING;
    c->state = SIM_ERROR;
    uncount(c);
    drop_staged(c);
    sim_say(c->world, "c%u ends: %s", c->name, fab_wc_status_name(reason));
    if (connecting)
        sim_complete(c,
                     (fab_wc){ .opcode = FAB_WC_CONNECT, .status = reason, .data = c->priv, .bytes = c->priv_bytes });
    sim_flush_failed(c, first);
    sim_complete(c, (fab_wc){ .opcode = FAB_WC_DISCONNECT, .status = reason });
}

static void peer_failed(void *arg, bool live) {
    sim_conn *c = arg;
    if (live && sim_is_cut(c)) {
        sim_at(c->world, c->world->now + SIM_RETRY_NS, peer_failed, c);
        return;
    }
    if (live) sim_fail(c, FAB_RETRY_EXC_ERR, FAB_RETRY_EXC_ERR);
    sim_let_go(c);
}

void sim_fail_both(sim_conn *c, fab_wc_status first, fab_wc_status reason) {
    if (c->state == SIM_ERROR) return;
    if (c->peer) sim_at(c->world, sim_arrival(c), peer_failed, sim_hold(c->peer));
    sim_fail(c, first, reason);
}

void sim_break(fab_conn *conn, fab_wc_status status) {
    sim_conn *c = (sim_conn *)conn;
    sim_lock(c->world);
    c->world->counts.broken++;
    sim_fail_both(c, status, status);
    sim_unlock(c->world);
}

static void peer_closed(void *arg, bool live) {
    sim_conn *c = arg;
    if (live && sim_is_cut(c)) {
        sim_at(c->world, c->world->now + SIM_RETRY_NS, peer_closed, c);
        return;
    }
    if (live) sim_fail(c, FAB_WR_FLUSH_ERR, c->state == SIM_CONNECTING ? FAB_RETRY_EXC_ERR : FAB_SUCCESS);
    sim_let_go(c);
}

void sim_disconnect(fab_conn *conn) {
    sim_conn *c = (sim_conn *)conn;
    sim_world *w = c->world;
    sim_message *m;
    sim_lock(w);
    if (c->is_flushable) {
        list_remove(&c->flush_link);
        c->is_flushable = false;
        sim_flush_messages(c);
    }
    bool failed = c->state == SIM_ERROR;
    sim_forget_completions(c);
    c->gone = true;
    c->state = SIM_ERROR;
    uncount(c);
    drop_staged(c);
    sim_flush_failed(c, FAB_WR_FLUSH_ERR); /* no buffer is touched any more; nobody sees these completions */
    while ((m = LIST_FIRST(&c->unreleased, sim_message, link))) {
        list_remove(&m->link);
        free(m);
    }
    sim_say(w, "c%u disconnects", c->name);
    if (c->peer) {
        if (!failed) sim_at(w, sim_arrival(c), peer_closed, sim_hold(c->peer));
        sim_conn *peer = c->peer;
        c->peer = NULL;
        sim_let_go(peer);
    }
    sim_let_go(c);
    sim_unlock(w);
}

/* ---- cuts ---- */

static uint64_t timeout_ns(const sim_conn *c) { return (uint64_t)c->domain->options.op_timeout_ms * 1000000u; }

static void look_at_cut(void *arg, bool live) {
    sim_conn *c = arg;
    if (live && !c->gone && c->cut_since && c->world->now - c->cut_since >= timeout_ns(c))
        sim_fail(c, FAB_RETRY_EXC_ERR, FAB_RETRY_EXC_ERR);
    sim_let_go(c);
}

/* What is cut now breaks after its time, unless it is joined before. */
static void look_at_cuts(sim_world *w) {
    sim_conn *c;
    for (c = LIST_FIRST(&w->all, sim_conn, all_link); c; c = LIST_AFTER(&w->all, c, sim_conn, all_link)) {
        if (!sim_is_cut(c)) c->cut_since = 0;
        if (!sim_is_cut(c) || c->cut_since) continue;
        c->cut_since = w->now;
        sim_at(w, w->now + timeout_ns(c), look_at_cut, sim_hold(c));
    }
}

void sim_cut_off(fab_domain *domain, bool cut) {
    sim_domain *d = (sim_domain *)domain;
    sim_world *w = d->world;
    sim_lock(w);
    d->cut = cut;
    sim_say(w, cut ? "cut off" : "joined");
    look_at_cuts(w);
    sim_unlock(w);
}

void sim_cut_between(fab_domain *one, fab_domain *other, bool cut) {
    const sim_domain *a = (sim_domain *)one, *b = (sim_domain *)other;
    sim_world *w = a->world;
    int place = -1;
    sim_lock(w);
    for (int i = 0; i < SIM_PAIRS; i++) {
        bool same = (w->cut[i].a == a && w->cut[i].b == b) || (w->cut[i].a == b && w->cut[i].b == a);
        if (same) w->cut[i].a = w->cut[i].b = NULL;
        if (!w->cut[i].a) place = i;
    }
    if (cut && place < 0) abort();
    if (cut) w->cut[place].a = a, w->cut[place].b = b;
    sim_say(w, cut ? "cut in two" : "joined");
    look_at_cuts(w);
    sim_unlock(w);
}

void sim_lose_device(fab_domain *domain) {
    sim_cut_off(domain, true);
    sim_break_all(domain);
    sim_domain *d = (sim_domain *)domain;
    sim_lock(d->world);
    d->lost = true;
    sim_unlock(d->world);
}

void sim_break_all(fab_domain *domain) {
    sim_domain *d = (sim_domain *)domain;
    sim_world *w = d->world;
    sim_conn *c, *next;
    sim_lock(w);
    for (c = LIST_FIRST(&w->all, sim_conn, all_link); c; c = next) {
        next = LIST_AFTER(&w->all, c, sim_conn, all_link);
        if (c->domain == d && !c->gone) sim_fail_both(c, FAB_RETRY_EXC_ERR, FAB_RETRY_EXC_ERR);
    }
    sim_unlock(w);
}
