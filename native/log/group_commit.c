/* group_commit.c: see group_commit.h. */
#include "group_commit.h"

void group_commit_goes(group_commit *g, uint64_t now_ns, uint32_t records) {
    if (g->waited) {
        /* Another batch could have been on its way for so long. */
        bool helped = records >= g->had && (records - g->had) * 2 >= g->answered && now_ns - g->home_ns <= g->usual_ns;
        (helped ? habit_helped : habit_in_vain)(&g->habit);
    }
    g->waited = false;
    g->until_ns = 0;
    g->began_ns = now_ns;
    g->answered = records;
}

void group_commit_home(group_commit *g, uint64_t now_ns, uint32_t gathered) {
    uint64_t took = now_ns - g->began_ns;
    g->usual_ns = g->usual_ns ? g->usual_ns - g->usual_ns / GROUP_USUAL + took / GROUP_USUAL : took;
    g->home_ns = now_ns;
    g->had = gathered;
    g->want = gathered + g->answered;
    uint64_t most = g->usual_ns / 2 < GROUP_WAIT_MAX_NS ? g->usual_ns / 2 : GROUP_WAIT_MAX_NS;
    g->until_ns = now_ns + most;
}

bool group_commit_ready(group_commit *g, uint64_t now_ns, uint32_t records) {
    if (records >= g->want || now_ns >= g->until_ns) return true;
    if (!g->waited && !habit_tries(&g->habit)) {
        g->until_ns = 0;
        return true;
    }
    g->waited = true;
    return false;
}
