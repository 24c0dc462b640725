/* bulk.h: an owner's changes whose values are too large for a message: backups pull the value before the change has a
 * number in the log (docs/replication-links.md, "Large values"). Private to native/replication. */
#ifndef FARKV_REPLICATION_BULK_H
#define FARKV_REPLICATION_BULK_H
#include "backup.h"
#include "sender.h"

typedef struct op op;

/* Whether a record of that many bytes of key and value does without: it fits the smallest message that links take. */
bool bulk_fits_message(uint32_t key_bytes, uint32_t value_bytes);
/* Of a change whose record does not: BUSY, not yet: as many are on their way as may be. */
fkv_status bulk_admits(const op *o);
/* It is prepared, its value is whole. It waits in shard.repl.bulks until every required copy has pulled it. */
void bulk_begin(op *o);
/* One that was given a number has taken effect, or ends with its shard. */
void bulk_over(op *o);
/* Takes the first that every required copy has out of the list; NULL: none, or the window is full. */
op *bulk_next(shard *s);
/* What has no number ends so: it had no effect. */
void bulks_end(shard *s, fkv_status why);

/* Bytes of extents of what has no number yet. */
uint64_t bulk_bytes(const shard *s);
/* The copy begins anew: it has nothing of what was announced. */
void bulk_sender_begins(shard *s, uint32_t place);
/* What has no number, to a copy that is waited for. 0, or as peer_out.send: what was not announced is announced the next
 * time. */
int bulk_announce_all(sender *f, const peer_out *out);
/* Of one that has a number, before its record: unless it was. */
int bulk_announce(sender *f, const peer_out *out, const table_prepared *p, fkv_record r, const uint8_t *key,
                  uint8_t *announced);
/* Of one that took effect here and that the copy lacks, before its record. Not *there: its key was changed since, or its
 * entry has ended. */
int bulk_announce_committed(sender *f, const peer_out *out, const fkv_record *r, const uint8_t *key, bool *there);
/* The copy has pulled it, or has no room. */
void bulk_pulled(sender *f, uint64_t version, fkv_status status);

#endif
