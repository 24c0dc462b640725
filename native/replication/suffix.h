/* suffix.h: the records of a shard that are prepared here and have not taken effect, by their numbers: what an owner has
 * to send, and what is still to be logged. Private to native/replication.
 *
 * A record is not kept as bytes: it is made anew each time it is needed, from what is prepared. Of an owner's own changes
 * that is an op in shard.unacked; of what a copy has prepared of another owner's an entry of its ring. */
#ifndef FARKV_REPLICATION_SUFFIX_H
#define FARKV_REPLICATION_SUFFIX_H
#include "../storage/shard.h"
#include "../wire/record.h"

typedef struct op op;

/* One record of it. */
typedef struct suffix {
    const shard *s;
    uint64_t lsn;
    op *of; /* NULL: it is in the ring; or there is none of that number yet */
} suffix;

uint64_t suffix_last(const shard *s); /* the last that is prepared */
/* Above what has taken effect, and at most one behind the last. */
suffix suffix_at(const shard *s, uint64_t lsn);
void suffix_next(suffix *p);
/* BULK: its value is too large for a message, and does not go with it. */
fkv_record suffix_record(const suffix *p, const uint8_t **key, const uint8_t **value);
const table_prepared *suffix_prepared(const suffix *p);
/* As many as fit, from this one on; returns their bytes. A large value has the first place. */
uint32_t suffix_fill(suffix *p, uint8_t *to, uint32_t room, uint16_t *count);

/* The record of a change, as of suffix_record. */
fkv_record suffix_describe(const op *o);

#endif
