/* replica_backup.c: a backup's place in the shard's log; see replica.h. */
#include "../../base/assert.h"
#include "replica.h"

static uint64_t min_of(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t max_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

bool replica_follow(replica_backup *b, uint32_t epoch, uint64_t last) {
    if (epoch < b->epoch) return false; /* mutation: replication/follows-the-past */
    if (epoch == b->epoch) return true;
    fkv_assert(b->committed <= last);
    b->epoch = epoch;
    b->prepared = min_of(b->prepared, last); /* mutation: replication/keeps-what-owner-lacks */
    return true;
}

bool replica_handed(replica_backup *b, uint32_t epoch) {
    if (b->epoch + 1 != epoch) return false;
    b->committed = b->prepared;
    b->granted_until_ns = 0;
    return true;
}

replica_verdict replica_arrives(const replica_backup *b, uint32_t epoch, uint64_t lsn) {
    if (epoch < b->epoch) return REPLICA_STALE;
    return epoch == b->epoch && lsn == b->prepared + 1 ? REPLICA_NEXT : REPLICA_GAP;
}

void replica_appended(replica_backup *b) { b->prepared++; }

uint64_t replica_on_commit_index(replica_backup *b, uint32_t epoch, uint64_t owner_committed) {
    /* mutation: durable/backup-commits-unlogged, replication/commits-unprepared */
    uint64_t has = min_of(b->prepared, replica_counts(&b->log, epoch));
    if (epoch == b->epoch) b->committed = max_of(b->committed, min_of(owner_committed, has));
    return b->committed;
}

/* Before its beginning is on the disk, nothing of an epoch is acknowledged. */
static bool has_begun(const replica_backup *b) { return !b->log.kept || b->log.epoch == b->epoch; }

bool replica_acknowledges(replica_backup *b, uint64_t until_ns, replica_ack *out) {
    if (!has_begun(b)) return false; /* mutation: durable/lease-before-epoch */
    /* mutation: replication/grant-forgotten */
    b->granted_until_ns = max_of(b->granted_until_ns, until_ns);
    /* mutation: durable/backup-acknowledges-unlogged */
    *out = (replica_ack){ .epoch = b->epoch, .prepared = min_of(b->prepared, replica_counts(&b->log, b->epoch)) };
    return true;
}

/* ---- leases ---- */

/* Both clocks may be wrong by drift_ppm: one counts less for that, the other more. */
uint64_t replica_lease_end(uint64_t asked_ns, uint64_t lease_ns, uint32_t drift_ppm) {
    uint64_t drift = (lease_ns * drift_ppm + 999999) / 1000000u;
    return asked_ns + (lease_ns > drift ? lease_ns - drift : 0); /* mutation: replication/drift */
}
uint64_t replica_grant_end(uint64_t granted_ns, uint64_t lease_ns, uint32_t drift_ppm) {
    return granted_ns + lease_ns + (lease_ns * drift_ppm + 999999) / 1000000u;
}
