/* life.h: how shards are served, and go; see life.c. Private to native/serve. */
#ifndef FARKV_SERVE_LIFE_H
#define FARKV_SERVE_LIFE_H
#include "../replication/replication.h"

/* Jobs of commands, on the worker's thread. */
void shard_serve(job *j);
void shard_close(job *j);
void shard_layout(job *j);
void shard_pause(job *j);
/* worker.limits: dataplane_set_table_memory was called. */
void shard_limits(job *j);

void shards_tick(worker *w);
uint64_t shards_deadline(const worker *w);
void shards_end(worker *w); /* after the thread was joined: all of them are freed */

#endif
