/* read.h: two-sided GET, SCAN and LAYOUT; see read.c. Private to native/serve. */
#ifndef FARKV_SERVE_READ_H
#define FARKV_SERVE_READ_H
#include "stages.h"

attempt_result read_attempt(op *o); /* GET */
void read_scan(op *o);
void read_tally(op *o);
void read_changed(op *o); /* SCAN of the log of changes */
void read_layout(op *o);
void read_leases(op *o);

#endif
