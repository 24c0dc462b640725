/* replica_early_model_test.c: rules for copies that answer before their disks (replica_early.c) lose only what they may, in
 * every interleaving of some short histories, and each mistake that could be made with them is found in one. */
#include <stdio.h>
#include "../check.h"
#include "replica_machine.h"

/* clang-format off */
#define SETTINGS(X) \
    X(both_copies_lose_their_power, .copies = 2, .changes = 2, .keys = 2, .retries = 1, .powers = 1) \
    X(a_client_reads_and_both_copies_lose_their_power, .copies = 2, .changes = 1, .keys = 1, .gets = 2, .powers = 1) \
    X(both_copies_lose_their_power_twice, .copies = 2, .changes = 2, .keys = 1, .powers = 2) \
    X(a_backup_crashes_and_returns, .copies = 2, .changes = 1, .keys = 1, .crashes = 1, .returns = 1, .removals = 1, \
      .promotions = 1, .a_backup_may_crash = true, .rejoins = true) \
    X(both_copies_crash_one_after_the_other, .copies = 2, .changes = 2, .keys = 1, .crashes = 2, .returns = 2, \
      .promotions = 1, .a_backup_may_crash = true) \
    X(an_owner_is_suspected_and_all_lose_their_power, .copies = 2, .changes = 2, .keys = 1, .promotions = 1, \
      .retries = 1, .powers = 1) \
    X(a_removed_copy_has_what_is_lost, .copies = 2, .changes = 1, .keys = 1, .crashes = 1, .returns = 1, \
      .removals = 1, .rejoins = true, .promotions = 1) \
    X(one_of_three_returns_and_two_owners_crash, .copies = 3, .changes = 1, .keys = 1, .crashes = 2, .returns = 1, \
      .promotions = 1, .heirs = 2, .a_backup_may_crash = true) \
    X(a_copy_is_removed_and_its_owner_crashes, .copies = 2, .changes = 2, .keys = 1, .crashes = 1, .returns = 1, \
      .removals = 1) \
    X(one_returns_to_the_next_owner_and_both_crash, .copies = 3, .changes = 1, .keys = 1, .crashes = 3, .returns = 3, \
      .promotions = 1, .heirs = 2, .a_backup_may_crash = true)
/* clang-format on */

#define AS_SETTING(name_, ...) \
    static const replica_setting name_##_setting = { .name = #name_, .early = true, __VA_ARGS__ };
SETTINGS(AS_SETTING)
#define IN_LIST(name, ...) &name##_setting,
static const replica_setting *const settings[] = { SETTINGS(IN_LIST) };
enum { COUNT = sizeof settings / sizeof *settings };

#define HOLDS(name, ...) \
    TEST(only_what_may_be_is_lost_when_##name) { replica_holds(&name##_setting, (replica_mistakes){ 0 }); }
SETTINGS(HOLDS)

/* clang-format off */
#define MISTAKES(X) \
    X(returns_unmarked) \
    X(marked_follows) \
    X(marked_rejoins) \
    X(marked_asks_to_lead) \
    X(leads_before_all_return) \
    X(shortest_leads) \
    X(answers_late) \
    X(marks_go_with_the_owner) \
    X(others_go_on) \
    X(disk_skips_a_record) \
    X(removes_what_its_disk_lacks) \
    X(alone_answers_early) \
    X(restart_claims_its_memory)
/* clang-format on */
#define FINDS(mistake) \
    TEST(it_finds_##mistake) { replica_finds(#mistake, (replica_mistakes){ .mistake = true }, settings, COUNT); }
MISTAKES(FINDS)
#define RUN_HOLDS(name, ...) RUN(only_what_may_be_is_lost_when_##name);
#define RUN_FINDS(mistake)   RUN(it_finds_##mistake);

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    SETTINGS(RUN_HOLDS)
    MISTAKES(RUN_FINDS)
    return check_end(argc, argv);
}
