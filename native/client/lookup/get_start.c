/* get_start.c: where GETs come from: the table of those that may be under way at once, and the start of one. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* Places come into use so many at a time: untouched memory costs nothing, and a client may have many. */
enum { PLACES_AT_ONCE = 64 };

static void deadline_fired(timer_node *t) {
    lookup_get *g = LIST_OF(t, lookup_get, deadline);
    session *s = g->l->session;
    uint64_t later = session_put_off(s, &g->held_ns);
    if (!later) {
        lookup_cancel(g, FKV_TIMEOUT);
        return;
    }
    g->deadline_ns = session_now(s) + later;
    timer_set(session_timers(s), t, g->deadline_ns);
}

fkv_status get_table(lookup *l) {
    l->table = calloc(l->capacity, sizeof *l->table);
    l->bucket_chunk = buffer_chunk_new(&l->buffers, (size_t)l->capacity * FKV_BUCKET_BYTES);
    if (!l->table || !l->bucket_chunk) return FKV_NO_MEMORY;
    return FKV_OK;
}

static bool more_places(lookup *l) {
    uint32_t end = l->capacity - l->places < PLACES_AT_ONCE ? l->capacity : l->places + PLACES_AT_ONCE;
    if (l->places == end) return false;
    for (; l->places < end; l->places++) {
        lookup_get *g = &l->table[l->places];
        g->l = l;
        g->key = g->key_room;
        g->bucket = (fkv_bucket *)(void *)(l->bucket_chunk->base + (size_t)l->places * FKV_BUCKET_BYTES);
        timer_init(&g->deadline, deadline_fired);
        list_init(&g->flying);
        list_push(&l->free, &g->link);
    }
    return true;
}

fkv_status lookup_start(lookup *l, const lookup_key *k, uint64_t now_ns, uint64_t deadline_ns, void *user,
                        lookup_get **out) {
    if (k->count == 0 || k->count > FKV_KEY_MAX) return FKV_KEY_INVALID;
    if (list_empty(&l->free) && !more_places(l)) return FKV_BUSY;
    lookup_get *g = LIST_OF(l->free.next, lookup_get, link);
    uint8_t *key = k->count <= KEY_ROOM ? g->key_room : malloc(k->count);
    if (!key) return FKV_NO_MEMORY;
    list_remove(&g->link);
    memcpy(key, k->bytes, k->count);
    g->key = key;
    g->key_bytes = (uint16_t)k->count;
    g->space = k->space;
    g->hash = lookup_hash(l, k);
    g->shard = fkv_range_shard(l->spread, g->hash);
    g->deadline_ns = deadline_ns;
    g->held_ns = session_held_ns(l->session);
    g->user = user;
    g->released = false;
    g->retries = g->steps = 0;
    g->revisits = g->admitted = false;
    g->result = (lookup_result){ 0 };
    timer_set(session_timers(l->session), &g->deadline, deadline_ns);
    l->stats.gets++;
    *out = g;
    l->start_ns = now_ns;
    get_run(g);
    l->start_ns = 0;
    return FKV_OK;
}

void *lookup_user(const lookup_get *g) { return g->user; }
const lookup_result *lookup_result_of(const lookup_get *g) { return &g->result; }
const uint8_t *lookup_value(const lookup_get *g) { return g->value; }
