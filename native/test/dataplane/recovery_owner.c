/* recovery_owner.c: the owner of recovery_life.h, whose copies are at the server; see recovery_state.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../replication/durable.h"
#include "../../replication/sender.h"
#include "../check.h"
#include "recovery_state.h"

static char keys[SHARDS][KEYS][16];
static uint8_t bytes_of[VALUE_MAX];

void rec_name_keys(void) {
    for (uint32_t i = 0; i < VALUE_MAX; i++) bytes_of[i] = (uint8_t)any(256);
    uint32_t found[SHARDS] = { 0 };
    const fkv_shard_range all = { 0, SHARDS };
    for (uint32_t n = 0; found[0] < KEYS || found[1] < KEYS; n++) {
        char key[16];
        snprintf(key, sizeof key, "key-%u", n);
        uint32_t s = fkv_range_shard(all, fkv_hash_key(&SEED, 0, key, strlen(key)));
        if (found[s] < KEYS) memcpy(keys[s][found[s]++], key, sizeof key);
    }
}

/* ---- what a table must have ---- */

static void state_of(const line *l, uint64_t lsn, uint64_t of_key[KEYS]) {
    memset(of_key, 0, KEYS * sizeof *of_key);
    for (uint64_t n = 1; n <= lsn; n++) of_key[l->at[n].key] = l->at[n].put ? n : 0;
}
static void check_table(uint32_t i, const line *l) {
    const shard *s = shard_at(i);
    uint64_t of_key[KEYS], entries = 0;
    state_of(l, s->repl.copy->applied, of_key);
    for (uint32_t k = 0; k < KEYS; k++) {
        table_entry e;
        uint64_t hash = fkv_hash_key(&SEED, 0, keys[i][k], strlen(keys[i][k]));
        fkv_status there = table_committed(s->table, 0, keys[i][k], strlen(keys[i][k]), hash, &e);
        CHECK_EQ(there, of_key[k] ? FKV_OK : FKV_NOT_FOUND);
        if (there != FKV_OK) continue;
        const sent *x = &l->at[of_key[k]];
        CHECK(e.version == x->version && e.value_bytes == x->bytes && e.user_flags == x->from);
        CHECK(memcmp(e.value, bytes_of + x->from, x->bytes) == 0);
        entries++;
    }
    table_stats t;
    table_get_stats(s->table, &t);
    CHECK_EQ(t.entries, entries);
}

typedef struct known {
    uint64_t forgotten[CLIENTS];
    uint64_t version[CLIENTS][LSN_MAX * 4];
} known;
static known windows;
static void note_window(void *ctx, uint64_t client, uint64_t forgotten, const dedup_change *change, uint32_t changes) {
    (void)ctx;
    windows.forgotten[client - 1] = forgotten;
    for (uint32_t i = 0; i < changes; i++)
        if (change[i].sequence < LSN_MAX * 4) {
            CHECK_EQ(change[i].result.status, FKV_OK);
            CHECK_EQ(change[i].result.value, change[i].sequence * 3);
            windows.version[client - 1][change[i].sequence] = change[i].result.version;
        }
}
/* A retry of each change is answered as the change was. */
static void check_windows(uint32_t i, const line *l) {
    const shard *s = shard_at(i);
    uint64_t cursor = 0;
    memset(&windows, 0, sizeof windows);
    do dedup_scan(&rec.w->dedup, s->slot, &cursor, note_window, NULL);
    while (cursor);
    for (uint64_t n = 1; n <= s->repl.copy->applied; n++) {
        const sent *x = &l->at[n];
        if (x->sequence + FKV_DEDUP_WINDOW / 2 < rec.sequences[x->client]) continue;
        CHECK(windows.forgotten[x->client] < x->sequence);
        CHECK_EQ(windows.version[x->client][x->sequence], x->version);
    }
}
void rec_check_copy(uint32_t i, const line *l) {
    const char *wrong = table_check(shard_at(i)->table);
    if (wrong) check_failed(__FILE__, __LINE__, wrong);
    check_table(i, l);
    check_windows(i, l);
}

/* ---- what the owner does ---- */

static bool is_under_way(const truth *t, uint32_t key) {
    for (uint64_t n = t->committed + 1; n <= line_of(t)->last; n++)
        if (line_of(t)->at[n].key == key) return true;
    return false;
}

static void take(shard *s, const uint8_t *message, uint32_t bytes) {
    fkv_peer_message m;
    backup_at at = { 0 };
    CHECK_EQ(wire_parse_peer(message, bytes, &m), FKV_OK);
    backup_result r;
    while ((r = backup_takes(s->repl.copy, &m, &at)) == BACKUP_WAITS && !rec.disk.off) rec_turn();
    CHECK(r == BACKUP_TOOK || rec.disk.off);
}

/* As over a link: it is prepared and whole before its record comes. */
static void take_large(shard *s, const fkv_record *r, const char *key, const sent *x) {
    backup_record b;
    fkv_status status;
    const truth *t = &rec.shard[s->number];
    for (;; rec_turn()) {
        backup_on_commit_index(s->repl.copy, t->epoch, t->committed); /* as the announcement says */
        status = backup_restores(s->repl.copy, r, (const uint8_t *)key, NULL, false, &b);
        if (status != FKV_BUSY || rec.disk.off) break;
    }
    if (status == FKV_BUSY) return;
    CHECK_EQ(status, FKV_OK);
    memcpy(b.prepared.value, bytes_of + x->from, x->bytes);
    table_seal(s->table, &b.prepared);
    CHECK(backup_has_restored(s->repl.copy, &b));
    durable_more(s);
    rec.counts->large++;
}

void rec_send(uint32_t i) {
    static uint8_t message[PEER_MESSAGE_MIN];
    truth *t = &rec.shard[i];
    line *l = line_of(t);
    sent x = { .key = any(KEYS), .client = any(CLIENTS), .put = any(4) != 0 };
    if (rec.largest) x.put = true;
    if (l->last == LSN_MAX || l->last - t->committed > 200 || is_under_way(t, x.key)) return;
    uint64_t of_key[KEYS];
    state_of(l, l->last, of_key);
    if (!x.put && !of_key[x.key]) return; /* the owner would have answered that there is nothing */
    bool large = x.put && (rec.largest || any(40) == 0);
    if (x.put) x.bytes = large ? PEER_MESSAGE_MIN + any(VALUE_MAX - PEER_MESSAGE_MIN) : any(any(5) ? 200 : 8000);
    if (rec.largest) x.bytes = VALUE_MAX;
    if (x.put) x.from = any(VALUE_MAX - x.bytes + 1);
    x.version = (uint64_t)t->epoch << 44 | ++rec.counter;
    x.sequence = ++rec.sequences[x.client];
    const char *key = keys[i][x.key];
    fkv_record r = { .kind = !x.put  ? FKV_RECORD_DELETE
                             : large ? FKV_RECORD_BULK
                                     : FKV_RECORD_PUT,
                     .key_bytes = (uint16_t)strlen(key),
                     .value_bytes = x.bytes,
                     .user_flags = x.from,
                     .version = x.version,
                     .client = x.client + 1,
                     .sequence = x.sequence,
                     .value = x.sequence * 3 };
    shard *s = shard_at(i);
    l->at[++l->last] = x;
    if (large) return take_large(s, &r, key, &x);
    fkv_records head = {
        .op = FKV_PEER_RECORDS, .count = 1, .shard = i, .epoch = t->epoch, .first = l->last, .committed = t->committed
    };
    memcpy(message, &head, sizeof head);
    uint32_t n = wire_put_record(message + sizeof head, sizeof message - sizeof head, &r, (const uint8_t *)key,
                                 bytes_of + x.from);
    CHECK(n > 0);
    take(s, message, (uint32_t)sizeof head + n);
}

void rec_hear(uint32_t i) {
    truth *t = &rec.shard[i];
    fkv_peer_ack a;
    if (!backup_acknowledges(shard_at(i)->repl.copy, rec.now_ns, &a)) return;
    CHECK_EQ(a.epoch, t->epoch);
    CHECK(a.prepared >= t->acked && a.prepared <= line_of(t)->last);
    t->acked = a.prepared;
    t->begun = true;
}
void rec_commit(uint32_t i) {
    truth *t = &rec.shard[i];
    if (t->committed < t->acked) t->committed += 1 + any((uint32_t)(t->acked - t->committed));
    if (any(2)) backup_on_commit_index(shard_at(i)->repl.copy, t->epoch, t->committed);
}

static void take_over(uint32_t i, uint64_t last) {
    const fkv_peer_follow_ok x = { .op = FKV_PEER_FOLLOW_OK, .shard = i, .epoch = rec.shard[i].epoch, .last = last };
    CHECK_EQ(backup_on_epoch(shard_at(i)->repl.copy, &x), BACKUP_TOOK);
}
void rec_next_epoch(uint32_t i, uint64_t last) {
    truth *t = &rec.shard[i];
    const line *before = line_of(t);
    CHECK(t->epoch + 1 < EPOCHS && last <= before->last);
    line *l = t->of[t->epoch + 1] = malloc(sizeof *l);
    l->last = last;
    memcpy(l->at, before->at, (last + 1) * sizeof *l->at);
    t->epoch++;
    t->acked = 0;
    take_over(i, last);
    rec.counts->epochs++;
}
void rec_same_epoch(uint32_t i) {
    take_over(i, line_of(&rec.shard[i])->last);
    rec.counts->same_epochs++;
}
