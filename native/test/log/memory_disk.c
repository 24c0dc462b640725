/* memory_disk.c: see memory_disk.h. */
#include "memory_disk.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../base/list.h"
#include "../check.h"

static memory_disk *of(disk *d) { return LIST_OF(d, memory_disk, table); }

uint64_t memory_random(memory_disk *d, uint64_t below) {
    uint64_t x = d->random += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % below;
}

/* ---- files ---- */

static memory_file *new_file(memory_disk *d) {
    for (int i = 0; i < MEMORY_FILES; i++)
        if (!d->files[i].used) {
            d->files[i] = (memory_file){ .used = true };
            return &d->files[i];
        }
    CHECK(!"the memory disk has room for another file");
    return NULL;
}
static void drop_unsynced(memory_file *f) {
    while (f->unsynced) {
        memory_write *w = f->unsynced;
        f->unsynced = w->next;
        free(w);
    }
    f->last = NULL;
}
static void free_file(memory_file *f) {
    drop_unsynced(f);
    free(f->bytes);
    *f = (memory_file){ 0 };
}
static void resize(memory_file *f, uint64_t size) {
    if (size > f->room) {
        f->room = size > 2 * f->room ? size : 2 * f->room;
        f->bytes = realloc(f->bytes, f->room);
        CHECK(f->bytes != NULL);
    }
    if (size > f->size) memset(f->bytes + f->size, 0, size - f->size);
    f->size = size;
}
static void put(memory_file *f, uint64_t at, const uint8_t *from, uint32_t bytes) {
    if (at + bytes > f->size) resize(f, at + bytes);
    memcpy(f->bytes + at, from, bytes);
}
static void note_write(memory_file *f, uint64_t at, const void *from, uint32_t bytes) {
    if (bytes == 0) return;
    memory_write *w = malloc(sizeof *w + bytes);
    CHECK(w != NULL);
    w->next = NULL;
    w->at = at;
    w->bytes = bytes;
    memcpy(w->from, from, bytes);
    *(f->last ? &f->last->next : &f->unsynced) = w;
    f->last = w;
    if (f->size_now < at + bytes) f->size_now = at + bytes;
}

/* ---- the directory ---- */

static memory_entry *entry_of(memory_entry *entries, const char *name) {
    for (int i = 0; i < MEMORY_FILES; i++)
        if (entries[i].file && strcmp(entries[i].name, name) == 0) return &entries[i];
    return NULL;
}
static void apply_change(memory_entry *entries, const memory_change *c) {
    memory_entry *e = entry_of(entries, c->removed);
    if (e) e->file = NULL;
    if (!c->file) return;
    e = entry_of(entries, c->added);
    for (int i = 0; !e; i++)
        if (!entries[i].file) e = &entries[i];
    snprintf(e->name, sizeof e->name, "%s", c->added);
    e->file = c->file;
}
static void change_directory(memory_disk *d, const char *removed, const char *added, memory_file *f) {
    CHECK(d->change_count < MEMORY_CHANGES);
    memory_change *c = &d->changes[d->change_count++];
    *c = (memory_change){ .file = f };
    snprintf(c->removed, sizeof c->removed, "%s", removed);
    snprintf(c->added, sizeof c->added, "%s", added);
    apply_change(d->now, c);
}

static bool is_named(const memory_disk *d, const memory_file *f) {
    for (int i = 0; i < MEMORY_FILES; i++)
        if (d->now[i].file == f || d->synced[i].file == f || d->handles[i] == f) return true;
    for (uint32_t i = 0; i < d->change_count; i++)
        if (d->changes[i].file == f) return true;
    return false;
}
static void collect(memory_disk *d) {
    for (int i = 0; i < MEMORY_FILES; i++)
        if (d->files[i].used && !is_named(d, &d->files[i])) free_file(&d->files[i]);
}

/* ---- operations ---- */

/* Counts an operation; what it answers instead of doing what it should. */
static int begin(memory_disk *d) {
    if (d->off) return -EIO;
    d->operations++;
    if (d->operations == d->off_at) {
        d->off = true;
        return -EIO;
    }
    return d->operations == d->fail_at ? d->fail_with : 0;
}
static int take_space(memory_disk *d) {
    d->growths++;
    return d->full_from && d->growths >= d->full_from ? -ENOSPC : 0;
}

static int handle_of(memory_disk *d, memory_file *f) {
    for (int i = 0; i < MEMORY_FILES; i++)
        if (!d->handles[i]) {
            d->handles[i] = f;
            return i;
        }
    return -EMFILE;
}
static int memory_open(disk *t, const char *name, disk_mode mode) {
    memory_disk *d = of(t);
    if (mode == DISK_READ) {
        memory_entry *e = entry_of(d->now, name);
        return d->off ? -EIO : e ? handle_of(d, e->file) : -ENOENT;
    }
    int e = begin(d);
    if (e == 0 && mode == DISK_CREATE) e = take_space(d);
    if (e != 0) return e;
    if (mode == DISK_CREATE) {
        collect(d);
        change_directory(d, name, name, new_file(d));
    }
    memory_entry *entry = entry_of(d->now, name);
    return entry ? handle_of(d, entry->file) : -ENOENT;
}
static void memory_close(disk *t, int file) {
    CHECK(of(t)->handles[file] != NULL);
    of(t)->handles[file] = NULL;
}
static int memory_size(disk *t, int file, uint64_t *bytes) {
    if (of(t)->off) return -EIO;
    *bytes = of(t)->handles[file]->size_now;
    return 0;
}
static int memory_read(disk *t, int file, uint64_t at, void *to, uint32_t bytes) {
    const memory_file *f = of(t)->handles[file];
    if (of(t)->off || of(t)->unreadable) return of(t)->off ? -EIO : of(t)->unreadable;
    CHECK((at | bytes | (uintptr_t)to) % DISK_BLOCK == 0);
    if (at + bytes > f->size_now) return -ENODATA;
    uint64_t there = at >= f->size ? 0 : f->size - at < bytes ? f->size - at : bytes;
    if (there) memcpy(to, f->bytes + at, there);
    memset((uint8_t *)to + there, 0, bytes - there);
    for (const memory_write *w = f->unsynced; w; w = w->next) {
        uint64_t from = w->at > at ? w->at : at, end = w->at + w->bytes < at + bytes ? w->at + w->bytes : at + bytes;
        if (from < end) memcpy((uint8_t *)to + (from - at), w->from + (from - w->at), end - from);
    }
    return 0;
}
static int memory_write_at(disk *t, int file, uint64_t at, const void *from, uint32_t bytes) {
    memory_disk *d = of(t);
    memory_file *f = d->handles[file];
    bool was_on = !d->off;
    CHECK((at | bytes | (uintptr_t)from) % DISK_BLOCK == 0);
    if (f->unreliable) d->used_after_failure = true;
    int e = begin(d);
    if (e == 0 && at + bytes > f->size_now) e = take_space(d);
    if (e != 0) /* how far it came */
        bytes = was_on ? (uint32_t)memory_random(d, bytes / d->sector + 1) * d->sector : 0;
    note_write(f, at, from, bytes);
    return e;
}
static int memory_sync(disk *t, int file) {
    memory_disk *d = of(t);
    memory_file *f = d->handles[file];
    if (f->unreliable) d->used_after_failure = true;
    int e = begin(d);
    if (d->off) return e;
    if (e == 0 && f->size_now > f->size) e = take_space(d);
    if (e != 0) f->unreliable = true;
    for (const memory_write *w = f->unsynced; e == 0 && w; w = w->next) put(f, w->at, w->from, w->bytes);
    drop_unsynced(f);
    return e;
}
static int memory_rename(disk *t, const char *from, const char *to) {
    memory_disk *d = of(t);
    int e = begin(d);
    if (e != 0) return e;
    memory_entry *entry = entry_of(d->now, from);
    if (!entry) return -ENOENT;
    change_directory(d, from, to, entry->file);
    return 0;
}
static int memory_remove(disk *t, const char *name) {
    memory_disk *d = of(t);
    int e = begin(d);
    if (e != 0) return e;
    if (!entry_of(d->now, name)) return -ENOENT;
    change_directory(d, name, "", NULL);
    return 0;
}
static int memory_sync_directory(disk *t) {
    memory_disk *d = of(t);
    int e = begin(d);
    if (e != 0) return e;
    memcpy(d->synced, d->now, sizeof d->synced);
    d->change_count = 0;
    return 0;
}
static int memory_list(disk *t, void (*each)(void *arg, const char *name), void *arg) {
    memory_disk *d = of(t);
    if (d->off) return -EIO;
    each(arg, "."); /* as real ones do */
    for (int i = 0; i < MEMORY_FILES; i++)
        if (d->now[i].file) each(arg, d->now[i].name);
    return 0;
}

/* ---- power ---- */

/* Of the sectors, or changes, since the last sync: none, all, each by chance, all but one, or one. */
typedef struct survival {
    uint32_t kind;
    uint64_t one, count;
} survival;
static survival survival_by_chance(memory_disk *d, uint64_t count) {
    return (survival){ .kind = (uint32_t)memory_random(d, 5), .one = memory_random(d, count ? count : 1) };
}
static bool survives(memory_disk *d, survival *s) {
    uint64_t i = s->count++;
    switch (s->kind) {
    case 0: return false;
    case 1: return true;
    case 2: return memory_random(d, 2) == 0;
    case 3: return i != s->one;
    default: return i == s->one;
    }
}

static void cut_file(memory_disk *d, memory_file *f) {
    uint64_t sectors = 0;
    for (const memory_write *w = f->unsynced; w; w = w->next) sectors += (w->bytes + d->sector - 1) / d->sector;
    survival s = survival_by_chance(d, sectors);
    if (memory_random(d, 2) && f->size_now > f->size) resize(f, f->size_now);
    for (const memory_write *w = f->unsynced; w; w = w->next)
        for (uint32_t at = 0; at < w->bytes; at += d->sector)
            if (survives(d, &s))
                put(f, w->at + at, w->from + at, w->bytes - at < d->sector ? w->bytes - at : d->sector);
    drop_unsynced(f);
    f->size_now = f->size;
}

void memory_disk_kill(memory_disk *d) {
    memset(d->handles, 0, sizeof d->handles);
    for (int i = 0; i < MEMORY_FILES; i++) d->files[i].unreliable = false;
    d->off = false;
    d->off_at = d->fail_at = 0;
    collect(d);
}

void memory_disk_on(memory_disk *d) {
    survival s = survival_by_chance(d, d->change_count);
    for (uint32_t i = 0; i < d->change_count; i++)
        if (survives(d, &s)) apply_change(d->synced, &d->changes[i]);
    memcpy(d->now, d->synced, sizeof d->now);
    d->change_count = 0;
    memory_disk_kill(d);
    for (int i = 0; i < MEMORY_FILES; i++)
        if (d->files[i].used) cut_file(d, &d->files[i]);
}

memory_file *memory_disk_file(memory_disk *d, const char *name) {
    memory_entry *e = entry_of(d->synced, name);
    return e ? e->file : NULL;
}

void memory_disk_init(memory_disk *d, uint64_t seed, uint32_t sector) {
    *d = (memory_disk){ .random = seed, .sector = sector };
    d->table = (disk){ .open = memory_open,
                       .close = memory_close,
                       .size = memory_size,
                       .read = memory_read,
                       .write = memory_write_at,
                       .sync = memory_sync,
                       .rename = memory_rename,
                       .remove = memory_remove,
                       .sync_directory = memory_sync_directory,
                       .list = memory_list };
}
void memory_disk_free(memory_disk *d) {
    for (int i = 0; i < MEMORY_FILES; i++)
        if (d->files[i].used) free_file(&d->files[i]);
}
