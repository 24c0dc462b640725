/* rx.c: everything that is read from a socket: hellos, answers to our READs, requests of the peer, SENDs, credits.
 *
 * One recv a call. Headers are decoded in the driver's scratch buffer; an incomplete one waits in `hold`. Payload goes
 * where it belongs: a READ's answer into the caller's buffer, a SEND's into a message; what of it is not yet there is
 * received there directly. While a large READ arrives, so little is asked for beyond it that its next piece is received
 * in place as well. Invariant: at most one of `held` and `want_left` is not 0.
 */
#include <errno.h>
#include <string.h>
#include "tcp.h"

typedef enum verdict { FINE, CLOSED, LOST, BAD, REFUSED, NO_MEMORY } verdict;

/* ---- hellos ---- */

static verdict take_hello(tcp_conn *c, const tcp_hello *h) {
    const fab_options *o = &tcp_domain_of(c)->options;
    bool server = c->listener != NULL;
    if (server != (h->kind == TCP_HELLO)) return BAD;
    c->peer = *h;
    uint8_t version = tcp_version_choose(h);
    bool full = server && __atomic_load_n(&c->listener->live, __ATOMIC_RELAXED) >= o->max_conns;
    if (server && (version == 0 || full || __atomic_load_n(&c->listener->closed, __ATOMIC_ACQUIRE))) {
        tcp_hello no = tcp_conn_hello(c, TCP_REJECT, version == 0 ? TCP_REASON_VERSION : TCP_REASON_FULL, NULL, 0);
        tcp_send_hello(c, &no);
        tcp_conn_linger(c, FAB_SUCCESS);
        return FINE;
    }
    if (h->kind == TCP_REJECT) {
        c->up_status = h->reason == TCP_REASON_VERSION ? FAB_REM_INV_REQ_ERR : FAB_REM_ACCESS_ERR;
        return REFUSED;
    }
    uint32_t most = h->max_message < o->max_message ? h->max_message : o->max_message;
    if (version == 0 || most < FAB_MESSAGE_MIN || h->window < tcp_cost(most) || h->depth == 0) return BAD;
    c->peer.max_message = most;
    c->peer_window = h->window;
    c->depth = h->depth < TCP_DEPTH ? h->depth : TCP_DEPTH;
    c->follows = h->features & TCP_FEATURE_FOLLOW;
    tcp_conn_untimed(c);
    if (server) __atomic_fetch_add(&c->listener->live, 1, __ATOMIC_RELAXED);
    c->counted = server;
    c->announced = true;
    c->up_status = FAB_SUCCESS;
    __atomic_store_n(&c->state, server ? TCP_ASKED : TCP_UP, __ATOMIC_RELEASE);
    tcp_io_emit(c->io, &c->up);
    return FINE;
}

/* ---- frames ---- */

static verdict take_request(tcp_conn *c, const tcp_frame *f) {
    if (c->serve_tail - c->serve_head >= TCP_DEPTH) return BAD;
    bool follow = f->type == TCP_FOLLOW;
    if (follow && !tcp_domain_of(c)->options.follow) return BAD; /* it was not offered */
    c->requests[c->serve_tail++ % TCP_DEPTH] = (tcp_request){ .rkey = f->rkey,
                                                              .addr = f->addr,
                                                              .number = f->number,
                                                              .bytes = (uint32_t)f->argument,
                                                              .next_bytes = follow ? (uint32_t)(f->argument >> 32) : 0,
                                                              .follow = f->follow };
    return FINE;
}

static verdict take_answer(tcp_conn *c, const tcp_frame *f) {
    if (c->answered == __atomic_load_n(&c->posted, __ATOMIC_ACQUIRE) || f->number != (uint32_t)c->answered) return BAD;
    tcp_slot *q = &c->slots[c->answered % TCP_DEPTH];
    if (f->status != FAB_SUCCESS) {
        q->status = f->status;
        __atomic_store_n(&c->answered, c->answered + 1, __ATOMIC_RELEASE);
        c->down_status = (fab_wc_status)f->status;
        return REFUSED;
    }
    uint64_t end = c->received + f->argument;
    if (c->received == q->bytes && q->next_bytes) { /* the second half of a followed READ: one frame */
        if (f->argument == 0 || f->argument > q->next_bytes || !f->last) return BAD;
        c->want_at = q->next_local;
    } else {
        /* mutation: tcp/answer-length */
        if (end > q->bytes || (f->last != (end == q->bytes) && !(q->next_bytes && end == q->bytes))) return BAD;
        c->want_at = q->local + c->received;
    }
    q->landed = (uint32_t)end;
    c->want_left = (size_t)f->argument;
    c->want_last = f->last;
    return FINE;
}

static verdict take_message(tcp_conn *c, const tcp_frame *f) {
    uint64_t cost = c->rx_cost + tcp_cost((uint32_t)f->argument);
    if (cost - __atomic_load_n(&c->credit_limit, __ATOMIC_ACQUIRE) > tcp_domain_of(c)->window) return BAD;
    c->want_message = tcp_message_get(c, (uint32_t)f->argument);
    if (!c->want_message) return NO_MEMORY;
    c->rx_cost = cost;
    c->want_at = c->want_message->data;
    c->want_left = (size_t)f->argument;
    return FINE;
}

static verdict take_credit(tcp_conn *c, const tcp_frame *f) {
    if (f->argument < c->returned || f->argument > __atomic_load_n(&c->spent, __ATOMIC_ACQUIRE)) return BAD;
    __atomic_store_n(&c->returned, f->argument, __ATOMIC_SEQ_CST);
    tcp_tell_send_ready(c, false, true);
    return FINE;
}

static verdict take_frame(tcp_conn *c, const tcp_frame *f) {
    switch (f->type) {
    case TCP_READ:
    case TCP_FOLLOW: return take_request(c, f);
    case TCP_DATA: return take_answer(c, f);
    case TCP_SEND: return take_message(c, f);
    case TCP_CREDIT: return take_credit(c, f);
    default: return CLOSED;
    }
}

/* The payload at hand is complete. */
static void finish_payload(tcp_conn *c) {
    if (c->want_message) {
        tcp_message *m = c->want_message;
        c->want_message = NULL;
        __atomic_store_n(&c->rx_cost_seen, c->rx_cost, __ATOMIC_RELAXED);
        tcp_io_emit(c->io, &m->event);
    } else if (c->want_last) {
        c->received = 0;
        __atomic_store_n(&c->answered, c->answered + 1, __ATOMIC_RELEASE);
    }
}

static void advance_payload(tcp_conn *c, size_t n) {
    if (!c->want_message) c->received += (uint32_t)n;
    c->want_at += n;
    c->want_left -= n;
    if (c->want_left == 0) finish_payload(c);
}

/* Takes one header (or hello) from the front. *used: 0 when it is not complete. */
static verdict take_header(tcp_conn *c, const uint8_t *p, size_t have, size_t *used) {
    int n;
    verdict v = FINE;
    tcp_state state = tcp_conn_state(c);
    if (state == TCP_GREETING) {
        tcp_hello h;
        n = tcp_hello_decode(p, have, &h);
        if (n > 0) v = take_hello(c, &h);
    } else {
        tcp_frame f;
        n = tcp_frame_decode(p, have, c->peer.max_message, &f);
        /* Before the answer to its hello a client has nothing to say but that it goes. */
        if (n > 0) v = state == TCP_UP || f.type == TCP_BYE ? take_frame(c, &f) : BAD;
        if (n > 0 && v == FINE && f.type == TCP_DATA && f.argument == 0) finish_payload(c);
    }
    *used = n > 0 ? (size_t)n : 0;
    return n < 0 ? BAD : v;
}

static bool is_deaf(const tcp_conn *c) {
    return c->nak || tcp_conn_state(c) == TCP_LINGER || __atomic_load_n(&c->deaf, __ATOMIC_ACQUIRE);
}

static verdict take_bytes(tcp_conn *c, const uint8_t *p, size_t have) {
    while (have > 0 && !is_deaf(c)) {
        size_t n;
        if (c->want_left) {
            n = have < c->want_left ? have : c->want_left;
            memcpy(c->want_at, p, n);
            advance_payload(c, n);
        } else {
            verdict v = take_header(c, p, have, &n);
            if (v != FINE) return v;
            if (n == 0) {
                memcpy(c->hold, p, have);
                c->held = (uint32_t)have;
                return FINE;
            }
        }
        p += n;
        have -= n;
    }
    return FINE;
}

static size_t scratch_wanted(const tcp_conn *c) {
    bool more_pieces = c->want_left && !c->want_message && !c->want_last;
    return more_pieces ? TCP_HEADER_BYTES : TCP_SCRATCH;
}

static verdict receive(tcp_conn *c) {
    uint8_t *scratch = c->io->rx;
    if (is_deaf(c)) {
        ssize_t r = recv(c->fd, scratch, TCP_SCRATCH, 0);
        return r > 0 || (r < 0 && (errno == EAGAIN || errno == EINTR)) ? FINE : LOST;
    }
    size_t held = c->held;
    memcpy(scratch, c->hold, held);
    ssize_t r;
    if (c->want_left) {
        struct iovec v[2] = { { c->want_at, c->want_left }, { scratch, scratch_wanted(c) } };
        r = c->tls ? tcp_tls_read(c, v, 2) : readv(c->fd, v, 2);
    } else if (c->tls) {
        r = tcp_tls_read(c, &(struct iovec){ scratch + held, TCP_SCRATCH - held }, 1);
    } else {
        r = recv(c->fd, scratch + held, TCP_SCRATCH - held, 0);
    }
    if (r < 0) return errno == EAGAIN || errno == EINTR ? FINE : errno == EBADMSG ? BAD : LOST;
    if (r == 0) return LOST;
    __atomic_store_n(&c->rx_total, c->rx_total + (uint64_t)r, __ATOMIC_RELAXED);
    size_t n = (size_t)r;
    if (c->want_left) {
        size_t direct = n < c->want_left ? n : c->want_left;
        advance_payload(c, direct);
        n -= direct;
    }
    c->held = 0;
    return take_bytes(c, scratch, held + n);
}

/* A refused READ or connection is said by events; anything else that is wrong ends the connection with a reason. */
static void act_on(tcp_conn *c, verdict v) {
    const fab_options *o = &tcp_domain_of(c)->options;
    switch (v) {
    case FINE: break;
    case CLOSED: tcp_conn_down(c, FAB_SUCCESS, false); break;
    case LOST: tcp_conn_down(c, FAB_RETRY_EXC_ERR, true); break;
    case BAD:
        fab_log(o, FAB_LOG_WARNING, "tcp: a peer sent what is no valid frame; connection closed");
        tcp_conn_down(c, FAB_REM_INV_REQ_ERR, true);
        break;
    case REFUSED: tcp_conn_down(c, tcp_conn_state(c) == TCP_GREETING ? c->up_status : c->down_status, false); break;
    case NO_MEMORY:
        fab_log(o, FAB_LOG_ERROR, "tcp: no memory for a message; connection closed");
        tcp_conn_down(c, FAB_REM_OP_ERR, true);
        break;
    }
}

static verdict shake(tcp_conn *c) {
    switch (tcp_tls_shake(c)) {
    case TCP_TLS_DONE: break;
    case TCP_TLS_MORE: return FINE;
    case TCP_TLS_LOST: return LOST;
    case TCP_TLS_REFUSED: c->up_status = FAB_AUTH_ERR; return REFUSED;
    case TCP_TLS_BAD: return BAD;
    }
    if (!c->listener) tcp_greet(c);
    return FINE;
}

bool tcp_rx_shake(tcp_conn *c) {
    verdict v = shake(c);
    if (v != FINE) {
        act_on(c, v);
        return false;
    }
    if (tcp_conn_state(c) == TCP_CLOSED) return false;
    /* What came behind the last word of the handshake is not in the socket any more. */
    return !(c->tls->ready && tcp_tls_has(c->tls)) || tcp_rx(c);
}

bool tcp_rx(tcp_conn *c) {
    if (c->threaded) pthread_mutex_lock(&c->rx_lock);
    uint64_t before = c->answered;
    verdict v;
    do v = receive(c);
    while (c->tls && v == FINE && tcp_tls_has(c->tls) && !is_deaf(c)); /* what was received is in nobody else's hands */
    if (c->answered != before && __atomic_exchange_n(&c->reads_queued, 1, __ATOMIC_ACQ_REL) == 0)
        tcp_io_emit(c->io, &c->reads);
    if (c->threaded) pthread_mutex_unlock(&c->rx_lock);
    if (v == FINE) return true;
    act_on(c, v);
    return false;
}
