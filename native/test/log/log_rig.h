/* log_rig.h: a log on a memory disk, with the truth about it: what was appended, what was reported durable, and what
 * snapshots have. A recovery is compared with that.
 *
 * Helpers have no threads here: a test says when they run. */
#ifndef FARKV_TEST_LOG_LOG_RIG_H
#define FARKV_TEST_LOG_LOG_RIG_H
#include "../../log/wal.h"
#include "memory_disk.h"

enum { RIG_SHARDS = 3, RIG_ITEMS = 1 << 13, RIG_FILE = 40 << 10, RIG_BUFFER = 12 << 10 };

/* A record, or the beginning of an epoch. */
typedef struct rig_item {
    uint32_t shard, epoch;
    uint64_t lsn; /* of an epoch: the first that is cut off */
    uint64_t id;  /* of the record; 0: an epoch */
} rig_item;

typedef struct rig_shard {
    uint32_t epoch, durable_epoch, snapshot_epoch;
    uint64_t next, durable_next, snapshot; /* all up to `snapshot` is in one */
} rig_shard;

typedef struct rig {
    memory_disk disk;
    helper writer, maker;
    mailbox home;
    wal_config config;
    wal log;
    bool open;
    wal_found found;
    disk_failure failure;
    uint32_t failures;

    rig_shard shards[RIG_SHARDS];
    rig_item items[RIG_ITEMS]; /* in the order appended */
    uint32_t count, durable;   /* the first `durable` were reported */
    uint32_t from, to;         /* what the last replay gave */
    bool replayed;
    uint64_t last_id;
    uint32_t cuts; /* by power */
} rig;

extern const wal_identity rig_identity;

void rig_init(rig *r, uint64_t seed, uint32_t sector);
void rig_free(rig *r);
void rig_replay(rig *r);
/* Replays, compares with the truth, and opens the log. False: the disk is off or fails again. */
bool rig_recover(rig *r);
/* The process is gone, with the helpers' jobs. Then the power too, where `power` is set. */
void rig_end(rig *r, bool power);
/* One record of so many bytes, at least 16. False: no room. */
bool rig_append(rig *r, uint32_t shard, uint32_t records, uint32_t bytes);
bool rig_begin_epoch(rig *r, uint32_t shard, uint32_t cut_off);
void rig_snapshot(rig *r, uint32_t shard); /* of all that is durable; files are given back */
/* Flushes, and runs all helpers until nothing is left to do. */
void rig_settle(rig *r);
/* So many steps of a random history, or until the disk is off or has failed. */
void rig_random_steps(rig *r, int steps);
/* A log with batches in `files` files, synced, then the process ended; its disk may be damaged. */
void rig_filled(rig *r, uint64_t seed, int files);
#endif
