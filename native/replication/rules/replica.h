/* replica.h: the rules of replication as two small machines of plain numbers: the owner's account of its backups, and a
 * backup's place in the shard's log. docs/replication.md says why they are right.
 *
 * For: the data plane, which keeps one of each for a shard, and native/test/dataplane/replica_machine.c, which searches
 * their interleavings. Not for: messages, tables, clocks; a caller brings what arrived and the time, and does what it
 * is told. Nothing here allocates or fails.
 *
 *   record     one change of a shard; its number, lsn, counts 1, 2, 3, ... through all epochs
 *   prepared   of a copy: it has every record up to here, and could commit each
 *   committed  of a copy: every record up to here has taken effect there. Invariant: committed <= prepared
 *   logged     of a copy of a durable shard: every record up to here is in its own log, on the disk
 *   required   of an owner: the backups whose acknowledgements and leases it waits for
 *   config     number of the shard's entry in the metadata; rises with each change of owner or copies
 */
#ifndef FARKV_RULES_REPLICA_H
#define FARKV_RULES_REPLICA_H
#include <stdbool.h>
#include <stdint.h>

enum { REPLICA_PEERS = 4, REPLICA_WINDOW = 4096 }; /* backups of an owner; records not yet committed */

/* What the metadata says of a shard, seen by its owner: the copies in sync beside its own. */
typedef struct replica_config {
    uint32_t epoch, config;
    uint32_t min_in_sync; /* copies that a new record needs, the owner's own included */
    uint32_t alone;       /* the policy wants no copy beside the owner's */
    uint32_t peers, eligible, joining;
    uint64_t id[REPLICA_PEERS];
    uint64_t eligible_id[REPLICA_PEERS]; /* taken away when too few stayed; they may be in sync again */
    uint64_t joining_id[REPLICA_PEERS];  /* so may these; and of what was taken away, whoever can go on is among them */
} replica_config;

/* ---- a copy's own log (docs/durable.md) ---- */

/* What it has on the disk. An epoch begins there with a section of its own, which cuts off what earlier epochs have
 * behind it: what is logged in one epoch may be another record than that of the same number in the next. */
typedef struct replica_log {
    uint32_t kept;   /* 0: the shard is not durable, and nothing waits for a log */
    uint32_t epoch;  /* whose beginning is on the disk; 0: none's */
    uint64_t logged; /* in that epoch */
    /* Records up to here are in the log's buffer, in that epoch, and count before they are on the disk
     * (docs/early-answers.md). 0: the disk is waited for. No snapshot counts by this number. */
    uint64_t buffered;
} replica_log;
/* A section is on the disk: `count` records from `first` on; none: the beginning of the epoch before record `first`, or
 * what that one has in front of it. */
static inline void replica_logged(replica_log *l, uint32_t epoch, uint64_t first, uint32_t count) {
    /* mutation: early/buffered-in-an-earlier-epoch */
    if (l->epoch != epoch) l->buffered = 0; /* of the epoch before: some of that may have been dropped */
    l->epoch = epoch;
    l->logged = first + count - 1;
}
/* Up to where the copy has on the disk what it has prepared in this epoch. */
static inline uint64_t replica_on_disk(const replica_log *l, uint32_t epoch) {
    return !l->kept ? UINT64_MAX : l->epoch == epoch ? l->logged : 0; /* mutation: durable/logged-in-an-earlier-epoch */
}
/* The same, and what is in its log's buffer where that counts. */
static inline uint64_t replica_counts(const replica_log *l, uint32_t epoch) {
    uint64_t on_disk = replica_on_disk(l, epoch);
    return l->kept && l->epoch == epoch && l->buffered > on_disk ? l->buffered : on_disk;
}

/* ---- a backup ---- */

/* A copy's place in the log. It stays with the copy through all roles: `granted_until_ns` is about owners of any epoch.
 */
typedef struct replica_backup {
    uint32_t epoch; /* of the owner that it follows, or is */
    uint64_t prepared, committed;
    uint64_t granted_until_ns; /* no owner relies on a lease of this copy after that */
    replica_log log;
} replica_backup;

typedef struct replica_ack {
    uint32_t epoch;
    uint64_t prepared;
} replica_ack;

typedef enum {
    REPLICA_NEXT,  /* to be prepared, then replica_appended */
    REPLICA_STALE, /* of an owner of the past: refused */
    REPLICA_GAP    /* not the next one, or of an owner that is not followed yet: the link begins anew */
} replica_verdict;

/* A copy that has become its owner's table as of that record. It has granted nothing, and none of it is in its log. */
static inline replica_backup replica_copied(uint32_t epoch, uint64_t lsn) {
    return (replica_backup){ .epoch = epoch, .prepared = lsn, .committed = lsn };
}
/* FOLLOW_OK, or the first contact with an owner: its epoch, and the last record that it had when it began. False: it is
 * an owner of the past. What was prepared behind `last` under another owner is dropped: `prepared` falls, and the
 * caller aborts those records. */
bool replica_follow(replica_backup *b, uint32_t epoch, uint64_t last);
replica_verdict replica_arrives(const replica_backup *b, uint32_t epoch, uint64_t lsn);
void replica_appended(replica_backup *b);
/* The owner has committed up to there. Returns up to where this copy may commit: what is logged, where it has a log. */
uint64_t replica_on_commit_index(replica_backup *b, uint32_t epoch, uint64_t owner_committed);
/* What to acknowledge, which is on the disk where the copy has a log; false: nothing. It is a lease as well: until when
 * the copy counts it is `until_ns`, which is later than its owner does (replica_lease_end). */
bool replica_acknowledges(replica_backup *b, uint64_t until_ns, replica_ack *out);

/* ---- the owner ---- */

typedef enum replica_standing {
    REPLICA_NONE = 0, /* this place is free */
    REPLICA_JOINS,    /* gets records; nobody waits for it */
    REPLICA_REQUIRED, /* is waited for, by the owner's own wish */
    REPLICA_PROPOSED, /* the same, and the metadata has been asked to make it a copy in sync */
    REPLICA_IN_SYNC   /* the same, and the metadata has done so */
} replica_standing;

typedef struct replica_peer {
    uint64_t id;
    uint64_t prepared;   /* has acknowledged all up to here, in this epoch */
    uint64_t lease_ns;   /* it grants the owner that long */
    uint64_t settled_ns; /* REQUIRED: clients' leases from before that have ended by then */
    uint32_t standing;   /* replica_standing */
    uint32_t follows;    /* 1: it has acknowledged anything in this epoch */
} replica_peer;

typedef struct replica_owner {
    uint32_t epoch, config;
    uint32_t min_in_sync, in_sync; /* copies in sync, the own included */
    uint32_t alone;                /* as in the config */
    uint32_t disk_in;              /* in this config it commits nothing that is not on its own disk */
    uint64_t last, committed;
    uint64_t inherited; /* records up to here came with the shard: an earlier owner may have committed them */
    replica_log log;    /* its own */
    replica_peer peer[REPLICA_PEERS];
} replica_owner;

/* Whether the owner commits what is in its log's buffer: another copy in sync has that, too, or the policy wants none. */
bool replica_answers_early(const replica_owner *o);
/* From now on it does not, as long as its config is the one that it has now: then that one is none the worse for a copy
 * that goes. */
void replica_rely_on_disk(replica_owner *o);
/* Whether that config is the present one still. */
bool replica_relies_on_disk(const replica_owner *o);
/* Whether it has on its disk all that it has committed. */
bool replica_is_on_disk(const replica_owner *o);
/* The copy becomes the owner, by this config. It commits nothing before every copy in sync has acknowledged anew, and
 * may answer, and draw records, when replica_took_over says so. Who joins by it may go on with what it has. */
void replica_lead(replica_owner *o, replica_backup *own, const replica_config *c);
bool replica_took_over(const replica_owner *o, const replica_backup *own, uint64_t now_ns);
/* The copy is given the shard, in this epoch, by the owner that it follows, which has served, is relied on no more, and has
 * committed all. Before replica_lead. False: it has followed another one, and takes the shard over as ever. */
bool replica_handed(replica_backup *own, uint32_t epoch);
/* The owner is one no more: its place in the log goes back into its copy, with what is prepared and not committed. */
void replica_step_down(const replica_owner *o, replica_backup *own);

/* Its place in `peer`; -1: it is unknown. */
int replica_place(const replica_owner *o, uint64_t id);
bool replica_is_eligible(const replica_config *c, uint64_t id);
bool replica_admits(const replica_owner *o); /* whether a new record may be drawn */
bool replica_enough(const replica_owner *o); /* false: not for long; too few copies are in sync */
uint64_t replica_draw(replica_owner *o);     /* the number of a record that is prepared here */
bool replica_waits(const replica_owner *o);  /* whether some copy is required */
/* The same number where no copy is required, one is enough, and none has a log: the record may be committed. */
static inline uint64_t replica_draw_alone(replica_owner *o) { return o->committed = ++o->last; }
/* False: of another epoch, or of a copy that is unknown, or of records that there are not. */
bool replica_acked(replica_owner *o, uint64_t id, const replica_ack *a, uint64_t lease_ns);
uint64_t replica_commit(replica_owner *o); /* up to where everything is to be committed */
/* Until when the owner may grant and answer, where its lease from the metadata's leader ends at leader_ns. */
uint64_t replica_right(const replica_owner *o, uint64_t leader_ns);

/* A copy on its way to being in sync: join, require, propose; then the metadata decides. Each is false when the peer
 * does not stand where it has to, or there is no place. */
bool replica_join(replica_owner *o, uint64_t id);
/* Which follows in this epoch. Every lease that clients have now ends by client_leases_ns. */
bool replica_require(replica_owner *o, uint64_t id, uint64_t client_leases_ns);
bool replica_propose(replica_owner *o, uint64_t id, uint64_t now_ns); /* false too: not yet */
/* Whether this copy, which followed an owner of that epoch last, may go on from there. One that joins may not after an
 * epoch that it has missed: under that epoch's numbers it may have records of an earlier owner. Its owner of the epoch
 * before had every copy in sync follow it before it drew any, and one of those is the owner now. */
bool replica_goes_on(const replica_owner *o, uint64_t id, uint32_t epoch);
/* It is not wanted any more. False: the metadata has been asked for it, and decides. */
bool replica_drop(replica_owner *o, uint64_t id);
/* A later config of the same epoch was applied: only now is a removed copy let go of, and an addition that was
 * proposed under an earlier config given up. One that is eligible, or joins by this config, joins again with what it
 * has: all that is committed, since it was required until now. */
void replica_configure(replica_owner *o, const replica_config *c);

/* When a lease of lease_ns ends for whoever counts from the time it was asked for, and when for whoever granted it. */
uint64_t replica_lease_end(uint64_t asked_ns, uint64_t lease_ns, uint32_t drift_ppm);
uint64_t replica_grant_end(uint64_t granted_ns, uint64_t lease_ns, uint32_t drift_ppm);

#endif
