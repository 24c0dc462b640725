/* failover_metadata.c: the metadata of failover.c, a list of configs that a proposal adds to if it names the last one; and
 * who asks it for what. */
#include "../../replication/owner_link.h"
#include "failover_life.h"

void life_propose(proposal_kind kind, uint32_t by, uint32_t server) {
    uint32_t number = life.node[by].config;
    life.node[by].proposed_ns = fkv_now_ns();
    if (!life.heals && chance(100000)) return; /* lost */
    for (int i = 0; i < PROPOSALS; i++) {
        if (life.proposal[i].kind) continue;
        life.proposal[i] = (proposal){ .kind = kind,
                                       .epoch = life.at[number].epoch,
                                       .config = number,
                                       .server = server,
                                       .id = life.node[server].id,
                                       .due_ns = fkv_now_ns() + MS + any(life.heals || any(4) ? 5 : 100) * MS };
        return;
    }
}

static void decide(const proposal *p) {
    const config *c = now_in_force();
    config next = *c;
    if (p->config != life.last || p->epoch != c->epoch || life.last + 1 == CONFIGS) return;
    switch (p->kind) {
    case PROMOTE:
        if (!has_copy(c, p->server) || c->owner == p->server) return;
        next.copies &= ~(1u << c->owner);
        if (any(4)) next.joining |= 1u << c->owner;
        next.owner = p->server;
        next.epoch++;
        life.counts->promotions++;
        break;
    case REMOVE:
        if (!has_copy(c, p->server)) return;
        next.copies &= ~(1u << p->server);
        if (any(2)) next.joining |= 1u << p->server;
        life.counts->removals++;
        break;
    case ADD:
        next.copies |= 1u << p->server;
        life.counts->rejoins += (c->joining >> p->server & 1) && c->id[p->server] == p->id;
        next.joining &= ~(1u << p->server);
        next.id[p->server] = p->id;
        life.counts->additions++;
        break;
    case KEEP: break;
    case HAND_OVER:
    case HAND_OVER_AND_END:
        if (!has_copy(c, p->server) || c->owner == p->server || c->id[p->server] != p->id) return;
        if (p->kind == HAND_OVER_AND_END) next.copies &= ~(1u << c->owner);
        next.owner = p->server;
        next.epoch++;
        life.counts->handovers++;
        break;
    }
    next.joining &= ~(1u << next.owner);
    next.handed = next.epoch == c->epoch ? c->handed : p->kind >= HAND_OVER;
    life.at[++life.last] = next;
}

void life_decide(void) {
    for (int i = 0; i < PROPOSALS; i++) {
        if (!life.proposal[i].kind || life.proposal[i].due_ns > fkv_now_ns()) continue;
        proposal p = life.proposal[i];
        life.proposal[i].kind = 0;
        decide(&p);
    }
}

/* ---- what servers decide ---- */

/* A copy suspects its owner: it leaves it, and asks to be the next. */
void life_suspect(uint32_t s) {
    const config *c = &life.at[life.node[s].config];
    if (!runs(s) || life.node[s].left || c->owner == s || !has_copy(c, s)) return;
    owner_link_leave(copy_at(s));
    life.node[s].suspects = true;
    life_propose(PROMOTE, s, s);
}
/* Those that suspect it ask again until a later config comes. */
void life_ask_again(uint32_t s) {
    if (!runs(s) || life.node[s].left || life.node[s].leads || !life.node[s].suspects) return;
    if (fkv_now_ns() - life.node[s].proposed_ns > 50 * MS) life_propose(PROMOTE, s, s);
}
static void relied(void *ctx, fkv_status status, void *result) {
    node *o = ctx;
    (void)result;
    o->relies = false;
    if (status == FKV_OK && o->config == o->removes_in) life_propose(REMOVE, (uint32_t)(o - life.node), o->removes);
}
/* Its owner asks, once its own disk has what was answered. */
void life_remove_copy(uint32_t s) {
    uint32_t owner = now_in_force()->owner;
    node *o = &life.node[owner];
    if (!runs(owner) || !o->leads || o->relies || s == owner || !has_copy(&life.at[o->config], s)) return;
    o->relies = true;
    o->removes = s;
    o->removes_in = o->config;
    dataplane_rely_on_disk(o->d, 0, relied, o);
}
