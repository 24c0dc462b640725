/* snapshot_write.c: see snapshot_write.h. */
#include "snapshot_write.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../base/list.h"

enum { SYNC_BYTES = 8 << 20 };
static const uint64_t S_NS = 1000000000;

/* ---- on the writer's thread ---- */

typedef struct names {
    char own[WAL_NAME_MAX], new[WAL_NAME_MAX];
} names;

static names names_of(const snapshot_work *x) {
    names n;
    snapshot_name(n.own, x->head.shard, x->head.copy);
    snapshot_new_name(n.new, x->head.shard, x->head.copy);
    return n;
}

static bool write_at_end(snapshot_work *x, const names *n, const uint8_t *from, uint32_t bytes) {
    disk *d = x->base.disk;
    uint64_t at = x->at;
    x->at += bytes;
    return disk_job_did(&x->base, "write", n->new, d->write(d, x->handle, at, from, bytes));
}

static bool create(snapshot_work *x, const names *n) {
    _Alignas(DISK_BLOCK) uint8_t block[WAL_BLOCK];
    disk *d = x->base.disk;
    x->handle = d->open(d, n->new, DISK_CREATE);
    if (!disk_job_did(&x->base, "open", n->new, x->handle < 0 ? x->handle : 0)) return false;
    x->created = true;
    snapshot_count_head(&x->foot, snapshot_put_head(block, &x->head));
    return write_at_end(x, n, block, sizeof block);
}

static bool write_chunk(snapshot_work *x, const names *n) {
    const snapshot_buffer *b = &x->buffer;
    snapshot_chunk c = { .number = x->foot.chunks + 1, .kind = b->kind, .count = b->count, .bytes = b->bytes };
    uint32_t crc = snapshot_seal(b->base, &c);
    if (b->kind != SNAPSHOT_FOOT) snapshot_count(&x->foot, &c, crc);
    return write_at_end(x, n, b->base, snapshot_blocks(&c));
}

/* A part at a time: all of it at the end would hold up the syncs of logs on the same disk. */
static bool sync_written(snapshot_work *x, const names *n, uint64_t most) {
    disk *d = x->base.disk;
    if (x->at - x->synced <= most) return true;
    x->synced = x->at;
    return disk_job_did(&x->base, "sync", n->new, d->sync(d, x->handle)); /* mutation: snapshots/sync-unchecked */
}

static void close_file(snapshot_work *x) {
    if (x->handle >= 0) x->base.disk->close(x->base.disk, x->handle);
    x->handle = -1;
}

static bool write_foot(snapshot_work *x, const names *n) {
    x->buffer.kind = SNAPSHOT_FOOT;
    x->buffer.count = 1;
    x->buffer.bytes = sizeof x->foot;
    memcpy(x->buffer.base + sizeof(snapshot_chunk), &x->foot, sizeof x->foot);
    return write_chunk(x, n);
}

/* From here on the file is read, if there is a loss of power. */
static bool give_name(snapshot_work *x, const names *n) {
    disk *d = x->base.disk;
    close_file(x);
    if (!disk_job_did(&x->base, "rename", n->new, d->rename(d, n->new, n->own))) return false;
    x->created = false;
    /* mutation: snapshots/name-unsynced */
    if (disk_job_did(&x->base, "sync", "the directory", d->sync_directory(d))) return true;
    x->outcome = SNAPSHOT_UNCERTAIN;
    return false;
}

static bool do_work(snapshot_work *x, const names *n) {
    if (x->handle < 0 && !create(x, n)) return false;
    if (x->buffer.count > 0 && !write_chunk(x, n)) return false;
    if (!x->last) return sync_written(x, n, SYNC_BYTES);
    return write_foot(x, n) && sync_written(x, n, 0) && give_name(x, n); /* mutation: snapshots/named-unsynced */
}

static void came_home(job *j);

/* What failed is not tried again, and its file not used again: the kernel may have dropped bytes, and say so once. */
static void write_on_disk(job *j) {
    snapshot_work *x = LIST_OF(j, snapshot_work, base.job);
    disk *d = x->base.disk;
    names n = names_of(x);
    if (x->drop || !do_work(x, &n)) {
        int error = x->base.failure.error;
        close_file(x);
        if (x->created) d->remove(d, n.new); /* else the next start does */
        x->created = false;
        bool full = error == -ENOSPC || error == -EDQUOT;
        if (full && x->outcome == SNAPSHOT_FAILED) x->outcome = SNAPSHOT_NO_SPACE;
    }
    disk_job_home(&x->base, came_home);
}

/* ---- on the data-plane thread ---- */

static void empty(snapshot_buffer *b) { *b = (snapshot_buffer){ .base = b->base }; }

static void end(snapshot_writer *w, snapshot_outcome o) {
    disk_failure f = w->work.base.failure;
    w->state = SNAPSHOT_IDLE;
    empty(&w->filling);
    w->c.ended(w->c.owner, o, &f);
}

static void post(snapshot_writer *w) {
    snapshot_work *x = &w->work;
    x->buffer = w->filling;
    w->filling = w->other;
    x->last = w->state == SNAPSHOT_FINISHES;
    x->drop = w->state == SNAPSHOT_DROPS;
    x->foot.last = w->foot.last;
    x->foot.epoch = w->foot.epoch;
    x->foot.digest = w->foot.digest;
    x->foot.doubt_ms = w->foot.doubt_ms;
    disk_job_post(&x->base, w->c.disk, w->c.home, w->c.writer, write_on_disk);
}

/* FAILED is what it ends with while nothing else is known. */
static void came_home(job *j) {
    snapshot_writer *w = LIST_OF(j, snapshot_writer, work.base.job);
    snapshot_work *x = &w->work;
    x->base.under_way = false;
    w->other = x->buffer;
    empty(&w->other);
    if (x->base.failure.error) return end(w, x->outcome);
    if (x->last || x->drop) return end(w, x->drop ? SNAPSHOT_DROPPED : SNAPSHOT_DONE);
    if (w->stopped) return;
    if (w->state == SNAPSHOT_WRITES) return w->c.room(w->c.owner);
    post(w);
}

static bool give_away(snapshot_writer *w, uint64_t now_ns) {
    if (w->work.base.under_way || w->stopped || now_ns < w->due_ns) return false;
    uint64_t bytes = wal_whole_blocks((uint32_t)sizeof(snapshot_chunk) + w->filling.bytes);
    if (w->c.bytes_per_s) w->due_ns = now_ns + bytes * S_NS / w->c.bytes_per_s;
    post(w);
    return true;
}

uint8_t *snapshot_put(snapshot_writer *w, uint32_t kind, uint32_t bytes, uint64_t now_ns) {
    snapshot_buffer *b = &w->filling;
    fkv_assert(w->state == SNAPSHOT_WRITES && kind != SNAPSHOT_FOOT && bytes <= snapshot_item_max(w));
    bool fits = b->kind == kind && b->bytes + bytes <= snapshot_item_max(w);
    if (b->count > 0 && !fits && !give_away(w, now_ns)) return NULL;
    uint8_t *at = b->base + sizeof(snapshot_chunk) + b->bytes;
    b->kind = kind;
    b->count++;
    b->bytes += bytes;
    return at;
}

uint64_t snapshot_due_ns(const snapshot_writer *w, uint64_t now_ns) {
    return w->state == SNAPSHOT_WRITES && !w->work.base.under_way && w->due_ns > now_ns ? w->due_ns : UINT64_MAX;
}

void snapshot_begin(snapshot_writer *w, const snapshot_head *head) {
    snapshot_work *x = &w->work;
    fkv_assert(w->state == SNAPSHOT_IDLE);
    x->head = *head;
    memcpy(x->head.cluster, w->c.of.cluster, sizeof x->head.cluster);
    x->head.instance = w->c.of.instance;
    x->head.thread = w->c.of.thread;
    x->foot = (snapshot_foot){ 0 };
    x->at = x->synced = 0;
    x->created = false;
    x->outcome = SNAPSHOT_FAILED;
    w->state = SNAPSHOT_WRITES;
}

void snapshot_finish(snapshot_writer *w, const snapshot_foot *foot) {
    fkv_assert(w->state == SNAPSHOT_WRITES);
    w->state = SNAPSHOT_FINISHES;
    w->foot = *foot;
    if (!w->work.base.under_way && !w->stopped) post(w);
}

void snapshot_drop(snapshot_writer *w) {
    if (w->state == SNAPSHOT_IDLE) return;
    w->state = SNAPSHOT_DROPS;
    if (!w->work.base.under_way && !w->stopped) post(w);
}

/* ---- removed ---- */

typedef struct removal {
    job job;
    disk *disk;
    char name[WAL_NAME_MAX];
} removal;

/* What cannot be removed now is of a copy that nobody names, at the next start. */
static void remove_from_disk(job *j) {
    removal *r = LIST_OF(j, removal, job);
    r->disk->remove(r->disk, r->name);
    free(r);
}

void snapshot_remove(snapshot_writer *w, uint32_t shard, uint64_t copy) {
    removal *r = w->stopped ? NULL : malloc(sizeof *r);
    if (!r) return;
    *r = (removal){ .job.run = remove_from_disk, .disk = w->c.disk };
    snapshot_name(r->name, shard, copy);
    helper_post(w->c.writer, &r->job);
}

/* ---- life ---- */

int snapshot_open(snapshot_writer *w, const snapshot_config *c) {
    fkv_assert(c->chunk_bytes % WAL_BLOCK == 0 && c->chunk_bytes > 0 && c->chunk_bytes <= SNAPSHOT_CHUNK_MAX);
    *w = (snapshot_writer){ .c = *c, .work.handle = -1 };
    w->filling.base = aligned_alloc(WAL_BLOCK, c->chunk_bytes);
    w->other.base = aligned_alloc(WAL_BLOCK, c->chunk_bytes);
    if (w->filling.base && w->other.base) return 0;
    snapshot_free(w);
    return -ENOMEM;
}

void snapshot_stop(snapshot_writer *w) { w->stopped = true; }

void snapshot_free(snapshot_writer *w) {
    fkv_assert(!w->work.base.under_way);
    if (w->work.handle >= 0) w->c.disk->close(w->c.disk, w->work.handle);
    free(w->filling.base);
    free(w->other.base);
}
