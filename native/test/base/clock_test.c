/* The clocks, and how a test moves them. */
#include "../../base/clock.h"
#include "../check.h"

enum { HOUR_S = 3600 };
static const uint64_t hour = (uint64_t)HOUR_S * 1000000000u;

TEST(clocks_run_forward) {
    uint64_t a = fkv_now_ns(), wall = fkv_wall_ms();
    CHECK(fkv_now_ns() >= a && fkv_wall_ms() >= wall && wall > 1600000000000u);
}

TEST(a_skip_moves_both_clocks_and_they_run_on) {
    uint64_t a = fkv_now_ns(), wall = fkv_wall_ms();
    fkv_clock_skip((int64_t)hour);
    fkv_clock_skip((int64_t)hour);
    uint64_t b = fkv_now_ns();
    CHECK(b >= a + 2 * hour && b < a + 3 * hour);
    CHECK(fkv_wall_ms() >= wall + 2 * HOUR_S * 1000u && fkv_wall_ms() < wall + 3 * HOUR_S * 1000u);
    CHECK(fkv_now_ns() >= b);
    fkv_clock_restore();
    CHECK(fkv_now_ns() < a + hour && fkv_wall_ms() < wall + HOUR_S * 1000u);
}

TEST(a_clock_that_was_set_stands_still_until_it_is_set_again) {
    fkv_clock_set(5000000000u);
    uint64_t wall = fkv_wall_ms();
    for (int i = 0; i < 1000; i++) CHECK(fkv_now_ns() == 5000000000u && fkv_wall_ms() == wall);
    fkv_clock_set(6000000000u);
    CHECK(fkv_now_ns() == 6000000000u && fkv_wall_ms() == wall + 1000);
    fkv_clock_skip(1000000);
    CHECK(fkv_now_ns() == 6001000000u);
    fkv_clock_restore();
    CHECK(fkv_now_ns() != 6001000000u);
}

int main(int argc, char **argv) {
    RUN(clocks_run_forward);
    RUN(a_skip_moves_both_clocks_and_they_run_on);
    RUN(a_clock_that_was_set_stands_still_until_it_is_set_again);
    return check_end(argc, argv);
}
