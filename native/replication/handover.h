/* handover.h: an owner gives its shard to a copy in sync, and becomes a copy itself (docs/handover.md). Private to
 * native/replication.
 *
 *   SERVING   leases of the shard are short; the heir may lag
 *   HANDING   nothing is answered or granted, and what comes waits, until the heir has all and every lease is over
 *   SERVING   again, if nothing comes of it
 *
 * It steps down too when another one was made the owner without its doing: PAUSED, until nobody relies on it any more and
 * what clients' changes hold in the table is records; then OPEN, as a copy that has those. */
#ifndef FARKV_REPLICATION_HANDOVER_H
#define FARKV_REPLICATION_HANDOVER_H
#include "../dataplane/command.h"
#include "../storage/shard.h"

/* Jobs of commands, on the worker's thread. */
void handover_begin(job *j);
void handover_step_down(job *j);

/* In each turn, while s->repl.handing. */
void handover_watch(shard *s);
uint64_t handover_deadline(const shard *s);
/* It is to be served, or closed: whoever waits for the handover is told so. */
void handover_end(shard *s, fkv_status why);

/* The same while s->repl.stepping_down. */
void handover_watch_step_down(shard *s);
uint64_t handover_step_down_deadline(const shard *s);

#endif
