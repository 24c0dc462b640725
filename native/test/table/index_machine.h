/* index_machine.h: splits and merges of two buckets as a small machine whose every interleaving can be searched
 * (index_machine.c). */
#ifndef FARKV_TEST_INDEX_MACHINE_H
#define FARKV_TEST_INDEX_MACHINE_H
#include "search.h"

/* ---- what may be changed about the protocol; each must be found ---- */
typedef struct index_protocol {
    bool merged_before_the_copy; /* b' is MERGED, and b covers its keys, before they are there */
    bool merge_without_settling; /* b is published without the mark */
    bool settling_ends_at_once;  /* the marks are cleared before the quarantine has passed */
    bool merged_slots_cleared_at_once;
    /* b' is published without the mark, although there was such a bucket before */
    bool number_used_again_without_settling;
    bool number_in_new_memory_counts_as_new; /* the same, only where its memory is new */
    bool number_used_again_before_it_was_cleared;
    bool split_ends_settling; /* a SETTLING bucket that is split loses the mark */
    bool merge_of_a_settling_bucket;
    bool merge_while_slots_move;
    bool reader_believes_a_settling_bucket;
    bool reader_keeps_what_it_saw_for_another_try;
    bool reader_takes_merged_slots;
} index_protocol;

typedef enum {
    NO_STEP = 0,
    INDEX_PUT,
    INDEX_DELETE,
    INDEX_SPLIT,
    INDEX_SPLIT_IMAGE,
    INDEX_MERGE,
    INDEX_RETIRE
} index_op;
typedef struct index_setting {
    const char *name;
    index_op script[8];
    int gets[2]; /* of each reader */
} index_setting;

/* Visits every state that can be reached, until the results of GETs are not those of one register (search_found). */
search *index_explore(const index_protocol *p, const index_setting *set);
#endif
