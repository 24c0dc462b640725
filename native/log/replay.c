/* replay.c: see replay.h.
 *
 * Why a torn tail is told from damage: a batch is written when the one before it is synced. So where a good batch of the
 * same life lies behind a bad one, or the next file begins with a later number than the next, the bad one was synced.
 * Of what lies behind the end the stride of that place is read, and the next one where the file has batches; of those
 * that follow the first block, for where anything was written in one a batch begins there; the rest, where it did. */
#include "replay.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "window.h"

typedef struct reader {
    window window;
    const wal_identity *of;
    wal_reader each;
    void *arg;
    wal_found *found;
    const wal_file *before; /* the file before, if it has batches; the log's next batch is expected there or behind */
} reader;

typedef enum { GOOD, BAD, REFUSED } seen;

static bool verdict(reader *r, wal_verdict v, uint64_t number, uint64_t offset) {
    r->found->verdict = v;
    r->found->offset = offset;
    wal_file_name(r->found->file, r->of->thread, number);
    return false;
}
static bool unreadable(reader *r, uint64_t number, uint64_t offset, int error) {
    r->found->error = error;
    return verdict(r, WAL_UNREADABLE, number, offset);
}

/* The bytes at that place; more may be read ahead, up to `end`. NULL: the disk refused. */
static const uint8_t *bytes_at(reader *r, const wal_file *f, uint64_t at, uint32_t bytes, uint64_t end) {
    const uint8_t *there = window_at(&r->window, end, at, bytes);
    if (!there) unreadable(r, f->number, at, r->window.error);
    return there;
}
/* A block of which nothing near by is wanted. */
static const uint8_t *block_at(reader *r, const wal_file *f, uint64_t at) {
    const uint8_t *there = window_block(&r->window, at);
    if (!there) unreadable(r, f->number, at, r->window.error);
    return there;
}

static wal_file_head life_of(const wal_file *f) { return (wal_file_head){ .number = f->number, .salt = f->salt }; }
/* Of the stride in which that place is, as far as the file goes. */
static uint64_t end_of_stride(const wal_file *f, uint64_t at) {
    uint64_t end = wal_file_stride_end(f, at);
    return end < f->bytes ? end : f->bytes;
}

/* Whether there is a whole batch of this life of the file. */
static seen batch_at(reader *r, const wal_file *f, uint64_t at, uint64_t end, wal_batch *head, const uint8_t **batch) {
    const wal_file_head life = life_of(f);
    *batch = bytes_at(r, f, at, WAL_BLOCK, end);
    if (!*batch) return REFUSED;
    if (!wal_begins_batch(*batch, &life, end_of_stride(f, at) - at, head)) return BAD;
    *batch = bytes_at(r, f, at, wal_whole_blocks(head->bytes), end);
    if (!*batch) return REFUSED;
    return wal_batch_whole(*batch, head) ? GOOD : BAD;
}

/* All sections are looked at before the caller gets one. */
static bool deliver(reader *r, wal_file *f, const wal_batch *head, const uint8_t *batch) {
    wal_section s;
    const uint8_t *records;
    uint32_t at = sizeof *head, sections = 0;
    while (wal_next_section(batch, head, &at, &s, &records)) sections++;
    if (at != head->bytes || sections != head->sections) return false;
    for (at = sizeof *head; wal_next_section(batch, head, &at, &s, &records);) {
        if (!r->each(r->arg, &s, records)) return false;
        wal_file_note(f, &s);
    }
    return true;
}

/* The batch is another than the next one. */
static bool gap(reader *r, const wal_file *f, const wal_batch *head) {
    const wal_file *b = r->before;
    if (b == f || head->number < r->found->batch) return verdict(r, WAL_DAMAGED, f->number, f->at);
    if (f->number != b->number + 1) return verdict(r, WAL_DAMAGED, b->number + 1, WAL_BLOCK); /* it has none */
    if (b->at == b->bytes) return verdict(r, WAL_DAMAGED, f->number, f->at);
    /* What looked like a torn tail was none. */
    return verdict(r, WAL_DAMAGED, b->number, r->found->verdict == WAL_TORN ? r->found->offset : b->at);
}

/* The next batch, in f->at, which moves to the next stride where the batch did not fit before it. */
static seen next_batch(reader *r, wal_file *f, wal_batch *head, const uint8_t **batch) {
    seen s = batch_at(r, f, f->at, f->bytes, head, batch);
    uint64_t next = wal_file_stride_end(f, f->at);
    if (s != BAD || r->before != f || next >= f->bytes) return s;
    const wal_file_head life = life_of(f);
    const uint8_t *block = block_at(r, f, next);
    if (!block) return REFUSED;
    if (!wal_begins_batch(block, &life, end_of_stride(f, next) - next, head)) return BAD;
    /* mutation: log/damage-as-stride-end */
    if (head->number != r->found->batch || wal_file_place(f, wal_whole_blocks(head->bytes)) != next) return BAD;
    s = batch_at(r, f, next, f->bytes, head, batch);
    if (s == GOOD) f->at = next;
    return s;
}

/* Whether there is one from `at` to the end of the stride. */
static seen any_batch(reader *r, const wal_file *f, uint64_t at) {
    wal_batch head;
    const uint8_t *batch;
    for (uint64_t end = end_of_stride(f, at - WAL_BLOCK); at < end; at += WAL_BLOCK) {
        seen s = batch_at(r, f, at, end, &head, &batch);
        if (s != BAD) return s;
    }
    return BAD;
}

/* Whether there is one in the strides behind f->at. *bad: where the first remains of one are, unless it is known. The
 * next stride is looked through whatever it begins with: the next batch may have gone there, and its first block be all
 * that is lost. */
static seen any_batch_behind(reader *r, const wal_file *f, uint64_t *bad) {
    const wal_file_head life = life_of(f);
    for (uint64_t at = wal_file_stride_end(f, f->at); at < f->bytes; at += f->stride) {
        wal_batch head;
        const uint8_t *block = block_at(r, f, at);
        if (!block) return REFUSED;
        bool begun = wal_begun_batch(block, &life, 0);
        bool next = r->before == f && at == wal_file_stride_end(f, f->at); /* mutation: log/next-stride-left-out */
        if (!begun && !next) continue;
        seen s = batch_at(r, f, at, end_of_stride(f, at), &head, &block);
        if (s == BAD) {
            if (*bad == 0 && begun) *bad = at;
            s = any_batch(r, f, at + WAL_BLOCK); /* mutation: log/stride-not-looked-through */
        }
        if (s != BAD) return s;
    }
    return BAD;
}

/* What lies at f->at is no batch. False: it was one. */
static bool is_end(reader *r, const wal_file *f) {
    if (f->at >= f->bytes) return true;
    const wal_file_head life = life_of(f);
    const uint8_t *block = bytes_at(r, f, f->at, WAL_BLOCK, end_of_stride(f, f->at));
    if (!block) return false;
    /* The number of the first batch that is there is not known. */
    uint64_t bad = wal_begun_batch(block, &life, r->found->batch) ? f->at : 0;
    seen s = any_batch(r, f, f->at + WAL_BLOCK);
    if (s == BAD) s = any_batch_behind(r, f, &bad);
    if (s == REFUSED) return false;
    /* mutation: log/damage-as-torn-tail */
    if (s == GOOD) return verdict(r, WAL_DAMAGED, f->number, bad ? bad : f->at);
    if (bad) verdict(r, WAL_TORN, f->number, bad);
    return true;
}

static bool read_batches(reader *r, wal_file *f) {
    wal_found *found = r->found;
    wal_batch head;
    const uint8_t *batch;
    seen s = BAD;
    for (; f->at < f->bytes && (s = next_batch(r, f, &head, &batch)) == GOOD; s = BAD) {
        /* Files are written in order: one before it had batches, and lost them all. */
        const wal_file *oldest = LIST_FIRST(&found->files, const wal_file, link);
        /* mutation: log/oldest-without-batches */
        if (!r->before && f != oldest) return verdict(r, WAL_DAMAGED, oldest->number, WAL_BLOCK);
        /* mutation: log/missing-batches */
        if (r->before && head.number != found->batch) return gap(r, f, &head);
        found->verdict = WAL_WHOLE; /* what was torn in a file before was cut off by an earlier start */
        if (!deliver(r, f, &head, batch)) return verdict(r, WAL_DAMAGED, f->number, f->at);
        found->batch = head.number + 1;
        f->at += wal_whole_blocks(head.bytes);
        f->batched = true;
        r->before = f;
    }
    return s != REFUSED && is_end(r, f);
}

static bool read_head(reader *r, wal_file *f) {
    wal_file_head h;
    const wal_identity *of = r->of;
    disk *d = r->window.disk;
    int e = d->size(d, r->window.handle, &f->bytes);
    if (e != 0) return unreadable(r, f->number, 0, e);
    if (f->bytes < WAL_BLOCK) return verdict(r, WAL_DAMAGED, f->number, 0);
    uint64_t size = f->bytes;
    f->bytes = WAL_BLOCK;
    const uint8_t *block = bytes_at(r, f, 0, WAL_BLOCK, f->bytes);
    if (!block) return false;
    if (!wal_get_file_head(block, &h)) return verdict(r, WAL_DAMAGED, f->number, 0);
    if (h.format > WAL_FORMAT) {
        r->found->format = h.format;
        return verdict(r, WAL_LATER_FORMAT, f->number, 0);
    }
    /* mutation: log/another-cluster */
    if (memcmp(h.cluster, of->cluster, sizeof h.cluster) != 0) return verdict(r, WAL_OTHER_CLUSTER, f->number, 0);
    if (h.instance != of->instance) return verdict(r, WAL_OTHER_INSTANCE, f->number, 0);
    if (h.number != f->number || h.thread != of->thread) return verdict(r, WAL_DAMAGED, f->number, 0);
    if (h.bytes != size || size % WAL_BLOCK != 0)
        return verdict(r, WAL_DAMAGED, f->number, size < h.bytes ? size : h.bytes);
    if (h.stride % WAL_BLOCK != 0 || h.stride < 2 * WAL_BLOCK) return verdict(r, WAL_DAMAGED, f->number, 0);
    f->bytes = size;
    f->stride = h.stride;
    f->salt = h.salt;
    return true;
}

static bool read_file(reader *r, wal_file *f) {
    char name[WAL_NAME_MAX];
    wal_file_name(name, r->of->thread, f->number);
    disk *d = r->window.disk;
    int handle = d->open(d, name, DISK_READ);
    if (handle < 0) return unreadable(r, f->number, 0, handle);
    window_turn(&r->window, handle);
    bool all = read_head(r, f) && read_batches(r, f);
    window_turn(&r->window, -1);
    d->close(d, handle);
    return all;
}

static void found_name(void *arg, const char *name) {
    reader *r = arg;
    uint64_t number;
    if (!wal_file_number(name, r->of->thread, &number)) return;
    wal_file *f = wal_file_new(number, 0, 2 * WAL_BLOCK);
    if (!f) {
        r->found->error = -ENOMEM;
        return;
    }
    fkv_list *at = &r->found->files;
    while (at->prev != &r->found->files && LIST_OF(at->prev, wal_file, link)->number > number) at = at->prev;
    list_insert(at, &f->link);
}

/* ---- whether all files are there (files.h) ---- */

static bool missing(reader *r, uint64_t number) { return verdict(r, WAL_FILE_MISSING, number, 0); }

/* One file may lie behind a free number: with batches that do not go on, it is told by those. */
static bool follows(reader *r, const wal_file *p, const wal_file *f) {
    bool last = f->link.next == &r->found->files;
    if (!p || f->number == p->number + 1 || (last && f->number == p->number + 2)) return true;
    return missing(r, p->number + 1);
}

/* No file has a batch, so the log is new, or has lost them all. */
static bool is_new(reader *r) {
    const wal_file *f = LIST_FIRST(&r->found->files, const wal_file, link);
    return !f || f->number == 1 || (f->number == 2 && f->link.next == &r->found->files) || missing(r, f->number - 1);
}

static void read_files(reader *r) {
    wal_found *found = r->found;
    const wal_file *p = NULL;
    for (fkv_list *l = found->files.next; l != &found->files; l = l->next) {
        wal_file *f = LIST_OF(l, wal_file, link);
        if (!follows(r, p, f) || !read_file(r, f)) return; /* mutation: log/file-missing */
        p = f;
    }
    if (found->batch == 1) is_new(r); /* mutation: log/future-files-alone */
}

void wal_replay(disk *d, const wal_identity *of, wal_reader each, void *arg, wal_found *found) {
    *found = (wal_found){ .batch = 1 };
    list_init(&found->files);
    reader r = { .of = of, .each = each, .arg = arg, .found = found };
    int e = window_open(&r.window, d, WAL_BATCH_MAX);
    if (e == 0) e = d->list(d, found_name, &r);
    if (e == 0) e = found->error;
    if (e != 0) {
        found->verdict = WAL_UNREADABLE;
        found->error = e;
    }
    if (e == 0) read_files(&r);
    window_close(&r.window);
}

uint64_t wal_bytes_to_read(disk *d, int file) {
    _Alignas(DISK_BLOCK) uint8_t blocks[2 * WAL_BLOCK];
    uint64_t bytes = 0;
    wal_file_head head;
    if (d->size(d, file, &bytes) != 0) return 0;
    if (bytes < sizeof blocks || d->read(d, file, 0, blocks, sizeof blocks) != 0) return bytes;
    bool written = !wal_get_file_head(blocks, &head) || wal_begun_batch(blocks + WAL_BLOCK, &head, 0);
    return written || head.stride > bytes ? bytes : head.stride;
}

void wal_found_text(const wal_found *f, char *to, uint32_t room) {
    const char *name = f->file[0] ? f->file : "the directory";
    unsigned long long at = f->offset, batch = f->batch;
    switch (f->verdict) {
    case WAL_WHOLE: snprintf(to, room, "the log is whole up to batch %llu", batch - 1); break;
    case WAL_TORN:
        snprintf(to, room, "%s: the last batch, at %llu, was not written to its end and is cut off", name, at);
        break;
    case WAL_DAMAGED: snprintf(to, room, "%s: damaged at %llu", name, at); break;
    case WAL_FILE_MISSING:
        if (batch > 1)
            snprintf(to, room, "%s is missing, with batch %llu and later ones", name, batch);
        else
            snprintf(to, room, "%s is missing, with all that was in the log", name);
        break;
    case WAL_OTHER_CLUSTER: snprintf(to, room, "%s belongs to another cluster", name); break;
    case WAL_OTHER_INSTANCE: snprintf(to, room, "%s belongs to another data directory", name); break;
    case WAL_LATER_FORMAT:
        snprintf(to, room, "%s has format %u, of a later version of farkv: start that one; this one reads up to %u",
                 name, f->format, WAL_FORMAT);
        break;
    case WAL_UNREADABLE: snprintf(to, room, "%s: cannot be read at %llu: %s", name, at, strerror(-f->error)); break;
    }
}
