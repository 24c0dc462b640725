/* snapshot_write.h: writes snapshots of copies, one after the other, beside what is there, at a bounded rate.
 *
 *   data-plane thread                                 writer
 *   snapshot_begin
 *   snapshot_put: room for an item in the chunk that fills
 *                 a full one is given away        --> crc, write; the first creates the file, each 8 MiB are synced
 *   room          <--------------------------------- posts itself home
 *   snapshot_finish: the last one                 --> foot, sync, rename, sync of the directory
 *   ended         <--------------------------------- posts itself home
 *
 * For: whoever has the entries, and gives the log back when they are safe. Not for: items (the caller), nor for reading.
 * Threads: all calls are made by the data-plane thread, and so are all callbacks, out of the jobs that come home. None
 * blocks.
 * Memory: two chunks. The one that fills belongs to the data-plane thread, the other to the writer while it is under way.
 * Invariants:
 * 1. Under its name a snapshot is whole and on the disk, whatever happens; the one before stays until then.
 * 2. Nothing is written or synced again after it failed: the file is given up. */
#ifndef FARKV_LOG_SNAPSHOT_WRITE_H
#define FARKV_LOG_SNAPSHOT_WRITE_H
#include "disk_job.h"
#include "snapshot_file.h"

/* How it ended:
 *   DONE        it is on the disk, in place of the one before
 *   DROPPED     by the caller
 *   NO_SPACE    on the disk
 *   FAILED      an operation of the disk. The one before is there
 *   UNCERTAIN   the sync of the directory: nobody knows whether this one or the one before will be there after a loss of
 *               power, nor what else of the directory */
typedef enum snapshot_outcome {
    SNAPSHOT_DONE,
    SNAPSHOT_DROPPED,
    SNAPSHOT_NO_SPACE,
    SNAPSHOT_FAILED,
    SNAPSHOT_UNCERTAIN
} snapshot_outcome;

typedef struct snapshot_config {
    disk *disk;
    wal_identity of;
    uint32_t chunk_bytes; /* whole blocks, at most SNAPSHOT_CHUNK_MAX */
    uint64_t bytes_per_s; /* 0: as fast as the disk */
    helper *writer;       /* may be shared */
    mailbox *home;        /* of the data-plane thread */
    void *owner;          /* the first argument of what follows */
    void (*room)(void *owner);
    /* Not under way any more. `failure`: of NO_SPACE, FAILED, UNCERTAIN. The next one may begin here. */
    void (*ended)(void *owner, snapshot_outcome o, const disk_failure *failure);
} snapshot_config;

typedef struct snapshot_buffer {
    uint8_t *base;
    uint32_t kind, count;
    uint32_t bytes; /* of items */
} snapshot_buffer;

/* On its way to the writer and home again. */
typedef struct snapshot_work {
    disk_job base;
    snapshot_buffer buffer;
    snapshot_head head;
    snapshot_foot foot;  /* counted as far as it is written */
    uint64_t at, synced; /* of the file: what is written, and what of it is synced */
    int handle;          /* -1: not open */
    bool created, last, drop;
    snapshot_outcome outcome;
} snapshot_work;

typedef struct snapshot_writer {
    snapshot_config c;
    enum { SNAPSHOT_IDLE, SNAPSHOT_WRITES, SNAPSHOT_FINISHES, SNAPSHOT_DROPS } state;
    snapshot_buffer filling, other; /* other: while none is under way */
    uint64_t due_ns;                /* the next chunk is not given away before */
    bool stopped;                   /* nothing more is posted */
    snapshot_foot foot;             /* as finished */
    snapshot_work work;
} snapshot_writer;

/* 0 or -ENOMEM. */
int snapshot_open(snapshot_writer *w, const snapshot_config *c);
/* Of `head`, cluster, instance and thread are set here. None is under way. */
void snapshot_begin(snapshot_writer *w, const snapshot_head *head);
static inline bool snapshot_is_idle(const snapshot_writer *w) { return w->state == SNAPSHOT_IDLE; }
/* The most that an item may have. */
static inline uint32_t snapshot_item_max(const snapshot_writer *w) {
    return w->c.chunk_bytes - (uint32_t)sizeof(snapshot_chunk);
}
/* Where the next item goes, whole; `kind` is not SNAPSHOT_FOOT, and only items of one kind are in a chunk. NULL: no room
 * before `room` is called, or before snapshot_due_ns. */
uint8_t *snapshot_put(snapshot_writer *w, uint32_t kind, uint32_t bytes, uint64_t now_ns);
/* Until then a chunk that is full is kept back; UINT64_MAX: it is not that. */
uint64_t snapshot_due_ns(const snapshot_writer *w, uint64_t now_ns);
/* All was put. Of `foot`: last, epoch, digest and doubt_ms. */
void snapshot_finish(snapshot_writer *w, const snapshot_foot *foot);
/* It is not wanted any more. `ended` follows, even with DONE where it was about to be. */
void snapshot_drop(snapshot_writer *w);
/* The copy is gone for ever, and none of it is under way: its snapshot is removed, now or at a later start. */
void snapshot_remove(snapshot_writer *w, uint32_t shard, uint64_t copy);
/* Nothing more is posted. Then the writer is stopped, the mailbox at home is emptied, and the rest is freed. */
void snapshot_stop(snapshot_writer *w);
void snapshot_free(snapshot_writer *w);

#endif
