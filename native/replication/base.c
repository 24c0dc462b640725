/* base.c: see base.h. On the worker's thread. */
#include "base.h"
#include <stdlib.h>
#include "../base/assert.h"
#include "backup.h"
#include "durable.h"
#include "import.h"
#include "open.h"
#include "owner_link.h"
#include "replicate.h"
#include "role.h"

enum { CHAINS_A_TURN = 32, CHAIN_ENTRIES = FKV_CHAIN_MAX * FKV_SLOTS };

/* ---- the copy ends, its entries stay ---- */

/* What was prepared and not committed may never have been a change of the shard. */
static void end_copy(shard *s) {
    backup *b = s->repl.copy;
    if (!b) return;
    backup_cuts_off(b, b->applied); /* mutation: rejoin/prepared-in-base */
    backup_free(b);
    s->repl.copy = NULL;
}

static void keep(shard *s) {
    command *c = s->repl.basing;
    s->repl.basing = NULL;
    end_copy(s);
    /* From here on nothing on the disk is of this table: the next copy's begins with a snapshot. */
    snapshots_end(s);
    if (s->durable) durable_end(s);
    change_log_free(&s->changed);
    s->repl.drawn_bytes = 0;
    dedup_drop_slot(&s->w->dedup, s->slot);
    s->tick_ns = s->w->now_ns;
    fkv_status status = open_anew(s, s->epoch, c->copy);
    replicate_count(s);
    command_done(c, status, NULL);
}

void base_watch(shard *s) {
    if (s->held == 0 && (!s->repl.copy || s->repl.copy->dropping == 0)) keep(s);
}

void base_keep(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    bool is_busy = s && (s->state != SHARD_OPEN || s->starting || s->repl.basing || !list_empty(&s->repl.imports) ||
                         (s->repl.copy && s->repl.copy->leads));
    const backup *b = s ? s->repl.copy : NULL;
    fkv_status status = !s                              ? command_none(c)
                        : is_busy                       ? FKV_BUSY
                        : b && b->failed == FKV_CORRUPT ? FKV_CORRUPT /* mutation: rejoin/damaged-base */
                                                        : FKV_OK;
    if (status != FKV_OK) {
        command_done(c, status, NULL);
        return;
    }
    if (s->repl.copy) owner_link_leave(s->repl.copy);
    role_answered(s, FKV_ABORTED);
    s->repl.basing = c;
    s->attended = true;
    base_watch(s);
}

/* ---- a page is compared ---- */

static uint64_t hash_of(const shard *s, uint16_t space, const uint8_t *key, uint16_t key_bytes) {
    return fkv_hash_key(&s->w->d->c.hash_seed, space, key, key_bytes);
}

static bool is_same(const table_entry *here, const fkv_scan_entry *e) {
    /* mutation: rejoin/another-version */
    return here->version == e->version && here->expiry_ms == e->expiry_ms && here->value_bytes == e->value_bytes &&
           here->user_flags == e->user_flags && here->codec == e->codec;
}

static fkv_status take_away(shard *s, uint16_t space, const uint8_t *key, uint16_t key_bytes) {
    fkv_scan_entry e = { .space = space, .key_bytes = key_bytes };
    return import_entry(s, &e, key, NULL, false);
}

static bool has(shard *s, const fkv_scan_entry *e, const uint8_t *key) {
    table_entry here;
    uint64_t hash = hash_of(s, e->space, key, e->key_bytes);
    return e->kind == FKV_SCAN_ENTRY && e->version &&
           table_committed(s->table, e->space, key, e->key_bytes, hash, &here) == FKV_OK && is_same(&here, e);
}

static int by_version(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* What a chain has that the page has not: no such key, or another version, an earlier one or a later one alike. */
typedef struct leftover {
    const shard *s;
    const base_page *p;
    uint32_t count;
    table_entry entry[CHAIN_ENTRIES];
} leftover;

/* A version is drawn once, so it names the entry. */
static void look(void *ctx, const table_entry *e) {
    leftover *l = ctx;
    const base_page *p = l->p;
    uint64_t at = fkv_reversed_bits(fkv_hash_bucket_bits(hash_of(l->s, e->space, e->key, e->key_bytes)));
    if (at < p->of.from || at >= p->of.to) return;
    if (p->same && bsearch(&e->version, p->of.version, p->same, sizeof e->version, by_version)) return;
    fkv_assert(l->count < CHAIN_ENTRIES);
    l->entry[l->count++] = *e; /* mutation: rejoin/deleted-stays */
}

static fkv_status sweep(shard *s, base_page *p) {
    leftover l;
    for (int chains = 0; p->at < p->of.to; chains++) {
        if (chains == CHAINS_A_TURN) {
            s->tick_ns = s->w->now_ns;
            return FKV_BUSY;
        }
        uint64_t next = p->at;
        l.s = s;
        l.p = p;
        l.count = 0;
        table_scan(s->table, TABLE_EVERY_NAMESPACE, &next, look, &l);
        for (uint32_t i = 0; i < l.count; i++) {
            fkv_status status = take_away(s, l.entry[i].space, l.entry[i].key, l.entry[i].key_bytes);
            if (status != FKV_OK) return status;
        }
        p->at = next ? next : p->of.to;
    }
    return FKV_OK;
}

fkv_status base_compare(shard *s, command *c) {
    base_page *p = c->page;
    fkv_scan_entry e;
    const uint8_t *key, *value;
    for (uint32_t next = c->entries_at; wire_next_scan_entry(c->entries, c->entries_bytes, &next, &e, &key, &value);) {
        if (p->index == p->of.count) return FKV_BAD_REQUEST;
        bool same = p->of.same[p->index++] = has(s, &e, key);
        if (same) p->of.version[p->same++] = e.version;
        c->entries_at = next;
    }
    if (c->entries_at != c->entries_bytes || p->index != p->of.count) return FKV_BAD_REQUEST;
    if (!p->sorted && p->same) qsort(p->of.version, p->same, sizeof *p->of.version, by_version);
    p->sorted = true;
    return sweep(s, p);
}
