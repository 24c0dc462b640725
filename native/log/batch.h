/* batch.h: the bytes of a log file. Little-endian, and hostile until checked: whoever restores a directory by hand may
 * bring anything.
 *
 *   file      head, one block | batch | batch | ... | what the file had before: zeros, or batches of an earlier life
 *             (so also between two batches, where the second did not fit into the first one's stride)
 *   batch     wal_batch | section | section | ... | zeros up to the next block
 *   section   wal_section | its records, which the log does not look into
 *
 * A file is used again under another number. Its *life* is its number with 64 random bits, the salt, in the head and in
 * each batch: so a batch of an earlier life is none, and no value that a client stores can look like one. Batches count
 * through all files of a log.
 * Invariants:
 * 1. Within a life no block is written twice. So what is found behind a batch was written after it.
 * 2. No batch crosses a multiple of the file's stride: one that would goes there as a whole. So whether anything was
 *    written behind a place is seen by a block of each stride, and what was not written need not be read. */
#ifndef FARKV_LOG_BATCH_H
#define FARKV_LOG_BATCH_H
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "disk.h"

enum { WAL_BLOCK = DISK_BLOCK, WAL_BATCH_MAX = 4 << 20, WAL_FORMAT = 1, WAL_NAME_MAX = DISK_NAME_MAX };
#define WAL_FILE_MAGIC  0x314c4157766b7266u
#define WAL_BATCH_MAGIC 0x6863746142766b66u
#define WAL_NUMBER_END  ((uint64_t)1 << 62) /* of files and batches: they can be counted on */

/* Whose log it is. `thread`: the data-plane thread, the first number of a file's name. */
typedef struct wal_identity {
    uint8_t cluster[16];
    uint64_t instance;
    uint32_t thread;
} wal_identity;

/* Magic, format and crc have their place in each format, and the crc is of the whole block with a crc of 0. */
typedef struct wal_file_head {
    uint64_t magic;
    uint32_t format, crc;
    uint8_t cluster[16];
    uint64_t instance, number, salt;
    uint64_t bytes; /* of the file */
    uint32_t thread;
    uint32_t stride; /* whole blocks, at least two */
} wal_file_head;
static_assert(sizeof(wal_file_head) == 72, "drawing");

typedef struct wal_batch {
    uint64_t magic;
    uint64_t file, salt; /* the life */
    uint64_t number;     /* from 1, without a gap */
    uint32_t bytes;      /* from the head to the end of the last section */
    uint32_t sections;
    uint64_t reserved[2];
    uint32_t reserved2;
    uint32_t crc; /* of all blocks of the batch, with a crc of 0 */
} wal_batch;
static_assert(sizeof(wal_batch) == 64, "drawing");

/* Records first to first + count - 1 of a copy. Without bytes: the epoch begins, and what other epochs have from `first`
 * on is cut off. With bytes but without records: a part of what record `first` has in front of it. */
typedef struct wal_section {
    uint32_t shard, epoch;
    uint64_t copy;
    uint64_t first;
    uint64_t committed, digest; /* the copy has committed all up to there; then its table had that digest */
    uint32_t count, bytes;      /* of the records */
} wal_section;
static_assert(sizeof(wal_section) == 48, "drawing");

static inline uint32_t wal_whole_blocks(uint32_t bytes) { return (bytes + WAL_BLOCK - 1) / WAL_BLOCK * WAL_BLOCK; }

/* The crc of bytes in which the four at `place` count as zeros. */
uint32_t wal_crc_without(const uint8_t *from, size_t bytes, size_t place);

void wal_file_name(char name[WAL_NAME_MAX], uint32_t thread, uint64_t number);
/* Of a file that was set aside under this number, which nobody reads; 0: of one that is made. */
void wal_spare_name(char name[WAL_NAME_MAX], uint32_t thread, uint64_t number);
bool wal_is_spare(const char *name, uint32_t thread);
/* Whether the name is one of that thread's log, exactly as it would be written. */
bool wal_file_number(const char *name, uint32_t thread, uint64_t *number);

/* `head` is filled but for magic, format and crc. */
void wal_put_file_head(uint8_t block[WAL_BLOCK], const wal_file_head *head);
/* Whether the block is a head, of any format. Only of this format the rest of `head` may be used. */
bool wal_get_file_head(const uint8_t block[WAL_BLOCK], wal_file_head *head);

/* Puts the head before the sections in `batch`, and zeros behind; of `head`, magic and crc are set here. */
void wal_seal_batch(uint8_t *batch, const wal_batch *head);
/* Whether the block begins a batch of that life that has at most `room` bytes with its zeros. The head only: the batch
 * may be torn. */
bool wal_begins_batch(const uint8_t block[WAL_BLOCK], const wal_file_head *file, uint64_t room, wal_batch *head);
/* Whether there are remains of a head of that life, which one damaged field does not hide. 0: of any number. */
bool wal_begun_batch(const uint8_t block[WAL_BLOCK], const wal_file_head *file, uint64_t number);
bool wal_batch_whole(const uint8_t *batch, const wal_batch *head); /* its crc */
/* Reads the section at *at, which starts behind the head, and moves *at behind it. False at the end of the batch, and
 * when what is left is no section (then *at is less than head->bytes). */
bool wal_next_section(const uint8_t *batch, const wal_batch *head, uint32_t *at, wal_section *s,
                      const uint8_t **records);

#endif
