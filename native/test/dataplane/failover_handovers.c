/* failover_handovers.c: owners of failover.c that give their shard to a copy in sync, and go on as copies, as owners, or not
 * at all. */
#include <stdlib.h>
#include "failover_life.h"

static void handed(void *ctx, fkv_status status, void *result) {
    node *n = ctx;
    free(result);
    if (n->hands != HANDING) return; /* it was deposed */
    n->hands = status == FKV_OK ? HANDED : NOT_HANDING;
    n->handed_in = n->config;
}

/* To the next server that has a copy in sync. */
void life_hand_over(uint32_t s) {
    node *n = &life.node[s];
    const config *c = &life.at[n->config];
    if (!runs(s) || n->left || c->owner != s || !n->leads || !n->serves || n->hands != NOT_HANDING) return;
    for (n->heir = (s + 1) % SERVERS; n->heir != s && !has_copy(c, n->heir);) n->heir = (n->heir + 1) % SERVERS;
    if (n->heir == s) return;
    n->hands = HANDING;
    dataplane_hand_over(n->d, 0, c->id[n->heir], handed, n);
}

/* Until a later config comes it does not go on: the handover may still come. */
void life_ask_for_heir(uint32_t s) {
    node *n = &life.node[s];
    if (n->hands != HANDED || n->config != n->handed_in || fkv_now_ns() - n->proposed_ns < 10 * MS) return;
    if (life.heals || any(3) == 0)
        life_propose(KEEP, s, s);
    else
        life_propose(any(2) ? HAND_OVER : HAND_OVER_AND_END, s, n->heir);
}

static void done(void *ctx, fkv_status status, void *result) {
    CHECK_EQ(status, FKV_OK);
    free(result);
    *(bool *)ctx = true;
}

void life_handed_over(uint32_t s, const config *c) {
    node *n = &life.node[s];
    bool is_done = false, is_owner = c->owner == s && c->epoch == life.at[n->config - 1].epoch;
    if (n->hands == HANDED && is_owner) {
        dataplane_serve_shard(n->d, 0, done, &is_done);
        n->hands = NOT_HANDING;
    } else if (n->hands == HANDED && has_copy(c, s)) {
        dataplane_step_down(n->d, 0, n->id, done, &is_done);
        n->leads = n->serves = false;
        n->hands = NOT_HANDING;
    } else {
        if (c->owner != s) n->hands = NOT_HANDING;
        return;
    }
    while (!is_done) life_node_turn(n);
}
