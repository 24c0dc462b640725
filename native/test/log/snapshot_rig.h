/* snapshot_rig.h: snapshots of a few copies on a memory disk, with the truth about them: which one of each copy was
 * reported done, and which one is on its way. What a reader finds is compared with that.
 *
 * The writer has no thread here: a test says when it runs. A snapshot's items follow from its number, which its head
 * has as the last record. */
#ifndef FARKV_TEST_LOG_SNAPSHOT_RIG_H
#define FARKV_TEST_LOG_SNAPSHOT_RIG_H
#include "../../log/snapshot_read.h"
#include "../../log/snapshot_write.h"
#include "memory_disk.h"

enum { SNAP_COPIES = 3, SNAP_CHUNK = 12 << 10, SNAP_ITEMS = 40 };

/* Numbers of snapshots; 0: none. */
typedef struct snap_copy {
    uint64_t done, under_way;
    bool maybe_removed;
} snap_copy;

typedef struct snap_rig {
    memory_disk disk;
    helper writer;
    mailbox home;
    snapshot_config config;
    snapshot_writer w;
    bool open;
    uint64_t now_ns;

    snap_copy copies[SNAP_COPIES];
    uint64_t last; /* number given */
    uint32_t copy; /* that is under way */
    uint32_t put;  /* of its items */
    uint32_t ended, rooms;
    snapshot_outcome outcome; /* of the last that ended */
    disk_failure failure;
    uint32_t cuts;
} snap_rig;

extern const wal_identity snap_identity;

void snap_init(snap_rig *r, uint64_t seed, uint32_t sector);
void snap_free(snap_rig *r);
/* Opens a writer, after looking at what is there; checks it against the truth. False: the disk failed. */
bool snap_start(snap_rig *r);
/* The process, or the power, ends. */
void snap_end(snap_rig *r, bool power);

/* A snapshot of that copy begins, goes on by one item (false: no room, or all are there), is finished. */
void snap_begin(snap_rig *r, uint32_t copy);
bool snap_put(snap_rig *r);
void snap_finish(snap_rig *r);
/* Runs jobs until none is left. */
void snap_settle(snap_rig *r);
/* Begins one, and puts all its items, as far as the disk takes them. */
void snap_put_all(snap_rig *r, uint32_t copy);
/* All of a snapshot; its number. */
uint64_t snap_make(snap_rig *r, uint32_t copy);
void snap_random_steps(snap_rig *r, int steps);

/* What a reader finds of a copy. */
void snap_read(snap_rig *r, uint32_t copy, snapshot_found *found);
void snap_check(snap_rig *r);

#endif
