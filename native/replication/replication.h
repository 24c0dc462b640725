/* replication.h: the wall between native/serve and native/replication: neither includes another file of the other.
 *
 * For: whoever serves requests, who tells what has come, asks whether a shard's changes may be made and answered, and
 * gives replication its part of each turn. Replication knows which copies a shard has, sends and takes their records,
 * writes them to the log, and says when a change counts. Not for: tables and their memory (native/storage), requests
 * (native/serve), the rules themselves (rules/replica.h).
 *
 * All of it is called on the worker's thread, but for what says otherwise. */
#ifndef FARKV_REPLICATION_H
#define FARKV_REPLICATION_H
#include "../dataplane/client.h"
#include "../dataplane/command.h"
#include "../dataplane/op.h"
#include "../storage/shard.h"

/* ---- a data plane's start and end: by the thread that starts and stops ---- */

enum { LOG_FILE_BYTES = 64 << 20 }; /* unless dataplane_log says otherwise */
bool repl_log_ok(const dataplane_log *l);
/* Reads what is on the disk, and opens the logs of all workers, whose threads do not run yet. 0, or a negative errno with
 * a sentence in `why`, and whether a log is damaged or lacks a file. */
int repl_start(dataplane *d, bool *damaged, char *why, size_t room);
void repl_stop(worker *w); /* its thread has ended */
int repl_drain(worker *w); /* runs what the log's writer has to do, if it has no thread; how much that was */
void repl_free_worker(worker *w);
void repl_free(dataplane *d);

/* ---- a worker's turn ---- */

bool repl_link(client *c);   /* the connection is of a server that has copies of shards here; false: no memory */
void repl_unlink(client *c); /* it is freed */
/* A completion of a connection between servers. */
void repl_event(worker *w, connection *of, const fab_wc *wc);
/* Of a worker with a log, towards the end of a turn: to that. What is ready by then is to be run before the rest is sent. */
void repl_write(worker *w);
void repl_send(worker *w);
uint64_t repl_deadline(const worker *w);
/* The worker ends: it follows nobody any more; and, when all was answered, that is on the disk. */
void repl_leave(worker *w);
void repl_sync(worker *w);

/* ---- a shard's life ---- */

/* Job of a command, after its memory was made: opened empty, or closed again where that fails. */
void repl_open(job *j);
/* A shard that is no copy, and was not served yet, begins its epoch: until now an earlier owner may have made changes,
 * however long ago the shard was opened here. */
fkv_status repl_begins(shard *s);
bool repl_follows(const shard *s); /* it is a copy, and another server owns it */
/* Whether it may be served: it is no copy, or the owner's, nothing of an earlier owner is in the way, and the disk has the
 * snapshot that it owes. */
bool repl_may_serve(const shard *s);
void repl_serves(shard *s); /* it is: calls that would have it otherwise end as BUSY */
void repl_pauses(shard *s); /* it is not for a while: a handover that is under way ends */
void repl_closes(shard *s); /* no more: its calls end, and what waits for copies is undecided */
void repl_closed(shard *s); /* and no op is about it any more */
/* In each turn, while shard.attended; true: in the next, too. */
bool repl_attend(shard *s);
/* In each turn; `ticked`: its table was, so there may be memory. */
void repl_tick(shard *s, bool ticked);
uint64_t repl_shard_deadline(const shard *s);
/* The worker's clients have ended: what waits for copies is undecided. */
void repl_undecided(shard *s);
void repl_end(shard *s); /* the thread was joined: calls end as CLOSED, and shard_free is next */

void repl_shard_stats(const shard *s, dataplane_copy_stats *out);
void repl_log_stats(const worker *w, dataplane_log_stats *out); /* of a worker with a log */

/* ---- changes, of a shard whose changes have records (shard.repl.backups) ---- */

/* Whether one may be prepared: OK; BUSY: not yet, the window is full; TOO_FEW_COPIES: are in sync; TABLE_FULL: a backup
 * that has to have it has no room. */
fkv_status repl_admits(const op *o);
/* It is prepared: its record is drawn, and it waits for backups. */
void repl_append(op *o);
/* Whether changes wait because the log's disk is full. */
bool repl_disk_full(const shard *s);
/* Memory is short: copies that join, and that nobody waits for, give theirs back. */
void repl_gives_way(shard *s);
/* A copy joins here, with a SCAN: it has what is committed, and gets what follows. OK, BUSY: there is no place,
 * BAD_REQUEST: it has joined long ago, NO_MEMORY. */
fkv_status repl_join(shard *s, uint64_t id);

/* ---- what replication asks of whoever serves: native/serve has these ---- */

/* To be answered so, its followers too; what is held, and was not committed, is undone. It is in no list. */
void op_ends(op *o, fkv_status s);
/* It ends as UNDECIDED, and what it has prepared in the table stays: the caller has it. */
void op_let_go(op *o);
/* A change of the key has ended: who waits for it is woken. */
void wait_key_free(worker *w, uint64_t hash);
/* Nothing of the shard is answered any more: what streams or is on its way ends. What waits goes on to wait. */
void shard_stops(shard *s);
/* What waits is answered so. */
void shard_refuses(shard *s, fkv_status why);

#endif
