/* durable.h: durable shards: their records are in the worker's write-ahead log before they count (docs/durable.md).
 * Private to native/replication.
 *
 * For: owners, which commit what is in their own log, and backups, which acknowledge what is in theirs; the rules are
 * replica.h's. Not for: the log's bytes and files (native/log), nor for reading it back.
 *
 * A shard's part of the log is fed like one more backup: with the records that are prepared, in their order, as far as
 * the log has room. Invariants: taken effect <= logged <= appended <= prepared; before the first record of an epoch
 * comes its beginning. */
#ifndef FARKV_REPLICATION_DURABLE_H
#define FARKV_REPLICATION_DURABLE_H
#include "../log/wal.h"
#include "../storage/shard.h"
#include "snapshots.h"

/* Bytes of records that are made at once; the least that a log's buffer has: room for one piece, with its heads. */
enum { LOG_PIECE = 16 << 10, LOG_BUFFER_MIN = 32 << 10 };

/* A worker's log. */
typedef struct worker_log {
    worker *w;
    wal wal;
    helper writer;
    bool open;       /* of wal */
    fkv_list behind; /* shards that have prepared what was not appended */
    bool more;       /* some did since the last step */
    /* With dataplane_log.sync_ns: since when something waits in the log's buffer; 0: nothing does. */
    uint64_t gathers_ns;
    bool urgent;       /* and it goes at once: somebody waits for the disk */
    uint64_t retry_ns; /* while the disk is full: when it is looked at again */
    snapshots snapshots;
    char torn[WAL_NAME_MAX + 100]; /* what of it was cut off at the start; "": nothing */
    uint8_t records[LOG_PIECE];
} worker_log;

/* Whose logs and snapshots they are. */
wal_identity durable_identity(const dataplane *d, uint32_t thread);
/* By a thread that has the worker. Makes copies of what is on the disk, and goes on where the log ends. 0, or a negative
 * errno with a sentence in `why`, and whether it is a log that is damaged or lacks a file; repl_free_worker also what has
 * failed. */
int durable_start(worker *w, bool *damaged, char *why, size_t why_room);

/* The copy's epoch begins in the log: what it is, and has dropped, was decided before. */
void durable_begins(shard *s);
/* There is more that is prepared. */
void durable_more(shard *s);
void durable_end(shard *s); /* the shard is closed here */
/* Of the copy here, whatever it is: in which epoch it is, whether the log has the beginning of that, and up to where its
 * records have taken effect. */
uint32_t durable_epoch(const shard *s);
bool durable_has_begun(const shard *s);
uint64_t durable_committed(const shard *s);
/* Whether a snapshot that ends with this record may count: the log has the record on the disk. */
bool durable_reaches(shard *s, uint64_t lsn);
/* What is in the log's buffer goes to the disk with the end of this turn. */
void durable_hurry(worker *w);
/* What the copy counts by may be the disk from now on, and no longer the buffer: that goes there. */
void durable_counts_anew(shard *s);
/* Whether the log has room: OK or BUSY. */
fkv_status durable_admits(const shard *s);

uint64_t durable_deadline(const worker *w);

#endif
