/* snapshot_read.h: finds the snapshots of a directory, and reads one as a stop of the server, or of the power, left it.
 *
 * Not for: what items mean (the caller), nor for writing. Blocks; uses four times SNAPSHOT_CHUNK_MAX of memory. */
#ifndef FARKV_LOG_SNAPSHOT_READ_H
#define FARKV_LOG_SNAPSHOT_READ_H
#include "replay.h"
#include "snapshot_file.h"

/* WHOLE, DAMAGED, OTHER_CLUSTER, OTHER_INSTANCE, LATER_FORMAT or UNREADABLE, as of a log (replay.h). All but WHOLE: the
 * caller may have got chunks, and must not take them for a snapshot. */
typedef struct snapshot_found {
    wal_verdict verdict;
    char file[WAL_NAME_MAX];
    uint64_t offset;
    uint32_t format;
    int error;          /* a negative errno */
    uint64_t bytes;     /* of the file */
    snapshot_head head; /* once the caller got it */
    snapshot_foot foot; /* of a WHOLE one */
} snapshot_found;

/* Head first, then each chunk, if there is a function for those; the caller keeps no pointer. False: what it says cannot
 * be, so it counts as damaged. */
typedef struct snapshot_reader {
    bool (*head)(void *arg, const snapshot_head *h);
    bool (*chunk)(void *arg, const snapshot_chunk *c, const uint8_t *items);
    void *arg;
} snapshot_reader;

void snapshot_read(disk *d, const wal_identity *of, uint32_t shard, uint64_t copy, const snapshot_reader *to,
                   snapshot_found *found);
/* What is found, and where, as a line for the log of the server. */
void snapshot_found_text(const snapshot_found *found, char *to, uint32_t room);

/* At a start: removes those that were not written to their end, and names the others. 0 or a negative errno. */
int snapshot_list(disk *d, void (*each)(void *arg, uint32_t shard, uint64_t copy), void *arg);

#endif
