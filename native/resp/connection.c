/* connection.c: one connection: reads while there is room, runs commands, sends what is answered.
 *
 * Sockets are watched for edges: `readable` and `writable` hold what was told until a call says that it is over.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "internal.h"

/* Commands of one connection before others have their turn. */
enum { STEPS = 512 };

/* A client whose host has gone is found out as redis-server does, after five minutes of silence and some more. */
static void set_options(int fd) {
    int on = 1, idle_s = 300, again_s = 100, times = 3;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again_s, sizeof again_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

resp_connection *connection_new(resp_server *s, int fd) {
    resp_connection *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    set_options(fd);
    c->server = s;
    c->fd = fd;
    c->id = ++s->next_id;
    c->protocol = 2;
    c->space = s->config.space;
    c->expected = SCRATCH;
    list_init(&c->link);
    list_init(&c->ready);
    list_init(&c->jobs);
    list_init(&c->again);
    resp_parser_init(&c->parser);
    return c;
}

void connection_close(resp_connection *c) {
    resp_server *s = c->server;
    if (!c->closed) {
        c->closed = true;
        close(c->fd);
        if (s->short_of_room) s->accepting = true; /* there is a descriptor again, though its calls may go on */
        resp_out_free(&c->out);
        resp_parser_free(&c->parser);
        list_remove(&c->ready);
        connection_count(c);
        c->leaves = c->calls > 0;
        if (c->leaves) s->leaving += c->counted;
    }
    if (c->calls) return;
    if (c->leaves) s->leaving -= c->counted;
    while (!list_empty(&c->jobs)) job_free(LIST_OF(c->jobs.next, resp_job, link));
    s->bytes -= c->counted;
    list_remove(&c->link);
    free(c);
    s->stats.connections--;
    if (s->closing && list_empty(&s->connections)) free(s);
}

void connection_count(resp_connection *c) {
    size_t n = c->parser.room + c->parser.argument_room * sizeof *c->parser.argument + c->out.room + c->held +
               c->queued;
    n = n > BASE_BYTES ? n - BASE_BYTES : 0;
    c->server->bytes += n - c->counted;
    c->counted = n;
}

resp_out *connection_answer(resp_connection *c) {
    resp_job *last = LIST_LAST(&c->jobs, resp_job, link);
    return last ? &last->after : &c->out;
}

/* ---- reading ---- */

/* Whether bytes came. */
static bool fill(resp_connection *c) {
    size_t room;
    if (!c->readable) return false;
    uint8_t *to = resp_parser_room(&c->parser, &room);
    if (!to) {
        c->broken = true;
        return false;
    }
    ssize_t n = recv(c->fd, to, room, 0);
    if (n > 0) {
        resp_parser_filled(&c->parser, (size_t)n);
        if ((size_t)n < room && !c->hung_up) c->readable = false; /* there was no more */
        return true;
    }
    if (n < 0 && errno == EINTR) return true;
    c->readable = false;
    if (n == 0)
        c->ending = true; /* what was asked for before is still answered */
    else if (errno != EAGAIN && errno != EWOULDBLOCK)
        c->broken = true;
    return false;
}

static void run_next(resp_connection *c) {
    resp_out *o = connection_answer(c);
    size_t before = o->room;
    bool waits = o != &c->out;
    c->server->stats.commands++;
    command_run(c);
    if (waits) c->held += o->room - before;
}

/* What is behind a walk waits for its end: see walk.c. */
static bool walks(const resp_connection *c) {
    const resp_job *last = LIST_LAST(&c->jobs, resp_job, link);
    return last && last->work->walks;
}

/* One command, or one look at the socket. False: nothing can be done now. */
static bool step(resp_connection *c) {
    if (c->issuing) return job_issue(c);
    if (c->ending || c->broken || job_full(c, 0)) return false;
    if (c->queued > QUEUED_MAX || !list_empty(&c->again) || walks(c)) return false;
    resp_parsed r = resp_parser_next(&c->parser);
    if (r == RESP_MORE) return fill(c);
    if (r == RESP_COMMAND) {
        run_next(c);
        return true;
    }
    resp_out *o = connection_answer(c);
    size_t before = o->room;
    if (r == RESP_BAD)
        resp_error(o, "ERR %s", c->parser.error);
    else
        answer_failure(o, FKV_NO_MEMORY);
    if (o != &c->out) c->held += o->room - before;
    c->ending = true;
    return false;
}

/* ---- writing ---- */

/* Whether some was sent. */
static bool send_out(resp_connection *c) {
    size_t sent = 0;
    while (resp_out_bytes(&c->out) && c->writable) {
        ssize_t n = send(c->fd, c->out.bytes + c->out.from, resp_out_bytes(&c->out), MSG_NOSIGNAL);
        if (n > 0) {
            resp_out_took(&c->out, (size_t)n);
            sent += (size_t)n;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else {
            c->writable = false;
            c->broken = n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
        }
    }
    return sent > 0;
}

void connection_run(resp_connection *c) {
    bool more = true;
    int left = STEPS;
    while (more && !c->broken && left > 0) {
        job_retry(c);
        while (left > 0 && step(c)) left--;
        more = job_drain(c);
        if (c->out.failed) { /* its last reply is not whole: no byte of it may go out */
            c->broken = true;
            break;
        }
        if (send_out(c)) more = true;
    }
    if (left <= 0) server_ready(c);
    connection_count(c);
    bool done = c->ending && list_empty(&c->jobs) && !resp_out_bytes(&c->out);
    if (c->broken || done) connection_close(c);
}
