/* responder.c: the thread that answers READs at the owner: one for each CQ that listens, for all connections of its
 * listeners.
 *
 * It never runs JavaScript, never waits for the CQ's thread or for one peer, and takes all signals blocked. Each round:
 * what epoll found, commands of the CQ's thread, a turn for each connection that has more to write, a step of one
 * handshake, timers.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "tcp.h"

enum { REST_MS = 100 }; /* how long a listener waits when the process has no descriptors left */

struct tcp_responder {
    tcp_io io;
    pthread_t thread;
    int eventfd;
    uint32_t stop;
    tcp_conn *commands;   /* stack; the CQ's thread pushes */
    pthread_mutex_t lock; /* of the list */
    fkv_list listeners;
    uint64_t rested_until; /* 0: no listener rests */
    poller poller;
    bool found;      /* there was work since the latest wait began */
    uint64_t served; /* when the latest wait began */
};

/* What stands behind an epoll event is told by the low bits of its pointer. */
enum { IS_CONN = 0, IS_LISTENER = 1, IS_WAKE = 2, KINDS = 3 };
static void *tagged(void *p, uintptr_t kind) { return (void *)((uintptr_t)p | kind); }

tcp_io *tcp_responder_io(tcp_responder *r) { return &r->io; }
const poller *tcp_poller_of(const fab_cq *cq) {
    const tcp_cq *of = (const tcp_cq *)cq;
    return of->responder ? &of->responder->poller : NULL;
}

/* ---- the thread ---- */

static void wake(tcp_responder *r) {
    uint64_t one = 1;
    if (write(r->eventfd, &one, sizeof one) < 0) return; /* full: it is awake */
}

static void drain(tcp_responder *r) {
    uint64_t times;
    if (read(r->eventfd, &times, sizeof times) < 0) return;
}

static void obey(tcp_responder *r) {
    tcp_conn *c = __atomic_exchange_n(&r->commands, NULL, __ATOMIC_ACQUIRE);
    while (c) {
        tcp_conn *next = c->command_next;
        uint32_t what = __atomic_exchange_n(&c->commands, 0, __ATOMIC_ACQ_REL);
        if (what & TCP_CMD_FAIL) tcp_conn_down(c, c->fail_status, true);
        if (what & TCP_CMD_CLOSE) tcp_conn_close(c);
        if (what & TCP_CMD_MOVE) tcp_move_out(c);
        c = next;
    }
}

void tcp_listener_rest(tcp_listener *l, int error) {
    tcp_responder *r = l->responder;
    fab_log(&r->io.domain->options, FAB_LOG_WARNING, "tcp: cannot accept: %s", strerror(error));
    pthread_mutex_lock(&l->lock);
    struct epoll_event e = { .events = 0, .data.ptr = tagged(l, IS_LISTENER) };
    if (l->fd >= 0) epoll_ctl(r->io.epoll, EPOLL_CTL_MOD, l->fd, &e);
    pthread_mutex_unlock(&l->lock);
    r->rested_until = fkv_now_ns() + REST_MS * 1000000u;
}

static void end_rest(tcp_responder *r) {
    r->rested_until = 0;
    pthread_mutex_lock(&r->lock);
    tcp_listener *l;
    for (l = LIST_FIRST(&r->listeners, tcp_listener, link); l; l = LIST_AFTER(&r->listeners, l, tcp_listener, link)) {
        pthread_mutex_lock(&l->lock);
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = tagged(l, IS_LISTENER) };
        if (l->fd >= 0) epoll_ctl(r->io.epoll, EPOLL_CTL_MOD, l->fd, &e);
        pthread_mutex_unlock(&l->lock);
    }
    pthread_mutex_unlock(&r->lock);
}

static uint64_t next_timer(const tcp_responder *r) {
    uint64_t at = tcp_io_next_timer(&r->io);
    return r->rested_until && (at == 0 || r->rested_until < at) ? r->rested_until : at;
}

static void look_at_clock(tcp_responder *r) {
    if (next_timer(r) == 0) return;
    uint64_t now = fkv_now_ns();
    tcp_io_timers(&r->io, now);
    if (r->rested_until && now >= r->rested_until) end_rest(r);
}

/* Milliseconds that epoll may wait. */
static int patience(tcp_responder *r) {
    if (!list_empty(&r->io.runnable) || !list_empty(&r->io.shaking)) return 0;
    uint64_t now = fkv_now_ns(), at = next_timer(r);
    uint64_t served = tcp_reads_served(&r->io.cq->head);
    if (r->found) {
        r->poller.much = served - r->served >= POLL_MUCH;
        r->poller.chain = served == r->served; /* messages, which the CQ's thread answers */
        r->served = served;
        r->found = false;
    }
    poll_step step = poller_nothing(&r->poller, now);
    if (step != POLL_SLEEP) {
        poller_step(step);
        return 0;
    }
    if (at && at <= now) return 0;
    poller_sleeps(&r->poller);
    return at ? (int)((at - now) / 1000000u) + 1 : -1;
}

static void handle(tcp_responder *r, const struct epoll_event *e) {
    uintptr_t p = (uintptr_t)e->data.ptr;
    void *object = (void *)(p & ~(uintptr_t)KINDS);
    if ((p & KINDS) == IS_CONN)
        tcp_io_event(&r->io, object, e->events);
    else if ((p & KINDS) == IS_LISTENER)
        tcp_listener_accept(object);
    else
        drain(r);
    tcp_io_hand_over(&r->io);
}

static void *run(void *arg) {
    tcp_responder *r = arg;
    struct epoll_event e[TCP_EVENTS];
    while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
        int n = epoll_wait(r->io.epoll, e, TCP_EVENTS, patience(r));
        for (int i = 0; i < n; i++) handle(r, &e[i]);
        if (n > 0) {
            poller_found(&r->poller, fkv_now_ns());
            r->found = true;
        }
        obey(r);
        tcp_io_run(&r->io);
        tcp_io_shake(&r->io);
        look_at_clock(r);
        tcp_io_bury(&r->io);
        tcp_io_hand_over(&r->io);
    }
    return NULL;
}

/* ---- the CQ's thread ---- */

static int begin_thread(tcp_responder *r) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited: signals are the program's, not ours */
    int e = pthread_create(&r->thread, NULL, run, r);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (e == 0) pthread_setname_np(r->thread, "farkv-tcp");
    return -e;
}

int tcp_responder_start(tcp_cq *cq) {
    if (cq->responder) return 0;
    tcp_responder *r = calloc(1, sizeof *r);
    if (!r) return -ENOMEM;
    list_init(&r->listeners);
    poller_init(&r->poller, cq->io.domain->options.polling, fkv_now_ns());
    int e = tcp_io_init(&r->io, cq->io.domain, cq, true);
    if (e) {
        free(r);
        return e;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct epoll_event w = { .events = EPOLLIN, .data.ptr = tagged(NULL, IS_WAKE) };
    if (r->eventfd < 0 || epoll_ctl(r->io.epoll, EPOLL_CTL_ADD, r->eventfd, &w)) e = -errno;
    if (e == 0) e = begin_thread(r);
    if (e) {
        if (r->eventfd >= 0) close(r->eventfd);
        pthread_mutex_destroy(&r->lock);
        tcp_io_end(&r->io);
        free(r);
        return e;
    }
    cq->responder = r;
    return 0;
}

int tcp_responder_add(tcp_responder *r, tcp_listener *l) {
    pthread_mutex_lock(&r->lock);
    list_push(&r->listeners, &l->link);
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = tagged(l, IS_LISTENER) };
    int error = epoll_ctl(r->io.epoll, EPOLL_CTL_ADD, l->fd, &e) ? -errno : 0;
    if (error) list_remove(&l->link);
    pthread_mutex_unlock(&r->lock);
    return error;
}

void tcp_responder_command(tcp_responder *r, tcp_conn *c) {
    c->command_next = __atomic_load_n(&r->commands, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&r->commands, &c->command_next, c, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
    wake(r);
}

/* Joins the thread; its connections stay for tcp_responder_free, because events of theirs may still be queued. */
void tcp_responder_stop(tcp_responder *r) {
    __atomic_store_n(&r->stop, 1, __ATOMIC_RELEASE);
    wake(r);
    pthread_join(r->thread, NULL);
    tcp_io_hand_over(&r->io);
}

void tcp_responder_free(tcp_responder *r) {
    tcp_io_end(&r->io);
    close(r->eventfd);
    tcp_listener *l;
    while ((l = LIST_FIRST(&r->listeners, tcp_listener, link))) {
        list_remove(&l->link);
        if (l->fd >= 0) close(l->fd);
        pthread_mutex_destroy(&l->lock);
        free(l);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}
