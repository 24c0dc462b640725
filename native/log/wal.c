/* wal.c: see wal.h. */
#include "wal.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../base/clock.h"
#include "disk_names.h"
#include "files.h"

void wal_fail(wal *w, const disk_failure *f) {
    if (w->failed) return;
    w->failed = true;
    w->c.failed(w->c.owner, f);
}

/* ---- a batch ---- */

static void empty(wal_buffer *b) { *b = (wal_buffer){ .base = b->base, .bytes = sizeof(wal_batch) }; }

static void written(job *j);

/* On the writer's thread. What failed is not tried again: the kernel may have dropped the bytes, and say so once. */
static void write_on_disk(job *j) {
    wal_write *x = LIST_OF(j, wal_write, base.job);
    disk *d = x->base.disk;
    char name[WAL_NAME_MAX];
    wal_file_name(name, x->thread, x->head.file);
    if (x->leaves >= 0) d->close(d, x->leaves);
    wal_seal_batch(x->buffer.base, &x->head);
    uint64_t began = fkv_now_ns();
    int e = d->write(d, x->handle, x->at, x->buffer.base, wal_whole_blocks(x->head.bytes));
    /* mutation: log/batch-unsynced, log/sync-unchecked */
    if (disk_job_did(&x->base, "write", name, e)) disk_job_did(&x->base, "sync", name, d->sync(d, x->handle));
    x->took_ns = fkv_now_ns() - began;
    disk_job_home(&x->base, written);
}

/* At home. The batch is under way until the owner has heard of all of it: callbacks may append, but not flush. */
static void written(job *j) {
    wal *w = LIST_OF(j, wal, write.base.job);
    wal_write *x = &w->write;
    if (x->base.failure.error) {
        wal_fail(w, &x->base.failure);
    } else {
        fkv_histogram_record(&w->syncs, x->took_ns);
        x->file->batched = true;
    }
    wal_section s;
    const uint8_t *records;
    uint32_t at = sizeof(wal_batch);
    while (!w->failed && wal_next_section(x->buffer.base, &x->head, &at, &s, &records)) {
        wal_file_note(x->file, &s);
        w->records += s.count;
        w->c.durable(w->c.owner, &s);
    }
    x->base.under_way = false;
    w->home = true;
    w->other = x->buffer;
    empty(&w->other);
    if (!w->failed) w->c.room(w->c.owner);
}

static wal_file *written_file(const wal *w) {
    wal_file *last = LIST_LAST(&w->kept, wal_file, link);
    return last && last->handle >= 0 ? last : NULL;
}

void wal_flush(wal *w) {
    wal_write *x = &w->write;
    if (x->base.under_way || w->failed || w->stopped || w->filling.sections == 0) return;
    uint32_t bytes = wal_whole_blocks(w->filling.bytes);
    wal_file *f = written_file(w);
    x->leaves = -1;
    if (!f || wal_file_place(f, bytes) + bytes > f->bytes) {
        if (f) {
            x->leaves = f->handle;
            f->handle = -1;
        }
        f = wal_files_next(w);
    }
    x->head = (wal_batch){ .file = f->number,
                           .salt = f->salt,
                           .number = w->next_batch++,
                           .bytes = w->filling.bytes,
                           .sections = w->filling.sections };
    x->thread = w->c.of.thread;
    x->handle = f->handle;
    x->file = f;
    x->at = wal_file_place(f, bytes);
    f->at = x->at + bytes;
    x->buffer = w->filling;
    w->filling = w->other;
    group_commit_goes(&w->group, w->turn_ns, x->buffer.records);
    disk_job_post(&x->base, w->c.disk, w->c.home, w->c.writer, write_on_disk);
}

void wal_turn_ends(wal *w, uint64_t now_ns) {
    bool under_way = w->write.base.under_way;
    w->turn_ns = now_ns;
    if (w->home && !under_way) group_commit_home(&w->group, now_ns, w->filling.records);
    w->home = false;
    if (under_way || w->filling.sections == 0) return;
    if (group_commit_ready(&w->group, now_ns, w->filling.records)) wal_flush(w);
}

/* ---- appending ---- */

enum { OVERHEAD = sizeof(wal_batch) + sizeof(wal_section) };

uint32_t wal_room(const wal *w) {
    if (w->failed || w->stopped || w->full || list_empty(&w->ahead)) return 0;
    if (!w->write.base.under_way) return w->c.buffer_bytes - OVERHEAD; /* one buffer is empty, or can be given away */
    uint32_t left = w->c.buffer_bytes - w->filling.bytes;
    return left > sizeof(wal_section) ? left - (uint32_t)sizeof(wal_section) : 0;
}

/* Whether the records go on where the last section ends: then they need none of their own. */
static bool extend(wal_buffer *b, const wal_section *s) {
    wal_section last;
    if (b->sections == 0 || s->count == 0) return false;
    memcpy(&last, b->base + b->last, sizeof last);
    if (last.count == 0 || last.shard != s->shard || last.copy != s->copy || last.epoch != s->epoch) return false;
    if (last.first + last.count != s->first) return false;
    last.count += s->count;
    last.bytes += s->bytes;
    last.committed = s->committed;
    last.digest = s->digest;
    memcpy(b->base + b->last, &last, sizeof last);
    return true;
}

bool wal_append(wal *w, const wal_section *s, const void *records) {
    fkv_assert(s->first > 0 && (s->count == 0 || s->bytes > 0) && s->bytes <= w->c.buffer_bytes - OVERHEAD);
    uint32_t room = wal_room(w);
    if (room == 0 || s->bytes > room) return false;
    wal_buffer *b = &w->filling;
    if (w->c.buffer_bytes - b->bytes < sizeof *s + s->bytes) wal_flush(w);
    if (!extend(b, s)) {
        b->last = b->bytes;
        b->sections++;
        memcpy(b->base + b->bytes, s, sizeof *s);
        b->bytes += sizeof *s;
    }
    if (s->bytes) memcpy(b->base + b->bytes, records, s->bytes);
    b->bytes += s->bytes;
    b->records += s->count;
    return true;
}

/* ---- life ---- */

/* Files that were set aside are made anew when they are wanted: that costs zeros, and no care for what is in them. */
static bool remove_spares(wal *w, disk_failure *why) {
    disk_names n;
    int e = disk_names_read(&n, w->c.disk);
    if (e != 0) disk_failed(why, "list", "the directory", e);
    for (uint32_t i = 0; e == 0 && i < n.count; i++) {
        if (!wal_is_spare(n.name[i], w->c.of.thread)) continue;
        e = w->c.disk->remove(w->c.disk, n.name[i]);
        if (e != 0) disk_failed(why, "remove", n.name[i], e);
    }
    disk_names_free(&n);
    return e == 0;
}

/* The last batch, and names of files, may be in the page cache alone, if the process ended before they were synced. */
static bool sync_found(wal *w, disk_failure *why) {
    const wal_file *last = LIST_LAST(&w->kept, wal_file, link);
    disk *d = w->c.disk;
    if (last) {
        char name[WAL_NAME_MAX];
        wal_file_name(name, w->c.of.thread, last->number);
        int file = d->open(d, name, DISK_WRITE);
        int e = file < 0 ? file : d->sync(d, file);
        if (e != 0) disk_failed(why, file < 0 ? "open" : "sync", name, e);
        if (file >= 0) d->close(d, file);
        if (e != 0) return false;
    }
    int e = d->sync_directory(d);
    if (e != 0) disk_failed(why, "sync", "the directory", e);
    return e == 0;
}

int wal_open(wal *w, const wal_config *c, wal_found *found, disk_failure *why) {
    fkv_assert(found->verdict == WAL_WHOLE || found->verdict == WAL_TORN);
    fkv_assert(c->buffer_bytes % WAL_BLOCK == 0 && c->buffer_bytes > 0 && c->buffer_bytes <= WAL_BATCH_MAX);
    fkv_assert(c->file_bytes % WAL_BLOCK == 0 && c->file_bytes >= WAL_FILE_MIN(c->buffer_bytes));
    *w = (wal){ .c = *c, .next_batch = found->batch };
    *why = (disk_failure){ 0 };
    list_init(&w->kept);
    list_init(&w->ahead);
    list_init(&w->spare);
    wal_files_take(w, &found->files);
    w->filling.base = aligned_alloc(WAL_BLOCK, c->buffer_bytes);
    w->other.base = aligned_alloc(WAL_BLOCK, c->buffer_bytes);
    empty(&w->filling);
    empty(&w->other);
    if (!w->filling.base || !w->other.base) disk_failed(why, "memory", "buffers", -ENOMEM);
    if (why->error || !remove_spares(w, why) || !sync_found(w, why)) { /* mutation: log/replayed-unsynced */
        wal_free(w);
        return why->error;
    }
    wal_files_go_on(w, false);
    return 0;
}

void wal_retry(wal *w) {
    if (w->full) wal_files_go_on(w, true);
}

/* The last file with a batch stays, whatever it holds (files.h). */
void wal_trim(wal *w, wal_covered covered, void *arg) {
    w->holds_back = false;
    for (wal_file *f; (f = LIST_FIRST(&w->kept, wal_file, link));) {
        if (!wal_file_covered(f, covered, arg)) break;
        const wal_file *next = LIST_AFTER(&w->kept, f, wal_file, link);
        /* One that is written is covered, too, and nobody asks again unless it is said. */
        w->holds_back = f->handle >= 0 || !next || !next->batched;
        if (w->holds_back) break; /* mutation: log/last-file-given-back */
        list_remove(&f->link);
        list_push(&w->spare, &f->link);
        w->keeps--;
        w->spares++;
    }
    wal_files_go_on(w, false);
}

void wal_may_keep(wal *w, uint64_t bytes) { w->most = (uint32_t)(bytes / w->c.file_bytes) + 1; }
uint64_t wal_kept_bytes(const wal *w) {
    uint64_t bytes = 0;
    for (const fkv_list *l = w->kept.next; l != &w->kept; l = l->next)
        bytes += LIST_OF(l, const wal_file, link)->bytes; /* mutation: log/kept-by-batches */
    return bytes;
}
void wal_oldest(const wal *w, void (*each)(void *arg, const wal_reach *r), void *arg) {
    const wal_file *f = LIST_FIRST(&w->kept, wal_file, link);
    for (uint32_t i = 0; f && i < f->places; i++)
        if (f->reach[i].end) each(arg, &f->reach[i]);
}

void wal_stop(wal *w) { w->stopped = true; }

static void close_files(wal *w, fkv_list *files) {
    for (fkv_list *l = files->next; l != files; l = l->next) {
        int handle = LIST_OF(l, wal_file, link)->handle;
        if (handle >= 0) w->c.disk->close(w->c.disk, handle);
    }
    wal_files_free(files);
}
void wal_free(wal *w) {
    fkv_assert(!w->write.base.under_way && !w->make.base.under_way);
    close_files(w, &w->kept);
    close_files(w, &w->ahead);
    wal_files_free(&w->spare);
    free(w->filling.base);
    free(w->other.base);
}
