/* recover.h: one copy of a durable shard, made anew of its snapshot and of its records in the log (docs/snapshots.md). Private
 * to native/replication.
 *
 * For: recovery.c, which reads the files of a worker and brings what is in them. Not for: which copies there should be.
 * Runs on the thread that has the worker, before it takes anything from the network, and blocks.
 * Invariant: a copy that `why` says something of has no shard. */
#ifndef FARKV_REPLICATION_RECOVER_H
#define FARKV_REPLICATION_RECOVER_H
#include "../log/replay.h"
#include "../log/snapshot_file.h"
#include "backup.h"
#include "snapshot_items.h"

enum { RECOVERY_WHY = sizeof((dataplane_recovered *)0)->why };

/* A value that comes before its record, or behind its entry. */
typedef struct recover_value {
    bool under_way;
    bool passed_over; /* something as new is there */
    uint32_t bytes, at;
    uint64_t version;
    backup_record record;    /* of the log */
    table_prepared prepared; /* of a snapshot */
} recover_value;

typedef struct recovered_copy {
    fkv_list link;
    worker *w;
    shard *s; /* NULL: it is not made, or not any more */
    uint32_t number;
    uint64_t id;
    char why[RECOVERY_WHY]; /* it is not whole; empty: it is so far */
    snapshot_head head;     /* zeroes: it has none */
    snapshot_foot foot;
    uint32_t epoch; /* of the last section; 0: there was none */
    recover_value value;
} recovered_copy;

recovered_copy *recover_new(worker *w, uint32_t number, uint64_t id); /* NULL: no memory */
void recover_free(recovered_copy *c);
/* It is not whole. */
void recover_fails(recovered_copy *c, const char *why, ...) __attribute__((format(printf, 2, 3)));

/* The parts of its snapshot, in order. False: it cannot be of one, or there is no memory; `why` may say which. */
bool recover_head(recovered_copy *c, const snapshot_head *h);
bool recover_chunk(recovered_copy *c, const snapshot_chunk *k, const uint8_t *items);
void recover_foot(recovered_copy *c, const snapshot_foot *f);
/* A section of it in the log. */
void recover_section(recovered_copy *c, const wal_section *x, const uint8_t *records);
/* All was read: what is whole is a copy from now on. */
void recover_end(recovered_copy *c);

/* ---- recover_shard.c ---- */
/* The copy has all up to there. Until it is whole its log does not count. False: it failed. */
bool recover_make(recovered_copy *c, uint32_t epoch, uint64_t lsn, uint32_t buckets);
void recover_close(recovered_copy *c);
/* The table wants memory. False: there is none. */
bool recover_waits(recovered_copy *c, uint32_t *tries);
/* What the table has to do after many changes. */
void recover_rest(recovered_copy *c);

#endif
