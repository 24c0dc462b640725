/* uncommitted.h: the records of a shard that are prepared here and have not taken effect, by their numbers: what an owner has
 * to send, and what is still to be logged. Private to native/replication.
 *
 * A record is not kept as bytes: it is made anew each time it is needed, from what is prepared. Of an owner's own changes
 * that is an op in shard.repl.unacked; of what a copy has prepared of another owner's an entry of its ring. */
#ifndef FARKV_REPLICATION_UNCOMMITTED_H
#define FARKV_REPLICATION_UNCOMMITTED_H
#include "../storage/shard.h"
#include "../wire/record.h"

typedef struct op op;

/* One record of it. */
typedef struct uncommitted {
    const shard *s;
    uint64_t lsn;
    op *of; /* NULL: it is in the ring; or there is none of that number yet */
} uncommitted;

uint64_t uncommitted_last(const shard *s); /* the last that is prepared */
/* Above what has taken effect, and at most one behind the last. */
uncommitted uncommitted_at(const shard *s, uint64_t lsn);
void uncommitted_next(uncommitted *p);
/* BULK: its value is too large for a message, and does not go with it. */
fkv_record uncommitted_record(const uncommitted *p, const uint8_t **key, const uint8_t **value);
const table_prepared *uncommitted_prepared(const uncommitted *p);
/* As many as fit, from this one on; returns their bytes. A large value has the first place. */
uint32_t uncommitted_fill(uncommitted *p, uint8_t *to, uint32_t room, uint16_t *count);

/* The record of a change, as of uncommitted_record. */
fkv_record uncommitted_describe(const op *o);

#endif
