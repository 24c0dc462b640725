/* invariants.c: table_check walks buckets, prepared changes, quarantine and spans, marks every extent it meets with
 * what it was met as, and compares what it counted with the table's own counters.
 *
 * Every extent handed out is exactly one of: live, prepared, an overflow bucket, in quarantine.
 */
#include "internal.h"
#include "reader.h"

enum mark { UNSEEN = 0, LIVE, PREPARED, OVERFLOW, QUARANTINED, FREE };

typedef struct walk {
    table *t;
    uint8_t **marks; /* of each heap segment, a byte for each unit */
    uint8_t *moving; /* recount of t->moving */
    uint64_t entries, key_value_bytes, live_bytes, expiring, overflow_buckets, least_expiry, digest;
    const char *wrong;
} walk;

/* Keeps the first thing that is wrong. */
static bool expect(walk *w, bool holds, const char *what) {
    if (!holds && !w->wrong) w->wrong = what;
    return holds;
}
#define EXPECT(e) expect(w, e, #e)

bool table_is_extent(const table *t, uint64_t location, uint32_t cls) {
    uint32_t n = fkv_location_segment(location), unit = fkv_location_unit(location);
    if (n >= t->heap_room || !t->heap[n] || unit >= t->heap[n]->blocks * (BLOCK_BYTES / FKV_UNIT)) return false;
    uint32_t id = t->heap[n]->span_of_block[unit / (BLOCK_BYTES / FKV_UNIT)];
    if (id == 0) return false;
    const span *s = &t->spans[id];
    uint32_t from_start = unit - s->first_block * (BLOCK_BYTES / FKV_UNIT);
    return s->cls == cls && from_start % fkv_class_units(cls) == 0 && from_start / fkv_class_units(cls) < s->carved;
}
static uint8_t *mark_of(walk *w, uint64_t location) {
    return &w->marks[fkv_location_segment(location)][fkv_location_unit(location)];
}

/* ---- buckets ---- */

static void check_live(walk *w, uint64_t word, const fkv_extent *e) {
    uint32_t cls = fkv_slot_class(word);
    EXPECT(e->tag == w->t->heap[fkv_location_segment(fkv_slot_location(word))]->tag);
    EXPECT(fkv_extent_lengths_fit(e, class_bytes(cls)));
    EXPECT(fkv_class_of((size_t)FKV_EXTENT_HEADER + e->key_bytes + e->value_bytes) <= cls);
    if (w->wrong) return;
    EXPECT(fkv_extent_crc(e, e->key_bytes, e->value_bytes) == e->crc);
    w->entries++;
    w->key_value_bytes += (uint64_t)e->key_bytes + e->value_bytes;
    w->live_bytes += class_bytes(cls);
    uint64_t expiry = fkv_extent_expiry(e->expiry_space);
    if (expiry) w->expiring++;
    if (expiry && expiry < w->least_expiry) w->least_expiry = expiry;
}

static void check_slot(walk *w, uint32_t number, uint64_t word) {
    table *t = w->t;
    bool moving = t->moving[number] > 0;
    if (!EXPECT(table_is_extent(t, fkv_slot_location(word), fkv_slot_class(word)))) return;
    const fkv_extent *e = extent_of(t, word);
    uint64_t hash = extent_hash(t, e);
    uint8_t *mark = mark_of(w, fkv_slot_location(word));
    if (fkv_slot_fingerprint(word) == 0) {
        const prepared *p = table_prepared_find(t, hash, fkv_extent_namespace(e->expiry_space), extent_key(e),
                                                e->key_bytes);
        expect(w, moving || (p && p->kept_word == word), "a slot is kept for nothing");
        return;
    }
    bool entry = e->state == FKV_EXTENT_LIVE && bucket_of(t, hash) == number && *mark == UNSEEN;
    if (!entry) {
        expect(w, moving, "a slot names no entry of its bucket, and nothing of it is moving");
        return;
    }
    EXPECT(fkv_slot_fingerprint(word) == fkv_hash_fingerprint(hash));
    *mark = LIVE;
    if (!fkv_extent_expiry(e->expiry_space)) w->digest ^= table_digest_word(hash, e->version);
    check_live(w, word, e);
}

static uint32_t index_tag(const table *t, uint32_t number) {
    const index_segment *s = &t->index[t->index_segments - 1];
    while (s->first_bucket > number) s--;
    return s->tag;
}

static void check_bucket(walk *w, uint32_t number) {
    table *t = w->t;
    uint32_t length = 0;
    const fkv_bucket *b = bucket_at(t, number);
    EXPECT(fkv_bucket_level(b->word0) == table_level(t, number));
    EXPECT(fkv_bucket_tag(b->word0) == index_tag(t, number));
    EXPECT(fkv_bucket_marks(b->word0) == 0 ||
           (fkv_bucket_marks(b->word0) == FKV_BUCKET_SETTLING && t->moving[number] > 0));
    while (!w->wrong) {
        if (!EXPECT(++length <= FKV_CHAIN_MAX)) return;
        for (int i = 0; i < FKV_SLOTS && !w->wrong; i++)
            if (b->slot[i]) check_slot(w, number, b->slot[i]);
        uint64_t location = fkv_bucket_overflow(b->word1);
        if (!location) break;
        if (!EXPECT(table_is_extent(t, location, FKV_CLASS_BUCKET)) || !EXPECT(*mark_of(w, location) == UNSEEN)) return;
        *mark_of(w, location) = OVERFLOW;
        w->overflow_buckets++;
        b = at_location(t, location);
        EXPECT(fkv_overflow_check(b, t->heap[fkv_location_segment(location)]->tag));
    }
    EXPECT(length == 1 || length <= t->longest_chain);
}

/* One that no key is in: it was merged, or its memory never used. */
static void check_unused(walk *w, uint32_t number) {
    const fkv_bucket *b = bucket_at(w->t, number);
    bool merged = fkv_bucket_tag(b->word0) == index_tag(w->t, number) &&
                  fkv_bucket_marks(b->word0) == FKV_BUCKET_MERGED && number < w->t->buckets_most;
    EXPECT(merged || b->word0 == 0);
    if (merged && w->t->moving[number] > 0) return;
    EXPECT(b->word1 == 0);
    for (int i = 0; i < FKV_SLOTS; i++) EXPECT(b->slot[i] == 0);
}

static void check_index(walk *w) {
    table *t = w->t;
    for (uint32_t n = 0; n < t->buckets && !w->wrong; n++) check_bucket(w, n);
    for (uint32_t n = t->buckets; n < t->grains * GRAIN_BUCKETS && !w->wrong; n++) check_unused(w, n);
    EXPECT(t->buckets <= t->buckets_most);
    EXPECT(w->entries == t->entries);
    EXPECT(w->key_value_bytes == t->key_value_bytes);
    EXPECT(w->live_bytes == t->live_bytes);
    EXPECT(w->expiring == t->expiring);
    EXPECT(w->digest == t->digest);
    EXPECT(w->overflow_buckets == t->overflow_buckets);
    EXPECT(t->sweep_bucket > 0 || t->expiry_floor_ms <= w->least_expiry);
}

/* ---- prepared changes and quarantine ---- */

static void check_prepared(walk *w) {
    table *t = w->t;
    uint32_t count = 0;
    uint64_t reserved = 0, bytes = 0;
    for (uint32_t h = 0; h < PREPARED_HEADS; h++) {
        for (uint32_t i = t->prepared_head[h]; i && !w->wrong; i = t->prepared[i - 1].next, count++) {
            const prepared *p = &t->prepared[i - 1];
            if (p->old_word) {
                reserved += class_bytes(fkv_slot_class(p->old_word));
                EXPECT(table_index_slot(t, p->hash, p->old_word) != NULL);
                EXPECT(extent_of(t, p->old_word)->state == FKV_EXTENT_LIVE);
            }
            if (p->kept_word) EXPECT(table_index_slot(t, p->hash, p->kept_word) != NULL);
            if (!p->new_word) continue;
            EXPECT(extent_of(t, p->new_word)->state == FKV_EXTENT_PENDING);
            bytes += class_bytes(fkv_slot_class(p->new_word));
            uint8_t *mark = mark_of(w, fkv_slot_location(p->new_word));
            EXPECT(*mark == UNSEEN);
            *mark = PREPARED;
        }
    }
    EXPECT(count == t->prepared_count);
    EXPECT(reserved == t->quarantine_reserved);
    EXPECT(bytes == t->prepared_bytes);
}

static void check_quarantine(walk *w) {
    table *t = w->t;
    uint64_t bytes = 0, aborted = 0, settling = 0;
    uint32_t of_class[CLASSES] = { 0 };
    for (int i = 0; i < DELAY_QUEUES && !w->wrong; i++) {
        const delay_queue *q = &t->delay[i];
        EXPECT(q->tail - q->head + q->reserved <= q->capacity);
        for (uint64_t k = q->head; k != q->tail && !w->wrong; k++) {
            uint64_t item = q->items[k & (q->capacity - 1)];
            if (item_is_moved(item)) {
                w->moving[moved_bucket(item)]++;
                settling += moved_mask(item) == 0;
                continue;
            }
            uint32_t cls = (uint32_t)(item >> 40) & 0xff;
            uint64_t location = item & 0xffffffffffu;
            if (!EXPECT(table_is_extent(t, location, cls))) return;
            EXPECT(*mark_of(w, location) == UNSEEN);
            EXPECT(cls == FKV_CLASS_BUCKET || ((fkv_extent *)at_location(t, location))->state == FKV_EXTENT_DEAD);
            *mark_of(w, location) = QUARANTINED;
            bytes += class_bytes(cls);
            if (item_is_aborted(item)) aborted += class_bytes(cls);
            of_class[cls]++;
        }
    }
    EXPECT(bytes == t->quarantine_bytes && aborted == t->aborted_bytes);
    EXPECT(memcmp(of_class, t->quarantined_of, sizeof of_class) == 0);
    EXPECT(memcmp(w->moving, t->moving, (size_t)t->grains * GRAIN_BUCKETS) == 0);
    EXPECT(settling == t->settling);
}

/* ---- heap ---- */

static void check_span(walk *w, const heap_segment *g, uint32_t id) {
    table *t = w->t;
    const span *s = &t->spans[id];
    uint32_t units = fkv_class_units(s->cls), first_unit = s->first_block * (BLOCK_BYTES / FKV_UNIT), used = 0,
             free_ones = 0;
    uint8_t *marks = w->marks[g->number] + first_unit;
    EXPECT(s->segment == g->number && s->used <= s->carved && s->carved <= s->objects &&
           s->objects == t->shape[s->cls].objects);
    for (uint32_t object = s->free_head; object && !w->wrong; free_ones++) {
        uint8_t *mark = &marks[(object - 1) * units];
        if (!EXPECT(object <= s->carved) || !expect(w, *mark == UNSEEN, "a free extent is in use, or free twice"))
            return;
        *mark = FREE;
        object = (uint16_t)((fkv_extent *)(void *)(g->region.base +
                                                   (size_t)(first_unit + (object - 1) * units) * FKV_UNIT))
                     ->expiry_space;
    }
    for (uint32_t object = 0; object < s->carved; object++) {
        uint8_t mark = marks[object * units];
        expect(w, mark != UNSEEN, "an extent was lost: neither free nor in use");
        used += mark != FREE;
    }
    EXPECT(used == s->used && free_ones == (uint32_t)(s->carved - s->used));
    EXPECT(s->listed == (s->used < s->objects && !g->evacuating));
}

static void check_heap(walk *w) {
    table *t = w->t;
    uint64_t bytes = 0, span_end_bytes = 0, used_bytes_in_all = 0;
    uint32_t spans = 0, segments = 0, evacuating = 0, open = 0, with_blocks = 0;
    for (uint32_t n = 1; n < t->heap_room && !w->wrong; n++) {
        const heap_segment *g = t->heap[n];
        if (!g) continue;
        uint32_t used = 0, quarantined = 0, blocks = 0;
        uint64_t used_bytes = 0;
        for (uint32_t id = g->first_span; id && !w->wrong; id = t->spans[id].next_in_segment, spans++) {
            const span *s = &t->spans[id];
            span_shape shape = t->shape[s->cls];
            check_span(w, g, id);
            for (uint32_t i = 0; i < shape.blocks; i++) EXPECT(g->span_of_block[s->first_block + i] == id);
            used += s->used;
            used_bytes += (uint64_t)shape.blocks * BLOCK_BYTES - (uint64_t)(s->objects - s->used) * class_bytes(s->cls);
            blocks += shape.blocks;
            span_end_bytes += (uint64_t)shape.blocks * BLOCK_BYTES - (uint64_t)shape.objects * class_bytes(s->cls);
        }
        for (uint32_t u = 0; u < g->blocks * (BLOCK_BYTES / FKV_UNIT); u++)
            quarantined += w->marks[n][u] == QUARANTINED;
        EXPECT(used == g->used && quarantined == g->quarantined && used_bytes == g->used_bytes &&
               blocks == g->next_block);
        evacuating += g->evacuating;
        with_blocks += g->next_block < g->blocks;
        bytes += g->region.bytes;
        used_bytes_in_all += used_bytes;
        segments++;
    }
    for (const heap_segment *g = t->open; g; g = g->next_open) open += g->next_block < g->blocks;
    EXPECT(open == with_blocks);
    EXPECT(evacuating == t->evacuating);
    EXPECT(span_end_bytes == t->span_end_bytes);
    EXPECT(used_bytes_in_all == t->live_bytes + t->prepared_bytes + t->overflow_buckets * FKV_BUCKET_BYTES +
                                    t->quarantine_bytes + t->span_end_bytes);
    EXPECT(bytes == t->heap_bytes);
    EXPECT(segments == t->heap_segments);
    EXPECT(spans == t->span_count);
}

const char *table_check(table *t) {
    walk all = { .t = t, .least_expiry = UINT64_MAX }, *w = &all;
    if (t->buckets == 0) return NULL;
    w->marks = calloc(t->heap_room + 1, sizeof *w->marks);
    w->moving = calloc(t->grains, GRAIN_BUCKETS);
    bool memory = w->marks && w->moving;
    for (uint32_t n = 1; n < t->heap_room && memory; n++)
        if (t->heap[n]) memory = (w->marks[n] = calloc(t->heap[n]->blocks, BLOCK_BYTES / FKV_UNIT)) != NULL;
    if (expect(w, memory, "no memory to check with")) {
        check_index(w);
        if (!w->wrong) check_prepared(w);
        if (!w->wrong) check_quarantine(w);
        if (!w->wrong) check_heap(w);
    }
    for (uint32_t n = 1; w->marks && n < t->heap_room; n++) free(w->marks[n]);
    free(w->marks);
    free(w->moving);
    return w->wrong;
}
