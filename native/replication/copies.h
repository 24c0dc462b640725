/* copies.h: the copies of a shard, seen by its owner: they join, are required, are let go of, and its server is told how
 * they do. Private to native/replication.
 *
 * For: calls of the server, SCANs that ask to join, and the worker's turns. Not for: who has to have what, which is
 * replica.h's; records and acknowledgements (replicate.c, sender.c). */
#ifndef FARKV_REPLICATION_COPIES_H
#define FARKV_REPLICATION_COPIES_H
#include "../dataplane/command.h"
#include "../storage/shard.h"

/* Nothing is known yet of the backup at this place, which has the records up to joined_at. */
void copies_place(shard *s, int place, uint64_t joined_at);
void copies_came_further(shard *s, int place); /* it has acknowledged more */
/* It asks to follow, and cannot go on from where it is. NOT_OWNER. */
fkv_status copies_refuse(const shard *s, uint64_t id);
/* The shard is led by this config, or by a later one of the same epoch. */
void copies_led(shard *s, const replica_config *c);
void copies_configured(shard *s, const replica_config *c);
/* Sets shard.repl.expects: of a shard without backups, and of one that this server owns no more. */
void copies_expect(shard *s);
void copies_expect_none(shard *s);
/* While the shard has backups: whoever may be proposed is, and on_copy is told what is to be told. Sets shard.repl.expects.
 */
void copies_watch(shard *s);
uint64_t copies_deadline(const shard *s);
void copies_end(shard *s, fkv_status why); /* calls that wait for copies end so */

/* Jobs of commands, on the worker's thread. */
void copies_configure(job *j);
void copies_require(job *j);
void copies_drop(job *j);

#endif
