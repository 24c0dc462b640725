/* walk.c: see walk.h.
 *
 * A chain's entries may be more than there is room for. Then it is come back to, for those that are left: known by their
 * versions, which name a value wherever it moves. A key that is changed again and again is given once at most. */
#include "walk.h"
#include <string.h>
#include "../base/assert.h"
#include "../dataplane/worker.h"

/* Bytes; to go to a chain, or to an entry, is as dear as LOOK_COST. */
enum { STEP_COST = 96 << 10, LOOK_COST = 256, VALUE_PIECE = 32 << 10 };

void walk_begin(walk *k, const shard *s, snapshot_writer *to) { *k = (walk){ .s = s, .to = to }; }

/* Where the item goes; NULL: not now. */
static uint8_t *give(walk *k, item_kind kind, uint32_t bytes) {
    uint8_t *to = k->full ? NULL : snapshot_put(k->to, kind, bytes, k->now_ns);
    k->full |= !to;
    k->cost += bytes + LOOK_COST;
    return to;
}

/* ---- entries ---- */

static void begin_value(walk *k, const table_entry *e) {
    k->value_at = 0;
    k->value_bytes = e->value_bytes;
    k->version = e->version;
    k->space = e->space;
    k->key_bytes = e->key_bytes;
    memcpy(k->key, e->key, e->key_bytes);
    k->hash = fkv_hash_key(&k->s->w->d->c.hash_seed, e->space, e->key, e->key_bytes);
    k->begun = k->crc = table_checksum_begin(e);
}

static bool give_now(walk *k, const table_entry *e) {
    bool large = item_is_large(e);
    if (k->full || k->value_bytes) return false; /* that goes in front of what follows */
    /* mutation: snapshots/damaged-given-as-good */
    item_kind kind = large ? ITEM_LARGE : table_is_whole(e) ? ITEM_ENTRIES : ITEM_DAMAGED;
    uint8_t *to = give(k, kind, item_entry_bytes(e));
    if (to) item_put_entry(to, e);
    if (to && large) begin_value(k, e);
    return to != NULL;
}

static void give_entry(void *ctx, const table_entry *e) {
    walk *k = ctx;
    uint32_t i = 0;
    if (!k->rest) {
        if (give_now(k, e)) return;
        fkv_assert(k->lefts < WALK_CHAIN);
        k->left[k->lefts++] = e->version;
        return;
    }
    while (i < k->lefts && k->left[i] != e->version) i++;
    if (i < k->lefts && give_now(k, e)) k->left[i] = k->left[--k->lefts];
}

static void forget_rest(walk *k) {
    k->rest = false;
    k->lefts = 0;
}

/* One chain, or what is left of it. */
static void give_chain(walk *k) {
    uint64_t next = k->cursor;
    table_scan(k->s->table, TABLE_EVERY_NAMESPACE, &next, give_entry, k);
    if (k->rest && next != k->next) return forget_rest(k); /* it was split or merged: all of it again */
    k->next = next;
    k->rest = k->full || k->value_bytes;
    if (k->rest) return; /* mutation: snapshots/walk-rest */
    forget_rest(k);
    k->cursor = next;
    if (next == 0) k->stage = WALK_CLIENTS;
}

/* The next piece. The entry may have moved since the last one; if it is gone, a later record says so. */
static void give_value(walk *k) {
    table_entry e;
    const shard *s = k->s;
    bool there = table_committed(s->table, k->space, k->key, k->key_bytes, k->hash, &e) == FKV_OK;
    if (!there || e.version != k->version) {
        if (give(k, ITEM_CUT, 0)) k->value_bytes = 0; /* mutation: snapshots/walk-cut */
        return;
    }
    uint32_t left = k->value_bytes - k->value_at, n = left < VALUE_PIECE ? left : VALUE_PIECE;
    uint32_t crc = fkv_crc32c(k->crc, e.value + k->value_at, n);
    /* One that moved was looked at then, and is as good here as it was there. */
    bool whole = n < left || (table_checksum_begin(&e) == k->begun ? crc == table_checksum(&e) : table_is_whole(&e));
    uint8_t *to = give(k, whole ? ITEM_VALUE : ITEM_VALUE_DAMAGED, n);
    if (!to) return;
    memcpy(to, e.value + k->value_at, n);
    k->value_at += n;
    k->crc = crc;
    if (k->value_at == k->value_bytes) k->value_bytes = 0;
}

/* ---- clients ---- */

static void give_window(void *ctx, uint64_t client, uint64_t forgotten, const dedup_change *change, uint32_t changes) {
    walk *k = ctx;
    if (k->full) return;
    if (!k->passed) {
        k->passed = client == k->client;
        return;
    }
    uint8_t *to = give(k, ITEM_WINDOWS, item_window_bytes(changes));
    if (!to) return;
    item_put_window(to, client, forgotten, change, changes);
    k->client = client;
    k->mask = k->s->w->dedup.mask;
}

/* If the last that was given is not there any more, all of the chain is given again. */
static void give_clients(walk *k) {
    uint64_t next = k->cursor;
    if (k->mask != k->s->w->dedup.mask) k->client = 0;
    k->passed = k->client == 0;
    dedup_scan(&k->s->w->dedup, k->s->slot, &next, give_window, k);
    if (k->passed && k->full) return;
    if (k->passed) k->cursor = next;
    if (k->passed && next == 0) k->stage = WALK_OVER;
    k->client = 0;
}

/* ---- steps ---- */

walk_result walk_step(walk *k, uint64_t now_ns) {
    k->now_ns = now_ns;
    k->full = false;
    for (k->cost = 0; k->cost < STEP_COST && !k->full; k->cost += LOOK_COST) {
        if (k->value_bytes)
            give_value(k);
        else if (k->stage == WALK_TABLE)
            give_chain(k);
        else if (k->stage == WALK_CLIENTS)
            give_clients(k);
        else
            return WALK_IS_OVER;
    }
    return k->full ? WALK_WAITS : WALK_GOES_ON;
}
