/* lookup.c: a lookup's life, and what it does when its session tells it something. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

static void link_up(void *ctx, session_peer *p) {
    lookup *l = ctx;
    get_window_open(p);
    session_renew(l->session, p); /* whoever connects is about to read */
    for (uint32_t i = 0; i < l->shards; i++) {
        if (l->shard[i].peer != p) continue;
        shard_view(l, i);
        if (!list_empty(&l->shard[i].waiting)) shard_wake(l, i);
    }
}

static void link_down(void *ctx, session_peer *p) {
    lookup *l = ctx;
    layout_link_lost(l, p);
    get_link_lost(l, p);
    get_window_close(l, p);
    for (uint32_t i = 0; i < l->shards; i++) {
        if (l->shard[i].peer != p) continue;
        l->shard[i].listed = l->shard[i].uncovered = false;
    }
}

/* What waits goes on waiting for a route. */
static void peer_gone(void *ctx, session_peer *p) {
    lookup *l = ctx;
    for (uint32_t i = 0; i < l->shards; i++) {
        if (l->shard[i].peer != p) continue;
        l->shard[i].peer = NULL;
        layout_drop(l, i);
    }
}

static void shard_news(void *ctx, session_peer *p, uint32_t shard, uint32_t layout_epoch, uint32_t buckets) {
    lookup *l = ctx;
    lookup_shard *sh = &l->shard[shard];
    if (sh->peer != p || !sh->layout) return;
    if (layout_epoch > sh->layout->layout_epoch) sh->outdated = true;
    if (buckets > 0 && buckets <= sh->layout->capacity) sh->buckets = buckets;
}

static void tell(void *ctx, const session_event *e) {
    lookup *l = ctx;
    l->config.event(l->config.ctx, e);
}

/* Those that wait see it themselves. */
static void absent(void *ctx, uint32_t shard) {
    lookup *l = ctx;
    if (!list_empty(&l->shard[shard].waiting)) shard_wake(l, shard);
}

static void polled(void *ctx) {
    lookup *l = ctx;
    if (!list_empty(&l->unposted)) get_post_rest(l);
    if (l->attach_again) {
        l->attach_again = false;
        for (uint32_t i = 0; i < l->shards; i++) {
            if (!l->shard[i].attach_again) continue;
            l->shard[i].attach_again = false;
            shard_wake(l, i);
        }
    }
    l->polled_ns = 0;
}

static uint32_t since(uint64_t now, uint64_t before) {
    uint64_t more = now > before ? now - before : 0;
    return more > UINT32_MAX ? UINT32_MAX : (uint32_t)more;
}

static bool report(void *ctx, fkv_report *out) {
    lookup *l = ctx;
    const lookup_stats *now = &l->stats, *before = &l->reported;
    *out = (fkv_report){ .hits = since(now->hits, before->hits),
                         .misses = since(now->misses, before->misses),
                         .reads = since(now->reads, before->reads),
                         .followed = since(now->followed, before->followed),
                         .torn = since(now->torn, before->torn),
                         .late = since(now->late, before->late),
                         .foreign = since(now->foreign, before->foreign),
                         .two_sided = since(now->two_sided, before->two_sided),
                         .read_bytes = now->read_bytes - before->read_bytes };
    if (!out->hits && !out->misses && !out->reads && !out->two_sided) return false;
    l->reported = *now;
    return true;
}

fkv_status lookup_create(const lookup_config *c, lookup **out) {
    *out = NULL;
    if (c->first_shard >= c->session.shards || c->max_gets == 0 || c->cached_locations > LOOKUP_LOCATIONS_MAX)
        return FKV_BAD_REQUEST;
    lookup *l = calloc(1, sizeof *l);
    if (!l) return FKV_NO_MEMORY;
    l->config = *c;
    l->seed = c->seed;
    l->seed_mark = (uint32_t)fkv_hash_key(&c->seed, 0, NULL, 0); /* tells seeds apart */
    l->shards = c->session.shards;
    l->spread = (fkv_shard_range){ c->first_shard, c->session.shards - c->first_shard };
    /* Ended GETs whose READs are still under way keep their places: room for half as many of them. */
    l->capacity = c->max_gets + c->max_gets / 2 + 8;
    list_init(&l->free);
    list_init(&l->starved);
    list_init(&l->unposted);
    list_init(&l->flying);
    list_init(&l->segments);
    buffer_pool_init(&l->buffers, c->buffer_bytes ? c->buffer_bytes : 256u << 20);
    session_hooks h = { .ctx = l,
                        .event = tell,
                        .up = link_up,
                        .down = link_down,
                        .gone = peer_gone,
                        .read = get_read_done,
                        .attach = layout_attached,
                        .lease = shard_lease,
                        .lease_end = shard_lease_end,
                        .shard_news = shard_news,
                        .report = report,
                        .absent = absent,
                        .polled = polled };
    l->shard = aligned_alloc(64, (l->shards * sizeof *l->shard + 63) & ~(size_t)63);
    fkv_status s = l->shard ? FKV_OK : FKV_NO_MEMORY;
    for (uint32_t i = 0; s == FKV_OK && i < l->shards; i++) {
        l->shard[i] = (lookup_shard){ 0 };
        list_init(&l->shard[i].waiting);
    }
    if (s == FKV_OK && !locations_create(&l->locations, c->cached_locations)) s = FKV_NO_MEMORY;
    if (s == FKV_OK) s = get_table(l);
    if (s == FKV_OK) s = session_create(&c->session, &h, &l->session);
    if (s != FKV_OK) {
        lookup_close(l);
        return s;
    }
    *out = l;
    return FKV_OK;
}

void lookup_close(lookup *l) {
    if (!l) return;
    l->closing = true;
    for (uint32_t i = 0; l->session && i < l->places; i++) lookup_cancel(&l->table[i], FKV_CLOSED);
    if (l->session) session_shutdown(l->session);
    for (uint32_t i = 0; l->table && i < l->places; i++) {
        if (l->table[i].state != GET_FREE) lookup_release(&l->table[i]);
    }
    for (uint32_t i = 0; l->shard && i < l->shards; i++) {
        layout_release(l->shard[i].layout);
        free(l->shard[i].route_regions);
    }
    buffer_pool_free(&l->buffers);
    session_close(l->session);
    locations_free(&l->locations);
    free(l->table);
    free(l->shard);
    free(l);
}

session *lookup_session(lookup *l) { return l->session; }

uint64_t lookup_hash(const lookup *l, const lookup_key *k) { return lookup_key_hash(l, k); }
uint32_t lookup_shard_of(const lookup *l, const lookup_key *k) { return fkv_range_shard(l->spread, lookup_hash(l, k)); }
uint32_t lookup_first_shard(const lookup *l) { return l->spread.first; }

fab_provider lookup_provider_of(lookup *l, uint32_t shard) {
    session_peer *p = session_peer_of(l->session, shard);
    return p && p->conn ? p->provider : (fab_provider)0;
}

void lookup_prepare(const lookup *l, const lookup_key *k, lookup_prepared *out) {
    *out = (lookup_prepared){
        .hash = lookup_hash(l, k), .seed_mark = l->seed_mark, .space = k->space, .count = (uint16_t)k->count
    };
    memcpy(out->bytes, k->bytes, k->count);
}

fkv_status lookup_read_prepared(const lookup *l, const void *from, size_t bytes, uint16_t space, lookup_key *out) {
    lookup_prepared head; /* it may lie at any address */
    if (bytes < sizeof head) return FKV_KEY_INVALID;
    memcpy(&head, from, sizeof head);
    if (head.count == 0 || head.count > FKV_KEY_MAX || head.count > bytes - sizeof head) return FKV_KEY_INVALID;
    *out = (lookup_key){ .bytes = (const uint8_t *)from + sizeof head,
                         .count = head.count,
                         .space = space,
                         .hash = head.hash,
                         .hashed = head.space == space && head.seed_mark == l->seed_mark };
    return FKV_OK;
}

void lookup_changes(lookup *l, const lookup_key *k) {
    if (l->locations.entry) locations_forget(&l->locations, lookup_hash(l, k));
}

void lookup_get_stats(const lookup *l, lookup_stats *out) {
    *out = l->stats;
    out->location_evicted = l->locations.evicted;
    out->location_bypassed = l->locations.bypassed;
}
