/* client.h: one connection. Private to the data plane's folders. */
#ifndef FARKV_DATAPLANE_CLIENT_H
#define FARKV_DATAPLANE_CLIENT_H
#include "../base/list.h"
#include "../bulk/fetch.h"
#include "../wire/wire.h"
#include "dedup.h"

typedef struct client client;
typedef struct worker worker;
typedef struct dp_tenant dp_tenant;
typedef struct backup_link backup_link;

/* What the user of a connection of a worker's is: the struct begins with it. */
typedef struct connection {
    enum { CONNECTION_CLIENT, CONNECTION_BACKUP_LINK, CONNECTION_OWNER_LINK } kind; /* a backup_link is a client too */
} connection;

struct client {
    connection head;
    fkv_list of_worker; /* worker.clients or .doomed */
    fkv_list sending;   /* in worker.sending while `out` is not empty and it is not blocked */
    fkv_list blocked;   /* in worker.blocked, longest first, while the peer gives no credits */
    fkv_list ops;
    fkv_list out; /* ops in OP_ANSWERS, in order */
    worker *w;
    fab_conn *conn;
    fab_provider provider;
    uint32_t place;    /* fab_place: whose rkeys it is given */
    dp_tenant *tenant; /* of the ticket */
    fkv_ticket ticket;
    uint8_t nonce[FKV_NONCE_BYTES]; /* that its proof was made for */
    uint32_t op_count, asides;      /* asides: those of them that do not count against the quota */
    fetch_source source;            /* of its large values */
    uint64_t transfer_bytes;
    uint32_t max_message;
    bool doomed; /* to be ended at the end of this turn */
    bool is_blocked;
    uint64_t blocked_ns;
    dedup_client *memory;
    backup_link *link; /* of a backup_link */
};

/* Ends it at the end of this turn. `why` is told to the operator and to the client; NONE: it has gone by itself, or all
 * end. */
void client_doom(client *c, fkv_end why);

#endif
