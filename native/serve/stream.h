/* stream.h: replies on their way out; see stream.c. Private to native/serve. */
#ifndef FARKV_SERVE_STREAM_H
#define FARKV_SERVE_STREAM_H
#include "stages.h"

void reply_send(op *o);                /* o->reply is set: now, or when credits are there */
void stream_fail(op *o, fkv_status s); /* in OP_ANSWERS: the rest is not sent, but this */
uint32_t stream_body_max(const client *c);
/* one slice for each client that has something to send; true: there is more to send */
bool replies_continue(worker *w);
void reply_credits(client *c); /* FAB_WC_SEND_READY */
uint64_t replies_deadline(const worker *w);

#endif
