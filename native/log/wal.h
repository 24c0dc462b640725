/* wal.h: the write-ahead log of one data-plane thread: records of all its shards, one after the other, in files.
 *
 *   data-plane thread                    writer                          maker
 *   wal_append: copies into a buffer
 *   wal_flush: gives the buffer away --> crc, write, sync
 *   durable, for each section  <-------- posts itself home
 *   takes the next file                                                  <--- a file for the future: zeros, head, sync
 *
 * For: who acknowledges records only when they survive a loss of power. Not for: reading (replay.h), nor what records
 * mean.
 * Threads: all calls but wal_open are made by the data-plane thread, and so are all callbacks, out of the jobs that come
 * home. None blocks.
 * Memory: two buffers. The one that fills belongs to the data-plane thread, the other to the writer while it is under
 * way.
 * Invariants:
 * 1. One batch is under way at a time.
 * 2. What was appended has its place on the disk: room is 0 unless a whole file is ahead, and two batches fit in one.
 * 3. Nothing is written or reported durable once a write or a sync has failed. */
#ifndef FARKV_LOG_WAL_H
#define FARKV_LOG_WAL_H
#include "../base/histogram.h"
#include "disk_job.h"
#include "group_commit.h"
#include "replay.h"

/* Of files that are written: so a batch goes into the first stride, behind the head, or fills half of one at the most. */
#define WAL_STRIDE(buffer_bytes)   (2 * (buffer_bytes))
/* Room for two batches, of which the second may not fit into the stride of the first. */
#define WAL_FILE_MIN(buffer_bytes) (3 * (uint64_t)(buffer_bytes))

typedef struct wal_config {
    disk *disk;
    wal_identity of;
    uint32_t file_bytes;   /* whole blocks, at least WAL_FILE_MIN */
    uint32_t buffer_bytes; /* whole blocks, at most WAL_BATCH_MAX: the largest batch */
    helper *writer;        /* of this log alone */
    helper *maker;         /* may be shared by the logs of a process: what runs there takes long */
    mailbox *home;         /* of the data-plane thread */
    void *owner;           /* the first argument of what follows */
    /* The section is on the disk, and so is all that was appended before it. Sections of one copy that followed each
     * other may have become one. */
    void (*durable)(void *owner, const wal_section *s);
    void (*room)(void *owner);                          /* there may be more room than before */
    void (*failed)(void *owner, const disk_failure *f); /* once; afterwards the log does nothing more */
} wal_config;

typedef struct wal_buffer {
    uint8_t *base;
    uint32_t bytes; /* from the head on; that of the head alone: empty */
    uint32_t sections, records;
    uint32_t last; /* where the last section is */
} wal_buffer;

typedef struct wal_write {
    disk_job base;
    wal_buffer buffer;
    wal_batch head;
    wal_file *file; /* of the data-plane thread */
    uint64_t at;
    uint64_t took_ns; /* to be written and synced */
    uint32_t thread;
    int handle;
    int leaves; /* a handle to close: of the file before; -1: none */
} wal_write;

/* Makes `file` out of the file `source`, or new where that is 0; or removes `source`, without a `file`; or sets `file`
 * aside. */
typedef struct wal_make {
    disk_job base;
    wal_identity of;
    wal_file *file;
    uint64_t source;
    bool aside;    /* the source */
    bool no_space; /* nothing of the new file counted, so it may be tried again */
} wal_make;

typedef struct wal {
    wal_config c;
    wal_buffer filling, other; /* other: while no batch is under way */
    fkv_list kept;             /* files whose records may be needed; the last is written, once it has a handle */
    fkv_list ahead;            /* made, for the future */
    fkv_list spare;            /* what is in them is not needed: to be used again, or removed; in this order */
    uint32_t keeps, aheads, spares;
    uint32_t most; /* files that the log may have kept before it is cut */
    uint64_t next_batch, next_file;
    bool full;       /* the disk: no file could be made */
    bool failed;     /* invariant 3 */
    bool stopped;    /* nothing more is posted */
    bool home;       /* a batch has come home since the turn before ended */
    bool holds_back; /* wal_trim would have given more back, had there been a batch behind it */
    uint64_t turn_ns;
    group_commit group;
    wal_write write;
    wal_make make;
    fkv_histogram syncs; /* of batches: how long each took to be written and synced */
    uint64_t records;    /* in those */
} wal;

/* Goes on behind what was found WHOLE or TORN, and takes its files over; what was replayed survives from now on. 0 or
 * why not: then nothing has to be freed. Blocks. The first file is made by jobs: room is 0 until they have come home. */
int wal_open(wal *w, const wal_config *c, wal_found *found, disk_failure *why);
/* Bytes of records that a section may have now. 0: the caller waits for `room`. */
uint32_t wal_room(const wal *w);
/* Whether there is no room because the disk has none for another file; wal_retry tries again, at most once a second. */
static inline bool wal_disk_full(const wal *w) { return w->full; }
void wal_retry(wal *w);
/* Copies a section and its records. False: no room. */
bool wal_append(wal *w, const wal_section *s, const void *records);
/* What was appended goes to the disk, unless a batch is under way. */
void wal_flush(wal *w);
/* At the end of each turn: the same, unless it is worth to wait for more (group_commit.h). */
void wal_turn_ends(wal *w, uint64_t now_ns);
/* When the next turn has to end at the latest; UINT64_MAX: nothing waits. */
static inline uint64_t wal_deadline(const wal *w) { return group_commit_deadline(&w->group); }
/* Whether all that was appended was reported durable. */
static inline bool wal_is_idle(const wal *w) { return !w->write.base.under_way && w->filling.sections == 0; }
/* Files are used again, from the oldest on, as long as `covered` is true of all that they hold: it is in a snapshot of
 * that epoch or a later one, or the copy is gone for ever. The last file with a batch stays. */
void wal_trim(wal *w, wal_covered covered, void *arg);
/* Whether to call that again when `room` says that a batch has come home. */
static inline bool wal_holds_back(const wal *w) { return w->holds_back; }
/* How long the log may become before it is cut: what is given back stays for that, and is not written with zeros anew. */
void wal_may_keep(wal *w, uint64_t bytes);
/* Bytes of the files that are kept, whole: what they take of the disk, and more than a start reads. */
uint64_t wal_kept_bytes(const wal *w);
/* How many those are. */
static inline uint32_t wal_kept_files(const wal *w) { return w->keeps; }
/* Files without records that the log may go on in. */
static inline uint32_t wal_free_files(const wal *w) { return w->aheads + w->spares; }
/* What holds up wal_trim first: all that the oldest file holds. */
void wal_oldest(const wal *w, void (*each)(void *arg, const wal_reach *r), void *arg);
/* An operation of the disk has failed, so that nothing of it can be relied on: `failed` is called, if it was not yet. */
void wal_fail(wal *w, const disk_failure *f);
/* Nothing more is posted. Then the helpers are stopped, the mailbox at home is emptied, and the log is freed. What was
 * not under way is lost: nobody was told that it is durable. */
void wal_stop(wal *w);
void wal_free(wal *w);

#endif
