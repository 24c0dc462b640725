/* logged.h: what the write-ahead log of a data-plane thread has of one copy of a shard, for tests: the records of the
 * epoch that is there last, by their numbers, as whoever makes a table of them will take them.
 *
 * It checks what such a reader relies on: sections follow each other, an epoch has a beginning, a large value is whole
 * before its record. Of values only the checksum is kept, so a value of any size takes no memory here. */
#ifndef FARKV_TEST_LOGGED_H
#define FARKV_TEST_LOGGED_H
#include "../../log/replay.h"
#include "../../wire/record.h"

enum { LOGGED_MOST = 8192, LOGGED_KEY = 32 };

typedef struct logged_record {
    fkv_record head; /* kind PUT, where the value was large too */
    uint32_t epoch;  /* in which it was logged */
    uint32_t value_crc;
    char key[LOGGED_KEY];
} logged_record;

typedef struct logged {
    uint32_t shard;
    uint64_t copy;
    bool begun;
    uint32_t epoch;
    uint64_t last;                     /* number of the last record; 0: none */
    uint64_t base;                     /* the first epoch began behind this one */
    logged_record at[LOGGED_MOST + 1]; /* by number */
    /* of the next record, while its value is read */
    bool announced;
    fkv_record large;
    uint32_t value_at, value_crc;
    uint32_t pieces; /* of all values */
} logged;

/* Nobody writes the log. */
void logged_read(disk *d, const wal_identity *of, uint32_t shard, uint64_t copy, logged *out);
/* The record of the change that has this version; NULL: it is not there. */
const logged_record *logged_find(const logged *l, uint64_t version);

#endif
