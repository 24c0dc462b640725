/* deliver.c: events of the drivers become completions. The CQ's thread.
 *
 * Order: READs of a connection in the order posted, messages in the order sent, DISCONNECT last and in a later poll
 * than all others. Connections take turns, so that one that floods does not starve another. Invariant: an event is in
 * one list at most. `reads` is queued by whoever turns reads_queued from 0 to 1, and is out of every list before
 * reads_queued is 0 again.
 */
#include <stdlib.h>
#include "tcp.h"

enum { TURN = 16 }; /* completions of one connection before another's */

static void put_back(tcp_event *e) {
    tcp_conn *c = e->conn;
    e->next = c->events;
    if (!c->events) c->events_end = &e->next;
    c->events = e;
}

static fab_wc one_read(tcp_conn *c, fab_wc_status status) {
    const tcp_slot *s = &c->slots[c->completed % TCP_DEPTH];
    fab_wc wc = { .opcode = FAB_WC_READ, .status = status, .wr_id = s->wr_id, .conn = &c->head, .bytes = s->landed };
    if (status != FAB_SUCCESS) c->usable = false;
    tcp_read_done(c, s);
    return wc;
}

/* Behind a DOWN that took several turns `completed` is beyond `answered`: what was flushed is not answered. */
static int answered_reads(tcp_conn *c, fab_wc *wc, int max) {
    int n = 0;
    uint64_t answered = __atomic_load_n(&c->answered, __ATOMIC_ACQUIRE);
    while (n < max && c->completed < answered) {
        wc[n++] = one_read(c, (fab_wc_status)c->slots[c->completed % TCP_DEPTH].status);
    }
    return n;
}

static int deliver_reads(tcp_conn *c, fab_wc *wc, int max) {
    int n = 0;
    for (;;) {
        n += answered_reads(c, wc + n, max - n);
        if (n == max) {
            put_back(&c->reads);
            return n;
        }
        /* The exchange reads what the driver's exchange wrote, and so sees its `answered` too: none is overlooked. */
        __atomic_exchange_n(&c->reads_queued, 0, __ATOMIC_ACQ_REL);
        if (c->completed >= __atomic_load_n(&c->answered, __ATOMIC_ACQUIRE)) return n;
        if (__atomic_exchange_n(&c->reads_queued, 1, __ATOMIC_ACQ_REL)) return n; /* the driver queued it again */
    }
}

static int deliver_down(tcp_cq *cq, tcp_conn *c, fab_wc *wc, int max) {
    c->usable = false;
    __atomic_store_n(&c->posted, c->posted + c->refused, __ATOMIC_RELAXED);
    c->refused = 0;
    int n = answered_reads(c, wc, max);
    while (n < max && c->completed != c->posted) {
        uint32_t own = c->slots[c->completed % TCP_DEPTH].status;
        fab_wc_status s = own                                ? (fab_wc_status)own
                          : c->down_blames && c->down_status ? c->down_status
                                                             : FAB_WR_FLUSH_ERR;
        c->down_blames = false;
        wc[n++] = one_read(c, s);
    }
    if (c->completed != c->posted) {
        put_back(&c->down);
    } else {
        c->down.kind = TCP_EV_DISCONNECT;
        c->down_poll = cq->polls;
        put_back(&c->down);
    }
    return n;
}

static int deliver_up(tcp_conn *c, fab_wc *out) {
    if (c->listener && __atomic_load_n(&c->listener->closed, __ATOMIC_RELAXED)) {
        tcp_reject(&c->head, NULL, 0);
        return 0;
    }
    fab_wc wc = { .opcode = c->listener ? FAB_WC_ACCEPT : FAB_WC_CONNECT,
                  .status = c->up_status,
                  .conn = &c->head,
                  .data = c->peer.priv,
                  .bytes = c->peer.priv_bytes };
    if (!c->listener && c->up_status == FAB_SUCCESS) {
        c->usable = true;
        c->head.max_message = c->peer.max_message;
    }
    *out = wc;
    return 1;
}

static fab_wc deliver_message(tcp_conn *c, tcp_message *m) {
    list_push(&c->unreleased, &m->link);
    return (fab_wc){ .opcode = FAB_WC_RECV, .conn = &c->head, .data = m->data, .bytes = m->bytes };
}

static fab_wc deliver_attach(tcp_event *e) {
    fab_wc wc = { .opcode = FAB_WC_ATTACH, .wr_id = ((tcp_attach *)e)->wr_id, .conn = &e->conn->head };
    free(e);
    return wc;
}

/* Of a connection that the user has freed. */
static void discard(tcp_event *e) {
    if (e->kind == TCP_EV_MESSAGE)
        tcp_message_put(e->conn, (tcp_message *)e);
    else if (e->kind == TCP_EV_ATTACH)
        free(e);
    else if (e->kind == TCP_EV_GONE)
        tcp_conn_free(e->conn);
}

static tcp_event *pop(tcp_conn *c) {
    tcp_event *e = c->events;
    c->events = e->next;
    if (!c->events) c->events_end = &c->events;
    return e;
}

static int deliver_one(tcp_cq *cq, tcp_event *e, fab_wc *wc, int max) {
    tcp_conn *c = e->conn;
    switch (e->kind) {
    case TCP_EV_UP: return deliver_up(c, wc);
    case TCP_EV_READS: return deliver_reads(c, wc, max);
    case TCP_EV_MESSAGE: *wc = deliver_message(c, (tcp_message *)e); return 1;
    case TCP_EV_ATTACH: *wc = deliver_attach(e); return 1;
    case TCP_EV_SEND_READY:
        __atomic_store_n(&c->ready_queued, 0, __ATOMIC_SEQ_CST);
        *wc = (fab_wc){ .opcode = FAB_WC_SEND_READY, .conn = &c->head };
        return c->usable;
    case TCP_EV_DOWN: return deliver_down(cq, c, wc, max);
    case TCP_EV_DISCONNECT:
        *wc = (fab_wc){ .opcode = FAB_WC_DISCONNECT, .status = c->down_status, .conn = &c->head };
        return 1;
    case TCP_EV_MOVED:       /* is no event of the user's */
    case TCP_EV_GONE: break; /* only after `gone` */
    }
    return 0;
}

/* One turn of a connection that has events. It is out of the list meanwhile, but marked as active: what is appended in
 * its turn does not put it back. */
static int turn(tcp_cq *cq, tcp_conn *c, fab_wc *wc, int max) {
    int n = 0;
    fkv_list *again = &cq->active;
    list_remove(&c->active_link);
    while (n < max && c->events && again == &cq->active) {
        if (c->gone) {
            bool last = c->events->kind == TCP_EV_GONE;
            discard(pop(c));
            if (last) return n;
        } else if (c->events->kind == TCP_EV_DISCONNECT && c->down_poll == cq->polls) {
            again = &cq->deferred;
        } else {
            n += deliver_one(cq, pop(c), wc + n, max - n);
        }
    }
    c->is_active = c->events != NULL;
    if (c->is_active) list_push(again, &c->active_link);
    return n;
}

int tcp_deliver(tcp_cq *cq, fab_wc *wc, int max) {
    int n = 0;
    tcp_conn *c;
    while (n < max && (c = LIST_FIRST(&cq->active, tcp_conn, active_link)))
        n += turn(cq, c, wc + n, max - n < TURN ? max - n : TURN);
    return n;
}

static void drop_events(tcp_conn *c) {
    while (c->events) {
        tcp_event *e = pop(c);
        if (e->kind == TCP_EV_MESSAGE)
            list_push(&c->unreleased, &((tcp_message *)e)->link);
        else if (e->kind == TCP_EV_ATTACH)
            free(e);
        else if (e->kind == TCP_EV_GONE)
            list_push(&c->io->conns, &c->io_link);
    }
}

void tcp_deliver_nothing(tcp_cq *cq) {
    tcp_conn *c;
    list_append(&cq->active, &cq->deferred);
    for (c = LIST_FIRST(&cq->active, tcp_conn, active_link); c; c = LIST_AFTER(&cq->active, c, tcp_conn, active_link))
        drop_events(c);
}
