/* session.c: a session's life, and the loop that hands out what its completion queues bring. */
#include "internal.h"
#include <errno.h>
#include <stdlib.h>

enum { BATCH = 64, ROUNDS = 4 };

fkv_status fkv_status_of_wc(fab_wc_status s) {
    switch (s) {
    case FAB_SUCCESS: return FKV_OK;
    case FAB_REM_ACCESS_ERR: return FKV_REMOTE_ACCESS;
    case FAB_AUTH_ERR: return FKV_UNAUTHORIZED;
    case FAB_LOC_LEN_ERR:
    case FAB_LOC_PROT_ERR: return FKV_INTERNAL;
    case FAB_REM_INV_REQ_ERR: return FKV_BAD_REQUEST;
    case FAB_RESP_TIMEOUT_ERR: return FKV_TIMEOUT;
    case FAB_OTHER_DEVICE_ERR: return FKV_UNSUPPORTED;
    default: return FKV_DISCONNECTED;
    }
}

fkv_status fkv_status_of_errno(int e) {
    switch (-e) {
    case 0: return FKV_OK;
    case ENOMEM:
    case ENOBUFS: return FKV_NO_MEMORY;
    case EAGAIN:
    case EMFILE:
    case ENFILE: return FKV_BUSY;
    case EADDRINUSE: return FKV_ADDRESS_IN_USE;
    case EADDRNOTAVAIL:
    case EINVAL:
    case ENAMETOOLONG:
    case ENOENT:
    case EAFNOSUPPORT: return FKV_ADDRESS_INVALID;
    case EACCES:
    case EPERM: return FKV_UNAUTHORIZED;
    case ETIMEDOUT: return FKV_TIMEOUT;
    case EOPNOTSUPP:
    case ENODEV: return FKV_UNSUPPORTED;
    default: return FKV_DISCONNECTED;
    }
}

fkv_status session_create(const session_config *c, const session_hooks *h, session **out) {
    *out = NULL;
    if (c->shards == 0 || c->max_requests == 0 || c->max_requests > SESSION_REQUESTS_MAX) return FKV_BAD_REQUEST;
    session *s = calloc(1, sizeof *s);
    if (!s) return FKV_NO_MEMORY;
    s->config = *c;
    s->hooks = *h;
    list_init(&s->owners);
    list_init(&s->dropping);
    list_init(&s->pushing);
    list_init(&s->unrouted);
    list_init(&s->free);
    timers_init(&s->timers, session_now(s));
    s->random = c->jitter_seed;
    if (!s->random) fkv_random(&s->random, sizeof s->random);
    s->random |= 1;
    s->shard = calloc(c->shards, sizeof *s->shard);
    s->pool = rendezvous_pool_create(c->rendezvous_bytes ? c->rendezvous_bytes : 256u << 20);
    if (c->traced) s->steps = calloc(1, sizeof *s->steps);
    if (!s->shard || !s->pool || (c->traced && !s->steps) || request_table(s) != FKV_OK) {
        session_close(s);
        return FKV_NO_MEMORY;
    }
    for (uint32_t i = 0; i < c->shards; i++) {
        s->shard[i].next_sequence = 1;
        list_init(&s->shard[i].window);
        list_init(&s->shard[i].parked);
    }
    absent_init(s);
    silent_init(s);
    *out = s;
    return FKV_OK;
}

void session_set_replicated(session *s, bool replicated) { s->replicated = replicated; }

void session_shutdown(session *s) {
    if (s->closing) return;
    s->closing = true;
    lease_report_last(s);
    timer_clear(&s->timers, &s->judge);
    timer_clear(&s->timers, &s->watch);
    for (uint32_t i = 0; s->table && i < s->places; i++) {
        request *r = &s->table[i];
        if (r->state != REQUEST_FREE && r->state != REQUEST_ABANDONED) request_give_up(r, FKV_CLOSED);
    }
    owner_free_all(s);
}

void session_close(session *s) {
    if (!s) return;
    session_shutdown(s);
    rendezvous_pool_destroy(s->pool);
    for (int p = 0; p < SESSION_PLACES; p++) {
        fab_cq_destroy(s->queue[p].cq);
        fab_close(s->queue[p].domain);
    }
    request_table_free(s);
    free(s->shard);
    free(s->steps);
    free(s);
}

static void hand_out(session *s, const fab_wc *wc) {
    session_owner *o = fab_user(wc->conn);
    o->heard = true;
    if (o->state == OWNER_DROPPING) return; /* what is left of a batch; its messages are freed with the connection */
    switch (wc->opcode) {
    case FAB_WC_READ: s->hooks.read(s->hooks.ctx, &o->peer, wc); break;
    case FAB_WC_ATTACH: s->hooks.attach(s->hooks.ctx, &o->peer, wc); break;
    case FAB_WC_RECV:
        reply_received(o, wc->data, wc->bytes);
        fab_release(wc->conn, wc->data);
        break;
    case FAB_WC_SEND_READY:
        o->blocked = false;
        requests_wake(o);
        break;
    case FAB_WC_CONNECT:
    case FAB_WC_DISCONNECT: owner_event(o, wc); break;
    case FAB_WC_ACCEPT:
    case FAB_WC_UNREACHABLE: break; /* we do not listen */
    }
}

int session_poll(session *s) {
    if (s->polling) return 0;
    int total = 0;
    s->polling = true;
    for (uint32_t q = 0; q < s->open_cqs; q++) {
        for (int round = 0; round < ROUNDS; round++) {
            fab_wc wc[BATCH];
            int n = fab_poll(s->open_cq[q], wc, BATCH);
            for (int i = 0; i < n; i++) hand_out(s, &wc[i]);
            if (n > 0) s->hooks.polled(s->hooks.ctx);
            total += n > 0 ? n : 0;
            if (n < BATCH) break;
        }
    }
    s->polling = false;
    owner_finish_drops(s);
    if (total) session_flush(s);
    return total;
}

void session_flush(session *s) {
    while (!list_empty(&s->pushing)) requests_push(LIST_OF(s->pushing.next, session_owner, pushing));
    for (uint32_t q = 0; q < s->open_cqs; q++) fab_flush(s->open_cq[q]);
}

uint64_t session_tick(session *s) {
    timers_run(&s->timers, session_now(s));
    session_flush(s);
    return timers_next_ns(&s->timers);
}

uint64_t session_next_tick(const session *s) { return timers_next_ns(&s->timers); }

int session_queues(session *s, fab_cq **out, int max) {
    int n = (int)s->open_cqs;
    for (int i = 0; i < n && i < max; i++) out[i] = s->open_cq[i];
    return n;
}

timers *session_timers(session *s) { return &s->timers; }

void session_held(session *s, uint64_t ns) { s->held_ns += ns; }
uint64_t session_held_ns(const session *s) { return s->held_ns; }

void session_get_stats(const session *s, session_stats *out) { *out = s->stats; }

void session_each_peer(const session *s, void (*f)(void *ctx, const session_peer *p), void *ctx) {
    for (const fkv_list *l = s->owners.next; l != &s->owners; l = l->next)
        f(ctx, &LIST_OF(l, session_owner, link)->peer);
}
