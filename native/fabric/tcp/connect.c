/* connect.c: the client's way to a connection: connect() without waiting, handshake of TLS, hello, answer; all within
 * handshake_ms. */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "tcp.h"

static int watch(tcp_conn *c) {
    struct epoll_event e = { .events = EPOLLIN | EPOLLOUT, .data.ptr = c };
    if (epoll_ctl(c->io->epoll, EPOLL_CTL_ADD, c->fd, &e)) return -errno;
    c->armed = true;
    c->io->attention++;
    return 0;
}

int tcp_connect(fab_cq *head, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                void *user, fab_conn **out) {
    tcp_cq *cq = (tcp_cq *)head;
    struct sockaddr_storage a;
    socklen_t bytes;
    bool encrypted = tcp_address_encrypted(&address);
    int e = tcp_address_parse(address, &a, &bytes);
    if (e == 0 && encrypted) e = who ? tcp_tls_ready(cq->io.domain, false) : -EACCES;
    if (e) return e;
    int fd = socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    tcp_conn *c = tcp_conn_new(&cq->io, fd, NULL, user);
    if (!c) {
        close(fd);
        return -ENOMEM;
    }
    tcp_socket_options(fd, &cq->io.domain->options, false);
    c->announced = true;
    c->own_hello = tcp_conn_hello(c, TCP_HELLO, TCP_REASON_NONE, priv, priv_bytes);
    __atomic_store_n(&c->state, TCP_CONNECTING, __ATOMIC_RELAXED);
    int begun = connect(fd, (struct sockaddr *)&a, bytes) == 0 || errno == EINPROGRESS ? 0 : -errno;
    e = encrypted ? tcp_tls_begin(c, who) : 0;
    if (e == 0) e = watch(c);
    if (e) {
        list_remove(&c->io_link);
        cq->io.sockets--;
        tcp_conn_free(c);
        return e;
    }
    tcp_conn_timer(c);
    /* no route, no port: said by a completion, as a refusal is */
    if (begun) tcp_conn_down(c, FAB_RETRY_EXC_ERR, false);
    *out = &c->head;
    return 0;
}

void tcp_connected(tcp_conn *c) {
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) || error) {
        tcp_conn_down(c, FAB_RETRY_EXC_ERR, false);
        return;
    }
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
    epoll_ctl(c->io->epoll, EPOLL_CTL_MOD, c->fd, &e);
    c->armed = false;
    c->io->attention--;
    __atomic_store_n(&c->state, TCP_GREETING, __ATOMIC_RELAXED);
    if (c->tls)
        tcp_rx_shake(c);
    else
        tcp_greet(c);
}

void tcp_greet(tcp_conn *c) {
    if (tcp_send_hello(c, &c->own_hello)) tcp_conn_down(c, FAB_RETRY_EXC_ERR, false);
}
