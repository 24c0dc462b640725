/* failover_seeds.h: the test that two programs have: lives of a replicated shard, as many as the program says. */
#ifndef FARKV_TEST_FAILOVER_SEEDS_H
#define FARKV_TEST_FAILOVER_SEEDS_H
#include <stdio.h>
#include "../check.h"
#include "failover.h"

static int failover_lives;

TEST(nothing_that_was_answered_or_read_is_lost) {
    failover_counts n = { 0 };
    uint64_t seed = check_seed();
    for (int i = 0; i < failover_lives; i++) {
        check_replays(seed + (uint64_t)i);
        failover_live(seed + (uint64_t)i, &n);
    }
    printf("%d lives from seed %llu: %llu answers, %llu to large changes, %llu without effect, %llu not known; %llu "
           "promotions, %llu handovers, %llu removals, "
           "%llu joins, %llu with what they had, %llu owners deposed that go on, %llu additions, %llu kills, %llu lost "
           "all copies\n",
           failover_lives, (unsigned long long)seed, (unsigned long long)n.answered, (unsigned long long)n.large,
           (unsigned long long)n.without_effect, (unsigned long long)n.unknown, (unsigned long long)n.promotions,
           (unsigned long long)n.handovers, (unsigned long long)n.removals, (unsigned long long)n.joins,
           (unsigned long long)n.rejoins, (unsigned long long)n.deposed, (unsigned long long)n.additions,
           (unsigned long long)n.kills, (unsigned long long)n.lost);
}

/* Fewer: what they have beside the others is the disks. */
TEST(what_was_answered_or_read_comes_back_with_each_copy_when_all_lose_their_power) {
    failover_counts n = { 0 };
    uint64_t seed = check_seed();
    for (int i = 0; i < failover_lives / 2; i++) {
        check_replays(seed + (uint64_t)i);
        failover_live_durable(seed + (uint64_t)i, &n);
    }
    printf("%d durable lives: %llu answers, %llu to large changes; %llu promotions, %llu handovers, %llu joins, %llu "
           "kills; %llu logs, %llu of copies that were made of others\n",
           failover_lives / 2, (unsigned long long)n.answered, (unsigned long long)n.large,
           (unsigned long long)n.promotions, (unsigned long long)n.handovers, (unsigned long long)n.joins,
           (unsigned long long)n.kills, (unsigned long long)n.logs, (unsigned long long)n.from_snapshots);
}
/* A server that is gone loses nothing; when all lose their power only the last answers go. */
TEST(what_was_answered_early_is_lost_only_when_all_lose_their_power_and_only_the_last_of_it) {
    failover_counts n = { 0 };
    uint64_t seed = check_seed();
    int i = 0;
    /* Some windows of seeds have no life that ends between an answer and its sync: which ones depends on timing. */
    for (; i < failover_lives || (n.lost_early == 0 && i < 4 * failover_lives); i++) {
        check_replays(seed + (uint64_t)i);
        (i % 2 ? failover_live_early : failover_end_early)(seed + (uint64_t)i, &n);
    }
    printf(
        "%d lives with early answers: %llu answers; %llu promotions, %llu handovers, %llu removals, %llu joins, %llu "
        "kills, %llu lost all copies; %llu answers were on no disk when all lost their power\n",
        i, (unsigned long long)n.answered, (unsigned long long)n.promotions, (unsigned long long)n.handovers,
        (unsigned long long)n.removals, (unsigned long long)n.joins, (unsigned long long)n.kills,
        (unsigned long long)n.lost, (unsigned long long)n.lost_early);
    CHECK(n.lost_early > 0);
}

/* Servers begin copies with what they have, in the middle of which they may begin again. */
TEST(nothing_is_lost_or_comes_back_where_copies_begin_with_what_is_there) {
    failover_counts n = { 0 };
    uint64_t seed = check_seed();
    for (int i = 0; i < failover_lives; i++) {
        check_replays(seed + (uint64_t)i);
        failover_live_with_bases(seed + (uint64_t)i, i % 3 == 0, &n);
    }
    printf(
        "%d lives with bases: %llu answers, %llu joins, %llu with a base, which had %llu entries already; %llu logs\n",
        failover_lives, (unsigned long long)n.answered, (unsigned long long)n.joins, (unsigned long long)n.bases,
        (unsigned long long)n.kept, (unsigned long long)n.logs);
}
#endif
