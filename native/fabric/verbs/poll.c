/* poll.c: the data path, what comes: completions, messages and their credits, time-outs, polling, arming. */
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "../../base/clock.h"

fab_wc_status verbs_status(enum ibv_wc_status s) {
    switch (s) {
    case IBV_WC_SUCCESS: return FAB_SUCCESS;
    case IBV_WC_LOC_LEN_ERR: return FAB_LOC_LEN_ERR;
    case IBV_WC_LOC_QP_OP_ERR: return FAB_GENERAL_ERR;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR: return FAB_LOC_PROT_ERR;
    case IBV_WC_WR_FLUSH_ERR: return FAB_WR_FLUSH_ERR;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_BAD_RESP_ERR: return FAB_REM_INV_REQ_ERR;
    case IBV_WC_REM_ACCESS_ERR: return FAB_REM_ACCESS_ERR;
    case IBV_WC_REM_OP_ERR: return FAB_REM_OP_ERR;
    case IBV_WC_RETRY_EXC_ERR: return FAB_RETRY_EXC_ERR;
    case IBV_WC_RNR_RETRY_EXC_ERR: return FAB_RNR_RETRY_EXC_ERR;
    case IBV_WC_RESP_TIMEOUT_ERR: return FAB_RESP_TIMEOUT_ERR;
    case IBV_WC_FATAL_ERR: return FAB_FATAL_ERR;
    default: return FAB_GENERAL_ERR;
    }
}

/* ---- completions on their way to the user ---- */

void verbs_stash(verbs_cq *cq, const fab_wc *wc) {
    if (cq->stash_tail - cq->stash_head == cq->stash_size) {
        uint32_t n = cq->stash_size ? cq->stash_size * 2 : 256;
        fab_wc *bigger = malloc(n * sizeof *bigger);
        if (!bigger) abort(); /* a completion that is lost is a buffer that is never free again */
        for (uint32_t i = 0; i < cq->stash_size; i++)
            bigger[i] = cq->stash[(cq->stash_head + i) & (cq->stash_size - 1)];
        free(cq->stash);
        cq->stash = bigger;
        cq->stash_tail = cq->stash_size;
        cq->stash_head = 0;
        cq->stash_size = n;
    }
    cq->stash[cq->stash_tail++ & (cq->stash_size - 1)] = *wc;
}

void verbs_purge(verbs_cq *cq, const verbs_conn *c) {
    uint32_t kept = cq->stash_head;
    for (uint32_t i = cq->stash_head; i != cq->stash_tail; i++) {
        fab_wc wc = cq->stash[i & (cq->stash_size - 1)];
        if (wc.conn != &c->head) cq->stash[kept++ & (cq->stash_size - 1)] = wc;
    }
    cq->stash_tail = kept;
}

void verbs_ready(verbs_conn *c) {
    if (!c->want_ready || c->credits == 0 || c->state != VERBS_UP || c->refused) return;
    c->want_ready = false;
    verbs_stash(c->cq, &(fab_wc){ .opcode = FAB_WC_SEND_READY, .conn = &c->head });
}

/* A message of any connection may be what the pool had no buffer for. All are told: one may not want it any more. That
 * is as much work as there are connections, for each look at completions while the pool is empty. */
static void feed(verbs_pool *p, verbs_cq *cq) {
    p->starved = false;
    for (verbs_conn *c = cq->conns; c; c = c->next)
        if (c->pool == p) verbs_ready(c);
}

void verbs_pop(verbs_conn *c, bool all) {
    while (c->sq_tail != c->sq_head) {
        verbs_sq_entry *e = &c->sq[c->sq_tail % VERBS_SQ];
        if (!e->done && !all) break;
        c->sq_tail++;
        fab_wc_status s = e->done ? FAB_SUCCESS : e->status ? e->status : FAB_WR_FLUSH_ERR;
        if (e->signaled) c->signaled_pending--;
        if (e->buffer) {
            e->buffer->next = c->pool->send_free;
            c->pool->send_free = e->buffer;
        }
        if (e->kind == VERBS_SQ_READ)
            verbs_stash(c->cq, &(fab_wc){ .opcode = FAB_WC_READ, .status = s, .wr_id = e->wr_id, .conn = &c->head });
    }
    if (c->pool && c->pool->starved && c->pool->send_free)
        feed(c->pool, c->cq);
    else
        verbs_ready(c);
}

/* Everything before a READ that was answered is done; before a SEND, the SENDs. */
static void done_to(verbs_conn *c, uint32_t end, uint8_t kind) {
    for (uint32_t i = c->sq_tail; i != end; i++) {
        verbs_sq_entry *e = &c->sq[i % VERBS_SQ];
        if (kind == VERBS_SQ_READ || e->kind == VERBS_SQ_SEND) e->done = true;
    }
}

/* ---- polling ---- */

static void hold(verbs_conn *c, verbs_buffer *b) {
    b->prev = NULL;
    b->next = c->held;
    if (b->next) b->next->prev = b;
    c->held = b;
    c->held_count++;
}

static void deliver(verbs_conn *c, verbs_buffer *b, uint32_t bytes) {
    verbs_cq *cq = c->cq;
    verbs_prefix p;
    memcpy(&p, verbs_buffer_prefix(b), sizeof p);
    bool credit_only = p.flags & VERBS_CREDIT_ONLY, bye = p.flags & VERBS_BYE;
    verbs_peer_ready(c); /* the notice that it is may come later than what it sends */
    if (bye || c->state == VERBS_BROKEN || c->state == VERBS_LEAVING) {
        verbs_pool_repost(b->pool, b);
        if (bye) verbs_break(c, FAB_SUCCESS, FAB_SUCCESS);
        return;
    }
    c->credits = c->credits + p.credits > VERBS_CREDITS ? VERBS_CREDITS : c->credits + p.credits;
    if (credit_only) {
        verbs_pool_repost(b->pool, b);
    } else if (c->held_count == cq->credits || bytes == sizeof p) {
        verbs_pool_repost(b->pool, b);
        verbs_break(c, FAB_REM_INV_REQ_ERR, FAB_REM_INV_REQ_ERR); /* more than was granted, or nothing */
        return;
    } else {
        hold(c, b);
        verbs_stash(cq, &(fab_wc){ .opcode = FAB_WC_RECV,
                                   .conn = &c->head,
                                   .data = verbs_buffer_prefix(b) + 1,
                                   .bytes = bytes - (uint32_t)sizeof p });
    }
    verbs_ready(c);
}

void verbs_deliver_early(verbs_conn *c) {
    while (c->early) {
        verbs_buffer *b = c->early;
        c->early = b->next;
        deliver(c, b, b->bytes);
    }
    c->last_early = &c->early;
}

static void received(verbs_cq *cq, const struct ibv_wc *w) {
    verbs_buffer *b = (verbs_buffer *)(uintptr_t)w->wr_id;
    verbs_conn *c = w->status == IBV_WC_SUCCESS ? verbs_conn_of_qp(cq, w->qp_num) : NULL;
    /* That a tenant's message reaches no other tenant is not left to a number that devices give twice. */
    if (c && c->pool != b->pool) c = NULL; /* mutation: access/message-of-another-tenant */
    if (!c || w->byte_len < sizeof(verbs_prefix)) {
        verbs_pool_repost(b->pool, b);
        if (c) verbs_break(c, FAB_REM_INV_REQ_ERR, FAB_REM_INV_REQ_ERR);
    } else if (c->state == VERBS_CONNECTING) {
        b->bytes = w->byte_len;
        b->next = NULL;
        *c->last_early = b;
        c->last_early = &b->next;
    } else {
        deliver(c, b, w->byte_len);
    }
}

static void sent(verbs_cq *cq, const struct ibv_wc *w) {
    uint32_t slot = (uint32_t)(w->wr_id >> 42) & (VERBS_SLOTS_MAX - 1), position = (uint32_t)w->wr_id;
    verbs_conn *c = slot < cq->slot_count ? cq->slots[slot] : NULL;
    if (!c || (c->generation & 1023) != ((uint32_t)(w->wr_id >> 32) & 1023)) return; /* of a freed connection */
    /* completed already, by a break */
    if (position - c->sq_tail >= c->sq_head - c->sq_tail) return;
    verbs_sq_entry *e = &c->sq[position % VERBS_SQ];
    if (w->status == IBV_WC_SUCCESS) {
        done_to(c, position + 1, e->kind);
        verbs_pop(c, false);
        if (c->state == VERBS_LEAVING && c->sq_tail == c->sq_head) verbs_left(c);
        verbs_refuse(c);
        return;
    }
    if (c->state == VERBS_LEAVING) {
        verbs_left(c);
        return;
    }
    if (c->state == VERBS_BROKEN) return; /* flushed behind the first that failed, and no answer to what is before it */
    done_to(c, position, e->kind);
    e->status = verbs_status(w->status);
    verbs_break(c, FAB_SUCCESS, e->status);
}

static int drain_some(verbs_cq *cq) {
    struct ibv_wc w[32];
    int n = ibv_poll_cq(cq->cq, 32, w);
    for (int i = 0; i < n; i++) {
        if (w[i].wr_id >> 63)
            sent(cq, &w[i]);
        else
            received(cq, &w[i]);
    }
    return n;
}

void verbs_drain(verbs_cq *cq) {
    if (!cq->cq || cq->draining) return;
    cq->draining = true;
    while (drain_some(cq) > 0) {}
    cq->draining = false;
    if (cq->endings) verbs_end_broken(cq);
}

static void give_disconnects(verbs_cq *cq) {
    for (verbs_conn *c = cq->conns; c && cq->disconnects_due; c = c->next) {
        if (!c->disconnect_due) continue;
        c->disconnect_due = false;
        cq->disconnects_due--;
        verbs_stash(cq, &(fab_wc){ .opcode = FAB_WC_DISCONNECT, .status = c->reason, .conn = &c->head });
    }
}

/* Notes when those that were posted since the last time were first seen. Time-outs count from then, at most one look
 * later than they were posted, so that posting asks no clock. */
static void see(verbs_conn *c, uint64_t now) {
    uint32_t posted = c->sq_head - (uint32_t)c->chained;
    if (c->seen_to - c->sq_tail > posted - c->sq_tail) c->seen_to = c->sq_tail; /* what was seen last is done */
    for (; c->seen_to != posted; c->seen_to++) c->sq[c->seen_to % VERBS_SQ].seen_ns = now;
}

void verbs_timeouts(verbs_cq *cq) {
    uint64_t now = fkv_now_ns(), limit = (uint64_t)cq->d->head.options.op_timeout_ms * 1000000u;
    for (verbs_conn *c = cq->conns, *next; c; c = next) {
        next = c->next;
        if (c->state == VERBS_BROKEN) continue;
        if (c->state != VERBS_UP) {
            if (now < c->deadline_ns) continue;
            if (c->state == VERBS_LEAVING) {
                if (c->ends)
                    verbs_receives_over(c); /* not waited for any more */
                else
                    verbs_left(c);
                continue;
            }
            bool ours = c->state == VERBS_RESOLVING || c->state == VERBS_ROUTING || c->state == VERBS_CONNECTING;
            if (ours)
                verbs_stash(cq, &(fab_wc){ .opcode = FAB_WC_CONNECT, .status = FAB_RETRY_EXC_ERR, .conn = &c->head });
            verbs_break(c, FAB_SUCCESS, FAB_RETRY_EXC_ERR);
            continue;
        }
        if (c->signaled_pending == 0) continue;
        see(c, now); /* mutation: verbs/posted-unnoted */
        uint32_t i = c->sq_tail;
        while (i != c->sq_head && (!c->sq[i % VERBS_SQ].signaled || c->sq[i % VERBS_SQ].done)) i++;
        if (i != c->sq_head && c->sq[i % VERBS_SQ].seen_ns && now - c->sq[i % VERBS_SQ].seen_ns > limit)
            verbs_break(c, FAB_RESP_TIMEOUT_ERR, FAB_RESP_TIMEOUT_ERR);
    }
}

/* After a sleep: takes back what made the descriptor readable. */
static void awake(verbs_cq *cq) {
    cq->armed = false;
    struct epoll_event ready_fds[4];
    int n = epoll_wait(cq->epoll_fd, ready_fds, 4, 0);
    for (int i = 0; i < n; i++) {
        int fd = ready_fds[i].data.fd;
        uint64_t count;
        if (fd == cq->wake_fd || fd == cq->timer_fd) {
            if (read(fd, &count, sizeof count) != sizeof count) continue;
            if (fd == cq->wake_fd) continue; /* there are events */
            cq->timer_set = false;
            verbs_timeouts(cq);
        } else {
            struct ibv_cq *which;
            void *context;
            while (cq->d->v->ibv_get_cq_event(cq->channel, &which, &context) == 0) cq->events_to_ack++;
            if (cq->events_to_ack >= 64) {
                cq->d->v->ibv_ack_cq_events(cq->cq, cq->events_to_ack);
                cq->events_to_ack = 0;
            }
        }
    }
}

int verbs_poll(fab_cq *queue, fab_wc *wc, int max) {
    verbs_cq *cq = (verbs_cq *)queue;
    if (cq->armed) awake(cq);
    if (cq->reap) verbs_reap(cq);
    if (cq->stash_head == cq->stash_tail) {
        free(cq->held_event); /* what points into it was polled by an earlier call */
        cq->held_event = NULL;
        if (cq->disconnects_due) give_disconnects(cq); /* what came before was polled by an earlier call */
        if (atomic_load_explicit(&cq->has_events, memory_order_relaxed)) verbs_events(cq);
        if ((++cq->polls & 1023) == 0) verbs_timeouts(cq); /* also of a queue that is never idle */
        if (cq->cq) {
            cq->draining = true;
            drain_some(cq);
            cq->draining = false;
            if (cq->endings) verbs_drain(cq);
        }
        if (cq->stash_head == cq->stash_tail) return 0;
    }
    int n = 0;
    while (n < max && cq->stash_head != cq->stash_tail) wc[n++] = cq->stash[cq->stash_head++ & (cq->stash_size - 1)];
    return n;
}

int verbs_arm(fab_cq *queue) {
    verbs_cq *cq = (verbs_cq *)queue;
    verbs_flush(queue);
    verbs_reap(cq);
    cq->armed = true;
    if (cq->cq && ibv_req_notify_cq(cq->cq, 0) == 0) verbs_drain(cq); /* what came before the request wakes nobody */
    if (cq->stash_head != cq->stash_tail || cq->disconnects_due || atomic_load(&cq->has_events)) return 1;
    bool waiting = false;
    for (verbs_conn *c = cq->conns; c && !waiting; c = c->next)
        waiting = c->state != VERBS_BROKEN && (c->state != VERBS_UP || c->signaled_pending);
    if (waiting && !cq->timer_set) {
        struct itimerspec t = { .it_value = { .tv_nsec = VERBS_TICK_MS * 1000000 } };
        timerfd_settime(cq->timer_fd, 0, &t, NULL);
        cq->timer_set = true;
    }
    return 0;
}

int verbs_fd(fab_cq *cq) { return ((verbs_cq *)cq)->epoll_fd; }

void verbs_wake(verbs_cq *cq) {
    uint64_t one = 1;
    while (write(cq->wake_fd, &one, sizeof one) < 0 && errno == EINTR) {}
}
#endif
