/* memory_disk.h: a disk in memory for tests of native/log, whose power goes off, which fails, and which fills up.
 *
 * What was written and not synced is kept apart, sector by sector. When the power goes off, each such sector may be
 * there or not, whatever became of others; so may each change of the directory since it was synced. A sync that fails
 * drops what was unsynced, and the next one succeeds, as kernels do it.
 * One thread at a time. Operations that change the disk are counted; reads are not. */
#ifndef FARKV_TEST_LOG_MEMORY_DISK_H
#define FARKV_TEST_LOG_MEMORY_DISK_H
#include <stdbool.h>
#include <stdint.h>
#include "../../log/disk.h"

enum { MEMORY_FILES = 64, MEMORY_NAME = 40, MEMORY_CHANGES = 256 };

typedef struct memory_write {
    struct memory_write *next;
    uint64_t at;
    uint32_t bytes;
    uint8_t from[];
} memory_write;

typedef struct memory_file {
    bool used;
    bool unreliable; /* a sync failed */
    uint8_t *bytes;  /* what is on the disk */
    uint64_t size, room, size_now;
    memory_write *unsynced, *last;
} memory_file;

typedef struct memory_entry {
    char name[MEMORY_NAME];
    memory_file *file; /* NULL: no entry */
} memory_entry;

typedef struct memory_change {
    char removed[MEMORY_NAME], added[MEMORY_NAME];
    memory_file *file; /* of `added` */
} memory_change;

typedef struct memory_disk {
    disk table;
    uint64_t random;
    uint32_t sector; /* what is written as a whole: 512 or 4096 */
    memory_file files[MEMORY_FILES];
    memory_entry now[MEMORY_FILES], synced[MEMORY_FILES];
    memory_change changes[MEMORY_CHANGES];
    uint32_t change_count;
    memory_file *handles[MEMORY_FILES];

    uint64_t operations;     /* so far */
    uint64_t off_at;         /* the power goes off in that operation; 0: never */
    bool off;                /* everything fails until memory_disk_on */
    uint64_t fail_at;        /* that operation fails; 0: none */
    int fail_with;           /* a negative errno */
    uint64_t growths;        /* operations so far that took space */
    uint64_t full_from;      /* from that one on there is no space; 0: there is */
    bool used_after_failure; /* a handle was synced or written again after its sync failed */
    int unreadable;          /* a negative errno: reads fail so */
} memory_disk;

void memory_disk_init(memory_disk *d, uint64_t seed, uint32_t sector);
void memory_disk_free(memory_disk *d);
/* The process ended: handles are closed, what was not synced is still in the page cache. */
void memory_disk_kill(memory_disk *d);
/* The power was off: what was not synced survives by chance. */
void memory_disk_on(memory_disk *d);
/* The bytes of a file that is synced, to be damaged; NULL: there is none. */
memory_file *memory_disk_file(memory_disk *d, const char *name);
uint64_t memory_random(memory_disk *d, uint64_t below);
#endif
