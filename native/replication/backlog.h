/* backlog.h: records of a shard that have taken effect and that a copy which joins may not have yet. Private to
 * native/replication.
 *
 * For: an owner that has a backup which nobody waits for, or which has just been required and lags. Records that are not
 * committed are not here: uncommitted.c makes them from what is prepared. Not for: who needs what (copies.c).
 *
 * Invariant: the records from backlog_first() to `end` are here, without a gap, in pieces that fit one message. */
#ifndef FARKV_REPLICATION_BACKLOG_H
#define FARKV_REPLICATION_BACKLOG_H
#include <stdbool.h>
#include <stdint.h>
#include "../dataplane/worker.h"
#include "../wire/record.h"

/* A backlog takes at most so many times what all have left of their budget (worker.h), and its oldest records give way:
 * one alone has four fifths of `most`, two have four ninths each, and one that begins always finds room. */
enum { BACKLOG_PART = 4 };

typedef struct backlog {
    struct piece **piece; /* a ring, in order: found by halves, however much there is */
    uint32_t at, count, room;
    backlog_budget *of;
    uint64_t end;
    uint64_t extents; /* record_room of all that was ever noted */
    uint64_t taken;   /* by all pieces */
} backlog;

backlog *backlog_begin(backlog_budget *of, uint64_t committed); /* the records from the next one on; NULL: no memory */
void backlog_free(backlog *b);                                  /* NULL: nothing */
/* The record, which is the next one, is about to be committed. False: no memory, and the backlog has a gap. */
bool backlog_note(backlog *b, uint64_t lsn, const fkv_record *r, const uint8_t *key, const uint8_t *value);
uint64_t backlog_first(const backlog *b); /* end + 1: there is nothing */
/* Nobody needs what comes up to there. */
void backlog_trim(backlog *b, uint64_t to);
/* Puts the record `from`, which is here, and as many of the next as fit into `to`. Returns their bytes. */
uint32_t backlog_fill(const backlog *b, uint64_t from, uint8_t *to, uint32_t room, uint16_t *count);
/* Whether that record is of a large value: what is here is without it, and fills a message alone. */
bool backlog_is_large(const backlog *b, uint64_t lsn, fkv_record *r, const uint8_t **key);
/* record_room of all that follow this one. */
uint64_t backlog_room_behind(const backlog *b, uint64_t lsn);

#endif
