/* server.c: see server.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "internal.h"

enum { EVENTS = 64, ACCEPTS = 64 };

fkv_status resp_server_create(const resp_server_config *config, resp_server **out) {
    resp_server *s = calloc(1, sizeof *s);
    int epoll = s ? epoll_create1(EPOLL_CLOEXEC) : -1;
    struct epoll_event e = { .events = EPOLLIN | EPOLLET, .data.ptr = NULL };
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, config->listen, &e) != 0) {
        close(config->listen);
        if (epoll >= 0) close(epoll);
        free(s);
        return FKV_NO_MEMORY;
    }
    s->config = *config;
    s->epoll = epoll;
    list_init(&s->connections);
    list_init(&s->ready);
    list_init(&s->starved);
    *out = s;
    return FKV_OK;
}

int resp_server_fd(const resp_server *s) { return s->epoll; }
resp_server_stats resp_server_get_stats(const resp_server *s) { return s->stats; }

void server_ready(resp_connection *c) {
    if (c->closed) return;
    list_remove(&c->ready);
    list_push(&c->server->ready, &c->ready);
}

void server_starved(resp_connection *c) {
    list_remove(&c->ready);
    list_push(&c->server->starved, &c->ready);
}

/* ---- accepting ---- */

static void refuse(resp_server *s, int fd) {
    static const char text[] = "-ERR max number of clients reached\r\n";
    s->stats.refused++;
    if (send(fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) errno = 0; /* it is closed anyway */
    close(fd);
}

static void admit(resp_server *s, int fd) {
    resp_connection *c = s->stats.connections < s->config.max_connections ? connection_new(s, fd) : NULL;
    struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c };
    if (!c || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
        free(c);
        refuse(s, fd);
        return;
    }
    s->stats.connections++;
    s->stats.accepted++;
    list_push(&s->connections, &c->link);
}

/* Without a descriptor it is tried again when a connection has been closed. */
static void accept_some(resp_server *s) {
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(s->config.listen, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            admit(s, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED) continue;
        s->accepting = false;
        s->short_of_room = errno != EAGAIN && errno != EWOULDBLOCK;
        return;
    }
}

/* ---- turns ---- */

static void look(resp_server *s) {
    struct epoll_event e[EVENTS];
    int n = epoll_wait(s->epoll, e, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        resp_connection *c = e[i].data.ptr;
        if (!c) {
            s->accepting = true;
            continue;
        }
        if (e[i].events & (EPOLLIN | EPOLLRDHUP)) c->readable = true;
        if (e[i].events & EPOLLOUT) c->writable = true;
        if (e[i].events & EPOLLRDHUP) c->hung_up = true;
        if (e[i].events & (EPOLLHUP | EPOLLERR)) c->broken = true;
        server_ready(c);
    }
}

/* What is held beyond the bound. Of that which goes once the last calls of closed connections have ended there may be
 * as much again: others are not closed for it. */
static bool holds_too_much(const resp_server *s) {
    uint64_t most = s->config.memory_max;
    return s->bytes - (s->leaving < most ? s->leaving : most) > most;
}

/* As redis-server with maxmemory-clients: better one connection than the process. */
static void close_largest(resp_server *s) {
    resp_connection *largest = NULL;
    for (fkv_list *l = s->connections.next; l != &s->connections; l = l->next) {
        resp_connection *c = LIST_OF(l, resp_connection, link);
        if (!c->closed && (!largest || c->counted > largest->counted)) largest = c;
    }
    if (!largest || !largest->counted) return;
    s->stats.evicted++;
    connection_close(largest);
}

bool resp_server_turn(resp_server *s) {
    fkv_list now;
    look(s);
    if (s->accepting) accept_some(s);
    list_take_all(&s->ready, &now);
    while (!list_empty(&now)) {
        resp_connection *c = LIST_OF(now.next, resp_connection, ready);
        list_remove(&c->ready);
        connection_run(c);
        if (holds_too_much(s)) close_largest(s);
    }
    return s->accepting || !list_empty(&s->ready);
}

void resp_server_end(resp_server *s) {
    if (s->config.listen >= 0) close(s->config.listen); /* who comes now is refused, and does not wait for an answer */
    s->config.listen = -1;
    s->accepting = s->short_of_room = false;
    for (fkv_list *l = s->connections.next; l != &s->connections; l = l->next) {
        resp_connection *c = LIST_OF(l, resp_connection, link);
        c->ending = true;
        server_ready(c);
    }
}

void resp_server_close(resp_server *s) {
    s->closing = true;
    if (s->config.listen >= 0) close(s->config.listen);
    close(s->epoll);
    bool last = list_empty(&s->connections);
    for (fkv_list *l = s->connections.next, *next; !last && l != &s->connections; l = next) {
        next = l->next;
        last = next == &s->connections;
        connection_close(LIST_OF(l, resp_connection, link)); /* the last may free the server */
        if (last) return;
    }
    if (last) free(s);
}
