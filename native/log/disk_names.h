/* disk_names.h: the names in a directory, for who uses the disk for each of them. Private to native.
 *
 * For: starts, which look at what is there, and remove some of it. */
#ifndef FARKV_LOG_DISK_NAMES_H
#define FARKV_LOG_DISK_NAMES_H
#include "disk.h"

/* Those that native/log may have given; others are too long. */
typedef struct disk_names {
    char (*name)[DISK_NAME_MAX];
    uint32_t count, room;
    int error;
} disk_names;

/* 0 or a negative errno. To be freed, also then. */
int disk_names_read(disk_names *n, disk *d);
void disk_names_free(disk_names *n);

#endif
