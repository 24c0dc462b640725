/* io.c: what both drivers share: an epoll set with its connections, turns for those that have more to write, timers,
 * and the events on their way to the CQ's thread. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tcp.h"

static const size_t scratch_bytes = TCP_SCRATCH + TCP_FIXED + TCP_SCRATCH;

int tcp_io_init(tcp_io *io, tcp_domain *d, tcp_cq *cq, bool threaded) {
    *io = (tcp_io){ .domain = d, .cq = cq, .threaded = threaded };
    list_init(&io->conns);
    list_init(&io->runnable);
    list_init(&io->timers);
    io->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (io->epoll < 0) return -errno;
    io->rx = mmap(NULL, scratch_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (io->rx == MAP_FAILED) {
        close(io->epoll);
        return -ENOMEM;
    }
    io->tx = io->rx + TCP_SCRATCH;
    return 0;
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

void tcp_io_event(tcp_io *io, tcp_conn *c, uint32_t epoll_events) {
    if (tcp_conn_state(c) == TCP_CONNECTING) {
        tcp_connected(c);
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
        tcp_cq_wake(cq, TCP_WOKEN_BY_RESPONDER);
}
