/* loop.h: one data-plane thread's loop; see loop.c. Private to native/dataplane. */
#ifndef FARKV_DATAPLANE_LOOP_H
#define FARKV_DATAPLANE_LOOP_H
#include "worker.h"

/* All by the thread that starts and stops. */
int group_create(dataplane *d, uint32_t number, group **out);   /* group_free also what has failed half-way */
int group_add_provider(group *g, fab_provider p);
int group_start(group *g);
void group_join(group *g);             /* tells it to stop, and waits; jobs that come later are for group_drain */
static inline int group_drain(group *g) { return mailbox_run(&g->box); }
void group_free(group *g);
void loop_unlisten(dataplane *d, uint32_t group);   /* by the thread that has the group */

#endif
