/* worker.h: a thread that runs jobs in the order posted: what would hold up a data-plane thread (allocating and registering
 * memory, copying large values) is done by one of these. */
#ifndef FARKV_DATAPLANE_WORKER_H
#define FARKV_DATAPLANE_WORKER_H
#include <pthread.h>
#include "mailbox.h"

/* A thread that takes no signals: those are for the process's own threads. 0 or a negative errno. */
int thread_start(pthread_t *t, void *(*run)(void *), void *arg);

typedef struct worker {
    mailbox box;
    pthread_t thread;
    bool running;       /* of the thread that starts and stops it */
    bool stopping;      /* atomic */
    const char *name;   /* of the thread, at most 15 bytes */
} worker;

int worker_start(worker *w, const char *name);
static inline void worker_post(worker *w, job *j) { mailbox_post(&w->box, j); }
/* Runs what was posted, then ends the thread, if there is one. What is posted later stays in the box, for worker_drain. */
void worker_stop(worker *w);
/* After worker_stop: runs what is in the box on the caller's thread; returns how many. */
static inline int worker_drain(worker *w) { return mailbox_run(&w->box); }
void worker_free(worker *w);

#endif
