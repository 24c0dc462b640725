/* pool.c: the message buffers of one tenant at one completion queue: registered once, shared by all connections.
 * Receives go to a shared receive queue, so that a thousand clients do not need a thousand rings. Invariant: a buffer
 * is in one place: posted to the queue, held by a connection, free for sending, or in a SEND in flight. */
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint32_t at_most(uint32_t n, int limit) { return limit > 0 && n > (uint32_t)limit ? (uint32_t)limit : n; }

static verbs_buffer *buffer_at(const verbs_pool *p, uint32_t i) {
    return (verbs_buffer *)(void *)(p->memory + i * p->stride);
}

static int pool_make(verbs_cq *cq, verbs_pd *pd, verbs_pool **out) {
    verbs_domain *d = cq->d;
    uint32_t receives = at_most(cq->recv_buffers, d->attr.max_srq_wr);
    if (cq->reserved + receives > cq->depth) return -ENOSPC;
    verbs_pool *p = calloc(1, sizeof *p);
    if (!p) return -ENOMEM;
    p->pd = pd;
    p->buffers = receives + cq->send_buffers;
    p->stride = (sizeof(verbs_buffer) + sizeof(verbs_prefix) + d->head.options.max_message + 63) / 64 * 64;
    p->memory_bytes = p->stride * p->buffers;
    p->memory = mmap(NULL, p->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->memory == MAP_FAILED) {
        free(p);
        return -ENOMEM;
    }
    verbs_not_for_children(p->memory, p->memory_bytes, true);
    int e = 0;
    p->mr = d->v->ibv_reg_mr(pd->pd, p->memory, p->memory_bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!p->mr) {
        e = -errno;
        fab_log(&d->head.options, FAB_LOG_ERROR,
                "verbs: %zu bytes of message buffers cannot be pinned: raise the memlock limit (ulimit -l unlimited)",
                p->memory_bytes);
    }
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = receives, .max_sge = 1 } };
    if (e == 0 && !(p->srq = d->v->ibv_create_srq(pd->pd, &attr))) e = -errno;
    if (e) {
        if (p->mr) d->v->ibv_dereg_mr(p->mr);
        munmap(p->memory, p->memory_bytes);
        free(p);
        return e;
    }
    cq->reserved += receives;
    for (uint32_t i = 0; i < p->buffers; i++) {
        verbs_buffer *b = buffer_at(p, i);
        b->pool = p;
        if (i < receives) {
            verbs_pool_repost(p, b);
        } else {
            b->next = p->send_free;
            p->send_free = b;
        }
    }
    verbs_pool_flush(p);
    *out = p;
    return 0;
}

int verbs_pool_of(verbs_cq *cq, uint32_t tenant, verbs_pool **out) {
    for (verbs_pool *p = cq->pools; p; p = p->next)
        if (p->pd->tenant == tenant) {
            *out = p;
            return 0;
        }
    verbs_pd *pd;
    int e = verbs_pd_of(cq->d, tenant, &pd);
    if (e == 0) e = pool_make(cq, pd, out);
    if (e) return e;
    (*out)->next = cq->pools;
    cq->pools = *out;
    return 0;
}

void verbs_pool_repost(verbs_pool *p, verbs_buffer *b) {
    int i = p->reposts++;
    p->repost_sge[i] = (struct ibv_sge){ .addr = (uintptr_t)verbs_buffer_prefix(b),
                                         .length = (uint32_t)(p->stride - sizeof *b),
                                         .lkey = p->mr->lkey };
    p->repost[i] = (struct ibv_recv_wr){ .wr_id = (uintptr_t)b, .sg_list = &p->repost_sge[i], .num_sge = 1 };
    if (i > 0) p->repost[i - 1].next = &p->repost[i];
    if (p->reposts == VERBS_BATCH) verbs_pool_flush(p);
}

void verbs_pool_flush(verbs_pool *p) {
    if (p->reposts == 0) return;
    struct ibv_recv_wr *bad = NULL;
    /* The queue was made as large as there are receive buffers: it refuses none unless the device is lost, and then
     * every connection ends and the buffers are freed with the pool. */
    (void)ibv_post_srq_recv(p->srq, p->repost, &bad);
    p->reposts = 0;
}

void verbs_pool_free(verbs_cq *cq, verbs_pool *p) {
    cq->d->v->ibv_destroy_srq(p->srq);
    cq->d->v->ibv_dereg_mr(p->mr);
    munmap(p->memory, p->memory_bytes);
    free(p);
}
#endif
