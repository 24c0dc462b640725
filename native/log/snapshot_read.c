/* snapshot_read.c: see snapshot_read.h. */
#include "snapshot_read.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "disk_names.h"
#include "window.h"

typedef struct reading {
    window window;
    const wal_identity *of;
    uint32_t shard;
    uint64_t copy;
    const snapshot_reader *to;
    snapshot_found *found;
    snapshot_foot counted;
} reading;

static bool verdict(reading *r, wal_verdict v, uint64_t offset) {
    r->found->verdict = v;
    r->found->offset = offset;
    return false;
}
static bool unreadable(reading *r, uint64_t offset, int error) {
    r->found->error = error;
    return verdict(r, WAL_UNREADABLE, offset);
}
static const uint8_t *bytes_at(reading *r, uint64_t at, uint32_t bytes) {
    const uint8_t *there = window_at(&r->window, r->found->bytes, at, bytes);
    if (!there) unreadable(r, at, r->window.error);
    return there;
}

static bool read_head(reading *r) {
    snapshot_found *f = r->found;
    const wal_identity *of = r->of;
    snapshot_head h;
    int e = r->window.disk->size(r->window.disk, r->window.handle, &f->bytes);
    if (e != 0) return unreadable(r, 0, e);
    if (f->bytes < WAL_BLOCK || f->bytes % WAL_BLOCK != 0) return verdict(r, WAL_DAMAGED, f->bytes);
    const uint8_t *block = bytes_at(r, 0, WAL_BLOCK);
    if (!block) return false;
    if (!snapshot_get_head(block, &h)) return verdict(r, WAL_DAMAGED, 0);
    if (h.format > SNAPSHOT_FORMAT) {
        f->format = h.format;
        return verdict(r, WAL_LATER_FORMAT, 0);
    }
    if (memcmp(h.cluster, of->cluster, sizeof h.cluster) != 0) return verdict(r, WAL_OTHER_CLUSTER, 0);
    if (h.instance != of->instance) return verdict(r, WAL_OTHER_INSTANCE, 0);
    if (h.shard != r->shard || h.copy != r->copy) return verdict(r, WAL_DAMAGED, 0);
    f->head = h;
    snapshot_count_head(&r->counted, h.crc);
    return r->to->head(r->to->arg, &h) || verdict(r, WAL_DAMAGED, 0);
}

/* The foot, as it has to be behind what was read. */
static bool is_foot(reading *r, const snapshot_chunk *c, const uint8_t *items) {
    snapshot_foot *f = &r->found->foot;
    if (c->bytes != sizeof *f || c->count != 1) return false;
    memcpy(f, items, sizeof *f);
    return f->chunks == r->counted.chunks && f->items == r->counted.items && f->bytes == r->counted.bytes &&
           f->crcs == r->counted.crcs;
}

static bool read_chunks(reading *r) {
    uint64_t size = r->found->bytes;
    snapshot_chunk c;
    for (uint64_t at = WAL_BLOCK; at < size; at += snapshot_blocks(&c)) {
        const uint8_t *chunk = bytes_at(r, at, WAL_BLOCK);
        if (!chunk) return false;
        if (!snapshot_begins(chunk, r->counted.chunks + 1, size - at, &c)) return verdict(r, WAL_DAMAGED, at);
        chunk = bytes_at(r, at, snapshot_blocks(&c));
        if (!chunk) return false;
        if (!snapshot_whole(chunk, &c)) return verdict(r, WAL_DAMAGED, at);
        const uint8_t *items = chunk + sizeof c;
        if (c.kind == SNAPSHOT_FOOT) {
            bool last = at + snapshot_blocks(&c) == size;
            return (last && is_foot(r, &c, items)) || verdict(r, WAL_DAMAGED, at);
        }
        if (!r->to->chunk(r->to->arg, &c, items)) return verdict(r, WAL_DAMAGED, at);
        snapshot_count(&r->counted, &c, c.crc);
    }
    return verdict(r, WAL_DAMAGED, size); /* it has no foot */
}

void snapshot_read(disk *d, const wal_identity *of, uint32_t shard, uint64_t copy, const snapshot_reader *to,
                   snapshot_found *found) {
    reading r = { .of = of, .shard = shard, .copy = copy, .to = to, .found = found };
    *found = (snapshot_found){ .verdict = WAL_WHOLE };
    snapshot_name(found->file, shard, copy);
    int e = window_open(&r.window, d, SNAPSHOT_CHUNK_MAX);
    int handle = e == 0 ? d->open(d, found->file, DISK_READ) : e;
    if (handle < 0) {
        unreadable(&r, 0, handle);
    } else {
        window_turn(&r.window, handle);
        if (read_head(&r) && to->chunk) read_chunks(&r);
        window_turn(&r.window, -1);
        d->close(d, handle);
    }
    window_close(&r.window);
}

void snapshot_found_text(const snapshot_found *f, char *to, uint32_t room) {
    wal_found as_log = { .verdict = f->verdict, .offset = f->offset, .format = f->format, .error = f->error };
    memcpy(as_log.file, f->file, sizeof as_log.file);
    if (f->verdict == WAL_WHOLE)
        snprintf(to, room, "%s is whole up to record %llu", f->file, (unsigned long long)f->foot.last);
    else
        wal_found_text(&as_log, to, room);
}

/* ---- of a directory ---- */

int snapshot_list(disk *d, void (*each)(void *arg, uint32_t shard, uint64_t copy), void *arg) {
    disk_names n;
    int e = disk_names_read(&n, d);
    for (uint32_t i = 0; e == 0 && i < n.count; i++) {
        uint32_t shard;
        uint64_t copy;
        switch (snapshot_named(n.name[i], &shard, &copy)) {
        case SNAPSHOT_NO_NAME: break;
        case SNAPSHOT_NAME: each(arg, shard, copy); break;
        case SNAPSHOT_NEW_NAME: e = d->remove(d, n.name[i]); break;
        }
    }
    disk_names_free(&n);
    return e;
}
