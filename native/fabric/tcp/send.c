/* send.c: SENDs of ours, and credits for the peer's. The CQ's thread.
 *
 * A message is copied into the connection's SEND ring with its header; whoever writes next sends it. The peer bounds
 * what may be on its way by a window of cost (tcp_cost); it returns credit when its user releases messages: not for
 * each one, but when an eighth of the window has gathered or the peer may be out of credit. All that was released but
 * the last eighth is always returned, and the window is at least four messages, so a peer whose messages were all
 * released can send.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tcp.h"

static uint64_t ring_put(const tcp_conn *c, uint64_t tail, const void *from, size_t n) {
    size_t room = tcp_domain_of(c)->ring_bytes, at = tail & (room - 1), first = n < room - at ? n : room - at;
    memcpy(c->ring + at, from, first);
    memcpy(c->ring, (const uint8_t *)from + first, n - first);
    return tail + n;
}

static bool has_room(const tcp_conn *c, uint32_t cost) {
    uint64_t open = c->peer_window - (c->spent - __atomic_load_n(&c->returned, __ATOMIC_SEQ_CST));
    return open >= cost && tcp_ring_room(c) >= cost; /* a frame is smaller than its cost */
}

int tcp_send(fab_conn *conn, const struct iovec *iov, int n, uint32_t bytes) {
    tcp_conn *c = (tcp_conn *)conn;
    if (!c->usable) return -ENOTCONN;
    uint32_t cost = tcp_cost(bytes);
    if (!has_room(c, cost)) {
        __atomic_store_n(&c->want_cost, cost, __ATOMIC_SEQ_CST);
        /* Room may have come in between; then either the other side has seen that we wait, and SEND_READY is on its
         * way, or not. */
        if (!has_room(c, cost) || __atomic_exchange_n(&c->want_cost, 0, __ATOMIC_SEQ_CST) == 0) return -EAGAIN;
    }
    uint8_t header[TCP_HEADER_BYTES];
    uint64_t tail = ring_put(c, c->ring_tail, header,
                             tcp_frame_encode(&(tcp_frame){ .type = TCP_SEND, .argument = bytes }, header));
    for (int i = 0; i < n; i++) tail = ring_put(c, tail, iov[i].iov_base, iov[i].iov_len);
    __atomic_store_n(&c->spent, c->spent + cost, __ATOMIC_RELEASE);
    __atomic_store_n(&c->ring_tail, tail, __ATOMIC_RELEASE);
    tcp_cq_mark_dirty(c);
    return 0;
}

bool tcp_credit_due(const tcp_conn *c, uint64_t released) {
    uint32_t window = tcp_domain_of(c)->window;
    uint64_t returned = __atomic_load_n(&c->credit_sent, __ATOMIC_RELAXED);
    uint64_t open = window - (__atomic_load_n(&c->rx_cost_seen, __ATOMIC_RELAXED) - returned);
    return released - returned >= window / 8 || (released != returned && open < tcp_cost(c->peer.max_message));
}

void tcp_release(fab_conn *conn, const void *message) {
    tcp_conn *c = (tcp_conn *)conn;
    tcp_message *m = (tcp_message *)((uintptr_t)message - offsetof(tcp_message, data));
    list_remove(&m->link);
    uint64_t released = c->released + tcp_cost(m->bytes);
    __atomic_store_n(&c->released, released, __ATOMIC_RELEASE);
    tcp_message_put(c, m);
    if (tcp_credit_due(c, released)) tcp_cq_mark_dirty(c);
}

static int attach_event(tcp_conn *c, uint64_t wr_id) {
    tcp_attach *a = malloc(sizeof *a);
    if (!a) return -ENOMEM;
    *a = (tcp_attach){ .event = { .conn = c, .kind = TCP_EV_ATTACH }, .wr_id = wr_id };
    tcp_cq_append(&a->event);
    return 0;
}

int tcp_attach_region(fab_conn *conn, uint64_t rkey, uint64_t remote_addr, uint64_t bytes, uint64_t wr_id) {
    (void)rkey, (void)remote_addr, (void)bytes; /* the owner checks each READ; there is nothing to prepare */
    tcp_conn *c = (tcp_conn *)conn;
    return c->usable ? attach_event(c, wr_id) : -ENOTCONN;
}

void tcp_detach_region(fab_conn *c, uint64_t rkey) { (void)c, (void)rkey; }
