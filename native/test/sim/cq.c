/* cq.c: completions and polling. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "private.h"

int sim_cq_create(fab_domain *d, fab_cq **out) {
    sim_cq *cq = calloc(1, sizeof *cq);
    if (!cq) return -ENOMEM;
    cq->world = ((sim_domain *)d)->world;
    list_init(&cq->done);
    list_init(&cq->flushable);
    cq->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (cq->eventfd < 0) {
        int e = -errno;
        free(cq);
        return e;
    }
    *out = &cq->head;
    return 0;
}

void sim_cq_destroy(fab_cq *head) {
    sim_cq *cq = (sim_cq *)head;
    close(cq->eventfd);
    free(cq);
}

static void signal_fd(sim_cq *cq) {
    uint64_t one = 1;
    if (write(cq->eventfd, &one, sizeof one) < 0) return; /* full: readable already */
}

void sim_complete(sim_conn *c, fab_wc wc) {
    if (c->gone) return;
    sim_cq *cq = (sim_cq *)c->head.cq;
    sim_done *d = malloc(sizeof *d);
    if (!d) abort();
    wc.conn = &c->head;
    *d = (sim_done){ .wc = wc, .conn = c };
    list_push(&cq->done, &d->link);
    if (cq->armed) signal_fd(cq);
    cq->armed = false;
}

static void take(sim_done *d) {
    list_remove(&d->link);
    free(d);
}

void sim_forget_completions(sim_conn *c) {
    sim_cq *cq = (sim_cq *)c->head.cq;
    sim_done *d, *next;
    for (d = LIST_FIRST(&cq->done, sim_done, link); d; d = next) {
        next = LIST_AFTER(&cq->done, d, sim_done, link);
        if (d->conn == c) take(d);
    }
}

/* What a completion changes at its connection when it is seen. False: it is not for this poll. */
static bool seen(sim_cq *cq, const fab_wc *wc, sim_conn *c) {
    if (wc->opcode == FAB_WC_DISCONNECT) return c->disconnect_poll != cq->polls;
    c->disconnect_poll = cq->polls; /* DISCONNECT comes in a later poll than all others */
    return true;
}

static int deliver(sim_cq *cq, fab_wc *wc, int max) {
    int n = 0;
    sim_done *d, *next;
    for (d = LIST_FIRST(&cq->done, sim_done, link); d && n < max && !cq->paused; d = next) {
        next = LIST_AFTER(&cq->done, d, sim_done, link);
        if (!seen(cq, &d->wc, d->conn)) continue;
        wc[n++] = d->wc;
        take(d);
    }
    return n;
}

static void drain(sim_cq *cq) {
    uint64_t times;
    (void)!read(cq->eventfd, &times, sizeof times);
}

int sim_poll(fab_cq *head, fab_wc *wc, int max) {
    sim_cq *cq = (sim_cq *)head;
    sim_lock(cq->world);
    drain(cq);
    cq->armed = false;
    cq->polls++;
    int n = deliver(cq, wc, max);
    if (n == 0 && cq->world->auto_step && sim_advance(cq->world)) n = deliver(cq, wc, max);
    sim_unlock(cq->world);
    return n;
}

void sim_flush(fab_cq *head) {
    sim_cq *cq = (sim_cq *)head;
    sim_conn *c;
    sim_lock(cq->world);
    while ((c = LIST_FIRST(&cq->flushable, sim_conn, flush_link))) {
        list_remove(&c->flush_link);
        c->is_flushable = false;
        sim_flush_reads(c);
        sim_flush_messages(c);
    }
    sim_unlock(cq->world);
}

int sim_arm(fab_cq *head) {
    sim_cq *cq = (sim_cq *)head;
    sim_lock(cq->world);
    bool ready = (!list_empty(&cq->done) && !cq->paused) || (cq->world->auto_step && cq->world->events > 0);
    cq->armed = !ready;
    sim_unlock(cq->world);
    return ready;
}

int sim_fd(fab_cq *cq) { return ((sim_cq *)cq)->eventfd; }

void sim_pause(fab_cq *head, bool paused) {
    sim_cq *cq = (sim_cq *)head;
    sim_lock(cq->world);
    cq->paused = paused;
    sim_say(cq->world, paused ? "pause" : "resume");
    if (!paused && cq->armed) signal_fd(cq);
    sim_unlock(cq->world);
}
