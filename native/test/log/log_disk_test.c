/* log_disk_test.c: the log on a real disk, with its threads: it comes back as it was, again and again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../base/hash.h"
#include "../../log/wal.h"
#include "../check.h"

enum { SHARDS = 2 };
static const wal_identity identity = { .cluster = "on a real disk..", .instance = 7, .thread = 0 };

typedef struct live {
    char path[200];
    disk_os disk;
    helper writer, maker;
    mailbox home;
    wal log;
    uint32_t file_bytes, buffer_bytes;
    uint64_t next[SHARDS], durable[SHARDS], replayed[SHARDS], snapshot[SHARDS];
} live;
static live l;

static void make_directory(uint32_t file_bytes, uint32_t buffer_bytes) {
    const char *tmp = getenv("TMPDIR");
    memset(&l, 0, sizeof l);
    l.file_bytes = file_bytes;
    l.buffer_bytes = buffer_bytes;
    snprintf(l.path, sizeof l.path, "%s/farkv-log-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(l.path) != NULL);
    CHECK_EQ(disk_os_open(&l.disk, l.path), 0);
    for (int i = 0; i < SHARDS; i++) l.next[i] = 1;
}
static void remove_one(void *arg, const char *name) {
    (void)arg;
    if (name[0] != '.') CHECK_EQ(l.disk.table.remove(&l.disk.table, name), 0);
}
static void remove_directory(void) {
    CHECK_EQ(l.disk.table.list(&l.disk.table, remove_one, NULL), 0);
    disk_os_close(&l.disk);
    CHECK_EQ(rmdir(l.path), 0);
}

static void durable(void *owner, const wal_section *s) {
    (void)owner;
    l.durable[s->shard] = s->first + s->count - 1;
}
static void room(void *owner) { (void)owner; }
static void failed(void *owner, const disk_failure *f) {
    (void)owner;
    fprintf(stderr, "%s of %s: %s\n", f->operation, f->file, strerror(-f->error));
    CHECK(!"the disk fails");
}

/* A record: its shard and number, over and over; that many words. */
static uint32_t words_of(uint64_t lsn) { return 1 + (uint32_t)(lsn * 0x9e3779b1u >> 8) % 1000; }
static void fill_record(uint64_t *record, uint32_t words, uint32_t shard, uint64_t lsn) {
    for (uint32_t i = 0; i < words; i++) record[i] = lsn << 8 | shard;
}
static bool replayed(void *arg, const wal_section *s, const uint8_t *records) {
    (void)arg;
    CHECK(s->shard < SHARDS);
    uint32_t at = 0;
    for (uint64_t lsn = s->first; lsn < s->first + s->count; lsn++)
        for (uint32_t i = 0; i < words_of(lsn); i++, at += 8) {
            uint64_t word;
            CHECK(s->bytes - at >= sizeof word);
            memcpy(&word, records + at, sizeof word);
            CHECK_EQ(word, lsn << 8 | s->shard);
        }
    CHECK_EQ(at, s->bytes);
    if (l.replayed[s->shard]) CHECK_EQ(s->first, l.replayed[s->shard] + 1);
    l.replayed[s->shard] = s->first + s->count - 1;
    return true;
}

static void start(void) {
    memset(l.replayed, 0, sizeof l.replayed);
    CHECK_EQ(mailbox_open(&l.home), 0);
    CHECK_EQ(helper_start(&l.writer, "writer"), 0);
    CHECK_EQ(helper_start(&l.maker, "maker"), 0);
    wal_config c = { .disk = &l.disk.table,
                     .of = identity,
                     .file_bytes = l.file_bytes,
                     .buffer_bytes = l.buffer_bytes,
                     .writer = &l.writer,
                     .maker = &l.maker,
                     .home = &l.home,
                     .durable = durable,
                     .room = room,
                     .failed = failed };
    wal_found found;
    disk_failure why;
    wal_replay(&l.disk.table, &identity, replayed, NULL, &found);
    CHECK_EQ(found.verdict, WAL_WHOLE);
    CHECK_EQ(wal_open(&l.log, &c, &found, &why), 0);
}
static void stop(void) {
    wal_stop(&l.log);
    helper_stop(&l.writer);
    helper_stop(&l.maker);
    mailbox_run(&l.home);
    wal_free(&l.log);
    helper_free(&l.writer);
    helper_free(&l.maker);
    mailbox_close(&l.home);
}
static void wait_home(void) {
    mailbox_sleep(&l.home);
    mailbox_run(&l.home);
}
static bool covered(void *arg, const wal_reach *reach) {
    (void)arg;
    return reach->end - 1 <= l.snapshot[reach->shard];
}

/* Rounds of so many records, flushed after every few; each second one is waited for. */
static void rounds(int records, int flush_every) {
    uint64_t seed = check_seed();
    for (int round = 0; round < 4; round++) {
        start();
        for (uint32_t s = 0; s < SHARDS; s++) {
            CHECK(l.replayed[s] >= l.durable[s] || l.snapshot[s] >= l.durable[s]);
            l.next[s] = (l.replayed[s] > l.snapshot[s] ? l.replayed[s] : l.snapshot[s]) + 1;
        }
        for (int i = 0; i < records; i++) {
            static uint64_t record[1024];
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t shard = seed >> 40 & 1, words = words_of(l.next[shard]);
            fill_record(record, words, shard, l.next[shard]);
            wal_section s = { .shard = shard, .first = l.next[shard], .count = 1, .bytes = words * 8 };
            uint64_t begun = fkv_now_ns();
            while (!wal_append(&l.log, &s, record)) {
                CHECK(check_in_time(begun));
                wal_flush(&l.log);
                wait_home();
            }
            l.next[shard]++;
            if (i % flush_every == 0) wal_flush(&l.log);
            mailbox_run(&l.home);
            if (i % (records / 3) == 100) {
                memcpy(l.snapshot, l.durable, sizeof l.snapshot);
                wal_trim(&l.log, covered, NULL);
            }
        }
        for (uint64_t begun = fkv_now_ns(); round % 2 && !wal_is_idle(&l.log);) {
            CHECK(check_in_time(begun));
            wal_flush(&l.log);
            wait_home();
        }
        if (round % 2)
            for (uint32_t s = 0; s < SHARDS; s++) CHECK_EQ(l.durable[s], l.next[s] - 1);
        stop();
    }
}

TEST(what_was_durable_comes_back_from_a_real_disk) {
    make_directory(256 << 10, 64 << 10);
    rounds(600, 4);
    CHECK(l.log.next_file > 10);
    remove_directory();
}
TEST(so_does_what_was_in_batches_of_the_largest_size) {
    make_directory(12 << 20, WAL_BATCH_MAX);
    rounds(2000, 1000);
    remove_directory();
}

TEST(the_real_disk_does_what_the_table_says) {
    make_directory(0, 0);
    disk *d = &l.disk.table;
    uint8_t *block = aligned_alloc(4096, 8192);
    memset(block, 7, 8192);
    CHECK_EQ(d->open(d, "a", DISK_WRITE), -ENOENT);
    CHECK_EQ(d->open(d, "a", DISK_READ), -ENOENT);
    int file = d->open(d, "a", DISK_CREATE);
    CHECK(file >= 0);
    /* Past the page cache, where this file system can. */
    int directory = open(l.path, O_RDONLY | O_DIRECTORY), past = openat(directory, "a", O_WRONLY | O_DIRECT);
    CHECK_EQ((fcntl(file, F_GETFL) & O_DIRECT) != 0, past >= 0);
    if (past >= 0) close(past);
    close(directory);
    CHECK_EQ(d->write(d, file, 4096, block, 4096), 0);
    CHECK_EQ(d->sync(d, file), 0);
    d->close(d, file);
    CHECK_EQ(d->rename(d, "a", "b"), 0);
    CHECK_EQ(d->rename(d, "a", "b"), -ENOENT);
    CHECK_EQ(d->sync_directory(d), 0);
    file = d->open(d, "b", DISK_READ);
    uint64_t bytes = 0;
    CHECK_EQ(d->size(d, file, &bytes), 0);
    CHECK_EQ(bytes, 8192);
    CHECK_EQ(d->read(d, file, 0, block, 8192), 0);
    CHECK(block[0] == 0 && block[4095] == 0 && block[4096] == 7 && block[8191] == 7);
    CHECK_EQ(d->read(d, file, 4096, block, 8192), -ENODATA);
    d->close(d, file);
    file = d->open(d, "b", DISK_CREATE); /* in place of the other */
    CHECK_EQ(d->size(d, file, &bytes), 0);
    CHECK_EQ(bytes, 0);
    d->close(d, file);
    CHECK_EQ(d->remove(d, "b"), 0);
    CHECK_EQ(d->remove(d, "b"), -ENOENT);
    free(block);
    remove_directory();
    CHECK_EQ(disk_os_open(&l.disk, l.path), -ENOENT);
}

static void a_pipe_or_a_device_in_the_place_of_a_file_is_refused_at_once(void) {
    make_directory(4096, 4096);
    disk *d = &l.disk.table;
    CHECK_EQ(mkfifoat(l.disk.directory, "pipe", 0600), 0);
    CHECK_EQ(symlinkat("/dev/zero", l.disk.directory, "device"), 0);
    CHECK_EQ(d->open(d, "pipe", DISK_READ), -ENXIO);
    CHECK_EQ(d->open(d, "pipe", DISK_WRITE), -ENXIO);
    CHECK_EQ(d->open(d, "device", DISK_READ), -ENXIO);
    int file = d->open(d, "pipe", DISK_CREATE); /* in its place */
    CHECK(file >= 0);
    d->close(d, file);
    remove_directory();
}
/* What a device with larger blocks refuses is refused of memory at an odd address, too. */
TEST(what_may_not_go_past_the_page_cache_goes_through_it) {
    make_directory(0, 0);
    disk *d = &l.disk.table;
    uint8_t *memory = aligned_alloc(4096, 3 * 4096), *odd = memory + 1;
    memset(memory, 0, 3 * 4096);
    memset(odd, 5, 4096);
    int file = d->open(d, "a", DISK_CREATE);
    CHECK_EQ(d->write(d, file, 4096, odd, 4096), 0);
    CHECK_EQ(d->write(d, file, 0, odd, 4096), 0);
    CHECK_EQ(d->sync(d, file), 0);
    d->close(d, file);
    memset(memory, 0, 3 * 4096);
    file = d->open(d, "a", DISK_READ);
    CHECK_EQ(d->read(d, file, 0, odd, 8192), 0);
    CHECK(odd[-1] == 0 && odd[0] == 5 && odd[8191] == 5 && odd[8192] == 0);
    CHECK_EQ(d->read(d, file, 1, odd, 8192), -ENODATA);
    d->close(d, file);
    free(memory);
    remove_directory();
}

int main(int argc, char **argv) {
    RUN(what_was_durable_comes_back_from_a_real_disk);
    RUN(so_does_what_was_in_batches_of_the_largest_size);
    RUN(the_real_disk_does_what_the_table_says);
    RUN(a_pipe_or_a_device_in_the_place_of_a_file_is_refused_at_once);
    RUN(what_may_not_go_past_the_page_cache_goes_through_it);
    return check_end(argc, argv);
}
