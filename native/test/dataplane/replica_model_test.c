/* replica_model_test.c: the rules of replication (native/replication/rules/replica.h) hold in every interleaving of some short
 * histories, and each mistake that could be made with them is found in one (replica_machine.c is the machine). */
#include <stdio.h>
#include "../check.h"
#include "replica_machine.h"

/* clang-format off */
#define SETTINGS(X) \
    X(each_record_needs_two_copies, .copies = 2, .changes = 2, .keys = 2, .min_in_sync = 2, .removals = 1, \
      .promotions = 1) \
    X(links_break, .copies = 2, .changes = 3, .keys = 2, .breaks = 2, .retries = 1) \
    X(an_owner_dies, .copies = 2, .changes = 2, .keys = 1, .crashes = 1, .promotions = 1, .retries = 1) \
    X(an_owner_is_suspected_and_lives, .copies = 2, .changes = 2, .keys = 2, .promotions = 1, .retries = 1) \
    X(a_client_reads_of_an_owner_that_is_suspected, .copies = 2, .changes = 1, .keys = 1, .gets = 2, \
      .promotions = 1, .ticks = 2) \
    X(a_removed_copy_asks_to_be_the_owner, .copies = 2, .changes = 2, .keys = 1, .promotions = 1, .removals = 1, \
      .retries = 1) \
    X(a_copy_is_added_and_its_owner_dies, .copies = 1, .joiners = 1, .changes = 2, .keys = 1, .crashes = 1, \
      .additions = 1, .promotions = 1, .retries = 1) \
    X(a_client_reads_while_a_copy_is_added, .copies = 1, .joiners = 1, .changes = 1, .keys = 1, .gets = 2, \
      .crashes = 1, .additions = 1, .promotions = 1, .ticks = 3) \
    X(a_copy_is_added_again, .copies = 2, .changes = 2, .keys = 1, .additions = 1, .removals = 1, .promotions = 1, \
      .breaks = 1) \
    X(a_removed_copy_joins_with_what_it_has, .copies = 2, .changes = 3, .keys = 1, .removals = 1, .promotions = 1, \
      .crashes = 1, .breaks = 1, .rejoins = true) \
    X(a_client_reads_while_a_removed_copy_joins, .copies = 2, .changes = 1, .keys = 1, .gets = 1, .removals = 1, \
      .promotions = 1, .ticks = 3, .rejoins = true) \
    X(a_deposed_owner_joins_with_what_it_has, .copies = 2, .changes = 2, .keys = 1, .promotions = 2, .retries = 1, \
      .deposed_join = true) \
    X(a_client_reads_while_a_deposed_owner_joins, .copies = 2, .changes = 1, .keys = 1, .gets = 1, .promotions = 2, \
      .ticks = 2, .deposed_join = true) \
    X(a_deposed_owner_meets_the_owner_after_the_next, .copies = 3, .changes = 2, .keys = 1, .promotions = 2, \
      .deposed_join = true, .cut_off = { 2 + 4, 1 }, .heirs = 2 + 4) \
    X(a_third_copy_is_added_by_one_owner_and_by_the_next, .copies = 2, .joiners = 1, .changes = 1, .keys = 1, \
      .additions = 2, .promotions = 1) \
    X(a_backup_is_restarted, .copies = 2, .changes = 1, .keys = 1, .crashes = 2, .restarts = 1, .removals = 1, \
      .additions = 1, .promotions = 1, .a_backup_may_crash = true) \
    X(an_owner_of_three_copies_dies, .copies = 3, .changes = 2, .keys = 2, .crashes = 1, .promotions = 1, \
      .retries = 1) \
    X(owners_of_four_copies_reach_some_of_them, .copies = 4, .changes = 2, .keys = 2, .promotions = 2, \
      .cut_off = { 4 + 8, 0, 1, 1 + 4 }, .heirs = 4 + 8) \
    X(two_owners_of_three_copies_are_suspected, .copies = 3, .changes = 2, .keys = 2, .promotions = 2) \
    X(a_client_reads_of_three_copies, .copies = 3, .changes = 1, .keys = 1, .gets = 1, .promotions = 2, .ticks = 1) \
    POWER_SETTINGS(X)
/* Copies have logs. */
#define POWER_SETTINGS(X) \
    X(the_only_copy_loses_its_power, .copies = 1, .changes = 2, .keys = 2, .retries = 1, .powers = 2) \
    X(both_copies_lose_their_power, .copies = 2, .changes = 2, .keys = 2, .retries = 1, .powers = 1) \
    X(a_client_reads_and_both_copies_lose_their_power, .copies = 2, .changes = 1, .keys = 1, .gets = 2, .powers = 1) \
    X(both_copies_lose_their_power_twice, .copies = 2, .changes = 2, .keys = 1, .powers = 2) \
    X(an_owner_is_suspected_and_all_lose_their_power, .copies = 2, .changes = 2, .keys = 1, .promotions = 1, \
      .retries = 1, .powers = 1) \
    X(three_copies_lose_their_power_when_an_owner_is_suspected, .copies = 3, .changes = 1, .keys = 1, .promotions = 1, \
      .retries = 1, .powers = 1) \
    X(a_copy_is_added_and_all_lose_their_power, .copies = 1, .joiners = 1, .changes = 2, .keys = 1, .additions = 1, \
      .powers = 1) \
    X(a_removed_copy_joins_with_what_it_has_and_all_lose_their_power, .copies = 2, .changes = 2, .keys = 1, \
      .removals = 1, .promotions = 1, .powers = 1, .rejoins = true) \
    X(an_owner_dies_and_then_all_lose_their_power, .copies = 2, .changes = 2, .keys = 1, .crashes = 1, \
      .promotions = 1, .powers = 1)
/* clang-format on */

#define AS_SETTING(name_, ...) static const replica_setting name_##_setting = { .name = #name_, __VA_ARGS__ };
SETTINGS(AS_SETTING)
#define IN_LIST(name, ...) &name##_setting,
static const replica_setting *const settings[] = { SETTINGS(IN_LIST) };
enum { COUNT = sizeof settings / sizeof *settings };
#define COUNTED(...) +1
enum { POWER_COUNT = 0 POWER_SETTINGS(COUNTED) }; /* the last of them */
#define WITH_POWER (settings + COUNT - POWER_COUNT)

/* ---- the rules hold ---- */

#define HOLDS(name, ...) \
    TEST(nothing_is_lost_when_##name) { replica_holds(&name##_setting, (replica_mistakes){ 0 }); }
SETTINGS(HOLDS)

/* An owner waits for the beginning of its epoch too: its log has things in their order, so it costs nothing. Nothing is
 * lost without: what it inherits, it has acknowledged, so that is on its disk in the epoch before. */
TEST(an_owner_might_commit_what_it_inherits_before_its_epoch_is_logged) {
    replica_mistakes wrong = { .commits_before_the_epoch_is_logged = true };
    for (int i = COUNT - POWER_COUNT; i < COUNT; i++) replica_holds(settings[i], wrong);
}

/* ---- and each of them is needed ---- */

/* clang-format off */
#define MISTAKES(X) \
    X(live_before_acks) \
    X(answers_before_commit) \
    X(acks_before_prepared) \
    X(acks_old_epoch) \
    X(lets_go_before_applied) \
    X(adds_before_requiring) \
    X(adds_what_lacks_records) \
    X(requires_what_does_not_follow) \
    X(gives_up_on_an_addition) \
    X(adds_under_long_client_leases) \
    X(grants_beyond_backups) \
    X(serves_before_leases_end) \
    X(serves_unfollowed) \
    X(grants_without_counting) \
    X(forgets_grants_to_an_earlier_owner) \
    X(inherited_dropped) \
    X(inherited_shown_early) \
    X(late_commands) \
    X(restart_keeps_its_place) \
    X(sequences_stay_behind) \
    X(joiner_knows_no_sequences) \
    X(says_no_effect) \
    X(commits_with_too_few) \
    X(joins_after_an_epoch_missed)
#define LOG_MISTAKES(X) \
    X(commits_before_it_is_logged) \
    X(acks_before_it_is_logged) \
    X(acks_before_the_epoch_is_logged) \
    X(epoch_cuts_nothing_off) \
    X(joins_without_its_beginning) \
    X(restart_claims_its_memory)
/* clang-format on */
#define FINDS(mistake) \
    TEST(it_finds_##mistake) { replica_finds(#mistake, (replica_mistakes){ .mistake = true }, settings, COUNT); }
MISTAKES(FINDS)
#define FINDS_WITH_LOGS(mistake)                                                                 \
    TEST(it_finds_##mistake) {                                                                   \
        replica_finds(#mistake, (replica_mistakes){ .mistake = true }, WITH_POWER, POWER_COUNT); \
    }
LOG_MISTAKES(FINDS_WITH_LOGS)
#define RUN_HOLDS(name, ...) RUN(nothing_is_lost_when_##name);
#define RUN_FINDS(mistake)   RUN(it_finds_##mistake);

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    SETTINGS(RUN_HOLDS)
    RUN(an_owner_might_commit_what_it_inherits_before_its_epoch_is_logged);
    MISTAKES(RUN_FINDS)
    LOG_MISTAKES(RUN_FINDS)
    return check_end(argc, argv);
}
