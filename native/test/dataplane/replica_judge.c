/* replica_judge.c: what the tests of models expect of a search of replica_machine.c: that nothing is found, or something. */
#include <stdio.h>
#include "../check.h"
#include "replica_machine.h"

void replica_holds(const replica_setting *set, replica_mistakes wrong) {
    search *s = replica_explore(&wrong, set);
    printf("# %-55s %8u states\n", set->name, search_states(s));
    if (search_found(s)) search_print(s);
    CHECK(!search_found(s));
    search_free(s);
}

void replica_finds(const char *mistake, replica_mistakes wrong, const replica_setting *const *settings, int count) {
    for (int i = 0; i < count; i++) {
        search *s = replica_explore(&wrong, settings[i]);
        bool found = search_found(s), stopped = search_stopped(s);
        if (found) {
            printf("# %s, when %s:\n", mistake, settings[i]->name);
            search_print(s);
        }
        search_free(s);
        if (found || stopped) return;
    }
    check_failed(__FILE__, __LINE__, mistake);
}
