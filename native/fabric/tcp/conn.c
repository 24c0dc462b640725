/* conn.c: the life of a connection: made, asked, accepted or refused, ended by the peer, by an error or by the user,
 * freed.
 *
 * The driver ends a connection; then, and only then, it emits DOWN, after which it touches no local buffer. The user's
 * fab_disconnect marks it `gone` and asks the driver to let go, which it says by GONE, its last word; the CQ's thread
 * frees it then. The responder says GONE when it has handled the last event that may name the connection: one event can
 * end another's connection (listen.c). A connection that was never announced to the CQ's thread it frees itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "tcp.h"

static size_t arena_bytes(const tcp_domain *d) {
    return d->ring_bytes + TCP_DEPTH * (sizeof(tcp_slot) + sizeof(tcp_request));
}

static void event_init(tcp_event *e, tcp_conn *c, tcp_event_kind kind) { *e = (tcp_event){ .conn = c, .kind = kind }; }

tcp_conn *tcp_conn_new(tcp_io *io, int fd, tcp_listener *l, void *user) {
    tcp_domain *d = io->domain;
    tcp_conn *c = aligned_alloc(64, (sizeof *c + 63) / 64 * 64);
    if (!c) return NULL;
    memset(c, 0, sizeof *c);
    c->arena = mmap(NULL, arena_bytes(d), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->arena == MAP_FAILED) {
        free(c);
        return NULL;
    }
    fab_conn_init(&c->head, &fab_tcp_ops, &io->cq->head, user);
    c->io = io;
    c->listener = l;
    c->threaded = io->threaded;
    c->ring = c->arena;
    c->slots = (tcp_slot *)(void *)(c->arena + d->ring_bytes);
    c->requests = (tcp_request *)(void *)(c->slots + TCP_DEPTH);
    c->fd = fd;
    c->quota = TCP_SCRATCH;
    c->events_end = &c->events;
    list_init(&c->unreleased);
    event_init(&c->up, c, TCP_EV_UP);
    event_init(&c->reads, c, TCP_EV_READS);
    event_init(&c->send_ready, c, TCP_EV_SEND_READY);
    event_init(&c->down, c, TCP_EV_DOWN);
    event_init(&c->moved, c, TCP_EV_MOVED);
    event_init(&c->let_go, c, TCP_EV_GONE);
    pthread_mutex_init(&c->rx_lock, NULL);
    list_push(&io->conns, &c->io_link);
    io->sockets++;
    return c;
}

void tcp_conn_free(tcp_conn *c) {
    if (c->fd >= 0) close(c->fd);
    tcp_message_free_all(c);
    free(c->left);
    tcp_tls_free(c->tls);
    pthread_mutex_destroy(&c->rx_lock);
    munmap(c->arena, arena_bytes(tcp_domain_of(c)));
    free(c);
}

tcp_hello tcp_conn_hello(const tcp_conn *c, tcp_hello_kind kind, tcp_reason reason, const void *priv,
                         uint32_t priv_bytes) {
    const tcp_domain *d = tcp_domain_of(c);
    uint8_t version = kind == TCP_ACCEPT ? tcp_version_choose(&c->peer) : 0;
    tcp_hello h = { .kind = kind,
                    .reason = reason,
                    .version_min = version ? version : TCP_VERSION_MIN,
                    .version_max = version ? version : TCP_VERSION_MAX,
                    .max_message = d->options.max_message,
                    .window = d->window,
                    .depth = TCP_DEPTH,
                    .priv_bytes = priv_bytes,
                    .features = d->options.follow ? TCP_FEATURE_FOLLOW : 0 };
    if (priv_bytes) memcpy(h.priv, priv, priv_bytes);
    return h;
}

/* ---- driver ---- */

void tcp_conn_runnable(tcp_conn *c) {
    if (c->is_runnable) return;
    c->is_runnable = true;
    list_push(&c->io->runnable, &c->runnable_link);
}

/* All timers last handshake_ms, so that the list is in the order in which they end. */
void tcp_conn_timer(tcp_conn *c) {
    tcp_conn_untimed(c);
    c->timer_ns = fkv_now_ns() + (uint64_t)tcp_domain_of(c)->options.handshake_ms * 1000000u;
    c->is_timed = true;
    c->io->timed++;
    list_push(&c->io->timers, &c->timer_link);
}

void tcp_conn_untimed(tcp_conn *c) {
    if (!c->is_timed) return;
    c->is_timed = false;
    c->io->timed--;
    list_remove(&c->timer_link);
}

static void uncount(tcp_conn *c) {
    if (!c->counted) return;
    c->counted = false;
    __atomic_fetch_sub(&c->listener->live, 1, __ATOMIC_RELAXED);
}

static void say_down(tcp_conn *c, fab_wc_status status, bool blames) {
    if (c->said_down || c->closing || !c->announced) return;
    c->said_down = true;
    c->down_status = status;
    c->down_blames = blames;
    if (!c->listener && c->up_status != FAB_SUCCESS) tcp_io_emit(c->io, &c->up); /* FAB_WC_CONNECT failed */
    tcp_io_emit(c->io, &c->down);
}

static void let_go(tcp_conn *c) {
    list_remove(&c->io_link);
    if (c->threaded)
        list_push(&c->io->dead, &c->io_link);
    else
        tcp_io_emit(c->io, &c->let_go);
}

void tcp_conn_down(tcp_conn *c, fab_wc_status status, bool blames) {
    if (tcp_conn_state(c) == TCP_CLOSED) return;
    if (!c->listener && tcp_conn_state(c) < TCP_UP && c->up_status == FAB_SUCCESS)
        c->up_status = status == FAB_SUCCESS ? FAB_RETRY_EXC_ERR : status;
    tcp_tx_take_wait(c);
    __atomic_store_n(&c->state, TCP_CLOSED, __ATOMIC_RELEASE);
    if (c->armed && !c->threaded) c->io->attention--;
    c->armed = false;
    shutdown(c->fd, SHUT_RDWR); /* what was written goes out before a reset that unread bytes would cause */
    close(c->fd);
    c->fd = -1;
    while (tcp_tx_give(c)) continue;
    c->io->sockets--;
    uncount(c);
    tcp_conn_untimed(c);
    if (c->is_runnable) list_remove(&c->runnable_link);
    if (c->is_shaking) list_remove(&c->shaking_link);
    c->is_runnable = c->is_shaking = false;
    say_down(c, c->up_status != FAB_SUCCESS ? c->up_status : status, blames);
    if (c->closing || !c->announced) let_go(c);
}

void tcp_conn_linger(tcp_conn *c, fab_wc_status status) {
    tcp_tx_take_wait(c);
    __atomic_store_n(&c->state, TCP_LINGER, __ATOMIC_RELEASE);
    shutdown(c->fd, SHUT_WR);
    while (tcp_tx_give(c)) continue;
    uncount(c);
    tcp_conn_timer(c);
    say_down(c, status, false);
}

void tcp_conn_timeout(tcp_conn *c) {
    tcp_state s = tcp_conn_state(c);
    if (s == TCP_GREETING && c->listener)
        fab_log(&tcp_domain_of(c)->options, FAB_LOG_INFO, "tcp: a peer said nothing; dropped");
    tcp_conn_down(c, s == TCP_LINGER ? FAB_SUCCESS : FAB_RETRY_EXC_ERR, true);
}

void tcp_conn_close(tcp_conn *c) {
    c->closing = true;
    tcp_state s = tcp_conn_state(c);
    if (s == TCP_CLOSED) {
        let_go(c);
        return;
    }
    if (s == TCP_LINGER && c->threaded) return; /* GONE follows when that is over */
    if (s == TCP_UP) tcp_tx(c, true);           /* the last SENDs */
    s = tcp_conn_state(c);
    if (s == TCP_LINGER && c->threaded) return;
    if (s == TCP_UP || (s == TCP_GREETING && !c->listener)) tcp_send_bye(c);
    if (s >= TCP_ASKED && c->threaded && !c->blocked)
        tcp_conn_linger(c, FAB_SUCCESS);
    else
        tcp_conn_down(c, FAB_SUCCESS, false);
}

/* ---- the CQ's thread ---- */

void tcp_conn_command(tcp_conn *c, uint32_t command) {
    if (c->moving) {
        c->held_commands |= command;
    } else if (!c->threaded) {
        if (command == TCP_CMD_CLOSE)
            tcp_conn_close(c);
        else
            tcp_conn_down(c, c->fail_status, true);
    } else if (__atomic_fetch_or(&c->commands, command, __ATOMIC_ACQ_REL) == 0) {
        tcp_responder_command(((tcp_cq *)c->head.cq)->responder, c);
    }
}

int tcp_accept(fab_conn *conn, uint32_t tenant, const void *priv, uint32_t priv_bytes) {
    tcp_conn *c = (tcp_conn *)conn;
    if (c->gone || c->usable) return -EINVAL;
    if (!tcp_tx_take(c)) return -ENOTCONN; /* only its end takes the right of a connection that is asked for */
    __atomic_store_n(&c->tenant, tenant, __ATOMIC_RELAXED);
    uint32_t asked = TCP_ASKED;
    int e = -ENOTCONN;
    /* UP before the answer leaves: the peer's first request may be here before this thread goes on. */
    if (__atomic_compare_exchange_n(&c->state, &asked, TCP_UP, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        tcp_hello yes = tcp_conn_hello(c, TCP_ACCEPT, TCP_REASON_NONE, priv, priv_bytes);
        e = tcp_send_hello(c, &yes);
    }
    while (tcp_tx_give(c)) continue;
    if (e) return e;
    c->usable = true;
    c->head.max_message = c->peer.max_message;
    return 0;
}

void tcp_disconnect(fab_conn *conn) {
    tcp_conn *c = (tcp_conn *)conn;
    c->gone = true;
    c->usable = false;
    /* After this no local buffer is touched: the responder looks at `deaf` when it has the lock. */
    if (c->threaded) pthread_mutex_lock(&c->rx_lock);
    __atomic_store_n(&c->deaf, 1, __ATOMIC_RELEASE);
    if (c->threaded) pthread_mutex_unlock(&c->rx_lock);
    if (c->is_dirty) {
        c->is_dirty = false;
        list_remove(&c->dirty_link);
        tcp_flush_conn(c);
    }
    if (c->is_awaiting) list_remove(&c->awaiting_link);
    c->is_awaiting = false;
    tcp_message *m;
    while ((m = LIST_FIRST(&c->unreleased, tcp_message, link))) {
        list_remove(&m->link);
        tcp_message_put(c, m);
    }
    tcp_conn_command(c, TCP_CMD_CLOSE);
}

int tcp_reject(fab_conn *conn, const void *priv, uint32_t priv_bytes) {
    tcp_conn *c = (tcp_conn *)conn;
    if (c->usable) return -EINVAL;
    if (tcp_tx_take(c)) {
        tcp_hello no = tcp_conn_hello(c, TCP_REJECT, TCP_REASON_USER, priv, priv_bytes);
        if (tcp_conn_state(c) == TCP_ASKED) tcp_send_hello(c, &no);
        while (tcp_tx_give(c)) continue;
    }
    tcp_disconnect(conn);
    return 0;
}
