/* send.c: SENDs of the sim provider: in order, whole, as many as the peer has given credits for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "private.h"

int sim_send(fab_conn *conn, const struct iovec *iov, int n, uint32_t bytes) {
    sim_conn *c = (sim_conn *)conn;
    int e = 0;
    sim_lock(c->world);
    if (c->state != SIM_UP)
        e = -ENOTCONN;
    else if (c->credits == 0)
        e = -EAGAIN;
    c->wants_credit = e == -EAGAIN;
    sim_message *m = e ? NULL : malloc(sizeof *m + bytes);
    if (!e && !m) e = -ENOMEM;
    if (e == 0) {
        uint8_t *to = m->data;
        for (int i = 0; i < n; i++) {
            if (iov[i].iov_len) memcpy(to, iov[i].iov_base, iov[i].iov_len);
            to += iov[i].iov_len;
        }
        m->bytes = bytes;
        c->credits--;
        list_push(&c->staged, &m->link);
        sim_mark_flushable(c);
    }
    sim_unlock(c->world);
    return e;
}

static void arrive(void *arg, bool live) {
    sim_message *m = arg;
    sim_conn *to = m->to;
    /* The order is kept: what was sent before it may have met a cut that is over, and not been tried again yet. */
    if (live && (sim_is_cut(to) || m->number != to->arrived) && to->state != SIM_ERROR) {
        sim_at(to->world, to->world->now + SIM_RETRY_NS, arrive, m);
        return;
    }
    if (live && to->state != SIM_ERROR) {
        sim_say(to->world, "c%u receives %u bytes", to->name, m->bytes);
        to->arrived++;
        list_push(&to->unreleased, &m->link);
        sim_complete(to, (fab_wc){ .opcode = FAB_WC_RECV, .data = m->data, .bytes = m->bytes });
    } else {
        free(m);
    }
    sim_let_go(to);
}

void sim_flush_messages(sim_conn *c) {
    sim_message *m;
    while ((m = LIST_FIRST(&c->staged, sim_message, link))) {
        list_remove(&m->link);
        c->world->counts.messages++;
        if (sim_chance(c->world, sim_faults_of(c)->break_conn)) {
            free(m);
            c->world->counts.broken++;
            sim_fail_both(c, FAB_RETRY_EXC_ERR, FAB_RETRY_EXC_ERR);
            return;
        }
        if (!c->peer) {
            free(m);
            continue;
        }
        m->to = sim_hold(c->peer);
        m->number = c->departed++;
        sim_at(c->world, sim_arrival(c), arrive, m);
    }
}

static void credit(void *arg, bool live) {
    sim_conn *c = arg;
    if (live && c->state == SIM_UP) {
        c->credits++;
        if (c->wants_credit) sim_complete(c, (fab_wc){ .opcode = FAB_WC_SEND_READY });
        c->wants_credit = false;
    }
    sim_let_go(c);
}

void sim_release(fab_conn *conn, const void *message) {
    sim_conn *c = (sim_conn *)conn;
    sim_message *m = (sim_message *)((uintptr_t)message - offsetof(sim_message, data));
    sim_lock(c->world);
    list_remove(&m->link);
    free(m);
    if (c->peer && c->state == SIM_UP) sim_at(c->world, sim_arrival(c), credit, sim_hold(c->peer));
    sim_unlock(c->world);
}
