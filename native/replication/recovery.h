/* recovery.h: what a start finds on the disk: the snapshots and logs of all workers, and the copies that they make
 * (docs/snapshots.md). Private to native/replication.
 *
 * Snapshots are found once, by the thread that starts; then each worker's are read with its log, several workers at the same
 * time. What copies came of it stays known until stop. */
#ifndef FARKV_REPLICATION_RECOVERY_H
#define FARKV_REPLICATION_RECOVERY_H
#include "recover.h"

typedef struct recovery recovery;

/* Looks at what is there, for all workers. 0, or a negative errno with a sentence in `why`. */
int recovery_find(dataplane *d, char *why, size_t room);
/* Reads a worker's: its snapshots, then its log into `found`, as wal_replay does. By any thread, which has the worker. */
void recovery_read(worker *w, const wal_identity *of, wal_found *found);
/* All workers' were read. 0, -ENOMEM, or -ECANCELED: it was given up. */
int recovery_ends(dataplane *d);
void recovery_free(dataplane *d);
/* When it began: by then the life before had given its last lease. */
uint64_t recovery_began_ns(const dataplane *d);

/* Whether it is one that is not whole and was not discarded: what is on the disk of it is kept. On its worker's thread. */
bool recovery_keeps(const worker *w, uint32_t number, uint64_t id);
/* Job of a command: it is discarded. */
void recovery_discard(job *j);
/* Whose it is; -1: none of those. Any thread. */
int recovery_worker(const dataplane *d, uint32_t number, uint64_t id);

#endif
