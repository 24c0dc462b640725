/* backup_link.h: the owner's end of a link: a connection by which a worker of another server gets the records of shards
 * that it backs up (docs/replication-links.md). Private to native/replication.
 *
 * It is a client's connection whose ticket has FKV_TICKET_REPLICA: it is accepted, expires and ends as one, but what
 * comes over it are messages of wire/peer.h, and no requests. */
#ifndef FARKV_REPLICATION_BACKUP_LINK_H
#define FARKV_REPLICATION_BACKUP_LINK_H
#include "../dataplane/client.h"

typedef struct backup_link backup_link;
typedef struct shard shard;
typedef struct sender sender;

backup_link *backup_link_make(client *c); /* NULL: no memory */
fab_provider backup_link_provider(const backup_link *l);
void backup_link_free(backup_link *l); /* its senders end; NULL: nothing */
void backup_link_received(worker *w, client *c, const fab_wc *wc);
void backup_link_credits(client *c);

/* The copy is none of this owner's any more: its sender ends. */
void backup_link_refuse(sender *f);
/* The record of a large value that was announced over it will not come. */
void backup_link_forgets(sender *f, uint64_t version);

/* The shard has records that its backups were not sent. */
void backup_links_wake(shard *s);
/* At the end of a turn: records, and beats that are due. */
void backup_links_send(worker *w);
uint64_t backup_links_deadline(const worker *w);

#endif
