/* window.h: a file of the disk, seen through a window of memory that moves over it. Private to native/log.
 *
 * For: reading back a file of any length, mostly in order, in bounded memory. One thread; blocks. */
#ifndef FARKV_LOG_WINDOW_H
#define FARKV_LOG_WINDOW_H
#include "batch.h"
#include "disk.h"

typedef struct window {
    disk *disk;
    int handle;
    uint8_t *base;     /* WAL_BLOCK aligned */
    uint32_t room;     /* of it; whole blocks */
    uint64_t from, to; /* what of the file it shows */
    int error;         /* why window_at has nothing: a negative errno */
} window;

/* 0 or -ENOMEM. */
int window_open(window *w, disk *d, uint32_t room);
void window_close(window *w);
/* It shows this file from now on. */
void window_turn(window *w, int handle);
/* The bytes at that place, of a file that has `size`, until the next call; NULL: the disk refused. All are whole blocks,
 * at most `room`, and within the file. What follows is read with them. */
const uint8_t *window_at(window *w, uint64_t size, uint64_t at, uint32_t bytes);

#endif
