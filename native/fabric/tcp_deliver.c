/* tcp_deliver.c: events of the drivers become completions. The CQ's thread.
 *
 * Order: READs of a connection in the order posted, messages in the order sent, DISCONNECT last and in a later poll than all others.
 * Invariant: an event is in one list at most. `reads` is queued by whoever turns reads_queued from 0 to 1, and is out of every
 * list before reads_queued is 0 again.
 */
#include <stdlib.h>
#include "tcp.h"

static void put_back(tcp_cq *cq, tcp_event *e) {
    e->next = cq->ready;
    if (!cq->ready) cq->ready_end = &e->next;
    cq->ready = e;
}

static fab_wc one_read(tcp_conn *c, fab_wc_status status) {
    const tcp_slot *s = &c->slots[c->completed % TCP_DEPTH];
    fab_wc wc = {.opcode = FAB_WC_READ, .status = status, .wr_id = s->wr_id, .conn = &c->head};
    if (status != FAB_SUCCESS) c->usable = false;
    tcp_read_done(c, s);
    return wc;
}

static int answered_reads(tcp_conn *c, fab_wc *wc, int max) {
    int n = 0;
    uint64_t answered = __atomic_load_n(&c->answered, __ATOMIC_ACQUIRE);
    while (n < max && c->completed != answered) {
        wc[n++] = one_read(c, (fab_wc_status)c->slots[c->completed % TCP_DEPTH].status);
    }
    return n;
}

static int deliver_reads(tcp_cq *cq, tcp_conn *c, fab_wc *wc, int max) {
    int n = 0;
    for (;;) {
        n += answered_reads(c, wc + n, max - n);
        if (n == max) {
            put_back(cq, &c->reads);
            return n;
        }
        /* The exchange reads what the driver's exchange wrote, and so sees its `answered` too: none is overlooked. */
        __atomic_exchange_n(&c->reads_queued, 0, __ATOMIC_ACQ_REL);
        if (c->completed == __atomic_load_n(&c->answered, __ATOMIC_ACQUIRE)) return n;
        if (__atomic_exchange_n(&c->reads_queued, 1, __ATOMIC_ACQ_REL)) return n;    /* the driver queued it again */
    }
}

static int deliver_down(tcp_cq *cq, tcp_conn *c, fab_wc *wc, int max) {
    c->usable = false;
    if (c->refused_local) __atomic_store_n(&c->posted, c->posted + 1, __ATOMIC_RELAXED);
    c->refused_local = false;
    int n = answered_reads(c, wc, max);
    while (n < max && c->completed != c->posted) {
        uint32_t own = c->slots[c->completed % TCP_DEPTH].status;
        fab_wc_status s = own ? (fab_wc_status)own : c->down_blames && c->down_status ? c->down_status : FAB_WR_FLUSH_ERR;
        c->down_blames = false;
        wc[n++] = one_read(c, s);
    }
    if (c->completed != c->posted) {
        put_back(cq, &c->down);
    } else {
        c->down.kind = TCP_EV_DISCONNECT;
        tcp_cq_defer(cq, &c->down);
    }
    return n;
}

static int deliver_up(tcp_conn *c, fab_wc *out) {
    if (c->listener && __atomic_load_n(&c->listener->closed, __ATOMIC_RELAXED)) {
        tcp_reject(&c->head, NULL, 0);
        return 0;
    }
    fab_wc wc = {.opcode = c->listener ? FAB_WC_ACCEPT : FAB_WC_CONNECT, .status = c->up_status, .conn = &c->head,
        .data = c->peer.priv, .bytes = c->peer.priv_bytes};
    if (!c->listener && c->up_status == FAB_SUCCESS) {
        c->usable = true;
        c->head.max_message = c->peer.max_message;
    }
    *out = wc;
    return 1;
}

static fab_wc deliver_message(tcp_conn *c, tcp_message *m) {
    TAILQ_INSERT_TAIL(&c->unreleased, m, link);
    return (fab_wc){.opcode = FAB_WC_RECV, .conn = &c->head, .data = m->data, .bytes = m->bytes};
}

static fab_wc deliver_attach(tcp_event *e) {
    fab_wc wc = {.opcode = FAB_WC_ATTACH, .wr_id = ((tcp_attach *)e)->wr_id, .conn = &e->conn->head};
    free(e);
    return wc;
}

/* Of a connection that the user has freed. */
static void discard(tcp_event *e) {
    if (e->kind == TCP_EV_MESSAGE) tcp_message_put(e->conn, (tcp_message *)e);
    else if (e->kind == TCP_EV_ATTACH) free(e);
    else if (e->kind == TCP_EV_GONE) tcp_conn_free(e->conn);
}

int tcp_deliver(tcp_cq *cq, fab_wc *wc, int max) {
    int n = 0;
    while (n < max && cq->ready) {
        tcp_event *e = cq->ready;
        tcp_conn *c = e->conn;
        cq->ready = e->next;
        if (!cq->ready) cq->ready_end = &cq->ready;
        if (c->gone) {
            discard(e);
            continue;
        }
        switch (e->kind) {
        case TCP_EV_UP: n += deliver_up(c, wc + n); break;
        case TCP_EV_READS: n += deliver_reads(cq, c, wc + n, max - n); break;
        case TCP_EV_MESSAGE: wc[n++] = deliver_message(c, (tcp_message *)e); break;
        case TCP_EV_ATTACH: wc[n++] = deliver_attach(e); break;
        case TCP_EV_SEND_READY:
            __atomic_store_n(&c->ready_queued, 0, __ATOMIC_SEQ_CST);
            if (c->usable) wc[n++] = (fab_wc){.opcode = FAB_WC_SEND_READY, .conn = &c->head};
            break;
        case TCP_EV_DOWN: n += deliver_down(cq, c, wc + n, max - n); break;
        case TCP_EV_DISCONNECT:
            wc[n++] = (fab_wc){.opcode = FAB_WC_DISCONNECT, .status = c->down_status, .conn = &c->head};
            break;
        case TCP_EV_GONE: break;     /* only after `gone` */
        }
    }
    return n;
}
