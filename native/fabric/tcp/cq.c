/* cq.c: the completion queue: fab_poll, fab_flush, fab_arm and the descriptor to wait on.
 *
 * fab_fd is an epoll descriptor that holds the sockets of the connections that the CQ's thread drives, an eventfd
 * (the responder) and a timerfd (deadlines while the user sleeps). Without such connections fab_poll makes no
 * system call at all.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "tcp.h"

enum { CLOCK_EVERY = 32 }; /* polls: deadlines are looked at when nothing came, and at least so often */

/* ---- events ---- */

void tcp_cq_append(tcp_event *e) {
    tcp_conn *c = e->conn;
    e->next = NULL;
    *c->events_end = e;
    c->events_end = &e->next;
    if (c->is_active) return;
    c->is_active = true;
    list_push(&((tcp_cq *)c->head.cq)->active, &c->active_link);
}

static void take_inbox(tcp_cq *cq) {
    if (!__atomic_load_n(&cq->inbox, __ATOMIC_RELAXED)) return;
    tcp_event *e = __atomic_exchange_n(&cq->inbox, NULL, __ATOMIC_ACQUIRE), *oldest = NULL;
    while (e) {
        tcp_event *next = e->next;
        e->next = oldest;
        oldest = e;
        e = next;
    }
    while (oldest) {
        tcp_event *next = oldest->next;
        if (oldest->kind == TCP_EV_MOVED)
            tcp_move_in(oldest->conn);
        else
            tcp_cq_append(oldest);
        oldest = next;
    }
}

void tcp_cq_refuse_unseen(tcp_cq *cq, const tcp_listener *l) {
    take_inbox(cq);
    tcp_conn *c;
    for (c = LIST_FIRST(&cq->active, tcp_conn, active_link); c; c = LIST_AFTER(&cq->active, c, tcp_conn, active_link))
        if (c->listener == l && !c->gone && c->events && c->events->kind == TCP_EV_UP) tcp_reject(&c->head, NULL, 0);
}

/* ---- made and destroyed ---- */

static int watch(int epoll, int fd) {
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = NULL };
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

int tcp_cq_create(fab_domain *domain, fab_cq **out) {
    tcp_domain *d = (tcp_domain *)domain;
    tcp_cq *cq = aligned_alloc(64, (sizeof *cq + 63) / 64 * 64);
    if (!cq) return -ENOMEM;
    *cq = (tcp_cq){ .eventfd = -1, .timerfd = -1 };
    list_init(&cq->active);
    list_init(&cq->deferred);
    list_init(&cq->dirty);
    list_init(&cq->awaiting);
    int e = tcp_io_init(&cq->io, d, cq, false);
    if (e) {
        free(cq);
        return e;
    }
    cq->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    cq->timerfd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (cq->eventfd < 0 || cq->timerfd < 0) e = -errno;
    if (e == 0) e = watch(cq->io.epoll, cq->eventfd);
    if (e == 0) e = watch(cq->io.epoll, cq->timerfd);
    if (e)
        tcp_cq_destroy(&cq->head);
    else
        *out = &cq->head;
    return e;
}

void tcp_cq_destroy(fab_cq *head) {
    tcp_cq *cq = (tcp_cq *)head;
    if (cq->responder) tcp_responder_stop(cq->responder);
    take_inbox(cq);
    tcp_deliver_nothing(cq);
    if (cq->responder) tcp_responder_free(cq->responder);
    tcp_io_end(&cq->io);
    if (cq->eventfd >= 0) close(cq->eventfd);
    if (cq->timerfd >= 0) close(cq->timerfd);
    free(cq);
}

/* ---- connections that this thread drives ---- */

static void ask_epoll(tcp_cq *cq) {
    struct epoll_event e[TCP_EVENTS];
    int n = epoll_wait(cq->io.epoll, e, TCP_EVENTS, 0);
    for (int i = 0; i < n; i++)
        if (e[i].data.ptr) tcp_io_event(&cq->io, e[i].data.ptr, e[i].events);
}

static void drive(tcp_cq *cq) {
    if (cq->io.sockets > TCP_DIRECT || cq->io.attention) {
        ask_epoll(cq);
    } else {
        tcp_conn *c, *next;
        for (c = LIST_FIRST(&cq->io.conns, tcp_conn, io_link); c; c = next) {
            next = LIST_AFTER(&cq->io.conns, c, tcp_conn, io_link);
            if (c->fd >= 0) tcp_io_event(&cq->io, c, EPOLLIN);
        }
    }
    tcp_io_run(&cq->io);
}

/* ---- time ---- */

static void look_at_clock(tcp_cq *cq) {
    uint64_t now = fkv_now_ns();
    tcp_io_timers(&cq->io, now);
    tcp_read_deadlines(cq, now);
    if (cq->timer_ns && now >= cq->timer_ns) {
        uint64_t ticks;
        if (read(cq->timerfd, &ticks, sizeof ticks) > 0) cq->timer_ns = 0;
    }
}

static void set_timer(tcp_cq *cq) {
    uint64_t at = tcp_io_next_timer(&cq->io), reads = tcp_read_next_deadline(cq);
    if (at == 0 || (reads && reads < at)) at = reads;
    /* A timer that fires too early costs one poll; setting it for every sleep would cost a system call each. */
    if (at == 0 || (cq->timer_ns && cq->timer_ns <= at)) return;
    uint64_t now = fkv_now_ns(), wait = at > now ? at - now : 1;
    struct itimerspec t = { .it_value = { .tv_sec = (time_t)(wait / 1000000000u),
                                          .tv_nsec = (long)(wait % 1000000000u) } };
    timerfd_settime(cq->timerfd, 0, &t, NULL);
    cq->timer_ns = at;
}

/* ---- the public side ---- */

int tcp_poll(fab_cq *head, fab_wc *wc, int max) {
    tcp_cq *cq = (tcp_cq *)head;
    cq->polls++;
    if (cq->armed) {
        cq->armed = false;
        __atomic_store_n(&cq->sleeping, 0, __ATOMIC_RELAXED);
    }
    if (__atomic_load_n(&cq->rung, __ATOMIC_ACQUIRE) != cq->heard) {
        uint64_t times;
        if (read(cq->eventfd, &times, sizeof times) == sizeof times) cq->heard += times;
    }
    list_append(&cq->active, &cq->deferred);
    if (cq->io.sockets) drive(cq);
    take_inbox(cq);
    int n = tcp_deliver(cq, wc, max);
    bool timed = cq->timer_ns || !list_empty(&cq->awaiting) || !list_empty(&cq->io.timers);
    if (timed && (n == 0 || cq->polls % CLOCK_EVERY == 0)) {
        look_at_clock(cq);
        if (n == 0) n = tcp_deliver(cq, wc, max);
    }
    return n;
}

void tcp_cq_mark_dirty(tcp_conn *c) {
    if (c->is_dirty) return;
    c->is_dirty = true;
    list_push(&((tcp_cq *)c->head.cq)->dirty, &c->dirty_link);
}

void tcp_flush(fab_cq *head) {
    tcp_cq *cq = (tcp_cq *)head;
    tcp_conn *c;
    while ((c = LIST_FIRST(&cq->dirty, tcp_conn, dirty_link))) {
        list_remove(&c->dirty_link);
        c->is_dirty = false;
        tcp_flush_conn(c);
    }
}

int tcp_arm(fab_cq *head) {
    tcp_cq *cq = (tcp_cq *)head;
    if (!list_empty(&cq->active) || !list_empty(&cq->deferred) || !list_empty(&cq->io.runnable)) return 1;
    if (cq->responder) {
        cq->armed = true;
        __atomic_store_n(&cq->sleeping, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&cq->inbox, __ATOMIC_SEQ_CST)) {
            __atomic_store_n(&cq->sleeping, 0, __ATOMIC_RELAXED);
            return 1;
        }
    }
    set_timer(cq);
    return 0;
}

int tcp_fd(fab_cq *cq) { return ((tcp_cq *)cq)->io.epoll; }

void tcp_cq_wake(tcp_cq *cq) {
    uint64_t one = 1;
    /* The count before the write: the write wakes the other thread, which may run before this one does again, and must
     * then know that there is something to take out, or the descriptor stays readable and it cannot sleep. Who polls in
     * between finds the count ahead of what was taken out, and looks again next time. */
    __atomic_fetch_add(&cq->rung, 1, __ATOMIC_RELEASE);
    while (write(cq->eventfd, &one, sizeof one) < 0 && errno == EINTR) {}
}

uint64_t tcp_reads_served(const fab_cq *cq) { return __atomic_load_n(&((const tcp_cq *)cq)->served, __ATOMIC_RELAXED); }
