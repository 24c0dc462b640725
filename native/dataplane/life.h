/* life.h: how shards come, are served, and go; see life.c. Private to native/dataplane. */
#ifndef FARKV_DATAPLANE_LIFE_H
#define FARKV_DATAPLANE_LIFE_H
#include "command.h"

/* Jobs of commands, on the worker's thread. */
void shard_open(job *j);
void shard_serve(job *j);
void shard_close(job *j);
void shard_layout(job *j);
void shard_seal(job *j);
void shard_pause(job *j);
/* worker.limits: dataplane_set_table_memory was called. */
void shard_limits(job *j);
void shard_limit(shard *s); /* its table has the limit of its role */

/* In this epoch, under this id, nothing was logged, noted or promised of what is in its table. */
fkv_status shard_begins(shard *s, uint32_t epoch, uint64_t id);

/* Nothing of it is answered any more: what streams or is on its way ends. What waits goes on to wait. */
void shard_stops(shard *s);
/* What waits is answered so. */
void shard_refuses(shard *s, fkv_status why);

void shards_tick(worker *w);
uint64_t shards_deadline(const worker *w);
void shards_end(worker *w); /* after the thread was joined: all of them are freed */

#endif
