/* disk.h: what the write-ahead log needs of a directory and its files, as a table of functions, so that tests can give
 * it a disk that loses power.
 *
 * For: native/log. Not for: the Raft log, which the control plane writes itself.
 * Each function returns 0 or a negative errno, open a file's handle or a negative errno. A name has no slash. A table
 * is used by several threads, a handle by one at a time.
 *
 * What a caller may rely on after the power was gone:
 *   written, not synced            any of its sectors, each as it was before or as it was written
 *   synced (sync returned 0)       is there
 *   created, renamed, removed      either name, until sync_directory returned 0
 * After a sync that failed nothing is known, whatever the next one answers: a handle is not synced twice then. */
#ifndef FARKV_LOG_DISK_H
#define FARKV_LOG_DISK_H
#include <stdint.h>

/* Past the page cache where the file system can: so what is read is what the disk has, and a sync finds nothing that
 * has yet to be written. READ and WRITE: an existing file. CREATE: an empty one, in place of one of that name. */
typedef enum disk_mode { DISK_READ, DISK_WRITE, DISK_CREATE } disk_mode;

enum {
    DISK_BLOCK = 4096, /* addresses of memory, places in files and lengths that are read or written are multiples */
    DISK_NAME_MAX = 40 /* of the names that native/log gives, with their end */
};

typedef struct disk disk;
struct disk {
    int (*open)(disk *d, const char *name, disk_mode mode);
    void (*close)(disk *d, int file);
    int (*size)(disk *d, int file, uint64_t *bytes);
    int (*read)(disk *d, int file, uint64_t at, void *to, uint32_t bytes); /* -ENODATA: the file ends before */
    int (*write)(disk *d, int file, uint64_t at, const void *from, uint32_t bytes);
    int (*sync)(disk *d, int file); /* data, and what is needed to read them again */
    int (*rename)(disk *d, const char *from, const char *to);
    int (*remove)(disk *d, const char *name);
    int (*sync_directory)(disk *d);
    /* `each` does not use the disk. */
    int (*list)(disk *d, void (*each)(void *arg, const char *name), void *arg);
};

/* The real one: a directory of the operating system. */
typedef struct disk_os {
    disk table;
    int directory;
} disk_os;
int disk_os_open(disk_os *d, const char *path);
void disk_os_close(disk_os *d);

#endif
