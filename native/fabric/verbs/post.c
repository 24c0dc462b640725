/* post.c: the data path, what goes: READs and SENDs chained behind one doorbell, selective signalling, credits. */
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS
#include <errno.h>
#include <string.h>

/* When all READs before the refused one have completed. SENDs before it may have no completion of their own. */
void verbs_refuse(verbs_conn *c) {
    if (!c->refused || c->state != VERBS_UP) return;
    uint32_t i = c->sq_tail;
    while (i != c->refused_at && c->sq[i % VERBS_SQ].kind == VERBS_SQ_SEND) i++;
    if (i == c->refused_at) verbs_break(c, c->refused, c->refused);
}

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
        verbs_refuse(c);
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
    /* soft-iWARP says 0 where it took the first of them and refused a later one, of which nothing would be heard. */
    struct ibv_send_wr *bad = NULL;
    if (ibv_post_send(c->qp, c->wr, &bad) || bad) verbs_break(c, FAB_GENERAL_ERR, FAB_GENERAL_ERR);
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
                            : r[i].rkey >> 32    ? FAB_REM_ACCESS_ERR /* mutation: verbs/rkey-upper-half */
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
        if (!b) {
            c->pool->starved = true;
            return false;
        }
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
