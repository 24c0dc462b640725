/* failover_test.c: a few lives of a replicated shard in simulated time (failover.h); failover_seeds_test.c has more. */
#include "failover_seeds.h"

int main(int argc, char **argv) {
    failover_lives = 40;
    RUN(nothing_that_was_answered_or_read_is_lost);
    RUN(what_was_answered_or_read_is_in_the_logs_of_all_copies_when_all_lose_their_power);
    return check_end(argc, argv);
}
