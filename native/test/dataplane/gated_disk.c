/* gated_disk.c: see gated_disk.h. */
#include "gated_disk.h"
#include <errno.h>
#include <string.h>
#include "../../base/list.h"

static gated_disk *enter(disk *t) {
    gated_disk *d = LIST_OF(t, gated_disk, table);
    pthread_mutex_lock(&d->lock);
    return d;
}
static int leave(gated_disk *d, int result) {
    pthread_mutex_unlock(&d->lock);
    return result;
}

static int gated_open(disk *t, const char *name, disk_mode mode) {
    gated_disk *d = enter(t);
    bool refused = d->refused && mode == DISK_CREATE && strncmp(name, d->refused, strlen(d->refused)) == 0;
    if (refused) return leave(d, -ENOSPC);
    return leave(d, d->under.table.open(&d->under.table, name, mode));
}
static void gated_close(disk *t, int file) {
    gated_disk *d = enter(t);
    d->under.table.close(&d->under.table, file);
    leave(d, 0);
}
static int gated_size(disk *t, int file, uint64_t *bytes) {
    gated_disk *d = enter(t);
    return leave(d, d->under.table.size(&d->under.table, file, bytes));
}
static int gated_read(disk *t, int file, uint64_t at, void *to, uint32_t bytes) {
    gated_disk *d = enter(t);
    return leave(d, d->under.table.read(&d->under.table, file, at, to, bytes));
}
static int gated_write(disk *t, int file, uint64_t at, const void *from, uint32_t bytes) {
    gated_disk *d = enter(t);
    return leave(d, d->under.table.write(&d->under.table, file, at, from, bytes));
}
static int gated_sync(disk *t, int file) {
    gated_disk *d = enter(t);
    d->waiting++;
    while (d->holds && d->passes == 0) pthread_cond_wait(&d->cond, &d->lock);
    d->passes -= d->holds;
    d->waiting--;
    return leave(d, d->under.table.sync(&d->under.table, file));
}
static int gated_rename(disk *t, const char *from, const char *to) {
    gated_disk *d = enter(t);
    return leave(d, d->under.table.rename(&d->under.table, from, to));
}
static int gated_remove(disk *t, const char *name) {
    gated_disk *d = enter(t);
    return leave(d, d->under.table.remove(&d->under.table, name));
}
static int gated_sync_directory(disk *t) {
    gated_disk *d = enter(t);
    int e = d->directory;
    d->directory = 0;
    return leave(d, e != 0 ? e : d->under.table.sync_directory(&d->under.table));
}
static int gated_list(disk *t, void (*each)(void *arg, const char *name), void *arg) {
    gated_disk *d = enter(t);
    return leave(d, d->under.table.list(&d->under.table, each, arg));
}

void gated_disk_init(gated_disk *d, uint64_t seed) {
    *d = (gated_disk){ .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
    memory_disk_init(&d->under, seed, 4096);
    d->table = (disk){ .open = gated_open,
                       .close = gated_close,
                       .size = gated_size,
                       .read = gated_read,
                       .write = gated_write,
                       .sync = gated_sync,
                       .rename = gated_rename,
                       .remove = gated_remove,
                       .sync_directory = gated_sync_directory,
                       .list = gated_list };
}
void gated_disk_free(gated_disk *d) { memory_disk_free(&d->under); }

void gated_disk_hold(gated_disk *d, bool holds) {
    enter(&d->table);
    d->holds = holds;
    d->passes = 0;
    pthread_cond_broadcast(&d->cond);
    leave(d, 0);
}
void gated_disk_pass(gated_disk *d) {
    enter(&d->table);
    d->passes = 1;
    pthread_cond_broadcast(&d->cond);
    leave(d, 0);
}
uint32_t gated_disk_waiting(gated_disk *d) {
    enter(&d->table);
    return (uint32_t)leave(d, (int)d->waiting);
}
void gated_disk_off(gated_disk *d) {
    enter(&d->table);
    d->under.off = true;
    d->holds = false;
    pthread_cond_broadcast(&d->cond);
    leave(d, 0);
}
void gated_disk_on(gated_disk *d) { memory_disk_on(&d->under); }
void gated_disk_fill(gated_disk *d, bool full) {
    enter(&d->table);
    d->under.full_from = full ? 1 : 0;
    leave(d, 0);
}
void gated_disk_refuse(gated_disk *d, const char *beginning) {
    enter(&d->table);
    d->refused = beginning;
    leave(d, 0);
}
void gated_disk_fail_directory(gated_disk *d, int error) {
    enter(&d->table);
    d->directory = error;
    leave(d, 0);
}
void gated_disk_fail(gated_disk *d, int error) {
    enter(&d->table);
    d->under.fail_at = d->under.operations + 1;
    d->under.fail_with = error;
    leave(d, 0);
}
