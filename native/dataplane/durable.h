/* durable.h: durable shards: their records are in the worker's write-ahead log before they count (docs/durable.md).
 * Private to native/dataplane.
 *
 * For: owners, which commit what is in their own log, and backups, which acknowledge what is in theirs; the rules are
 * replica.h's. Not for: the log's bytes and files (native/log), nor for reading it back.
 *
 * A shard's part of the log is fed like one more backup: with the records that are prepared, in their order, as far as
 * the log has room. Invariants: taken effect <= logged <= appended <= prepared; before the first record of an epoch
 * comes its beginning. */
#ifndef FARKV_DATAPLANE_DURABLE_H
#define FARKV_DATAPLANE_DURABLE_H
#include "../log/wal.h"
#include "shard.h"

/* Bytes of records that are made at once; the least that a log's buffer has: room for one piece, with its heads. */
enum { LOG_PIECE = 16 << 10, LOG_BUFFER_MIN = 32 << 10 };

/* A worker's log. */
typedef struct worker_log {
    worker *w;
    wal wal;
    helper writer;
    bool open;         /* of wal */
    fkv_list behind;   /* shards that have prepared what was not appended */
    bool more;         /* some did since the last step */
    uint64_t retry_ns; /* while the disk is full: when it is looked at again */
    uint8_t records[LOG_PIECE];
} worker_log;

/* By the thread that starts and stops. Reads the log to find its end, and goes on there. 0, or a negative errno with a
 * sentence in `why`; durable_free also what has failed. */
int durable_start(worker *w, char *why, size_t why_room);
void durable_stop(worker *w); /* when the thread has ended */
int durable_drain(worker *w); /* runs what the writer has to do, if it has no thread */
void durable_free(worker *w);

/* The copy's epoch begins in the log: what it is, and has dropped, was decided before. */
void durable_begins(shard *s);
/* There is more that is prepared. */
void durable_more(shard *s);
void durable_end(shard *s); /* the shard is closed here */
/* Whether the log has room: OK or BUSY. */
fkv_status durable_admits(const shard *s);
/* Whether it has none because its disk is full. */
bool durable_is_full(const shard *s);

/* At the end of a turn: appends what there is room for, and flushes. */
void durable_step(worker *w);
uint64_t durable_deadline(const worker *w);

#endif
