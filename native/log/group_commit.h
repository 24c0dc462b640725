/* group_commit.h: when a log's next batch goes to the disk: at once, or a little later, with the changes that are about to
 * come because a batch was answered. Private to native/log.
 *
 * Clients that wait for answers send their next changes when a batch has come home. If what had gathered meanwhile went
 * at once, those would wait for it: half of the clients would always sit in one batch, and half in the next. So the next
 * batch waits until as many records have come as were answered, for half a sync's time at the most. A wait is worth its
 * time when half of them did; habit.h says how often it is tried where it is not.
 *
 * DeWitt, Katz, Olken, Shapiro, Stonebraker, Wood, "Implementation techniques for main memory database systems", SIGMOD
 * 1984, section 5.2, has the idea of a group. One thread uses it; each call says the time. */
#ifndef FARKV_LOG_GROUP_COMMIT_H
#define FARKV_LOG_GROUP_COMMIT_H
#include <stdbool.h>
#include <stdint.h>
#include "../base/habit.h"

enum { GROUP_WAIT_MAX_NS = 2 * 1000 * 1000, GROUP_USUAL = 8 /* syncs that the usual time is a mean of, about */ };

typedef struct group_commit {
    habit habit;
    uint64_t began_ns;  /* when the batch that is under way went; 0: none did */
    uint64_t usual_ns;  /* from going to coming home */
    uint64_t home_ns;   /* when the latest came home */
    uint64_t until_ns;  /* the next waits so long at the most; 0: it does not */
    uint32_t answered;  /* records of the latest batch */
    uint32_t had, want; /* records that were gathered when it came home; that the next one waits for */
    bool waited;        /* the next could have gone before */
} group_commit;

/* A batch of so many records goes. */
void group_commit_goes(group_commit *g, uint64_t now_ns, uint32_t records);
/* It has come home; so many have gathered for the next. */
void group_commit_home(group_commit *g, uint64_t now_ns, uint32_t gathered);
/* Whether the next batch, with so many records, goes now; none is under way. */
bool group_commit_ready(group_commit *g, uint64_t now_ns, uint32_t records);
/* When it goes in any case; UINT64_MAX: nothing waits. */
static inline uint64_t group_commit_deadline(const group_commit *g) { return g->waited ? g->until_ns : UINT64_MAX; }

#endif
