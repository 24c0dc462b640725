/* listen.c: listeners: the user's thread makes and closes the socket, the responder accepts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "tcp.h"

enum { BACKLOG = 1024, ACCEPTS = 16 }; /* accepted at one go */

static int open_socket(const char *address, bool encrypted, char bound[FAB_ADDRESS_MAX]) {
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
    size_t mark = encrypted ? (size_t)snprintf(bound, FAB_ADDRESS_MAX, "tls:") : 0;
    tcp_address_format(&a, bound + mark, FAB_ADDRESS_MAX - mark);
    return fd;
}

int tcp_listen(fab_cq *head, const char *address, fab_listener **out) {
    tcp_cq *cq = (tcp_cq *)head;
    tcp_listener *l = calloc(1, sizeof *l);
    if (!l) return -ENOMEM;
    l->encrypted = tcp_address_encrypted(&address);
    l->fd = -1;
    int e = 0;
    if (l->encrypted) e = cq->io.domain->options.key_of ? tcp_tls_ready(cq->io.domain, true) : -EINVAL;
    if (e == 0) e = l->fd = open_socket(address, l->encrypted, l->head.address);
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

/* Of those that wait for nothing but the peer, which stand in the order in which they came. */
static void end_one(tcp_conn *c) {
    if (c) tcp_conn_down(c, FAB_RETRY_EXC_ERR, false);
}

static void make_place(tcp_io *io, uint64_t from) {
    fab_strangers waiting = { .from = from };
    if (io->timed < FAB_STRANGERS_OF_ADDRESS) return;
    for (tcp_conn *c = LIST_FIRST(&io->timers, tcp_conn, timer_link); c;
         c = LIST_AFTER(&io->timers, c, tcp_conn, timer_link))
        fab_strangers_count(&waiting, c, c->from);
    end_one(fab_strangers_give_way(&waiting));
}

/* Whoever has not said its hello takes no place of those who have, nor for long that of another who is about to. */
static void welcome(tcp_listener *l, int fd, const struct sockaddr_storage *peer) {
    tcp_io *io = tcp_responder_io(l->responder);
    uint64_t from = fab_source_of(peer);
    make_place(io, from);
    tcp_conn *c = tcp_conn_new(io, fd, l, NULL);
    if (!c) {
        close(fd);
        return;
    }
    tcp_socket_options(fd, &io->domain->options, true);
    __atomic_store_n(&c->state, TCP_GREETING, __ATOMIC_RELEASE);
    c->from = from;
    tcp_conn_timer(c);
    if (l->encrypted && tcp_tls_begin(c, NULL)) {
        tcp_conn_down(c, FAB_GENERAL_ERR, false);
        return;
    }
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
    if (epoll_ctl(io->epoll, EPOLL_CTL_ADD, fd, &e)) tcp_conn_down(c, FAB_GENERAL_ERR, false);
}

static bool end_oldest(void *ctx) {
    tcp_conn *c = LIST_FIRST(&((tcp_io *)ctx)->timers, tcp_conn, timer_link);
    end_one(c);
    return c != NULL;
}

/* 0, or the errno for which no more are to be accepted for a while. */
static int accept_one(tcp_listener *l) {
    tcp_io *io = tcp_responder_io(l->responder);
    struct sockaddr_storage peer = { 0 };
    socklen_t bytes = sizeof peer;
    int fd = accept4(l->fd, (struct sockaddr *)&peer, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC), error = errno;
    if (fd < 0) {
        if (error == EMFILE || error == ENFILE) end_oldest(io);
        return error;
    }
    fd = fab_descriptor_or_none(&io->domain->options, fd, end_oldest, io);
    if (fd < 0) return EMFILE;
    welcome(l, fd, &peer);
    return 0;
}

void tcp_listener_accept(tcp_listener *l) {
    int error = 0;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < ACCEPTS && l->fd >= 0 && error == 0; i++) error = accept_one(l);
    pthread_mutex_unlock(&l->lock);
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) tcp_listener_rest(l, error);
}
