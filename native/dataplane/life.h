/* life.h: how shards come, are served, and go; see life.c. Private to native/dataplane. */
#ifndef FARKV_DATAPLANE_LIFE_H
#define FARKV_DATAPLANE_LIFE_H
#include "command.h"

/* Jobs of commands, on the group's thread. */
void shard_open(job *j);
void shard_serve(job *j);
void shard_close(job *j);
void shard_layout(job *j);
void shard_seal(job *j);
void shard_pause(job *j);

void shards_tick(group *g);
uint64_t shards_deadline(const group *g);
void shards_end(group *g);             /* after the thread was joined: all of them are freed */

#endif
