/* transfer.h: large values, of changes; see transfer.c. Private to native/serve. */
#ifndef FARKV_SERVE_TRANSFER_H
#define FARKV_SERVE_TRANSFER_H
#include "stages.h"

bool transfer_admit(const client *c, uint32_t bytes); /* whether there is room for one more of this size */
fkv_status transfer_begin(op *o);                     /* held -> OP_TRANSFERS; an error: nothing was begun */
/* The same for the present value of its key, which the new one begins with and is prepared beside. */
fkv_status transfer_keep(op *o, const uint8_t *present, uint32_t bytes);
/* ends as soon as nothing writes its extent; nothing when it is failing already */
void transfer_fail(op *o, fkv_status s);
void transfers_step(worker *w);
uint64_t transfers_deadline(const worker *w);
void transfer_orphan(op *o); /* its connection was freed; fetch_source_end comes next */

#endif
