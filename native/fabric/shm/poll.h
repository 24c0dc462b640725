/* poll.h: what poll.c and cq.c share: the states of sleep and the lists of a CQ. CQ thread only. */
#ifndef FARKV_FABRIC_SHM_POLL_H
#define FARKV_FABRIC_SHM_POLL_H
#include "shm.h"

void shm_disarm(shm_cq *q); /* after a sleep: awake again, edges taken */
void shm_park_idle(shm_cq *q);
void shm_look_for_parked(shm_cq *q, int completions); /* now and then, while awake */
void shm_stop_listening(shm_conn *c);                 /* neither active nor parked any more */

#endif
