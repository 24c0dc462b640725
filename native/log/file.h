/* file.h: a log file in memory, and which records it holds, so that it can be used again when snapshots have them.
 *
 * Not for: its bytes (batch.h). A file belongs to one thread at a time: to the one that replays, then to the data-plane
 * thread; while it is made, to the maker. */
#ifndef FARKV_LOG_FILE_H
#define FARKV_LOG_FILE_H
#include "../base/list.h"
#include "batch.h"

/* How far a file's sections of one copy go: to the record before `end`, in epochs up to `epoch`. */
typedef struct wal_reach {
    uint64_t copy;
    uint64_t end; /* at least 1; 0 is an empty place of the table */
    uint32_t shard, epoch;
} wal_reach;

typedef struct wal_file {
    fkv_list link;
    uint64_t number, salt, bytes;
    uint32_t stride;
    uint64_t at;  /* behind the last batch */
    int handle;   /* open for writing; -1: not */
    bool aside;   /* it has its spare name, so no start reads it */
    bool batched; /* has batches that were synced, or replayed */
    bool unknown; /* there was no memory for a reach: the file is kept until the next start */
    uint32_t reaches, places;
    wal_reach *reach; /* a hash table of `places`, a power of two */
} wal_file;

wal_file *wal_file_new(uint64_t number, uint64_t bytes, uint32_t stride); /* NULL: no memory */
void wal_file_free(wal_file *f);
/* The next multiple of the stride behind that place. */
static inline uint64_t wal_file_stride_end(const wal_file *f, uint64_t at) { return at - at % f->stride + f->stride; }
/* Where a batch of whole blocks goes, at most one stride less the head's block; it may be beyond the file's end. */
uint64_t wal_file_place(const wal_file *f, uint32_t bytes);
void wal_file_note(wal_file *f, const wal_section *s);
/* Whether `covered` is true of each reach. */
typedef bool (*wal_covered)(void *arg, const wal_reach *r);
bool wal_file_covered(const wal_file *f, wal_covered covered, void *arg);
void wal_files_free(fkv_list *files);

#endif
