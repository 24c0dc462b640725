/* stages.h: a request comes from stage to stage (dataplane/op.h). Private to native/serve. */
#ifndef FARKV_SERVE_STAGES_H
#define FARKV_SERVE_STAGES_H
#include "../dataplane/op.h"
#include "../replication/replication.h"

/* What came of an attempt to prepare or read. */
/* ended; prepared; has to wait for that */
typedef enum { ATTEMPT_DONE, ATTEMPT_HELD, ATTEMPT_KEY, ATTEMPT_MEMORY } attempt_result;

op *op_new(client *c); /* NULL: none left */
/* gives its message back; it is in no list, dedup does not know it, nobody follows it */
void op_free(op *o);
bool op_detach(op *o); /* copies key and body, gives the message back; false: no room */
/* held: the table has its key, and its message goes back: what waits for backups takes no credit from its client */
void op_release(op *o);
uint8_t *op_keep(op *o, size_t bytes); /* memory that is counted for the op, to be freed with it; NULL: no room */
void op_lose_client(op *o);            /* its connection goes, and it goes on without */
void ops_free_slabs(worker *w);

/* From stage to stage. Each but the last takes an op that is in no list. */
void op_runs(op *o); /* to be tried */
/* held, and its value is whole: may be committed as soon as every backup that has to has its record */
void op_prepared(op *o);
void op_refused(const op *o, fkv_status s); /* counts it */
/* as op_ends of replication.h, but what went wrong is this copy's own trouble: its first follower takes its place */
void op_fails_alone(op *o, fkv_status s);
void op_follow(op *o, op *first);
void op_unfollow(op *o);
/* dedup keeps its result, or forgets that it came; only of an op that is recorded, which it no longer is afterwards. */
void op_remember(op *o, fkv_status s);
void op_forget(op *o);
/* its client has gone before it took effect: passed on to a follower, or forgotten; freed */
void op_abandon(op *o);

#endif
