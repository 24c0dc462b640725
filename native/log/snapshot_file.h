/* snapshot_file.h: the bytes of a snapshot of one copy of a shard. Little-endian, and hostile until checked, as those of
 * the log (batch.h).
 *
 *   file    head, one block | chunk | chunk | ... | foot, a chunk of kind SNAPSHOT_FOOT
 *   chunk   snapshot_chunk | items of one kind, which nobody looks into here | zeros up to the next block
 *
 * Chunks count from 1. The foot says how many there are, and has a crc of all their crcs: a chunk that is missing, from
 * another file, or in another place, is noticed. */
#ifndef FARKV_LOG_SNAPSHOT_FILE_H
#define FARKV_LOG_SNAPSHOT_FILE_H
#include "batch.h"

enum { SNAPSHOT_CHUNK_MAX = 1 << 20, SNAPSHOT_FORMAT = 1, SNAPSHOT_FOOT = 0 };
#define SNAPSHOT_MAGIC       0x31736e61706b7266u
#define SNAPSHOT_CHUNK_MAGIC 0x6b6e756863736b66u

/* Magic, format and crc have their place in each format, and the crc is of the whole block with a crc of 0. */
typedef struct snapshot_head {
    uint64_t magic;
    uint32_t format, crc;
    uint8_t cluster[16];
    uint64_t instance;
    uint64_t copy;
    uint32_t shard, epoch; /* the epoch's beginning was in the log before the snapshot began */
    uint64_t committed;    /* all up to there is in it */
    uint32_t buckets;      /* of the table's index, then */
    uint32_t thread;       /* whose log has what comes behind it */
} snapshot_head;
static_assert(sizeof(snapshot_head) == 72, "drawing");

typedef struct snapshot_chunk {
    uint64_t magic, number;
    uint32_t kind;
    uint32_t count, bytes; /* of the items */
    uint32_t crc;          /* of all blocks of the chunk, with a crc of 0 */
} snapshot_chunk;
static_assert(sizeof(snapshot_chunk) == 32, "drawing");

typedef struct snapshot_foot {
    uint64_t chunks, items, bytes; /* of all chunks before it */
    uint64_t last;                 /* nothing is in the snapshot that came later */
    uint64_t digest;               /* of the table when it had all up to `last` and no more */
    uint32_t doubt_ms;             /* retries of clients that are not in it may be of changes that were made */
    uint32_t crcs;                 /* the crc of the crcs of head and chunks, in order */
    uint32_t epoch;                /* nor in a later epoch */
    uint32_t reserved;
} snapshot_foot;
static_assert(sizeof(snapshot_foot) == 56, "drawing");

void snapshot_name(char name[WAL_NAME_MAX], uint32_t shard, uint64_t copy);
/* While it is written. */
void snapshot_new_name(char name[WAL_NAME_MAX], uint32_t shard, uint64_t copy);
typedef enum { SNAPSHOT_NO_NAME, SNAPSHOT_NAME, SNAPSHOT_NEW_NAME } snapshot_name_kind;
/* Which of them it is, exactly as it would be written. */
snapshot_name_kind snapshot_named(const char *name, uint32_t *shard, uint64_t *copy);

/* `head` is filled but for magic, format and crc. Returns the crc. */
uint32_t snapshot_put_head(uint8_t block[WAL_BLOCK], const snapshot_head *head);
/* Whether the block is a head, of any format. Only of this format the rest of `head` may be used. */
bool snapshot_get_head(const uint8_t block[WAL_BLOCK], snapshot_head *head);

/* Puts the head before the items in `chunk`, and zeros behind; of `head`, magic and crc are set here. Returns the crc. */
uint32_t snapshot_seal(uint8_t *chunk, const snapshot_chunk *head);
/* Whether the block begins chunk `number`, and that has at most `room` bytes with its zeros. The head only. */
bool snapshot_begins(const uint8_t block[WAL_BLOCK], uint64_t number, uint64_t room, snapshot_chunk *head);
bool snapshot_whole(const uint8_t *chunk, const snapshot_chunk *head); /* its crc */
static inline uint32_t snapshot_blocks(const snapshot_chunk *c) {
    return wal_whole_blocks((uint32_t)sizeof *c + c->bytes);
}

/* What the foot will say, or has to: counted chunk by chunk. */
void snapshot_count_head(snapshot_foot *f, uint32_t crc);
void snapshot_count(snapshot_foot *f, const snapshot_chunk *c, uint32_t crc);

#endif
