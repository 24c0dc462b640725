/* open.h: how a shard begins: opened empty, or as what another owner's copy is made from. Private to
 * native/replication. */
#ifndef FARKV_REPLICATION_OPEN_H
#define FARKV_REPLICATION_OPEN_H
#include "../storage/shard.h"

/* In this epoch, under this id, nothing was logged, noted or promised of what is in its table. OK, NO_MEMORY. */
fkv_status open_anew(shard *s, uint32_t epoch, uint64_t id);

#endif
