/* recovery.c: see recovery.h. */
#include "recovery.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "../dataplane/command.h"
#include "../dataplane/worker.h"
#include "../log/disk_names.h"
#include "../log/snapshot_read.h"
#include "durable.h"

/* A disk that counts what is read of it: of a worker, which reads one file after the other. */
typedef struct counting_disk {
    disk table;
    disk *of;
    dataplane *d;
    uint64_t unread; /* of the file that is open */
} counting_disk;

enum { CHAINS = 256 };

/* A snapshot that is there. */
typedef struct seen {
    uint32_t shard, worker;
    uint64_t copy;
    char why[RECOVERY_WHY]; /* it cannot be read, so it is not known whose it is */
} seen;

struct recovery {
    counting_disk disk[DATAPLANE_WORKERS_MAX];
    uint64_t bytes, all; /* atomic: that were read, and that will be as far as is known */
    seen *snapshot;
    uint32_t snapshots;
    uint32_t threads; /* that have a log there */
    uint64_t began_ns;
    int error; /* atomic */
    /* Of each worker, by the shard; of those that are not whole, once all was read. */
    fkv_list copies[DATAPLANE_WORKERS_MAX][CHAINS];
    dataplane_recovered *found;
    uint32_t founds;
};

/* ---- progress ---- */

static void fail(recovery *r, int e) {
    if (e != 0) __atomic_store_n(&r->error, e, __ATOMIC_RELAXED);
}

static counting_disk *under(disk *t) { return LIST_OF(t, counting_disk, table); }
static int counting_open(disk *t, const char *name, disk_mode mode) {
    counting_disk *c = under(t);
    c->unread = 0;
    int file = c->of->open(c->of, name, mode);
    if (file >= 0) c->unread = wal_bytes_to_read(c->of, file);
    return file;
}
/* Of the last file that was written less is read than was expected. */
static void counting_close(disk *t, int file) {
    counting_disk *c = under(t);
    uint64_t all = __atomic_load_n(&c->d->recovery->all, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&c->d->recovery->all, min_u64(c->unread, all), __ATOMIC_RELAXED);
    c->of->close(c->of, file);
}
static int counting_size(disk *t, int file, uint64_t *bytes) { return under(t)->of->size(under(t)->of, file, bytes); }
static int counting_read(disk *t, int file, uint64_t at, void *to, uint32_t bytes) {
    counting_disk *c = under(t);
    recovery *r = c->d->recovery;
    const dataplane_log *l = &c->d->c.log;
    uint64_t counts = min_u64(bytes, c->unread); /* what is read ahead, and not wanted, does not */
    c->unread -= counts;
    uint64_t now = __atomic_add_fetch(&r->bytes, counts, __ATOMIC_RELAXED);
    uint64_t all = __atomic_load_n(&r->all, __ATOMIC_RELAXED);
    if (l->on_progress && !l->on_progress(l->ctx, min_u64(now, all), all)) {
        fail(c->d->recovery, -ECANCELED);
        return -ECANCELED;
    }
    return c->of->read(c->of, file, at, to, bytes);
}
static int counting_list(disk *t, void (*each)(void *arg, const char *name), void *arg) {
    return under(t)->of->list(under(t)->of, each, arg);
}

/* ---- what is there ---- */

static bool is_wanted(const dataplane *d, uint32_t shard, uint64_t copy) {
    const dataplane_log *l = &d->c.log;
    return shard < d->c.shards && l->shard_memory_bytes && l->recovers(l->ctx, shard, copy);
}

static bool any_head(void *arg, const snapshot_head *h) {
    *(uint32_t *)arg = h->thread;
    return true;
}

static void found_snapshot(void *arg, uint32_t shard, uint64_t copy) {
    dataplane *d = arg;
    recovery *r = d->recovery;
    if (!is_wanted(d, shard, copy)) {
        char name[WAL_NAME_MAX];
        snapshot_name(name, shard, copy);
        return fail(r, d->c.log.disk->remove(d->c.log.disk, name));
    }
    seen *more = realloc(r->snapshot, (r->snapshots + 1) * sizeof *more);
    if (!more) return fail(r, -ENOMEM);
    r->snapshot = more;
    r->snapshot[r->snapshots++] = (seen){ .shard = shard, .copy = copy };
}

/* A log's file, of any thread. */
static void found_file(dataplane *d, const char *name) {
    recovery *r = d->recovery;
    uint64_t number;
    unsigned long thread = strtoul(name, NULL, 10);
    if (thread >= UINT32_MAX || !wal_file_number(name, (uint32_t)thread, &number)) return;
    if (r->threads <= thread) r->threads = (uint32_t)thread + 1;
    disk *k = d->c.log.disk;
    int file = k->open(k, name, DISK_READ);
    if (file < 0) return; /* replay says so */
    r->all += wal_bytes_to_read(k, file);
    k->close(k, file);
}

static int find_files(dataplane *d) {
    disk_names n;
    int e = snapshot_list(d->c.log.disk, found_snapshot, d);
    if (e == 0) e = d->recovery->error;
    if (e != 0) return e;
    e = disk_names_read(&n, d->c.log.disk);
    for (uint32_t i = 0; e == 0 && i < n.count; i++) found_file(d, n.name[i]);
    disk_names_free(&n);
    return e;
}

static void look_at(dataplane *d, seen *s) {
    recovery *r = d->recovery;
    const wal_identity of = durable_identity(d, 0);
    uint32_t thread = 0;
    snapshot_found f;
    snapshot_read(d->c.log.disk, &of, s->shard, s->copy, &(snapshot_reader){ .head = any_head, .arg = &thread }, &f);
    r->all += f.bytes;
    s->worker = thread < d->c.workers ? thread : 0;
    if (f.verdict != WAL_WHOLE) snapshot_found_text(&f, s->why, sizeof s->why);
}

uint64_t recovery_began_ns(const dataplane *d) { return d->recovery->began_ns; }

int recovery_find(dataplane *d, char *why, size_t room) {
    recovery *r = d->recovery = calloc(1, sizeof *r);
    if (!r) return -ENOMEM;
    const disk counts = { .open = counting_open,
                          .close = counting_close,
                          .size = counting_size,
                          .read = counting_read,
                          .list = counting_list };
    for (uint32_t i = 0; i < d->c.workers; i++)
        r->disk[i] = (counting_disk){ .table = counts, .of = d->c.log.disk, .d = d };
    r->began_ns = fkv_now_ns();
    for (uint32_t i = 0; i < d->c.workers * CHAINS; i++) list_init(&r->copies[i / CHAINS][i % CHAINS]);
    int e = find_files(d);
    if (e != 0) snprintf(why, room, "what is in the directory of logs cannot be listed, or removed: %s", strerror(-e));
    if (e == 0 && r->threads > d->c.workers) {
        snprintf(why, room, "there is the log of thread %u, and %u threads: start with %u of them", r->threads - 1,
                 d->c.workers, r->threads);
        e = -EINVAL;
    }
    for (uint32_t i = 0; e == 0 && i < r->snapshots; i++) look_at(d, &r->snapshot[i]);
    return e;
}

/* ---- read ---- */

static fkv_list *chain_of(const worker *w, uint32_t number) {
    return &w->d->recovery->copies[w->number][number % CHAINS];
}
static recovered_copy *find(const worker *w, uint32_t number, uint64_t id) {
    const fkv_list *copies = chain_of(w, number);
    for (fkv_list *l = copies->next; l != copies; l = l->next) {
        recovered_copy *c = LIST_OF(l, recovered_copy, link);
        if (c->number == number && c->id == id) return c;
    }
    return NULL;
}
/* NULL: no memory. */
static recovered_copy *add(worker *w, uint32_t number, uint64_t id) {
    recovery *r = w->d->recovery;
    recovered_copy *c = recover_new(w, number, id);
    if (c)
        list_push(chain_of(w, number), &c->link);
    else
        fail(r, -ENOMEM);
    for (uint32_t i = 0; c && i < r->snapshots; i++) {
        const seen *s = &r->snapshot[i];
        if (s->why[0] && s->shard == number && s->copy == id) recover_fails(c, "%s", s->why);
    }
    return c;
}
/* NULL: it is not wanted, or there is no memory. */
static recovered_copy *copy_of(worker *w, uint32_t number, uint64_t id) {
    recovered_copy *c = find(w, number, id);
    return c || !is_wanted(w->d, number, id) ? c : add(w, number, id);
}

static bool take_head(void *arg, const snapshot_head *h) { return recover_head(arg, h); }
static bool take_chunk(void *arg, const snapshot_chunk *k, const uint8_t *items) {
    return recover_chunk(arg, k, items);
}

static void read_snapshot(worker *w, const wal_identity *of, const seen *s) {
    snapshot_found f;
    recovered_copy *c = copy_of(w, s->shard, s->copy);
    if (!c) return;
    const snapshot_reader to = { .head = take_head, .chunk = take_chunk, .arg = c };
    snapshot_read(&w->d->recovery->disk[w->number].table, of, s->shard, s->copy, &to, &f);
    if (f.verdict == WAL_WHOLE) return recover_foot(c, &f.foot);
    char text[RECOVERY_WHY];
    snapshot_found_text(&f, text, sizeof text);
    recover_fails(c, "%s", text);
}

/* Sections that are none of a copy are no reason to stop: it is reported. */
static bool take_section(void *arg, const wal_section *x, const uint8_t *records) {
    worker *w = arg;
    recovered_copy *c = copy_of(w, x->shard, x->copy);
    if (c) recover_section(c, x, records);
    return true;
}

static void each_copy(dataplane *d, uint32_t worker, void (*f)(dataplane *d, recovered_copy *c)) {
    for (uint32_t i = 0; i < CHAINS; i++) {
        fkv_list *copies = &d->recovery->copies[worker][i];
        for (fkv_list *l = copies->next, *next; l != copies; l = next) {
            next = l->next;
            f(d, LIST_OF(l, recovered_copy, link));
        }
    }
}

static void end(dataplane *d, recovered_copy *c) {
    (void)d;
    recover_end(c);
}

/* Before a snapshot is made its epoch has begun in the log, and some file of a log that has begun always has a batch
 * (log/files.h). So snapshots beside a new log are what is left of one that was lost. */
void recovery_read(worker *w, const wal_identity *of, wal_found *found) {
    recovery *r = w->d->recovery;
    uint32_t snapshots = 0;
    for (uint32_t i = 0; i < r->snapshots; i++) {
        if (r->snapshot[i].worker != w->number || r->snapshot[i].why[0]) continue;
        read_snapshot(w, of, &r->snapshot[i]);
        snapshots++;
    }
    wal_replay(&r->disk[w->number].table, of, take_section, w, found);
    if (found->verdict <= WAL_TORN && found->batch == 1 && snapshots > 0) { /* mutation: snapshots/without-log */
        found->verdict = WAL_FILE_MISSING;
        wal_file_name(found->file, of->thread, 1);
    }
    each_copy(w->d, w->number, end);
}

/* ---- told ---- */

/* Of snapshots that cannot be read: copies of which no log has anything, either. */
static void find_others(dataplane *d) {
    const recovery *r = d->recovery;
    for (uint32_t i = 0; i < r->snapshots; i++) {
        const seen *s = &r->snapshot[i];
        bool found = !s->why[0];
        for (uint32_t w = 0; w < d->c.workers && !found; w++) found = find(d->worker[w], s->shard, s->copy);
        if (!found) add(d->worker[0], s->shard, s->copy);
    }
}

static void count(dataplane *d, recovered_copy *c) {
    (void)c;
    d->recovery->founds++;
}
static void describe(dataplane *d, recovered_copy *c) {
    dataplane_recovered *to = &d->recovery->found[d->recovery->founds++];
    *to = (dataplane_recovered){ .shard = c->number, .worker = c->w->number, .id = c->id, .whole = !c->why[0] };
    memcpy(to->why, c->why, sizeof to->why);
    if (!c->s) return;
    const replica_backup *p = &c->s->repl.copy->place;
    to->epoch = p->epoch;
    to->prepared = p->prepared;
    to->committed = p->committed;
    list_remove(&c->link);
    recover_free(c);
}

int recovery_ends(dataplane *d) {
    recovery *r = d->recovery;
    if (r->error != 0) return r->error;
    find_others(d);
    for (uint32_t i = 0; i < d->c.workers; i++) each_copy(d, i, count);
    if (r->error == 0) r->found = calloc(r->founds + 1, sizeof *r->found);
    r->founds = 0;
    for (uint32_t i = 0; r->found && i < d->c.workers; i++) each_copy(d, i, describe);
    return r->error != 0 ? r->error : r->found ? 0 : -ENOMEM;
}

static void free_copy(dataplane *d, recovered_copy *c) {
    (void)d;
    list_remove(&c->link);
    recover_free(c);
}

void recovery_free(dataplane *d) {
    recovery *r = d->recovery;
    if (!r) return;
    for (uint32_t i = 0; i < d->c.workers; i++) each_copy(d, i, free_copy);
    free(r->snapshot);
    free(r->found);
    free(r);
    d->recovery = NULL;
}

const dataplane_recovered *dataplane_get_recovered(const dataplane *d, uint32_t *count) {
    *count = d->recovery ? d->recovery->founds : 0;
    return d->recovery ? d->recovery->found : NULL;
}

int recovery_worker(const dataplane *d, uint32_t number, uint64_t id) {
    const recovery *r = d->recovery;
    for (uint32_t i = 0; r && i < r->founds; i++)
        if (r->found[i].shard == number && r->found[i].id == id && !r->found[i].whole) return (int)r->found[i].worker;
    return -1;
}

/* ---- of those that are not whole ---- */

bool recovery_keeps(const worker *w, uint32_t number, uint64_t id) { return find(w, number, id) != NULL; }

void recovery_discard(job *j) {
    command *c = (command *)j;
    worker *w = c->w;
    recovered_copy *k = w->stopping ? NULL : find(w, c->number, c->copy);
    if (k) {
        list_remove(&k->link);
        recover_free(k);
        snapshot_remove(&w->repl.log->snapshots.writer, c->number, c->copy);
        w->repl.log->snapshots.trims = true;
    }
    command_done(c, k ? FKV_OK : w->stopping ? FKV_CLOSED : FKV_NOT_FOUND, NULL);
}
