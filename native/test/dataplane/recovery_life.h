/* recovery_life.h: the life of a server whose shards are copies of an owner that the test plays, on a disk that loses power.
 * After each start its tables are compared with what that owner has sent.
 *
 * One thread: the data plane is stepped, and its time is the test's. */
#ifndef FARKV_TEST_RECOVERY_LIFE_H
#define FARKV_TEST_RECOVERY_LIFE_H
#include <stdbool.h>
#include <stdint.h>
#include "../../dataplane/dataplane.h"
#include "../log/memory_disk.h"

typedef struct recovery_counts {
    uint64_t lives, cuts, starts_cut, copies, snapshots, from_snapshots, trims, large, epochs, same_epochs, closed,
        bare;
} recovery_counts;

/* One life with several starts; its disk goes off in the n-th operation after a start, n below `most`. */
void recovery_live(uint64_t seed, uint32_t most, recovery_counts *counts);

/* ---- by hand ---- */
enum { RECOVERY_SHARDS = 2 };
void recovery_begin(uint64_t seed); /* the server starts, with a copy of each shard */
memory_disk *recovery_disk(void);
uint64_t recovery_id(uint32_t shard); /* of its copy */
/* The owner sends so many records. They are logged; then all are committed, or none of these. */
void recovery_send(uint32_t shard, uint32_t records, bool committed);
/* Of the largest values that there are; all are committed. */
void recovery_sends_largest(uint32_t shard, uint32_t records);
/* A snapshot of it is made, while so many more are sent and committed between two turns. */
void recovery_snapshot(uint32_t shard, uint32_t meanwhile);
/* The same, and when it has begun an epoch begins, which cuts off what is not committed; so many are committed in it. */
void recovery_snapshot_across_epochs(uint32_t shard, uint32_t records);
/* The same, in an epoch whose beginning is not in the log for a while: it does not begin before. */
void recovery_snapshot_in_a_new_epoch(uint32_t shard);
/* A value of at least so many bytes is damaged in memory, if there is one; and how many of its entries are. */
bool recovery_damages(uint32_t shard, uint32_t bytes_min);
uint32_t recovery_damaged(uint32_t shard);
uint64_t recovery_granted_until_ns(uint32_t shard); /* when the last lease that its copy has given ends */
uint64_t recovery_doubt_ns(uint32_t shard);         /* how long its clients' retries are in doubt */
/* A large value is announced in the log, and its record is not there. It goes with the process. */
void recovery_cuts_value_off(uint32_t shard);
bool recovery_begins_epoch(uint32_t shard); /* the log is to have its beginning, once more */
void recovery_power_goes(void);
/* It starts again; the copies that it finds, and how many. NULL: it does not, and `why` says why. */
const dataplane_recovered *recovery_starts(uint32_t *count, char why[256]);
/* It does not, with threads of its own: when the log has been read the disk fails. */
void recovery_fails_to_start(char why[256]);
void recovery_check(const dataplane_recovered *r); /* a whole one has all that was acknowledged */
fkv_status recovery_discards(uint32_t shard);
uint32_t recovery_log_files(void); /* that are kept */
void recovery_end(void);

extern uint32_t recovery_workers, recovery_of_worker;    /* 1, and 0: that has all shards */
extern uint32_t recovery_epoch;                          /* 1: the first one of copies that are opened */
extern uint64_t recovery_rate;                           /* bytes of a snapshot a second */
extern uint64_t recovery_memory;                         /* of a shard that is recovered */
extern uint64_t recovery_bytes_read, recovery_bytes_all; /* as on_progress said last */
extern uint32_t recovery_log_file;                       /* bytes of a file of the log */
extern uint64_t recovery_takes_ns;                       /* a start, for each copy that it looks for */
extern uint64_t recovery_stops_at;                       /* a start that has read so much is given up */
extern uint64_t recovery_instance;                       /* of the data directory */
extern fkv_status recovery_started;                      /* how the last start ended */

#endif
