/* end.c: connections end: broken, or left in order, then freed.
 *
 * However a connection breaks, its queue pair is destroyed before READs that are in flight complete: after that the device
 * touches no buffer of it. One without any is in error first, until its receives are back (verbs.h). */
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS
#include <stdlib.h>
#include "../../base/clock.h"

static void destroy_qp(verbs_conn *c) {
    verbs_domain *d = c->cq->d;
    verbs_dial_end(c);
    pthread_mutex_lock(&d->cm_lock);
    d->v->rdma_destroy_qp(c->id);
    pthread_mutex_unlock(&d->cm_lock);
    c->qp = NULL;
    c->cq->reserved -= c->reserved;
    c->reserved = 0;
}

/* It posts nothing any more. False: the device does not hear of it. */
static bool set_in_error(verbs_conn *c) {
    if (c->in_error) return true;
    if (c->cq->d->v->rdma_disconnect(c->id)) return false;
    c->in_error = true;
    uint32_t left = c->sq_head - c->sq_tail;
    c->cq->reserved -= c->reserved - left;
    c->reserved = left;
    return true;
}

static bool reads_in_flight(const verbs_conn *c) {
    for (uint32_t i = c->sq_tail; i != c->sq_head; i++)
        if (c->sq[i % VERBS_SQ].kind == VERBS_SQ_READ && !c->sq[i % VERBS_SQ].done) return true;
    return false;
}

/* The queue pair of a broken connection, and what was outstanding. */
static void end_break(verbs_conn *c) {
    c->ending = false;
    if (c->qp && (!c->in_error || reads_in_flight(c))) destroy_qp(c);
    verbs_pop(c, !c->qp);
    c->disconnect_due = true;
    c->cq->disconnects_due++;
}

void verbs_end_broken(verbs_cq *cq) {
    cq->endings = false;
    for (verbs_conn *c = cq->conns; c; c = c->next)
        if (c->ending) end_break(c);
}

void verbs_break(verbs_conn *c, fab_wc_status first, fab_wc_status reason) {
    verbs_cq *cq = c->cq;
    if (c->qp && !cq->draining) verbs_drain(cq); /* what arrived is delivered; this may find the error itself */
    if (c->state == VERBS_BROKEN) return;
    if (c->state == VERBS_LEAVING) {
        verbs_left(c);
        return;
    }
    bool was_up = c->state == VERBS_UP;
    c->state = VERBS_BROKEN;
    c->reason = reason;
    c->chained = 0;
    if (c->qp && was_up) (void)set_in_error(c);
    uint32_t oldest = c->sq_tail; /* of which somebody hears: a SEND has no completion */
    /* mutation: verbs/unanswered-ended-as-other */
    while (oldest != c->sq_head && c->sq[oldest % VERBS_SQ].kind != VERBS_SQ_READ) oldest++;
    if (first != FAB_SUCCESS && oldest != c->sq_head) c->sq[oldest % VERBS_SQ].status = first;
    c->ending = cq->draining;
    if (c->ending)
        cq->endings = true;
    else
        end_break(c);
}

static void unlink_conn(verbs_conn *c) {
    verbs_cq *cq = c->cq;
    if (c->prev)
        c->prev->next = c->next;
    else
        cq->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    for (verbs_conn **at = &cq->by_qp[c->qp_number % VERBS_QP_CHAINS]; *at; at = &(*at)->next_by_qp)
        if (*at == c) {
            *at = c->next_by_qp;
            break;
        }
    for (verbs_conn **at = &cq->dirty; *at; at = &(*at)->next_dirty)
        if (*at == c) {
            *at = c->next_dirty;
            break;
        }
    cq->slots[c->slot] = NULL;
    cq->conn_count--;
}

static void free_conn(verbs_conn *c) {
    unlink_conn(c);
    if (c->id) c->cq->d->v->rdma_destroy_id(c->id); /* waits until the CM thread has acknowledged its events */
    free(c->context);
    free(c);
}

static void to_reap(verbs_conn *c) {
    c->left = true;
    c->cq->reap = true;
}
void verbs_left(verbs_conn *c) {
    if (!c->ends) to_reap(c);
}
void verbs_receives_over(verbs_conn *c) {
    c->receives_over = true;
    if (c->ends) to_reap(c);
}

/* Whether its receives are to be waited for: nobody else hears of it any more. */
static bool ends_later(verbs_conn *c) {
    verbs_cq *cq = c->cq;
    if (c->ends || c->receives_over || cq->closing || cq->lost || !set_in_error(c)) return false;
    c->state = VERBS_LEAVING;
    c->unposted = false;
    c->ends = true;
    c->deadline_ns = fkv_now_ns() + VERBS_RECEIVES_MS * 1000000ull;
    return true;
}

void verbs_reap(verbs_cq *cq) {
    if (!cq->reap) return;
    cq->reap = false;
    verbs_drain(cq); /* what it has received */
    for (verbs_conn *c = cq->conns, *next; c; c = next) {
        next = c->next;
        if (!c->left) continue;
        c->left = false;
        if (ends_later(c)) continue;
        (void)set_in_error(c);
        destroy_qp(c);
        verbs_pop(c, true); /* SENDs: buffers come back */
        free_conn(c);
    }
}

/* Whether the queue pair can stay until what was sent has arrived: not with READs in flight. */
static bool leave(verbs_conn *c) {
    if ((c->state != VERBS_UP && c->state != VERBS_ACCEPTING) || c->refused) return false;
    if (reads_in_flight(c) || !verbs_say_bye(c)) return false;
    c->unposted = c->state == VERBS_ACCEPTING;
    if (!c->unposted) c->deadline_ns = fkv_now_ns() + VERBS_LEAVE_MS * 1000000ull; /* else that of its set-up */
    c->state = VERBS_LEAVING;
    return true;
}

void verbs_disconnect(fab_conn *conn) {
    verbs_conn *c = (verbs_conn *)conn;
    verbs_cq *cq = c->cq;
    if (c->state == VERBS_UP) verbs_doorbell(c);
    if (c->state == VERBS_UP) verbs_drain(cq); /* READs that ended already are none in flight */
    if (c->state == VERBS_ASKED) (void)cq->d->v->rdma_reject(c->id, NULL, 0);
    bool leaving = leave(c);
    if (!leaving) {
        verbs_break(c, FAB_SUCCESS, FAB_SUCCESS);
        leaving = c->qp && ends_later(c);
        if (c->qp && !leaving) {
            destroy_qp(c);
            verbs_pop(c, true);
        }
    }
    if (c->disconnect_due) cq->disconnects_due--;
    c->disconnect_due = false;
    verbs_purge(cq, c);
    while (c->held) {
        verbs_buffer *b = c->held;
        c->held = b->next;
        verbs_pool_repost(c->pool, b);
    }
    verbs_deliver_early(c);
    if (c->pool) verbs_pool_flush(c->pool);
    if (!leaving) free_conn(c);
}
#endif
