/* replica_early.c: of the machine of replica_machine.c, copies that answer early: what they have prepared is in their log's
 * buffer, counts, and is on the disk some time after. So a copy that crashed may come back without what it acknowledged.
 * Docs/early-answers.md has the rules.
 *
 *   marked    The entry that brings a copy in sync back marks it, until it is removed and added anew. It does not lead
 *             while a copy in sync has no mark.
 *   follows   A marked copy follows nobody: its owner waits for it until it is removed. Then it begins anew; the owner may
 *             still count what it acknowledged before it crashed. So does a copy that crashed while it joined.
 *   longest   When all copies in sync are marked, the one with the highest (epoch, lsn) leads the next epoch. Copies that
 *             were not in sync begin anew: they may have what is lost.
 *   taken out With a new owner's entry the marked copies are not in sync any more, but those with a log as long as that of
 *             the longest. Else their disks would begin its epoch without records of before, and count as higher.
 *   answers   An owner answers only while no other may lead: here while it is the owner by the metadata, as under a lease.
 *   alone     An owner without another copy in sync counts what is on its disk.
 *   taken away  So it does from before it asks for a copy to be removed; it asks when all that it has committed is there.
 *
 * Lost may be only what no copy in sync had when all of them had crashed, only from some record on, and for ever. */
#include <string.h>
#include "replica_world.h"

void world_buffers(const machine *m, server *v) {
    replica_log *l = v->role == OWNER ? &v->owner.log : &v->copy.log;
    uint32_t epoch = v->role == OWNER ? v->owner.epoch : v->copy.epoch;
    if (m->set->early && l->epoch == epoch) l->buffered = prepared_of(v);
}

bool world_may_ask_to_remove(const machine *m, server *v) {
    if (!m->set->early || m->wrong->removes_what_its_disk_lacks) return true;
    replica_rely_on_disk(&v->owner);
    return replica_is_on_disk(&v->owner);
}

/* ---- all in sync have crashed ---- */

static bool is_higher(const server *a, const server *b) {
    return a->copy.epoch > b->copy.epoch || (a->copy.epoch == b->copy.epoch && a->copy.prepared > b->copy.prepared);
}

/* What is wrong with what the next owner lacks. */
static const char *loses(const machine *m, world *x, int leads, uint32_t in_sync) {
    for (uint32_t i = 1; i <= CHANGES; i++) {
        change *c = &x->change[i - 1];
        const server *v = &x->server[leads];
        uint32_t at = world_lsn(v, i);
        if (!c->lsn || (at == c->lsn && v->log[at - 1].epoch == c->epoch)) continue;
        if (at) return "has a change at another place";
        for (int t = 0; t < SERVERS; t++)
            if (has_id(in_sync, id_of(x, t)) && world_lsn(&x->server[t], i)) return "lacks what a copy in sync has";
        /* Where nobody was promoted, only who crashed has lost it: a copy that is removed leaves it on another disk. */
        for (int t = 0; t < SERVERS && !m->set->promotions; t++)
            if (x->server[t].alive && world_lsn(&x->server[t], i)) return "lacks what a server that lives has";
        for (uint32_t k = 1; k <= CHANGES; k++) {
            const change *later = &x->change[k - 1];
            if (later->lsn > c->lsn && world_lsn(v, k)) return "has a change without one before";
        }
        c->lost = 1;
    }
    for (int i = 0; i < CHANGES; i++)
        if (x->change[i].lost) x->change[i].lsn = x->change[i].epoch = 0;
    return NULL;
}

static void longest_leads(const machine *m, const world *x) {
    const entry *e = &x->entry[x->config];
    int leads = -1;
    if (!e->marked || x->config == CONFIGS || (e->marked != e->in_sync && !m->wrong->leads_before_all_return)) return;
    for (int s = 0; s < SERVERS; s++) {
        const server *v = &x->server[s];
        if (!has_id(e->marked, id_of(x, s))) continue;
        if (!v->alive || v->role == OWNER) return;
        if (leads < 0 || (is_higher(v, &x->server[leads]) != m->wrong->shortest_leads)) leads = s;
    }
    world n = *x;
    const char *wrong = loses(m, &n, leads, e->in_sync);
    if (wrong) {
        world_wrong(m, METADATA, wrong, (uint32_t)leads);
        return;
    }
    entry *next = &n.entry[++n.config];
    *next = *e;
    next->epoch++;
    next->owner = id_of(x, leads);
    next->marked = 0;
    if (!m->wrong->others_go_on) next->joining = 0;
    for (int s = 0; s < SERVERS; s++) {
        const server *v = &x->server[s], *l = &x->server[leads];
        if (!has_id(e->in_sync, id_of(x, s)) || m->wrong->marks_go_with_the_owner) continue;
        if (v->alive && v->copy.epoch == l->copy.epoch && v->copy.prepared == l->copy.prepared) continue;
        next->in_sync &= ~(1u << id_of(x, s));
    }
    n.reader = (reader){ .gets_left = n.reader.gets_left };
    world_reach(m, &n, METADATA, "has the longest log lead, of server", (uint32_t)leads);
}

/* ---- servers crash, and return ---- */

static void returns(const machine *m, world *x, int s) {
    const entry *e = &x->entry[x->config];
    uint32_t bit = 1u << id_of(x, s);
    entry *next = &x->entry[++x->config];
    *next = *e;
    if ((e->in_sync & bit) && !m->wrong->returns_unmarked) next->marked |= bit;
    if (!(e->in_sync & bit) && !m->wrong->others_go_on) next->anew |= bit, next->joining &= ~bit;
    if (e->owner == id_of(x, s)) next->owner = 0;
    for (int t = 0; t < SERVERS; t++) world_drop(&x->link[s][t]), world_drop(&x->link[t][s]);
    for (int i = 0; i < CHANGES; i++) x->change[i].copy[s] = 0;
    if (x->reader.at == (uint32_t)s + 1) x->reader = (reader){ .gets_left = x->reader.gets_left };
    world_wakes(m, x, s);
}

static void one_returns(const machine *m, const world *x, int s) {
    const entry *e = &x->entry[x->config];
    if (x->server[s].alive || !x->returns || x->config == CONFIGS) return;
    if (!has_id(e->in_sync | e->joining, id_of(x, s))) return;
    world n = *x;
    n.returns--;
    returns(m, &n, s);
    world_reach(m, &n, s, "returns with what its disk has, up to", n.server[s].disk.last);
}

void step_early(const machine *m, const world *x) {
    if (!m->set->early) return;
    longest_leads(m, x);
    for (int s = 0; s < SERVERS; s++) one_returns(m, x, s);
}

/* All that are in sync come back, with one entry. Others that have a copy do not. */
void lose_power_early(const machine *m, const world *x) {
    const entry *e = &x->entry[x->config];
    if (!x->powers || x->config == CONFIGS) return;
    world n = *x;
    n.powers--;
    memset(n.link, 0, sizeof n.link);
    n.reader = (reader){ .gets_left = n.reader.gets_left };
    for (int s = 0; s < SERVERS; s++) {
        n.config = x->config;
        if (has_id(e->in_sync, id_of(x, s)))
            returns(m, &n, s);
        else
            n.server[s] = (server){ .life = n.server[s].life, .copy.log.kept = 1 };
    }
    n.config = x->config + 1;
    entry *next = &n.entry[n.config];
    *next = *e;
    next->owner = 0;
    next->marked = m->wrong->returns_unmarked ? 0 : e->in_sync;
    world_reach(m, &n, TIME, "has passed without power", 0);
}
