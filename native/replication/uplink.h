/* uplink.h: the backup's end of a link: the connection that a worker has to a worker of an owner, of whose shards it
 * has copies (docs/replication-links.md). Private to native/replication.
 *
 * It dials, again and again, for as long as there are copies that follow over it. One owner's worker has one for each
 * tenant. Its ticket it makes itself, with the cluster's secret. */
#ifndef FARKV_REPLICATION_UPLINK_H
#define FARKV_REPLICATION_UPLINK_H
#include "../dataplane/client.h"
#include "backup.h"

enum { UPLINK_ADDRESSES = 8, UPLINK_ADDRESS_MAX = 256 };
typedef struct uplink_address {
    fab_provider provider;
    uint32_t device; /* of the owner's, by its own numbers */
    char text[UPLINK_ADDRESS_MAX];
} uplink_address;

/* The copy follows the owner's worker that listens there, the better address first. False: no memory. */
bool uplink_follow(backup *b, const uplink_address *at, uint32_t count);
/* It follows nobody any more: it is closed, or the owner's, or another's. */
void uplink_leave(backup *b);

/* There is something new to acknowledge. */
void uplink_owes(backup *b);

void uplink_event(worker *w, uplink *u, const fab_wc *wc);
/* At the end of a turn: dials, goes on with what waits for memory, follows, acknowledges. */
void uplinks_step(worker *w);
uint64_t uplinks_deadline(const worker *w);

#endif
