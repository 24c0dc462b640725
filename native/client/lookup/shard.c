/* shard.c: is a shard ready to be read: an owner that is connected, a layout, a lease of the layout's incarnation, an
 * index that is attached. What is missing is asked for here, once for all GETs that wait for it, and they are woken
 * when it came.
 *
 * Leases. One deadline for each shard, of one incarnation, moved forward only. It counts for lookup_direct only while
 * the layout is of that incarnation. A lease that names another incarnation than the layout says that the layout is
 * history: it is dropped. A shard that the owner does not list is not read: its GETs ask the owner, which answers or
 * says who does.
 *
 * Index segments that are gone. The owner keeps what it retires registered until the leases are over that were granted
 * before. So by a layout that is known to be outdated the index is READ only as long as such a lease would run
 * (index_until): a READ of what is not registered any more would end the connection.
 */
#include "internal.h"

enum { ASK_AGAIN_NS = 20 * 1000 * 1000, POLL_RENEWING = 16 };

void shard_view(lookup *l, uint32_t shard) {
    lookup_shard *sh = &l->shard[shard];
    lookup_layout *y = sh->layout;
    bool usable = y && sh->peer && sh->peer->conn && y->index[0].direct;
    sh->lease_until = y && y->incarnation == sh->lease_incarnation ? sh->lease_granted_until : 0;
    sh->index = usable ? y->index[0].direct : NULL;
    sh->index_buckets = usable ? (uint32_t)(y->index[0].bytes / FKV_BUCKET_BYTES) : 0;
    sh->heap = usable ? y->heap : NULL;
    sh->heap_count = usable ? y->heap_count : 0;
}

/* A lease whose half is over is asked for again before it ends. */
static shard_readiness lease_ready(lookup *l, lookup_shard *sh, uint64_t now) {
    sh->peer->used = true;
    if (now < sh->lease_until) {
        if (now >= sh->renew_at) session_renew(l->session, sh->peer);
        return SHARD_READY;
    }
    if (!sh->uncovered) {
        /* With a lease and no layout that alone is missing: it wakes who waits. */
        if (sh->layout || now >= sh->lease_granted_until) session_renew(l->session, sh->peer);
        return SHARD_WAIT;
    }
    if (now - sh->uncovered_ns > ASK_AGAIN_NS) {
        sh->uncovered_ns = now;
        session_renew(l->session, sh->peer);
    }
    return SHARD_ASK;
}

shard_readiness shard_ready(lookup *l, uint32_t shard, uint64_t now) {
    lookup_shard *sh = &l->shard[shard];
    if (!sh->peer || !sh->peer->conn) return SHARD_WAIT;
    if (sh->route_count || (sh->layout && sh->layout->rail != sh->peer->rail)) layout_from_route(l, shard);
    /* mutation: lookup/rkeys-of-another-device */
    if (sh->layout && sh->layout->rail != sh->peer->rail) layout_drop(l, shard);
    shard_readiness lease = lease_ready(l, sh, now); /* both are asked for at once */
    if (!sh->layout) {
        if (lease == SHARD_ASK) return SHARD_ASK;
        layout_refresh(l, shard);
        return sh->layout_request ? SHARD_WAIT : SHARD_ASK;
    }
    if (sh->outdated) {
        layout_refresh(l, shard);
        if (lease == SHARD_READY && now >= sh->index_until) return sh->layout_request ? SHARD_WAIT : SHARD_ASK;
    }
    bool attached = layout_attach(l, shard);
    if (lease != SHARD_READY) return lease;
    if (sh->buckets > sh->layout->capacity) { /* the table has grown */
        layout_refresh(l, shard);
        return sh->layout_request ? SHARD_WAIT : SHARD_ASK;
    }
    if (attached) return SHARD_READY;
    return sh->crowded ? SHARD_ASK : SHARD_WAIT;
}

static void take_waiting(lookup *l, uint32_t shard, void (*run)(lookup_get *g)) {
    fkv_list all;
    list_take_all(&l->shard[shard].waiting, &all);
    while (!list_empty(&all)) {
        lookup_get *g = LIST_OF(all.next, lookup_get, link);
        list_remove(&g->link);
        run(g);
    }
}

void shard_wake(lookup *l, uint32_t shard) { take_waiting(l, shard, get_run); }
void shard_ask_waiting(lookup *l, uint32_t shard) { take_waiting(l, shard, get_ask); }

void shard_lease(void *ctx, session_peer *p, const fkv_lease_shard *list, uint32_t n, uint64_t until_ns,
                 uint64_t renew_ns) {
    lookup *l = ctx;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].shard >= l->shards) continue;
        lookup_shard *sh = &l->shard[list[i].shard];
        if (sh->peer != p) continue; /* an owner that we do not hold for this shard's */
        if (sh->lease_incarnation != list[i].incarnation) sh->lease_granted_until = sh->index_until = 0;
        sh->lease_incarnation = list[i].incarnation;
        sh->lease_layout_epoch = list[i].layout_epoch;
        if (until_ns > sh->lease_granted_until) sh->lease_granted_until = until_ns;
        sh->renew_at = renew_ns;
        sh->listed = true;
        sh->uncovered = false;
        if (sh->layout && sh->layout->incarnation != list[i].incarnation)
            layout_drop(l, list[i].shard);
        else if (sh->layout && sh->layout->layout_epoch < list[i].layout_epoch)
            sh->outdated = true;
        else if (sh->layout)
            sh->index_until = sh->lease_granted_until;
        shard_view(l, list[i].shard);
        if (!list_empty(&sh->waiting)) shard_wake(l, list[i].shard);
    }
}

void shard_lease_end(void *ctx, session_peer *p, fkv_status s) {
    lookup *l = ctx;
    uint64_t now = session_now(l->session);
    for (uint32_t i = 0; i < l->shards; i++) {
        lookup_shard *sh = &l->shard[i];
        if (sh->peer != p) continue;
        if (s != FKV_TIMEOUT && !sh->listed) {
            sh->uncovered = true;
            sh->uncovered_ns = now;
        }
        sh->listed = false;
        if (!list_empty(&sh->waiting)) shard_wake(l, i);
    }
}

/* A loop over lookup_direct may never return to the event loop, so replies, renewals and timers are attended to from
 * inside it. */
void shard_attend(lookup *l, lookup_shard *sh, uint64_t now) {
    bool renewing = now >= sh->renew_at;
    if (renewing) session_renew(l->session, sh->peer);
    if (l->since_poll < POLL_EVERY && !(renewing && l->since_poll % POLL_RENEWING == 0)) return;
    l->since_poll = 0;
    session_tick(l->session);
    session_poll(l->session);
}
