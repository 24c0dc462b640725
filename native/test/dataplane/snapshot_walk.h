/* snapshot_walk.h: for snapshot_walk_test.c: a table with its truth, a walk over it into a snapshot, and what is read back of
 * that. Includers define take_windows, which is given what the snapshot has of clients. */
#ifndef FARKV_TEST_SNAPSHOT_WALK_H
#define FARKV_TEST_SNAPSHOT_WALK_H
#include "../../base/hash.h"
#include "../../replication/walk.h"
#include "../../dataplane/worker.h"
#include "../../log/snapshot_read.h"
#include "../../table/internal.h"
#include "../log/memory_disk.h"
#include "../table/table_host.h"

enum { KEYS = 24000, FEW = 4000, RECORDS = 1 << 17, LARGE = 12, VALUE_MAX = 300 << 10, CLIENTS = 700 };

static dataplane d;
static worker w;
static shard s;
static host *h;
static memory_disk disk_;
static helper writer;
static mailbox home;
static snapshot_writer to;
static bool done;
static const wal_identity identity = { .cluster = "cluster of tests", .instance = 5 };

static uint32_t any(uint32_t below) { return (uint32_t)memory_random(&disk_, below); }

/* ---- the truth ---- */

typedef struct value {
    uint64_t version;
    uint32_t crc, bytes;
    bool there, damaged;
} value;
typedef struct record {
    uint32_t key;
    value v;
} record;
static value now[KEYS], read_back[KEYS];
static record since[RECORDS];
static uint32_t records, entries, cuts, larges;

static uint8_t bytes_of[VALUE_MAX];

static void change(uint32_t i, bool put, uint32_t bytes) {
    char key[32];
    int n = host_number_key(key, sizeof key, (int)i);
    uint32_t from = any(VALUE_MAX - bytes + 1);
    table_op op = host_op(h, put ? TABLE_PUT : TABLE_DELETE, key, (size_t)n, put ? bytes_of + from : NULL,
                          put ? bytes : 0);
    value v = { .there = put, .bytes = put ? bytes : 0, .crc = put ? fkv_crc32c(0, bytes_of + from, bytes) : 0 };
    fkv_status status = host_do_patiently(h, &op, &v.version);
    if (status == FKV_NOT_FOUND) {
        CHECK(!put && !now[i].there);
        return;
    }
    CHECK_EQ(status, FKV_OK);
    now[i] = v;
    CHECK(records < RECORDS);
    since[records++] = (record){ i, v };
}
static uint32_t any_bytes(uint32_t i) {
    if (i < LARGE) return ITEM_LARGE_BYTES + 1 + any(VALUE_MAX - ITEM_LARGE_BYTES);
    return any(40) == 0 ? any(ITEM_LARGE_BYTES) : any(300);
}

/* ---- read back ---- */

static table_entry large;
static uint32_t large_key, value_at, value_crc;

static uint32_t key_number(const uint8_t *key, uint32_t bytes) {
    char text[32] = { 0 };
    CHECK(bytes < sizeof text);
    memcpy(text, key, bytes);
    uint32_t i = (uint32_t)strtoul(text + 4, NULL, 10);
    CHECK(i < KEYS);
    return i;
}
static void note(uint32_t i, value v) {
    entries++;
    if (read_back[i].version < v.version) read_back[i] = v;
}
static bool take_head(void *arg, const snapshot_head *x) {
    (void)arg;
    return x->shard == 3;
}
static void take_windows(const uint8_t *items, uint32_t bytes);
static bool holds_value(const snapshot_chunk *c) { return c->kind == ITEM_VALUE || c->kind == ITEM_VALUE_DAMAGED; }
static bool take_chunk(void *arg, const snapshot_chunk *c, const uint8_t *items) {
    (void)arg;
    fkv_scan_entry e;
    const uint8_t *key, *bytes;
    uint32_t at = 0;
    CHECK(!large.value_bytes || holds_value(c) || c->kind == ITEM_CUT); /* nothing comes between */
    if (c->kind == ITEM_WINDOWS) take_windows(items, c->bytes);
    if (c->kind == ITEM_ENTRIES || c->kind == ITEM_DAMAGED || c->kind == ITEM_LARGE) {
        while (wire_next_scan_entry(items, c->bytes, &at, &e, &key, &bytes)) {
            CHECK((bytes == NULL) == (c->kind == ITEM_LARGE));
            uint32_t i = key_number(key, e.key_bytes);
            value v = {
                .version = e.version, .there = true, .bytes = e.value_bytes, .damaged = c->kind == ITEM_DAMAGED
            };
            if (bytes) {
                v.crc = fkv_crc32c(0, bytes, e.value_bytes);
                note(i, v);
            } else {
                large = (table_entry){ .version = e.version, .value_bytes = e.value_bytes };
                large_key = i;
                value_at = value_crc = 0;
                larges++;
            }
        }
        CHECK_EQ(at, c->bytes);
    }
    if (holds_value(c)) {
        value_at += c->bytes;
        value_crc = fkv_crc32c(value_crc, items, c->bytes);
        CHECK(c->bytes > 0 && value_at <= large.value_bytes);
        if (value_at == large.value_bytes) {
            note(large_key, (value){ .version = large.version,
                                     .there = true,
                                     .bytes = value_at,
                                     .crc = value_crc,
                                     .damaged = c->kind == ITEM_VALUE_DAMAGED });
            large.value_bytes = 0;
        }
        CHECK(c->kind == ITEM_VALUE || large.value_bytes == 0); /* the last piece */
    }
    if (c->kind == ITEM_CUT) {
        large.value_bytes = 0;
        cuts++;
    }
    return true;
}
static void read_snapshot(void) {
    snapshot_found found;
    const snapshot_reader r = { .head = take_head, .chunk = take_chunk };
    memset(read_back, 0, sizeof read_back);
    entries = 0;
    large.value_bytes = 0;
    snapshot_read(&disk_.table, &identity, 3, 9, &r, &found);
    CHECK_EQ(found.verdict, WAL_WHOLE);
    CHECK_EQ(large.value_bytes, 0);
}
/* As a recovery does. */
static void replay(void) {
    for (uint32_t n = 0; n < records; n++) {
        value *at = &read_back[since[n].key];
        if (!at->there || at->version < since[n].v.version) *at = since[n].v;
    }
}

/* ---- a walk ---- */

static void room(void *owner) { (void)owner; }
static void ended(void *owner, snapshot_outcome o, const disk_failure *f) {
    (void)owner, (void)f;
    CHECK_EQ(o, SNAPSHOT_DONE);
    done = true;
}
static void up(uint64_t seed, uint64_t memory) {
    memory_disk_init(&disk_, seed, 4096);
    h = host_open(memory, 1000000, memory / 2);
    memset(&d, 0, sizeof d);
    memset(&w, 0, sizeof w);
    memset(&s, 0, sizeof s);
    memset(now, 0, sizeof now);
    d.c.hash_seed = h->config.seed;
    w.d = &d;
    s.w = &w;
    s.table = h->t;
    s.number = 3;
    CHECK_EQ(dedup_init(&w.dedup, 64 << 20), 0);
    CHECK_EQ(dedup_open_slot(&w.dedup, 0, false, 1), 0);
    CHECK_EQ(helper_open(&writer, "writer"), 0);
    CHECK_EQ(mailbox_open(&home), 0);
    const snapshot_config c = { .disk = &disk_.table,
                                .of = identity,
                                .chunk_bytes = ITEM_CHUNK_MIN,
                                .writer = &writer,
                                .home = &home,
                                .room = room,
                                .ended = ended };
    CHECK_EQ(snapshot_open(&to, &c), 0);
    for (uint32_t i = 0; i < VALUE_MAX; i++) bytes_of[i] = (uint8_t)any(256);
}
static void down(void) {
    snapshot_free(&to);
    helper_free(&writer);
    mailbox_close(&home);
    dedup_free(&w.dedup);
    host_close(h);
    memory_disk_free(&disk_);
}
/* All of it, with `meanwhile` between two steps; how many there were. */
static walk k;
static uint32_t walk_all(void (*meanwhile)(void)) {
    const snapshot_head head = { .shard = 3, .copy = 9, .committed = 1 };
    const snapshot_foot foot = { .last = 1 };
    uint32_t steps = 0;
    records = 0;
    done = false;
    snapshot_begin(&to, &head);
    walk_begin(&k, &s, &to);
    for (walk_result r; (r = walk_step(&k, h->now_ns)) != WALK_IS_OVER; steps++) {
        CHECK(k.cost < 3 * ITEM_CHUNK_MIN);
        if (r == WALK_WAITS || any(3) == 0) {
            helper_drain(&writer);
            mailbox_run(&home);
        }
        meanwhile();
        CHECK(steps < 100000);
    }
    snapshot_finish(&to, &foot);
    while (!done) {
        helper_drain(&writer);
        mailbox_run(&home);
    }
    read_snapshot();
    replay();
    return steps;
}
static void check_all(void) {
    for (uint32_t i = 0; i < KEYS; i++) {
        CHECK_EQ(read_back[i].there, now[i].there);
        if (now[i].there)
            CHECK(read_back[i].version == now[i].version && read_back[i].crc == now[i].crc &&
                  read_back[i].bytes == now[i].bytes && read_back[i].damaged == now[i].damaged);
    }
}

#endif
