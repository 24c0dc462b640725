/* snapshot_items.h: the items of a snapshot's chunks (native/log/snapshot_file.h), by the kinds of chunks. Little-endian,
 * and hostile until checked. Private to native/replication.
 *
 *   ENTRIES   fkv_scan_entry, key, value; as in a SCAN reply, with versions and namespaces
 *   LARGE     one fkv_scan_entry without its value, key: the value follows
 *   VALUE     the next bytes of that value
 *   CUT       nothing: of that value no more comes, and its entry is none
 *   DAMAGED, VALUE_DAMAGED  as ENTRIES, and as the last VALUE, of what was damaged in memory
 *   WINDOWS   what is remembered of a client's changes: item_window, item_change[] */
#ifndef FARKV_REPLICATION_SNAPSHOT_ITEMS_H
#define FARKV_REPLICATION_SNAPSHOT_ITEMS_H
#include "../dataplane/dedup.h"
#include "../table/table.h"
#include "../wire/wire.h"

typedef enum {
    ITEM_ENTRIES = 1,
    ITEM_LARGE,
    ITEM_VALUE,
    ITEM_CUT,
    ITEM_WINDOWS,
    ITEM_DAMAGED,
    ITEM_VALUE_DAMAGED
} item_kind;
/* Values above that go in parts, so that no step of a walk takes long, and that a chunk has room for. */
enum { ITEM_LARGE_BYTES = 64 << 10, ITEM_CHUNK_MIN = 96 << 10 };

typedef struct item_window {
    uint64_t client;
    uint64_t forgotten; /* of its sequences up to there no more is known than that they were used */
    uint32_t changes, reserved;
} item_window;
static_assert(sizeof(item_window) == 24, "drawing");
typedef struct item_change {
    uint64_t tag; /* sequence 56 | status 8 */
    uint64_t version, value;
} item_change;
static_assert(sizeof(item_change) == 24, "drawing");
static_assert(sizeof(item_window) + FKV_DEDUP_WINDOW * sizeof(item_change) < ITEM_CHUNK_MIN / 2, "one fits a chunk");

static inline bool item_is_large(const table_entry *e) { return e->value_bytes > ITEM_LARGE_BYTES; }
uint32_t item_entry_bytes(const table_entry *e); /* of a large one, without its value */
void item_put_entry(uint8_t *to, const table_entry *e);
static inline uint32_t item_window_bytes(uint32_t changes) {
    return (uint32_t)(sizeof(item_window) + changes * sizeof(item_change));
}
void item_put_window(uint8_t *to, uint64_t client, uint64_t forgotten, const dedup_change *change, uint32_t changes);

/* Reads the window at *at (start with 0) and moves *at behind it. False at the end, and when what is left is no window
 * (then *at is less than `bytes`). */
bool item_next_window(const uint8_t *items, uint32_t bytes, uint32_t *at, item_window *w,
                      dedup_change change[FKV_DEDUP_WINDOW]);

#endif
