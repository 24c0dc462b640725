/* snapshot_rig.c: see snapshot_rig.h. */
#include "snapshot_rig.h"
#include <errno.h>
#include <string.h>
#include "../../base/list.h"
#include "../check.h"

const wal_identity snap_identity = { .cluster = "a cluster of one", .instance = 0x1234567890abcdef, .thread = 2 };

static uint64_t copy_id(uint32_t copy) { return 0xabc0000000000000u + copy; }

/* ---- items ---- */

/* Of item i of snapshot n: three kinds, in rows; sizes up to a whole chunk. */
static uint32_t kind_of(uint64_t n, uint32_t i) { return 1 + (uint32_t)(n + i / 5) % 3; }
static uint32_t bytes_of(uint64_t n, uint32_t i) {
    uint32_t x = (uint32_t)((n * 977 + i) * 0x9e3779b1u >> 8);
    if (x % 11 == 0) return SNAP_CHUNK - (uint32_t)sizeof(snapshot_chunk);
    return x % 7 == 0 ? 0 : x % 3000;
}
static uint8_t filler(uint64_t n, uint32_t i, uint32_t at) {
    return (uint8_t)((n * 131 + i * 31 + at) * 0x9e3779b1u >> 24);
}
static snapshot_foot foot_of(uint64_t n) {
    return (snapshot_foot){ .last = n + 5, .digest = n * 0x9e3779b97f4a7c15u, .doubt_ms = (uint32_t)n * 3 };
}

/* ---- written ---- */

static void on_room(void *owner) { ((snap_rig *)owner)->rooms++; }

static void on_ended(void *owner, snapshot_outcome o, const disk_failure *f) {
    snap_rig *r = owner;
    snap_copy *c = &r->copies[r->copy];
    r->ended++;
    r->outcome = o;
    r->failure = *f;
    CHECK((f->error != 0) == (o > SNAPSHOT_DROPPED));
    if (o == SNAPSHOT_DONE) *c = (snap_copy){ .done = c->under_way };
    if (o != SNAPSHOT_UNCERTAIN) c->under_way = 0;
}

void snap_begin(snap_rig *r, uint32_t copy) {
    snapshot_head h = {
        .copy = copy_id(copy), .shard = copy, .epoch = 7, .committed = ++r->last, .buckets = (uint32_t)r->last * 2
    };
    r->copy = copy;
    r->put = 0;
    r->copies[copy].under_way = r->last;
    snapshot_begin(&r->w, &h);
}
bool snap_put(snap_rig *r) {
    uint64_t n = r->copies[r->copy].under_way;
    if (r->put == SNAP_ITEMS) return false;
    uint32_t bytes = bytes_of(n, r->put);
    uint8_t *to = snapshot_put(&r->w, kind_of(n, r->put), bytes, r->now_ns);
    if (!to) return false;
    for (uint32_t i = 0; i < bytes; i++) to[i] = filler(n, r->put, i);
    r->put++;
    return true;
}
void snap_finish(snap_rig *r) {
    snapshot_foot f = foot_of(r->copies[r->copy].under_way);
    CHECK_EQ(r->put, SNAP_ITEMS);
    snapshot_finish(&r->w, &f);
}
void snap_settle(snap_rig *r) {
    while (helper_drain(&r->writer) + mailbox_run(&r->home) > 0) {}
}
void snap_put_all(snap_rig *r, uint32_t copy) {
    snap_begin(r, copy);
    while (r->put < SNAP_ITEMS && r->w.state == SNAPSHOT_WRITES)
        if (!snap_put(r)) snap_settle(r);
    snap_settle(r);
}
uint64_t snap_make(snap_rig *r, uint32_t copy) {
    snap_put_all(r, copy);
    if (r->w.state == SNAPSHOT_WRITES) snap_finish(r);
    snap_settle(r);
    return r->last;
}

void snap_random_steps(snap_rig *r, int steps) {
    for (int i = 0; i < steps && !r->disk.off; i++) {
        bool writes = r->w.state == SNAPSHOT_WRITES;
        switch (memory_random(&r->disk, 10)) {
        case 0:
        case 1: helper_drain(&r->writer); break;
        case 2:
        case 3: mailbox_run(&r->home); break;
        case 4:
            if (memory_random(&r->disk, 12) == 0) snapshot_drop(&r->w);
            break;
        case 5: {
            uint32_t copy = (uint32_t)memory_random(&r->disk, SNAP_COPIES);
            if (memory_random(&r->disk, 12) || r->copies[copy].under_way) break;
            snapshot_remove(&r->w, copy, copy_id(copy));
            r->copies[copy].maybe_removed = true;
            break;
        }
        default:
            if (snapshot_is_idle(&r->w)) snap_begin(r, (uint32_t)memory_random(&r->disk, SNAP_COPIES));
            for (int n = 0; writes && n < 6; n++) snap_put(r);
            if (writes && r->put == SNAP_ITEMS) snap_finish(r);
        }
    }
}

/* ---- read ---- */

typedef struct reading {
    snap_rig *r;
    uint64_t n;
    uint32_t items;
} reading;

static bool take_head(void *arg, const snapshot_head *h) {
    reading *x = arg;
    x->n = h->committed;
    return h->epoch == 7 && h->buckets == h->committed * 2 && h->committed <= x->r->last;
}
/* A chunk that is damaged is never given to the caller. */
static bool take_chunk(void *arg, const snapshot_chunk *c, const uint8_t *items) {
    reading *x = arg;
    uint32_t at = 0;
    for (uint32_t i = 0; i < c->count; i++, x->items++) {
        uint32_t bytes = bytes_of(x->n, x->items);
        CHECK(x->items < SNAP_ITEMS && c->kind == kind_of(x->n, x->items) && bytes <= c->bytes - at);
        for (uint32_t b = 0; b < bytes; b++) CHECK_EQ(items[at + b], filler(x->n, x->items, b));
        at += bytes;
    }
    CHECK_EQ(at, c->bytes);
    return true;
}

void snap_read(snap_rig *r, uint32_t copy, snapshot_found *found) {
    reading x = { .r = r };
    const snapshot_reader to = { .head = take_head, .chunk = take_chunk, .arg = &x };
    snapshot_read(&r->disk.table, &snap_identity, copy, copy_id(copy), &to, found);
    if (found->verdict != WAL_WHOLE) return;
    snapshot_foot f = foot_of(x.n);
    CHECK_EQ(x.items, SNAP_ITEMS);
    CHECK(found->foot.items == SNAP_ITEMS && found->foot.last == f.last && found->foot.digest == f.digest &&
          found->foot.doubt_ms == f.doubt_ms && found->head.committed == x.n);
}

void snap_check(snap_rig *r) {
    for (uint32_t i = 0; i < SNAP_COPIES; i++) {
        snap_copy *c = &r->copies[i];
        snapshot_found found;
        snap_read(r, i, &found);
        if (found.error == -ENOENT) {
            CHECK(c->done == 0 || c->maybe_removed);
            c->done = 0;
        } else {
            CHECK_EQ(found.verdict, WAL_WHOLE);
            uint64_t n = found.head.committed;
            CHECK(n == c->done || n == c->under_way);
            c->done = n;
        }
        c->under_way = 0;
        c->maybe_removed = false;
    }
}

/* ---- life ---- */

static void listed(void *arg, uint32_t shard, uint64_t copy) {
    CHECK(shard < SNAP_COPIES && copy == copy_id(shard));
    *(uint32_t *)arg |= 1u << shard;
}
static void look_for_remains(void *arg, const char *name) {
    (void)arg;
    CHECK(!strstr(name, "new"));
}

bool snap_start(snap_rig *r) {
    disk *d = &r->disk.table;
    uint32_t there = 0;
    /* as wal_open does before anything rests on what was read */
    if (snapshot_list(d, listed, &there) != 0 || d->sync_directory(d) != 0) return false;
    CHECK_EQ(d->list(d, look_for_remains, NULL), 0);
    snap_check(r);
    for (uint32_t i = 0; i < SNAP_COPIES; i++) CHECK_EQ(there >> i & 1, r->copies[i].done != 0);
    CHECK_EQ(helper_open(&r->writer, "writer"), 0);
    CHECK_EQ(mailbox_open(&r->home), 0);
    CHECK_EQ(snapshot_open(&r->w, &r->config), 0);
    r->open = true;
    return true;
}

void snap_end(snap_rig *r, bool power) {
    if (r->open) {
        r->disk.off = true; /* nothing of what is left reaches the disk */
        snapshot_stop(&r->w);
        snap_settle(r);
        snapshot_free(&r->w);
        helper_free(&r->writer);
        mailbox_close(&r->home);
        r->open = false;
    }
    if (power) {
        memory_disk_on(&r->disk);
        r->cuts++;
    } else {
        memory_disk_kill(&r->disk);
    }
}

void snap_init(snap_rig *r, uint64_t seed, uint32_t sector) {
    *r = (snap_rig){ .now_ns = 1 };
    memory_disk_init(&r->disk, seed, sector);
    r->config = (snapshot_config){ .disk = &r->disk.table,
                                   .of = snap_identity,
                                   .chunk_bytes = SNAP_CHUNK,
                                   .writer = &r->writer,
                                   .home = &r->home,
                                   .owner = r,
                                   .room = on_room,
                                   .ended = on_ended };
}
void snap_free(snap_rig *r) {
    if (r->open) snap_end(r, false);
    memory_disk_free(&r->disk);
}
