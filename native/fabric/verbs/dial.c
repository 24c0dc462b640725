/* dial.c: rdma_connect, away from the completion queue's thread.
 *
 * The call may wait: soft-iWARP makes its TCP connection inside it, which takes the kernel two minutes to give up when
 * nobody answers (a link that is down, a host that is off), and a completion queue's thread, often that of an event
 * loop, has others to serve. So each call has a short-lived thread. Its success is told by the connection manager, as
 * ever; its failure is handed over like an event of the connection manager.
 *
 * Invariant: verbs_dial_end() returns soon, and the call has returned by then: the queue pair and the id can be
 * destroyed. A call that still waits is interrupted by a signal, sent again until it has returned, since one that comes
 * before the wait interrupts nothing.
 */
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DIAL_STACK = 512 << 10, DIAL_AGAIN_NS = 1000000 };

struct verbs_dial {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool returned, ended; /* ended: nobody wants to know how the call ends any more */
    verbs_cq *cq;
    struct rdma_cm_id *id;
    uint32_t slot, generation;
    struct rdma_conn_param param;
    uint8_t private_data[FAB_PRIVATE_MAX + sizeof(verbs_private)];
};

/* ---- the signal ---- */

static int interrupt_signal; /* 0: none is free, calls are waited for */

static void interrupt(int number) { (void)number; }

/* A real-time signal that nobody uses: this library is a guest in its process. Without SA_RESTART, or the call would go
 * on. */
static void choose_signal(void) {
    for (int s = SIGRTMAX - 1; s >= SIGRTMIN && !interrupt_signal; s--) {
        struct sigaction now, ours = { .sa_handler = interrupt };
        if (sigaction(s, NULL, &now) || now.sa_flags & SA_SIGINFO || now.sa_handler != SIG_DFL) continue;
        sigemptyset(&ours.sa_mask);
        if (sigaction(s, &ours, NULL) == 0) interrupt_signal = s;
    }
}

/* ---- the thread ---- */

static void *dial(void *argument) {
    verbs_dial *a = argument;
    sigset_t ours;
    sigemptyset(&ours);
    if (interrupt_signal) sigaddset(&ours, interrupt_signal);
    pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
    bool failed = a->cq->d->v->rdma_connect(a->id, &a->param) != 0;
    verbs_event *e = failed ? calloc(1, sizeof *e) : NULL; /* without it the time of the set-up runs out */
    pthread_mutex_lock(&a->lock);
    if (e && !a->ended) {
        e->type = RDMA_CM_EVENT_CONNECT_ERROR;
        e->slot = a->slot;
        e->generation = a->generation;
        verbs_post_event(a->cq, e);
        e = NULL;
    }
    a->returned = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    free(e);
    return NULL;
}

static int start(verbs_dial *a) {
    sigset_t all, before;
    pthread_attr_t attr;
    int e = pthread_attr_init(&attr);
    if (e) return -e;
    pthread_attr_setstacksize(&attr, DIAL_STACK);
    sigfillset(&all); /* signals of the process are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    e = pthread_create(&a->thread, &attr, dial, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return -e;
}

int verbs_dial_begin(verbs_conn *c, const struct rdma_conn_param *p) {
    static pthread_once_t chosen = PTHREAD_ONCE_INIT;
    pthread_once(&chosen, choose_signal);
    verbs_dial *a = calloc(1, sizeof *a);
    if (!a) return -ENOMEM;
    a->cq = c->cq;
    a->id = c->id;
    a->slot = c->slot;
    a->generation = c->generation;
    a->param = *p;
    memcpy(a->private_data, p->private_data, p->private_data_len);
    a->param.private_data = a->private_data;
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&a->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int e = start(a);
    if (e) {
        pthread_cond_destroy(&a->changed);
        pthread_mutex_destroy(&a->lock);
        free(a);
        return e;
    }
    c->dial = a;
    return 0;
}

void verbs_dial_end(verbs_conn *c) {
    verbs_dial *a = c->dial;
    if (!a) return;
    c->dial = NULL;
    pthread_mutex_lock(&a->lock);
    a->ended = true;
    while (!a->returned) {
        if (interrupt_signal) pthread_kill(a->thread, interrupt_signal);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += DIAL_AGAIN_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&a->changed, &a->lock, &until);
    }
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
#endif
