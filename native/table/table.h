/* table.h: the owner's side of a shard's table. One writer: every function here is called by the data-plane thread of
 * the shard only, but where it says otherwise. Readers are elsewhere and see only the bytes of layout.h.
 *
 * A change is two stages, prepare and commit, from the first day: between them replication will hold it at the backups.
 * Nothing that is only prepared can be seen: table_prepare() answers FKV_BUSY for a key that has a prepared change, and
 * the caller queues the operation behind it (compare-and-swap, DELETE and two-sided GET alike).
 *
 * Memory. The table never allocates a segment by itself: when it runs low it calls `want_segment`; the caller makes,
 * prefaults and registers memory on another thread and hands it over with table_add_segment(). Retired segments go back
 * through `retire_segment` once no GET can need what is in them. All memory is counted against memory_bytes. Freed
 * extents and overflow buckets are quarantined for longer than a whole GET may live: fkv_get_life_ns() of their size
 * and a fifth more. Quarantined memory is bounded by quarantine_bytes; when that is reached, changes get FKV_BUSY:
 * replacements and deletes when it is full, and everything that writes when the extents of aborted changes alone fill
 * it.
 *
 * Time is what the last table_tick() said, for expiry too: call it in every turn of the thread's loop, before the
 * changes.
 */
#ifndef FARKV_TABLE_H
#define FARKV_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/files.h"
#include "../base/hash.h"
#include "../base/status.h"
#include "layout.h"

/* How long what is freed stays unchanged beside the time for its bytes: a fifth more than readers may live. */
enum { TABLE_QUARANTINE_NS = FKV_GET_LIFE_NS / 5 * 6 };

typedef struct table table;
typedef enum { TABLE_INDEX = 1, TABLE_HEAP = 2 } table_segment_kind;

typedef struct table_config {
    uint32_t shard;
    uint32_t epoch; /* ownership epoch, the high bits of versions; at most 2^20 - 1 */
    fkv_seed seed;
    uint64_t memory_bytes; /* segments in all; at least TABLE_MEMORY_MIN */
    /* Of the first index segment, which stays; fewer where that would take too much. A table that is filled in the order of
     * a SCAN needs about as many as the one that is scanned: keys come bucket by bucket, so of a small index one chain
     * after the other would be full. */
    uint32_t buckets;
    uint64_t segment_grain; /* 0: none; else segments that are asked for are multiples of it: of a huge page */
    /* Whose parts the heap's segments are, and are to be emptied together; NULL: each has memory of its own. */
    fkv_files *heap_files;
    /* 0: TABLE_QUARANTINE_NS; time for an extent's bytes is added */
    uint64_t quarantine_ns;
    uint64_t quarantine_bytes; /* 0: memory_bytes / 8 */
    /* Asks for a segment of at least `bytes`; called from inside table functions, answered later, not from inside,
     * through table_add_segment or table_segment_refused with the same kind and, when refused, the same bytes. `ctx` is
     * the config's. */
    void (*want_segment)(void *ctx, table_segment_kind kind, size_t bytes);
    void (*retire_segment)(void *ctx, table_segment_kind kind, uint32_t segment);
    void *ctx;
} table_config;
enum { TABLE_MEMORY_MIN = 4 << 20 };

fkv_status table_create(const table_config *c, table **out);
void table_destroy(table *t); /* the caller frees the regions */

/* The sizes to ask for, so that the caller can have the first ones ready before the table opens. */
size_t table_first_index_bytes(const table_config *c);
size_t table_first_heap_bytes(const table_config *c);
/* Region memory must be zero; bytes a multiple of 8 KiB for the index, of 4 KiB and at most 512 MiB for the heap. `tag`
 * is a fresh random incarnation tag, not 0. The region's fields are copied; its memory stays mapped until
 * retire_segment or table_destroy. Numbers of retired heap segments come again only after 65,535 others. Index segments
 * are retired from the end, so a number comes again with the next one. */
fkv_status table_add_segment(table *t, table_segment_kind kind, const fkv_region *r, uint32_t tag, uint32_t *segment);
/* `why` is what changes that need the memory end with until it is asked for again: TABLE_FULL, or NO_MEMORY where the
 * system is at fault. */
void table_segment_refused(table *t, table_segment_kind kind, size_t bytes, fkv_status why);

/* What a reader must know of the memory. Invariant: index segments are in bucket order. */
typedef struct table_segment {
    table_segment_kind kind;
    uint32_t segment; /* number that locations name; for an index segment its ordinal */
    uint32_t tag;
    uint64_t bytes;
    const fkv_region *region; /* the table's copy; valid until the next table_add_segment or retirement */
} table_segment;
/* The shard has changed its owner, and this table is the new one's: versions that are given from now on are above all of
 * earlier epochs. `epoch` is above the present one. */
void table_set_epoch(table *t, uint32_t epoch);
/* The limit from now on, at least TABLE_MEMORY_MIN. What is registered beyond it stays. */
void table_set_memory(table *t, uint64_t bytes);
/* Whether somebody may read the table, as from the first; while nobody does, what is freed need not stay as it is. */
void table_set_read(table *t, bool read);
uint32_t table_layout_epoch(const table *t); /* changes whenever a segment comes or goes */
uint32_t table_buckets(const table *t);
int table_segments(const table *t, table_segment *out, int max); /* returns how many there are */

/* ---- changes ---- */
typedef enum { TABLE_PUT = 1, TABLE_DELETE, TABLE_CAS, TABLE_CAS_DELETE } table_op_kind;
typedef struct table_op {
    table_op_kind kind;
    uint16_t space;
    uint16_t key_bytes;
    uint8_t codec;
    bool keeps_expiry; /* where there is a present entry, its expiry in the place of expiry_ms */
    const void *key;
    uint64_t hash;     /* fkv_hash_key of space and key */
    const void *value; /* NULL with value_bytes > 0: space is reserved, see table_prepared.value */
    uint32_t value_bytes;
    uint32_t user_flags;
    uint64_t expiry_ms;        /* wall clock, 0 never */
    uint64_t expected_version; /* CAS: must be the present version; 0 = must be absent */
    /* PUT of an entry that is taken over from the shard's last owner: it keeps this version, which must be above the
     * present one (else VERSION_MISMATCH). 0: the table gives one */
    uint64_t version;
} table_op;

typedef struct table_prepared {
    uint64_t handle;  /* opaque */
    uint64_t version; /* what the entry will have */
    /* where a reserved value is to be written (fkv_copy_in of words.h), by any thread, before table_seal; NULL for
     * deletes */
    uint8_t *value;
    const uint8_t *key; /* the key in the table's memory, until commit or abort; a DELETE's is that of the entry */
    fkv_extent *extent; /* opaque */
} table_prepared;

/* OK: prepared. BUSY: the key has a prepared change, or memory must first leave quarantine, or a segment is on its way
 * (`*why` says which). NOT_FOUND (delete of a missing key), VERSION_MISMATCH (`*present` = the version there is, 0 =
 * absent), TABLE_FULL, NO_MEMORY, KEY_INVALID, VALUE_TOO_LARGE. An expired entry counts as absent. A CAS_DELETE of an absent key
 * is NOT_FOUND when 0 was expected, else VERSION_MISMATCH. */
typedef enum { TABLE_BUSY_KEY = 1, TABLE_BUSY_QUARANTINE, TABLE_BUSY_SEGMENT } table_busy;
fkv_status table_prepare(table *t, const table_op *op, table_prepared *out, uint64_t *present, table_busy *why);
/* Checksums a value that was written after prepare; any thread, before commit. It touches the extent only, not the
 * table. A value given to table_prepare is sealed. */
void table_seal(table *t, const table_prepared *p);
/* As table_seal, of what was damaged where it comes from, with a checksum that is wrong: nobody takes it for good. */
void table_seal_damaged(table *t, const table_prepared *p);
void table_commit(table *t, const table_prepared *p); /* DEAD old, LIVE new, slot: the change takes effect */
void table_abort(table *t, const table_prepared *p);

/* ---- reads by the owner ---- */
typedef struct table_entry {
    uint64_t version, expiry_ms;
    uint32_t value_bytes, user_flags;
    uint16_t space, key_bytes;
    uint8_t codec;
    const uint8_t *key, *value; /* valid until the quarantine has passed after the entry's replacement */
} table_entry;
fkv_status table_get(table *t, uint16_t space, const void *key, size_t key_bytes, uint64_t hash, table_entry *out,
                     table_busy *why);

/* As table_get, of what is committed, whatever is prepared for the key: OK or NOT_FOUND. What is prepared may still be
 * aborted. */
fkv_status table_committed(table *t, uint16_t space, const void *key, size_t key_bytes, uint64_t hash,
                           table_entry *out);

/* Whether the entry's checksum is right, and so its key and value are as they were prepared. */
bool table_is_whole(const table_entry *e);
/* The same in parts: the checksum of what goes before the value, with which fkv_crc32c goes on, and what it must be behind
 * the value. Both are others when the entry has moved. */
uint32_t table_checksum_begin(const table_entry *e);
uint32_t table_checksum(const table_entry *e);

/* One step of a scan of a namespace, or of all (TABLE_EVERY_NAMESPACE). *cursor starts at 0 and is 0 again at the end.
 * Calls `emit` for the entries of one bucket chain; every key that is present from the first to the last step is
 * emitted at least once, growth or not: the cursor is a position in the bit-reversed hash, and splits only refine its
 * order. Keys come again where a client repeats a step, and where buckets are merged. Any other cursor is answered too:
 * it need not be one that was handed out. */
enum { TABLE_EVERY_NAMESPACE = 1 << 16 };
void table_scan(table *t, uint32_t space, uint64_t *cursor, void (*emit)(void *ctx, const table_entry *e), void *ctx);

/* What tables with the same entries have in common: of the keys and versions of all entries without an expiry. */
uint64_t table_digest(const table *t);
/* One step of a look at everything: the checksum of each entry, and the digest anew. About so many bytes are read. What
 * changes meanwhile is no damage. After the last step (WHOLE, DAMAGED) the next one begins anew. */
typedef enum { TABLE_SCRUB_GOES_ON, TABLE_SCRUB_WHOLE, TABLE_SCRUB_DAMAGED } table_scrub_result;
table_scrub_result table_scrub(table *t, size_t budget);

/* Brings what a coming change or read of this hash will touch closer: stage 0 the bucket, stage 1 (some 100 ns later)
 * the extents whose fingerprint matches. A thread that has a batch of requests calls 0 for all, then 1 for all, then
 * prepares. */
void table_prefetch(const table *t, uint64_t hash, int stage);

/* Background work in bounded slices: quarantine, splits, merges, expiry, evacuation. now_ns as fkv_now_ns, wall_ms as
 * fkv_wall_ms; `budget` is about how many entries may be touched. Returns true when there is more to do now; idle work
 * is paced by the clock, so every 10 to 100 ms is often enough for a table that rests. */
bool table_tick(table *t, uint64_t now_ns, uint64_t wall_ms, int budget);
/* Before operations that came after the last tick: what has expired by `wall_ms` is absent for them. */
void table_set_wall(table *t, uint64_t wall_ms);
/* True when no tick has anything to do until the next change: nothing is in quarantine, no slot is moving (a chain that
 * it will shorten costs readers a READ until then), nothing can expire, no bucket that there is room for waits to be
 * split, no memory is to go back. */
bool table_resting(const table *t);

/* All registered memory is accounted for:
 *     index_bytes = buckets * FKV_BUCKET_BYTES + index_free_bytes
 *     heap_bytes  = live_extent_bytes + prepared_bytes + overflow_bytes + quarantine_bytes + slack_bytes + free_bytes
 * used_bytes is what cannot take another entry now: all of these but index_free_bytes and free_bytes. table_check
 * counts each part by itself. */
typedef struct table_stats {
    uint64_t entries, key_value_bytes;
    uint64_t index_bytes, heap_bytes, memory_bytes; /* registered; the limit */
    uint64_t asked_bytes;                           /* of segments that are being made */
    uint64_t live_extent_bytes;                     /* keys, values, headers, and what is lost to the next size class */
    uint64_t prepared_bytes;                        /* extents of prepared changes */
    uint64_t overflow_bytes, quarantine_bytes;
    uint64_t slack_bytes; /* ends of spans that no extent fits in */
    uint64_t free_bytes, index_free_bytes;
    uint64_t buckets, overflow_buckets, longest_chain, splits, merges, expired, prepared;
    uint64_t used_bytes;    /* see above */
    uint64_t private_bytes; /* not registered: what the owner keeps for itself */
    /* times that a bucket waits for its moved slots to be cleared, or to be settled */
    uint64_t moving;
    uint64_t evacuated; /* extents moved to empty a segment */
} table_stats;
void table_get_stats(const table *t, table_stats *out);

/* Walks everything and checks every invariant, checksums included; NULL when all hold, else what does not. For tests
 * and for an operator's doubt: it stops the writer for as long as it takes. */
const char *table_check(table *t);

#endif
