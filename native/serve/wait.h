/* wait.h: where changes and reads wait that cannot go on yet; see wait.c. Private to native/serve. */
#ifndef FARKV_SERVE_WAIT_H
#define FARKV_SERVE_WAIT_H
#include "stages.h"

/* Each takes an op that is in no list. Where there is no room to wait, it ends with BUSY. */
void wait_for_key(op *o, bool first); /* first: before the others that wait for it */
void wait_for_memory(op *o);
bool wait_somebody(const worker *w, uint64_t hash); /* whether somebody waits for this key */
/* out of whatever it waits in, also when it follows or is to be run */
void wait_remove(op *o);

/* Those who can go on leave their queue for the caller to try, between wait_begin and wait_end of the queue, so that it
 * stays theirs. */
key_queue *wait_begin(worker *w);                         /* the first of worker.woken */
op *wait_next(key_queue *q);                              /* NULL: nobody, or the one before waits for memory */
key_queue *wait_begin_starved(op *o);                     /* of worker.starved */
void wait_end(worker *w, key_queue *q, bool goes_on);     /* goes_on: its key is still free for the next */
void wait_over(worker *w, shard *s, uint64_t starved_ns); /* an op has waited for memory since then */

void wait_expire(worker *w); /* those whose time is up end with BUSY */
void wait_free_queues(worker *w);

#endif
