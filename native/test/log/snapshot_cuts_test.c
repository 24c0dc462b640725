/* snapshot_cuts_test.c: the power goes off, or the process ends, in each operation of the disk: each copy has a whole
 * snapshot afterwards, the last that was reported done or the one that was on its way. */
#include "../check.h"
#include "snapshot_rig.h"

static snap_rig r;
static uint64_t cuts;

static uint64_t part_of(uint64_t seed, uint64_t n) {
    uint64_t x = (seed + n) * 0x9e3779b97f4a7c15u;
    return (x ^ x >> 29) | 1;
}
static bool by_power(void) { return memory_random(&r.disk, 2) != 0; }
static void end_and_start(bool power) {
    snap_end(&r, power);
    while (!snap_start(&r)) snap_end(&r, by_power());
}

/* A history of random steps that ends in its operation `at`, goes on, and ends twice more. False: it was over before. */
static bool history(uint64_t seed, uint32_t sector, uint64_t at) {
    snap_init(&r, seed, sector);
    CHECK(snap_start(&r));
    r.disk.off_at = r.disk.operations + at;
    snap_random_steps(&r, 220);
    bool reached = r.disk.off;
    for (int again = 0; reached && again < 2; again++) {
        snap_end(&r, by_power());
        r.disk.off_at = r.disk.operations + 1 + memory_random(&r.disk, 30);
        while (!snap_start(&r)) snap_end(&r, by_power());
        snap_random_steps(&r, 120);
    }
    end_and_start(true);
    uint64_t n = snap_make(&r, 1);
    CHECK_EQ(r.copies[1].done, n);
    end_and_start(true);
    CHECK_EQ(r.copies[1].done, n);
    cuts += r.cuts;
    snap_free(&r);
    return reached;
}

TEST(each_copy_has_a_whole_snapshot_after_a_cut_in_any_operation) {
    uint64_t seed = check_seed();
    for (uint64_t n = 0; cuts < 6000; n++) {
        uint64_t part = part_of(seed, n);
        check_replays(seed);
        for (uint64_t at = 1; history(part, n % 2 ? 512 : 4096, at); at++) {}
    }
}

/* Each sector of what is under way survives or not, each change of the directory too. */
TEST(the_one_before_is_there_until_the_next_one_is_whole) {
    uint64_t seed = check_seed(), before = 0, after = 0;
    bool reached = true;
    for (uint64_t at = 1; reached; at++)
        for (uint64_t n = 0; n < 20; n++) {
            snap_init(&r, part_of(seed, at * 20 + n), n % 2 ? 512 : 4096);
            CHECK(snap_start(&r));
            CHECK_EQ(snap_make(&r, 2), 1);
            CHECK_EQ(r.outcome, SNAPSHOT_DONE);
            r.disk.off_at = r.disk.operations + at;
            snap_make(&r, 2);
            reached = r.disk.off;
            end_and_start(true);
            CHECK(r.copies[2].done > 0);
            *(r.copies[2].done == 1 ? &before : &after) += 1;
            snap_free(&r);
        }
    CHECK(before > 100 && after > 20);
}

int main(int argc, char **argv) {
    RUN(each_copy_has_a_whole_snapshot_after_a_cut_in_any_operation);
    RUN(the_one_before_is_there_until_the_next_one_is_whole);
    return check_end(argc, argv);
}
