/* durable.c: see durable.h.
 *
 * The log gets a large value in front of its record, as a backup gets it over a link: the record without its value, then
 * the value's bytes, then the record once more, with its number. Only with that last section the record is there. */
#include "durable.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../base/clock.h"
#include "../dataplane/latency.h"
#include "../dataplane/worker.h"
#include "backup.h"
#include "integrity.h"
#include "owner_link.h"
#include "recovery.h"
#include "replicate.h"
#include "replication.h"
#include "uncommitted.h"

enum { VALUE_PIECE = 4096 }; /* a large value waits for so much room, if it has as many bytes left */
static const uint64_t RETRY_NS = 1000000000;

static replica_log *log_of(shard *s) { return backup_follows(s) ? &s->repl.copy->place.log : &s->repl.owner.log; }

/* What is in the buffer counts: a copy acknowledges it, and an owner commits it. */
static bool answers_early(const shard *s) {
    return s->w->d->c.log.sync_ns > 0 && durable_has_begun(s) &&
           (backup_follows(s) || replica_answers_early(&s->repl.owner));
}
static void count_buffered(shard *s) {
    if (s->w->d->c.log.sync_ns > 0 && durable_has_begun(s) && !s->repl.appended.begins)
        log_of(s)->buffered = s->repl.appended.lsn;
}

/* ---- what the log reports ---- */

static void came_further(shard *s) {
    if (backup_follows(s))
        owner_link_owes(s->repl.copy);
    else
        replicate_logged(s);
}

/* Its sections may be of a shard that was closed since, or of one that was opened anew. */
static void durable(void *owner, const wal_section *x) {
    worker *w = ((worker_log *)owner)->w;
    shard *s = x->shard < w->d->c.shards ? w->by_number[x->shard] : NULL;
    if (w->stopping || !s || !s->durable || s->repl.logged_as != x->copy || s->state == SHARD_CLOSING) return;
    replica_logged(log_of(s), x->epoch, x->first, x->count);
    count_buffered(s);
    came_further(s);
}

static void room(void *owner) {
    worker_log *g = owner;
    g->w->feed_starved = true;
    if (wal_holds_back(&g->wal)) g->snapshots.trims = true;
}

uint32_t durable_epoch(const shard *s) { return backup_follows(s) ? s->repl.copy->place.epoch : s->repl.owner.epoch; }
bool durable_has_begun(const shard *s) {
    const replica_log *l = backup_follows(s) ? &s->repl.copy->place.log : &s->repl.owner.log;
    return l->epoch > 0 && l->epoch == durable_epoch(s);
}
uint64_t durable_committed(const shard *s) {
    return backup_follows(s) ? s->repl.copy->applied : s->repl.owner.committed;
}

/* The process is about to end. Until then nothing is acknowledged or committed that would need the log. */
static void failed(void *owner, const disk_failure *f) {
    worker_log *g = owner;
    const dataplane_config *c = &g->w->d->c;
    __atomic_store_n(&g->w->d->log_failed, true, __ATOMIC_RELAXED);
    for (fkv_list *l = g->w->shards.next; l != &g->w->shards; l = l->next)
        log_of(LIST_OF(l, shard, of_worker))->epoch = 0; /* mutation: durable/lease-after-failure */
    if (c->on_log_failed) c->on_log_failed(c->ctx, f->operation, f->file, f->error);
}

/* ---- appending ---- */

static bool append(worker_log *g, shard *s, uint64_t first, uint32_t count, const void *bytes, uint32_t n) {
    wal_section x = { .shard = s->number,
                      .epoch = durable_epoch(s),
                      .copy = s->repl.logged_as,
                      .first = first,
                      .committed = durable_committed(s),
                      .digest = integrity_digest(s),
                      .count = count,
                      .bytes = n };
    if (!wal_append(&g->wal, &x, bytes)) return false;
    if (g->gathers_ns == 0) g->gathers_ns = g->w->now_ns;
    if (!answers_early(s)) g->urgent = true;
    return true;
}

/* Of the next record, whose value is large: all that comes before its number. False: there is no room. */
static bool append_value(worker_log *g, shard *s, const uncommitted *p) {
    append_cursor *at = &s->repl.appended;
    const uint8_t *key, *value;
    fkv_record r = uncommitted_record(p, &key, &value);
    if (r.kind != FKV_RECORD_BULK) return true;
    if (!at->announced) {
        uint32_t n = wire_put_record(g->records, sizeof g->records, &r, key, NULL);
        at->announced = append(g, s, p->lsn, 0, g->records, n);
    }
    while (at->announced && at->value_at < r.value_bytes) {
        uint32_t left = r.value_bytes - at->value_at, room_now = wal_room(&g->wal);
        if (room_now < VALUE_PIECE && room_now < left) return false;
        uint32_t n = left < room_now ? left : room_now;
        if (!append(g, s, p->lsn, 0, value + at->value_at, n)) return false;
        at->value_at += n;
    }
    return at->announced;
}

static bool append_records(worker_log *g, shard *s) {
    append_cursor *at = &s->repl.appended;
    if (at->begins && !append(g, s, at->lsn + 1, 0, NULL, 0)) return false;
    at->begins = false;
    while (at->lsn < uncommitted_last(s)) {
        uint16_t count;
        uncommitted p = uncommitted_at(s, at->lsn + 1);
        if (!append_value(g, s, &p)) return false; /* mutation: durable/large-value-unlogged */
        uint32_t most = wal_room(&g->wal), n;
        n = uncommitted_fill(&p, g->records, most < LOG_PIECE ? most : LOG_PIECE, &count);
        if (count == 0 || !append(g, s, at->lsn + 1, count, g->records, n)) return false;
        at->lsn += count;
        at->announced = false;
        at->value_at = 0;
    }
    return true;
}

/* One batch at a time: while one is under way, what is due waits for it to come home. */
static void flush(worker_log *g) {
    uint64_t sync_ns = g->w->d->c.log.sync_ns, now = g->w->now_ns;
    if (sync_ns == 0) {
        wal_turn_ends(&g->wal, now);
        return;
    }
    if (g->urgent || now - g->gathers_ns >= sync_ns) wal_flush(&g->wal); /* mutation: early/never-synced */
    if (g->wal.filling.sections > 0) return;
    g->gathers_ns = 0;
    g->urgent = false;
}

static uint64_t flush_deadline(const worker_log *g) {
    uint64_t sync_ns = g->w->d->c.log.sync_ns;
    if (sync_ns == 0) return wal_deadline(&g->wal);
    if (g->gathers_ns == 0 || g->wal.failed || g->wal.write.base.under_way) return UINT64_MAX;
    return g->urgent ? 0 : g->gathers_ns + sync_ns;
}

void durable_hurry(worker *w) { w->repl.log->urgent = true; }
void durable_counts_anew(shard *s) {
    if (!answers_early(s)) durable_hurry(s->w);
}

bool durable_reaches(shard *s, uint64_t lsn) {
    /* mutation: early/snapshot-ahead */
    return s->w->d->c.log.sync_ns == 0 || replica_on_disk(log_of(s), durable_epoch(s)) >= lsn;
}

void repl_sync(worker *w) {
    if (!w->repl.log || !w->repl.log->open || w->d->c.log.sync_ns == 0) return;
    wal *g = &w->repl.log->wal;
    while (!g->failed && !wal_is_idle(g)) {
        wal_flush(g);
        if (w->d->stepped) repl_drain(w);
        mailbox_sleep(&w->box);
        w->now_ns = fkv_now_ns();
        mailbox_run(&w->box);
    }
}

void repl_write(worker *w) {
    worker_log *g = w->repl.log;
    fkv_list now;
    /* First: a snapshot begins and ends between changes, and what is answered early makes some ready below. */
    snapshots_step(&g->snapshots);
    g->more = false;
    list_take_all(&g->behind, &now);
    while (!list_empty(&now)) {
        shard *s = LIST_OF(now.next, shard, repl.appended.behind);
        list_remove(&s->repl.appended.behind);
        if (wal_room(&g->wal) == 0 || !append_records(g, s)) list_push(&g->behind, &s->repl.appended.behind);
        count_buffered(s);
        if (answers_early(s)) came_further(s);
    }
    flush(g);
    if (!wal_disk_full(&g->wal)) {
        g->retry_ns = 0;
    } else if (g->retry_ns <= w->now_ns) {
        if (g->retry_ns) wal_retry(&g->wal);
        g->retry_ns = w->now_ns + RETRY_NS;
    }
}

uint64_t durable_deadline(const worker *w) {
    const worker_log *g = w->repl.log;
    if (!g) return UINT64_MAX;
    if (g->more) return 0;
    uint64_t at = min_u64(g->retry_ns ? g->retry_ns : UINT64_MAX, snapshots_deadline(&g->snapshots));
    return min_u64(at, flush_deadline(g));
}

void durable_more(shard *s) {
    worker_log *g = s->w->repl.log;
    fkv_assert(g); /* else it would not have been opened */
    if (list_empty(&s->repl.appended.behind)) list_push(&g->behind, &s->repl.appended.behind);
    g->more = true;
}

void durable_begins(shard *s) {
    append_cursor *at = &s->repl.appended;
    at->lsn = min_u64(at->lsn, uncommitted_last(s)); /* mutation: durable/dropped-counts-as-logged */
    at->announced = false;
    at->value_at = 0;
    at->begins = true;
    durable_more(s);
}

void durable_end(shard *s) { list_remove(&s->repl.appended.behind); }

fkv_status durable_admits(const shard *s) { return wal_room(&s->w->repl.log->wal) > 0 ? FKV_OK : FKV_BUSY; }
bool repl_disk_full(const shard *s) { return s->durable && wal_disk_full(&s->w->repl.log->wal); }

void repl_log_stats(const worker *w, dataplane_log_stats *out) {
    const wal *g = &w->repl.log->wal;
    *out = (dataplane_log_stats){ .bytes = wal_kept_bytes(g),
                                  .free_files = wal_free_files(g),
                                  .disk_full = wal_disk_full(g),
                                  .sync = latency_of(&g->syncs),
                                  .records = g->records };
}

/* ---- made and unmade, by the thread that starts and stops ---- */

wal_identity durable_identity(const dataplane *d, uint32_t thread) {
    wal_identity of = { .instance = d->c.log.instance, .thread = thread };
    memcpy(of.cluster, d->c.log.cluster, sizeof of.cluster);
    return of;
}

int durable_start(worker *w, bool *damaged, char *why, size_t why_room) {
    dataplane *d = w->d;
    const dataplane_log *c = &d->c.log;
    worker_log *g = w->repl.log = calloc(1, sizeof *g);
    if (!g) {
        snprintf(why, why_room, "no memory for the write-ahead log");
        return -ENOMEM;
    }
    g->w = w;
    list_init(&g->behind);
    wal_config k = { .disk = c->disk,
                     .of = durable_identity(d, w->number),
                     .file_bytes = c->file_bytes,
                     .buffer_bytes = c->buffer_bytes,
                     .writer = &g->writer,
                     .maker = &d->maker,
                     .home = &w->box,
                     .owner = g,
                     .durable = durable,
                     .room = room,
                     .failed = failed };
    wal_found found;
    disk_failure f;
    recovery_read(w, &k.of, &found);
    if (found.verdict > WAL_TORN) {
        char text[200];
        wal_found_text(&found, text, sizeof text);
        snprintf(why, why_room, "the write-ahead log cannot be gone on with: %s", text);
        wal_files_free(&found.files);
        /* mutation: recovery/log-of-another-put-aside */
        *damaged = found.verdict == WAL_DAMAGED || found.verdict == WAL_FILE_MISSING;
        return found.error ? found.error : -EIO;
    }
    if (found.verdict == WAL_TORN) wal_found_text(&found, g->torn, sizeof g->torn);
    int e = (d->stepped ? helper_open : helper_start)(&g->writer, "farkv-log");
    if (e != 0) {
        wal_files_free(&found.files);
        snprintf(why, why_room, "the write-ahead log's thread could not be started");
        return e;
    }
    e = wal_open(&g->wal, &k, &found, &f);
    if (e != 0) snprintf(why, why_room, "the write-ahead log: %s %s: %s", f.operation, f.file, strerror(-e));
    g->open = e == 0;
    if (e == 0 && (e = snapshots_open(&g->snapshots, w)) != 0) snprintf(why, why_room, "no memory for snapshots");
    return e;
}

const char *dataplane_get_torn(const dataplane *d, uint32_t worker) {
    const worker_log *g = d->worker[worker]->repl.log;
    return g ? g->torn : "";
}

void repl_stop(worker *w) {
    if (!w->repl.log) return;
    if (w->repl.log->open) wal_stop(&w->repl.log->wal);
    snapshots_stop(&w->repl.log->snapshots);
    helper_stop(&w->repl.log->writer);
}

int repl_drain(worker *w) { return w->repl.log ? helper_drain(&w->repl.log->writer) : 0; }

void repl_free_worker(worker *w) {
    if (!w->repl.log) return;
    if (w->repl.log->open) wal_free(&w->repl.log->wal);
    snapshots_free(&w->repl.log->snapshots);
    helper_free(&w->repl.log->writer);
    free(w->repl.log);
}
