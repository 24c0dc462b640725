/* conn.c: completion queues; connections and their queue pairs are made. */
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "../../base/clock.h"

/* ---- completion queues ---- */

static int watch(int epoll_fd, int fd) {
    struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };
    return fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

int verbs_cq_create(fab_domain *domain, fab_cq **out) {
    verbs_domain *d = (verbs_domain *)domain;
    verbs_cq *cq = calloc(1, sizeof *cq);
    if (!cq) return -ENOMEM;
    cq->d = d;
    cq->last_event = &cq->first_event;
    pthread_mutex_init(&cq->lock, NULL);
    cq->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    cq->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    cq->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int e = cq->epoll_fd < 0 ? -errno : 0;
    if (e == 0) e = watch(cq->epoll_fd, cq->wake_fd);
    if (e == 0) e = watch(cq->epoll_fd, cq->timer_fd);
    if (e) {
        if (cq->epoll_fd >= 0) close(cq->epoll_fd);
        if (cq->wake_fd >= 0) close(cq->wake_fd);
        if (cq->timer_fd >= 0) close(cq->timer_fd);
        free(cq);
        return e;
    }
    pthread_mutex_lock(&d->lock);
    cq->next = d->cqs;
    d->cqs = cq;
    pthread_mutex_unlock(&d->lock);
    *out = &cq->head;
    return 0;
}

int verbs_cq_device(verbs_cq *cq, bool listens) {
    if (cq->cq) return 0;
    const verbs_lib *v = cq->d->v;
    /* Room for every work request of every connection, so that a burst of flushed ones cannot overrun the queue. */
    int wanted = listens ? VERBS_CQ_LISTENING : VERBS_CQ_CONNECTING;
    if (wanted > cq->d->attr.max_cqe) wanted = cq->d->attr.max_cqe;
    size_t each = cq->d->head.options.max_message,
           budget = (listens ? VERBS_POOL_BYTES : VERBS_POOL_BYTES / 3) / (each + 128);
    uint32_t most = listens ? 1024 : 256;
    cq->recv_buffers = budget * 2 / 3 > most ? most : (uint32_t)(budget * 2 / 3);
    if (cq->recv_buffers < VERBS_CREDITS_MIN) cq->recv_buffers = VERBS_CREDITS_MIN;
    cq->send_buffers = cq->recv_buffers / 2;
    cq->credits = cq->recv_buffers / (listens ? 16 : 4);
    if (cq->credits > VERBS_CREDITS) cq->credits = VERBS_CREDITS;
    if (cq->credits < VERBS_CREDITS_MIN) cq->credits = VERBS_CREDITS_MIN;
    cq->channel = v->ibv_create_comp_channel(cq->d->device);
    if (!cq->channel) return -errno;
    cq->cq = v->ibv_create_cq(cq->d->device, wanted, cq, cq->channel, 0);
    int e = cq->cq ? 0 : -errno;
    if (e == 0 && fcntl(cq->channel->fd, F_SETFL, O_NONBLOCK)) e = -errno;
    if (e == 0) e = watch(cq->epoll_fd, cq->channel->fd);
    if (e) {
        if (cq->cq) v->ibv_destroy_cq(cq->cq);
        v->ibv_destroy_comp_channel(cq->channel);
        cq->cq = NULL;
        cq->channel = NULL;
        return e;
    }
    cq->depth = (uint32_t)cq->cq->cqe;
    pthread_mutex_lock(&cq->d->lock);
    cq->d->queues++;
    pthread_mutex_unlock(&cq->d->lock);
    return 0;
}

/* The device's part goes; no connection is left. */
static void end_device_part(verbs_cq *cq) {
    const verbs_lib *v = cq->d->v;
    while (cq->pools) {
        verbs_pool *next = cq->pools->next;
        verbs_pool_free(cq, cq->pools);
        cq->pools = next;
    }
    cq->reserved = 0;
    if (!cq->cq) return;
    if (cq->events_to_ack) v->ibv_ack_cq_events(cq->cq, cq->events_to_ack);
    cq->events_to_ack = 0;
    v->ibv_destroy_cq(cq->cq);
    v->ibv_destroy_comp_channel(cq->channel); /* closed, it is not watched any more */
    cq->cq = NULL;
    cq->channel = NULL;
    cq->lost = false;
    verbs_queue_gone(cq->d);
}

void verbs_cq_let_go(verbs_cq *cq) {
    if (cq->lost && !cq->conns && !cq->listens) end_device_part(cq);
}

void verbs_cq_destroy(fab_cq *queue) {
    verbs_cq *cq = (verbs_cq *)queue;
    verbs_domain *d = cq->d;
    cq->closing = true; /* its receive queues go: no buffer has to come back */
    for (verbs_conn *c = cq->conns, *next; c; c = next) {
        next = c->next;
        if (c->state != VERBS_LEAVING)
            verbs_disconnect(&c->head);
        else if (c->unposted)
            verbs_left(c); /* nobody takes connection events any more */
        else
            verbs_receives_over(c);
    }
    while (cq->conns) { /* what was sent is on its way: those who leave have their time */
        verbs_drain(cq);
        verbs_timeouts(cq);
        verbs_reap(cq);
        if (cq->conns) sched_yield();
    }
    pthread_mutex_lock(&d->lock);
    for (verbs_cq **at = &d->cqs; *at; at = &(*at)->next)
        if (*at == cq) {
            *at = cq->next;
            break;
        }
    pthread_mutex_unlock(&d->lock);
    free(cq->held_event);
    while (cq->first_event) { /* no listener and no connection is left to make new ones */
        verbs_event *e = cq->first_event;
        cq->first_event = e->next;
        if (e->id) d->v->rdma_destroy_id(e->id);
        free(e);
    }
    end_device_part(cq);
    close(cq->epoll_fd);
    close(cq->wake_fd);
    close(cq->timer_fd);
    pthread_mutex_destroy(&cq->lock);
    free(cq->slots);
    free(cq->generations);
    free(cq->stash);
    free(cq);
}

/* ---- connections ---- */

static int slot_of(verbs_cq *cq, uint32_t *slot) {
    for (uint32_t i = 0; i < cq->slot_count; i++)
        if (!cq->slots[i]) {
            *slot = i;
            return 0;
        }
    uint32_t n = cq->slot_count ? cq->slot_count * 2 : 16;
    if (n > VERBS_SLOTS_MAX) return -ENOSPC;
    verbs_conn **slots = realloc(cq->slots, n * sizeof *slots);
    if (slots) cq->slots = slots;
    uint32_t *generations = realloc(cq->generations, n * sizeof *generations);
    if (generations) cq->generations = generations;
    if (!slots || !generations) return -ENOMEM;
    memset(slots + cq->slot_count, 0, (n - cq->slot_count) * sizeof *slots);
    memset(generations + cq->slot_count, 0, (n - cq->slot_count) * sizeof *generations);
    *slot = cq->slot_count;
    cq->slot_count = n;
    return 0;
}

int verbs_conn_new(verbs_cq *cq, void *user, verbs_conn **out) {
    uint32_t slot;
    int e = slot_of(cq, &slot);
    if (e) return e;
    verbs_conn *c = calloc(1, sizeof *c);
    verbs_id_context *context = malloc(sizeof *context);
    if (!c || !context) {
        free(c);
        free(context);
        return -ENOMEM;
    }
    fab_conn_init(&c->head, &fab_verbs_ops, &cq->head, user);
    c->cq = cq;
    c->last_early = &c->early;
    c->last_read = c->last_send = -1;
    c->slot = slot;
    c->generation = ++cq->generations[slot]; /* from 1: a listener's context has 0 */
    *context = (verbs_id_context){ .cq = cq, .slot = slot, .generation = c->generation };
    c->context = context;
    cq->slots[slot] = c;
    cq->conn_count++;
    c->next = cq->conns;
    if (c->next) c->next->prev = c;
    cq->conns = c;
    *out = c;
    return 0;
}

verbs_conn *verbs_conn_of_slot(verbs_cq *cq, uint32_t slot, uint32_t generation) {
    if (slot >= cq->slot_count || !cq->slots[slot]) return NULL;
    return cq->slots[slot]->generation == generation ? cq->slots[slot] : NULL;
}

verbs_conn *verbs_conn_of_qp(verbs_cq *cq, uint32_t number) {
    verbs_conn *c = cq->by_qp[number % VERBS_QP_CHAINS];
    while (c && c->qp_number != number) c = c->next_by_qp;
    return c;
}

int verbs_conn_qp(verbs_conn *c, uint32_t tenant) {
    verbs_cq *cq = c->cq;
    const verbs_lib *v = cq->d->v;
    /* The next queue pair may get the number of one that was destroyed, over soft-iWARP at once, while completions of
     * that one are still in the queue: with them in it, its messages would be taken for the new connection's. None
     * comes later, for a destroyed queue pair makes none. */
    verbs_drain(cq); /* mutation: access/queue-pair-number */
    int e = verbs_pool_of(cq, tenant, &c->pool);
    if (e) return e;
    if (cq->reserved + VERBS_SQ > cq->depth) return -ENOSPC;
    uint8_t timeout = VERBS_ACK_TIMEOUT; /* a hint: iWARP has no such option */
    (void)v->rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout);
    for (uint32_t room = VERBS_INLINE_WANTED;; room = room > 32 ? room / 2 : 0) {
        struct ibv_qp_init_attr attr = {
            .qp_context = c->context,
            .send_cq = cq->cq,
            .recv_cq = cq->cq,
            .srq = c->pool->srq,
            .qp_type = IBV_QPT_RC,
            .cap = { .max_send_wr = VERBS_SQ, .max_send_sge = 1, .max_inline_data = room },
        };
        e = v->rdma_create_qp(c->id, c->pool->pd->pd, &attr) ? -errno : 0;
        c->max_inline = attr.cap.max_inline_data < VERBS_INLINE_WANTED ? attr.cap.max_inline_data : VERBS_INLINE_WANTED;
        if (e == 0) break;
        if (room == 0) return e; /* nor without */
    }
    cq->reserved += c->reserved = VERBS_SQ;
    c->qp = c->id->qp;
    c->qp_number = c->qp->qp_num;
    c->next_by_qp = cq->by_qp[c->qp_number % VERBS_QP_CHAINS];
    cq->by_qp[c->qp_number % VERBS_QP_CHAINS] = c;
    return 0;
}

void verbs_conn_rnr_timer(verbs_conn *c) {
    if (c->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP) return; /* it has no such answer */
    struct ibv_qp_attr attr = { .min_rnr_timer = VERBS_RNR_TIMER };
    if (c->cq->d->v->ibv_modify_qp(c->qp, &attr, IBV_QP_MIN_RNR_TIMER))
        fab_log(&c->cq->d->head.options, FAB_LOG_WARNING,
                "verbs: the RNR timer cannot be set, so a peer that finds no buffer here waits for 655 ms");
}
#endif
