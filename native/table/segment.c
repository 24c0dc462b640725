/* segment.c: registered memory comes, is asked for in time, and goes.
 *
 * Registered memory is pinned, whether it holds an entry or waits for one, so what waits is bounded in bytes an entry:
 * the next heap segment is 4.2 bytes for each entry there is. For entries of 160 bytes that is a thirty-eighth of the
 * heap, for those of a kilobyte it would be a two-hundred-and-fiftieth. Each segment costs a registration, a change of
 * layout and an attach at each client, so it is at least a HEAP_PART_MOST'th of the heap: growth stays geometric, with
 * at most 98 segments to a doubling, or 141 where rounding down to whole huge pages takes nearly half of each, as from
 * 280 MiB on. A segment is a whole number of spans of the class that grows, so that no end is left over.
 *
 * A segment is late if the table fills up while waiting for it. So the table requests the next segment while it still
 * has about a segment's worth of free space. Three things besides keep a segment from being late:
 *   - All shards of a server grow alike and would ask together, of threads that make one segment after the other: each
 *     asks a little earlier or later than the others, by its number.
 *   - Huge pages take long where all cores are busy: the kernel makes none before every CPU has done a little work for
 *     it, and that has to wait for a core like everything else. A table that has not got them when two thirds of what
 *     it had left are gone asks for a small segment in between, a *bridge*, which another thread makes of small pages
 *     (storage/memory.c).
 *   - What is asked for early is reckoned from the entries, not from the segment, which is rounded down to whole huge
 *     pages.
 *
 * Within the limit of memory_bytes a part is kept for the index, in proportion to the size of the entries there are, so
 * that the heap never starves it.
 */
#include "internal.h"

enum {
    INDEX_FIRST = 64 << 10,
    INDEX_FIRST_PART = 4, /* of memory_bytes, at the most */
    INDEX_PART = 16,      /* the next index segment is this part of the index */
    INDEX_MAX = 32 << 20,
    INDEX_EARLY_PART = 32,    /* asked for when so little of the index is left, */
    INDEX_EARLY_BUCKETS = 64, /* at least so many buckets, */
    INDEX_EARLY_PERCENT = 75, /* and the buckets are so full that they are soon split */
    HEAP_FIRST = 64 << 10,
    HEAP_MIN = 32 << 10,      /* two spans where that is more, */
    HEAP_MIN_MOST = 64 << 10, /* up to so much */
    HEAP_MAX = 256 << 20,
    HEAP_AHEAD_TENTHS = 42, /* bytes an entry, in tenths */
    HEAP_PART_LEAST = 16,
    HEAP_PART_MOST = 140,
    /* asked for when so many bytes an entry, at least this part of the heap, are left, */
    HEAP_EARLY_PART = 200,
    HEAP_EARLY_MIN = 16 << 10, /* at least so many bytes */
    STAGGER_PARTS = 8,         /* shards ask up to STAGGER_STEPS - 1 of these parts later than others */
    STAGGER_STEPS = 4,
    /* a bridge is asked for when so little is left of what a table has when it asks early, */
    BRIDGE_LEFT_PART = 3,
    BRIDGE_PART = 4,           /* and is this part of it, */
    BRIDGE_MAX = 1 << 20,      /* at most so large */
    HUGE_PAGE = FKV_HUGE_PAGE, /* large segments are multiples of it */
    REFUSED_NS = 100 * 1000 * 1000,
    INDEX_BYTES_AN_ENTRY = 19 /* see LOAD_HALVES */
};

static uint64_t clamp(uint64_t x, uint64_t low, uint64_t high) { return x < low ? low : x > high ? high : x; }
static uint64_t whole(uint64_t x, uint64_t part) { return x / part * part; }
static uint64_t up(uint64_t x, uint64_t part) { return part ? (x + part - 1) / part * part : x; }
/* Of `part`s; of huge pages where it is one at least, and the end that no `part` fits in is a small one. */
static uint64_t sized(const table *t, uint64_t x, uint64_t part) {
    uint64_t grain = t->config.segment_grain;
    return grain ? up(x, grain) : whole(x, x >= HUGE_PAGE && part <= HUGE_PAGE / 8 ? HUGE_PAGE : part);
}

size_t table_first_index_bytes(const table_config *c) {
    uint64_t most = clamp(c->memory_bytes / INDEX_FIRST_PART, INDEX_FIRST, INDEX_MAX);
    return up(up(clamp((uint64_t)c->buckets * FKV_BUCKET_BYTES, INDEX_FIRST, most), INDEX_GRAIN), c->segment_grain);
}
size_t table_first_heap_bytes(const table_config *c) { return up(HEAP_FIRST, c->segment_grain); }

static uint64_t next_index_bytes(const table *t) {
    return sized(t, clamp(t->index_bytes / INDEX_PART, INDEX_GRAIN, INDEX_MAX), INDEX_GRAIN);
}
static uint64_t span_bytes(const table *t, uint32_t cls) { return (uint64_t)t->shape[cls].blocks * BLOCK_BYTES; }
/* What is left of the limit is not given away in smaller pieces: they would stay for as long as there is something in
 * them. */
static uint64_t least_heap_bytes(const table *t, uint32_t cls) {
    uint64_t span = span_bytes(t, cls), few = whole(clamp(2 * span, HEAP_MIN, HEAP_MIN_MOST), span);
    return few > span ? few : span;
}
/* For the entries there are, at least that part of the heap. */
static uint64_t ahead_bytes(const table *t, uint64_t part) {
    return clamp(t->entries * HEAP_AHEAD_TENTHS / 10, t->heap_bytes / part, t->heap_bytes / HEAP_PART_LEAST);
}
static uint64_t next_heap_bytes(const table *t, uint32_t cls) {
    uint64_t least = least_heap_bytes(t, cls);
    uint64_t bytes = clamp(ahead_bytes(t, HEAP_PART_MOST), least, clamp(t->config.memory_bytes / 16, least, HEAP_MAX));
    return sized(t, bytes, span_bytes(t, cls));
}

/* What is left when the next segment is asked for. */
static uint64_t early_heap_bytes(const table *t) {
    uint64_t step = (uint32_t)(t->config.shard * 2654435769u) / (UINT32_MAX / STAGGER_STEPS + 1);
    uint64_t ahead = clamp(ahead_bytes(t, HEAP_EARLY_PART), 0, t->config.memory_bytes / 16);
    return clamp(ahead - ahead / STAGGER_PARTS * step, HEAP_EARLY_MIN, HEAP_MAX);
}

/* ---- asking ---- */

static uint64_t budget(const table *t) {
    uint64_t taken = registered(t) + asked(t);
    return t->config.memory_bytes > taken ? t->config.memory_bytes - taken : 0;
}
/* What the heap may still have: the index keeps its share of the limit, as entries of the present mean size would need
 * it. A thousand entries of 256 bytes are presumed, so that the first few do not decide. */
uint64_t table_heap_budget(const table *t) {
    uint64_t mean = (t->live_bytes + 256 * 1000) / (t->entries + 1000);
    uint64_t share = t->config.memory_bytes / (INDEX_BYTES_AN_ENTRY + mean) * INDEX_BYTES_AN_ENTRY;
    uint64_t kept = share > t->index_bytes + t->asked_index ? share - t->index_bytes - t->asked_index : 0;
    uint64_t b = budget(t);
    return b > kept ? b - kept : 0;
}

bool table_ask_index(table *t) {
    if (t->asked_index) return true;
    uint64_t grain = t->config.segment_grain ? t->config.segment_grain : INDEX_GRAIN;
    uint64_t bytes = clamp(next_index_bytes(t), 0, whole(budget(t), grain));
    if (bytes == 0 || t->now_ns < t->refused_until_ns) return false;
    t->asked_index = bytes;
    t->config.want_segment(t->config.ctx, TABLE_INDEX, bytes);
    return true;
}

bool table_ask_heap(table *t, uint32_t cls) {
    uint64_t need = span_bytes(t, cls);
    if (need <= t->asked_heap || need <= t->asked_large) return true;
    if (t->now_ns < t->refused_until_ns) return false;
    uint64_t bytes = next_heap_bytes(t, cls), most = table_heap_budget(t);
    if (bytes > most) bytes = whole(most, t->config.segment_grain ? t->config.segment_grain : need);
    if (bytes < least_heap_bytes(t, cls)) return false;
    uint64_t *slot = t->asked_heap ? &t->asked_large : &t->asked_heap;
    if (*slot) return true; /* no third one: it is asked for when one of these has come */
    *slot = bytes;
    t->config.want_segment(t->config.ctx, TABLE_HEAP, bytes);
    return true;
}

bool table_make_room(table *t, uint32_t cls) {
    while (table_heap_budget(t) < next_heap_bytes(t, cls))
        if (!table_retire_empty(t)) break;
    return table_ask_heap(t, cls);
}

void table_watch_index(table *t) {
    uint32_t capacity = t->grains * GRAIN_BUCKETS;
    uint32_t early = (uint32_t)clamp(capacity / INDEX_EARLY_PART, INDEX_EARLY_BUCKETS, UINT32_MAX);
    if (!t->asked_index && t->buckets + early > capacity && !table_load_below(t, INDEX_EARLY_PERCENT))
        table_ask_index(t);
}

/* A segment of huge pages is late. None where all are to be of huge pages: nothing else would come sooner. */
static void ask_bridge(table *t, uint64_t early) {
    if (t->asked_large || t->asked_heap < HUGE_PAGE || t->config.segment_grain || t->now_ns < t->refused_until_ns)
        return;
    uint64_t span = span_bytes(t, t->growing), least = least_heap_bytes(t, t->growing);
    uint64_t bytes = whole(clamp(early / BRIDGE_PART, least, BRIDGE_MAX > least ? BRIDGE_MAX : least), span);
    if (bytes > table_heap_budget(t) || bytes >= t->asked_heap) return;
    t->asked_large = bytes;
    t->config.want_segment(t->config.ctx, TABLE_HEAP, bytes);
}

void table_watch_heap(table *t) {
    uint64_t room = table_heap_room(t, t->growing), early = early_heap_bytes(t);
    if (t->asked_heap) {
        if (room < early / BRIDGE_LEFT_PART) ask_bridge(t, early);
    } else if (!t->asked_large && room < early) {
        table_ask_heap(t, t->growing);
    }
}

void table_segment_refused(table *t, table_segment_kind kind, size_t bytes, fkv_status why) {
    if (kind == TABLE_INDEX)
        t->asked_index = 0;
    else if (bytes == t->asked_large)
        t->asked_large = 0;
    else
        t->asked_heap = 0;
    t->refused_until_ns = t->now_ns + REFUSED_NS;
    t->refused_why = why;
}

fkv_status table_full(const table *t) { return t->now_ns < t->refused_until_ns ? t->refused_why : FKV_TABLE_FULL; }

/* ---- coming ---- */

/* Private memory for so many grains. It doubles, so that it seldom moves: moving it is a change of the process's
 * mappings, which waits for huge pages that another thread has under way. */
static bool room_for_grains(table *t, uint32_t grains) {
    if (grains <= t->grains_room) return true;
    uint32_t room = grains > 2 * t->grains_room ? grains : 2 * t->grains_room;
    uint8_t **directory = realloc(t->directory, room * sizeof *directory);
    if (!directory) return false;
    t->directory = directory;
    uint8_t *moving = realloc(t->moving, (size_t)room * GRAIN_BUCKETS);
    if (!moving) return false;
    t->moving = moving;
    t->grains_room = room;
    return true;
}

static fkv_status add_index(table *t, const fkv_region *r, uint32_t tag, uint32_t *segment) {
    uint32_t grains = (uint32_t)(r->bytes / INDEX_GRAIN), all = t->grains + grains;
    if (!room_for_grains(t, all)) return FKV_NO_MEMORY;
    index_segment *index = realloc(t->index, (t->index_segments + 1) * sizeof *index);
    if (!index) return FKV_NO_MEMORY;
    t->index = index;
    memset(t->moving + (size_t)t->grains * GRAIN_BUCKETS, 0, (size_t)grains * GRAIN_BUCKETS);
    for (uint32_t i = 0; i < grains; i++) t->directory[t->grains + i] = r->base + (size_t)i * INDEX_GRAIN;
    index[t->index_segments] = (index_segment){
        .region = *r, .tag = tag, .first_bucket = t->grains * GRAIN_BUCKETS, .came_ns = t->now_ns
    };
    *segment = t->index_segments++;
    t->grains = all;
    t->index_bytes += r->bytes;
    t->asked_index = 0;
    if (t->buckets == 0) table_index_open(t, 0, grains * GRAIN_BUCKETS);
    return FKV_OK;
}

/* The next number that is not in use, after the last one given: a number comes again as late as possible. */
static uint32_t free_number(const table *t) {
    uint32_t n = t->last_number;
    do n = n + 1 < SEGMENT_NUMBERS ? n + 1 : 1;
    while (n < t->heap_room && t->heap[n]);
    return n;
}

/* Of two that were asked for it answers the larger one that it is enough for. */
static void answered_heap(table *t, uint64_t bytes) {
    bool heap = t->asked_heap && bytes >= t->asked_heap, large = t->asked_large && bytes >= t->asked_large;
    if (large && (!heap || t->asked_large > t->asked_heap))
        t->asked_large = 0;
    else
        t->asked_heap = 0;
}

static fkv_status add_heap(table *t, const fkv_region *r, uint32_t tag, uint32_t *segment) {
    if (t->heap_segments == SEGMENT_NUMBERS - 1) return FKV_TABLE_FULL;
    uint32_t number = free_number(t);
    if (number >= t->heap_room) {
        uint32_t room = t->heap_room ? 2 * t->heap_room : 16;
        heap_segment **more = realloc(t->heap, room * sizeof *more);
        if (!more) return FKV_NO_MEMORY;
        memset(more + t->heap_room, 0, (room - t->heap_room) * sizeof *more);
        t->heap = more;
        t->heap_room = room;
    }
    heap_segment *g = calloc(1, sizeof *g);
    uint32_t blocks = (uint32_t)(r->bytes / BLOCK_BYTES);
    uint32_t *span_of_block = calloc(blocks, sizeof *span_of_block);
    if (!g || !span_of_block) {
        free(g);
        free(span_of_block);
        return FKV_NO_MEMORY;
    }
    *g = (heap_segment){ .region = *r,
                         .tag = tag,
                         .number = number,
                         .blocks = blocks,
                         .span_of_block = span_of_block,
                         .came_ns = t->now_ns };
    t->heap[number] = g;
    t->last_number = number;
    t->heap_segments++;
    t->heap_bytes += r->bytes;
    t->heap_came_ns = t->now_ns;
    g->next_open = t->open;
    t->open = g;
    answered_heap(t, r->bytes);
    *segment = number;
    return FKV_OK;
}

fkv_status table_add_segment(table *t, table_segment_kind kind, const fkv_region *r, uint32_t tag, uint32_t *segment) {
    uint64_t most = kind == TABLE_INDEX ? 1ull << 31 : (uint64_t)FKV_SEGMENT_UNITS_MAX * FKV_UNIT;
    uint64_t grain = kind == TABLE_INDEX ? INDEX_GRAIN : BLOCK_BYTES;
    if (tag == 0 || r->bytes == 0 || r->bytes % grain != 0 || r->bytes > most) return FKV_BAD_REQUEST;
    fkv_status s = kind == TABLE_INDEX ? add_index(t, r, tag, segment) : add_heap(t, r, tag, segment);
    if (s == FKV_OK) t->layout_epoch++;
    return s;
}

/* ---- going ---- */

void table_retire(table *t, uint32_t number) {
    heap_segment *g = t->heap[number];
    if (g->evacuating) t->evacuating--;
    table_heap_forget(t, g);
    t->heap[number] = NULL;
    t->heap_segments--;
    t->heap_bytes -= g->region.bytes;
    t->layout_epoch++;
    free(g->span_of_block);
    free(g);
    t->config.retire_segment(t->config.ctx, TABLE_HEAP, number);
}

/* Buckets are merged from the end, and the quarantine keeps their order: when the segment's first one is cleared, all
 * are. */
bool table_retire_index(table *t) {
    const index_segment *last = &t->index[t->index_segments - 1];
    if (t->index_segments == 1 || last->first_bucket < t->buckets || t->moving[last->first_bucket] > 0) return false;
    if (t->asked_index || t->now_ns - last->came_ns < SHRINK_AFTER_NS) return false;
    t->grains = last->first_bucket / GRAIN_BUCKETS;
    t->index_bytes -= last->region.bytes;
    t->layout_epoch++;
    t->config.retire_segment(t->config.ctx, TABLE_INDEX, --t->index_segments);
    return true;
}

/* Without this empty segment the table would ask for another one. */
static bool needed(table *t, heap_segment *g) {
    if (g->evacuating) return false;
    table_heap_hide(t, g, true);
    bool asks = table_heap_room(t, t->growing) < early_heap_bytes(t);
    table_heap_hide(t, g, false);
    return asks;
}

static bool retire_empty(table *t, uint64_t came_before_ns, bool also_needed) {
    for (uint32_t n = 1; n < t->heap_room; n++) {
        heap_segment *g = t->heap[n];
        if (!g || g->used > 0 || g->came_ns > came_before_ns || (!also_needed && needed(t, g))) continue;
        table_retire(t, n);
        return true;
    }
    return false;
}
bool table_retire_empty(table *t) { return retire_empty(t, UINT64_MAX, true); }
bool table_retire_spare(table *t, uint64_t came_before_ns) { return retire_empty(t, came_before_ns, false); }

/* ---- what readers must know ---- */

uint32_t table_layout_epoch(const table *t) { return t->layout_epoch; }
uint32_t table_buckets(const table *t) { return t->buckets; }

int table_segments(const table *t, table_segment *out, int max) {
    int n = 0;
    for (uint32_t i = 0; i < t->index_segments; i++, n++)
        if (n < max)
            out[n] = (table_segment){ TABLE_INDEX, i, t->index[i].tag, t->index[i].region.bytes, &t->index[i].region };
    for (uint32_t i = 1; i < t->heap_room; i++) {
        const heap_segment *g = t->heap[i];
        if (!g) continue;
        if (n < max) out[n] = (table_segment){ TABLE_HEAP, i, g->tag, g->region.bytes, &g->region };
        n++;
    }
    return n;
}
