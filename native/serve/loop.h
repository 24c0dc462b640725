/* loop.h: one data-plane thread's loop; see loop.c. Private to native/serve. */
#ifndef FARKV_SERVE_LOOP_H
#define FARKV_SERVE_LOOP_H
#include "../dataplane/worker.h"

/* All by the thread that starts and stops. */
int worker_create(dataplane *d, uint32_t number, worker **out); /* worker_free also what has failed half-way */
int worker_add_place(worker *w, uint32_t place);
int worker_start(worker *w);
void worker_join(worker *w); /* tells it to stop, and waits; jobs that come later are for worker_drain */
static inline int worker_drain(worker *w) { return mailbox_run(&w->box); }
void worker_free(worker *w);
/* One turn of the loop, by the thread that has the worker. True: something happened, or is to be gone on with at once.
 * Where the data plane is `stepped` the caller runs what the helpers have to do as well (helper_drain). */
bool worker_turn(worker *w);
void loop_unlisten(dataplane *d, uint32_t worker); /* by the thread that has the worker */

#endif
