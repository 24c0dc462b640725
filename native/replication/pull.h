/* pull.h: large values on their way to a copy: it fetches them (bulk/fetch.h) from its owner's table, over the link,
 * before their change has a number in the log, so that the log never waits for them (docs/replication-links.md, "Large
 * values"). Private to native/replication.
 *
 * A *puller* is a connection's: it pulls one value at a time. A *pull* is one value: announced, prepared in the copy's
 * table, fetched, checked; then its record comes, and takes it; or it is dropped. */
#ifndef FARKV_REPLICATION_PULL_H
#define FARKV_REPLICATION_PULL_H
#include "backup.h"

typedef struct puller puller;
typedef struct pull pull;

/* Sends one message of the link; 0 or a negative errno. */
typedef struct pull_out {
    int (*send)(void *ctx, const void *message, uint32_t bytes);
    void *ctx;
} pull_out;

puller *puller_make(worker *w, fab_conn *c, uint32_t place); /* NULL: no memory */
/* The connection was freed, and what it was pulling is dropped. */
void puller_free(puller *p);

/* A VALUE_OFFER that was parsed came for the copy. ANEW: the link begins anew. */
backup_result pull_begin(puller *p, backup *b, const fkv_peer_message *m);
/* At the end of a turn: prepares, begins to fetch, says what has come. False: the connection is of no use any more. */
bool puller_step(puller *p, const pull_out *out);
bool puller_broken(const puller *p); /* the next step will say so */
/* FAB_WC_READ, FAB_WC_ATTACH. */
void puller_event(puller *p, const fab_wc *wc);

/* The record of a change whose value was announced has come: TOOK with what is prepared; WAITS: it is still on its way;
 * ANEW: it was never announced. */
backup_result pull_take(backup *b, uint64_t version, backup_record *out);
void pull_forget(backup *b, uint64_t version);
void pulls_drop(backup *b); /* all that no record has taken */

#endif
