/* link.c: the agent's side of a connection: its socket, the handshake, frames, its end. All of it runs in the agent's
 * thread, but for shm_conn_new. Frames come from a process that is not trusted: what is out of place ends the
 * connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../base/hash.h"
#include "shm.h"

enum { FRAME_BATCH = 16, CONNECT_AGAIN_MS = 5 };
#define UNREACHED_QUIET_NS UINT64_C(60000000000)

shm_conn *shm_conn_new(shm_domain *d, shm_cq *q, int side) {
    shm_conn *c = aligned_alloc(alignof(shm_conn), sizeof *c);
    if (!c) return NULL;
    memset(c, 0, sizeof *c);
    fab_conn_init(&c->head, q->head.ops, &q->head, NULL);
    c->domain = d;
    c->cq = q;
    c->side = side;
    c->bell = -1;
    c->active_at = UINT32_MAX;
    c->state = side == 0 ? SHM_CONNECTING : SHM_ASKED;
    shm_list_init(&c->attached);
    shm_list_init(&c->news.attached);
    shm_list_init(&c->orders.attach);
    shm_list_init(&c->orders.detach);
    shm_list_init(&c->link.asked);
    shm_list_init(&c->link.waiting);
    c->link.source = SHM_SOURCE_CONN;
    c->link.timer.source = &c->link.source;
    c->link.fd = c->link.rings_fd = c->link.peer_bell_fd = -1;
    atomic_fetch_add(&q->refs, 1);
    return c;
}

static void enlist(shm_conn *c) {
    shm_domain *d = c->domain;
    c->link.next = d->conns;
    if (d->conns) d->conns->link.prev = c;
    d->conns = c;
}

/* ---- the end ---- */

static void close_socket(shm_conn *c) {
    shm_timer_clear(&c->link.timer);
    if (c->link.fd < 0) return;
    close(c->link.fd); /* which also takes it out of epoll: nobody else holds the description */
    c->link.fd = -1;
}

void shm_link_fail(shm_conn *c, fab_wc_status status) {
    shm_link_state was = c->link.state;
    if (was == SHM_LINK_DOWN) return;
    if (was == SHM_LINK_HELLO) { /* the user never heard of it */
        shm_link_end(c);
        return;
    }
    c->link.state = SHM_LINK_DOWN;
    close_socket(c);
    shm_attach_fail_all(c, FAB_WR_FLUSH_ERR);
    shm_post(c, was == SHM_LINK_RETRY || was == SHM_LINK_WELCOME ? SHM_NEWS_CONNECT | SHM_NEWS_GONE : SHM_NEWS_GONE,
             status);
}

void shm_link_end(shm_conn *c) {
    shm_domain *d = c->domain;
    if (c->link.state == SHM_LINK_HELLO) c->listener->silent--;
    if (c->listener) c->listener->conns--;
    c->link.state = SHM_LINK_DOWN;
    close_socket(c);
    if (c->link.prev)
        c->link.prev->link.next = c->link.next;
    else
        d->conns = c->link.next;
    if (c->link.next) c->link.next->link.prev = c->link.prev;
    c->link.next = d->dead;
    d->dead = c;
}

static void free_list(shm_list *l) {
    shm_attachment *a;
    while ((a = shm_list_pop(l)) != NULL) shm_attachment_free(a);
}

void shm_conn_free(shm_conn *c) {
    free_list(&c->attached);
    free_list(&c->news.attached);
    free_list(&c->orders.attach);
    free_list(&c->orders.detach);
    free_list(&c->link.asked);
    free_list(&c->link.waiting);
    shm_table_free(&c->table);
    shm_exports_free(c);
    free(c->link.released);
    shm_rings_free(c);
    if (c->listener) shm_listener_unref(c->listener);
    shm_cq_unref(c->cq);
    free(c);
}

/* ---- frames ---- */

bool shm_link_send(shm_conn *c, const shm_frame *f, const int *fds, int n, bool *full) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * SHM_FRAME_FDS)];
    } control = { 0 };
    struct iovec iov = { (void *)(uintptr_t)f, sizeof *f };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    if (n > 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n);
        control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SCM_RIGHTS,
                                           .cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n) };
        memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * (size_t)n);
    }
    if (sendmsg(c->link.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
    if (full && errno == EAGAIN) *full = true;
    return false;
}

typedef enum { FRAME_NONE, FRAME_WHOLE, FRAME_END, FRAME_GARBAGE } frame_kind;

static frame_kind receive(shm_conn *c, shm_frame *f, int fds[SHM_FRAME_FDS], int *n) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * SHM_FRAME_FDS)];
    } control;
    struct iovec iov = { f, sizeof *f };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    *n = 0;
    ssize_t got;
    /* A peer that closes with unread frames resets the socket; what it sent before is still there behind the error. */
    do got = recvmsg(c->link.fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0) return errno == EAGAIN ? FRAME_NONE : FRAME_END;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
        *n = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(h), sizeof(int) * (size_t)*n);
    }
    if (got == 0 && *n == 0) return FRAME_END;
    bool sound = got == (ssize_t)sizeof *f && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && f->magic == SHM_MAGIC;
    return sound ? FRAME_WHOLE : FRAME_GARBAGE;
}

void shm_link_watch(shm_conn *c, uint32_t events) {
    if (c->link.events == events) return;
    struct epoll_event e = { .events = events, .data.ptr = &c->link.source };
    epoll_ctl(c->domain->epoll, c->link.events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->link.fd, &e);
    c->link.events = events;
}

/* ---- acceptor ---- */

void shm_link_accepted(shm_listener *l, int fd) {
    shm_conn *c = shm_conn_new(l->domain, l->cq, 1);
    if (!c) {
        close(fd);
        return;
    }
    c->listener = l;
    atomic_fetch_add(&l->refs, 1);
    l->conns++;
    l->silent++;
    c->link.fd = fd;
    c->link.state = SHM_LINK_HELLO;
    enlist(c);
    shm_link_watch(c, EPOLLIN);
    shm_timer_set(c->domain, &c->link.timer, fkv_now_ns() + c->domain->options.handshake_ms * 1000000ull);
}

static void keep_private(shm_conn *c, const shm_frame *f) {
    c->news.priv_bytes = f->count; /* before it is posted, so nobody else looks */
    memcpy(c->news.priv, f->priv, f->count);
}

static void reject(shm_conn *c, const uint8_t *priv, uint32_t priv_bytes) {
    shm_frame f = { .magic = SHM_MAGIC, .type = SHM_REJECT, .count = priv_bytes };
    if (priv_bytes) memcpy(f.priv, priv, priv_bytes);
    if (c->link.fd >= 0) shm_link_send(c, &f, NULL, 0, NULL);
}

/* The descriptors of the rings are opened last. */
static int make_rings(shm_conn *c) {
    int e = shm_rings_make(c);
    return e == 0 && fab_descriptors_scarce(&c->domain->options, c->link.peer_bell_fd) ? -EMFILE : e;
}

static bool on_hello(shm_conn *c, const shm_frame *f) {
    if (f->type != SHM_HELLO || f->count > FAB_PRIVATE_MAX) return false;
    if (f->version_min > SHM_VERSION_MAX || f->version_max < SHM_VERSION_MIN || f->max_message < FAB_MESSAGE_MIN)
        return false;
    shm_listener *l = c->listener;
    if (l->conns - l->silent >= c->domain->options.max_conns) {
        fab_log(&c->domain->options, FAB_LOG_WARNING, "shm: %s: refused a connection: there are %u", l->path, l->conns);
        reject(c, NULL, 0);
        shm_link_end(c);
        return true;
    }
    uint32_t own = c->domain->options.max_message;
    c->max_message = f->max_message < own ? f->max_message : own;
    c->ring_bytes = shm_ring_bytes_for(c->max_message);
    int e = make_rings(c);
    if (e) {
        errno = -e;
        fab_log(&c->domain->options, FAB_LOG_ERROR, "shm: no memory or descriptors for a connection: %m");
        shm_link_fail(c, FAB_GENERAL_ERR);
        return true;
    }
    keep_private(c, f);
    shm_timer_clear(&c->link.timer);
    l->silent--;
    c->link.state = SHM_LINK_ASKED;
    shm_post(c, SHM_NEWS_ACCEPT, FAB_SUCCESS);
    return true;
}

static void welcome(shm_conn *c, const uint8_t *priv, uint32_t priv_bytes) {
    if (c->link.state != SHM_LINK_ASKED) return;
    shm_frame f = { .magic = SHM_MAGIC,
                    .type = SHM_WELCOME,
                    .version_min = SHM_VERSION_MAX,
                    .version_max = SHM_VERSION_MAX,
                    .max_message = c->max_message,
                    .ring_bytes = c->ring_bytes,
                    .count = priv_bytes };
    memcpy(f.priv, priv, priv_bytes);
    int fds[SHM_FRAME_FDS] = { c->link.rings_fd, c->link.peer_bell_fd };
    c->link.state = SHM_LINK_UP;
    if (!shm_link_send(c, &f, fds, SHM_FRAME_FDS, NULL)) {
        shm_link_fail(c, FAB_RETRY_EXC_ERR);
        return;
    }
    close(c->link.rings_fd);
    close(c->link.peer_bell_fd);
    c->link.rings_fd = c->link.peer_bell_fd = -1;
    shm_rings_populate(c);
}

/* ---- connector ---- */

/* NULL: nothing is remembered of it. */
static struct shm_unreached *unreached_of(const shm_conn *c, uint32_t path_crc) {
    for (struct shm_unreached *u = c->domain->unreached, *end = u + SHM_UNREACHED; u < end; u++)
        if (u->said_ns && u->path_crc == path_crc) return u;
    return NULL;
}
static struct shm_unreached *oldest_unreached(const shm_conn *c) {
    struct shm_unreached *oldest = c->domain->unreached;
    for (struct shm_unreached *u = oldest, *end = u + SHM_UNREACHED; u < end; u++)
        if (u->said_ns < oldest->said_ns) oldest = u;
    return oldest;
}
static uint32_t crc_of(const char *path) { return fkv_crc32c(0, path, strlen(path)); }

/* Whoever connects tries again and again: it is said at first, when the reason is another one, and once a minute. */
static void say_unreached(const shm_conn *c, int error) {
    uint32_t crc = crc_of(c->path);
    struct shm_unreached *u = unreached_of(c, crc);
    uint64_t now_ns = fkv_now_ns();
    if (u && u->error == error && now_ns - u->said_ns < UNREACHED_QUIET_NS) return;
    if (!u) u = oldest_unreached(c);
    *u = (struct shm_unreached){ .said_ns = now_ns, .path_crc = crc, .error = error };
    fab_log(&c->domain->options, FAB_LOG_INFO, "shm: %s: connect: %s", c->path, strerror(error));
}
static void reached(const shm_conn *c) {
    struct shm_unreached *u = unreached_of(c, crc_of(c->path));
    if (u) u->said_ns = 0;
}

static void try_connect(shm_conn *c, const uint8_t *priv, uint32_t priv_bytes) {
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    strcpy(a.sun_path, c->path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    c->link.state = SHM_LINK_RETRY;
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0) {
        int error = errno;
        if (fd >= 0) close(fd);
        if (error == EAGAIN) { /* the owner's backlog is full */
            shm_timer_set(c->domain, &c->link.timer, fkv_now_ns() + CONNECT_AGAIN_MS * 1000000ull);
        } else {
            say_unreached(c, error);
            shm_link_fail(c, error == EACCES || error == EPERM ? FAB_REM_ACCESS_ERR : FAB_RETRY_EXC_ERR);
        }
        return;
    }
    reached(c);
    c->link.fd = fd;
    c->link.state = SHM_LINK_WELCOME;
    shm_frame f = { .magic = SHM_MAGIC,
                    .type = SHM_HELLO,
                    .version_min = SHM_VERSION_MIN,
                    .version_max = SHM_VERSION_MAX,
                    .max_message = c->domain->options.max_message,
                    .count = priv_bytes };
    memcpy(f.priv, priv, priv_bytes);
    if (!shm_peer_trusted(fd)) {
        fab_log(&c->domain->options, FAB_LOG_WARNING, "shm: %s belongs to another user", c->path);
        shm_link_fail(c, FAB_REM_ACCESS_ERR);
    } else {
        /* if the owner hung up already, what it said before is still to be read */
        shm_link_send(c, &f, NULL, 0, NULL);
        shm_link_watch(c, EPOLLIN);
        shm_timer_set(c->domain, &c->link.timer, c->link.deadline_ns);
    }
}

static bool on_welcome(shm_conn *c, const shm_frame *f, int *fds, int n) {
    if (f->count > FAB_PRIVATE_MAX) return false;
    if (f->type == SHM_REJECT) {
        keep_private(c, f);
        shm_link_fail(c, FAB_REM_ACCESS_ERR);
        return true;
    }
    bool sound = f->type == SHM_WELCOME && n == SHM_FRAME_FDS && f->version_min == f->version_max &&
                 f->version_max >= SHM_VERSION_MIN && f->version_max <= SHM_VERSION_MAX &&
                 f->max_message >= FAB_MESSAGE_MIN && f->max_message <= c->domain->options.max_message &&
                 f->ring_bytes >= SHM_RING_MIN && f->ring_bytes <= SHM_RING_MAX &&
                 (f->ring_bytes & (f->ring_bytes - 1)) == 0 && f->ring_bytes / 4 >= shm_record_bytes(f->max_message);
    if (!sound) return false;
    c->max_message = f->max_message;
    c->ring_bytes = f->ring_bytes;
    int e = shm_rings_map(c, fds[0], fds[1]);
    if (c->bell >= 0) fds[1] = -1; /* kept */
    if (e) {
        if (e == -EPROTO) return false;
        shm_link_fail(c, FAB_GENERAL_ERR);
        return true;
    }
    shm_rings_populate(c);
    keep_private(c, f);
    shm_timer_clear(&c->link.timer);
    c->link.state = SHM_LINK_UP;
    shm_post(c, SHM_NEWS_CONNECT, FAB_SUCCESS);
    return true;
}

/* ---- events ---- */

/* False: garbage. Descriptors that were taken are set to -1. */
static bool on_frame(shm_conn *c, const shm_frame *f, int *fds, int n) {
    if (f->type == SHM_BYE) {
        shm_link_fail(c, f->status == 0 && c->link.state != SHM_LINK_WELCOME ? FAB_SUCCESS : FAB_REM_OP_ERR);
        return true;
    }
    if (n != 0 && f->type != SHM_WELCOME && f->type != SHM_ATTACHED) return false;
    switch (c->link.state) {
    case SHM_LINK_HELLO: return on_hello(c, f);
    case SHM_LINK_WELCOME: return on_welcome(c, f, fds, n);
    case SHM_LINK_UP: break;
    default: return false;
    }
    switch (f->type) {
    case SHM_ATTACH: return shm_attach_request(c, f);
    case SHM_ATTACHED: return n <= 1 && shm_attach_reply(c, f, n == 1 ? fds[0] : -1);
    case SHM_DETACH: return shm_detach_request(c, f);
    default: return false;
    }
}

void shm_link_ready(shm_conn *c, uint32_t events) {
    if (c->link.state == SHM_LINK_DOWN) return; /* ended earlier in this batch */
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) && c->link.state == SHM_LINK_UP) shm_attach_write(c);
    for (int i = 0; i < FRAME_BATCH && c->link.state != SHM_LINK_DOWN && !c->link.holds; i++) {
        shm_frame f;
        int fds[SHM_FRAME_FDS] = { -1, -1 }, n = 0;
        frame_kind kind = receive(c, &f, fds, &n);
        if (kind == FRAME_NONE) return;
        if (kind == FRAME_END) {
            shm_link_fail(c, FAB_RETRY_EXC_ERR);
        } else if (kind == FRAME_GARBAGE || !on_frame(c, &f, fds, n)) {
            fab_log(&c->domain->options, FAB_LOG_WARNING, "shm: cut off a peer that sent garbage");
            shm_link_fail(c, FAB_GENERAL_ERR);
        }
        for (int j = 0; j < n; j++)
            if (fds[j] >= 0) close(fds[j]);
    }
}

void shm_link_timer(shm_conn *c) {
    switch (c->link.state) {
    case SHM_LINK_RETRY:
        if (fkv_now_ns() >= c->link.deadline_ns)
            shm_link_fail(c, FAB_RESP_TIMEOUT_ERR);
        else
            try_connect(c, c->orders.priv, c->orders.priv_bytes); /* written once, before CONNECT was ordered */
        break;
    case SHM_LINK_HELLO:
    case SHM_LINK_WELCOME: shm_link_fail(c, FAB_RESP_TIMEOUT_ERR); break;
    case SHM_LINK_UP: shm_attach_timer(c); break;
    default: break;
    }
}

static void say_bye(shm_conn *c, bool broken) {
    if (c->link.fd < 0) return;
    shm_frame f = { .magic = SHM_MAGIC, .type = SHM_BYE, .status = broken };
    shm_link_send(c, &f, NULL, 0, NULL);
}

void shm_link_orders(shm_conn *c) {
    shm_list attach, detach;
    shm_list_init(&attach);
    shm_list_init(&detach);
    pthread_mutex_lock(&c->domain->lock);
    unsigned bits = c->orders.bits;
    bool broken = c->orders.broken;
    c->orders.bits = 0;
    shm_list_move(&attach, &c->orders.attach);
    shm_list_move(&detach, &c->orders.detach);
    pthread_mutex_unlock(&c->domain->lock);
    if (bits & SHM_ORDER_CONNECT) {
        enlist(c);
        c->link.deadline_ns = fkv_now_ns() + c->domain->options.handshake_ms * 1000000ull;
        if (!(bits & SHM_ORDER_CLOSE)) try_connect(c, c->orders.priv, c->orders.priv_bytes);
    }
    if (bits & SHM_ORDER_ACCEPT) welcome(c, c->orders.priv, c->orders.priv_bytes);
    if (bits & SHM_ORDER_REJECT) reject(c, c->orders.priv, c->orders.priv_bytes);
    shm_attach_orders(c, &attach, &detach);
    if (bits & SHM_ORDER_HANGUP) {
        say_bye(c, true);
        shm_link_fail(c, FAB_WR_FLUSH_ERR);
    }
    if (bits & SHM_ORDER_CLOSE) {
        if (!(bits & SHM_ORDER_REJECT)) say_bye(c, broken);
        shm_link_end(c);
    }
}
