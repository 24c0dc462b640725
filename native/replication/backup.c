/* backup.c: see backup.h.
 *
 * A record that is prepared is an extent of the table, PENDING as at the owner, and an entry of the ring. A removal of
 * what is not there has nothing to do in the table: the entry has expired by this copy's clock and was swept. It is a
 * record all the same, with its place in the log and its client's sequence, so it has an entry, and its key there. */
#include "backup.h"
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../base/hash.h"
#include "../dataplane/worker.h"
#include "../storage/memory.h"
#include "durable.h"
#include "pull.h"
#include "replication.h"

enum { RING_FIRST = 64, MARGIN_SHARE = 32 };
static const uint64_t MS = 1000000, TICK_NS = 10000000, WAIT_NS = 1000000;

uint64_t record_room(bool writes, uint32_t key_bytes, uint32_t value_bytes) {
    if (!writes) return 0;
    return (uint64_t)fkv_class_units(fkv_class_of((size_t)FKV_EXTENT_HEADER + key_bytes + value_bytes)) * FKV_UNIT;
}

static backup_record *at(const backup *b, uint64_t lsn) { return &b->ring[lsn & (b->room - 1)]; }

const backup_record *backup_record_at(const backup *b, uint64_t lsn) {
    fkv_assert(lsn > b->applied && lsn <= b->place.prepared);
    return at(b, lsn);
}

void backup_record_announced(backup *b, uint64_t lsn, uint8_t keep, uint8_t more) {
    backup_record *r = at(b, lsn);
    r->announced = (uint8_t)((r->announced & keep) | more);
}

/* ---- made and unmade ---- */

bool backup_new(shard *s, uint64_t id, uint32_t lease_ms, const replica_backup *place) {
    backup *b = calloc(1, sizeof *b);
    if (!b) return false;
    *b = (backup){ .shard = s,
                   .id = id,
                   .lease_ms = lease_ms,
                   .failed = FKV_OK,
                   .place = *place,
                   .applied = place->committed,
                   .scrub_ns = s->w->now_ns + s->w->d->c.scrub_ms * MS,
                   .ring = calloc(RING_FIRST, sizeof *b->ring),
                   .room = RING_FIRST };
    b->place.log = s->repl.owner.log;
    fkv_assert(place->prepared == place->committed); /* what is prepared does not come with a copy */
    if (!b->ring) {
        free(b);
        return false;
    }
    list_init(&b->pulls);
    list_init(&b->of_link);
    list_init(&b->owes);
    list_init(&b->held);
    list_init(&b->waits);
    s->repl.copy = b;
    return true;
}

bool backup_make(shard *s, uint64_t id, uint32_t lease_ms, const replica_backup *place) {
    /* What clients were told by earlier owners comes with the records, or is said to be forgotten. */
    if (dedup_open_slot(&s->w->dedup, s->slot, false, s->w->now_ns) != 0) return false;
    if (!backup_new(s, id, lease_ms, place)) return false;
    s->repl.appended.lsn = place->prepared; /* what it was made from is none of the log's records */
    if (s->durable) durable_begins(s);
    return true;
}

static void drop(backup *b, uint64_t lsn) {
    backup_record *r = at(b, lsn);
    if (r->prepared.handle) table_abort(b->shard->table, &r->prepared);
    free(r->key);
}

void backup_tell(const backup *b, dataplane_copy_event what) {
    const dataplane_config *c = &b->shard->w->d->c;
    if (c->on_copy) c->on_copy(c->ctx, b->shard->number, b->id, what);
}

void backup_free(backup *b) {
    if (!b) return;
    for (uint64_t lsn = b->applied + 1; lsn <= b->place.prepared; lsn++) free(at(b, lsn)->key);
    free(b->ring);
    free(b);
}

static bool ring_grows(backup *b) {
    uint32_t room = 2 * b->room;
    backup_record *ring = room <= REPLICA_WINDOW ? calloc(room, sizeof *ring) : NULL;
    if (!ring) return false;
    for (uint64_t lsn = b->applied + 1; lsn <= b->place.prepared; lsn++) ring[lsn & (room - 1)] = *at(b, lsn);
    free(b->ring);
    b->ring = ring;
    b->room = room;
    return true;
}

bool backup_steps_down(backup *b, const replica_owner *o) {
    fkv_assert(b->applied == b->place.prepared); /* what it inherited, it has committed: it has served */
    while (b->room < o->last - o->committed)
        if (!ring_grows(b)) return false;
    replica_step_down(o, &b->place);
    /* It has led since: what it had no room for was another owner's record. Damage stays. */
    if (b->failed == FKV_TABLE_FULL || b->failed == FKV_NO_MEMORY) b->failed = FKV_OK;
    b->applied = b->place.committed;
    b->leads = false;
    b->scrub_ns = b->shard->w->now_ns + b->shard->w->d->c.scrub_ms * MS;
    return true;
}

void backup_keeps(backup *b, uint64_t lsn, const fkv_record *r, const table_prepared *p) {
    fkv_assert(lsn > b->applied && lsn <= b->place.prepared);
    *at(b, lsn) = (backup_record){ .prepared = *p,
                                   .client = r->client,
                                   .sequence = r->sequence,
                                   .value = r->value,
                                   .key_bytes = r->key_bytes,
                                   .space = r->space };
}

backup_result backup_fails(backup *b, fkv_status why) {
    b->failed = why;
    if (why == FKV_TABLE_FULL || why == FKV_NO_MEMORY) backup_tell(b, DATAPLANE_COPY_FULL);
    return BACKUP_FAILED;
}

/* ---- committed ---- */

static void commit(backup *b, uint64_t lsn) {
    shard *s = b->shard;
    worker *w = s->w;
    backup_record *r = at(b, lsn);
    dedup_result result = { .status = FKV_OK, .version = r->prepared.version, .value = r->value };
    if (r->prepared.handle) table_commit(s->table, &r->prepared);
    dedup_note(&w->dedup, r->client, s->slot, r->sequence, &result, w->now_ns);
    s->tick_ns = min_u64(s->tick_ns, w->now_ns + TICK_NS);
    free(r->key);
}

void backup_commit(backup *b, uint64_t to) {
    while (b->applied < min_u64(to, b->place.prepared)) commit(b, ++b->applied);
}

void backup_on_commit_index(backup *b, uint32_t epoch, uint64_t committed) {
    if (b->leads) return;
    backup_commit(b, replica_on_commit_index(&b->place, epoch, committed));
}

/* ---- followed ---- */

/* Of the table's limit, or of what all tables here may still have where that is less; each copy here says so. Without a
 * margin a copy could be full of what its owner still has room for: they have the same entries, but not in the same
 * places. What is in quarantine comes back. */
static uint64_t room_left(const backup *b) {
    table_stats t;
    table_get_stats(b->shard->table, &t);
    uint64_t here = t.index_bytes + t.heap_bytes + t.asked_bytes, left = memory_left(b->shard->w->d);
    for (int k = 0; k < 2; k++) here += fkv_files_holes(b->shard->files[k]);
    uint64_t most = min_u64(t.memory_bytes, here + min_u64(left, UINT64_MAX - here));
    uint64_t taken = t.used_bytes - t.quarantine_bytes + most / MARGIN_SHARE;
    return most > taken ? most - taken : 0;
}

fkv_peer_follow backup_follow(backup *b) {
    b->taken = 0;
    return (fkv_peer_follow){ .op = FKV_PEER_FOLLOW,
                              .shard = b->shard->number,
                              .epoch = b->place.epoch,
                              .lease_ms = b->lease_ms,
                              .id = b->id,
                              .prepared = b->place.prepared,
                              .committed = b->place.committed,
                              .room = room_left(b) };
}

backup_result backup_on_epoch(backup *b, const fkv_peer_follow_ok *t) {
    uint64_t prepared = b->place.prepared;
    uint32_t before = b->place.epoch;
    if (b->leads) return BACKUP_ANEW;
    if (b->failed != FKV_OK) return BACKUP_FAILED;
    /* It has shown what its new owner does not have: they are no copies of each other. */
    if (t->epoch > b->place.epoch && b->place.committed > t->last) return backup_fails(b, FKV_BAD_REQUEST);
    if (!replica_follow(&b->place, t->epoch, t->last)) return BACKUP_ANEW;
    for (; prepared > b->place.prepared; prepared--) drop(b, prepared);
    /* mutation: durable/backup-epoch-unlogged */
    if (b->shard->durable && b->place.epoch != before) durable_begins(b->shard);
    return BACKUP_TOOK;
}

/* By a change that the owner has committed, as its messages say first. Here too, unless it is not logged yet: then nobody
 * waited for this copy. On a full disk it would keep the link's messages for ever. */
static fkv_status key_is_taken(const backup *b) {
    bool lags = replica_counts(&b->place.log, b->place.epoch) < b->place.prepared;
    return !lags ? FKV_BAD_REQUEST : repl_disk_full(b->shard) ? FKV_TABLE_FULL : FKV_BUSY;
}

static fkv_status nothing_to_do(const fkv_record *r, const uint8_t *key, backup_record *out) {
    out->prepared = (table_prepared){ .version = r->version };
    out->key = malloc(r->key_bytes);
    if (!out->key) return FKV_NO_MEMORY;
    memcpy(out->key, key, r->key_bytes);
    return FKV_OK;
}

static fkv_status prepare(backup *b, const fkv_record *r, const uint8_t *key, const uint8_t *value, backup_record *out,
                          uint64_t *hash_out) {
    shard *s = b->shard;
    const worker *w = s->w;
    uint64_t hash = *hash_out = fkv_hash_key(&w->d->c.hash_seed, r->space, key, r->key_bytes), present;
    /* mutation: links/keys-of-other-shards */
    if (fkv_range_shard(w->d->tenant[dataplane_tenant_of(w->d, s->number)].shards, hash) != s->number)
        return FKV_BAD_REQUEST;
    table_op op = { .kind = r->kind == FKV_RECORD_DELETE ? TABLE_DELETE : TABLE_PUT,
                    .space = r->space,
                    .key_bytes = r->key_bytes,
                    .codec = r->codec,
                    .key = key,
                    .hash = hash,
                    .value = value,
                    .value_bytes = r->value_bytes,
                    .user_flags = r->user_flags,
                    .expiry_ms = r->expiry_ms,
                    .version = r->version };
    table_busy why = TABLE_BUSY_SEGMENT;
    *out = (backup_record){
        .client = r->client, .sequence = r->sequence, .value = r->value, .key_bytes = r->key_bytes, .space = r->space
    };
    fkv_status status = table_prepare(s->table, &op, &out->prepared, &present, &why);
    /* Of one key only one change is prepared at the owner, and what came before was committed first; or it was forgotten
     * before it had a number. */
    if (status == FKV_BUSY && why == TABLE_BUSY_KEY) return b->dropping ? FKV_BUSY : key_is_taken(b);
    /* The owner counts what was forgotten no more; here it still has its extents. */
    if (status == FKV_TABLE_FULL && b->dropping) return FKV_BUSY;
    return status == FKV_NOT_FOUND ? nothing_to_do(r, key, out) : status;
}

/* ---- read back (recover.c) ---- */

fkv_status backup_restores(backup *b, const fkv_record *r, const uint8_t *key, const uint8_t *value, bool again,
                           backup_record *out) {
    uint64_t hash;
    fkv_status status = prepare(b, r, key, value, out, &hash);
    return again && status == FKV_VERSION_MISMATCH ? nothing_to_do(r, key, out) : status;
}

bool backup_has_restored(backup *b, const backup_record *r) {
    uint64_t lsn = b->place.prepared + 1;
    if (lsn - b->applied > b->room && !ring_grows(b)) return false;
    *at(b, lsn) = *r;
    replica_appended(&b->place);
    return true;
}

void backup_cuts_off(backup *b, uint64_t behind) {
    for (; b->place.prepared > behind; b->place.prepared--) drop(b, b->place.prepared);
}

fkv_status backup_prepares(backup *b, const fkv_record *r, const uint8_t *key, backup_record *out, uint64_t *hash) {
    return prepare(b, r, key, NULL, out, hash);
}

static void took(backup *b) {
    replica_appended(&b->place);
    if (b->shard->durable) durable_more(b->shard);
}

static backup_result take_bulk(backup *b, const fkv_record *r, backup_record *into) {
    backup_result result = pull_take(b, r->version, into);
    if (result == BACKUP_TOOK) took(b);
    return result;
}

static backup_result take(backup *b, const fkv_records *head, uint64_t lsn, const fkv_record *r, const uint8_t *key,
                          const uint8_t *value) {
    backup_on_commit_index(b, head->epoch, head->committed);
    /* mutation: links/any-order */
    if (replica_arrives(&b->place, head->epoch, lsn) != REPLICA_NEXT) return BACKUP_ANEW;
    if (!wire_record_whole(r, key, value)) return BACKUP_ANEW; /* mutation: links/bytes-changed */
    if (lsn - b->applied > b->room && !ring_grows(b)) return backup_fails(b, FKV_NO_MEMORY);
    backup_record *into = at(b, lsn);
    if (r->kind == FKV_RECORD_BULK) return take_bulk(b, r, into);
    uint64_t hash;
    fkv_status status = prepare(b, r, key, value, into, &hash);
    if (status == FKV_BUSY) {
        b->shard->tick_ns = min_u64(b->shard->tick_ns, b->shard->w->now_ns + WAIT_NS);
        return BACKUP_WAITS;
    }
    if (status != FKV_OK) return backup_fails(b, status);
    took(b);
    b->taken += record_room(r->kind == FKV_RECORD_PUT, r->key_bytes, r->value_bytes);
    return BACKUP_TOOK;
}

backup_result backup_takes(backup *b, const fkv_peer_message *m, backup_at *done) {
    fkv_record r;
    const uint8_t *key, *value;
    if (b->leads) return BACKUP_ANEW;
    if (b->failed != FKV_OK) return BACKUP_FAILED;
    b->shard->touched = true;
    table_set_wall(b->shard->table, b->shard->w->wall_ms);
    for (uint32_t next = done->bytes; wire_next_record(m->body, m->bytes, &next, &r, &key, &value);) {
        backup_result result = take(b, &m->records, m->records.first + done->records, &r, key, value);
        if (result != BACKUP_TOOK) return result;
        done->bytes = next;
        done->records++;
    }
    return BACKUP_TOOK;
}

bool backup_acknowledges(backup *b, uint64_t now_ns, fkv_peer_ack *out) {
    replica_ack a;
    uint64_t until = replica_grant_end(now_ns, b->lease_ms * MS, b->shard->w->d->c.drift_ppm);
    if (b->leads || b->failed != FKV_OK || !replica_acknowledges(&b->place, until, &a)) return false;
    /* On a full disk it has room for nothing more: its owner refuses changes, and they do not wait for this copy. */
    uint64_t room = repl_disk_full(b->shard) ? 0 : room_left(b);
    *out = (fkv_peer_ack){
        .shard = b->shard->number, .epoch = a.epoch, .prepared = a.prepared, .limit = b->taken + room
    };
    return true;
}
