/* listen.c: the socket file of a shm listener, and accepting.
 *
 * The file's mode is 0600 from its first moment: the mode of a socket file is that of the socket, which is set before
 * bind(). A file that a killed owner left behind is recognised by its refusing connections, and removed; one that
 * answers is in use. Looking, removing and binding happen under a lock on the directory, so that two owners that start
 * at once over the same stale file do not remove each other's. The file is unlinked on close, if it still is this
 * listener's.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "shm.h"

enum { BACKLOG = 1024, ACCEPT_BATCH = 16, LOCK_TRIES = 100, LOCK_WAIT_MS = 5, ACCEPT_AGAIN_MS = 50 };
static_assert(sizeof((struct sockaddr_un){ 0 }.sun_path) == 108, "paths of this file have the same size");

int shm_parse_address(const char *address, char path[108]) {
    static const char scheme[] = "unix:";
    if (strncmp(address, scheme, sizeof scheme - 1) != 0) return -EINVAL;
    address += sizeof scheme - 1;
    if (address[0] != '/') return -EINVAL; /* other processes use it too, and they may be in other directories */
    if (strlen(address) >= 108) return -ENAMETOOLONG;
    strcpy(path, address);
    return 0;
}

static struct sockaddr_un sockaddr_of(const char *path) {
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    strcpy(a.sun_path, path);
    return a;
}

bool shm_peer_trusted(int fd) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

/* True when `path` is the socket of an owner that no longer lives. */
static bool is_stale(const char *path) {
    struct stat s;
    if (lstat(path, &s) != 0 || !S_ISSOCK(s.st_mode)) return false;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    struct sockaddr_un a = sockaddr_of(path);
    bool refused = connect(fd, (struct sockaddr *)&a, sizeof a) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

/* Returns a descriptor that holds the lock, or a negative errno. */
static int lock_directory(const char *path) {
    char dir[108];
    strcpy(dir, path);
    char *slash = strrchr(dir, '/');
    slash[slash == dir] = 0;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (i == LOCK_TRIES) {
            close(fd);
            return -EBUSY;
        }
        nanosleep(&(struct timespec){ .tv_nsec = LOCK_WAIT_MS * 1000000 }, NULL);
    }
    return fd;
}

static int bind_socket(shm_listener *l) {
    struct sockaddr_un a = sockaddr_of(l->path);
    if (fchmod(l->fd, 0600) != 0) return -errno;
    if (bind(l->fd, (struct sockaddr *)&a, sizeof a) != 0) {
        if (errno != EADDRINUSE) return -errno;
        if (!is_stale(l->path)) return -EADDRINUSE;
        if (unlink(l->path) != 0) return -errno;
        if (bind(l->fd, (struct sockaddr *)&a, sizeof a) != 0) return -errno;
    }
    struct stat s;
    int e = listen(l->fd, BACKLOG) != 0 || lstat(l->path, &s) != 0 ? -errno : 0;
    if (e) {
        unlink(l->path);
        return e;
    }
    l->device = s.st_dev;
    l->inode = s.st_ino;
    return 0;
}

static void unlink_own(const shm_listener *l) {
    struct stat s;
    if (lstat(l->path, &s) == 0 && s.st_dev == l->device && s.st_ino == l->inode) unlink(l->path);
}

static int start(shm_listener *l) {
    l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0) return -errno;
    int lock = lock_directory(l->path);
    int e = lock < 0 ? lock : bind_socket(l);
    if (lock >= 0) close(lock);
    if (e == 0) {
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = &l->source };
        if (epoll_ctl(l->domain->epoll, EPOLL_CTL_ADD, l->fd, &event) != 0) {
            e = -errno;
            unlink_own(l);
        }
    }
    if (e) close(l->fd);
    return e;
}

int shm_listen(fab_cq *q, const char *address, fab_listener **out) {
    shm_listener *l = calloc(1, sizeof *l);
    if (!l) return -ENOMEM;
    l->source = SHM_SOURCE_LISTENER;
    l->timer.source = &l->source;
    l->cq = (shm_cq *)q;
    l->domain = l->cq->domain;
    atomic_init(&l->refs, 1);
    snprintf(l->head.address, sizeof l->head.address, "%s", address);
    int e = shm_parse_address(address, l->path);
    if (e == 0) e = start(l);
    if (e)
        free(l);
    else
        *out = &l->head;
    return e;
}

void shm_listener_unref(shm_listener *l) {
    if (atomic_fetch_sub(&l->refs, 1) == 1) free(l);
}

/* Connections that were accepted but not yet shown to the user go with the listener; the user could not free them. */
static void drop_unseen(shm_listener *l) {
    shm_cq *q = l->cq;
    for (;;) {
        shm_conn *found = NULL;
        pthread_mutex_lock(&q->lock);
        for (shm_conn *c = q->news; c && !found; c = c->news.next) {
            if (c->listener == l && (c->news.bits & SHM_NEWS_ACCEPT)) found = c;
        }
        pthread_mutex_unlock(&q->lock);
        for (shm_conn *c = q->announce; c && !found; c = c->next_announced) {
            if (c->listener == l && (c->announce & SHM_NEWS_ACCEPT)) found = c;
        }
        if (!found) return;
        shm_drop(found);
    }
}

void shm_unlisten(fab_listener *base) {
    shm_listener *l = (shm_listener *)base;
    shm_domain *d = l->domain;
    pthread_mutex_lock(&d->lock);
    l->next_closing = d->closing;
    d->closing = l;
    shm_agent_wake(d);
    while (!l->closed) pthread_cond_wait(&d->listener_closed, &d->lock);
    pthread_mutex_unlock(&d->lock);
    drop_unseen(l);
    shm_listener_unref(l);
}

/* ---- in the agent ---- */

/* The list of timers has them in the order in which they came. */
static bool end_oldest_silent(void *ctx) {
    shm_listener *l = ctx;
    const shm_domain *d = l->domain;
    for (shm_timer *t = d->timers.next; t != &d->timers; t = t->next) {
        shm_conn *c = *t->source == SHM_SOURCE_CONN ? shm_conn_of(t->source) : NULL;
        if (!c || c->listener != l || c->link.state != SHM_LINK_HELLO) continue;
        shm_link_end(c);
        return true;
    }
    return false;
}

/* The listener stays readable: it is not looked at for a while, instead of spinning. */
static void rest(shm_listener *l) {
    fab_log(&l->domain->options, FAB_LOG_ERROR, "shm: %s: accept: %m", l->path);
    epoll_ctl(l->domain->epoll, EPOLL_CTL_MOD, l->fd, &(struct epoll_event){ .data.ptr = &l->source });
    shm_timer_set(l->domain, &l->timer, fkv_now_ns() + ACCEPT_AGAIN_MS * 1000000ull);
}

/* A descriptor, or -1 with an errno. */
static int accept_one(shm_listener *l) {
    int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), error = errno;
    if (fd >= 0) {
        fd = fab_descriptor_or_none(&l->domain->options, fd, end_oldest_silent, l);
        error = EMFILE;
    } else if (error == EMFILE || error == ENFILE) {
        end_oldest_silent(l);
    }
    errno = error;
    return fd;
}

void shm_listener_ready(shm_listener *l) {
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept_one(l);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) rest(l);
            return;
        }
        if (!shm_peer_trusted(fd)) {
            fab_log(&l->domain->options, FAB_LOG_WARNING, "shm: %s: refused a process of another user", l->path);
            close(fd);
        } else {
            if (l->silent >= SHM_SILENT) end_oldest_silent(l);
            shm_link_accepted(l, fd);
        }
    }
}

void shm_listener_timer(shm_listener *l) {
    epoll_ctl(l->domain->epoll, EPOLL_CTL_MOD, l->fd,
              &(struct epoll_event){ .events = EPOLLIN, .data.ptr = &l->source });
}

void shm_listener_close(shm_listener *l) {
    shm_domain *d = l->domain;
    shm_timer_clear(&l->timer);
    unlink_own(l); /* before closing: until then no other owner takes the name */
    close(l->fd);
    for (shm_conn *c = d->conns, *next; c; c = next) {
        next = c->link.next;
        if (c->listener == l && c->link.state == SHM_LINK_HELLO) shm_link_end(c);
    }
    pthread_mutex_lock(&d->lock);
    l->closed = true;
    pthread_cond_broadcast(&d->listener_closed);
    pthread_mutex_unlock(&d->lock);
}
