/* cm.c: connections by rdma_cm addresses, so that InfiniBand, RoCE and iWARP are one code path; rdma_cm chooses device,
 * port and GID by routing.
 *
 *   client:  resolve address -> resolve route -> queue pair -> connect -> ESTABLISHED (or REJECTED, with private data)
 *   owner:   CONNECT_REQUEST -> FAB_WC_ACCEPT -> fab_accept: queue pair, accept -> ESTABLISHED
 *
 * The CM thread (events.c) hands copies of events over; each step is taken by the completion queue's
 * thread, but for rdma_connect, which may wait (dial.c).
 */
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "../../base/clock.h"

enum { BACKLOG = 1024 }; /* kept by the kernel for the CM thread, which takes them at once */

/* ---- addresses ---- */

static int parse(const char *text, struct sockaddr_storage *out) {
    char host[FAB_ADDRESS_MAX];
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text) return -EINVAL;
    size_t n = (size_t)(colon - text);
    if (text[0] == '[' && text[n - 1] == ']')
        snprintf(host, sizeof host, "%.*s", (int)n - 2, text + 1);
    else
        snprintf(host, sizeof host, "%.*s", (int)n, text);
    struct addrinfo hints = { .ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM }, *found;
    if (getaddrinfo(host, colon + 1, &hints, &found)) return -EADDRNOTAVAIL;
    memset(out, 0, sizeof *out);
    memcpy(out, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

/* ---- listening ---- */

int verbs_listen(fab_cq *queue, const char *address, fab_listener **out) {
    verbs_cq *cq = (verbs_cq *)queue;
    const verbs_lib *v = cq->d->v;
    struct sockaddr_storage at;
    int e = parse(address, &at);
    if (e) return e;
    verbs_listener *l = calloc(1, sizeof *l);
    if (!l) return -ENOMEM;
    l->context.cq = cq;
    if (v->rdma_create_id(cq->d->events, &l->id, &l->context, RDMA_PS_TCP)) {
        e = -errno;
        free(l);
        return e;
    }
    if (v->rdma_bind_addr(l->id, (struct sockaddr *)&at)) e = -errno;
    /* An address that names no device (0.0.0.0) would bring connections of several, whose rkeys differ. */
    if (e == 0) e = verbs_device_of(cq->d, l->id->verbs);
    if (e == 0) e = verbs_cq_device(cq, true);
    if (e == 0) cq->listens = true;
    if (e == 0 && v->rdma_listen(l->id, BACKLOG)) e = -errno;
    if (e) {
        fab_log(&queue->domain->options, FAB_LOG_ERROR,
                "verbs: cannot listen on %s: %s; name an address of an RDMA device", address, strerror(-e));
        v->rdma_destroy_id(l->id);
        free(l);
        return e;
    }
    char host[FAB_ADDRESS_MAX - 16];
    snprintf(host, sizeof host, "%.*s", (int)(strrchr(address, ':') - address), address);
    snprintf(l->head.address, sizeof l->head.address, "%s:%u", host, (unsigned)ntohs(v->rdma_get_src_port(l->id)));
    *out = &l->head;
    return 0;
}

void verbs_unlisten(fab_listener *listener) {
    verbs_listener *l = (verbs_listener *)listener;
    verbs_cq *cq = l->context.cq;
    /* returns when its events are acknowledged: all that it will ever have are queued */
    cq->d->v->rdma_destroy_id(l->id);
    verbs_event *e, **at = &cq->first_event, *turned_away = NULL;
    pthread_mutex_lock(&cq->lock);
    while ((e = *at)) {
        if (e->listener != &l->context) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        e->next = turned_away;
        turned_away = e;
    }
    cq->last_event = at;
    atomic_store(&cq->has_events, cq->first_event != NULL);
    pthread_mutex_unlock(&cq->lock);
    while ((e = turned_away)) { /* peers that nobody has seen yet */
        turned_away = e->next;
        verbs_turn_away(cq, e);
    }
    free(l);
}

/* ---- set-up of a connection ---- */

static void parameters(const verbs_conn *c, struct rdma_conn_param *p, uint8_t *room) {
    memcpy(room, &c->mine, sizeof c->mine);
    memcpy(room + sizeof c->mine, c->private_data, c->private_bytes);
    *p = (struct rdma_conn_param){
        .private_data = room,
        .private_data_len = (uint8_t)(sizeof c->mine + c->private_bytes),
        /* as many as device and peer have */
        .responder_resources = RDMA_MAX_RESP_RES,
        .initiator_depth = RDMA_MAX_INIT_DEPTH,
        .retry_count = VERBS_RETRIES,
        .rnr_retry_count = VERBS_RNR_RETRIES,
        .flow_control = 1,
    };
}

static void private_set(verbs_conn *c, const void *priv, uint32_t bytes) {
    uint32_t message = c->cq->d->head.options.max_message;
    c->mine = (verbs_private){
        .magic = VERBS_MAGIC,
        .version = VERBS_VERSION,
        .bytes = (uint8_t)bytes,
        .credits = (uint8_t)c->cq->credits,
        .message_high = (uint8_t)(message >> 16),
        .message_low = (uint16_t)message,
    };
    if (bytes) memcpy(c->private_data, priv, bytes);
    c->private_bytes = bytes;
}

/* Hostile until checked: false unless this provider's version wrote it. */
static bool private_of_peer(verbs_conn *c, const verbs_event *e) {
    verbs_private p;
    if (e->private_bytes < sizeof p) return false;
    memcpy(&p, e->private_data, sizeof p);
    if (p.magic != VERBS_MAGIC || p.version != VERBS_VERSION || p.bytes > FAB_PRIVATE_MAX ||
        sizeof p + p.bytes > e->private_bytes)
        return false;
    uint32_t theirs = (uint32_t)p.message_high << 16 | p.message_low, ours = c->cq->d->head.options.max_message;
    if (p.credits == 0 || theirs < FAB_MESSAGE_MIN) return false;
    c->credits = p.credits < VERBS_CREDITS ? p.credits : VERBS_CREDITS;
    c->head.max_message = theirs < ours ? theirs : ours;
    return true;
}

/* Whether this provider, of any version, wrote its private data: over InfiniBand there are always as many bytes, zeros
 * where nobody listens. */
static bool has_private(const verbs_event *e, verbs_private *p) {
    if (e->private_bytes < sizeof *p) return false;
    memcpy(p, e->private_data, sizeof *p);
    return p->magic == VERBS_MAGIC && sizeof *p + p->bytes <= e->private_bytes;
}

static void completed(verbs_conn *c, fab_wc_opcode opcode, fab_wc_status status, verbs_event *e) {
    fab_wc wc = { .opcode = opcode, .status = status, .conn = &c->head };
    verbs_private p;
    if (e && has_private(e, &p)) {
        wc.data = e->private_data + sizeof p;
        wc.bytes = p.bytes;
        c->cq->held_event = e; /* freed by a poll that finds everything polled */
    }
    verbs_stash(c->cq, &wc);
}

static void connect_failed(verbs_conn *c, fab_wc_status status, verbs_event *e) {
    completed(c, FAB_WC_CONNECT, status, e);
    verbs_break(c, FAB_SUCCESS, status);
}

int verbs_connect(fab_cq *queue, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                  void *user, fab_conn **out) {
    (void)who; /* nothing of it is encrypted here */
    verbs_cq *cq = (verbs_cq *)queue;
    const verbs_lib *v = cq->d->v;
    struct sockaddr_storage to, from;
    bool by_device = cq->d->source_device[0] != 0;
    int octet = verbs_traffic_class();
    verbs_cq_let_go(cq);
    int e = parse(address, &to);
    if (e == 0 && octet < 0) {
        e = -EINVAL;
        fab_log(&cq->d->head.options, FAB_LOG_ERROR, "verbs: FARKV_RDMA_TRAFFIC_CLASS must be from 0 to 255");
    }
    if (e == 0 && by_device) e = verbs_source_of(cq->d->source_device, to.ss_family, &from);
    if (e) return e;
    verbs_conn *c;
    e = verbs_conn_new(cq, user, &c);
    if (e) return e;
    private_set(c, priv, priv_bytes);
    int ms = (int)cq->d->head.options.handshake_ms;
    c->state = VERBS_RESOLVING;
    c->deadline_ns = fkv_now_ns() + (uint64_t)ms * 1000000u;
    uint8_t class = (uint8_t)octet;
    if (v->rdma_create_id(cq->d->events, &c->id, c->context, RDMA_PS_TCP))
        e = -errno;
    else if (class && v->rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &class, sizeof class))
        e = -errno;
    else if (v->rdma_resolve_addr(c->id, by_device ? (struct sockaddr *)&from : NULL, (struct sockaddr *)&to, ms))
        e = -errno;
    if (e) {
        verbs_disconnect(&c->head);
        return e;
    }
    *out = &c->head;
    return 0;
}

int verbs_accept(fab_conn *conn, uint32_t tenant, const void *priv, uint32_t priv_bytes) {
    verbs_conn *c = (verbs_conn *)conn;
    const verbs_lib *v = c->cq->d->v;
    if (c->state != VERBS_ASKED) return -ENOTCONN;
    private_set(c, priv, priv_bytes);
    int e = verbs_conn_qp(c, tenant);
    struct rdma_conn_param p;
    uint8_t room[FAB_PRIVATE_MAX + sizeof(verbs_private)];
    if (e == 0) {
        parameters(c, &p, room);
        c->state = VERBS_ACCEPTING;
        c->deadline_ns = fkv_now_ns() + (uint64_t)c->cq->d->head.options.handshake_ms * 1000000u;
        if (v->rdma_accept(c->id, &p)) e = -errno;
    }
    if (e)
        verbs_break(c, FAB_SUCCESS, FAB_GENERAL_ERR);
    else
        verbs_conn_rnr_timer(c);
    return e;
}

int verbs_reject(fab_conn *conn, const void *priv, uint32_t priv_bytes) {
    verbs_conn *c = (verbs_conn *)conn;
    int e = -ENOTCONN;
    if (c->state == VERBS_ASKED) {
        private_set(c, priv, priv_bytes);
        uint8_t room[FAB_PRIVATE_MAX + sizeof(verbs_private)];
        struct rdma_conn_param p;
        parameters(c, &p, room);
        e = c->cq->d->v->rdma_reject(c->id, p.private_data, p.private_data_len) ? -errno : 0;
    }
    verbs_disconnect(conn);
    return e;
}

/* ---- events, at the completion queue's thread ---- */

static bool asked(verbs_cq *cq, verbs_event *e) {
    const verbs_lib *v = cq->d->v;
    verbs_conn *c = NULL;
    int r = verbs_device_of(cq->d, e->id->verbs);
    if (r == 0 && cq->conn_count >= cq->d->head.options.max_conns) r = -ENOSPC;
    if (r == 0) r = verbs_conn_new(cq, NULL, &c);
    if (r) {
        v->rdma_reject(e->id, NULL, 0);
        v->rdma_destroy_id(e->id);
        return false;
    }
    c->id = e->id;
    c->id->context = c->context; /* from now on events of the id name this connection, not the listener */
    c->state = VERBS_ASKED;
    c->deadline_ns = fkv_now_ns() + (uint64_t)cq->d->head.options.handshake_ms * 1000000u;
    if (!private_of_peer(c, e)) {
        verbs_reject(&c->head, NULL, 0);
        return false;
    }
    uint32_t message = c->head.max_message;
    completed(c, FAB_WC_ACCEPT, FAB_SUCCESS, e);
    c->head.max_message = message;
    return true;
}

static void address_resolved(verbs_conn *c) {
    verbs_cq *cq = c->cq;
    int e = verbs_device_of(cq->d, c->id->verbs);
    if (e == 0) e = verbs_cq_device(cq, false);
    if (e == 0 && cq->d->v->rdma_resolve_route(c->id, (int)cq->d->head.options.handshake_ms)) e = -errno;
    if (e) connect_failed(c, e == -EXDEV ? FAB_OTHER_DEVICE_ERR : e == -ENODEV ? FAB_FATAL_ERR : FAB_GENERAL_ERR, NULL);
}

static void routed(verbs_conn *c) {
    struct rdma_conn_param p;
    uint8_t room[FAB_PRIVATE_MAX + sizeof(verbs_private)];
    if (verbs_conn_qp(c, 0)) {
        connect_failed(c, FAB_GENERAL_ERR, NULL);
        return;
    }
    c->mine.credits = (uint8_t)c->cq->credits; /* known since the device is */
    parameters(c, &p, room);
    c->state = VERBS_CONNECTING;
    if (verbs_dial_begin(c, &p)) connect_failed(c, FAB_RETRY_EXC_ERR, NULL);
}

/* Over iWARP the side that accepts may send nothing before the other side's first message has come (RFC 5044, 7.1),
 * although it is told that the connection is established: a driver that finds more than the reply to its request gives
 * the connection up, as soft-iWARP's does. */
static bool owner_speaks_second(const verbs_conn *c) {
    return c->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

void verbs_peer_ready(verbs_conn *c) {
    if (c->state == VERBS_ACCEPTING) {
        c->state = VERBS_UP;
        verbs_doorbell(c); /* what was sent since fab_accept */
        verbs_ready(c);
    } else if (c->state == VERBS_LEAVING && c->unposted) {
        c->deadline_ns = fkv_now_ns() + VERBS_LEAVE_MS * 1000000ull;
        verbs_doorbell(c);
        c->unposted = false;
    }
}

static void established(verbs_conn *c, verbs_event *e) {
    if (c->state == VERBS_CONNECTING) {
        verbs_dial_end(c); /* returns about now */
        if (!private_of_peer(c, e)) {
            connect_failed(c, FAB_REM_INV_REQ_ERR, NULL);
            return;
        }
        c->state = VERBS_UP;
        verbs_conn_rnr_timer(c);
        completed(c, FAB_WC_CONNECT, FAB_SUCCESS, e);
        if (owner_speaks_second(c)) verbs_say_first(c);
        verbs_deliver_early(c);
    } else if (!owner_speaks_second(c)) {
        verbs_peer_ready(c);
    }
}

static void device_lost(verbs_cq *cq) {
    cq->lost = cq->cq != NULL;
    /* The kernel has closed the channel's other end: it would be readable for ever. */
    if (cq->channel) (void)epoll_ctl(cq->epoll_fd, EPOLL_CTL_DEL, cq->channel->fd, NULL);
    if (cq->listens) verbs_stash(cq, &(fab_wc){ .opcode = FAB_WC_UNREACHABLE, .status = FAB_FATAL_ERR });
    for (verbs_conn *c = cq->conns, *next; c; c = next) {
        next = c->next;
        if (c->state == VERBS_BROKEN) continue;
        if (c->state == VERBS_LEAVING) {
            verbs_left(c);
            verbs_receives_over(c);
        } else if (c->state == VERBS_UP || c->state == VERBS_ACCEPTING || c->state == VERBS_ASKED)
            verbs_break(c, FAB_FATAL_ERR, FAB_FATAL_ERR);
        else
            connect_failed(c, FAB_FATAL_ERR, NULL);
    }
}

static void handle(verbs_cq *cq, verbs_event *e) {
    if ((int)e->type == VERBS_DEVICE_LOST) {
        device_lost(cq);
        return;
    }
    if (e->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        asked(cq, e);
        return;
    }
    verbs_conn *c = verbs_conn_of_slot(cq, e->slot, e->generation);
    if (c && (int)e->type == VERBS_RECEIVES_OVER) {
        verbs_receives_over(c);
        return;
    }
    if (!c || c->state == VERBS_BROKEN) return;
    if (c->state == VERBS_LEAVING) {
        if (e->type == RDMA_CM_EVENT_ESTABLISHED && !owner_speaks_second(c)) verbs_peer_ready(c);
        if (e->type == RDMA_CM_EVENT_DISCONNECTED || e->type == RDMA_CM_EVENT_REJECTED ||
            e->type == RDMA_CM_EVENT_TIMEWAIT_EXIT || e->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
            verbs_left(c);
        return;
    }
    bool setting_up = c->state == VERBS_RESOLVING || c->state == VERBS_ROUTING || c->state == VERBS_CONNECTING;
    switch (e->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (c->state != VERBS_RESOLVING) break;
        c->state = VERBS_ROUTING;
        address_resolved(c);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        if (c->state == VERBS_ROUTING) routed(c);
        break;
    case RDMA_CM_EVENT_ESTABLISHED: established(c, e); break;
    case RDMA_CM_EVENT_REJECTED:
        if (setting_up)
            connect_failed(c, has_private(e, &(verbs_private){ 0 }) ? FAB_REM_ACCESS_ERR : FAB_RETRY_EXC_ERR, e);
        else
            verbs_break(c, FAB_SUCCESS, FAB_GENERAL_ERR);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        if (setting_up) connect_failed(c, FAB_RETRY_EXC_ERR, NULL);
        /* a peer that closes says so before, and what it said is drained first */
        else
            verbs_break(c, FAB_SUCCESS, FAB_RETRY_EXC_ERR);
        break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        if (setting_up)
            connect_failed(c, FAB_FATAL_ERR, NULL);
        else
            verbs_break(c, FAB_FATAL_ERR, FAB_FATAL_ERR);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
        if (setting_up)
            connect_failed(c, FAB_RETRY_EXC_ERR, NULL);
        else
            verbs_break(c, FAB_SUCCESS, FAB_RETRY_EXC_ERR);
        break;
    default: break; /* address change and multicast say nothing of this connection */
    }
}

void verbs_events(verbs_cq *cq) {
    while (!cq->held_event) { /* one completion at a time points into an event */
        pthread_mutex_lock(&cq->lock);
        verbs_event *e = cq->first_event;
        if (e) cq->first_event = e->next;
        if (!cq->first_event) {
            cq->last_event = &cq->first_event;
            atomic_store(&cq->has_events, false);
        }
        pthread_mutex_unlock(&cq->lock);
        if (!e) return;
        handle(cq, e);
        if (cq->held_event != e) free(e);
    }
}
#endif
