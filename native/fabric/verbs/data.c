/* data.c: the data path: READs and SENDs chained behind one doorbell, selective signalling, credits, polling, arming.
 * */
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

static void ready(verbs_conn *c) {
    if (!c->want_ready || c->credits == 0 || c->state != VERBS_UP || c->refused) return;
    c->want_ready = false;
    verbs_stash(c->cq, &(fab_wc){ .opcode = FAB_WC_SEND_READY, .conn = &c->head });
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
    ready(c);
}

/* Everything before a READ that was answered is done; before a SEND, the SENDs. */
static void done_to(verbs_conn *c, uint32_t end, uint8_t kind) {
    for (uint32_t i = c->sq_tail; i != end; i++) {
        verbs_sq_entry *e = &c->sq[i % VERBS_SQ];
        if (kind == VERBS_SQ_READ || e->kind == VERBS_SQ_SEND) e->done = true;
    }
}

/* A READ that was refused here is the oldest now: the connection breaks. */
static void refuse(verbs_conn *c) {
    if (c->refused && c->state == VERBS_UP && c->sq_tail == c->refused_at) verbs_break(c, c->refused, c->refused);
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
    ready(c);
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
        refuse(c);
        return;
    }
    if (c->state == VERBS_LEAVING) {
        verbs_left(c);
        return;
    }
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
        see(c, now);
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
            if (fd == cq->wake_fd) {
                cq->woken = true;
            } else {
                cq->timer_set = false;
                verbs_timeouts(cq);
            }
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
    free(cq->held_event);
    cq->held_event = NULL;
    if (cq->armed) awake(cq);
    if (cq->reap) verbs_reap(cq);
    if (cq->stash_head == cq->stash_tail) {
        if (cq->disconnects_due) give_disconnects(cq); /* what came before was polled by an earlier call */
        if (atomic_load_explicit(&cq->has_events, memory_order_relaxed)) verbs_events(cq);
        if (cq->cq) {
            cq->draining = true;
            drain_some(cq);
            cq->draining = false;
        }
        if (cq->stash_head == cq->stash_tail) {
            if ((++cq->idle_polls & 1023) == 0) verbs_timeouts(cq);
            return 0;
        }
    }
    int n = 0;
    while (n < max && cq->stash_head != cq->stash_tail) wc[n++] = cq->stash[cq->stash_head++ & (cq->stash_size - 1)];
    return n;
}

int verbs_arm(fab_cq *queue) {
    verbs_cq *cq = (verbs_cq *)queue;
    verbs_flush(queue);
    verbs_reap(cq);
    if (cq->woken) {
        cq->woken = false;
        return 1;
    }
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

void verbs_wake(fab_cq *cq) {
    uint64_t one = 1;
    while (write(((verbs_cq *)cq)->wake_fd, &one, sizeof one) < 0 && errno == EINTR) {}
}

/* ---- posting ---- */

/* The chained work request `i`, if it is one, asks for its completion. */
static void ask(verbs_conn *c, int i) {
    if (i < 0) return;
    verbs_sq_entry *e = &c->sq[(uint32_t)c->wr[i].wr_id % VERBS_SQ];
    e->signaled = true;
    c->signaled_pending++;
    c->wr[i].send_flags |= IBV_SEND_SIGNALED;
}

void verbs_doorbell(verbs_conn *c) {
    if (c->state != VERBS_UP && !c->unposted) return;
    if (c->chained == 0) {
        refuse(c);
        return;
    }
    int last = c->chained - 1;
    ask(c, c->last_read);
    ask(c, c->last_send);
    if (c->last_send >= 0) c->unsignaled = 0;
    c->last_read = c->last_send = -1;
    for (int i = 0; i <= last; i++) {
        c->wr[i].next = i < last ? &c->wr[i + 1] : NULL;
        c->wr[i].sg_list = &c->sge[i];
    }
    c->chained = 0;
    struct ibv_send_wr *bad;
    if (ibv_post_send(c->qp, c->wr, &bad)) verbs_break(c, FAB_GENERAL_ERR, FAB_GENERAL_ERR);
}

static void touched(verbs_conn *c) {
    if (c->dirty) return;
    c->dirty = true;
    c->next_dirty = c->cq->dirty;
    c->cq->dirty = c;
}

void verbs_flush(fab_cq *queue) {
    verbs_cq *cq = (verbs_cq *)queue;
    while (cq->dirty) {
        verbs_conn *c = cq->dirty;
        cq->dirty = c->next_dirty;
        c->dirty = false;
        verbs_doorbell(c);
    }
    for (verbs_pool *p = cq->pools; p; p = p->next) verbs_pool_flush(p);
}

/* A place for one more work request, or NULL: the send queue keeps `spare` places free, for giving credits back. */
static struct ibv_send_wr *chain(verbs_conn *c, uint32_t spare, uint8_t kind, uint64_t wr_id, verbs_buffer *buffer) {
    if (c->sq_head - c->sq_tail + spare >= VERBS_SQ) return NULL;
    if (c->chained == VERBS_BATCH) {
        if (c->state != VERBS_UP) return NULL; /* accepted, not yet established: nothing can be posted */
        verbs_doorbell(c);
        if (c->state != VERBS_UP) return NULL;
    }
    uint32_t position = c->sq_head++;
    c->sq[position % VERBS_SQ] = (verbs_sq_entry){ .wr_id = wr_id, .kind = kind, .buffer = buffer };
    if (kind == VERBS_SQ_READ)
        c->last_read = c->chained;
    else if (buffer || c->last_send >= 0 || ++c->unsignaled >= VERBS_SIGNAL_EVERY)
        c->last_send = c->chained;
    struct ibv_send_wr *wr = &c->wr[c->chained];
    *wr = (struct ibv_send_wr){ .wr_id = verbs_wr_id(c, position), .num_sge = 1 };
    touched(c);
    return wr;
}

int verbs_post_reads(fab_conn *conn, const fab_read *r, int n) {
    verbs_conn *c = (verbs_conn *)conn;
    if (c->state != VERBS_UP && c->state != VERBS_ACCEPTING) return -ENOTCONN;
    for (int i = 0; i < n; i++) {
        uint32_t lkey = 0;
        /* The device would say the same of a buffer that is not registered, and does not see the upper half of an rkey.
         * */
        fab_wc_status bad = !fab_local_ok(&r[i]) ? FAB_LOC_PROT_ERR
                            : r[i].rkey >> 32    ? FAB_REM_ACCESS_ERR
                                                 : FAB_SUCCESS;
        if (bad || c->refused) {
            if (c->sq_head - c->sq_tail + 8 >= VERBS_SQ) return i;
            if (!c->refused) {
                verbs_doorbell(c); /* what is before it is asked to complete */
                if (c->state == VERBS_BROKEN) return i > 0 ? i : -ENOTCONN;
                c->refused = bad;
                c->refused_at = c->sq_head;
                touched(c);
            }
            c->sq[c->sq_head++ % VERBS_SQ] = (verbs_sq_entry){ .wr_id = r[i].wr_id, .kind = VERBS_SQ_READ };
            continue;
        }
        if (verbs_local_key((verbs_mr *)r[i].local_mr, c->pool->pd, &lkey)) return i > 0 ? i : -ENOMEM;
        struct ibv_send_wr *wr = chain(c, 8, VERBS_SQ_READ, r[i].wr_id, NULL);
        if (!wr) return c->state != VERBS_BROKEN || i > 0 ? i : -ENOTCONN;
        c->sge[c->chained++] = (struct ibv_sge){ .addr = (uintptr_t)r[i].local, .length = r[i].bytes, .lkey = lkey };
        wr->opcode = IBV_WR_RDMA_READ;
        wr->wr.rdma.remote_addr = r[i].remote_addr;
        wr->wr.rdma.rkey = (uint32_t)r[i].rkey;
    }
    return n;
}

static bool send_message(verbs_conn *c, const struct iovec *iov, int n, uint32_t bytes, uint16_t flags,
                         uint32_t spare) {
    uint32_t total = bytes + (uint32_t)sizeof(verbs_prefix);
    verbs_buffer *b = NULL;
    if (total > c->max_inline) {
        b = c->pool->send_free;
        if (!b) return false;
    }
    struct ibv_send_wr *wr = chain(c, spare, VERBS_SQ_SEND, 0, b);
    if (!wr) return false;
    if (b) c->pool->send_free = b->next;
    uint8_t *to = b ? (uint8_t *)verbs_buffer_prefix(b) : c->inline_data[c->chained];
    verbs_prefix p = { .credits = (uint16_t)c->owed, .flags = flags };
    c->owed = 0;
    memcpy(to, &p, sizeof p);
    size_t at = sizeof p;
    for (int i = 0; i < n; i++) {
        memcpy(to + at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    c->sge[c->chained++] = (struct ibv_sge){ .addr = (uintptr_t)to,
                                             .length = total,
                                             .lkey = b ? c->pool->mr->lkey : 0 };
    wr->opcode = IBV_WR_SEND;
    wr->send_flags = b ? 0 : IBV_SEND_INLINE;
    return true;
}

int verbs_send(fab_conn *conn, const struct iovec *iov, int n, uint32_t bytes) {
    verbs_conn *c = (verbs_conn *)conn;
    if ((c->state != VERBS_UP && c->state != VERBS_ACCEPTING) || c->refused) return -ENOTCONN;
    if (c->credits == 0 || !send_message(c, iov, n, bytes, 0, 8)) {
        if (c->state == VERBS_BROKEN) return -ENOTCONN;
        c->want_ready = true;
        return -EAGAIN;
    }
    c->credits--;
    return 0;
}

void verbs_release(fab_conn *conn, const void *message) {
    verbs_conn *c = (verbs_conn *)conn;
    verbs_buffer *b = (verbs_buffer *)(uintptr_t)((const uint8_t *)message - sizeof(verbs_prefix) -
                                                  sizeof(verbs_buffer));
    if (b->prev)
        b->prev->next = b->next;
    else
        c->held = b->next;
    if (b->next) b->next->prev = b->prev;
    c->held_count--;
    verbs_pool_repost(b->pool, b);
    /* Half of them at once, when no message of ours carries them sooner. */
    if (++c->owed >= c->cq->credits / 2 && c->state == VERBS_UP && !c->refused)
        (void)send_message(c, NULL, 0, 0, VERBS_CREDIT_ONLY, 0);
}

void verbs_say_first(verbs_conn *c) {
    if (send_message(c, NULL, 0, 0, VERBS_CREDIT_ONLY, 0)) verbs_doorbell(c);
}

bool verbs_say_bye(verbs_conn *c) {
    if (!send_message(c, NULL, 0, 0, VERBS_BYE, 0)) return false;
    c->last_send = c->chained - 1;
    verbs_doorbell(c); /* of one that is not up yet: does nothing, established() will */
    return c->state != VERBS_BROKEN;
}

/* ---- attach: a region needs nothing before it is READ ---- */

int verbs_attach(fab_conn *conn, uint64_t rkey, uint64_t addr, uint64_t bytes, uint64_t wr_id) {
    (void)rkey;
    (void)addr;
    (void)bytes;
    verbs_conn *c = (verbs_conn *)conn;
    if ((c->state != VERBS_UP && c->state != VERBS_ACCEPTING) || c->refused) return -ENOTCONN;
    verbs_stash(c->cq, &(fab_wc){ .opcode = FAB_WC_ATTACH, .wr_id = wr_id, .conn = conn });
    return 0;
}
void verbs_detach(fab_conn *c, uint64_t rkey) {
    (void)c;
    (void)rkey;
}
#endif
