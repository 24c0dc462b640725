/* helper.h: a thread that runs jobs in the order posted: what would hold up a data-plane thread (allocating and
 * registering memory, copying large values) is done by one of these. */
#ifndef FARKV_BASE_HELPER_H
#define FARKV_BASE_HELPER_H
#include <pthread.h>
#include "mailbox.h"

/* A thread that takes no signals: those are for the process's own threads. 0 or a negative errno. */
int thread_start(pthread_t *t, void *(*run)(void *), void *arg);

typedef struct helper {
    mailbox box;
    pthread_t thread;
    bool running;     /* of the thread that starts and stops it */
    bool stopping;    /* atomic */
    const char *name; /* of the thread, at most 15 bytes */
} helper;

/* The box alone, without a thread: helper_drain runs what is posted. */
int helper_open(helper *w, const char *name);
int helper_start(helper *w, const char *name);
static inline void helper_post(helper *w, job *j) { mailbox_post(&w->box, j); }
/* Runs what was posted, then ends the thread, if there is one. What is posted later stays in the box, for helper_drain.
 * */
void helper_stop(helper *w);
/* Without a thread, or after helper_stop: runs what is in the box on the caller's thread; returns how many. */
static inline int helper_drain(helper *w) { return mailbox_run(&w->box); }
void helper_free(helper *w);

#endif
