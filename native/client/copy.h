/* copy.h: a shard is copied by another server while its owner goes on to serve it; then the copy is a backup.
 *
 * For: the server that is to have a copy, through native/node/server_copies.c, and C tests. Not for: which copies a shard
 * has, which is decided in the metadata; the copy only says how far it is.
 *
 *      copy                                                      owner
 *      one thread for each copy                                  its data plane
 *      begins                --- SCAN_CHANGED, place 0 ------->  notes changed keys from here on (change_log.h)
 *      all keys, in pages    --- SCAN_COPY ------------------->  keys, versions, times to live, flags
 *                                                              small values too, with their checksums
 *        other values        === one-sided READs ============>   (nothing)
 *        into its table      (dataplane_import: its own data plane's thread)
 *      what changed, after   --- SCAN_CHANGED ---------------->  the same of keys that were changed
 *        each page, up to    === one-sided READs ============>   (nothing)
 *        16 pages; and on
 *      rests as long as the page took, 2 ms at most, where clients changed the shard meanwhile, but no more than one
 *          page of changes holds
 *      caught up: told once; goes on to copy what changes
 *      joined, when it was told to follow: the owner names the place in its log that the listed entries reach
 *          (FKV_CHANGED_JOINED); once these are in the table, the shard's own data plane follows that log
 *          (dataplane_follow_copy), and the copy has ended
 *
 * Why nothing is missed and nothing old stays: a key that is there from the first to the last page is in a page; one
 * that was changed since the beginning is in the log after the change, so what is looked up for it then is that change
 * or a later one, which is in the log behind it. A value is taken over under the version under which it was listed or
 * not at all: another version means that the key was changed after it was listed. At the place where the copy joins, its
 * table holds what the owner's does; what is committed later has a record behind it.
 *
 * A copy that fails in the middle (the log was lost, the connection is gone for COPY_ASK_MS) has no second try: what
 * was deleted meanwhile is not known. The table has to be made anew, or to be the base of the next copy: then values that
 * it has in the listed version are not READ, and what it has and is not listed goes (docs/rejoin.md).
 *
 * Threads. start, follow, cancel and stop by one thread at a time; callbacks come from the copy's own thread, or from
 * the call when the copy has ended, each once, and must not call these. */
#ifndef FARKV_CLIENT_COPY_H
#define FARKV_CLIENT_COPY_H
#include "../dataplane/dataplane.h"
#include "session/session.h"

enum { COPY_ASK_MS = 5000 }; /* for one answer of the owner */

typedef struct shard_copy shard_copy;

typedef struct shard_copy_config {
    dataplane *to; /* the shard is open there, and not served */
    uint32_t shard;
    uint32_t first_shard, shards; /* of the shard's tenant: its first one, and the one behind its last */
    fkv_seed seed;
    fkv_pass pass;                    /* READ and COPY */
    uint64_t server_incarnation;      /* of the owner, as in session_owner_config */
    const session_address *addresses; /* of its worker that serves the shard; copied */
    uint32_t count;
    uint32_t epoch;       /* in which the owner has the shard, */
    uint64_t incarnation; /* and the incarnation that it has */
    uint64_t copy;        /* id of the one at `to` */
    bool base;            /* the table there has entries of before (dataplane_keep_base) */
} shard_copy_config;

/* `caught_up`: everything was copied once, and what changed since is little; or why the copy failed. Result: NULL. */
fkv_status shard_copy_start(const shard_copy_config *c, dataplane_done caught_up, void *ctx, shard_copy **out);
/* The copy goes on as a backup. `done`: the owner has answered its FOLLOW, as dataplane_follow_copy says; or why the copy
 * failed. Result: shard_copy_stats. Once for a copy. */
void shard_copy_follow(shard_copy *c, dataplane_done done, void *ctx);
/* Storage for one who waits for the end of a copy; the caller's until `ended` is called. */
typedef struct shard_copy_waiter {
    dataplane_done ended;
    void *ctx;
    struct shard_copy_waiter *next;
} shard_copy_waiter;

/* Ends what is under way with ABORTED, and returns at once: what was lent to the table is waited for by the copy's
 * thread, which tells `w` when nothing is under way any more. For a thread that others wait for: an import takes as
 * long as memory for the table does. */
void shard_copy_cancel(shard_copy *c, shard_copy_waiter *w);
/* Ends what is under way with ABORTED and frees. Waits for it: as long as an import takes, and not at all once a waiter
 * was told. */
void shard_copy_stop(shard_copy *c);

typedef struct shard_copy_stats {
    uint64_t entries, bytes; /* taken over: also more than once */
    uint64_t kept;           /* listed entries that the base has: nothing was READ for them */
    uint64_t reads;          /* one-sided */
    uint64_t two_sided;      /* values that the owner was asked for, since a READ did not do */
} shard_copy_stats;

#endif
