/* wal.c: see wal.h. */
#include "wal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "files.h"

/* ---- jobs: out to a helper and home ---- */

void wal_job_post(wal *w, wal_job *j, helper *to, void (*run)(job *)) {
    *j = (wal_job){ .job.run = run, .home = w->c.home, .disk = w->c.disk, .under_way = true };
    helper_post(to, &j->job);
}
void wal_job_home(wal_job *j, void (*run)(job *)) {
    j->job.run = run;
    mailbox_post(j->home, &j->job);
}
static void describe(wal_failure *f, const char *operation, const char *file, int error) {
    *f = (wal_failure){ .operation = operation, .error = error };
    snprintf(f->file, sizeof f->file, "%s", file);
}
bool wal_job_did(wal_job *j, const char *operation, const char *file, int result) {
    if (result != 0) describe(&j->failure, operation, file, result);
    return result == 0;
}

void wal_fail(wal *w, const wal_failure *f) {
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
    int e = d->write(d, x->handle, x->at, x->buffer.base, wal_whole_blocks(x->head.bytes));
    if (wal_job_did(&x->base, "write", name, e)) wal_job_did(&x->base, "sync", name, d->sync(d, x->handle));
    wal_job_home(&x->base, written);
}

/* At home. The batch is under way until the owner has heard of all of it: callbacks may append, but not flush. */
static void written(job *j) {
    wal *w = LIST_OF(j, wal, write.base.job);
    wal_write *x = &w->write;
    if (x->base.failure.error) wal_fail(w, &x->base.failure);
    wal_section s;
    const uint8_t *records;
    uint32_t at = sizeof(wal_batch);
    while (!w->failed && wal_next_section(x->buffer.base, &x->head, &at, &s, &records)) {
        wal_file_note(x->file, &s);
        w->c.durable(w->c.owner, &s);
    }
    x->base.under_way = false;
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
    if (!f || f->bytes - f->at < bytes) {
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
    x->at = f->at;
    f->at += bytes;
    x->buffer = w->filling;
    w->filling = w->other;
    wal_job_post(w, &x->base, w->c.writer, write_on_disk);
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
    return true;
}

/* ---- life ---- */

/* The last batch, and names of files, may be in the page cache alone, if the process ended before they were synced. */
static bool sync_found(wal *w, wal_failure *why) {
    const wal_file *last = LIST_LAST(&w->kept, wal_file, link);
    disk *d = w->c.disk;
    if (last) {
        char name[WAL_NAME_MAX];
        wal_file_name(name, w->c.of.thread, last->number);
        int file = d->open(d, name, DISK_WRITE);
        int e = file < 0 ? file : d->sync(d, file);
        if (e != 0) describe(why, file < 0 ? "open" : "sync", name, e);
        if (file >= 0) d->close(d, file);
        if (e != 0) return false;
    }
    int e = d->sync_directory(d);
    if (e != 0) describe(why, "sync", "the directory", e);
    return e == 0;
}

int wal_open(wal *w, const wal_config *c, wal_found *found, wal_failure *why) {
    fkv_assert(found->verdict == WAL_WHOLE || found->verdict == WAL_TORN);
    fkv_assert(c->buffer_bytes % WAL_BLOCK == 0 && c->buffer_bytes > 0 && c->buffer_bytes <= WAL_BATCH_MAX);
    fkv_assert(c->file_bytes % WAL_BLOCK == 0 && c->file_bytes >= WAL_BLOCK + 2 * c->buffer_bytes);
    *w = (wal){ .c = *c, .next_batch = found->batch };
    *why = (wal_failure){ 0 };
    list_init(&w->kept);
    list_init(&w->ahead);
    list_init(&w->spare);
    wal_files_take(w, &found->files);
    w->filling.base = aligned_alloc(WAL_BLOCK, c->buffer_bytes);
    w->other.base = aligned_alloc(WAL_BLOCK, c->buffer_bytes);
    empty(&w->filling);
    empty(&w->other);
    if (!w->filling.base || !w->other.base) describe(why, "memory", "buffers", -ENOMEM);
    if (why->error || !sync_found(w, why)) {
        wal_free(w);
        return why->error;
    }
    wal_files_go_on(w, false);
    return 0;
}

void wal_retry(wal *w) {
    if (w->full) wal_files_go_on(w, true);
}

void wal_trim(wal *w, wal_covered covered, void *arg) {
    for (wal_file *f; (f = LIST_FIRST(&w->kept, wal_file, link));) {
        if (f->handle >= 0 || !wal_file_covered(f, covered, arg)) break;
        list_remove(&f->link);
        list_push(&w->spare, &f->link);
        w->spares++;
    }
    wal_files_go_on(w, false);
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
