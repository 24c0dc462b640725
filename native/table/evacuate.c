/* evacuate.c: emptying a heap segment, so that its memory can be used for other size classes.
 *
 * A span keeps its class for the life of its segment, so memory that was given to 100 B values cannot hold 1,000 B
 * ones. When a class finds no memory although enough is free elsewhere, the segment with the least in it is hidden from
 * allocation, what lives in it is moved, and when the quarantine has let go of the last extent the segment is retired:
 * its rkey, tag and number die with it, and a new segment may come.
 *
 * One pass over the index finds everything, for slots and chains name the segment. A move is a PUT of the same bytes
 * with the same version: PENDING, old DEAD, slot, LIVE. Chains with moving slots, prepared keys and kept slots wait for
 * the next pass.
 *
 * The version stays because it is the value's, not the place's: who read it may compare and swap by it. So (version,
 * place) is not unique for ever: a pass that gave up may leave an entry elsewhere, and a later one bring it back.
 * docs/table.md, "Safety".
 */
#include "internal.h"
#include "reader.h"

enum {
    MOVE_COST = 8, /* and 1 for each */
    MOVE_COST_BYTES = 32 << 10,
    PASS_PART = 16, /* segments are small: one pass empties as many as make up this part of the heap, */
    SHRINK_PART = 4 /* or this, where nobody waits for the first of them */
};
#define RETRY_NS 1000000000ull

typedef enum { MOVED_ALL, MUST_WAIT, NO_ROOM } outcome;

/* ---- which segments ----
 * Who waits for memory of another class is helped most by the emptiest segment. Who wants to give memory back has to
 * empty whole memory files, for their pages go back together: so then a segment counts as as full as its file is, holes
 * included, and the segments of one file go one after the other. A file with a segment that cannot be emptied, or came
 * lately, counts as full. */

enum { SHARES = 1024, WORTH_IT = SHARES / 4 * 3 };

static bool stays(const table *t, const heap_segment *g) {
    return g->large || t->now_ns < g->evacuate_after_ns || t->now_ns - g->came_ns < SHRINK_AFTER_NS;
}

/* The bytes in use of each file, noted with it. */
static void note_files(const table *t) {
    for (uint32_t n = 1; n < t->heap_room; n++)
        if (t->heap[n] && t->heap[n]->region.file) *fkv_file_note(t->heap[n]->region.file) = 0;
    for (uint32_t n = 1; n < t->heap_room; n++) {
        const heap_segment *g = t->heap[n];
        if (!g || !g->region.file) continue;
        uint64_t *note = fkv_file_note(g->region.file);
        *note += stays(t, g) ? fkv_file_carved(g->region.file) : g->used_bytes;
    }
}

static uint64_t share(const heap_segment *g, bool by_file) {
    if (by_file && g->region.file) return *fkv_file_note(g->region.file) * SHARES / fkv_file_carved(g->region.file);
    return g->used_bytes * SHARES / g->region.bytes;
}

/* An empty segment keeps a file in which others are in use; where none is, it is retired or needed (segment.c). */
static bool may_go(const table *t, const heap_segment *g, bool by_file) {
    if (g->evacuating || g->large || t->now_ns < g->evacuate_after_ns) return false;
    return share(g, by_file) <= WORTH_IT &&
           (g->used > 0 || (by_file && g->region.file && *fkv_file_note(g->region.file) > 0));
}

static bool comes_before(const heap_segment *a, const heap_segment *b, bool by_file) {
    uint64_t x = share(a, by_file), y = share(b, by_file);
    if (x != y) return x < y;
    if (by_file && a->region.file != b->region.file) return (uintptr_t)a->region.file < (uintptr_t)b->region.file;
    return a->used_bytes < b->used_bytes;
}

/* The next one that is worth it; `room` is what is free in the others. */
static heap_segment *emptiest(const table *t, uint64_t room, bool by_file) {
    heap_segment *best = NULL;
    for (uint32_t n = 1; n < t->heap_room; n++) {
        heap_segment *g = t->heap[n];
        if (g && may_go(t, g, by_file) && (!best || comes_before(g, best, by_file))) best = g;
    }
    if (!best) return NULL;
    uint64_t own = best->region.bytes - best->used_bytes;
    return own <= room && best->used_bytes <= room - own ? best : NULL;
}

static bool start(table *t, uint64_t part, bool by_file) {
    if (t->evacuating) return true;
    uint64_t room = t->heap_bytes, emptied = 0;
    for (uint32_t n = 1; n < t->heap_room; n++)
        if (t->heap[n]) room -= t->heap[n]->used_bytes;
    if (by_file && t->config.heap_files) {
        note_files(t);
        /* what lives in the last file may have to move into a new one */
        room += table_heap_budget(t);
    }
    fkv_file *last = NULL;
    for (heap_segment *g; (g = emptiest(t, room, by_file));) {
        bool same = by_file && last && g->region.file == last;
        if (emptied > t->heap_bytes / part && !same) break;
        last = g->region.file;
        if (by_file && last) fkv_file_close(last, true);
        table_heap_hide(t, g, true);
        t->evacuating++;
        room -= g->region.bytes; /* its own, and what its extents will take elsewhere */
        emptied += g->region.bytes;
    }
    t->evacuate_bucket = 0;
    return t->evacuating > 0;
}

void table_files_open(table *t) {
    for (uint32_t n = 1; n < t->heap_room; n++)
        if (t->heap[n] && t->heap[n]->region.file) fkv_file_close(t->heap[n]->region.file, false);
}

bool table_evacuate_start(table *t) { return start(t, PASS_PART, false); }
bool table_evacuate_many(table *t) { return start(t, SHRINK_PART, true); }

static void cancel(table *t) {
    for (uint32_t n = 1; n < t->heap_room; n++) {
        heap_segment *g = t->heap[n];
        if (!g || !g->evacuating) continue;
        table_heap_hide(t, g, false);
        g->evacuate_after_ns = t->now_ns + RETRY_NS;
    }
    t->evacuating = 0;
}

/* The same key, value and version in another place; the tag in the header, and so the checksum, are the new segment's.
 * */
static void copy_extent(table *t, const fkv_extent *from, uint64_t location) {
    fkv_extent *to = at_location(t, location), h = *from;
    uint32_t body = (uint32_t)h.key_bytes + h.value_bytes;
    h.tag = t->heap[fkv_location_segment(location)]->tag;
    __atomic_store_n(&to->state, FKV_EXTENT_PENDING, __ATOMIC_RELAXED);
    fkv_store_fence();
    fkv_copy_in((uint8_t *)to + 8, (const uint8_t *)&h + 8, FKV_EXTENT_HEADER - 8);
    fkv_copy_in((uint8_t *)to + FKV_EXTENT_HEADER, extent_key(from), body);
    uint32_t crc = fkv_crc32c(0, (const uint8_t *)&h + 8, FKV_EXTENT_HEADER - 8);
    crc = fkv_crc32c(crc, extent_key(from), body);
    /* what is damaged does not become good by that */
    /* mutation: table/damaged-made-good */
    if (fkv_extent_crc(from, h.key_bytes, h.value_bytes) != h.crc) crc = ~crc;
    __atomic_store_n(&to->crc, crc, FKV_SHARED_STORE);
}

static outcome move_extent(table *t, uint64_t *slot) {
    uint64_t word = *slot;
    uint8_t cls = fkv_slot_class(word), to_cls = cls;
    fkv_extent *e = extent_of(t, word);
    /* kept for an insert: its extent is still being written */
    if (fkv_slot_fingerprint(word) == 0) return MUST_WAIT;
    uint16_t space = fkv_extent_namespace(e->expiry_space);
    /* mutation: table/evacuation-prepared */
    if (table_prepared_find(t, extent_hash(t, e), space, extent_key(e), e->key_bytes)) return MUST_WAIT;
    if (!table_quarantine_fits(t, class_bytes(cls)) || !table_quarantine_place(t, cls)) return MUST_WAIT;
    uint64_t location = table_heap_take(t, cls);
    if (!location) location = table_heap_take_larger(t, &to_cls);
    if (!location) {
        table_quarantine_unplace(t, cls);
        return table_ask_heap(t, cls) ? MUST_WAIT : NO_ROOM;
    }
    copy_extent(t, e, location);
    set_state(e, FKV_EXTENT_DEAD); /* mutation: table/evacuation-dead-first */
    fkv_publish_word(slot, fkv_slot(fkv_slot_fingerprint(word), to_cls, location));
    set_state(at_location(t, location), FKV_EXTENT_LIVE);
    table_quarantine_extent(t, fkv_slot_location(word), cls);
    t->live_bytes += class_bytes(to_cls) - class_bytes(cls);
    t->evacuated++;
    return MOVED_ALL;
}

/* A reader that is on its way to the old overflow bucket finds there what it would have found before the move. */
static outcome move_overflow(table *t, fkv_bucket *before) {
    uint64_t location = fkv_bucket_overflow(before->word1);
    const fkv_bucket *old = at_location(t, location);
    if (!table_quarantine_place(t, FKV_CLASS_BUCKET)) return MUST_WAIT;
    uint64_t copy = table_overflow_make(t, old->slot, FKV_SLOTS, fkv_bucket_overflow(old->word1));
    if (!copy) {
        table_quarantine_unplace(t, FKV_CLASS_BUCKET);
        return table_ask_heap(t, FKV_CLASS_BUCKET) ? MUST_WAIT : NO_ROOM;
    }
    fkv_publish_word(&before->word1, fkv_bucket_word1(copy, t->layout_epoch & 0xffffff));
    table_quarantine_extent(t, location, FKV_CLASS_BUCKET);
    t->overflow_buckets--;
    return MOVED_ALL;
}

static bool leaves(const table *t, uint64_t location) { return t->heap[fkv_location_segment(location)]->evacuating; }

static outcome move_chain(table *t, uint32_t number, int *budget) {
    if (t->moving[number]) return MUST_WAIT;
    outcome all = MOVED_ALL;
    for (fkv_bucket *b = bucket_at(t, number); b; b = overflow_of(t, b)) {
        for (int i = 0; i < FKV_SLOTS; i++) {
            if (b->slot[i] == 0 || !leaves(t, fkv_slot_location(b->slot[i]))) continue;
            *budget -= MOVE_COST + (int)(class_bytes(fkv_slot_class(b->slot[i])) / MOVE_COST_BYTES);
            outcome o = move_extent(t, &b->slot[i]);
            if (o > all) all = o;
        }
        uint64_t next = fkv_bucket_overflow(b->word1);
        if (next && leaves(t, next)) {
            outcome o = move_overflow(t, b);
            if (o > all) all = o;
        }
    }
    return all;
}

/* Emptied segments go back; true while there is something to move in another. */
static bool something_left(table *t) {
    bool left = false;
    for (uint32_t n = 1; n < t->heap_room; n++) {
        const heap_segment *g = t->heap[n];
        if (!g || !g->evacuating) continue;
        left |= g->used > g->quarantined;
        if (g->used == 0) table_retire(t, n);
    }
    return left;
}

bool table_evacuate_step(table *t, int *budget) {
    if (!t->evacuating || !something_left(t)) return false;
    if (t->evacuate_bucket >= t->buckets) t->evacuate_bucket = 0; /* merged meanwhile */
    while (*budget > 0) {
        if (move_chain(t, t->evacuate_bucket, budget) == NO_ROOM) {
            cancel(t);
            return false;
        }
        --*budget;
        if (++t->evacuate_bucket < t->buckets) continue;
        t->evacuate_bucket = 0;
        return false; /* what had to wait is for the next pass, not for now */
    }
    return true;
}
