/* recover.c: see recover.h.
 *
 * The log is read as a backup reads what its owner sends: each record is prepared, and takes effect when the log says that
 * the owner had committed it. What is in the snapshot already is known by versions. */
#include "recover.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../base/clock.h"
#include "../dataplane/worker.h"
#include "../table/words.h"
#include "durable.h"
#include "import.h"
#include "recovery.h"

enum { LOOKS_AHEAD = 8 /* records, so that their buckets come together */ };
static const uint64_t MS = 1000000;

recovered_copy *recover_new(worker *w, uint32_t number, uint64_t id) {
    recovered_copy *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->w = w;
    c->number = number;
    c->id = id;
    list_init(&c->link);
    return c;
}
void recover_free(recovered_copy *c) { free(c); }

void recover_fails(recovered_copy *c, const char *why, ...) {
    va_list list;
    if (c->why[0]) return;
    va_start(list, why);
    vsnprintf(c->why, sizeof c->why, why, list);
    va_end(list);
    free(c->value.record.key);
    c->value = (recover_value){ 0 };
    recover_close(c);
}

/* Says why it is no copy, where that is not the file's fault. */
static bool took(recovered_copy *c, fkv_status s) {
    if (s == FKV_OK) return true;
    bool wrong = s == FKV_BAD_REQUEST || s == FKV_KEY_INVALID || s == FKV_VALUE_TOO_LARGE || s == FKV_VERSION_MISMATCH;
    if (!wrong) recover_fails(c, "there is no memory for it: %s", fkv_status_name(s));
    return false;
}

/* ---- a snapshot ---- */

bool recover_head(recovered_copy *c, const snapshot_head *h) {
    if (h->epoch == 0 || h->epoch > DATAPLANE_EPOCH_MAX) return false;
    c->head = *h;
    return recover_make(c, h->epoch, h->committed, h->buckets);
}

static bool take_entries(recovered_copy *c, const uint8_t *items, uint32_t bytes, bool damaged) {
    fkv_scan_entry e;
    const uint8_t *key, *value;
    uint32_t at = 0;
    while (wire_next_scan_entry(items, bytes, &at, &e, &key, &value)) {
        uint32_t tries = 0;
        fkv_status s;
        if (!value || e.version == 0) return false;
        while ((s = import_entry(c->s, &e, key, value, damaged)) == FKV_BUSY && recover_waits(c, &tries)) {}
        if (!took(c, s)) return false;
    }
    return at == bytes;
}

static bool begin_value(recovered_copy *c, const uint8_t *items, uint32_t bytes) {
    fkv_scan_entry e;
    const uint8_t *key, *value;
    uint32_t at = 0, tries = 0;
    recover_value *v = &c->value;
    if (v->under_way || !wire_next_scan_entry(items, bytes, &at, &e, &key, &value) || at != bytes) return false;
    if (value || e.version == 0 || e.value_bytes == 0) return false;
    table_op op = { .kind = TABLE_PUT,
                    .space = e.space,
                    .key_bytes = e.key_bytes,
                    .codec = e.codec,
                    .key = key,
                    .hash = fkv_hash_key(&c->w->d->c.hash_seed, e.space, key, e.key_bytes),
                    .value_bytes = e.value_bytes,
                    .user_flags = e.user_flags,
                    .expiry_ms = e.expiry_ms,
                    .version = e.version };
    uint64_t present;
    table_busy why;
    fkv_status s;
    while ((s = table_prepare(c->s->table, &op, &v->prepared, &present, &why)) == FKV_BUSY &&
           recover_waits(c, &tries)) {}
    v->passed_over = s == FKV_VERSION_MISMATCH;
    v->under_way = v->passed_over || took(c, s);
    v->bytes = e.value_bytes;
    return v->under_way;
}

static bool go_on_with(recover_value *v, uint8_t *to, const uint8_t *from, uint32_t bytes) {
    fkv_assert(v->at <= v->bytes);
    if (!v->under_way || bytes == 0 || bytes > v->bytes - v->at) return false;
    if (!v->passed_over) fkv_copy_in(to + v->at, from, bytes);
    v->at += bytes;
    return true;
}

static bool take_value(recovered_copy *c, const uint8_t *items, uint32_t bytes, bool damaged) {
    recover_value *v = &c->value;
    if (!go_on_with(v, v->prepared.value, items, bytes)) return false;
    if (v->at < v->bytes) return !damaged;
    if (!v->passed_over) {
        (damaged ? table_seal_damaged : table_seal)(c->s->table, &v->prepared);
        table_commit(c->s->table, &v->prepared);
    }
    *v = (recover_value){ 0 };
    return true;
}
static bool cut_value(recovered_copy *c) {
    recover_value *v = &c->value;
    if (!v->under_way) return false;
    if (!v->passed_over) table_abort(c->s->table, &v->prepared);
    *v = (recover_value){ 0 };
    return true;
}

static bool take_windows(recovered_copy *c, const uint8_t *items, uint32_t bytes) {
    dedup_change change[FKV_DEDUP_WINDOW];
    dedup *d = &c->w->dedup;
    item_window x;
    uint32_t at = 0;
    while (item_next_window(items, bytes, &at, &x, change)) {
        if (x.forgotten) dedup_forget(d, x.client, c->s->slot, x.forgotten, c->w->now_ns);
        for (uint32_t i = 0; i < x.changes; i++)
            dedup_note(d, x.client, c->s->slot, change[i].sequence, &change[i].result, c->w->now_ns);
    }
    return at == bytes;
}

bool recover_chunk(recovered_copy *c, const snapshot_chunk *k, const uint8_t *items) {
    bool of_value = k->kind == ITEM_VALUE || k->kind == ITEM_VALUE_DAMAGED || k->kind == ITEM_CUT;
    if (c->why[0] || c->value.under_way != of_value) return false;
    recover_rest(c);
    switch ((item_kind)k->kind) {
    case ITEM_ENTRIES:
    case ITEM_DAMAGED: return take_entries(c, items, k->bytes, k->kind == ITEM_DAMAGED);
    case ITEM_LARGE: return begin_value(c, items, k->bytes);
    case ITEM_VALUE:
    case ITEM_VALUE_DAMAGED: return take_value(c, items, k->bytes, k->kind == ITEM_VALUE_DAMAGED);
    case ITEM_CUT: return k->bytes == 0 && cut_value(c);
    case ITEM_WINDOWS: return take_windows(c, items, k->bytes); /* mutation: recovery/windows */
    }
    return false;
}

/* Whether the table has what it had where somebody noted its digest; 0: nobody did. */
static void compare(recovered_copy *c, uint64_t digest) {
    if (digest && digest != (table_digest(c->s->table) | 1))
        recover_fails(c, "it is not what it was at record %llu", (unsigned long long)c->s->repl.copy->applied);
}

void recover_foot(recovered_copy *c, const snapshot_foot *f) {
    c->foot = *f;
    if (c->value.under_way || f->last < c->head.committed || f->epoch < c->head.epoch)
        return recover_fails(c, "its snapshot ends within a value, or before it began");
    if (f->doubt_ms) dedup_doubt(&c->w->dedup, c->s->slot, c->w->now_ns + f->doubt_ms * MS);
    if (f->last == c->head.committed) compare(c, f->digest);
}

/* ---- the log ---- */

/* In two steps where the snapshot ends between: there its digest is known. */
static void commit(recovered_copy *c, uint64_t to) {
    backup *b = c->s->repl.copy;
    if (b->applied < c->foot.last && to >= c->foot.last && b->place.prepared >= c->foot.last) {
        backup_commit(b, c->foot.last);
        compare(c, c->foot.digest);
        if (c->why[0]) return;
    }
    backup_commit(b, to);
    b->place.committed = b->applied;
}

static void drop_value(recovered_copy *c) {
    recover_value *v = &c->value;
    if (v->under_way && v->record.prepared.handle) table_abort(c->s->table, &v->record.prepared);
    free(v->record.key);
    *v = (recover_value){ 0 };
}

static fkv_status restore(recovered_copy *c, const fkv_record *r, const uint8_t *key, const uint8_t *value,
                          backup_record *out) {
    backup *b = c->s->repl.copy;
    /* What an epoch before the snapshot's last has behind it may be cut off: then what is there came later. */
    /* mutation: recovery/record-replaces-later */
    bool again = b->place.prepared < c->foot.last || c->epoch < c->foot.epoch;
    uint32_t tries = 0;
    fkv_status s;
    while ((s = backup_restores(b, r, key, value, again, out)) == FKV_BUSY && recover_waits(c, &tries)) {}
    return s;
}

/* False: these are no records. */
static bool take_record(recovered_copy *c, const fkv_record *r, const uint8_t *key, const uint8_t *value) {
    recover_value *v = &c->value;
    backup_record x;
    if (!wire_record_whole(r, key, value)) return false;
    if (r->kind == FKV_RECORD_BULK) {
        if (!v->under_way || v->version != r->version || v->at != v->bytes) return false;
        if (!v->passed_over) table_seal(c->s->table, &v->record.prepared);
        x = v->record;
        *v = (recover_value){ 0 };
    } else {
        fkv_status s = v->under_way ? FKV_BAD_REQUEST : restore(c, r, key, value, &x);
        if (!took(c, s)) return false;
    }
    if (backup_has_restored(c->s->repl.copy, &x)) return true;
    if (x.prepared.handle) table_abort(c->s->table, &x.prepared);
    free(x.key);
    return false;
}

/* The bucket of the next record's key is wanted soon. */
static void look_ahead(recovered_copy *c, const wal_section *x, const uint8_t *records, uint32_t *at) {
    fkv_record r;
    const uint8_t *key, *value;
    if (!wire_next_record(records, x->bytes, at, &r, &key, &value)) return;
    table_prefetch(c->s->table, fkv_hash_key(&c->w->d->c.hash_seed, r.space, key, r.key_bytes), 0);
}

static bool take_records(recovered_copy *c, const wal_section *x, const uint8_t *records) {
    backup *b = c->s->repl.copy;
    fkv_record r;
    const uint8_t *key, *value;
    uint32_t at = 0, ahead = 0;
    uint64_t lsn = x->first;
    for (int i = 0; i < LOOKS_AHEAD; i++) look_ahead(c, x, records, &ahead);
    for (; wire_next_record(records, x->bytes, &at, &r, &key, &value); lsn++) {
        look_ahead(c, x, records, &ahead);
        if (lsn <= b->place.prepared) continue; /* the snapshot has it */
        commit(c, min_u64(x->committed, b->place.prepared));
        if (c->why[0] || !take_record(c, &r, key, value)) return false;
    }
    return at == x->bytes && lsn == x->first + x->count;
}

/* Of a large value, before its record. */
static bool take_part(recovered_copy *c, const wal_section *x, const uint8_t *bytes) {
    recover_value *v = &c->value;
    if (v->under_way) return go_on_with(v, v->record.prepared.value, bytes, x->bytes);
    fkv_record r;
    const uint8_t *key, *value;
    uint32_t at = 0;
    if (!wire_next_record(bytes, x->bytes, &at, &r, &key, &value) || at != x->bytes) return false;
    if (r.kind != FKV_RECORD_BULK || x->first != c->s->repl.copy->place.prepared + 1) return false;
    commit(c, min_u64(x->committed, c->s->repl.copy->place.prepared));
    if (c->why[0] || !took(c, restore(c, &r, key, NULL, &v->record))) return false;
    v->under_way = true;
    v->passed_over = v->record.prepared.handle == 0;
    v->bytes = r.value_bytes;
    v->version = r.version;
    return true;
}

/* What earlier epochs have from `first` on is cut off; what the snapshot has is of this one. */
static void begin_epoch(recovered_copy *c, const wal_section *x) {
    backup *b = c->s->repl.copy;
    drop_value(c);
    uint64_t behind = x->first - 1;
    /* mutation: recovery/cuts-off-snapshot */
    if (x->epoch <= c->head.epoch) behind = max_u64(behind, c->head.committed);
    if (behind > b->place.prepared)
        return recover_fails(c, "records before %llu are gone", (unsigned long long)x->first);
    if (behind < b->applied) return recover_fails(c, "epoch %u begins before what was committed", x->epoch);
    backup_cuts_off(b, behind); /* mutation: recovery/cut-off-stays */
}

static bool follows_on(const recovered_copy *c, const wal_section *x) {
    if (x->bytes == 0) return x->epoch >= c->epoch;
    bool known = c->epoch ? x->epoch == c->epoch : x->epoch <= c->head.epoch;
    return known && x->first <= c->s->repl.copy->place.prepared + 1;
}

/* In a life that is not the shard's first, what clients were told in those before is not known. */
static bool begin_without_snapshot(recovered_copy *c, uint32_t epoch) {
    if (!recover_make(c, epoch, 0, 0)) return false;
    /* mutation: recovery/retry-of-an-earlier-life */
    if (epoch > DATAPLANE_EPOCH_FIRST) dedup_doubt(&c->w->dedup, c->s->slot, c->w->now_ns + FKV_DEDUP_IDLE_MS * MS);
    return true;
}

void recover_section(recovered_copy *c, const wal_section *x, const uint8_t *records) {
    if (c->why[0]) return;
    if (x->epoch == 0 || x->epoch > DATAPLANE_EPOCH_MAX) return recover_fails(c, "an epoch %u in its log", x->epoch);
    if (!c->s && (x->bytes > 0 || x->first != 1))
        return recover_fails(c, "its log begins with record %llu, and it has no snapshot",
                             (unsigned long long)x->first);
    if (!c->s && !begin_without_snapshot(c, x->epoch)) return;
    if (!follows_on(c, x))
        return recover_fails(c, "records before %llu of epoch %u are gone", (unsigned long long)x->first, x->epoch);
    c->epoch = x->epoch;
    recover_rest(c);
    if (x->bytes == 0) return begin_epoch(c, x);
    bool behind = x->first + (x->count ? x->count - 1 : 0) > c->head.committed;
    bool good = !behind || (x->count ? take_records(c, x, records) : take_part(c, x, records));
    if (!good)
        return recover_fails(c, "record %llu in its log, or one behind it, cannot be one",
                             (unsigned long long)x->first);
    uint64_t prepared = c->s->repl.copy->place.prepared;
    uint64_t committed = min_u64(x->committed, prepared); /* mutation: recovery/prepared-committed */
    commit(c, committed);
    if (!c->why[0] && x->committed >= c->foot.last && x->committed == c->s->repl.copy->applied) compare(c, x->digest);
}

/* ---- the end ---- */

void recover_end(recovered_copy *c) {
    if (c->why[0]) return;
    bool cut_off = c->value.under_way;
    drop_value(c);
    backup *b = c->s->repl.copy;
    worker *w = c->w;
    /* mutation: recovery/log-too-short */
    if (b->place.prepared < c->foot.last || (c->epoch && c->epoch < c->head.epoch))
        return recover_fails(c, "its log ends with record %llu of epoch %u, and its snapshot has later ones",
                             (unsigned long long)b->place.prepared, c->epoch);
    commit(c, max_u64(b->applied, c->foot.last));
    if (c->why[0]) return;
    shard *s = c->s;
    recover_rest(c);
    b->place.epoch = max_u64(c->epoch, c->head.epoch);
    b->place.log = (replica_log){ .kept = 1, .epoch = b->place.epoch, .logged = b->place.prepared };
    /* Leases that it has given before may still be relied on: the last one before this start began to read. */
    uint64_t last = recovery_began_ns(w->d);
    /* mutation: recovery/grants-forgotten */
    b->place.granted_until_ns = replica_grant_end(last, w->d->c.replica_lease_ms * MS, w->d->c.drift_ppm);
    if (b->place.epoch > s->epoch) table_set_epoch(s->table, b->place.epoch);
    s->epoch = b->place.epoch;
    s->repl.appended.lsn = b->place.prepared;
    /* Else what comes next would be read as more of that value. */
    if (cut_off) durable_begins(s); /* mutation: recovery/cut-off-value-goes-on */
    s->repl.snapshot.made = c->head.epoch > 0;
    s->repl.snapshot.has = (snapshot_mark){ .epoch = c->head.epoch, .committed = c->head.committed };
    s->tick_ns = w->now_ns;
    table_set_read(s->table, true);
}
