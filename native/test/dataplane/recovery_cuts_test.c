/* recovery_cuts_test.c: 10,000 cuts of recovery_life.h. */
#include "../check.h"
#include "recovery_life.h"

TEST(copies_come_back_as_they_were_after_ten_thousand_cuts) {
    uint64_t seed = check_seed();
    recovery_counts c = { 0 };
    for (uint64_t n = 0; c.cuts < 10000; n++) {
        check_replays(seed);
        recovery_live(seed + n * 0x9e3779b97f4a7c15u, n % 3 ? 60 : 400, &c);
    }
    CHECK(c.copies > 8000 && c.from_snapshots > 2000);
}

int main(int argc, char **argv) {
    RUN(copies_come_back_as_they_were_after_ten_thousand_cuts);
    return check_end(argc, argv);
}
