/* failover_seeds_test.c: many lives of a replicated shard in simulated time (failover.h). */
#include "failover_seeds.h"

int main(int argc, char **argv) {
    failover_lives = 600;
    RUN(nothing_that_was_answered_or_read_is_lost);
    RUN(what_was_answered_or_read_comes_back_with_each_copy_when_all_lose_their_power);
    RUN(what_was_answered_early_is_lost_only_when_all_lose_their_power_and_only_the_last_of_it);
    RUN(nothing_is_lost_or_comes_back_where_copies_begin_with_what_is_there);
    return check_end(argc, argv);
}
