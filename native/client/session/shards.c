/* shards.c: which owner a shard's requests go to, and the sequences of its changes.
 *
 * The window. An owner remembers the results of a client's last FKV_DEDUP_WINDOW sequences on a shard. A change whose
 * sequence has fallen out of that memory could not be retried, so a new sequence is given only while it is less than a
 * window away from the oldest one that has not ended; other changes wait, parked, without a sequence.
 */
#include "../../base/assert.h"
#include "internal.h"

bool shard_open_window(session_shard *h, request *r) {
    if (r->head.sequence) return true;
    if (!list_empty(&h->window)) {
        const request *oldest = LIST_OF(h->window.next, request, in_window);
        if (h->next_sequence - oldest->head.sequence >= FKV_DEDUP_WINDOW) return false;
    }
    r->head.sequence = h->next_sequence++;
    list_push(&h->window, &r->in_window);
    return true;
}

/* The change has ended, or goes out again under another sequence; as many of those that waited may go on as the window
 * has opened. */
void shard_leave_window(session *s, request *r) {
    session_shard *h = &s->shard[r->head.shard];
    if (r->head.sequence) {
        r->head.sequence = 0;
        list_remove(&r->in_window);
    } else if (!list_empty(&h->window)) {
        /* it was let go on and ended before it had a sequence: those in the window will see to the others */
        return;
    }
    uint64_t open = FKV_DEDUP_WINDOW;
    if (!list_empty(&h->window)) {
        const request *oldest = LIST_OF(h->window.next, request, in_window);
        open -= h->next_sequence - oldest->head.sequence;
    }
    for (; open > 0 && !list_empty(&h->parked); open--) {
        request *next = LIST_OF(h->parked.next, request, link);
        list_remove(&next->link);
        request_queue(next, false);
    }
}

session_peer *session_peer_of(session *s, uint32_t shard) {
    session_owner *o = shard < s->config.shards ? s->shard[shard].owner : NULL;
    return o ? &o->peer : NULL;
}

/* Requests that wait for the shard follow the route; those that were sent are answered by whom they were sent to. */
static void requeue_waiting(session *s, uint32_t shard, session_owner *from) {
    fkv_list moved;
    list_init(&moved);
    fkv_list *queue = from ? &from->waiting : &s->unrouted;
    for (fkv_list *l = queue->next, *next; l != queue; l = next) {
        next = l->next;
        request *r = LIST_OF(l, request, link);
        if (r->head.shard != shard || !fkv_op_is(r->head.op, FKV_OF_SHARD)) continue;
        list_remove(l);
        list_push(&moved, l);
    }
    while (!list_empty(&moved)) {
        request *r = LIST_OF(moved.next, request, link);
        list_remove(&r->link);
        request_queue(r, false);
    }
}

/* A refusal may have been about the old route: what waits out a back-off need not wait for it to end, and one by the new
 * owner, which may not serve yet, is the first. */
static void wake_delayed(session *s, uint32_t shard) {
    for (uint32_t i = 0; i < s->places; i++) {
        request *r = &s->table[i];
        if (r->state != REQUEST_DELAYED || r->head.shard != shard) continue;
        r->refusals = 0;
        timer_set(&s->timers, &r->delay, 0);
    }
}

void session_route(session *s, uint32_t shard, int64_t owner) {
    if (shard >= s->config.shards) return;
    session_shard *h = &s->shard[shard];
    session_owner *to = owner < 0 ? NULL : owner_find(s, (uint32_t)owner), *from = h->owner;
    h->told_ns = 0;
    if (to == from) return;
    h->owner = to;
    if (to) to->routes++;
    fkv_assert(!from || from->routes > 0);
    if (from) from->routes--;
    if (!to || to->state != OWNER_UP) shard_down(s, shard);
    if (!to) absent_look(s);
    requeue_waiting(s, shard, from);
    wake_delayed(s, shard);
    if (to) owner_want(to);
    if (from) {
        owner_lost_shard(from);
        owner_want(from);
    }
}

/* The owner says that it is not, or not yet. Told at most a few times a second for each shard, until the route is set
 * again. */
void shard_not_owner(session *s, session_owner *o, uint32_t shard) {
    session_shard *h = &s->shard[shard];
    uint64_t now = session_now(s);
    if (h->told_ns && now - h->told_ns < 200000000u) return;
    h->told_ns = now;
    s->hooks.event(s->hooks.ctx, &(session_event){ .type = SESSION_NOT_OWNER,
                                                   .owner = o->peer.owner,
                                                   .shard = shard,
                                                   .provider = o->peer.provider,
                                                   .reason = FKV_NOT_OWNER });
}
