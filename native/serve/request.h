/* request.h: a message has come; see request.c. Private to native/serve. */
#ifndef FARKV_SERVE_REQUEST_H
#define FARKV_SERVE_REQUEST_H
#include "../dataplane/worker.h"
#include "../fabric/fabric.h"

typedef struct client client;

void request_received(worker *w, client *c, const fab_wc *wc);

#endif
