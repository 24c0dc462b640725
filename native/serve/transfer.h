/* transfer.h: large values; see transfer.c. Private to native/serve. */
#ifndef FARKV_SERVE_TRANSFER_H
#define FARKV_SERVE_TRANSFER_H
#include "../fabric/fabric.h"
#include "stages.h"

typedef struct bounce_pool bounce_pool;

fkv_status transfer_pool_create(bounce_pool **out); /* transfer_pool_free also what has failed */
int transfer_pool_register(bounce_pool *p, fab_domain *d, uint32_t place);
void transfer_pool_free(bounce_pool *p);
bool transfer_admit(const client *c, uint32_t bytes); /* whether there is room for one more of this size */
fkv_status transfer_begin(op *o);                     /* held -> OP_TRANSFERS; an error: nothing was begun */
/* The same for the present value of its key, which the new one begins with and is prepared beside. */
fkv_status transfer_keep(op *o, const uint8_t *present, uint32_t bytes);
void transfer_attached(client *c, const fab_wc *wc);
void transfer_read_done(worker *w, const fab_wc *wc);
/* ends as soon as nothing writes its extent; nothing when it is failing already */
void transfer_fail(op *o, fkv_status s);
void transfers_step(worker *w);
uint64_t transfers_deadline(const worker *w);
void transfers_hurry(client *c); /* the copier is to stop reading this client's memory */
void transfer_orphan(op *o);     /* its connection was freed: no READ is in flight any more */

#endif
