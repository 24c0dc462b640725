/* base.h: the table of a copy that was away for too long is kept, as what the next copy begins with: its *base*
 * (docs/rejoin.md). Private to native/replication.
 *
 * Two things: the copy ends, and its committed entries stay (base_keep); and pages of keys and versions that an owner
 * lists are compared with them (base_compare), so that only values that differ are READ. Not for: listing and READs
 * (native/client/copy.c), nor for when a base is kept (core/shards). */
#ifndef FARKV_REPLICATION_BASE_H
#define FARKV_REPLICATION_BASE_H
#include "../dataplane/command.h"
#include "../storage/shard.h"

void base_keep(job *j); /* of a command */
/* In each turn, while that waits: for a large value that is still being written. */
void base_watch(shard *s);

/* A page and how far it was compared. */
typedef struct base_page {
    dataplane_page of; /* its pointers are the caller's */
    uint32_t index, same;
    bool sorted;
    uint64_t at; /* the cursor in this table */
} base_page;

/* OK: the table has nothing of the page's part of the order that the page does not have; BUSY: it goes on later. */
fkv_status base_compare(shard *s, command *c);

#endif
