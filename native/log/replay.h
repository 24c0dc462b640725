/* replay.h: reads a log as a stop of the server, or of the power, left it: what is whole, in order, and what is not.
 *
 * Not for: what records mean (the caller), nor for writing (wal.h), which goes on from what is found here.
 * Blocks; uses 16 MiB. Nothing is written. */
#ifndef FARKV_LOG_REPLAY_H
#define FARKV_LOG_REPLAY_H
#include "disk.h"
#include "file.h"

/* What is found, each with the facts beside it:
 *   WHOLE           all batches
 *   TORN            `file`, `offset`: the last batch is not whole, and nothing was written behind it. All before it is
 *                   replayed. Nobody was told that the batch is durable, unless the disk lied
 *   DAMAGED         `file`, `offset`: a head, or a batch behind which there are good ones; offset 0 is the file's head
 *   FILE_MISSING    `file`: batches from `batch` on to those of a later file are gone
 *   OTHER_CLUSTER, OTHER_INSTANCE   `file` is of another cluster, of another data directory
 *   LATER_FORMAT    `file` has `format`, of a later version of farkv
 *   UNREADABLE      `file`, `offset`, `error`: the disk, or memory, refused
 * All after TORN: sections up to there were given to the caller, who must not take them for all. */
typedef enum wal_verdict {
    WAL_WHOLE,
    WAL_TORN,
    WAL_DAMAGED,
    WAL_FILE_MISSING,
    WAL_OTHER_CLUSTER,
    WAL_OTHER_INSTANCE,
    WAL_LATER_FORMAT,
    WAL_UNREADABLE
} wal_verdict;

typedef struct wal_found {
    wal_verdict verdict;
    char file[WAL_NAME_MAX];
    uint64_t offset;
    uint64_t batch; /* the first that is not there; 1 more than the last of the log where all is whole */
    uint32_t format;
    int error;      /* a negative errno */
    fkv_list files; /* of wal_file, by number */
} wal_found;

/* Gives each section with its records to the caller, who keeps no pointer. False: these are no records of a section, so
 * the batch counts as damaged. */
typedef bool (*wal_reader)(void *arg, const wal_section *s, const uint8_t *records);

/* Any thread, while nobody writes the log. wal_open takes the files over; else wal_files_free(&found->files). */
void wal_replay(disk *d, const wal_identity *of, wal_reader each, void *arg, wal_found *found);
/* Bytes of an open file that a replay reads, as far as its first blocks tell: all, or one stride if no batch was written
 * in it. Of what is no file of a log: its size. 0: the disk refused. */
uint64_t wal_bytes_to_read(disk *d, int file);
/* What is found, and where, as a line for the log of the server. */
void wal_found_text(const wal_found *found, char *to, uint32_t room);

#endif
