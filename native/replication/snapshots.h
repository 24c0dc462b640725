/* snapshots.h: when snapshots of a worker's durable shards are made, and what of its log is given back for them
 * (docs/snapshots.md). Private to native/replication.
 *
 * One at a time: of the shard whose turn it is, a step in a turn of the loop. Not for: bytes and files (native/log), nor
 * for what is in them (walk.h). */
#ifndef FARKV_REPLICATION_SNAPSHOTS_H
#define FARKV_REPLICATION_SNAPSHOTS_H
#include "walk.h"

typedef struct snapshots {
    worker *w;
    snapshot_writer writer;
    bool open;       /* of writer */
    bool trims;      /* more of the log may be given back than at the last step */
    fkv_list wanted; /* shards, in order */
    uint32_t files;  /* of the log, when it was last looked whether that is too long */
    shard *of;       /* whose is under way; NULL: none, or it is being dropped */
    bool walks;      /* and not all of it was given */
    bool holds;      /* all was given, and `foot` waits until the log has on the disk what it names */
    snapshot_foot foot;
    walk walk;
    uint64_t next_ns; /* when the next step is due, or it is looked whether one may begin */
} snapshots;

/* By the thread that starts and stops. 0 or a negative errno; snapshots_free also what has failed. */
int snapshots_open(snapshots *x, worker *w);
void snapshots_stop(snapshots *x);
void snapshots_free(snapshots *x);

/* Job of a command: one is made that begins from now on. */
void snapshots_ask(job *j);
/* One is made of what the copy was made from, as soon as its epoch has begun. */
void snapshots_owe(shard *s);
/* The shard is closed here: its copy is gone for ever. */
void snapshots_end(shard *s);
/* The worker ends; the copy does not. */
void snapshots_leave(shard *s, fkv_status why);

void snapshots_step(snapshots *x);
uint64_t snapshots_deadline(const snapshots *x);

#endif
