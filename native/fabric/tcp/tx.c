/* tx.c: everything that is written to a socket, and the right to do so.
 *
 * One write takes, in this order: what an earlier write did not get rid of (`cut`, `left`), a CREDIT frame, READ
 * requests, answers to the peer's READs (the driver only), and the SEND ring; a batch of READs is one system call, and
 * so are all answers to it. Composed is only what can be sent or kept: when the socket takes less, a fixed frame that
 * was cut is kept in `cut`, answers in `left`, and the rest stays where it was and is composed again. Invariant: bytes
 * of one frame are contiguous in the stream. So while the ring's head is inside a frame (ring_first) nothing but the
 * ring is written, and the ring is written only when `cut` and `left` are empty or before it in the same call.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "../../base/assert.h"
#include "tcp.h"

/* ---- the right to write ---- */

static bool take(tcp_conn *c, bool leave_mark) {
    uint32_t s = TCP_TX_FREE;
    for (;;) {
        if (__atomic_compare_exchange_n(&c->tx_right, &s, TCP_TX_HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
        if (!leave_mark) return false;
        uint32_t held = s;
        if (__atomic_compare_exchange_n(&c->tx_right, &held, TCP_TX_AGAIN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return false;
        s = TCP_TX_FREE;
    }
}

bool tcp_tx_take(tcp_conn *c) { return !c->threaded || take(c, true); }

void tcp_tx_take_wait(tcp_conn *c) {
    while (c->threaded && !take(c, false)) sched_yield();
}

bool tcp_tx_give(tcp_conn *c) {
    if (!c->threaded) return false;
    uint32_t s = TCP_TX_HELD;
    if (__atomic_compare_exchange_n(&c->tx_right, &s, TCP_TX_FREE, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return false;
    uint32_t was = __atomic_exchange_n(&c->tx_right, TCP_TX_HELD, __ATOMIC_ACQ_REL);
    fkv_assert(was == TCP_TX_AGAIN); /* held, and nothing else: only the holder gives it back */
    return true;
}

/* ---- the SEND ring, as its consumer ---- */

static int ring_pieces(const tcp_conn *c, struct iovec *v) {
    size_t room = tcp_domain_of(c)->ring_bytes,
           n = (size_t)(__atomic_load_n(&c->ring_tail, __ATOMIC_ACQUIRE) - c->ring_head);
    if (n == 0) return 0;
    size_t at = c->ring_head & (room - 1), first = n < room - at ? n : room - at;
    v[0] = (struct iovec){ c->ring + at, first };
    if (first == n) return 1;
    v[1] = (struct iovec){ c->ring, n - first };
    return 2;
}

size_t tcp_ring_room(const tcp_conn *c) {
    uint64_t head = __atomic_load_n(&c->ring_head, __ATOMIC_SEQ_CST),
             tail = __atomic_load_n(&c->ring_tail, __ATOMIC_RELAXED);
    return tcp_domain_of(c)->ring_bytes - (size_t)(tail - head);
}

/* fab_send was refused and waits: say when it is worth another try. The order "publish what became free, then look who
 * waits" here, and "say that I wait, then look again" in send.c, all sequentially consistent, lets no waiter be
 * overlooked. */
void tcp_tell_send_ready(tcp_conn *c, bool look_at_ring, bool driver) {
    uint32_t need = __atomic_load_n(&c->want_cost, __ATOMIC_SEQ_CST);
    if (need == 0) return;
    uint64_t open = c->peer_window -
                    (__atomic_load_n(&c->spent, __ATOMIC_RELAXED) - __atomic_load_n(&c->returned, __ATOMIC_SEQ_CST));
    if (open < need || (look_at_ring && tcp_ring_room(c) < need)) return;
    if (__atomic_exchange_n(&c->want_cost, 0, __ATOMIC_SEQ_CST) == 0) return;
    if (__atomic_exchange_n(&c->ready_queued, 1, __ATOMIC_SEQ_CST)) return;
    if (driver)
        tcp_io_emit(c->io, &c->send_ready);
    else
        tcp_cq_append(&c->send_ready);
}

/* ---- one write ---- */

typedef struct composed {
    size_t credit, reads, answers; /* bytes of each in scratch, in this order */
    uint64_t released, posted;
} composed;

/* READs that were posted and not sent are fewer than there are slots, unless some were answered before they were sent. */
static bool peer_lies(const tcp_conn *c, uint64_t posted) { return posted - c->requested > TCP_DEPTH; }

static composed compose(tcp_conn *c, uint64_t posted, uint8_t *scratch, bool serves) {
    composed s = { .released = __atomic_load_n(&c->released, __ATOMIC_ACQUIRE), .posted = posted };
    if (tcp_credit_due(c, s.released)) {
        /* Before it is sent: the responder may see the peer make use of it at once. */
        __atomic_store_n(&c->credit_limit, s.released, __ATOMIC_RELEASE);
        s.credit = tcp_frame_encode(&(tcp_frame){ .type = TCP_CREDIT, .argument = s.released }, scratch);
    }
    for (uint64_t i = c->requested; i != s.posted; i++) {
        const tcp_slot *q = &c->slots[i % TCP_DEPTH];
        tcp_frame f = {
            .type = TCP_READ, .number = (uint32_t)i, .argument = q->bytes, .rkey = q->rkey, .addr = q->addr
        };
        if (q->next_bytes) {
            f.type = TCP_FOLLOW;
            f.argument |= (uint64_t)q->next_bytes << 32;
            f.follow = q->next_argument;
        }
        s.reads += tcp_frame_encode(&f, scratch + s.credit + s.reads);
    }
    if (serves && c->left_bytes == 0) s.answers = tcp_serve(c, scratch + s.credit + s.reads, c->quota);
    return s;
}

static bool keep_answers(tcp_conn *c, const uint8_t *rest, size_t n) {
    if (!c->left) c->left = malloc(TCP_SCRATCH);
    if (!c->left) return false;
    memcpy(c->left, rest, n);
    c->left_at = 0;
    c->left_bytes = n;
    return true;
}

/* `sent` bytes of the scratch went out. False when the rest cannot be kept. */
static bool account(tcp_conn *c, const composed *s, const uint8_t *scratch, size_t sent) {
    size_t fixed = s->credit + s->reads;
    if (sent > 0 && s->credit) __atomic_store_n(&c->credit_sent, s->released, __ATOMIC_RELAXED);
    if (sent >= fixed) {
        if (s->reads) c->requested = s->posted;
        return sent == fixed + s->answers || keep_answers(c, scratch + sent, fixed + s->answers - sent);
    }
    size_t end = 0; /* of the frames that went out at least in part */
    if (sent > 0) end = s->credit;
    while (sent > end) {
        end += c->slots[c->requested % TCP_DEPTH].next_bytes ? TCP_FOLLOW_BYTES : TCP_READ_BYTES;
        c->requested++;
    }
    if (end > sent) {
        c->cut_at = 0;
        c->cut_bytes = (uint8_t)(end - sent);
        memcpy(c->cut, scratch + sent, c->cut_bytes);
    }
    return s->answers == 0 || keep_answers(c, scratch + fixed, s->answers);
}

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

static size_t consume_kept(tcp_conn *c, size_t sent) {
    size_t k = min_size(sent, c->cut_bytes), l = min_size(sent - k, c->left_bytes);
    c->cut_at = (uint8_t)(c->cut_at + k);
    c->cut_bytes = (uint8_t)(c->cut_bytes - k);
    c->left_at += l;
    c->left_bytes -= l;
    return sent - k - l;
}

static void consume_ring(tcp_conn *c, size_t sent, size_t all, bool driver) {
    if (all == 0) return;
    if (sent) {
        __atomic_store_n(&c->ring_head, c->ring_head + sent, __ATOMIC_SEQ_CST);
        tcp_tell_send_ready(c, true, driver);
    }
    c->ring_first = sent < all && (c->ring_first || sent > 0);
}

static void arm(tcp_conn *c, bool on) {
    if (c->armed == on) return;
    struct epoll_event e = { .events = on ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = c };
    epoll_ctl(c->io->epoll, EPOLL_CTL_MOD, c->fd, &e);
    c->armed = on;
    if (!c->threaded) c->io->attention += on ? 1 : -1;
}

static void block(tcp_conn *c) {
    c->blocked = true;
    arm(c, true);
}

static void give_up(tcp_conn *c) {
    __atomic_store_n(&c->broken, 1, __ATOMIC_RELEASE);
    shutdown(c->fd, SHUT_RDWR); /* the driver finds out by reading */
}

/* False when there is no more to do now: all is sent, or the socket is full or broken. */
static bool write_once(tcp_conn *c, const tcp_io *io, bool driver, bool serves) {
    uint8_t *scratch = io->tx;
    struct iovec v[5];
    int n = 0;
    composed s = { 0 };
    size_t kept = 0, fresh = 0, ring = 0;
    bool ring_only = c->ring_first;
    if (c->tls && !tcp_tls_push(c)) { /* nothing is composed that could not be taken */
        block(c);
        return false;
    }
    if (!ring_only) {
        kept = c->cut_bytes + c->left_bytes;
        if (c->cut_bytes) v[n++] = (struct iovec){ c->cut + c->cut_at, c->cut_bytes };
        if (c->left_bytes) v[n++] = (struct iovec){ c->left + c->left_at, c->left_bytes };
        uint64_t posted = __atomic_load_n(&c->posted, __ATOMIC_ACQUIRE);
        if (peer_lies(c, posted)) { /* mutation: tcp/answered-unsent */
            give_up(c);
            return false;
        }
        s = compose(c, posted, scratch, serves);
        fresh = s.credit + s.reads + s.answers;
        if (fresh) v[n++] = (struct iovec){ scratch, fresh };
    }
    int pieces = ring_pieces(c, v + n);
    for (int i = 0; i < pieces; i++) ring += v[n++].iov_len;
    if (n == 0) return false;

    struct msghdr m = { .msg_iov = v, .msg_iovlen = (size_t)n };
    ssize_t r = c->tls   ? tcp_tls_write(c, io, v, n)
                : n == 1 ? send(c->fd, v[0].iov_base, v[0].iov_len, MSG_NOSIGNAL)
                         : sendmsg(c->fd, &m, MSG_NOSIGNAL);
    if (r < 0 && errno != EAGAIN && errno != EINTR) {
        give_up(c);
        return false;
    }
    size_t sent = r < 0 ? 0 : (size_t)r, all = kept + fresh + ring;
    bool full = sent < all || (c->tls && tcp_tls_keeps(c->tls));
    c->quota = !full                      ? min_size(c->quota * 2, TCP_SCRATCH)
               : c->quota / 2 > TCP_CHUNK ? c->quota / 2
                                          : TCP_CHUNK + TCP_HEADER_BYTES;
    size_t rest = consume_kept(c, sent), of_fresh = min_size(rest, fresh);
    if (!account(c, &s, scratch, of_fresh)) {
        give_up(c);
        return false;
    }
    consume_ring(c, rest - of_fresh, ring, driver);
    if (full) {
        block(c);
        return false;
    }
    return ring_only || kept; /* what had to wait behind those may be written now */
}

static bool may_write(const tcp_conn *c) {
    return c->fd >= 0 && !c->blocked && tcp_conn_state(c) == TCP_UP && !__atomic_load_n(&c->broken, __ATOMIC_RELAXED);
}

/* Answers READs of the peer never: one that is refused ends the connection, which only its driver can do. */
void tcp_flush_conn(tcp_conn *c) {
    if (!tcp_tx_take(c)) return;
    do {
        while (may_write(c) && write_once(c, &((tcp_cq *)c->head.cq)->io, !c->threaded, false)) continue;
        /* Begin at the ring's front again, so that a connection that is keeping up touches few pages of it. */
        if (c->ring_head == c->ring_tail && !c->ring_first) {
            __atomic_store_n(&c->ring_head, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&c->ring_tail, 0, __ATOMIC_RELAXED);
        }
    } while (tcp_tx_give(c));
}

void tcp_tx(tcp_conn *c, bool writable) {
    if (!writable && c->serve_head == c->serve_tail) return;
    if (c->threaded && !take(c, false)) {
        tcp_conn_runnable(c);
        sched_yield();
        return;
    }
    bool said;
    do {
        if (writable) c->blocked = false;
        writable = false;
        while (may_write(c) && write_once(c, c->io, true, true)) continue;
        bool more = c->serve_head != c->serve_tail;
        if (!c->blocked && c->left && c->left_bytes == 0 && !more) {
            free(c->left);
            c->left = NULL;
        }
        if (c->fd >= 0 && !c->blocked && !more) arm(c, false);
        if (more && !c->armed) tcp_conn_runnable(c);
        said = c->nak && !c->blocked && !more;
    } while (tcp_tx_give(c));
    if (said && tcp_conn_state(c) == TCP_UP) tcp_conn_linger(c, FAB_REM_ACCESS_ERR);
}

/* Few bytes that a socket's buffer takes whole. */
static bool say(tcp_conn *c, const uint8_t *bytes, size_t n) {
    return c->tls ? tcp_tls_say(c, bytes, n) : send(c->fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

void tcp_send_bye(tcp_conn *c) {
    uint8_t out[TCP_HEADER_BYTES];
    tcp_tx_take_wait(c);
    bool between_frames = c->fd >= 0 && !c->blocked && !c->ring_first && c->cut_bytes + c->left_bytes == 0;
    /* Where it cannot be said the peer sees the stream end, and takes us for dead. */
    if (between_frames && !say(c, out, tcp_frame_encode(&(tcp_frame){ .type = TCP_BYE }, out))) give_up(c);
    while (tcp_tx_give(c)) continue;
}

int tcp_send_hello(tcp_conn *c, const tcp_hello *h) {
    uint8_t out[TCP_HELLO_BYTES];
    size_t n = tcp_hello_encode(h, out);
    /* The first bytes of this end. */
    if (c->fd >= 0 && say(c, out, n)) return 0;
    if (c->fd >= 0) give_up(c);
    return -ENOTCONN;
}
