/* replica_faults.c: steps of replica_machine.c that no server takes: what the metadata decides, and what goes wrong:
 * crashes, restarts, links that break, and time. Loss of power is in replica_disks.c. */
#include <string.h>
#include "replica_world.h"

/* ---- the metadata ---- */

void step_metadata(const machine *m, const world *x) {
    for (int s = 0; s < SERVERS; s++) {
        const proposal *p = &x->proposal[s];
        const entry *e = &x->entry[x->config];
        if (p->kind == NOTHING) continue;
        world n = *x;
        n.proposal[s] = (proposal){ 0 };
        bool fits = p->epoch == e->epoch && p->config == x->config && (p->kind != ADD || !has_id(e->anew, p->id));
        if (!fits && !m->wrong->late_commands) {
            world_reach(m, &n, METADATA, "refuses what is not of its config, of server", (uint32_t)s);
            continue;
        }
        if (x->config == CONFIGS) continue;
        entry *next = &n.entry[++n.config];
        *next = *e;
        next->joining &= ~(1u << p->id);
        if (p->kind != PROMOTE) next->marked &= ~(1u << p->id);
        if (p->kind == ADD) next->in_sync |= 1u << p->id;
        if (p->kind == REMOVE) {
            next->in_sync &= ~(1u << p->id);
            bool may = !has_id(e->marked, p->id) || m->wrong->marked_rejoins;
            if (m->set->rejoins && may) next->joining |= 1u << p->id;
        }
        if (p->kind == PROMOTE) {
            next->in_sync &= ~(1u << e->owner);
            if (m->set->deposed_join)
                next->joining |= 1u << e->owner;
            else
                next->joining = 0;
            next->owner = p->id;
            next->epoch++;
            if (!m->wrong->marks_go_with_the_owner) { next->in_sync &= ~e->marked; }
            next->marked = 0;
        }
        static const char *const what[] = { "", "adds server", "removes server", "promotes server" };
        world_reach(m, &n, METADATA, what[p->kind], (uint32_t)server_of(p->id));
    }
}

/* ---- what goes wrong ---- */

static void crash(const machine *m, const world *x, int s) {
    world n = *x;
    server *v = &n.server[s];
    if (!n.crashes || (v->role != OWNER && !m->set->a_backup_may_crash)) return;
    n.crashes--;
    v->alive = 0;
    v->owner = (replica_owner){ .last = v->owner.last, .committed = v->owner.committed };
    for (int t = 0; t < SERVERS; t++) { /* what it sent may still arrive */
        n.link[s][t].up = n.link[t][s].up = 0;
        memset(&n.link[s][t].back, 0, sizeof n.link[s][t].back);
        memset(&n.link[t][s].to, 0, sizeof n.link[t][s].to);
    }
    for (int i = 0; i < CHANGES; i++) n.change[i].copy[s] = 0;
    world_reach(m, &n, s, "dies", 0);
}

static void restart(const machine *m, const world *x, int s) {
    world n = *x;
    server *v = &n.server[s];
    if (!n.restarts) return;
    n.restarts--;
    for (int t = 0; t < SERVERS; t++) world_drop(&n.link[s][t]), world_drop(&n.link[t][s]);
    if (n.reader.at == (uint32_t)s + 1) n.reader = (reader){ .gets_left = n.reader.gets_left };
    uint32_t life = v->life + !m->wrong->restart_keeps_its_place;
    *v = (server){ .alive = 1, .life = life, .applied = x->config, .copy.log.kept = v->copy.log.kept };
    world_reach(m, &n, s, "starts, empty", 0);
}

void step_faults(const machine *m, const world *x) {
    for (int s = 0; s < SERVERS; s++) {
        if (x->server[s].alive)
            crash(m, x, s);
        else if (s < m->set->copies + m->set->joiners)
            restart(m, x, s);
        for (int t = 0; t < SERVERS && x->breaks; t++) {
            if (!x->link[s][t].up) continue;
            world n = *x;
            n.breaks--;
            world_drop(&n.link[s][t]);
            world_reach(m, &n, s, "loses its link to server", (uint32_t)t);
        }
    }
    if (x->now < (uint32_t)m->set->ticks) {
        world n = *x;
        n.now++;
        world_reach(m, &n, TIME, "is now", n.now);
    }
}
