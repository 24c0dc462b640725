/* failover_test.c: a few lives of a replicated shard in simulated time (failover.h); failover_seeds_test.c has more. */
#include "failover_seeds.h"

int main(int argc, char **argv) {
    failover_lives = 40;
    RUN(nothing_that_was_answered_or_read_is_lost);
    return check_end(argc, argv);
}
