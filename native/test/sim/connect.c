/* connect.c: names, listeners, asking and answering. Addresses are "sim:NAME". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "private.h"

static const char prefix[] = "sim:";

static bool is_address(const char *text) {
    size_t n = strlen(prefix), all = strlen(text);
    return strncmp(text, prefix, n) == 0 && all > n && all < FAB_ADDRESS_MAX;
}

static sim_listener *find(sim_world *w, const char *address) {
    sim_listener *l;
    for (l = LIST_FIRST(&w->listeners, sim_listener, link); l; l = LIST_AFTER(&w->listeners, l, sim_listener, link))
        if (strcmp(l->head.address, address) == 0) return l;
    return NULL;
}

/* ---- listeners ---- */

int sim_listen(fab_cq *head, const char *address, fab_listener **out) {
    sim_cq *cq = (sim_cq *)head;
    if (!is_address(address)) return -EINVAL;
    sim_listener *l = calloc(1, sizeof *l);
    if (!l) return -ENOMEM;
    sim_lock(cq->world);
    int e = find(cq->world, address) ? -EADDRINUSE : 0;
    if (e == 0) {
        snprintf(l->head.address, sizeof l->head.address, "%s", address);
        l->references = 1;
        list_push(&cq->world->listeners, &l->link);
        *out = &l->head;
    }
    sim_unlock(cq->world);
    if (e) free(l);
    return e;
}

void sim_listener_let_go(sim_listener *l) {
    if (--l->references == 0) free(l);
}

static sim_conn *unseen(sim_cq *cq, const sim_listener *l) {
    sim_done *d;
    for (d = LIST_FIRST(&cq->done, sim_done, link); d; d = LIST_AFTER(&cq->done, d, sim_done, link))
        if (d->wc.opcode == FAB_WC_ACCEPT && d->conn->listener == l) return d->conn;
    return NULL;
}

void sim_unlisten(fab_listener *head) {
    sim_listener *l = (sim_listener *)head;
    sim_cq *cq = (sim_cq *)head->cq;
    sim_world *w = cq->world;
    sim_lock(w);
    list_remove(&l->link);
    for (sim_conn *c; (c = unseen(cq, l));) { /* peers that asked and that the user has not seen */
        sim_unlock(w);
        sim_disconnect(&c->head);
        sim_lock(w);
    }
    sim_listener_let_go(l);
    sim_unlock(w);
}

/* ---- asking ---- */

static void no_answer(void *arg, bool live) {
    sim_conn *c = arg;
    if (live && c->state == SIM_CONNECTING) sim_fail_both(c, FAB_RETRY_EXC_ERR, FAB_RETRY_EXC_ERR);
    sim_let_go(c);
}

static void refused(void *arg, bool live) {
    sim_conn *c = arg;
    if (live && c->state == SIM_CONNECTING)
        sim_fail(c, FAB_WR_FLUSH_ERR, c->peer ? FAB_REM_ACCESS_ERR : FAB_RETRY_EXC_ERR);
    sim_let_go(c);
}

static void link_ends(sim_conn *a, sim_conn *b) {
    a->peer = sim_hold(b);
    b->peer = sim_hold(a);
}

/* A peer asks at the listener's CQ. NULL: it has as many as it may. */
static sim_conn *ask_at(sim_listener *l, const sim_conn *client) {
    sim_cq *cq = (sim_cq *)l->head.cq;
    if (l->live >= ((sim_domain *)cq->head.domain)->options.max_conns) return NULL;
    sim_conn *c = sim_conn_new(cq, NULL);
    if (!c) abort();
    c->state = SIM_ASKED;
    c->listener = l;
    l->references++;
    l->live++;
    c->counted = true;
    memcpy(c->priv, client->priv, sizeof c->priv);
    c->priv_bytes = client->priv_bytes;
    return c;
}

static void reach_listener(void *arg, bool live) {
    sim_conn *client = arg;
    sim_world *w = client->world;
    if (live && sim_is_cut(client)) {
        sim_at(w, w->now + SIM_RETRY_NS, reach_listener, client);
        return;
    }
    sim_listener *l = live && client->state == SIM_CONNECTING ? find(w, client->address) : NULL;
    sim_conn *c = l ? ask_at(l, client) : NULL;
    if (c) {
        link_ends(client, c);
        sim_say(w, "c%u asks as c%u", client->name, c->name);
        sim_complete(c, (fab_wc){ .opcode = FAB_WC_ACCEPT, .data = c->priv, .bytes = c->priv_bytes });
    } else if (live && client->state == SIM_CONNECTING) {
        client->priv_bytes = 0;
        sim_at(w, sim_arrival(client), refused, sim_hold(client));
    }
    sim_let_go(client);
}

int sim_connect(fab_cq *head, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                void *user, fab_conn **out) {
    (void)who; /* nothing of it is encrypted here */
    sim_cq *cq = (sim_cq *)head;
    sim_world *w = cq->world;
    if (!is_address(address)) return -EINVAL;
    sim_lock(w);
    sim_conn *c = sim_conn_new(cq, user);
    if (c) {
        c->state = SIM_CONNECTING;
        snprintf(c->address, sizeof c->address, "%s", address);
        if (priv_bytes) memcpy(c->priv, priv, priv_bytes);
        c->priv_bytes = priv_bytes;
        sim_at(w, sim_arrival(c), reach_listener, sim_hold(c));
        sim_at(w, w->now + (uint64_t)c->domain->options.handshake_ms * 1000000u, no_answer, sim_hold(c));
        *out = &c->head;
    }
    sim_unlock(w);
    return c ? 0 : -ENOMEM;
}

/* ---- answering ---- */

static void accepted(void *arg, bool live) {
    sim_conn *c = arg;
    if (live && sim_is_cut(c) && c->state == SIM_CONNECTING) {
        sim_at(c->world, c->world->now + SIM_RETRY_NS, accepted, c);
        return;
    }
    if (live && c->state == SIM_CONNECTING) {
        c->state = SIM_UP;
        sim_say(c->world, "c%u is connected", c->name);
        sim_complete(c, (fab_wc){ .opcode = FAB_WC_CONNECT, .data = c->priv, .bytes = c->priv_bytes });
    }
    sim_let_go(c);
}

static void answer_with(sim_conn *c, const void *priv, uint32_t priv_bytes, void (*arrive)(void *arg, bool live)) {
    if (!c->peer) return;
    if (priv_bytes) memcpy(c->peer->priv, priv, priv_bytes);
    c->peer->priv_bytes = priv_bytes;
    sim_at(c->world, sim_arrival(c), arrive, sim_hold(c->peer));
}

static uint32_t smaller_message(const sim_conn *c) {
    uint32_t ours = c->domain->options.max_message, theirs = c->peer->domain->options.max_message;
    return ours < theirs ? ours : theirs;
}

int sim_accept(fab_conn *conn, uint32_t tenant, const void *priv, uint32_t priv_bytes) {
    sim_conn *c = (sim_conn *)conn;
    sim_lock(c->world);
    int e = c->state == SIM_ASKED ? 0 : c->state == SIM_UP ? -EINVAL : -ENOTCONN;
    if (e == 0) {
        c->state = SIM_UP;
        c->tenant = tenant;
        c->head.max_message = c->peer->head.max_message = smaller_message(c);
        answer_with(c, priv, priv_bytes, accepted);
    }
    sim_unlock(c->world);
    return e;
}

int sim_reject(fab_conn *conn, const void *priv, uint32_t priv_bytes) {
    sim_conn *c = (sim_conn *)conn;
    sim_lock(c->world);
    int e = c->state == SIM_UP ? -EINVAL : 0;
    if (c->state == SIM_ASKED) answer_with(c, priv, priv_bytes, refused);
    sim_unlock(c->world);
    if (e == 0) sim_disconnect(conn);
    return e;
}
