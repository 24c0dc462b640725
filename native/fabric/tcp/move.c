/* move.c: an accepted connection goes from the responder to the CQ's thread, which drives it from then on.
 *
 * The CQ's thread asks; the responder lets go, between two rounds, and says so by MOVED, its last word. Until that has
 * come the connection is the responder's, and commands to it are held back: what the responder is told no more, nobody
 * overlooks. Whether or not the connection has ended meanwhile, it moves. */
#include <sys/epoll.h>
#include "tcp.h"

void tcp_attend(fab_conn *conn) {
    tcp_conn *c = (tcp_conn *)conn;
    if (!c->threaded || c->moving) return;
    tcp_conn_command(c, TCP_CMD_MOVE);
    c->moving = true;
}

/* ---- responder ---- */

void tcp_move_out(tcp_conn *c) {
    /* What was said last is on its way, and whoever it was said to has to begin anew in any case. */
    if (tcp_conn_state(c) == TCP_LINGER) tcp_conn_down(c, FAB_SUCCESS, false);
    if (c->fd >= 0) {
        epoll_ctl(c->io->epoll, EPOLL_CTL_DEL, c->fd, NULL);
        c->io->sockets--;
    }
    if (c->is_runnable) list_remove(&c->runnable_link);
    c->is_runnable = false;
    list_remove(&c->io_link);
    tcp_io_emit(c->io, &c->moved);
}

/* ---- the CQ's thread ---- */

static void drive(tcp_conn *c) {
    struct epoll_event e = { .events = c->armed ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = c };
    c->io->sockets++;
    c->io->attention += c->armed;
    if (epoll_ctl(c->io->epoll, EPOLL_CTL_ADD, c->fd, &e)) {
        tcp_conn_down(c, FAB_GENERAL_ERR, true);
        return;
    }
    if (c->serve_head != c->serve_tail) tcp_conn_runnable(c);
}

void tcp_move_in(tcp_conn *c) {
    uint32_t held = c->held_commands;
    c->moving = c->threaded = false;
    c->held_commands = 0;
    c->io = &((tcp_cq *)c->head.cq)->io;
    list_push(&c->io->conns, &c->io_link);
    if (c->fd >= 0) drive(c);
    if (held & TCP_CMD_FAIL) tcp_conn_command(c, TCP_CMD_FAIL);
    if (held & TCP_CMD_CLOSE) tcp_conn_command(c, TCP_CMD_CLOSE);
}
