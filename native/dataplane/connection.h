/* connection.h: connections: asked for, accepted or refused, ended; see connection.c. Private to native/dataplane. */
#ifndef FARKV_DATAPLANE_CONNECTION_H
#define FARKV_DATAPLANE_CONNECTION_H
#include "../fabric/fabric.h"
#include "worker.h"

void client_ask(worker *w, fab_provider p, const fab_wc *wc); /* FAB_WC_ACCEPT */
void clients_reap(worker *w);
bool clients_to_reap(const worker *w);

#endif
