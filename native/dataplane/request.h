/* request.h: a message has come; see request.c. Private to native/dataplane. */
#ifndef FARKV_DATAPLANE_REQUEST_H
#define FARKV_DATAPLANE_REQUEST_H
#include "../fabric/fabric.h"
#include "worker.h"

typedef struct client client;

void request_received(worker *w, client *c, const fab_wc *wc);

#endif
