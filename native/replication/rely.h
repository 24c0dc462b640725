/* rely.h: an owner that is about to have a copy taken away relies on its own disk first (R-removal,
 * docs/early-answers.md). Private to native/replication. */
#ifndef FARKV_REPLICATION_RELY_H
#define FARKV_REPLICATION_RELY_H
#include "../dataplane/command.h"
#include "../storage/shard.h"

/* Job of a command. From now on, in the config that the owner has now, it commits only what is on its disk. Done when all
 * that it has committed is; ABORTED with the next config. */
void rely_begin(job *j);
void rely_watch(shard *s); /* in each turn, while `relying` */
void rely_end(shard *s, fkv_status why);

#endif
