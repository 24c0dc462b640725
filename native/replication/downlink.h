/* downlink.h: the owner's end of a link: a connection by which a worker of another server gets the records of shards
 * that it backs up (docs/replication-links.md). Private to native/replication.
 *
 * It is a client's connection whose ticket has FKV_TICKET_REPLICA: it is accepted, expires and ends as one, but what
 * comes over it are messages of wire/peer.h, and no requests. */
#ifndef FARKV_REPLICATION_DOWNLINK_H
#define FARKV_REPLICATION_DOWNLINK_H
#include "../dataplane/client.h"

typedef struct downlink downlink;
typedef struct shard shard;
typedef struct feed feed;

downlink *downlink_make(client *c); /* NULL: no memory */
fab_provider downlink_provider(const downlink *l);
void downlink_free(downlink *l); /* its feeds end; NULL: nothing */
void downlink_received(worker *w, client *c, const fab_wc *wc);
void downlink_credits(client *c);

/* The copy is none of this owner's any more: its feed ends. */
void downlink_refuse(feed *f);
/* The record of a large value that was announced over it will not come. */
void downlink_forgets(feed *f, uint64_t version);

/* The shard has records that its backups were not sent. */
void downlinks_wake(shard *s);
/* At the end of a turn: records, and beats that are due. */
void downlinks_send(worker *w);
uint64_t downlinks_deadline(const worker *w);

#endif
