/* absent.c: shards that nobody answers for, and the end of what waits for them.
 *
 * A shard is *down* from the moment when nobody is known to answer for it: it has no owner, the connection to its owner
 * was lost, or its owner refuses. It is up again with the owner's next answer or lease. While it is down, operations
 * wait: owners restart, connections break, routes change. Once it has been down for session_config.unavailable_ms, and
 * either it has no owner or no address of its owner could be reached, twice, it is *absent*: what waits for it ends
 * with SHARD_CLOSED, and what is asked for later ends so at once, until it is up. A change that was sent before ends as
 * indeterminate.
 *
 * Twice, because a message of a connection's set-up may be lost, and the connection managers of RDMA send it again only
 * seconds later. Where nobody listens, both are refused within milliseconds. One that is connected is asked by each
 * request; its refusal is final when the shard has been down for long enough, and was asked for meanwhile
 * (absent_refused).
 *
 * Invariant: `judge` is armed while a shard that may become absent has not been down for long enough yet, and whenever
 * something may wait for one that is absent.
 */
#include "internal.h"

enum { TRIES = 2, IDLE_MS = 1000 };

static uint64_t patience(const session *s) { return (uint64_t)s->config.unavailable_ms * 1000000u; }

static bool not_reached(const session_owner *o) { return o->state != OWNER_UP && o->in_vain >= TRIES; }

static bool unanswered(const session_shard *h) {
    const session_owner *o = h->owner;
    return h->down_ns && (!o || not_reached(o));
}

/* Who is told so has asked for it. */
bool session_absent(session *s, uint32_t shard) {
    session_shard *h = &s->shard[shard];
    uint64_t now = session_now(s);
    if (!h->down_ns || !s->config.unavailable_ms || !unanswered(h) || now - h->down_ns < patience(s)) return false;
    h->asked_ns = now;
    return true;
}

void shard_down(session *s, uint32_t shard) {
    session_shard *h = &s->shard[shard];
    if (!h->down_ns) h->down_ns = session_now(s);
}

void shard_up(session *s, uint32_t shard) { s->shard[shard].down_ns = 0; }

bool absent_refused(session *s, uint32_t shard) {
    session_shard *h = &s->shard[shard];
    uint64_t now = session_now(s);
    /* Nobody has asked for long: it may have been served meanwhile, which an idle client does not hear of. */
    if (now - h->asked_ns > IDLE_MS * (uint64_t)1000000) h->down_ns = 0;
    h->asked_ns = now;
    if (!h->down_ns) h->down_ns = now;
    return s->config.unavailable_ms && now - h->down_ns >= patience(s);
}

void absent_look(session *s) {
    if (s->config.unavailable_ms && !s->closing) timer_set(&s->timers, &s->judge, session_now(s));
}

static void end_waiting(session *s, fkv_list *queue) {
    /* What is called may start and end requests. Those of shards that are not absent are seen once and go back in their
     * order. */
    fkv_list all, rest;
    list_init(&rest);
    list_take_all(queue, &all);
    while (!list_empty(&all)) {
        request *r = LIST_OF(all.next, request, link);
        list_remove(&r->link);
        if (fkv_op_is(r->head.op, FKV_ASIDE) || !session_absent(s, r->head.shard)) {
            list_push(&rest, &r->link);
            continue;
        }
        request_give_up(r, FKV_SHARD_CLOSED);
    }
    while (!list_empty(&rest)) {
        request *r = LIST_OF(rest.prev, request, link);
        list_remove(&r->link);
        list_push_front(queue, &r->link);
    }
}

static void judge(timer_node *t) {
    session *s = LIST_OF(t, session, judge);
    uint64_t now = session_now(s), next = UINT64_MAX;
    for (uint32_t i = 0; i < s->config.shards; i++) {
        const session_shard *h = &s->shard[i];
        if (!unanswered(h)) continue;
        uint64_t due = h->down_ns + patience(s);
        if (due <= now)
            s->hooks.absent(s->hooks.ctx, i);
        else if (due < next)
            next = due;
    }
    end_waiting(s, &s->unrouted);
    for (fkv_list *l = s->owners.next; l != &s->owners; l = l->next) {
        session_owner *o = LIST_OF(l, session_owner, link);
        if (not_reached(o)) end_waiting(s, &o->waiting);
    }
    /* What ended may have let other changes out of `parked`, to wait in turn: request_queue has armed the timer for
     * those. */
    if (next != UINT64_MAX && !s->judge.armed) timer_set(&s->timers, &s->judge, next);
}

void absent_init(session *s) {
    timer_init(&s->judge, judge);
    for (uint32_t i = 0; i < s->config.shards; i++) shard_down(s, i);
}
