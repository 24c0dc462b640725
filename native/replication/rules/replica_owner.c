/* replica_owner.c: the owner's account of its backups; see replica.h.
 *
 * Which copies are required: those in sync by the config that the owner has applied, and those whose addition it wants
 * or has asked for. So `required` contains the copies in sync of every config that may be in force: only the owner adds
 * copies, and it requires one before it asks; a later config that it has not applied yet can only have fewer. */
#include "../../base/assert.h"
#include "replica.h"
#include <stddef.h>

static uint64_t min_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

int replica_place(const replica_owner *o, uint64_t id) {
    for (int i = 0; i < REPLICA_PEERS; i++)
        if (o->peer[i].standing != REPLICA_NONE && o->peer[i].id == id) return i;
    return -1;
}

static replica_peer *find(replica_owner *o, uint64_t id) {
    int i = replica_place(o, id);
    return i < 0 ? NULL : &o->peer[i];
}

static bool is_required(const replica_peer *p) { return p->standing >= REPLICA_REQUIRED; }

static bool is_named(const replica_config *c, uint64_t id) {
    for (uint32_t i = 0; i < c->peers; i++)
        if (c->id[i] == id) return true;
    return false;
}

bool replica_is_eligible(const replica_config *c, uint64_t id) {
    for (uint32_t i = 0; i < c->eligible; i++)
        if (c->eligible_id[i] == id) return true;
    return false;
}

/* Not in sync any more, and it may be again. */
static bool may_rejoin(const replica_config *c, uint64_t id) {
    for (uint32_t i = 0; i < c->joining; i++)
        if (c->joining_id[i] == id) return true;
    return replica_is_eligible(c, id);
}

/* ---- the shard comes and goes ---- */

void replica_lead(replica_owner *o, replica_backup *own, const replica_config *c) {
    own->epoch = c->epoch;
    *o = (replica_owner){ .epoch = c->epoch,
                          .config = c->config,
                          .min_in_sync = c->min_in_sync,
                          .in_sync = 1 + c->peers,
                          .alone = c->alone,
                          .last = own->prepared,
                          .committed = own->committed, /* mutation: replication/inherited-committed */
                          .inherited = own->prepared,
                          .log = own->log };
    for (uint32_t i = 0; i < c->peers; i++) o->peer[i] = (replica_peer){ .id = c->id[i], .standing = REPLICA_IN_SYNC };
    for (uint32_t i = 0; i < c->eligible; i++) replica_join(o, c->eligible_id[i]);
    for (uint32_t i = 0; i < c->joining; i++) replica_join(o, c->joining_id[i]);
}

/* Every copy in sync follows it before it draws a record. Else one could keep, through that epoch, a record of an owner
 * before, take it for the record of this number that others have, and not drop it under the next owner. */
bool replica_took_over(const replica_owner *o, const replica_backup *own, uint64_t now_ns) {
    bool followed = true;
    /* mutation: replication/drawn-before-followed */
    for (int i = 0; i < REPLICA_PEERS; i++) followed &= !is_required(&o->peer[i]) || o->peer[i].follows;
    /* mutation: replication/served-before-inherited, replication/served-while-relied-on */
    return followed && o->committed >= o->inherited && now_ns >= own->granted_until_ns;
}

void replica_step_down(const replica_owner *o, replica_backup *own) {
    own->prepared = o->last;
    own->committed = o->committed;
    own->log = o->log;
}

/* ---- records ---- */

bool replica_enough(const replica_owner *o) { return o->in_sync >= o->min_in_sync; }

bool replica_admits(const replica_owner *o) { return replica_enough(o) && o->last - o->committed < REPLICA_WINDOW; }

uint64_t replica_draw(replica_owner *o) { return ++o->last; }

bool replica_waits(const replica_owner *o) {
    bool waits = !replica_enough(o);
    for (int i = 0; i < REPLICA_PEERS; i++) waits |= is_required(&o->peer[i]);
    return waits;
}

/* Until it was told a config it does not know who else has a copy. */
bool replica_relies_on_disk(const replica_owner *o) { return o->disk_in == o->config; }
bool replica_answers_early(const replica_owner *o) {
    /* mutation: early/alone-does-not-wait, early/early-during-removal */
    return !replica_relies_on_disk(o) && (o->in_sync > 1 || o->alone);
}
void replica_rely_on_disk(replica_owner *o) { o->disk_in = o->config; }
/* mutation: early/removed-before-disk */
bool replica_is_on_disk(const replica_owner *o) { return replica_on_disk(&o->log, o->epoch) >= o->committed; }

bool replica_acked(replica_owner *o, uint64_t id, const replica_ack *a, uint64_t lease_ns) {
    replica_peer *p = find(o, id);
    /* mutation: replication/acknowledged-in-another-epoch */
    if (!p || a->epoch != o->epoch || a->prepared > o->last) return false;
    p->follows = 1;
    if (a->prepared > p->prepared) p->prepared = a->prepared;
    if (lease_ns > p->lease_ns) p->lease_ns = lease_ns;
    return true;
}

/* What came with the shard is committed by however many copies there are: somebody may have READ it. */
uint64_t replica_commit(replica_owner *o) {
    /* mutation: replication/too-few-copies */
    uint64_t to = replica_enough(o) ? o->last : min_of(o->last, o->inherited);
    uint64_t counts = (replica_answers_early(o) ? replica_counts : replica_on_disk)(&o->log, o->epoch);
    to = min_of(to, counts); /* mutation: durable/owner-commits-unlogged */
    for (int i = 0; i < REPLICA_PEERS; i++)
        if (is_required(&o->peer[i])) to = min_of(to, o->peer[i].prepared);
    if (to > o->committed) o->committed = to;
    return o->committed;
}

uint64_t replica_right(const replica_owner *o, uint64_t leader_ns) {
    uint64_t until = leader_ns;
    for (int i = 0; i < REPLICA_PEERS; i++) /* mutation: replication/grants-beyond-backups */
        if (is_required(&o->peer[i])) until = min_of(until, o->peer[i].lease_ns);
    return until;
}

/* ---- copies come and go ---- */

bool replica_join(replica_owner *o, uint64_t id) {
    if (find(o, id)) return false;
    for (int i = 0; i < REPLICA_PEERS; i++) {
        if (o->peer[i].standing != REPLICA_NONE) continue;
        o->peer[i] = (replica_peer){ .id = id, .standing = REPLICA_JOINS };
        return true;
    }
    return false;
}

bool replica_goes_on(const replica_owner *o, uint64_t id, uint32_t epoch) {
    int i = replica_place(o, id);
    return i >= 0 && epoch <= o->epoch && (is_required(&o->peer[i]) || epoch + 1 >= o->epoch);
}

bool replica_require(replica_owner *o, uint64_t id, uint64_t client_leases_ns) {
    replica_peer *p = find(o, id);
    if (!p || p->standing != REPLICA_JOINS || !p->follows) return false;
    p->standing = REPLICA_REQUIRED;
    p->settled_ns = client_leases_ns;
    return true;
}

bool replica_propose(replica_owner *o, uint64_t id, uint64_t now_ns) {
    replica_peer *p = find(o, id);
    if (!p || p->standing != REPLICA_REQUIRED) return false;
    /* mutation: replication/lacking-copy-added, replication/added-under-old-leases */
    if (p->prepared < o->committed || now_ns < p->settled_ns) return false;
    p->standing = REPLICA_PROPOSED;
    return true;
}

bool replica_drop(replica_owner *o, uint64_t id) {
    replica_peer *p = find(o, id);
    if (p && p->standing > REPLICA_REQUIRED) return false;
    if (p) *p = (replica_peer){ 0 };
    return true;
}

void replica_configure(replica_owner *o, const replica_config *c) {
    fkv_assert(c->epoch == o->epoch && c->config > o->config);
    o->config = c->config;
    o->min_in_sync = c->min_in_sync;
    o->in_sync = 1 + c->peers;
    o->alone = c->alone;
    for (int i = 0; i < REPLICA_PEERS; i++) {
        replica_peer *p = &o->peer[i];
        if (is_named(c, p->id))
            p->standing = REPLICA_IN_SYNC;
        else if (p->standing == REPLICA_IN_SYNC && may_rejoin(c, p->id) && p->prepared >= o->committed)
            p->standing = REPLICA_JOINS;
        else if (p->standing == REPLICA_IN_SYNC)
            *p = (replica_peer){ 0 };
        else if (p->standing == REPLICA_PROPOSED)
            p->standing = REPLICA_JOINS;
    }
}
