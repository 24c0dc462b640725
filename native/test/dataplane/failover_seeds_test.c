/* failover_seeds_test.c: many lives of a replicated shard in simulated time (failover.h). */
#include "failover_seeds.h"

int main(int argc, char **argv) {
    failover_lives = 600;
    RUN(nothing_that_was_answered_or_read_is_lost);
    RUN(what_was_answered_or_read_is_in_the_logs_of_all_copies_when_all_lose_their_power);
    return check_end(argc, argv);
}
