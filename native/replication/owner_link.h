/* owner_link.h: the backup's end of a link: the connection that a worker has to a worker of an owner, of whose shards it
 * has copies (docs/replication-links.md). Private to native/replication.
 *
 * It dials, again and again, for as long as there are copies that follow over it. One owner's worker has one for each
 * tenant. Its ticket it makes itself, with the cluster's secret. */
#ifndef FARKV_REPLICATION_OWNER_LINK_H
#define FARKV_REPLICATION_OWNER_LINK_H
#include "../dataplane/client.h"
#include "backup.h"

enum { OWNER_LINK_ADDRESSES = 8, OWNER_LINK_ADDRESS_MAX = 256 };
typedef struct link_address {
    fab_provider provider;
    uint32_t device; /* of the owner's, by its own numbers */
    char text[OWNER_LINK_ADDRESS_MAX];
} link_address;

/* The copy follows the owner's worker that listens there, the better address first. False: no memory. */
bool owner_link_follow(backup *b, const link_address *at, uint32_t count);
/* It follows nobody any more: it is closed, or the owner's, or another's. */
void owner_link_leave(backup *b);

/* There is something new to acknowledge. */
void owner_link_owes(backup *b);

void owner_link_event(worker *w, owner_link *u, const fab_wc *wc);
/* At the end of a turn: dials, goes on with what waits for memory, follows, acknowledges. */
void owner_links_step(worker *w);
uint64_t owner_links_deadline(const worker *w);

#endif
