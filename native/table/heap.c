/* heap.c: extents and overflow buckets are taken from spans, spans from segments.
 *
 * A class takes from the first of its spans that has room: an extent given back if there is one, else the next never
 * used. Nothing here knows what an extent holds; when one may be given back is the quarantine's business.
 */
#include "../base/assert.h"
#include "internal.h"

enum { FEW = 8, LOOK_EVERY = 8 };

/* The word of a free extent that links it to the next free one of its span: its expiry, or the slot in that place of a
 * bucket, where a number below 2^48 is a slot that no reader matches. */
static uint64_t *link_of(void *extent) { return &((fkv_extent *)extent)->expiry_space; }

static uint8_t *object_at(const table *t, const span *s, uint32_t object) {
    return t->heap[s->segment]->region.base + (size_t)s->first_block * BLOCK_BYTES +
           (size_t)object * class_bytes(s->cls);
}

span *table_span_at(const table *t, uint64_t location) {
    const heap_segment *g = t->heap[fkv_location_segment(location)];
    return &t->spans[g->span_of_block[fkv_location_unit(location) / (BLOCK_BYTES / FKV_UNIT)]];
}

/* ---- lists of spans with room ---- */

static void list(table *t, uint32_t id) {
    span *s = &t->spans[id];
    s->previous = 0;
    s->next = t->room[s->cls];
    if (s->next) t->spans[s->next].previous = id;
    t->room[s->cls] = id;
    s->listed = true;
}
static void unlist(table *t, uint32_t id) {
    span *s = &t->spans[id];
    if (s->previous)
        t->spans[s->previous].next = s->next;
    else
        t->room[s->cls] = s->next;
    if (s->next) t->spans[s->next].previous = s->previous;
    s->listed = false;
}

static uint64_t span_end(const table *t, uint32_t cls) {
    return (uint64_t)t->shape[cls].blocks * BLOCK_BYTES - (uint64_t)t->shape[cls].objects * class_bytes(cls);
}

void table_heap_hide(table *t, heap_segment *g, bool hide) {
    if (g->evacuating == hide) return;
    g->evacuating = hide;
    for (uint32_t id = g->first_span; id; id = t->spans[id].next_in_segment) {
        const span *s = &t->spans[id];
        if (hide && s->listed) unlist(t, id);
        if (!hide && s->used < s->objects) list(t, id);
    }
}

void table_heap_forget(table *t, heap_segment *g) {
    table_heap_hide(t, g, true);
    for (heap_segment **at = &t->open; *at; at = &(*at)->next_open) {
        if (*at != g) continue;
        *at = g->next_open;
        break;
    }
    while (g->first_span) {
        uint32_t id = g->first_span;
        t->span_end_bytes -= span_end(t, t->spans[id].cls);
        g->first_span = t->spans[id].next_in_segment;
        t->spans[id].next = t->free_span;
        t->free_span = id;
        t->span_count--;
    }
}

/* ---- new spans ---- */

/* A free record for a span; 0 when there is no private memory. */
static uint32_t span_record(table *t) {
    if (!t->free_span) {
        uint32_t room = t->span_room ? 2 * t->span_room : 64;
        span *more = realloc(t->spans, (size_t)room * sizeof *more);
        if (!more) return 0;
        t->spans = more;
        for (uint32_t id = room - 1; id >= (t->span_room ? t->span_room : 1); id--) {
            more[id].next = t->free_span;
            t->free_span = id;
        }
        t->span_room = room;
    }
    return t->free_span;
}

static uint32_t blocks_left(const heap_segment *g) { return g->blocks - g->next_block; }

/* The fullest segment that has `blocks` left, so that ends of segments are used up; NULL when there is none. */
static heap_segment *segment_with(table *t, uint32_t blocks) {
    heap_segment *best = NULL;
    for (heap_segment **at = &t->open, *g; (g = *at);) {
        if (blocks_left(g) == 0) {
            *at = g->next_open;
            continue;
        }
        if (!g->evacuating && blocks_left(g) >= blocks && (!best || blocks_left(g) < blocks_left(best))) best = g;
        at = &g->next_open;
    }
    return best;
}

/* Looks at the first few spans with room and the latest few segments only: where there are more of them, there is
 * enough. */
uint64_t table_heap_room(const table *t, uint32_t cls) {
    uint64_t span_bytes = (uint64_t)t->shape[cls].blocks * BLOCK_BYTES, room = 0;
    int few = FEW;
    for (uint32_t id = t->room[cls]; id && few > 0; id = t->spans[id].next, few--)
        room += (uint64_t)(t->spans[id].objects - t->spans[id].used) * class_bytes(cls);
    few = FEW;
    for (const heap_segment *g = t->open; g && few > 0; g = g->next_open, few--)
        if (!g->evacuating) room += (uint64_t)blocks_left(g) * BLOCK_BYTES / span_bytes * span_bytes;
    return room;
}

static uint32_t new_span(table *t, uint32_t cls) {
    span_shape shape = t->shape[cls];
    heap_segment *g = segment_with(t, shape.blocks);
    uint32_t id = g ? span_record(t) : 0;
    if (!id) return 0;
    span *s = &t->spans[id];
    t->free_span = s->next;
    *s = (span){ .next_in_segment = g->first_span,
                 .first_block = g->next_block,
                 .segment = (uint16_t)g->number,
                 .objects = shape.objects,
                 .cls = (uint8_t)cls };
    g->first_span = id;
    for (uint32_t i = 0; i < shape.blocks; i++) g->span_of_block[g->next_block + i] = id;
    g->next_block += shape.blocks;
    g->used_bytes += span_end(t, cls);
    if (class_bytes(cls) > MOVED_BYTES_MOST) g->large++;
    t->span_end_bytes += span_end(t, cls);
    t->span_count++;
    list(t, id);
    if (cls != FKV_CLASS_BUCKET) t->growing = (uint8_t)cls;
    table_watch_heap(t);
    return id;
}

/* ---- take and give ---- */

/* The extent of this class that the next change will write has not been touched for long: its first lines. */
static void prefetch_next(const table *t, uint32_t cls) {
    uint32_t id = t->room[cls], bytes = class_bytes(cls);
    if (!id || !t->spans[id].free_head) return;
    const uint8_t *object = object_at(t, &t->spans[id], t->spans[id].free_head - 1u);
    for (uint32_t at = 0; at < bytes && at < 256; at += 64) __builtin_prefetch(object + at, 1);
}

uint64_t table_heap_take(table *t, uint32_t cls) {
    uint32_t id = t->room[cls];
    if (!id && !(id = new_span(t, cls))) return 0;
    span *s = &t->spans[id];
    uint32_t object;
    bool look = false;
    if (s->free_head) {
        object = s->free_head - 1u;
        s->free_head = (uint16_t)*link_of(object_at(t, s, object));
    } else {
        object = s->carved++;
        look = object % LOOK_EVERY == LOOK_EVERY - 1;
    }
    if (++s->used == s->objects) unlist(t, id);
    heap_segment *g = t->heap[s->segment];
    g->used++;
    g->used_bytes += class_bytes(cls);
    uint32_t unit = s->first_block * (BLOCK_BYTES / FKV_UNIT) + object * fkv_class_units(cls);
    prefetch_next(t, cls);
    if (look) table_watch_heap(t);
    return fkv_location(s->segment, unit);
}

/* At most twice as large: what would be lost otherwise is a change. Nothing is taken that has no span yet. */
uint64_t table_heap_take_larger(table *t, uint8_t *cls) {
    for (uint32_t larger = *cls + 1u; larger < FKV_CLASS_COUNT && class_bytes(larger) <= 2 * class_bytes(*cls);
         larger++) {
        if (!t->room[larger]) continue;
        *cls = (uint8_t)larger;
        return table_heap_take(t, larger);
    }
    return 0;
}

void table_heap_give(table *t, uint64_t location, uint32_t cls) {
    heap_segment *g = t->heap[fkv_location_segment(location)];
    span *s = table_span_at(t, location);
    fkv_assert(s->cls == cls && s->used > 0);
    uint32_t unit = fkv_location_unit(location) - s->first_block * (BLOCK_BYTES / FKV_UNIT);
    fkv_store_word(link_of(at_location(t, location)), s->free_head);
    s->free_head = (uint16_t)(unit / fkv_class_units(cls) + 1);
    s->used--;
    g->used--;
    g->used_bytes -= class_bytes(cls);
    if (!s->listed && !g->evacuating) list(t, (uint32_t)(s - t->spans));
}

/* ---- when there is no room ---- */

static bool quarantine_would_empty_a_segment(const table *t) {
    for (uint32_t n = 1; n < t->heap_room; n++)
        if (t->heap[n] && t->heap[n]->used > 0 && t->heap[n]->used == t->heap[n]->quarantined) return true;
    return false;
}

/* In this order: more memory, memory that comes back by itself, memory that can be made to come back. */
fkv_status table_heap_why(table *t, uint32_t cls, table_busy *why) {
    *why = TABLE_BUSY_SEGMENT;
    if (table_ask_heap(t, cls)) return FKV_BUSY;
    if (t->quarantined_of[cls]) {
        *why = TABLE_BUSY_QUARANTINE;
        return FKV_BUSY;
    }
    if (table_make_room(t, cls)) return FKV_BUSY;
    if (t->evacuating) return FKV_BUSY;
    if (table_sweep_for_memory(t) || quarantine_would_empty_a_segment(t)) {
        *why = TABLE_BUSY_QUARANTINE;
        return FKV_BUSY;
    }
    return table_evacuate_start(t) ? FKV_BUSY : table_full(t);
}
