/* index_model_test.c: splitting and merging buckets as they are done holds in every interleaving of some short
 * histories, and each mistake that could be made about them is found in one of these (index_machine.c is the machine).
 * */
#include <stdio.h>
#include "../check.h"
#include "index_machine.h"

#define PUT    INDEX_PUT
#define DELETE INDEX_DELETE
#define SPLIT  INDEX_SPLIT
#define MERGE  INDEX_MERGE
#define RETIRE INDEX_RETIRE
static const index_setting settings[] = {
    { "split, merge, and a PUT", { PUT, SPLIT, MERGE, PUT }, { 2, 1 } },
    { "split, merge, DELETE, PUT", { PUT, SPLIT, MERGE, DELETE, PUT }, { 2, 1 } },
    { "PUT between split and merge", { SPLIT, PUT, MERGE, PUT }, { 2, 1 } },
    { "split, merge, split", { PUT, SPLIT, MERGE, SPLIT, PUT }, { 2, 1 } },
    { "split, merge, split, merge", { PUT, SPLIT, MERGE, SPLIT, MERGE }, { 2, 1 } },
    { "three splits, two merges", { PUT, SPLIT, MERGE, SPLIT, MERGE, SPLIT, PUT }, { 2, 1 } },
    { "the same, of an empty bucket", { SPLIT, MERGE, SPLIT, PUT, MERGE, SPLIT, PUT }, { 2, 1 } },
    { "b' is split further", { PUT, SPLIT, MERGE, SPLIT, INDEX_SPLIT_IMAGE, PUT }, { 2, 1 } },
    { "memory goes and comes", { PUT, SPLIT, MERGE, RETIRE, SPLIT, PUT, MERGE }, { 2, 1 } },
    { "the same, of an empty bucket", { SPLIT, MERGE, RETIRE, SPLIT, PUT, MERGE }, { 2, 1 } },
};
enum { SETTINGS = sizeof settings / sizeof *settings };

TEST(splits_and_merges_are_linearizable_in_every_interleaving) {
    index_protocol right = { 0 };
    for (int i = 0; i < SETTINGS; i++) {
        search *s = index_explore(&right, &settings[i]);
        printf("# %-32s %8u states\n", settings[i].name, search_states(s));
        if (search_found(s)) search_print(s);
        CHECK(!search_found(s));
        search_free(s);
    }
}

/* The shortest violation in the first setting that has one. */
static void finds(const char *name, index_protocol p) {
    for (int i = 0; i < SETTINGS; i++) {
        search *s = index_explore(&p, &settings[i]);
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
    X(merged_before_the_copy) \
    X(merge_without_settling) \
    X(settling_ends_at_once) \
    X(merged_slots_cleared_at_once) \
    X(number_used_again_without_settling) \
    X(number_in_new_memory_counts_as_new) \
    X(number_used_again_before_it_was_cleared) \
    X(split_ends_settling) \
    X(merge_of_a_settling_bucket) \
    X(merge_while_slots_move) \
    X(reader_believes_a_settling_bucket) \
    X(reader_keeps_what_it_saw_for_another_try) \
    X(reader_takes_merged_slots)
/* clang-format on */
#define FINDS(mistake) \
    TEST(it_finds_##mistake) { finds(#mistake, (index_protocol){ .mistake = true }); }
MISTAKES(FINDS)
#define RUN_FINDS(mistake) RUN(it_finds_##mistake);

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    RUN(splits_and_merges_are_linearizable_in_every_interleaving);
    MISTAKES(RUN_FINDS)
    return check_end(argc, argv);
}
