/* tcp_peer.c: see tcp_peer.h. */
#include "tcp_peer.h"
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../check.h"

void tcp_peer_open(tcp_peer *p, const fab_options *o) {
    *p = (tcp_peer){ .fd = -1, .heard = malloc(TCP_PEER_HEARD) };
    CHECK_EQ(fab_open(o, &p->domain), 0);
    CHECK_EQ(fab_cq_create(p->domain, &p->cq), 0);
}
void tcp_peer_close(tcp_peer *p) {
    fab_cq_destroy(p->cq);
    fab_close(p->domain);
    free(p->heard);
}

void tcp_peer_connect(tcp_peer *p, tcp_listener *l, tcp_state state) {
    int fd[2];
    tcp_cq *cq = (tcp_cq *)p->cq;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    tcp_conn *c = p->conn = tcp_conn_new(&cq->io, fd[0], l, NULL);
    CHECK(c != NULL);
    p->fd = fd[1];
    p->heard_bytes = 0;
    c->announced = !l;
    if (!l) c->own_hello = tcp_conn_hello(c, TCP_HELLO, TCP_REASON_NONE, NULL, 0);
    __atomic_store_n(&c->state, state, __ATOMIC_RELEASE);
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
    CHECK_EQ(epoll_ctl(cq->io.epoll, EPOLL_CTL_ADD, fd[0], &e), 0);
    if (state == TCP_CONNECTING) {
        cq->io.attention++; /* which tcp_connected takes back */
        c->armed = true;
        tcp_conn_timer(c);
        tcp_connected(c);
    } else {
        tcp_conn_timer(c);
    }
}

void tcp_peer_turn(tcp_peer *p, void (*take)(const fab_wc *wc)) {
    fab_wc wc[8];
    int n = fab_poll(p->cq, wc, 8);
    for (int i = 0; i < n; i++) take(&wc[i]);
    tcp_conn *c = p->conn;
    if (c && !c->announced && !c->is_active && tcp_conn_state(c) == TCP_CLOSED) {
        tcp_conn_free(c); /* as the responder does with what ended before it was announced */
        p->conn = NULL;
    }
    fab_flush(p->cq);
}
void tcp_peer_hang_up(tcp_peer *p, void (*take)(const fab_wc *wc)) {
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
    tcp_cq *cq = (tcp_cq *)p->cq;
    for (int i = 0; i < 4096 && p->conn; i++) tcp_peer_turn(p, take);
    CHECK(!p->conn);
    for (int i = 0; i < 4; i++) tcp_peer_turn(p, take); /* GONE */
    CHECK(cq->io.sockets == 0 && list_empty(&cq->io.conns));
}

void tcp_peer_listen(tcp_peer *p) {
    while (p->fd >= 0 && p->heard_bytes < TCP_PEER_HEARD) {
        ssize_t n = recv(p->fd, p->heard + p->heard_bytes, TCP_PEER_HEARD - p->heard_bytes, 0);
        if (n <= 0) return;
        p->heard_bytes += (size_t)n;
    }
}
void tcp_peer_write(tcp_peer *p, const void *bytes, size_t count) {
    fuzz_frames++;
    if (p->fd >= 0 && count) send(p->fd, bytes, count, MSG_NOSIGNAL); /* what a full socket does not take is lost */
}

void tcp_peer_say_bytes(tcp_peer *p, fuzz_in *in) {
    static uint8_t bytes[4096];
    size_t count = fuzz_u16(in) % sizeof bytes;
    if (count > in->left) count = in->left;
    fuzz_bytes(in, bytes, count);
    tcp_peer_write(p, bytes, count);
}
void tcp_peer_say_hello(tcp_peer *p, fuzz_in *in, tcp_hello_kind kind) {
    uint8_t out[TCP_HELLO_BYTES], form = fuzz_u8(in);
    tcp_hello h = { .kind = (uint8_t)kind,
                    .version_min = TCP_VERSION_MIN,
                    .version_max = TCP_VERSION_MAX,
                    .max_message = 16 << 10,
                    .window = 256 << 10,
                    .depth = TCP_DEPTH,
                    .features = TCP_FEATURE_FOLLOW };
    if (form & 1) h.max_message = (uint32_t)fuzz_number(in);
    if (form & 2) h.window = (uint32_t)fuzz_number(in);
    if (form & 4) h.depth = (uint32_t)fuzz_number(in);
    if (form & 8) h.features = (uint16_t)fuzz_number(in);
    if (form & 16) h.version_max = fuzz_u8(in);
    if (form & 32) h.priv_bytes = fuzz_u8(in) % (FAB_PRIVATE_MAX + 1);
    fuzz_bytes(in, h.priv, h.priv_bytes);
    size_t n = tcp_hello_encode(&h, out);
    fuzz_change(in, out, n);
    tcp_peer_write(p, out, n);
}
void tcp_peer_say_frame(tcp_peer *p, fuzz_in *in, tcp_frame f) {
    uint8_t out[TCP_FOLLOW_BYTES], form = fuzz_u8(in);
    if (form & 1) f.argument = fuzz_number(in);
    if (form & 2) f.number = (uint32_t)fuzz_number(in);
    if (form & 4) f.addr += fuzz_number(in);
    if (form & 8) f.status = fuzz_u8(in);
    if (form & 16) f.follow = fuzz_u64(in);
    if (form & 32) f.last = !f.last;
    size_t n = tcp_frame_encode(&f, out);
    if (form & 64) fuzz_change(in, out, n);
    tcp_peer_write(p, out, n);
    if (f.type != TCP_SEND && f.type != TCP_DATA) return;
    /* Its payload, or less of it, so that what follows is taken for it. */
    static const uint8_t payload[TCP_CHUNK];
    uint64_t bytes = f.argument < sizeof payload ? f.argument : sizeof payload;
    if (form & 128) bytes = fuzz_u16(in) % (bytes + 1);
    tcp_peer_write(p, payload, (size_t)bytes);
}
