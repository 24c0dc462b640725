/* recovery_life.c: see recovery_life.h. */
#include "recovery_life.h"
#include <stdlib.h>
#include <string.h>
#include "../../base/clock.h"
#include "../../replication/durable.h"
#include "../../serve/loop.h"
#include "../check.h"
#include "recovery_state.h"
#include "../../replication/replication.h"

enum { LOG_FILE = 256 << 10, LOG_BUFFER = 64 << 10 };

recovery_state rec;
uint32_t recovery_workers = 1, recovery_of_worker, recovery_epoch = 1;
uint64_t recovery_rate = 1000000000, recovery_instance = 5;
fkv_status recovery_started;
uint32_t recovery_log_file = LOG_FILE;
uint64_t recovery_memory = MEMORY, recovery_bytes_read, recovery_bytes_all, recovery_stops_at = UINT64_MAX,
         recovery_takes_ns;

/* ---- turns ---- */

void rec_turn(void) {
    rec.now_ns += any(2 * 1000 * 1000);
    fkv_clock_set(rec.now_ns);
    helper_drain(&rec.d->memory);
    helper_drain(&rec.d->huge);
    helper_drain(&rec.d->copier);
    if (any(3) && !rec.log_rests) repl_drain(rec.w);
    if (any(3)) helper_drain(&rec.d->maker);
    if (any(3)) helper_drain(&rec.d->snapshots);
    worker_turn(rec.w);
    if (rec.w != rec.d->worker[0]) worker_turn(rec.d->worker[0]);
}
static void log_failed(void *ctx, const char *operation, const char *file, int error) {
    (void)ctx, (void)operation, (void)file, (void)error;
    CHECK(rec.disk.off);
    rec.failed = true;
}
static bool progressed(void *ctx, uint64_t bytes, uint64_t all) {
    (void)ctx;
    CHECK(bytes >= recovery_bytes_read && bytes <= all);
    recovery_bytes_read = bytes;
    recovery_bytes_all = all;
    return bytes < recovery_stops_at;
}
static bool recovers(void *ctx, uint32_t number, uint64_t copy) {
    (void)ctx;
    if (recovery_takes_ns) fkv_clock_set(fkv_now_ns() + recovery_takes_ns);
    return rec.shard[number].id == copy;
}
void rec_note_done(void *ctx, fkv_status s, void *result) {
    free(result);
    *(fkv_status *)ctx = s;
}

/* ---- copies come and go ---- */

void rec_forget(truth *t) {
    for (int e = 0; e < EPOCHS; e++) free(t->of[e]);
    *t = (truth){ .epoch = t->epoch };
}

void rec_opens(uint32_t i) {
    truth *t = &rec.shard[i];
    fkv_status status = FKV_STATUS_COUNT;
    rec_forget(t);
    t->epoch = recovery_epoch;
    t->id = 1000 + ++rec.ids;
    t->of[t->epoch] = calloc(1, sizeof(line));
    dataplane_shard o = { .shard = i,
                          .worker = recovery_of_worker,
                          .epoch = t->epoch,
                          .incarnation = t->id,
                          .memory_bytes = MEMORY,
                          .durable = true };
    dataplane_open_shard(rec.d, &o, rec_note_done, &status);
    while (status == FKV_STATUS_COUNT) rec_turn();
    CHECK_EQ(status, FKV_OK);
    CHECK(backup_make(shard_at(i), t->id, 100, &(replica_backup){ .epoch = t->epoch, .log = { .kept = 1 } }));
}
static void closes(uint32_t i) {
    fkv_status status = FKV_STATUS_COUNT;
    rec_forget(&rec.shard[i]);
    dataplane_close_shard(rec.d, i, rec_note_done, &status);
    while (status == FKV_STATUS_COUNT) rec_turn();
    rec.counts->closed++;
}

void rec_ask(uint32_t i) {
    if (rec.asked[i] != FKV_OK) return; /* it is under way */
    rec.asked[i] = FKV_STATUS_COUNT;
    dataplane_snapshot(rec.d, i, rec_note_done, &rec.asked[i]);
}

static void step(void) {
    uint32_t i = any(SHARDS);
    if (!shard_at(i)) return rec_opens(i);
    switch (any(24)) {
    case 0:
    case 1: rec_hear(i); break;
    case 2:
    case 3: rec_commit(i); break;
    case 4:
        if (any(20) == 0) {
            truth *t = &rec.shard[i];
            uint64_t open = line_of(t)->last - t->committed;
            if (t->epoch + 8 < EPOCHS) rec_next_epoch(i, t->committed + any((uint32_t)open + 1));
        }
        break;
    case 5:
        if (any(5) == 0) rec_ask(i);
        break;
    case 6:
        if (any(120) == 0) closes(i);
        break;
    case 7:
        if (any(5) == 0) rec_check_copy(i, line_of(&rec.shard[i]));
        break;
    case 8:
    case 9:
    case 10:
    case 11:
    case 12: rec_turn(); break;
    default: rec_send(i);
    }
}

/* ---- starts ---- */

bool rec_up(char why[256]) {
    dataplane_config c = { .server_incarnation = 10,
                           .hash_seed = SEED,
                           .shards = SHARDS,
                           .workers = recovery_workers,
                           .lease_ms = 25,
                           .drift_ppm = 1000,
                           .max_clients = 8,
                           .client_quota = 16,
                           .scrub_ms = 1000,
                           .quarantine_ns = MS,
                           .replica_lease_ms = 100,
                           .on_log_failed = log_failed };
    c.log = (dataplane_log){ .disk = &rec.disk.table,
                             .instance = recovery_instance,
                             .file_bytes = recovery_log_file,
                             .buffer_bytes = LOG_BUFFER,
                             .snapshot_bytes = LOG_FILE,
                             .snapshot_bytes_per_s = recovery_rate,
                             .chunk_bytes = ITEM_CHUNK_MIN,
                             .shard_memory_bytes = recovery_memory,
                             .recovers = recovers,
                             .on_progress = progressed };
    recovery_bytes_read = recovery_bytes_all = 0;
    why[0] = 0;
    rec.failed = false;
    CHECK_EQ(dataplane_create(&c, &rec.d), FKV_OK);
    rec.d->stepped = !rec.threads;
    for (int i = 0; i < SHARDS; i++) rec.asked[i] = FKV_OK;
    recovery_started = dataplane_start(rec.d, why, 256);
    if (recovery_started == FKV_OK) {
        rec.w = rec.d->worker[recovery_of_worker];
        return true;
    }
    dataplane_destroy(rec.d);
    rec.d = NULL;
    return false;
}

void rec_check(const dataplane_recovered *r) {
    truth *t = &rec.shard[r->shard];
    CHECK_EQ(r->id, t->id);
    if (!r->whole) check_failed(__FILE__, __LINE__, r->why);
    CHECK(r->epoch <= t->epoch && t->of[r->epoch]);
    const line *l = t->of[r->epoch];
    CHECK(r->committed <= r->prepared && r->prepared <= l->last);
    CHECK(r->prepared >= t->committed);
    if (t->acked) CHECK(r->epoch == t->epoch && r->prepared >= t->acked);
    const shard *s = shard_at(r->shard);
    CHECK(s && s->repl.copy->applied == r->committed);
    CHECK(s->repl.copy->place.granted_until_ns >= rec.now_ns + 100 * MS); /* leases that it has given before */
    rec_check_copy(r->shard, l);
    rec.counts->copies++;
    rec.counts->from_snapshots += s->repl.snapshot.made;
}

/* The copy goes on with all that it has, behind an owner that has no more: in a next epoch, or in the same one, if it
 * comes back soon. What that owner had behind it comes again, or other records do. */
static void goes_on(const dataplane_recovered *r) {
    truth *t = &rec.shard[r->shard];
    if (r->epoch != t->epoch) {
        memcpy(t->of[t->epoch], t->of[r->epoch], sizeof(line));
        t->acked = 0;
    }
    line_of(t)->last = r->prepared;
    if (r->epoch == t->epoch && any(2))
        rec_same_epoch(r->shard);
    else
        rec_next_epoch(r->shard, r->prepared);
}

static bool start(void) {
    char why[256];
    if (!rec_up(why)) {
        if (!rec.disk.off) check_failed(__FILE__, __LINE__, why);
        return false;
    }
    uint32_t count;
    const dataplane_recovered *r = dataplane_get_recovered(rec.d, &count);
    bool there[SHARDS] = { false };
    for (uint32_t i = 0; i < count; i++) {
        rec_check(&r[i]);
        there[r[i].shard] = true;
    }
    for (uint32_t i = 0; i < SHARDS; i++) {
        CHECK(there[i] || !rec.shard[i].begun);
        rec.counts->bare += !there[i];
    }
    for (uint32_t i = 0; i < count; i++) goes_on(&r[i]);
    return true;
}

void rec_end(bool power) {
    const wal_file *first = LIST_FIRST(&rec.w->repl.log->wal.kept, wal_file, link);
    rec.counts->trims += first && first->number > 1;
    for (uint32_t i = 0; i < SHARDS; i++) rec.counts->snapshots += shard_at(i) && shard_at(i)->repl.snapshot.made;
    rec.disk.off = true; /* what is done now does not happen */
    dataplane_destroy(rec.d);
    rec.d = NULL;
    if (power)
        memory_disk_on(&rec.disk);
    else
        memory_disk_kill(&rec.disk);
}

void rec_init(uint64_t seed, recovery_counts *counts) {
    memset(&rec, 0, sizeof rec);
    rec.counts = counts;
    memory_disk_init(&rec.disk, seed, seed % 2 ? 512 : 4096);
    rec.now_ns = 1000 * MS;
    fkv_clock_set(rec.now_ns);
    rec_name_keys();
}
void rec_over(void) {
    for (uint32_t i = 0; i < SHARDS; i++) rec_forget(&rec.shard[i]);
    memory_disk_free(&rec.disk);
    fkv_clock_restore();
}

void recovery_live(uint64_t seed, uint32_t most, recovery_counts *counts) {
    rec_init(seed, counts);
    CHECK(start());
    for (uint32_t starts = 1 + any(12); starts > 0; starts--) {
        rec.disk.off_at = rec.disk.operations + 1 + any(most);
        for (int n = 0; n < 6000 && !rec.disk.off; n++) step();
        counts->cuts += rec.disk.off;
        bool power = any(4) != 0;
        rec_end(power);
        rec.disk.off_at = any(2) ? rec.disk.operations + 1 + any(12) : 0;
        while (!start()) {
            counts->starts_cut++;
            counts->cuts++;
            if (any(4))
                memory_disk_on(&rec.disk);
            else
                memory_disk_kill(&rec.disk);
        }
        rec.disk.off_at = 0;
    }
    rec_end(true);
    counts->lives++;
    rec_over();
}
