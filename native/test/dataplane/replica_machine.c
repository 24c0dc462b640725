/* replica_machine.c: replication as a machine, and every interleaving of it: what servers do. What the metadata decides
 * and what goes wrong is in replica_faults.c, disks and the loss of power are in replica_disks.c, copies that answer early
 * in replica_early.c, clients and readers in replica_clients.c, what must hold in each state in replica_invariants.c,
 * the state in replica_world.h.
 *
 * The rules are the product's: each server has a replica_backup, an owner a replica_owner, and every step below asks
 * those what to do (native/replication/rules/replica.h); retries are recognised by the product's dedup.c. The machine brings
 * what the product's files leave to their caller: messages, one at a time on each link, in order, lost with it; the
 * metadata's entries, which each server applies when it likes; time, in ticks, in which a copy's lease lasts one and a
 * client's two; crashes. Every step is atomic.
 *
 *   owner      takes a request; sends the next record; receives an acknowledgement, and commits what it may; answers;
 *              connects to a backup, which follows it; joins a copy, requires it, asks for it to be in sync; asks for a
 *              copy to be removed; applies a config; begins to serve
 *   backup     prepares a record; acknowledges what it has, with a lease; suspects its owner, and asks to be promoted;
 *              applies a config, and may be the owner by it
 *   disk       where copies have logs: writes the next record, or the beginning of an epoch; all servers lose their
 *              power, and those that come back have what it wrote
 *   metadata   makes a proposal the next config if its names fit, however late; each proposal once, or never
 *   client     sends a change, sends it again elsewhere; reads of one key by one-sided READs under a lease */
#include "replica_world.h"
#include <string.h>

uint32_t world_right(const machine *m, const server *s) {
    return m->set->ticks == 0 ? NO_END : (uint32_t)replica_right(&s->owner, NO_END);
}

/* ---- the owner ---- */

static replica_peer *peer_at(server *v, int t) {
    for (int i = 0; i < REPLICA_PEERS; i++)
        if (v->owner.peer[i].standing != REPLICA_NONE && server_of((uint32_t)v->owner.peer[i].id) == t)
            return &v->owner.peer[i];
    return NULL;
}

/* Commits what may be; false: with fewer copies than a new record needs. */
static bool settle(const machine *m, world *x, int s) {
    server *v = &x->server[s];
    uint64_t before = v->owner.committed;
    if (m->wrong->commits_with_too_few) v->owner.min_in_sync = 0;
    replica_log log = v->owner.log;
    if (m->wrong->commits_before_it_is_logged) v->owner.log.kept = 0;
    if (m->wrong->commits_before_the_epoch_is_logged) v->owner.log.epoch = v->owner.epoch;
    replica_commit(&v->owner);
    v->owner.log = log;
    if (v->owner.committed == before || v->owner.committed <= v->owner.inherited) return true;
    int copies = 0;
    for (int t = 0; t < SERVERS; t++) {
        uint32_t id = id_of(x, t);
        copies += has_id(x->entry[v->applied].in_sync, id) && prepared_of(&x->server[t]) >= v->owner.committed;
    }
    return copies >= m->set->min_in_sync;
}

void world_settle(const machine *m, world *x, int s, const char *what, uint32_t number) {
    if (settle(m, x, s))
        world_reach(m, x, s, what, number);
    else
        world_wrong(m, s, "commits a record that too few copies have", number);
}

static void owner_sends(const machine *m, const world *x, int s, int t) {
    world n = *x;
    server *v = &n.server[s];
    link *l = &n.link[s][t];
    if (l->up && !l->to.full && l->sent < v->owner.last) {
        l->sent++;
        l->to.full = 1;
        l->to.epoch = v->owner.epoch;
        l->to.lsn = l->sent;
        l->to.committed = (uint32_t)v->owner.committed;
        l->to.what = v->log[l->sent - 1];
        world_reach(m, &n, s, "sends record", l->sent);
    }
}

static void owner_receives(const machine *m, const world *x, int s, int t) {
    world n = *x;
    link *l = &n.link[s][t];
    replica_peer *p = peer_at(&n.server[s], t);
    if (!l->back.full) return;
    replica_ack a = { .epoch = l->back.epoch, .prepared = l->back.prepared };
    if (p) replica_acked(&n.server[s].owner, p->id, &a, l->back.lease);
    memset(&l->back, 0, sizeof l->back);
    world_settle(m, &n, s, "receives an acknowledgement up to", (uint32_t)a.prepared);
}

/* The backup follows this owner, and says from where it wants records. */
static void owner_connects(const machine *m, const world *x, int s, int t) {
    world n = *x;
    server *v = &n.server[s], *b = &n.server[t];
    replica_peer *p = peer_at(v, t);
    if (m->set->cut_off[s] >> t & 1) return;
    /* Whom a copy looks for, which matters where it may lead with less than it had. */
    if (m->set->early && x->entry[b->applied].owner != id_of(x, s)) return;
    if (has_id(x->entry[b->applied].marked, id_of(x, t)) && !m->wrong->marked_follows) return;
    if (!p || p->id != id_of(x, t) || !b->alive || b->role == OWNER || n.link[s][t].up) return;
    replica_backup before = b->copy;
    if (!replica_goes_on(&v->owner, p->id, b->copy.epoch) && !m->wrong->joins_after_an_epoch_missed) return;
    if (v->owner.epoch > b->copy.epoch && b->copy.committed > v->owner.inherited) {
        world_wrong(m, s, "truncates what has taken effect", (uint32_t)v->owner.inherited);
        return;
    }
    if (!replica_follow(&b->copy, v->owner.epoch, v->owner.inherited)) return;
    if (m->wrong->forgets_grants_to_an_earlier_owner && b->copy.epoch != before.epoch) b->copy.granted_until_ns = 0;
    for (uint64_t at = b->copy.prepared; at < LOG; at++) b->log[at] = (record){ 0 };
    if (b->disk.right > b->copy.prepared) b->disk.right = (uint32_t)b->copy.prepared;
    /* Without a log that is all that its first acknowledgement would say. */
    if (!b->copy.log.kept) p->follows = 1;
    n.link[s][t] = (link){ .up = 1, .sent = (uint32_t)b->copy.prepared };
    world_reach(m, &n, s, "is followed by server", (uint32_t)t);
}

static bool may_propose(const world *x, int s) {
    return x->proposal[s].kind == NOTHING || x->proposal[s].config < x->server[s].applied;
}
static void propose(world *x, int s, uint32_t kind, uint32_t id) {
    const server *v = &x->server[s];
    x->proposal[s] = (proposal){ kind, x->entry[v->applied].epoch, v->applied, id };
}

static void owner_removes(const machine *m, const world *x, int s, int t) {
    world n = *x;
    replica_peer *p = peer_at(&n.server[s], t);
    if (!p || p->standing != REPLICA_IN_SYNC || !n.removals || !may_propose(x, s)) return;
    if (!world_may_ask_to_remove(m, &n.server[s])) {
        world_reach(m, &n, s, "relies on its disk before it asks to remove server", (uint32_t)t);
        return;
    }
    n.removals--;
    propose(&n, s, REMOVE, (uint32_t)p->id);
    if (m->wrong->lets_go_before_applied) *p = (replica_peer){ 0 };
    world_settle(m, &n, s, "asks to remove server", (uint32_t)t);
}

static void owner_joins(const machine *m, const world *x, int s, int t) {
    world n = *x;
    server *v = &n.server[s], *b = &n.server[t];
    if (!n.additions || peer_at(v, t) || !b->alive || b->role == OWNER) return;
    if (v->owner.epoch < b->copy.epoch) return;
    if (!replica_join(&v->owner, id_of(x, t))) return;
    n.additions--;
    uint32_t logs = b->copy.log.kept;
    b->copy = replica_copied(v->owner.epoch, v->owner.committed);
    b->copy.log.kept = logs;
    memset(b->log, 0, sizeof b->log);
    memcpy(b->log, v->log, v->owner.committed * sizeof *b->log);
    b->joined = (uint32_t)v->owner.committed;
    b->disk.right = 0;
    for (int o = 0; o < SERVERS; o++) world_drop(&n.link[o][t]);
    n.link[s][t] = (link){ .up = 1, .sent = b->joined };
    world_reach(m, &n, s, "is copied by server", (uint32_t)t);
}

static void owner_adds(const machine *m, const world *x, int s, int t) {
    world n = *x;
    server *v = &n.server[s];
    replica_peer *p = peer_at(&n.server[s], t);
    if (!p || p->standing == REPLICA_IN_SYNC) return;
    if (p->standing == REPLICA_JOINS && !m->wrong->adds_before_requiring) {
        if (m->wrong->requires_what_does_not_follow) p->follows = 1;
        if (!replica_require(&v->owner, p->id, v->client_leases)) return;
        world_reach(m, &n, s, "requires server", (uint32_t)t);
        return;
    }
    if (p->standing == REPLICA_PROPOSED && m->wrong->gives_up_on_an_addition) {
        p->standing = REPLICA_JOINS;
        world_settle(m, &n, s, "gives up on adding server", (uint32_t)t);
        return;
    }
    if (!may_propose(x, s)) return;
    replica_peer before = *p;
    if (m->wrong->adds_before_requiring) p->standing = REPLICA_REQUIRED;
    if (m->wrong->adds_what_lacks_records) p->prepared = v->owner.committed;
    if (m->wrong->adds_under_long_client_leases) p->settled_ns = 0;
    if (!replica_propose(&v->owner, p->id, x->now)) return;
    p->prepared = before.prepared;
    if (m->wrong->adds_before_requiring) p->standing = REPLICA_JOINS;
    propose(&n, s, ADD, (uint32_t)p->id);
    world_reach(m, &n, s, "asks to add server", (uint32_t)t);
}

static void step_owner(const machine *m, const world *x, int s) {
    const server *v = &x->server[s];
    for (int t = 0; t < SERVERS; t++) {
        if (t == s) continue;
        owner_sends(m, x, s, t);
        owner_receives(m, x, s, t);
        owner_connects(m, x, s, t);
        if (!v->serving) continue;
        owner_removes(m, x, s, t);
        owner_joins(m, x, s, t);
        owner_adds(m, x, s, t);
    }
    bool over = replica_took_over(&v->owner, &v->copy, m->wrong->serves_before_leases_end ? NO_END : x->now);
    if (!v->serving && over) {
        world n = *x;
        n.server[s].serving = 1;
        world_reach(m, &n, s, "serves, in epoch", v->owner.epoch);
    }
}

/* ---- a backup ---- */

static void acknowledge(link *l, const replica_ack *a, uint32_t lease) {
    l->back.full = 1;
    l->back.epoch = a->epoch;
    l->back.prepared = (uint32_t)a->prepared;
    l->back.lease = lease;
}

static void backup_receives(const machine *m, const world *x, int o, int s) {
    world n = *x;
    link *l = &n.link[o][s];
    server *v = &n.server[s];
    if (!l->to.full) return;
    uint32_t lsn = l->to.lsn;
    switch (replica_arrives(&v->copy, l->to.epoch, lsn)) {
    case REPLICA_STALE:
        if (m->wrong->acks_old_epoch) {
            acknowledge(l, &(replica_ack){ l->to.epoch, lsn }, l->back.lease);
            memset(&l->to, 0, sizeof l->to);
            world_reach(m, &n, s, "acknowledges to an owner of the past record", lsn);
            return;
        }
        world_drop(l);
        world_reach(m, &n, s, "refuses of an owner of the past record", lsn);
        return;
    case REPLICA_GAP:
        world_drop(l);
        world_reach(m, &n, s, "begins the link anew, at record", lsn);
        return;
    case REPLICA_NEXT: break;
    }
    if (m->wrong->acks_before_prepared && l->back.prepared != lsn) {
        acknowledge(l, &(replica_ack){ l->to.epoch, lsn }, l->back.lease);
        world_reach(m, &n, s, "acknowledges before it prepared record", lsn);
        n = *x;
    }
    v->log[lsn - 1] = l->to.what;
    replica_appended(&v->copy);
    world_buffers(m, v);
    replica_on_commit_index(&v->copy, l->to.epoch, l->to.committed);
    memset(&l->to, 0, sizeof l->to);
    world_reach(m, &n, s, "prepares record", lsn);
}

static void backup_acknowledges(const machine *m, const world *x, int o, int s) {
    world n = *x;
    link *l = &n.link[o][s];
    server *v = &n.server[s];
    const replica_peer *p = peer_at(&n.server[o], s);
    uint32_t lease = m->set->ticks ? x->now + LEASE : 0;
    replica_log log = v->copy.log;
    if (m->wrong->acks_before_it_is_logged) v->copy.log.kept = 0;
    if (m->wrong->acks_before_the_epoch_is_logged) v->copy.log.epoch = v->copy.epoch;
    uint64_t logged = replica_on_disk(&v->copy.log, v->copy.epoch);
    uint64_t has = logged < v->copy.prepared ? logged : v->copy.prepared;
    if (!l->up || !p || n.server[o].role != OWNER || n.server[o].owner.epoch != v->copy.epoch) return;
    if (l->back.full ? l->back.prepared >= has && l->back.lease >= lease
                     : p->follows && p->prepared >= has && p->lease_ns >= lease)
        return; /* nothing new */
    replica_ack a;
    if (m->wrong->grants_without_counting) {
        acknowledge(l, &(replica_ack){ v->copy.epoch, v->copy.prepared }, lease);
    } else {
        if (!replica_acknowledges(&v->copy, lease, &a)) return;
        acknowledge(l, &a, lease);
    }
    v->copy.log = log;
    world_reach(m, &n, s, "acknowledges up to", l->back.prepared);
}

static void backup_suspects(const machine *m, const world *x, int s) {
    world n = *x;
    server *v = &n.server[s];
    const entry *e = &x->entry[v->applied];
    uint32_t id = id_of(x, s);
    if (m->set->heirs && !(m->set->heirs >> s & 1)) return;
    if (has_id(e->marked, id) && !m->wrong->marked_asks_to_lead) return;
    if (!n.promotions || e->owner == id || !has_id(e->in_sync, id) || !may_propose(x, s)) return;
    n.promotions--;
    propose(&n, s, PROMOTE, id);
    world_reach(m, &n, s, "suspects its owner, and asks to be promoted from config", v->applied);
}

static void step_backup(const machine *m, const world *x, int s) {
    for (int o = 0; o < SERVERS; o++) {
        if (o == s) continue;
        backup_receives(m, x, o, s);
        backup_acknowledges(m, x, o, s);
    }
    backup_suspects(m, x, s);
}

/* ---- what the metadata says ---- */

static replica_config config_for(const machine *m, const world *x, uint32_t config, uint32_t own) {
    const entry *e = &x->entry[config];
    replica_config c = { .epoch = e->epoch,
                         .config = config,
                         .min_in_sync = (uint32_t)m->set->min_in_sync,
                         .alone = m->wrong->alone_answers_early };
    for (uint32_t id = 1; id < 32; id++) {
        if (id != own && has_id(e->in_sync, id)) c.id[c.peers++] = id;
        if (id != own && has_id(e->joining, id)) c.joining_id[c.joining++] = id;
    }
    return c;
}

static void lead(const machine *m, world *x, int s, const replica_config *c) {
    server *v = &x->server[s];
    if (m->wrong->inherited_dropped) v->copy.prepared = v->copy.committed;
    for (uint64_t at = v->copy.prepared; at < LOG; at++) v->log[at] = (record){ 0 };
    replica_lead(&v->owner, &v->copy, c);
    if (m->wrong->inherited_shown_early) v->owner.committed = v->owner.last;
    for (int i = 0; m->wrong->serves_unfollowed && i < REPLICA_PEERS; i++) v->owner.peer[i].follows = 1;
    v->role = OWNER;
    v->serving = 0;
    v->client_leases = 0;
    for (int t = 0; t < SERVERS; t++) x->link[s][t].up = 0; /* what is on its way may still arrive */
}

static void step_down(const machine *m, world *x, int s) {
    server *v = &x->server[s];
    for (uint32_t i = 1; m->wrong->says_no_effect && i <= CHANGES; i++) {
        change *c = &x->change[i - 1];
        if (c->is == OUTSTANDING && c->at == (uint32_t)s + 1 && world_lsn(v, i) > v->owner.committed)
            c->is = WITHOUT_EFFECT;
    }
    replica_step_down(&v->owner, &v->copy);
    v->owner = (replica_owner){ 0 };
    v->role = BACKUP;
    v->serving = v->client_leases = 0;
}

static void step_apply(const machine *m, const world *x, int s) {
    world n = *x;
    server *v = &n.server[s];
    if (v->applied == x->config) return;
    uint32_t id = id_of(x, s), config = ++v->applied;
    replica_config c = config_for(m, x, config, id);
    bool owns = x->entry[config].owner == id;
    if (v->role == OWNER && owns)
        replica_configure(&v->owner, &c);
    else if (v->role == OWNER)
        step_down(m, &n, s);
    else if (owns && c.epoch > v->copy.epoch) /* else it follows the next owner already */
        lead(m, &n, s, &c);
    if (v->role == OWNER)
        world_settle(m, &n, s, "is the owner by config", config);
    else
        world_reach(m, &n, s, "applies config", config);
}

/* ---- exploring ---- */

void step_server(const machine *m, const world *x, int s) {
    if (!x->server[s].alive) return;
    if (x->server[s].role == OWNER)
        step_owner(m, x, s);
    else
        step_backup(m, x, s);
    if (has_logs(m->set)) step_disk(m, x, s);
    step_apply(m, x, s);
    step_request(m, x, s);
    step_answers(m, x, s);
}

static void first_world(const machine *m, world *x) {
    const replica_setting *set = m->set;
    memset(x, 0, sizeof *x);
    x->config = 1;
    x->entry[1] = (entry){ .epoch = 1, .owner = 1 };
    for (int s = 0; s < set->copies + set->joiners; s++) x->server[s].alive = x->server[s].applied = 1;
    for (int s = 0; s < SERVERS; s++) x->server[s].copy.log.kept = has_logs(set);
    for (int s = 0; s < set->copies; s++) {
        x->entry[1].in_sync |= 1u << (1 + s);
        x->server[s].copy.epoch = 1;
        if (s && set->ticks) x->server[s].copy.granted_until_ns = LEASE;
        x->server[s].copy.log.epoch = x->server[s].disk.epoch = has_logs(set);
        if (s) x->link[0][s].up = !(set->cut_off[0] >> s & 1);
    }
    replica_config c = config_for(m, x, 1, 1);
    replica_lead(&x->server[0].owner, &x->server[0].copy, &c);
    for (uint32_t i = 0; i < c.peers && set->ticks; i++) x->server[0].owner.peer[i].lease_ns = LEASE;
    x->server[0].role = OWNER;
    x->server[0].serving = 1;
    x->reader.gets_left = (uint32_t)set->gets;
    x->breaks = (uint32_t)set->breaks;
    x->crashes = (uint32_t)set->crashes;
    x->restarts = (uint32_t)set->restarts;
    x->removals = (uint32_t)set->removals;
    x->additions = (uint32_t)set->additions;
    x->promotions = (uint32_t)set->promotions;
    x->retries = (uint32_t)set->retries;
    x->powers = (uint32_t)set->powers;
    x->returns = (uint32_t)set->returns;
}

search *replica_explore(const replica_mistakes *wrong, const replica_setting *set) {
    machine m = { NULL, wrong, set };
    world x;
    uint8_t bytes[WORLD_BYTES];
    first_world(&m, &x);
    world_pack(&x, bytes);
    m.s = search_new(bytes, WORLD_BYTES);
    while (search_next(m.s, bytes)) {
        world_unpack(bytes, &x);
        for (int s = 0; s < SERVERS; s++) step_server(&m, &x, s);
        step_metadata(&m, &x);
        step_faults(&m, &x);
        step_power(&m, &x);
        step_early(&m, &x);
        step_client(&m, &x);
        step_reader(&m, &x);
    }
    return m.s;
}
