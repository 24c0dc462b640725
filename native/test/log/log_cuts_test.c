/* log_cuts_test.c: the power goes off, or the process ends, in each operation of the disk: what was reported durable is
 * replayed, nothing else than what was appended is, in order; and the log goes on from there. */
#include "../check.h"
#include "log_rig.h"

static rig r;
static uint64_t cuts;

static uint64_t part_of(uint64_t seed, uint64_t n) {
    uint64_t x = (seed + n) * 0x9e3779b97f4a7c15u;
    return (x ^ x >> 29) | 1;
}
static bool by_power(void) { return memory_random(&r.disk, 2) != 0; }

/* Ends what is there, and tries to recover until the disk holds that long. */
static void end_and_recover(bool power) {
    rig_end(&r, power);
    while (!rig_recover(&r)) rig_end(&r, by_power());
}

/* A history of random steps that ends in its operation `at`; then it goes on, to a second end and a third. False: it was
 * over before. */
static bool history(uint64_t seed, uint32_t sector, uint64_t at) {
    rig_init(&r, seed, sector);
    CHECK(rig_recover(&r));
    r.disk.off_at = r.disk.operations + at;
    rig_random_steps(&r, 150);
    bool reached = r.disk.off;
    for (int again = 0; reached && again < 2; again++) {
        rig_end(&r, by_power());
        r.disk.off_at = r.disk.operations + 1 + memory_random(&r.disk, 24);
        while (!rig_recover(&r)) rig_end(&r, by_power());
        rig_random_steps(&r, 60);
    }
    end_and_recover(true);
    rig_settle(&r);
    CHECK(rig_append(&r, 0, 1, 100));
    rig_settle(&r);
    CHECK_EQ(r.durable, r.count);
    end_and_recover(true);
    cuts += r.cuts;
    rig_free(&r);
    return reached;
}

TEST(what_was_reported_durable_is_replayed_after_a_cut_in_any_operation) {
    uint64_t seed = check_seed(), histories = 0;
    for (uint64_t n = 0; cuts < 15000; n++) {
        uint64_t part = part_of(seed, n);
        for (uint64_t at = 1; history(part, n % 2 ? 512 : 4096, at); at++) histories++;
    }
    CHECK(histories > 2500); /* the rest are those that were over before */
}

/* Fills, rolls over, gives back and uses again, in the same order each time. */
static void script(void) {
    rig_settle(&r);
    for (uint32_t i = 0; i < 24 && !r.disk.off; i++) {
        if (i % 7 == 0) rig_begin_epoch(&r, i % RIG_SHARDS, 1);
        rig_append(&r, i % RIG_SHARDS, 2, 1500);
        wal_flush(&r.log);
        rig_append(&r, (i + 1) % RIG_SHARDS, 1, 40);
        rig_settle(&r);
        if (i % 5 == 4)
            for (uint32_t s = 0; s < RIG_SHARDS; s++) rig_snapshot(&r, s);
    }
}
TEST(files_that_are_used_again_survive_a_cut_in_any_operation) {
    uint64_t seed = check_seed();
    bool reached = true;
    uint64_t at = 1;
    for (; reached; at++)
        for (uint64_t n = 0; n < 10; n++) {
            rig_init(&r, part_of(seed, at * 10 + n), n % 2 ? 512 : 4096);
            CHECK(rig_recover(&r));
            r.disk.off_at = r.disk.operations + at;
            script();
            reached = r.disk.off;
            if (!reached) CHECK(r.log.next_file > 8 && LIST_FIRST(&r.log.kept, wal_file, link)->number > 4);
            end_and_recover(by_power());
            script();
            end_and_recover(true);
            rig_free(&r);
        }
    CHECK(at > 100);
}

TEST(what_was_replayed_survives_the_next_cut_though_the_process_ended_before_it_was_synced) {
    uint64_t seed = check_seed();
    for (uint64_t n = 0; n < 100; n++) {
        rig_init(&r, part_of(seed, n), 512);
        CHECK(rig_recover(&r));
        rig_settle(&r);
        CHECK(rig_append(&r, 1, 3, 2000));
        r.disk.off_at = r.disk.operations + 2; /* the sync behind the write */
        rig_settle(&r);
        CHECK(r.disk.off && r.durable == 0 && r.count == 3);
        end_and_recover(false);
        CHECK_EQ(r.durable, 3);
        end_and_recover(true); /* checks that they are there */
        CHECK_EQ(r.durable, 3);
        rig_free(&r);
    }
}

/* The process ends when a third file was made and the first has no batch yet; then the next start ends anywhere while it
 * makes these files anew. None of them counts as missing. */
TEST(a_start_that_makes_files_anew_may_end_in_any_operation) {
    uint64_t seed = check_seed(), at = 1;
    for (bool reached = true; reached; at++)
        for (uint64_t n = 0; n < 4; n++) {
            bool first = n < 2; /* else there are batches before */
            rig_init(&r, part_of(seed, at * 4 + n), 4096);
            CHECK(rig_recover(&r));
            rig_settle(&r);
            if (!first) {
                CHECK(rig_append(&r, 0, 2, 1500));
                rig_settle(&r);
                end_and_recover(true);
                rig_settle(&r);
            }
            uint64_t before = r.log.next_file;
            CHECK(rig_append(&r, 0, 1, 100));
            wal_flush(&r.log);
            helper_drain(&r.maker); /* and not the writer */
            mailbox_run(&r.home);
            CHECK_EQ(r.log.next_file, before + 1);
            rig_end(&r, n % 2);
            r.disk.off_at = r.disk.operations + at;
            if (rig_recover(&r)) rig_settle(&r);
            reached = r.disk.off;
            end_and_recover(by_power());
            rig_settle(&r);
            CHECK_EQ(r.log.next_file, before);
            while (r.log.next_file < before + 2) { /* into the second of them */
                CHECK(rig_append(&r, 0, 2, 1500));
                rig_settle(&r);
            }
            CHECK_EQ(r.durable, r.count);
            end_and_recover(true);
            rig_free(&r);
        }
    CHECK(at > 12);
}

/* No file is ahead and the disk is full, so the oldest is used again; the process ends before that is synced, and so does
 * the next one; then the power goes off. A file that comes back, without the one behind it, would look like a file that
 * is missing. */
TEST(names_of_files_survive_the_next_cut_though_the_process_ended_before_they_were_synced) {
    uint64_t seed = check_seed();
    for (uint64_t n = 0; n < 50; n++) {
        rig_init(&r, part_of(seed, n), 4096);
        CHECK(rig_recover(&r));
        for (rig_settle(&r); r.log.next_file < 6; rig_settle(&r)) CHECK(rig_append(&r, 0, 2, 1500));
        r.disk.full_from = r.disk.growths + 1;
        while (rig_append(&r, 0, 2, 1500)) {
            wal_flush(&r.log);
            helper_drain(&r.writer);
            mailbox_run(&r.home);
        }
        rig_settle(&r);
        CHECK(wal_disk_full(&r.log) && r.log.aheads == 0);
        for (int i = 0; i < 2; i++) {
            r.disk.off_at = r.disk.operations + 2; /* the sync behind the new name */
            rig_snapshot(&r, 0);
            rig_settle(&r);
            CHECK(r.disk.off);
            rig_end(&r, false);
            if (i == 0) {
                CHECK(rig_recover(&r));
                rig_settle(&r);
            }
        }
        r.disk.full_from = 0;
        end_and_recover(true);
        rig_free(&r);
    }
}

int main(int argc, char **argv) {
    RUN(what_was_reported_durable_is_replayed_after_a_cut_in_any_operation);
    RUN(files_that_are_used_again_survive_a_cut_in_any_operation);
    RUN(what_was_replayed_survives_the_next_cut_though_the_process_ended_before_it_was_synced);
    RUN(a_start_that_makes_files_anew_may_end_in_any_operation);
    RUN(names_of_files_survive_the_next_cut_though_the_process_ended_before_they_were_synced);
    return check_end(argc, argv);
}
