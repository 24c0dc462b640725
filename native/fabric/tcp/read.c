/* read.c: READs of ours: posting, and their end in time. The CQ's thread.
 *
 * A READ is a slot in a ring: posted here, sent by whoever writes next, answered by the driver, completed here, in this
 * order. A READ is overdue when nothing at all came for op_timeout while it was the oldest, or when it took longer than
 * op_timeout and the time for its bytes and those before it at TCP_BYTE_NS: a large READ over a slow network is not a
 * dead peer, one that drips is. The connection fails only when a READ is still overdue an eighth of op_timeout after
 * that was noticed: when the user's thread itself was away for long, answers that wait in the socket, or behind a full
 * window, get their chance.
 */
#include <errno.h>
#include "../../base/assert.h"
#include "../../base/clock.h"
#include "tcp.h"

static uint64_t timeout_ns(const tcp_conn *c) { return (uint64_t)tcp_domain_of(c)->options.op_timeout_ms * 1000000u; }

static void begin_awaiting(tcp_conn *c, uint64_t now) {
    c->is_awaiting = true;
    c->seen_rx = __atomic_load_n(&c->rx_total, __ATOMIC_RELAXED);
    c->progress_ns = now;
    c->suspect_ns = 0;
    c->last_deadline_ns = 0;
    list_push(&((tcp_cq *)c->head.cq)->awaiting, &c->awaiting_link);
}

/* Invariant: deadlines of a connection's slots do not decrease, so that the oldest READ's is the first. */
static uint64_t deadline(tcp_conn *c, uint64_t now) {
    uint64_t at = now + timeout_ns(c) + c->outstanding_bytes * TCP_BYTE_NS;
    if (at < c->last_deadline_ns) at = c->last_deadline_ns;
    c->last_deadline_ns = at;
    return at;
}

/* A READ whose local buffer is not registered is kept back, and what was posted with it; when those before it are
 * answered, the connection fails, and they complete as its end (deliver_down). */
static void fail_refused(tcp_conn *c) {
    if (c->completed != c->posted) return;
    c->fail_status = FAB_WR_FLUSH_ERR;
    tcp_conn_command(c, TCP_CMD_FAIL);
}

int tcp_post_reads(fab_conn *conn, const fab_read *r, int n) {
    tcp_conn *c = (tcp_conn *)conn;
    if (!c->usable) return -ENOTCONN;
    uint64_t now = fkv_now_ns(), posted = c->posted;
    uint32_t refused = 0;
    int taken = 0;
    while (taken < n && posted + refused - c->completed < c->depth) {
        const fab_read *q = &r[taken++];
        tcp_slot s = { .wr_id = q->wr_id,
                       .rkey = q->rkey,
                       .addr = q->remote_addr,
                       .local = q->local,
                       .bytes = q->bytes,
                       .posted_ns = now,
                       .next_local = q->next_local,
                       .next_argument = q->next_argument,
                       .next_bytes = q->next_bytes };
        if (refused == 0 && !fab_local_ok(q)) s.status = FAB_LOC_PROT_ERR;
        c->outstanding_bytes += (uint64_t)q->bytes + q->next_bytes;
        s.deadline_ns = deadline(c, now);
        c->slots[(posted + refused) % TCP_DEPTH] = s;
        if (refused || s.status)
            refused++;
        else
            posted++;
    }
    if (posted != c->posted) {
        if (!c->is_awaiting) begin_awaiting(c, now);
        __atomic_store_n(&c->posted, posted, __ATOMIC_RELEASE);
        tcp_cq_mark_dirty(c);
    }
    if (refused) {
        c->usable = false;
        c->refused = refused;
        fail_refused(c);
    }
    return taken;
}

void tcp_read_done(tcp_conn *c, const tcp_slot *s) {
    fkv_assert(c->completed != c->posted && c->outstanding_bytes >= (uint64_t)s->bytes + s->next_bytes);
    c->outstanding_bytes -= (uint64_t)s->bytes + s->next_bytes;
    c->completed++;
    if (c->completed == c->posted && c->is_awaiting) {
        c->is_awaiting = false;
        list_remove(&c->awaiting_link);
    }
    if (c->refused) fail_refused(c);
}

static uint64_t overdue_at(const tcp_conn *c) {
    const tcp_slot *s = &c->slots[c->completed % TCP_DEPTH];
    uint64_t silent = (s->posted_ns > c->progress_ns ? s->posted_ns : c->progress_ns) + timeout_ns(c);
    return silent < s->deadline_ns ? silent : s->deadline_ns;
}

void tcp_read_deadlines(tcp_cq *cq, uint64_t now) {
    tcp_conn *c, *next;
    for (c = LIST_FIRST(&cq->awaiting, tcp_conn, awaiting_link); c; c = next) {
        next = LIST_AFTER(&cq->awaiting, c, tcp_conn, awaiting_link);
        uint64_t rx = __atomic_load_n(&c->rx_total, __ATOMIC_RELAXED);
        if (rx != c->seen_rx) c->progress_ns = now;
        c->seen_rx = rx;
        if (c->completed != __atomic_load_n(&c->answered, __ATOMIC_ACQUIRE) || now < overdue_at(c)) {
            c->suspect_ns = 0;
        } else if (c->suspect_ns == 0) {
            c->suspect_ns = now;
        } else if (now - c->suspect_ns >= timeout_ns(c) / 8 && c->fail_status == FAB_SUCCESS) {
            c->fail_status = FAB_RESP_TIMEOUT_ERR;
            tcp_conn_command(c, TCP_CMD_FAIL);
        }
    }
}

uint64_t tcp_read_next_deadline(const tcp_cq *cq) {
    uint64_t first = 0;
    const tcp_conn *c;
    for (c = LIST_FIRST(&cq->awaiting, tcp_conn, awaiting_link); c;
         c = LIST_AFTER(&cq->awaiting, c, tcp_conn, awaiting_link)) {
        uint64_t at = c->suspect_ns ? c->suspect_ns + timeout_ns(c) / 8 : overdue_at(c);
        if (first == 0 || at < first) first = at;
    }
    return first;
}
