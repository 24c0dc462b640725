/* change.c: prepare, seal, commit, abort; and the owner's own read.
 *
 * Prepare does everything that can fail: memory for the new extent, a slot for a key that is new, room in the
 * quarantine for what will be replaced. Commit cannot fail and takes a few stores, in the order that layout.h gives
 * reasons for. Between the two the entry's slot may be copied elsewhere by a split, so commit looks for it by its
 * content.
 */
#include "../base/assert.h"
#include "internal.h"
#include "reader.h"

#define SEQUENCE_MOST ((1ull << 44) - 1)

static bool writes(table_op_kind k) { return k == TABLE_PUT || k == TABLE_CAS; }

/* ---- the new extent ---- */

/* The header's words after the first. */
static void header_words(const fkv_extent *h, uint64_t words[4]) { memcpy(words, (const uint8_t *)h + 8, 32); }

/* Writes an extent as PENDING, which no reader takes, before anything else of it changes. */
static fkv_extent *write_extent(table *t, uint64_t location, const table_op *op, uint64_t version) {
    fkv_extent *e = at_location(t, location);
    fkv_extent h = { .version = version,
                     .tag = t->heap[fkv_location_segment(location)]->tag,
                     .value_bytes = op->value_bytes,
                     .expiry_space = fkv_expiry_space(op->expiry_ms, op->space),
                     .key_bytes = op->key_bytes,
                     .codec = op->codec,
                     .user_flags = op->user_flags };
    uint64_t words[4];
    header_words(&h, words);
    __atomic_store_n(&e->state, FKV_EXTENT_PENDING, __ATOMIC_RELAXED); /* mutation: table/pending-first */
    fkv_store_fence();
    for (int i = 0; i < 4; i++) fkv_store_word((uint64_t *)(void *)e + 1 + i, words[i]);
    fkv_copy_in((uint8_t *)e + FKV_EXTENT_HEADER, op->key, op->key_bytes);
    if (op->value) {
        fkv_copy_in((uint8_t *)e + FKV_EXTENT_HEADER + op->key_bytes, op->value, op->value_bytes);
        uint32_t crc = fkv_crc32c(fkv_crc32c(0, words, sizeof words), op->key, op->key_bytes);
        __atomic_store_n(&e->crc, fkv_crc32c(crc, op->value, op->value_bytes), FKV_SHARED_STORE);
    } else if (op->value_bytes == 0) {
        uint32_t crc = fkv_crc32c(fkv_crc32c(0, words, sizeof words), op->key, op->key_bytes);
        __atomic_store_n(&e->crc, crc, FKV_SHARED_STORE);
    }
    return e;
}

void table_seal(table *t, const table_prepared *p) {
    (void)t;
    fkv_extent *e = p->extent;
    if (!e) return;
    __atomic_store_n(&e->crc, fkv_extent_crc(e, e->key_bytes, e->value_bytes), FKV_SHARED_STORE);
}

void table_seal_damaged(table *t, const table_prepared *p) {
    table_seal(t, p);
    fkv_extent *e = p->extent;
    if (e) __atomic_store_n(&e->crc, ~e->crc, FKV_SHARED_STORE);
}

/* ---- prepare ---- */

static fkv_status busy(table_busy *why, table_busy reason) {
    *why = reason;
    return FKV_BUSY;
}

/* Whether the operation may go ahead with what is there now; present = 0: absent. */
static fkv_status condition(const table_op *op, uint64_t present) {
    switch (op->kind) {
    case TABLE_PUT: return FKV_OK;
    case TABLE_DELETE: return present ? FKV_OK : FKV_NOT_FOUND;
    case TABLE_CAS: return present == op->expected_version ? FKV_OK : FKV_VERSION_MISMATCH;
    case TABLE_CAS_DELETE:
        if (present != op->expected_version) return FKV_VERSION_MISMATCH;
        return present ? FKV_OK : FKV_NOT_FOUND;
    }
    return FKV_BAD_REQUEST;
}

/* Takes the extent and, for a key that is absent, a slot. With nothing taken on failure. */
static fkv_status take_memory(table *t, const table_op *op, prepared *p, table_busy *why) {
    uint8_t cls = fkv_class_of((size_t)FKV_EXTENT_HEADER + op->key_bytes + op->value_bytes);
    if (!table_quarantine_bears(t, class_bytes(cls))) return busy(why, TABLE_BUSY_QUARANTINE);
    uint64_t location = table_heap_take(t, cls);
    if (!location) {
        fkv_status s = table_heap_why(t, cls, why);
        if (s == FKV_BUSY) return s;
        location = table_heap_take_larger(t, &cls);
        if (!location) return s;
    }
    fkv_status s = FKV_NO_MEMORY;
    if (table_quarantine_place(t, cls)) { /* for an abort */
        p->new_word = fkv_slot(fkv_hash_fingerprint(op->hash), cls, location);
        if (!p->old_word) p->kept_word = fkv_slot(0, cls, location);
        s = p->old_word ? FKV_OK : table_index_keep(t, op->hash, p->kept_word, why);
        if (s == FKV_OK) { /* nothing was written to an extent that is given back below */
            p->keyed = write_extent(t, location, op, p->version);
            return FKV_OK;
        }
        table_quarantine_unplace(t, cls);
    }
    table_heap_give(t, location, cls);
    return s;
}

/* Promises the quarantine a place for the extent that will be replaced or deleted. */
static fkv_status reserve_old(table *t, const place *old, prepared *p, table_busy *why) {
    uint32_t cls = fkv_slot_class(old->word);
    if (!table_quarantine_fits(t, class_bytes(cls))) return busy(why, TABLE_BUSY_QUARANTINE);
    if (!table_quarantine_place(t, cls)) return FKV_NO_MEMORY;
    t->quarantine_reserved += class_bytes(cls);
    p->old_word = old->word;
    p->keyed = old->extent;
    return FKV_OK;
}
static void unreserve_old(table *t, const prepared *p) {
    uint32_t cls = fkv_slot_class(p->old_word);
    table_quarantine_unplace(t, cls);
    t->quarantine_reserved -= class_bytes(cls);
}

fkv_status table_prepare(table *t, const table_op *op, table_prepared *out, uint64_t *present, table_busy *why) {
    *present = 0;
    if (op->key_bytes == 0 || op->key_bytes > FKV_KEY_MAX) return FKV_KEY_INVALID;
    if (writes(op->kind) && op->value_bytes > FKV_VALUE_MAX) return FKV_VALUE_TOO_LARGE;
    if (t->buckets == 0) return busy(why, TABLE_BUSY_SEGMENT);
    /* mutation: table/prepared-changed */
    if (t->prepared_count && table_prepared_find(t, op->hash, op->space, op->key, op->key_bytes))
        return busy(why, TABLE_BUSY_KEY);
    place old;
    bool found = table_index_find(t, op->hash, op->space, op->key, op->key_bytes, &old);
    if (found && !extent_expired(t, old.extent)) *present = old.extent->version;
    fkv_status s = condition(op, *present);
    if (s != FKV_OK) return s;
    table_op kept;
    if (op->keeps_expiry && *present) {
        kept = *op;
        kept.expiry_ms = fkv_extent_expiry(old.extent->expiry_space);
        op = &kept;
    }
    if (op->version && op->version <= *present) return FKV_VERSION_MISMATCH;
    /* versions never repeat: a new epoch must come first */
    if (t->sequence == SEQUENCE_MOST) return FKV_SHARD_CLOSED;

    uint64_t handle;
    prepared *p = table_prepared_add(t, op->hash, &handle);
    if (!p) return FKV_NO_MEMORY;
    p->kind = op->kind;
    /* mutation: dataplane/moved-version */
    p->version = op->version ? op->version : fkv_version(t->config.epoch, t->sequence + 1);
    if (found) s = reserve_old(t, &old, p, why);
    if (s == FKV_OK && writes(op->kind)) {
        s = take_memory(t, op, p, why);
        if (s != FKV_OK && found) unreserve_old(t, p);
    }
    if (s != FKV_OK) {
        table_prepared_remove(t, p);
        return s;
    }
    if (!op->version) t->sequence++;
    fkv_extent *e = p->new_word ? extent_of(t, p->new_word) : NULL;
    if (e) t->prepared_bytes += class_bytes(fkv_slot_class(p->new_word));
    *out = (table_prepared){ .handle = handle,
                             .version = p->version,
                             .extent = e,
                             .key = extent_key(p->keyed),
                             .value = e ? (uint8_t *)e + FKV_EXTENT_HEADER + op->key_bytes : NULL };
    return FKV_OK;
}

/* ---- commit and abort ---- */

void table_entry_gone(table *t, const fkv_extent *e, uint32_t cls) {
    fkv_assert(t->entries > 0);
    t->entries--;
    t->key_value_bytes -= (uint64_t)e->key_bytes + e->value_bytes;
    t->live_bytes -= class_bytes(cls);
    if (fkv_extent_expiry(e->expiry_space)) t->expiring--;
}
static void entry_came(table *t, const fkv_extent *e, uint32_t cls) {
    t->entries++;
    t->key_value_bytes += (uint64_t)e->key_bytes + e->value_bytes;
    t->live_bytes += class_bytes(cls);
    uint64_t expiry = fkv_extent_expiry(e->expiry_space);
    if (!expiry) return;
    t->expiring++;
    if (expiry < t->expiry_floor_ms) t->expiry_floor_ms = expiry;
    if (expiry < t->pass_floor_ms) t->pass_floor_ms = expiry;
}
/* What an entry adds to the digest: nothing when it expires. */
static uint64_t part_of_digest(uint64_t hash, const fkv_extent *e) {
    return fkv_extent_expiry(e->expiry_space) ? 0 : table_digest_word(hash, e->version);
}
/* `word`: the parts of the entry that comes and of the one that goes, XORed. */
static void digest_changes(table *t, uint64_t hash, uint64_t word) {
    t->digest ^= word;
    if (t->scrub.order && table_order_of(hash) < t->scrub.order) t->scrub.digest ^= word;
}

static void old_to_quarantine(table *t, const prepared *p, const fkv_extent *old) {
    uint32_t cls = fkv_slot_class(p->old_word);
    table_entry_gone(t, old, cls);
    t->quarantine_reserved -= class_bytes(cls);
    table_quarantine_extent(t, fkv_slot_location(p->old_word), cls);
}

void table_commit(table *t, const table_prepared *done) {
    prepared *p = table_prepared_get(t, done->handle);
    uint64_t *slot = table_index_slot(t, p->hash, p->kept_word ? p->kept_word : p->old_word);
    fkv_assert(slot);
    fkv_extent *old = p->old_word ? extent_of(t, p->old_word) : NULL;
    uint64_t digest = 0;
    if (old) { /* mutation: table/dead-first */
        fkv_assert(old->state == FKV_EXTENT_LIVE);
        set_state(old, FKV_EXTENT_DEAD);
    }
    fkv_publish_word(slot, p->new_word); /* mutation: table/slot-first */
    if (p->new_word) {
        fkv_extent *e = extent_of(t, p->new_word);
        fkv_assert(e->state == FKV_EXTENT_PENDING);
        set_state(e, FKV_EXTENT_LIVE);
        uint32_t cls = fkv_slot_class(p->new_word);
        t->prepared_bytes -= class_bytes(cls);
        entry_came(t, e, cls);
        digest = part_of_digest(p->hash, e);
        table_quarantine_unplace(t, cls);
    }
    if (old) {
        digest ^= part_of_digest(p->hash, old);
        old_to_quarantine(t, p, old);
    }
    digest_changes(t, p->hash, digest);
    uint64_t hash = p->hash;
    bool removed = p->new_word == 0;
    table_prepared_remove(t, p);
    if (removed) table_index_removed(t, bucket_of(t, hash));
    for (int i = 0; i < 2 && table_split_wanted(t); i++)
        if (!table_split(t)) break;
}

/* The new extent goes through the quarantine like any other, although it was never LIVE, for two reasons. A READ by a
 * location that was kept from an older life of the memory may carry some of its bytes, and were it reused at once,
 * those and bytes of the next life could come in one READ, with only the checksum to tell. And a slot that was kept for
 * it may have been copied by a split, and must not meet it again. What is aborted again and again is bounded by
 * table_quarantine_bears(). */
void table_abort(table *t, const table_prepared *done) {
    prepared *p = table_prepared_get(t, done->handle);
    if (p->old_word) unreserve_old(t, p);
    uint64_t hash = p->hash, kept = p->kept_word, word = p->new_word;
    table_prepared_remove(t, p);
    if (word) {
        t->prepared_bytes -= class_bytes(fkv_slot_class(word));
        set_state(extent_of(t, word), FKV_EXTENT_DEAD);
        table_quarantine_aborted(t, fkv_slot_location(word), fkv_slot_class(word)); /* mutation: table/aborted-insert */
    }
    if (kept) {
        uint64_t *slot = table_index_slot(t, hash, kept);
        fkv_assert(slot);
        fkv_publish_word(slot, 0);
        table_index_removed(t, bucket_of(t, hash));
    }
}

/* ---- the owner's read ---- */

fkv_status table_get(table *t, uint16_t space, const void *key, size_t key_bytes, uint64_t hash, table_entry *out,
                     table_busy *why) {
    if (key_bytes == 0 || key_bytes > FKV_KEY_MAX) return FKV_KEY_INVALID;
    if (t->prepared_count && table_prepared_find(t, hash, space, key, key_bytes)) return busy(why, TABLE_BUSY_KEY);
    return table_committed(t, space, key, key_bytes, hash, out);
}

fkv_status table_committed(table *t, uint16_t space, const void *key, size_t key_bytes, uint64_t hash,
                           table_entry *out) {
    place at;
    if (t->buckets == 0 || !table_index_find(t, hash, space, key, key_bytes, &at) || extent_expired(t, at.extent))
        return FKV_NOT_FOUND;
    *out = entry_of(at.extent);
    return FKV_OK;
}

static const fkv_extent *extent_of_entry(const table_entry *e) { return (const void *)(e->key - FKV_EXTENT_HEADER); }

bool table_is_whole(const table_entry *e) {
    return fkv_extent_crc(extent_of_entry(e), e->key_bytes, e->value_bytes) == table_checksum(e);
}
uint32_t table_checksum_begin(const table_entry *e) { return fkv_extent_crc(extent_of_entry(e), e->key_bytes, 0); }
uint32_t table_checksum(const table_entry *e) { return extent_of_entry(e)->crc; }
