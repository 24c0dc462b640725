/* integrity.h: whether a copy is still what its owner has, and its memory what was written. Private to native/replication.
 *
 * A copy that is not fails with CORRUPT: it acknowledges nothing any more, so its owner has it removed, and the leader of
 * the metadata has it made anew. on_copy is told. */
#ifndef FARKV_REPLICATION_INTEGRITY_H
#define FARKV_REPLICATION_INTEGRITY_H
#include "backup.h"

/* An owner's digest as HEARTBEAT has it; 0: it cannot be told now. */
uint64_t integrity_digest(const shard *s);
/* What the owner has of all records up to there. */
void integrity_compare(backup *b, const fkv_peer_heartbeat *x);
/* A look at a part of the copy's memory, when that is due. */
void integrity_step(backup *b);

#endif
