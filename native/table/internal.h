/* internal.h: what the files of native/table share. Nothing outside this folder includes it, but for its tests.
 *
 *   table.c       create, destroy, stats           change.c      prepare, seal, commit, abort, get
 *   segment.c     segments come, are asked for, go  prepared.c    the set of prepared changes
 *   classes.c     size classes and span shapes      quarantine.c  what must stay as it is for a while
 *   heap.c        spans, extents                    tick.c        background work, expiry
 *   index.c       buckets, slots, chains            evacuate.c    emptying a heap segment
 *   split.c       growth by one bucket              shrink.c      memory of the heap goes back
 *   merge.c       fewer buckets, a smaller index    digest.c      what copies have in common, scrubs
 *   scan.c, invariants.c
 *
 * Memory of a heap segment: 4 KiB blocks, handed out from the front as spans; a span holds extents of one size class
 * for the life of the segment, so a stale location can point at another extent's header but never into a value. The
 * records below are private memory; in registered memory there is nothing but buckets and extents. A free extent's
 * expiry word links it to the next.
 */
#ifndef FARKV_TABLE_INTERNAL_H
#define FARKV_TABLE_INTERNAL_H
#include <assert.h>
#include <stdlib.h>
#include "table.h"
#include "words.h"

enum {
    BLOCK_BYTES = 4096,
    GRAIN_BUCKETS = 64,
    INDEX_GRAIN = GRAIN_BUCKETS * FKV_BUCKET_BYTES, /* 8 KiB: index segments are multiples of it */
    SPAN_BLOCKS_MAX = 64,                           /* of spans with several extents: 256 KiB */
    LARGE_BYTES = SPAN_BLOCKS_MAX * BLOCK_BYTES,    /* an extent above has a span of its own */
    /* an extent above is never evacuated: the copy would hold up the thread */
    MOVED_BYTES_MOST = 2 << 20,
    SEGMENT_NUMBERS = 1 << 16,
    DELAY_QUEUES = 3,
    DELAY_MARKS = 128,
    CLASSES = 256
};
/* Linear hashing splits while entries > buckets * LOAD_HALVES / 2. At 7.5 entries of 14 slots, buckets not yet split
 * hold up to 15: about 1.5 % of the keys lie in overflow buckets, and the index costs 17 to 18.5 bytes an entry. */
enum { LOAD_HALVES = 15 };
/* What is free for so long goes back. */
#define SHRINK_AFTER_NS 2000000000ull

/* ---- heap ---- */
typedef struct span_shape {
    uint16_t blocks, objects;
} span_shape;

typedef struct span {
    uint32_t next, previous; /* among the spans of its class that have room; 0 = none */
    uint32_t next_in_segment;
    uint32_t first_block;
    uint16_t segment;
    uint16_t objects;
    uint16_t used; /* handed out: live, prepared or quarantined */
    /* ever handed out; the rest of the span was never written. used <= carved <= objects */
    uint16_t carved;
    uint16_t free_head; /* object + 1 of the first of the carved - used free ones; 0 = none */
    uint8_t cls;
    /* in the list of its class: used < objects, and the segment is not being evacuated */
    bool listed;
} span;

typedef struct heap_segment {
    fkv_region region;
    uint32_t tag, number;
    uint32_t blocks, next_block; /* blocks from next_block on belong to no span yet */
    uint32_t *span_of_block;
    uint32_t first_span;
    uint32_t used, quarantined;     /* extents handed out, and of these in quarantine */
    uint32_t large;                 /* spans of extents above MOVED_BYTES_MOST */
    uint64_t used_bytes;            /* of extents handed out, and ends of spans */
    struct heap_segment *next_open; /* in the list of those with blocks left; one without is taken out when it is met */
    bool evacuating;
    uint64_t came_ns;
    uint64_t evacuate_after_ns; /* an attempt failed for want of room: none before this time */
} heap_segment;

/* ---- index ---- */
typedef struct index_segment {
    fkv_region region;
    uint32_t tag;
    uint32_t first_bucket;
    uint64_t came_ns;
} index_segment;

/* Where an entry was found. */
typedef struct place {
    uint32_t bucket;
    uint64_t *slot;
    uint64_t word;
    fkv_extent *extent;
} place;

/* ---- quarantine ---- */
/* Items pushed between two ticks get the time of the later one: never too early. `first` bounds how far marks are
 * merged. */
typedef struct delay_mark {
    uint64_t end, first_ns, last_ns;
} delay_mark;
typedef struct delay_queue {
    uint64_t *items;
    uint64_t capacity;   /* a power of two; head <= tail <= head + capacity */
    uint64_t head, tail; /* counts of items ever taken and put */
    uint64_t reserved;   /* places promised to prepared changes: tail + reserved <= head + capacity */
    uint64_t delay_ns;
    delay_mark mark[DELAY_MARKS];
    uint32_t first_mark, marks;
} delay_queue;

/* ---- prepared changes ---- */
typedef struct prepared {
    uint32_t next; /* in its hash chain or the free list; index + 1 */
    uint32_t generation;
    table_op_kind kind;
    uint64_t hash;
    uint64_t version;
    const fkv_extent *keyed; /* an extent that holds the key */
    uint64_t old_word;       /* the slot of what is there now; 0 = absent */
    uint64_t new_word;       /* the slot to store; 0 for deletes */
    uint64_t kept_word;      /* the word that keeps a slot for an insert; 0 else */
} prepared;
enum { PREPARED_HEADS = 1024 };

/* How far a scrub has come (digest.c); zeroes: none is under way. */
typedef struct scrub {
    uint64_t order;  /* what comes before was looked at */
    uint64_t digest; /* of that */
    uint64_t word, version;
    size_t bytes; /* of the entry with that slot and version: so many are in `crc` */
    uint32_t crc;
} scrub;

struct table {
    table_config config;
    uint64_t now_ns, wall_ms;
    uint64_t sequence; /* of versions */
    bool unread;       /* nobody reads it yet: nothing waits in quarantine */
    uint32_t layout_epoch;
    span_shape shape[CLASSES];

    uint32_t buckets;             /* B of linear hashing; 0 before the first index segment */
    uint32_t buckets_most;        /* the highest B so far: a lower number was in use before */
    uint8_t **directory;          /* of each GRAIN_BUCKETS buckets, in order */
    uint32_t grains, grains_room; /* length of directory; what directory and moving have room for */
    /* of each bucket, merged ones too: quarantine items that will clear slots in its chain, or settle it */
    uint8_t *moving;
    index_segment *index;
    uint32_t index_segments;

    heap_segment **heap; /* by number; heap[0] is NULL */
    uint32_t heap_room;  /* length of heap */
    uint32_t last_number;
    uint32_t heap_segments;
    heap_segment *open; /* segments with blocks that belong to no span, the latest first */
    uint8_t growing;    /* the class that took the last span: the next segment is made to fit its spans */
    span *spans;        /* spans[0] is unused */
    uint32_t span_room, span_count, free_span;
    uint32_t room[CLASSES];  /* first span of the class that has room */
    uint64_t span_end_bytes; /* ends of spans that no extent fits in */

    uint64_t index_bytes, heap_bytes; /* registered */
    uint64_t asked_index, asked_heap; /* bytes asked for and not yet answered */
    /* the same, besides asked_heap: for an extent that is too large for that, or a bridge */
    uint64_t asked_large;
    uint64_t refused_until_ns;
    fkv_status refused_why;

    delay_queue delay[DELAY_QUEUES];
    uint32_t quarantined_of[CLASSES]; /* extents in quarantine */
    uint64_t quarantine_bytes, quarantine_reserved;
    uint64_t aborted_bytes; /* of quarantine_bytes: of extents that were prepared and never LIVE */

    prepared *prepared;
    uint32_t prepared_room, free_prepared, prepared_count;
    uint64_t prepared_bytes; /* of their new extents */
    uint32_t prepared_head[PREPARED_HEADS];

    uint32_t evacuating;        /* how many heap segments are being emptied */
    uint32_t evacuate_bucket;   /* next bucket of the pass */
    uint64_t shrink_since_ns;   /* since when more is free than should be; 0: it is not */
    uint64_t shrink_pass_bytes; /* heap_bytes when the pass that empties segments began; 0: no pass */
    uint64_t shrink_stuck;      /* free bytes that nothing could be done about */
    uint64_t heap_came_ns;      /* when the last heap segment came */

    uint32_t settling;              /* quarantine items that will settle a bucket */
    uint64_t index_shrink_since_ns; /* since when the index is larger than it should be; 0: it is not */
    bool merging; /* merges have begun, and go on until the buckets are fuller than where they began */

    uint64_t expiring;        /* entries with an expiry */
    uint64_t expiry_floor_ms; /* no entry expires before; UINT64_MAX when none does */
    uint64_t pass_floor_ms;   /* the floor as the pass under way finds it */
    uint32_t sweep_bucket;    /* next bucket of the pass */
    uint64_t sweep_ns;        /* when the hand last moved */
    bool sweep_hurry;         /* memory is wanted: as fast as the budget allows, to the end of the pass */

    uint64_t digest; /* of the entries that do not expire */
    scrub scrub;

    uint64_t entries, key_value_bytes, live_bytes;
    uint64_t overflow_buckets, longest_chain, splits, merges, expired, evacuated, moving_now;
};

/* ---- small things ---- */
static inline fkv_bucket *bucket_at(const table *t, uint32_t b) {
    return (fkv_bucket *)(void *)(t->directory[b / GRAIN_BUCKETS] + (size_t)(b % GRAIN_BUCKETS) * FKV_BUCKET_BYTES);
}
static inline uint32_t bucket_of(const table *t, uint64_t hash) {
    return fkv_bucket_of(fkv_hash_bucket_bits(hash), t->buckets);
}
/* What the bucket's word says: how many bits of the hash its keys have in common. */
static inline uint32_t table_level(const table *t, uint32_t number) {
    uint32_t level = 31u - (uint32_t)__builtin_clz(t->buckets), extra = t->buckets - (1u << level);
    return level + (number < extra || number >= 1u << level);
}
static inline void *at_location(const table *t, uint64_t location) {
    return t->heap[fkv_location_segment(location)]->region.base + (size_t)fkv_location_unit(location) * FKV_UNIT;
}
static inline fkv_extent *extent_of(const table *t, uint64_t word) { return at_location(t, fkv_slot_location(word)); }
static inline fkv_bucket *overflow_of(const table *t, const fkv_bucket *b) {
    uint64_t location = fkv_bucket_overflow(b->word1);
    return location ? at_location(t, location) : NULL;
}
static inline const uint8_t *extent_key(const fkv_extent *e) { return (const uint8_t *)e + FKV_EXTENT_HEADER; }
static inline const uint8_t *extent_value(const fkv_extent *e) { return extent_key(e) + e->key_bytes; }
static inline uint32_t class_bytes(uint32_t cls) { return fkv_class_units(cls) * FKV_UNIT; }
/* While an extent is PENDING another thread may be writing its value, which shares a word with the end of the key. */
static inline uint64_t extent_hash(const table *t, const fkv_extent *e) {
    uint8_t copy[FKV_KEY_MAX];
    const uint8_t *key = extent_key(e);
    if (e->state == FKV_EXTENT_PENDING) {
        fkv_copy_shared(copy, key, e->key_bytes);
        key = copy;
    }
    return fkv_hash_key(&t->config.seed, fkv_extent_namespace(e->expiry_space), key, e->key_bytes);
}
static inline bool extent_expired(const table *t, const fkv_extent *e) {
    uint64_t expiry = fkv_extent_expiry(e->expiry_space);
    return expiry != 0 && expiry <= t->wall_ms;
}
static inline table_entry entry_of(const fkv_extent *e) {
    return (table_entry){ .version = e->version,
                          .expiry_ms = fkv_extent_expiry(e->expiry_space),
                          .value_bytes = e->value_bytes,
                          .user_flags = e->user_flags,
                          .space = fkv_extent_namespace(e->expiry_space),
                          .key_bytes = e->key_bytes,
                          .codec = e->codec,
                          .key = extent_key(e),
                          .value = extent_value(e) };
}
/* Of keys: by the bits that buckets are numbered with, reversed (scan.c); then by the rest. */
static inline uint64_t table_order_of(uint64_t hash) {
    return (uint64_t)fkv_reversed_bits(fkv_hash_bucket_bits(hash)) << 32 | hash >> 32;
}
/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014). */
static inline uint64_t table_digest_word(uint64_t hash, uint64_t version) {
    uint64_t z = hash + version * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
static inline void set_state(fkv_extent *e, uint32_t state) { __atomic_store_n(&e->state, state, __ATOMIC_RELEASE); }
static inline uint64_t registered(const table *t) { return t->index_bytes + t->heap_bytes; }
static inline uint64_t asked(const table *t) { return t->asked_index + t->asked_heap + t->asked_large; }

/* classes.c */
void table_span_shapes(span_shape shape[CLASSES], uint64_t memory_bytes);

/* segment.c */
bool table_ask_index(table *t);
/* true: a segment is on its way; one for the class, or as many as may be asked for at a time */
uint64_t table_heap_budget(const table *t); /* bytes that the heap may still ask for */
bool table_ask_heap(table *t, uint32_t cls);
bool table_make_room(table *t, uint32_t cls); /* the same, for which segments without extents go back */
void table_retire(table *t, uint32_t number); /* a heap segment without extents goes back */
bool table_retire_empty(table *t);            /* the first empty heap segment; false when there is none */
/* the first that came by then, and that the table would not ask for again */
bool table_retire_spare(table *t, uint64_t came_before_ns);
bool table_retire_index(table *t); /* the last index segment, when no bucket is in it any more */
void table_watch_index(table *t);  /* asks early */
void table_watch_heap(table *t);

/* heap.c: all memory of extents and overflow buckets */
uint64_t table_heap_take(table *t, uint32_t cls); /* a location; 0 when there is no room now */
/* one of the next classes where one is free; raises *cls */
uint64_t table_heap_take_larger(table *t, uint8_t *cls);
void table_heap_give(table *t, uint64_t location, uint32_t cls);
span *table_span_at(const table *t, uint64_t location);
void table_heap_forget(table *t, heap_segment *s);          /* drops the spans of an empty segment */
void table_heap_hide(table *t, heap_segment *s, bool hide); /* no extents are taken from a hidden segment */
/* bytes that extents of the class can have at once; may say less */
uint64_t table_heap_room(const table *t, uint32_t cls);
/* Why table_heap_take failed, having done what can be done about it. */
/* Why there is no memory, when nothing can be waited for. */
fkv_status table_full(const table *t);
fkv_status table_heap_why(table *t, uint32_t cls, table_busy *why);

/* index.c */
bool table_index_find(const table *t, uint64_t hash, uint16_t space, const void *key, size_t key_bytes, place *out);
uint64_t *table_index_slot(const table *t, uint64_t hash, uint64_t word); /* the first of its chain that is `word` */
fkv_status table_index_keep(table *t, uint64_t hash, uint64_t word, table_busy *why); /* stores into an empty slot */
void table_index_removed(table *t, uint32_t bucket);         /* after a slot of its chain was cleared */
void table_index_open(table *t, uint32_t from, uint32_t to); /* new buckets of the first index segment */
/* a location; 0: no room */
uint64_t table_overflow_make(table *t, const uint64_t *slots, uint32_t count, uint64_t next);
/* As many as these slots need, one behind the other; *first = 0 for no slots. False, with nothing taken, when there is
 * no room. */
bool table_overflow_make_chain(table *t, const uint64_t *slots, uint32_t count, uint64_t *first);
void table_overflow_link(table *t, fkv_bucket *before, uint64_t location);

/* split.c */
bool table_split_wanted(const table *t);
bool table_split(table *t); /* one bucket; false when that must wait */
/* whether one that must wait will be possible soon */
bool table_split_waits(const table *t, table_busy *why);
void table_clear_moved(table *t, uint64_t item); /* called by the quarantine */

/* merge.c */
/* whether there are fewer than so many percent of the entries at which a bucket is split */
bool table_load_below(const table *t, uint32_t percent);
bool table_merge(table *t);                     /* the last bucket into its other half; false when that must wait */
void table_settle(table *t, uint32_t bucket);   /* called by the quarantine */
bool table_shrink_index(table *t, int *budget); /* true when there is more to do now */

/* quarantine.c */
bool table_quarantine_fits(const table *t, uint64_t bytes);
/* a change with a new extent of this size, should it be aborted */
bool table_quarantine_bears(const table *t, uint64_t bytes);
/* promises a place for one extent; false: no private memory */
bool table_quarantine_place(table *t, uint32_t cls);
void table_quarantine_unplace(table *t, uint32_t cls);
void table_quarantine_extent(table *t, uint64_t location, uint32_t cls); /* takes a promised place */
/* the same, of an extent that was never LIVE */
void table_quarantine_aborted(table *t, uint64_t location, uint32_t cls);
bool table_quarantine_room(table *t, uint32_t items); /* places for moved slots; false: no private memory */
void table_quarantine_moved(table *t, uint32_t bucket, uint32_t position, uint32_t mask);
void table_quarantine_settle(table *t, uint32_t bucket); /* takes one of the same places */
static inline uint32_t moved_bucket(uint64_t item) { return (uint32_t)item; }
static inline uint32_t moved_mask(uint64_t item) { return (uint32_t)(item >> 32) & 0x3fff; }
static inline uint32_t moved_position(uint64_t item) { return (uint32_t)(item >> 46) & 0xf; }
static inline bool item_is_moved(uint64_t item) { return item >> 63; }
static inline bool item_is_aborted(uint64_t item) { return item >> 62 == 1; }
void table_quarantine_stamp(table *t);
bool table_quarantine_drain(table *t, int *budget); /* true when more is due */

/* invariants.c */
bool table_is_extent(const table *t, uint64_t location, uint32_t cls); /* one that was handed out, of this class */

/* prepared.c */
prepared *table_prepared_find(const table *t, uint64_t hash, uint16_t space, const void *key, size_t key_bytes);
prepared *table_prepared_add(table *t, uint64_t hash, uint64_t *handle); /* NULL: no private memory */
prepared *table_prepared_get(table *t, uint64_t handle);
void table_prepared_remove(table *t, prepared *p);

/* change.c */
void table_entry_gone(table *t, const fkv_extent *e, uint32_t cls); /* counters, before the extent is quarantined */

/* evacuate.c */
bool table_evacuate_start(table *t);
bool table_evacuate_many(table *t);
void table_files_open(table *t); /* what a pass has left of them takes segments again */
bool table_evacuate_step(table *t, int *budget);

/* shrink.c */
void table_shrink(table *t);

/* tick.c */
bool table_sweep_for_memory(table *t); /* true when expired entries may still be found */

#endif
