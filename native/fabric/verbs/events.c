/* events.c: what the connection manager and the device report, on its way to the queues' threads. The CM thread waits in
 * the kernel for the domain and hands copies of events over; cm.c takes them. */
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the queue ---- */

/* The request that gives way to another one from the address `from`; NULL: there is room for both. */
static verbs_event *take_for(verbs_cq *cq, uint64_t from) {
    fab_strangers waiting = { .from = from };
    for (verbs_event *w = cq->first_event; w; w = w->next)
        if (w->type == RDMA_CM_EVENT_CONNECT_REQUEST) fab_strangers_count(&waiting, w, w->from);
    verbs_event *e = fab_strangers_give_way(&waiting), **at = &cq->first_event;
    if (!e) return NULL;
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    if (cq->last_event == &e->next) cq->last_event = at;
    return e;
}

void verbs_turn_away(verbs_cq *cq, verbs_event *e) {
    (void)cq->d->v->rdma_reject(e->id, NULL, 0);
    cq->d->v->rdma_destroy_id(e->id);
    free(e);
}

/* So many requests wait only if somebody floods. Who gives way is as over tcp: those who dial wait for an answer no
 * longer than the latest ones, and nobody keeps a newcomer out. */
void verbs_post_event(verbs_cq *cq, verbs_event *e) {
    verbs_event *evicted = NULL;
    e->next = NULL;
    pthread_mutex_lock(&cq->lock);
    if (e->type == RDMA_CM_EVENT_CONNECT_REQUEST) evicted = take_for(cq, e->from);
    *cq->last_event = e;
    cq->last_event = &e->next;
    atomic_store(&cq->has_events, true);
    pthread_mutex_unlock(&cq->lock);
    /* All its events are acknowledged, so this does not wait. */
    if (evicted) verbs_turn_away(cq, evicted);
    verbs_wake(cq);
}

/* ---- the CM thread ---- */

static void take_cm_event(verbs_domain *d) {
    struct rdma_cm_event *event;
    pthread_mutex_lock(&d->cm_lock);
    int failed = d->v->rdma_get_cm_event(d->events, &event);
    pthread_mutex_unlock(&d->cm_lock);
    if (failed) return;
    verbs_event *e = calloc(1, sizeof *e);
    struct rdma_cm_id *id = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->listen_id : event->id;
    verbs_id_context *context = id->context;
    verbs_cq *cq = context->cq;
    if (e) {
        e->type = event->event;
        e->status = event->status;
        e->slot = context->slot;
        e->generation = context->generation;
        e->id = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
        e->listener = e->id ? context : NULL;
        if (e->id) e->from = fab_source_of(&e->id->route.addr.dst_storage);
        const struct rdma_conn_param *p = &event->param.conn;
        if (p->private_data && (e->id || e->type == RDMA_CM_EVENT_ESTABLISHED || e->type == RDMA_CM_EVENT_REJECTED)) {
            e->private_bytes = p->private_data_len < sizeof e->private_data ? p->private_data_len
                                                                            : sizeof e->private_data;
            memcpy(e->private_data, p->private_data, e->private_bytes);
        }
        /* before the acknowledgement: until then the id, so its context and queue, cannot be freed */
        verbs_post_event(cq, e);
    }
    bool removed = event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
    d->v->rdma_ack_cm_event(event);
    /* the connection has its own notice; those at rest and the listeners have this one */
    if (removed) verbs_device_gone(d);
}

/* Until the event is acknowledged the queue pair cannot be destroyed, nor what it is known by here. */
static void receives_over(const struct ibv_qp *qp) {
    const verbs_id_context *context = qp->qp_context;
    verbs_event *e = calloc(1, sizeof *e);
    if (!e) return; /* its time passes */
    e->type = (enum rdma_cm_event_type)VERBS_RECEIVES_OVER;
    e->slot = context->slot;
    e->generation = context->generation;
    verbs_post_event(context->cq, e);
}

static void take_async_event(verbs_domain *d, struct ibv_context *device) {
    struct ibv_async_event event;
    bool fatal = false;
    pthread_mutex_lock(&d->lock);
    /* Let go since, it may be closed. */
    if (atomic_load(&d->async_device) == device && d->v->ibv_get_async_event(device, &event) == 0) {
        fatal = event.event_type == IBV_EVENT_DEVICE_FATAL || event.event_type == IBV_EVENT_CQ_ERR;
        if (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED) receives_over(event.element.qp);
        d->v->ibv_ack_async_event(&event);
    }
    pthread_mutex_unlock(&d->lock);
    if (fatal) verbs_device_gone(d);
}

void *verbs_cm_thread(void *domain) {
    verbs_domain *d = domain;
    for (;;) {
        struct ibv_context *device = atomic_load(&d->async_device);
        struct pollfd fds[3] = {
            { .fd = d->nudge_fd, .events = POLLIN },
            { .fd = d->events->fd, .events = POLLIN },
            { .fd = device ? device->async_fd : -1, .events = POLLIN },
        };
        if (poll(fds, 3, -1) < 0) continue;
        if (fds[0].revents) {
            uint64_t count;
            if (read(d->nudge_fd, &count, sizeof count) < 0 && errno != EAGAIN && errno != EINTR) return NULL;
            if (atomic_load(&d->stopping)) return NULL;
            continue;
        }
        if (fds[1].revents) take_cm_event(d);
        if (fds[2].revents) take_async_event(d, device);
    }
}
#endif
