/* backup.h: a shard's table as the copy of another owner's: it prepares that owner's records in order, says how far it
 * has come, and commits what the owner has committed. Private to native/replication.
 *
 * For: the links (docs/replication-links.md), which bring what arrived and send what is said here; and, once the copy
 * is the owner's, for replicate.c: what it inherited lies here until it is committed. Not for: connections, and the
 * rules, which are replica.h's.
 *
 * Invariant: the records above `applied`, up to `place.prepared`, are in the ring, each prepared in the table unless its
 * change has nothing to do there. `applied` is place.committed, or on the way there. */
#ifndef FARKV_REPLICATION_BACKUP_H
#define FARKV_REPLICATION_BACKUP_H
#include "../storage/shard.h"
#include "../wire/peer.h"

typedef struct owner_link owner_link;

/* A record that is prepared here. */
typedef struct backup_record {
    table_prepared prepared; /* handle 0: the table has nothing to do */
    uint8_t *key;            /* own copy, then; else NULL */
    uint64_t client, sequence, value;
    uint16_t key_bytes, space;
    uint8_t announced; /* once the copy leads: to which backups, where its value is large (bulk.c) */
} backup_record;

struct backup {
    shard *shard;
    uint64_t id;
    uint32_t lease_ms;
    bool leads;        /* the copy is the owner's: of place, `prepared` is what was inherited */
    fkv_status failed; /* not OK: why it can prepare no more */
    replica_backup place;
    uint64_t applied;
    uint64_t taken; /* bytes of extents of what was prepared since FOLLOW */
    backup_record *ring;
    uint32_t room;     /* a power of two */
    uint64_t scrub_ns; /* when the next step is due (integrity.c) */

    fkv_list pulls;    /* large values that came before their records (pull.c) */
    uint32_t dropping; /* of those, what is given up and not yet undone: their keys are taken */

    /* owner_link.c's */
    owner_link *owner_link; /* over which it follows; NULL: it does not */
    fkv_list of_link;       /* in its copies */
    fkv_list owes;          /* there, while there is something to acknowledge */
    fkv_list held;          /* messages that wait for memory, in order */
    fkv_list waits;         /* in its waiting, while there are any */
    bool led;               /* its FOLLOW was answered over this connection */
    bool suspects;          /* on_suspicion was told, since it acknowledged last */
    uint64_t followed_ns;   /* when it began to follow this owner */
    uint64_t
        doubt_ns; /* when its owner counts as silent, if nothing is heard of it until then; 0: it is not in doubt */
    uint64_t follow_ns; /* when it is to be said; UINT64_MAX: it was */
    uint32_t refusals;  /* STALE in a row, of this owner */
};

/* The shard, which is open and not served, becomes a copy that has what is said. False: no memory. */
bool backup_make(shard *s, uint64_t id, uint32_t lease_ms, const replica_backup *place);
/* The same, and what is remembered of clients stays: it is this copy's own. */
bool backup_new(shard *s, uint64_t id, uint32_t lease_ms, const replica_backup *place);
/* The copy was its owner's table, and follows another owner from now on. What that one had prepared and not committed
 * is to be given to backup_keeps then, all of it and in order. False: no memory, and nothing has changed. */
bool backup_steps_down(backup *b, const replica_owner *o);
void backup_keeps(backup *b, uint64_t lsn, const fkv_record *r, const table_prepared *p);
/* Says it to on_copy. */
void backup_tell(const backup *b, dataplane_copy_event what);
/* It is a copy, and another server owns it. */
static inline bool backup_follows(const shard *s) { return s->repl.copy && !s->repl.copy->leads; }
/* With its table: what is prepared is not undone. Any thread, when nothing else knows the shard. */
void backup_free(backup *b);

/* What to say first on a connection, and after UNFOLLOW. */
fkv_peer_follow backup_follow(backup *b);

typedef enum {
    BACKUP_TOOK,  /* all of it */
    BACKUP_WAITS, /* the table waits for memory: the same message is to be given again, with the same `at` */
    BACKUP_ANEW,  /* not what comes next, or not of the owner that it follows: the link begins anew */
    BACKUP_FAILED /* it cannot be a copy any more; `failed` says why */
} backup_result;
/* It takes nothing more, for this reason; its server hears that there is no room. */
backup_result backup_fails(backup *b, fkv_status why);
/* How much of a message was taken; zeroes at first. */
typedef struct backup_at {
    uint32_t bytes, records;
} backup_at;
backup_result backup_on_epoch(backup *b, const fkv_peer_follow_ok *t);
backup_result backup_takes(backup *b, const fkv_peer_message *m, backup_at *at);
/* The owner of this epoch has committed up to there. */
void backup_on_commit_index(backup *b, uint32_t epoch, uint64_t committed);
/* What to acknowledge; false: nothing. now_ns was read after all came that it answers. */
bool backup_acknowledges(backup *b, uint64_t now_ns, fkv_peer_ack *out);

/* ---- once the copy is the owner's ---- */
/* Commits what was inherited, up to there. */
void backup_commit(backup *b, uint64_t to);
/* The record of that number, which is above `applied`. */
const backup_record *backup_record_at(const backup *b, uint64_t lsn);

/* Of a record, which backups were told where its value lies: `keep` of what there is, and `more`. */
void backup_record_announced(backup *b, uint64_t lsn, uint8_t keep, uint8_t more);

/* ---- read back from its log (recover.c) ---- */
/* Prepares a record; without `value` its bytes are written later. `again`: it may have taken effect already, or what came
 * after it, and then it has nothing to do. BUSY: later. */
fkv_status backup_restores(backup *b, const fkv_record *r, const uint8_t *key, const uint8_t *value, bool again,
                           backup_record *out);
bool backup_has_restored(backup *b, const backup_record *r); /* it is the next one. False: no memory, or too many */
void backup_cuts_off(backup *b, uint64_t behind);            /* the records behind this one are not */

/* For pull.c: as a record is prepared; of BULK without its value. BUSY: later. */
fkv_status backup_prepares(backup *b, const fkv_record *r, const uint8_t *key, backup_record *out, uint64_t *hash);

/* Bytes that a record takes of the table that it is prepared in: owner and backups count them alike. */
uint64_t record_room(bool writes, uint32_t key_bytes, uint32_t value_bytes);

#endif
