/* log_rig.c: see log_rig.h. */
#include "log_rig.h"
#include <stdlib.h>
#include <string.h>
#include "../check.h"

const wal_identity rig_identity = { .cluster = "a cluster of one", .instance = 0x1234567890abcdef, .thread = 2 };

enum { RECORD_MAX = 3000 };
/* What a record of the tests looks like; then bytes that its id determines. */
typedef struct record {
    uint64_t id;
    uint32_t bytes, shard;
} record;

static uint8_t filler(uint64_t id, uint32_t i) { return (uint8_t)((id * 31 + i) * 0x9e3779b1u >> 24); }
static uint64_t digest_of(uint64_t committed) { return committed * 0x9e3779b97f4a7c15u; }

/* ---- the truth ---- */

static void add_item(rig *r, uint32_t shard, uint64_t lsn, uint64_t id) {
    CHECK(r->count < RIG_ITEMS);
    r->items[r->count++] = (rig_item){ .shard = shard, .epoch = r->shards[shard].epoch, .lsn = lsn, .id = id };
}
static bool is_covered(const rig *r, const rig_item *i) {
    const rig_shard *s = &r->shards[i->shard];
    return (i->id ? i->lsn : i->lsn - 1) <= s->snapshot && i->epoch <= s->snapshot_epoch;
}
static bool reach_is_covered(void *arg, const wal_reach *reach) {
    const rig_shard *s = &((const rig *)arg)->shards[reach->shard];
    CHECK_EQ(reach->copy, reach->shard + 100);
    return reach->end - 1 <= s->snapshot && reach->epoch <= s->snapshot_epoch;
}

static void on_durable(void *owner, const wal_section *s) {
    rig *r = owner;
    rig_shard *shard = &r->shards[s->shard];
    CHECK_EQ(r->failures, 0);
    for (uint32_t i = 0; i == 0 || i < s->count; i++) {
        CHECK(r->durable < r->count);
        const rig_item *item = &r->items[r->durable++];
        CHECK(item->shard == s->shard && item->epoch == s->epoch && item->lsn == s->first + i);
        CHECK_EQ(item->id == 0, s->count == 0);
    }
    shard->durable_epoch = s->epoch;
    shard->durable_next = s->first + s->count;
}
static void on_room(void *owner) { (void)owner; }
static void on_failed(void *owner, const disk_failure *f) {
    rig *r = owner;
    r->failures++;
    r->failure = *f;
}

/* ---- replay ---- */

static void replayed_item(rig *r, const wal_section *s, uint64_t lsn, uint64_t id) {
    if (!r->replayed) {
        while (r->from < r->count) {
            const rig_item *i = &r->items[r->from];
            if (i->shard == s->shard && i->epoch == s->epoch && i->lsn == lsn && i->id == id) break;
            r->from++;
        }
        r->to = r->from;
        r->replayed = true;
    }
    CHECK(r->to < r->count); /* else it was never appended */
    const rig_item *i = &r->items[r->to++];
    CHECK(i->shard == s->shard && i->epoch == s->epoch && i->lsn == lsn && i->id == id);
}
static bool on_section(void *arg, const wal_section *s, const uint8_t *records) {
    rig *r = arg;
    CHECK(s->shard < RIG_SHARDS && s->copy == s->shard + 100);
    CHECK_EQ(s->digest, digest_of(s->committed));
    if (s->count == 0) replayed_item(r, s, s->first, 0);
    uint32_t at = 0;
    for (uint32_t n = 0; n < s->count; n++) {
        record head;
        CHECK(s->bytes - at >= sizeof head);
        memcpy(&head, records + at, sizeof head);
        CHECK(head.shard == s->shard && head.bytes >= sizeof head && head.bytes <= s->bytes - at);
        for (uint32_t i = sizeof head; i < head.bytes; i++) CHECK_EQ(records[at + i], filler(head.id, i));
        at += head.bytes;
        replayed_item(r, s, s->first + n, head.id);
    }
    CHECK_EQ(at, s->bytes);
    return true;
}

void rig_replay(rig *r) {
    r->from = r->to = 0;
    r->replayed = false;
    wal_replay(&r->disk.table, &rig_identity, on_section, r, &r->found);
}

/* What survived is what there is from now on. */
static void take_over(rig *r) {
    r->count = r->to - r->from;
    r->durable = r->count;
    memmove(r->items, r->items + r->from, r->count * sizeof *r->items);
    for (uint32_t i = 0; i < RIG_SHARDS; i++) {
        rig_shard *s = &r->shards[i];
        s->epoch = s->snapshot_epoch;
        s->next = s->snapshot + 1;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        rig_shard *s = &r->shards[r->items[i].shard];
        s->epoch = r->items[i].epoch;
        s->next = r->items[i].lsn + (r->items[i].id != 0);
    }
    for (uint32_t i = 0; i < RIG_SHARDS; i++) {
        r->shards[i].durable_epoch = r->shards[i].epoch;
        r->shards[i].durable_next = r->shards[i].next;
    }
}

bool rig_recover(rig *r) {
    rig_replay(r);
    if (r->disk.off) {
        wal_files_free(&r->found.files);
        return false;
    }
    if (r->found.verdict > WAL_TORN) {
        char text[200];
        wal_found_text(&r->found, text, sizeof text);
        check_failed(__FILE__, __LINE__, text);
    }
    for (uint32_t i = 0; i < r->durable; i++)
        CHECK((r->replayed && i >= r->from && i < r->to) || is_covered(r, &r->items[i]));
    disk_failure why;
    int e = wal_open(&r->log, &r->config, &r->found, &why);
    CHECK(e == 0 || why.error == e);
    r->failures = e != 0;
    if (e != 0) return false;
    take_over(r);
    r->open = true;
    return true;
}

static void up(rig *r) {
    CHECK_EQ(mailbox_open(&r->home), 0);
    CHECK_EQ(helper_open(&r->writer, "writer"), 0);
    CHECK_EQ(helper_open(&r->maker, "maker"), 0);
}
static void down(rig *r) {
    helper_free(&r->writer);
    helper_free(&r->maker);
    mailbox_close(&r->home);
}

void rig_end(rig *r, bool power) {
    if (r->open) {
        bool off = r->disk.off;
        wal_stop(&r->log);
        r->disk.off = true; /* what the helpers would do now does not happen */
        r->log.failed = true;
        helper_drain(&r->writer);
        helper_drain(&r->maker);
        mailbox_run(&r->home);
        r->disk.off = off;
        wal_free(&r->log);
        r->open = false;
    }
    r->failures = 0;
    power ? memory_disk_on(&r->disk) : memory_disk_kill(&r->disk);
    r->cuts += power;
}

void rig_init(rig *r, uint64_t seed, uint32_t sector) {
    memset(r, 0, sizeof *r);
    memory_disk_init(&r->disk, seed, sector);
    up(r);
    r->config = (wal_config){ .disk = &r->disk.table,
                              .of = rig_identity,
                              .file_bytes = RIG_FILE,
                              .buffer_bytes = RIG_BUFFER,
                              .writer = &r->writer,
                              .maker = &r->maker,
                              .home = &r->home,
                              .owner = r,
                              .durable = on_durable,
                              .room = on_room,
                              .failed = on_failed };
    for (int i = 0; i < RIG_SHARDS; i++) r->shards[i] = (rig_shard){ .next = 1, .durable_next = 1 };
}
void rig_free(rig *r) {
    rig_end(r, false);
    down(r);
    memory_disk_free(&r->disk);
}

/* ---- steps ---- */

bool rig_append(rig *r, uint32_t shard, uint32_t records, uint32_t bytes) {
    static uint8_t all[RIG_BUFFER];
    rig_shard *s = &r->shards[shard];
    CHECK(bytes >= sizeof(record) && records * bytes <= sizeof all);
    uint64_t committed = s->next - 1;
    wal_section section = { .shard = shard,
                            .epoch = s->epoch,
                            .copy = shard + 100,
                            .first = s->next,
                            .committed = committed,
                            .digest = digest_of(committed),
                            .count = records,
                            .bytes = records * bytes };
    for (uint32_t n = 0; n < records; n++) {
        record head = { .id = r->last_id + 1 + n, .bytes = bytes, .shard = shard };
        memcpy(all + n * bytes, &head, sizeof head);
        for (uint32_t i = sizeof head; i < bytes; i++) all[n * bytes + i] = filler(head.id, i);
    }
    uint32_t room = wal_room(&r->log);
    bool done = wal_append(&r->log, &section, all);
    CHECK_EQ(done, room > 0 && section.bytes <= room);
    for (uint32_t n = 0; done && n < records; n++) add_item(r, shard, s->next++, ++r->last_id);
    return done;
}

bool rig_begin_epoch(rig *r, uint32_t shard, uint32_t cut_off) {
    rig_shard *s = &r->shards[shard];
    uint64_t first = s->next - s->snapshot > cut_off ? s->next - cut_off : s->snapshot + 1;
    wal_section section = { .shard = shard, .epoch = s->epoch + 1, .copy = shard + 100, .first = first };
    if (!wal_append(&r->log, &section, NULL)) return false;
    s->epoch++;
    s->next = first;
    add_item(r, shard, first, 0);
    return true;
}

void rig_snapshot(rig *r, uint32_t shard) {
    rig_shard *s = &r->shards[shard];
    if (s->durable_epoch == s->epoch) { /* else a part of what is durable may be cut off, so it is not committed */
        s->snapshot = s->durable_next - 1;
        s->snapshot_epoch = s->durable_epoch;
    }
    wal_trim(&r->log, reach_is_covered, r);
}

void rig_settle(rig *r) {
    do wal_flush(&r->log);
    while (helper_drain(&r->writer) + helper_drain(&r->maker) + mailbox_run(&r->home) > 0);
}

void rig_random_steps(rig *r, int steps) {
    for (int i = 0; i < steps && !r->disk.off && r->failures == 0; i++) {
        uint32_t shard = (uint32_t)memory_random(&r->disk, RIG_SHARDS);
        uint32_t records = 1 + (uint32_t)memory_random(&r->disk, 4);
        uint32_t bytes = (uint32_t)sizeof(record) +
                         (uint32_t)memory_random(&r->disk, memory_random(&r->disk, 3) ? 300 : RECORD_MAX - 16);
        switch (memory_random(&r->disk, 12)) {
        case 0: rig_begin_epoch(r, shard, (uint32_t)memory_random(&r->disk, 3)); break;
        case 1: rig_snapshot(r, shard); break;
        case 2:
        case 3: wal_flush(&r->log); break;
        case 4:
        case 5: helper_drain(&r->writer); break;
        case 6: helper_drain(&r->maker); break;
        case 7:
        case 8: mailbox_run(&r->home); break;
        case 9: wal_retry(&r->log); break;
        default: rig_append(r, shard, records, bytes); break;
        }
    }
}

void rig_filled(rig *r, uint64_t seed, int files) {
    rig_init(r, seed, 4096);
    CHECK(rig_recover(r));
    rig_settle(r);
    CHECK(rig_begin_epoch(r, 0, 0));
    while (files > 0) {
        uint64_t before = r->log.next_file;
        CHECK(rig_append(r, (uint32_t)memory_random(&r->disk, RIG_SHARDS), 2, 1000));
        rig_settle(r);
        files -= r->log.next_file != before;
    }
    CHECK_EQ(r->durable, r->count);
    rig_end(r, true);
}
