/* connection.h: connections: asked for, accepted or refused, ended; see connection.c. Private to native/serve. */
#ifndef FARKV_SERVE_CONNECTION_H
#define FARKV_SERVE_CONNECTION_H
#include "../dataplane/client.h"
#include "../dataplane/worker.h"
#include "../fabric/fabric.h"

void client_ask(worker *w, uint32_t place, const fab_wc *wc); /* FAB_WC_ACCEPT */
void clients_reap(worker *w);
bool clients_to_reap(const worker *w);
void clients_expire(worker *w);                          /* ends those whose tickets are over */
uint64_t clients_deadline(const worker *w);              /* when that is next to be looked at; UINT64_MAX: never */
void clients_judge(job *j);                              /* new rules have come */
fkv_status client_renew(client *c, const uint8_t *body); /* a fkv_renewal */

#endif
