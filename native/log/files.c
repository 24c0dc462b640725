/* files.c: see files.h. */
#include "files.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../base/assert.h"
#include "../base/hash.h"

enum { AHEAD = 2, SPARE = 2, ZEROS = 1 << 16 };

/* ---- on the maker's thread ---- */

static bool write_zeros(wal_make *m, const char *name) {
    static const _Alignas(DISK_BLOCK) uint8_t zeros[ZEROS];
    disk *d = m->base.disk;
    for (uint64_t at = WAL_BLOCK, bytes; at < m->file->bytes; at += bytes) {
        bytes = m->file->bytes - at < ZEROS ? m->file->bytes - at : ZEROS;
        int e = d->write(d, m->file->handle, at, zeros, (uint32_t)bytes);
        if (!disk_job_did(&m->base, "write", name, e)) return false;
    }
    return true;
}

static bool write_head(wal_make *m, const char *name) {
    wal_file *f = m->file;
    disk *d = m->base.disk;
    _Alignas(DISK_BLOCK) uint8_t block[WAL_BLOCK];
    wal_file_head head = {
        .instance = m->of.instance, .number = f->number, .bytes = f->bytes, .thread = m->of.thread, .stride = f->stride
    };
    memcpy(head.cluster, m->of.cluster, sizeof head.cluster);
    while (f->salt == 0) fkv_random(&f->salt, sizeof f->salt);
    head.salt = f->salt;
    wal_put_file_head(block, &head);
    return disk_job_did(&m->base, "write", name, d->write(d, f->handle, 0, block, sizeof block));
}

static bool open_file(wal_make *m, const char *name, disk_mode mode) {
    disk *d = m->base.disk;
    m->file->handle = d->open(d, name, mode);
    return disk_job_did(&m->base, "open", name, m->file->handle < 0 ? m->file->handle : 0);
}
static bool sync_directory(wal_make *m) {
    return disk_job_did(&m->base, "sync", "the directory", m->base.disk->sync_directory(m->base.disk));
}
static bool rename_file(wal_make *m, const char *from, const char *to) {
    return disk_job_did(&m->base, "rename", from, m->base.disk->rename(m->base.disk, from, to));
}

/* The file of that number gets its spare name. */
static bool set_aside(wal_make *m, uint64_t number) {
    char name[WAL_NAME_MAX], spare[WAL_NAME_MAX];
    wal_file_name(name, m->of.thread, number);
    wal_spare_name(spare, m->of.thread, number);
    return rename_file(m, name, spare) && sync_directory(m); /* mutation: log/reuse-unsynced */
}

/* The file under the spare name, synced, then under its own; the directory is not synced yet. */
static bool make_file(wal_make *m, const char *spare) {
    disk *d = m->base.disk;
    char name[WAL_NAME_MAX];
    if (m->source) {
        if ((!m->aside && !set_aside(m, m->source)) || !open_file(m, spare, DISK_WRITE)) return false;
    } else if (!open_file(m, spare, DISK_CREATE) || !write_zeros(m, spare)) {
        return false;
    }
    wal_file_name(name, m->of.thread, m->file->number);
    /* mutation: log/head-unsynced */
    return write_head(m, spare) && disk_job_did(&m->base, "sync", spare, d->sync(d, m->file->handle)) &&
           rename_file(m, spare, name);
}

/* A new file that finds no space counts for nothing yet, so it can be given up. */
static void make_or_give_up(wal_make *m) {
    disk *d = m->base.disk;
    char spare[WAL_NAME_MAX];
    wal_spare_name(spare, m->of.thread, m->source);
    if (make_file(m, spare)) {
        sync_directory(m); /* mutation: log/name-unsynced */
        return;
    }
    int error = m->base.failure.error;
    m->no_space = m->source == 0 && (error == -ENOSPC || error == -EDQUOT);
    if (m->file->handle >= 0) d->close(d, m->file->handle);
    m->file->handle = -1;
    if (m->no_space) d->remove(d, spare); /* the next one would replace it too */
}

static void made(job *j);
static void removed(job *j);
static void was_set_aside(job *j);

static void make_on_disk(job *j) {
    wal_make *m = LIST_OF(j, wal_make, base.job);
    make_or_give_up(m);
    disk_job_home(&m->base, made);
}
static void remove_from_disk(job *j) {
    wal_make *m = LIST_OF(j, wal_make, base.job);
    char name[WAL_NAME_MAX];
    (m->aside ? wal_spare_name : wal_file_name)(name, m->of.thread, m->source);
    if (disk_job_did(&m->base, "remove", name, m->base.disk->remove(m->base.disk, name))) sync_directory(m);
    disk_job_home(&m->base, removed);
}

static void set_aside_on_disk(job *j) {
    wal_make *m = LIST_OF(j, wal_make, base.job);
    set_aside(m, m->file->number);
    disk_job_home(&m->base, was_set_aside);
}

/* ---- on the data-plane thread ---- */

static void made(job *j) {
    wal *w = LIST_OF(j, wal, make.base.job);
    wal_make *m = &w->make;
    m->base.under_way = false;
    if (m->no_space) {
        wal_file_free(m->file);
        w->full = true;
        return wal_files_go_on(w, false); /* out of one that was given back meanwhile */
    }
    list_push(&w->ahead, &m->file->link);
    w->aheads++;
    w->next_file++;
    if (m->base.failure.error) return wal_fail(w, &m->base.failure);
    w->full = false;
    wal_files_go_on(w, false);
    if (!w->failed) w->c.room(w->c.owner);
}
static void removed(job *j) {
    wal *w = LIST_OF(j, wal, make.base.job);
    w->make.base.under_way = false;
    if (w->make.base.failure.error) return wal_fail(w, &w->make.base.failure);
    w->full = false; /* there is space now */
    wal_files_go_on(w, false);
}

static void was_set_aside(job *j) {
    wal *w = LIST_OF(j, wal, make.base.job);
    w->make.base.under_way = false;
    if (w->make.base.failure.error) return wal_fail(w, &w->make.base.failure);
    w->make.file->aside = true;
    wal_files_go_on(w, false);
}

/* From the oldest on, as files are given back. */
static void set_next_aside(wal *w) {
    wal_make *m = &w->make;
    for (fkv_list *l = w->spare.next; l != &w->spare; l = l->next) {
        wal_file *f = LIST_OF(l, wal_file, link);
        if (f->aside) continue;
        m->of = w->c.of;
        m->file = f;
        return disk_job_post(&m->base, w->c.disk, w->c.home, w->c.maker, set_aside_on_disk);
    }
}

static uint32_t spares_most(const wal *w) {
    uint32_t wanted = w->most > w->keeps ? w->most - w->keeps : 0;
    return wanted > SPARE ? wanted : SPARE;
}

void wal_files_go_on(wal *w, bool again) {
    wal_make *m = &w->make;
    if (m->base.under_way || w->failed || w->stopped) return;
    wal_file *s = LIST_FIRST(&w->spare, wal_file, link);
    bool usable = s && s->bytes == w->c.file_bytes &&
                  s->number < w->next_file + AHEAD; /* mutation: log/third-file-anew */
    bool remove = s && (!usable || (w->aheads == AHEAD && w->spares > spares_most(w)));
    if (!remove && (w->aheads == AHEAD || (w->full && !usable && !again))) return set_next_aside(w);
    m->of = w->c.of;
    m->source = s ? s->number : 0;
    m->aside = s && s->aside;
    m->no_space = false;
    m->file = NULL;
    if (!remove && !(m->file = wal_file_new(w->next_file, w->c.file_bytes, WAL_STRIDE(w->c.buffer_bytes)))) {
        w->full = true; /* no memory for it: tried again as without space */
        return;
    }
    if (s) {
        list_remove(&s->link);
        wal_file_free(s);
        w->spares--;
    }
    disk_job_post(&m->base, w->c.disk, w->c.home, w->c.maker, remove ? remove_from_disk : make_on_disk);
}

/* The files without batches stay first among the spare ones: a number that is given again is free by then. Before them
 * come those beyond the two that are made first, the last one first: they are removed, so that at most one file lies
 * behind a name that is free for a moment. */
void wal_files_take(wal *w, fkv_list *found) {
    list_take_all(found, &w->kept);
    w->next_file = 1;
    for (fkv_list *l = w->kept.next; l != &w->kept; l = l->next) {
        const wal_file *f = LIST_OF(l, const wal_file, link);
        if (f->batched) w->next_file = f->number + 1;
    }
    fkv_list *at = &w->spare;
    for (wal_file *f; (f = LIST_LAST(&w->kept, wal_file, link)) && !f->batched; w->spares++) {
        list_remove(&f->link);
        list_insert(at, &f->link);
        if (f->number < w->next_file + AHEAD) at = &f->link; /* mutation: log/third-file-last */
    }
    for (const fkv_list *l = w->kept.next; l != &w->kept; l = l->next) w->keeps++;
}

wal_file *wal_files_next(wal *w) {
    fkv_assert(!list_empty(&w->ahead));
    wal_file *f = LIST_FIRST(&w->ahead, wal_file, link);
    list_remove(&f->link);
    w->aheads--;
    w->keeps++;
    list_push(&w->kept, &f->link);
    wal_files_go_on(w, false);
    return f;
}
