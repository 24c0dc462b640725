/* run.h: what arrived, and all that is on the worker's lists, goes on as far as it can; see run.c. Private to
 * native/serve. */
#ifndef FARKV_SERVE_RUN_H
#define FARKV_SERVE_RUN_H
#include "../dataplane/worker.h"

void run_arrived(worker *w); /* the batch at hand */
void run_starved(worker *w); /* memory may have come: those who wait for it are tried again */
void run_all(worker *w);     /* drains the lists; they are empty afterwards */
void run_answers(worker *w); /* only those whose outcome is known, so that they are no longer counted */
bool run_pending(const worker *w);

#endif
