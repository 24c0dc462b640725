/* recovery_by_hand.c: lives of recovery_life.h, step by step. */
#include <errno.h>
#include "../../replication/durable.h"
#include "../check.h"
#include "recovery_state.h"
#include "../../replication/replication.h"

static recovery_counts by_hand;

void recovery_begin(uint64_t seed) {
    char why[256];
    rec_init(seed, &by_hand);
    CHECK(rec_up(why));
    for (uint32_t i = 0; i < SHARDS; i++) rec_opens(i);
    for (uint32_t i = 0; i < SHARDS; i++) recovery_send(i, 1, true);
}
memory_disk *recovery_disk(void) { return &rec.disk; }
uint64_t recovery_id(uint32_t shard) { return rec.shard[shard].id; }

void recovery_send(uint32_t i, uint32_t records, bool committed) {
    truth *t = &rec.shard[i];
    uint64_t last = line_of(t)->last + records;
    if (last > LSN_MAX) last = LSN_MAX; /* a life has no more */
    while (line_of(t)->last < last) {
        rec_send(i);
        while (committed && (t->acked < line_of(t)->last || !t->begun)) {
            rec_turn();
            rec_hear(i);
        }
        if (committed) t->committed = t->acked;
        backup_on_commit_index(shard_at(i)->repl.copy, t->epoch, t->committed);
    }
    while (t->acked < line_of(t)->last) {
        rec_turn();
        rec_hear(i);
    }
}

void recovery_sends_largest(uint32_t i, uint32_t records) {
    while (records-- > 0) {
        rec.largest = true;
        recovery_send(i, 1, true);
    }
    rec.largest = false;
}

void recovery_snapshot(uint32_t i, uint32_t meanwhile) {
    rec_ask(i);
    do {
        rec_turn();
        if (meanwhile && rec.asked[i] == FKV_STATUS_COUNT) recovery_send(i, meanwhile, true);
    } while (rec.asked[i] == FKV_STATUS_COUNT);
    CHECK_EQ(rec.asked[i], FKV_OK);
    for (int n = 0; n < 20; n++) rec_turn(); /* what it gives back */
}
void recovery_snapshot_across_epochs(uint32_t i, uint32_t records) {
    rec_ask(i);
    snapshots *x = &rec.w->repl.log->snapshots;
    while (x->of != shard_at(i)) rec_turn();
    x->next_ns = UINT64_MAX; /* its first step */
    rec_next_epoch(i, rec.shard[i].committed);
    recovery_send(i, records, true);
    x->next_ns = 0;
    while (rec.asked[i] == FKV_STATUS_COUNT) rec_turn();
    CHECK_EQ(rec.asked[i], FKV_OK);
}
void recovery_snapshot_in_a_new_epoch(uint32_t i) {
    rec.log_rests = true;
    rec_next_epoch(i, rec.shard[i].committed);
    rec_ask(i);
    for (int n = 0; n < 500; n++) rec_turn();
    CHECK_EQ(rec.asked[i], FKV_STATUS_COUNT);
    CHECK(rec.w->repl.log->snapshots.of == NULL);
    rec.log_rests = false;
    while (rec.asked[i] == FKV_STATUS_COUNT) rec_turn();
    CHECK_EQ(rec.asked[i], FKV_OK);
}
static void damage_first(void *ctx, const table_entry *e) {
    uint32_t *bytes_min = ctx;
    if (e->value_bytes < *bytes_min) return;
    *(uint8_t *)(uintptr_t)e->value ^= 1;
    *bytes_min = UINT32_MAX;
}
static void count_damaged(void *ctx, const table_entry *e) { *(uint32_t *)ctx += !table_is_whole(e); }
static void each_entry(uint32_t i, void (*f)(void *ctx, const table_entry *e), void *ctx) {
    uint64_t cursor = 0;
    do table_scan(shard_at(i)->table, TABLE_EVERY_NAMESPACE, &cursor, f, ctx);
    while (cursor);
}
bool recovery_damages(uint32_t i, uint32_t bytes_min) {
    each_entry(i, damage_first, &bytes_min);
    return bytes_min == UINT32_MAX;
}
uint32_t recovery_damaged(uint32_t i) {
    uint32_t count = 0;
    each_entry(i, count_damaged, &count);
    return count;
}
uint64_t recovery_doubt_ns(uint32_t i) {
    uint64_t until = dedup_doubt_ns(&rec.w->dedup, shard_at(i)->slot);
    return until > rec.now_ns ? until - rec.now_ns : 0;
}
uint64_t recovery_granted_until_ns(uint32_t i) { return shard_at(i)->repl.copy->place.granted_until_ns; }
void recovery_cuts_value_off(uint32_t i) {
    const append_cursor *at = &shard_at(i)->repl.appended;
    wal *g = &rec.w->repl.log->wal;
    while (!wal_is_idle(g)) rec_turn();
    rec.largest = true;
    for (uint64_t last = line_of(&rec.shard[i])->last; line_of(&rec.shard[i])->last == last;) rec_send(i);
    rec.largest = false;
    rec_turn(); /* its buffers take less */
    CHECK(at->announced && at->value_at > 0);
    wal_flush(g);
    repl_drain(rec.w);
    rec_end(false);
}
bool recovery_begins_epoch(uint32_t i) { return shard_at(i)->repl.appended.begins; }
void recovery_power_goes(void) { rec_end(true); }

const dataplane_recovered *recovery_starts(uint32_t *count, char why[256]) {
    *count = 0;
    return rec_up(why) ? dataplane_get_recovered(rec.d, count) : NULL;
}
void recovery_fails_to_start(char why[256]) {
    rec.threads = true;
    rec.disk.fail_at = rec.disk.operations + 1;
    rec.disk.fail_with = -EIO;
    CHECK(!rec_up(why));
    rec.threads = false;
    rec.disk.fail_at = 0;
    memory_disk_kill(&rec.disk);
}
void recovery_check(const dataplane_recovered *r) { rec_check(r); }

fkv_status recovery_discards(uint32_t i) {
    fkv_status status = FKV_STATUS_COUNT;
    dataplane_discard_copy(rec.d, i, rec.shard[i].id, rec_note_done, &status);
    while (status == FKV_STATUS_COUNT) rec_turn();
    for (int n = 0; n < 20; n++) rec_turn();
    return status;
}
uint32_t recovery_log_files(void) {
    uint32_t files = 0;
    for (const fkv_list *l = rec.w->repl.log->wal.kept.next; l != &rec.w->repl.log->wal.kept; l = l->next) files++;
    return files;
}
void recovery_end(void) {
    if (rec.d) rec_end(true);
    rec_over();
}
