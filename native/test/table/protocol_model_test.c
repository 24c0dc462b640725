/* protocol_model_test.c: the protocol as it is holds in every interleaving of some short histories, and each mistake
 * that could be made about it is found in one of them (protocol_machine.c is the machine). */
#include <stdio.h>
#include "../check.h"
#include "protocol_machine.h"

static const setting settings[] = {
    { "three PUTs", { PUT, PUT, PUT }, { 2, 2 }, .no_quarantine = false },
    { "three PUTs, extents reused at once", { PUT, PUT, PUT }, { 2, 1 }, .no_quarantine = true },
    { "PUT, DELETE, PUT, extents reused at once", { PUT, DELETE, PUT }, { 2, 1 }, .no_quarantine = true },
    { "PUT, DELETE, PUT, PUT", { PUT, DELETE, PUT, PUT }, { 2, 1 }, .no_quarantine = false },
    { "a split between two PUTs", { PUT, SPLIT, PUT }, { 2, 1 }, .no_quarantine = false },
    { "a split, then DELETE and PUT", { PUT, SPLIT, DELETE, PUT }, { 2, 1 }, .no_quarantine = true },
    { "an owner that stops, backups take over", { PUT, PUT }, { 2, 1 }, .owner_may_stop = true },
    { "an owner that stops, a DELETE", { PUT, DELETE }, { 2, 1 }, .owner_may_stop = true, .no_quarantine = true },
    { "an owner that is restarted empty", { PUT, PUT }, { 2, 1 }, .owner_may_stop = true, .restart_empties = true },
    { "the same, a value of its imitates an extent",
      { PUT },
      { 2, 1 },
      .owner_may_stop = true,
      .restart_empties = true,
      .imitation = true },
    { "an owner that stops, a split", { PUT, SPLIT }, { 1, 1 }, .owner_may_stop = true },
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void passes(protocol p, bool only_where_the_owner_may_stop) {
    for (int i = 0; i < SETTINGS; i++) {
        if (only_where_the_owner_may_stop && !settings[i].owner_may_stop) continue;
        search *s = explore(&p, &settings[i]);
        printf("# %-45s %8u states\n", settings[i].name, search_states(s));
        if (search_found(s)) search_print(s);
        CHECK(!search_found(s));
        search_free(s);
    }
}
TEST(the_protocol_is_linearizable_in_every_interleaving) { passes((protocol){ 0 }, false); }
/* A GET that began inside its lease may as well have happened then, whatever it READ later: for one register that is
 * enough. The reader compares after its last READ all the same: it also bounds how old a value can be when it is
 * returned, and covers what is not modelled, memory that its owner takes back once no lease is left. */
TEST(a_lease_compared_first_thing_in_the_get_would_do_for_one_register) {
    passes((protocol){ .lease_checked_before_read = true }, true);
}
/* The shortest violation in the first setting that has one. */
static void finds(const char *name, protocol p) {
    for (int i = 0; i < SETTINGS; i++) {
        search *s = explore(&p, &settings[i]);
        bool found = search_found(s), stopped = search_stopped(s);
        if (found) {
            printf("# %s: not linearizable (%s):\n", name, settings[i].name);
            search_print(s);
        }
        search_free(s);
        if (found || stopped) return;
    }
    check_failed(__FILE__, __LINE__, name);
}
/* clang-format off */
#define MISTAKES(X) \
    X(without_pending) \
    X(live_before_dead) \
    X(live_before_slot) \
    X(slot_cleared_before_dead) \
    X(reader_takes_dead) \
    X(without_lease_check) \
    X(lease_checked_before_get) \
    X(takeover_before_leases_end) \
    X(split_clears_at_once) \
    X(changes_after_split_go_to_the_old_bucket) \
    X(cached_location_outlives_its_memory)
/* clang-format on */
#define FINDS(mistake) \
    TEST(it_finds_##mistake) { finds(#mistake, (protocol){ .mistake = true }); }
MISTAKES(FINDS)
#define RUN_FINDS(mistake) RUN(it_finds_##mistake);

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    RUN(the_protocol_is_linearizable_in_every_interleaving);
    RUN(a_lease_compared_first_thing_in_the_get_would_do_for_one_register);
    MISTAKES(RUN_FINDS)
    return check_end(argc, argv);
}
