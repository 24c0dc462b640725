/* io.c: what both drivers share: an epoll set with its connections, turns for those that have more to write, timers,
 * and the events on their way to the CQ's thread. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tcp.h"

/* No page of it is touched before its use. */
static const size_t scratch_bytes = TCP_SCRATCH + TCP_FIXED + TCP_SCRATCH + TCP_SCRATCH + TCP_TLS_OUT + TCP_TLS_RECORD;

int tcp_io_init(tcp_io *io, tcp_domain *d, tcp_cq *cq, bool threaded) {
    *io = (tcp_io){ .domain = d, .cq = cq, .threaded = threaded };
    list_init(&io->conns);
    list_init(&io->runnable);
    list_init(&io->timers);
    list_init(&io->dead);
    list_init(&io->shaking);
    io->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (io->epoll < 0) return -errno;
    io->rx = mmap(NULL, scratch_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (io->rx == MAP_FAILED) {
        close(io->epoll);
        return -ENOMEM;
    }
    io->tx = io->rx + TCP_SCRATCH;
    io->cipher_in = io->tx + TCP_FIXED + TCP_SCRATCH;
    io->cipher_out = io->cipher_in + TCP_SCRATCH;
    io->record = io->cipher_out + TCP_TLS_OUT;
    return 0;
}

void tcp_io_bury(tcp_io *io) {
    tcp_conn *c;
    while ((c = LIST_FIRST(&io->dead, tcp_conn, io_link))) {
        list_remove(&c->io_link);
        if (c->announced)
            tcp_io_emit(io, &c->let_go);
        else
            tcp_conn_free(c);
    }
}

void tcp_io_end(tcp_io *io) {
    tcp_conn *c;
    while ((c = LIST_FIRST(&io->conns, tcp_conn, io_link))) {
        list_remove(&c->io_link);
        tcp_conn_free(c);
    }
    munmap(io->rx, scratch_bytes);
    close(io->epoll);
}

static void listen_to(const tcp_io *io, tcp_conn *c, bool on) {
    struct epoll_event e = { .events = on ? EPOLLIN : 0, .data.ptr = c };
    epoll_ctl(io->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

/* A step of a handshake takes as long as dozens of READs. So of those that strangers begin, the responder takes one
 * each round, the oldest first; the sockets of the others are not listened to meanwhile. */
static void wait_for_turn(tcp_io *io, tcp_conn *c) {
    if (!io->threaded) {
        tcp_rx_shake(c);
        return;
    }
    if (c->is_shaking) return;
    c->is_shaking = true;
    list_push(&io->shaking, &c->shaking_link);
    listen_to(io, c, false);
}

void tcp_io_shake(tcp_io *io) {
    tcp_conn *c = LIST_FIRST(&io->shaking, tcp_conn, shaking_link);
    if (!c) return;
    list_remove(&c->shaking_link);
    c->is_shaking = false;
    if (!tcp_rx_shake(c)) return;
    listen_to(io, c, true);
    tcp_io_hand_over(io);
}

void tcp_io_event(tcp_io *io, tcp_conn *c, uint32_t epoll_events) {
    if (tcp_conn_state(c) == TCP_CLOSED) return; /* earlier in this batch */
    if (tcp_conn_state(c) == TCP_CONNECTING) {
        tcp_connected(c);
        return;
    }
    if (c->tls && !c->tls->ready) {
        wait_for_turn(io, c);
        return;
    }
    if (epoll_events & ~(uint32_t)EPOLLOUT && !tcp_rx(c)) return;
    tcp_io_hand_over(io); /* before the answers: the CQ's thread can begin meanwhile */
    tcp_tx(c, epoll_events & EPOLLOUT);
}

void tcp_io_run(tcp_io *io) {
    /* As many turns as there are connections now: those that put themselves back wait for the next round. */
    tcp_conn *last = LIST_LAST(&io->runnable, tcp_conn, runnable_link), *c;
    while (last && (c = LIST_FIRST(&io->runnable, tcp_conn, runnable_link))) {
        list_remove(&c->runnable_link);
        c->is_runnable = false;
        tcp_tx(c, false);
        if (c == last) break;
    }
}

uint64_t tcp_io_next_timer(const tcp_io *io) {
    const tcp_conn *c = LIST_FIRST(&io->timers, tcp_conn, timer_link);
    return c ? c->timer_ns : 0;
}

void tcp_io_timers(tcp_io *io, uint64_t now) {
    tcp_conn *c;
    while ((c = LIST_FIRST(&io->timers, tcp_conn, timer_link)) && c->timer_ns <= now) tcp_conn_timeout(c);
}

void tcp_io_emit(tcp_io *io, tcp_event *e) {
    if (!io->threaded) {
        tcp_cq_append(e);
        return;
    }
    e->next = io->batch;
    if (!io->batch) io->batch_oldest = e;
    io->batch = e;
}

void tcp_io_hand_over(tcp_io *io) {
    if (!io->batch) return;
    tcp_cq *cq = io->cq;
    tcp_event *top = __atomic_load_n(&cq->inbox, __ATOMIC_RELAXED);
    do io->batch_oldest->next = top;
    while (!__atomic_compare_exchange_n(&cq->inbox, &top, io->batch, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    io->batch = NULL;
    /* tcp_arm says "I sleep", then looks at the inbox; here it is the other way round, so one of the two notices. */
    if (__atomic_load_n(&cq->sleeping, __ATOMIC_SEQ_CST) && __atomic_exchange_n(&cq->sleeping, 0, __ATOMIC_SEQ_CST))
        tcp_cq_wake(cq);
}
