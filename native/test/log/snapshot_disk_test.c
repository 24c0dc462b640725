/* snapshot_disk_test.c: snapshots on a real disk, with the writer's thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../log/snapshot_read.h"
#include "../../log/snapshot_write.h"
#include "../check.h"

static const wal_identity identity = { .cluster = "on a real disk..", .instance = 7 };

typedef struct live {
    char path[200];
    disk_os disk;
    helper writer;
    mailbox home;
    snapshot_writer w;
    uint32_t ended;
    uint64_t words, names;
} live;
static live l;

static void room(void *owner) { (void)owner; }
static void ended(void *owner, snapshot_outcome o, const disk_failure *f) {
    (void)owner;
    if (o != SNAPSHOT_DONE) fprintf(stderr, "%s of %s: %s\n", f->operation, f->file, strerror(-f->error));
    CHECK_EQ(o, SNAPSHOT_DONE);
    l.ended++;
}

static bool head(void *arg, const snapshot_head *h) {
    (void)arg;
    return h->committed == 5;
}
static bool chunk(void *arg, const snapshot_chunk *c, const uint8_t *items) {
    (void)arg;
    for (uint32_t at = 0; at < c->bytes; at += 8, l.words++) {
        uint64_t word;
        memcpy(&word, items + at, sizeof word);
        CHECK_EQ(word, l.words);
    }
    return true;
}
static void named(void *arg, uint32_t shard, uint64_t copy) {
    (void)arg;
    CHECK(shard == 3 && copy == 99);
    l.names++;
}
static void remove_one(void *arg, const char *name) {
    (void)arg;
    if (name[0] != '.') CHECK_EQ(l.disk.table.remove(&l.disk.table, name), 0);
}

/* Two, so that the second takes the place of the first; items of all sizes up to a chunk. */
static void write_one(uint64_t words) {
    const snapshot_head h = { .shard = 3, .copy = 99, .epoch = 1, .committed = 5 };
    const snapshot_foot f = { .last = 5 };
    uint32_t before = l.ended;
    snapshot_begin(&l.w, &h);
    for (uint64_t word = 0; word < words;) {
        uint32_t n = (uint32_t)(word * 0x9e3779b1u >> 8) % (snapshot_item_max(&l.w) / 8) + 1;
        if (n > words - word) n = (uint32_t)(words - word);
        uint8_t *to;
        while (!(to = snapshot_put(&l.w, 1, n * 8, fkv_now_ns()))) {
            mailbox_sleep(&l.home);
            mailbox_run(&l.home);
        }
        for (uint32_t i = 0; i < n; i++, word++) memcpy(to + i * sizeof word, &word, sizeof word);
    }
    snapshot_finish(&l.w, &f);
    while (l.ended == before) {
        mailbox_sleep(&l.home);
        mailbox_run(&l.home);
    }
}

TEST(a_snapshot_comes_back_from_a_real_disk) {
    const char *tmp = getenv("TMPDIR");
    snprintf(l.path, sizeof l.path, "%s/farkv-snapshot-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(l.path) != NULL);
    CHECK_EQ(disk_os_open(&l.disk, l.path), 0);
    CHECK_EQ(mailbox_open(&l.home), 0);
    CHECK_EQ(helper_start(&l.writer, "writer"), 0);
    const snapshot_config c = { .disk = &l.disk.table,
                                .of = identity,
                                .chunk_bytes = SNAPSHOT_CHUNK_MAX,
                                .writer = &l.writer,
                                .home = &l.home,
                                .room = room,
                                .ended = ended };
    CHECK_EQ(snapshot_open(&l.w, &c), 0);
    write_one(1000);
    const uint64_t words = (20 << 20) / 8;
    write_one(words);
    CHECK(l.disk.table.open(&l.disk.table, "snapshot-3-63-new", DISK_CREATE) >= 0); /* one that was cut short */

    CHECK_EQ(snapshot_list(&l.disk.table, named, NULL), 0);
    CHECK_EQ(l.names, 1);
    snapshot_found found;
    const snapshot_reader to = { .head = head, .chunk = chunk };
    snapshot_read(&l.disk.table, &identity, 3, 99, &to, &found);
    CHECK_EQ(found.verdict, WAL_WHOLE);
    CHECK(l.words == words && found.foot.bytes == words * 8);

    snapshot_remove(&l.w, 3, 99);
    snapshot_stop(&l.w);
    helper_stop(&l.writer);
    snapshot_free(&l.w);
    helper_free(&l.writer);
    mailbox_close(&l.home);
    CHECK_EQ(snapshot_list(&l.disk.table, named, NULL), 0);
    CHECK_EQ(l.names, 1);
    CHECK_EQ(l.disk.table.list(&l.disk.table, remove_one, NULL), 0);
    disk_os_close(&l.disk);
    CHECK_EQ(rmdir(l.path), 0);
}

int main(int argc, char **argv) {
    RUN(a_snapshot_comes_back_from_a_real_disk);
    return check_end(argc, argv);
}
