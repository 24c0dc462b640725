/* listen.c: listeners: the user's thread makes and closes the socket, the responder accepts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "tcp.h"

enum { BACKLOG = 1024, ACCEPTS = 16 }; /* accepted at one go */

static int open_socket(const char *address, char bound[FAB_ADDRESS_MAX]) {
    struct sockaddr_storage a;
    socklen_t bytes;
    int e = tcp_address_parse(address, &a, &bytes), one = 1;
    if (e) return e;
    int fd = socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    /* "[::]:7000" is IPv6 only: an address means what it says, and "0.0.0.0:7000" may stand beside it. */
    if (a.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&a, bytes) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&a, &bytes)) {
        e = -errno;
        close(fd);
        return e;
    }
    tcp_address_format(&a, bound, FAB_ADDRESS_MAX);
    return fd;
}

int tcp_listen(fab_cq *head, const char *address, fab_listener **out) {
    tcp_cq *cq = (tcp_cq *)head;
    tcp_listener *l = calloc(1, sizeof *l);
    if (!l) return -ENOMEM;
    int e = l->fd = open_socket(address, l->head.address);
    if (l->fd >= 0) e = tcp_responder_start(cq);
    l->responder = cq->responder;
    pthread_mutex_init(&l->lock, NULL);
    if (e == 0) e = tcp_responder_add(cq->responder, l);
    if (e < 0) {
        if (l->fd >= 0) close(l->fd);
        pthread_mutex_destroy(&l->lock);
        free(l);
        return e;
    }
    *out = &l->head;
    return 0;
}

/* The struct stays with the responder, whose connections count on it, until the CQ is destroyed. */
void tcp_unlisten(fab_listener *head) {
    tcp_listener *l = (tcp_listener *)head;
    pthread_mutex_lock(&l->lock);
    close(l->fd);
    l->fd = -1;
    pthread_mutex_unlock(&l->lock);
    /* Peers that asked and that the user has not seen are refused: those whose question is queued here; those whose
     * hello the responder is about to take, there; what slips in between, when it would be delivered. */
    __atomic_store_n(&l->closed, 1, __ATOMIC_RELEASE);
    tcp_cq_refuse_unseen((tcp_cq *)head->cq, l);
}

/* ---- responder ---- */

static void welcome(tcp_listener *l, int fd) {
    tcp_io *io = tcp_responder_io(l->responder);
    const fab_options *o = &io->domain->options;
    bool excess = l->live >= o->max_conns;
    tcp_conn *c = excess && l->excess >= TCP_EXCESS ? NULL : tcp_conn_new(io, fd, l, NULL);
    if (!c) {
        close(fd);
        return;
    }
    tcp_socket_options(fd, o, true);
    __atomic_store_n(&c->state, TCP_GREETING, __ATOMIC_RELEASE);
    c->counted = true;
    c->excess = excess;
    if (excess)
        l->excess++;
    else
        l->live++;
    tcp_conn_timer(c);
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
    if (epoll_ctl(io->epoll, EPOLL_CTL_ADD, fd, &e)) tcp_conn_down(c, FAB_GENERAL_ERR, false);
}

void tcp_listener_accept(tcp_listener *l) {
    int error = 0;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < ACCEPTS && l->fd >= 0; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            error = errno;
            break;
        }
        welcome(l, fd);
    }
    pthread_mutex_unlock(&l->lock);
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) tcp_listener_rest(l, error);
}
