/* window.h: a file of the disk, seen through a window of memory that moves over it. Private to native/log.
 *
 * For: reading back a file of any length, mostly in order, in bounded memory. What follows is read meanwhile, by a thread
 * of its own: so neither the disk nor who uses what is read waits for the other. One thread uses it; blocks.
 *
 *   piece 0   room for a rest | a piece       What is shown lies in one piece, with the rest of the one before in front
 *   piece 1   room for a rest | a piece       of it; the next is read into the other. */
#ifndef FARKV_LOG_WINDOW_H
#define FARKV_LOG_WINDOW_H
#include "../base/helper.h"
#include "batch.h"
#include "disk.h"

/* What comes next: of the reader while it is under way. */
typedef struct window_next {
    job job;
    uint64_t from;
    uint32_t bytes;
    bool under_way, there;
    int error;
} window_next;

typedef struct window {
    disk *disk;
    int handle;
    uint8_t *base;        /* WAL_BLOCK aligned: both pieces, and a block */
    uint32_t room;        /* of a piece; whole blocks */
    uint32_t piece;       /* that is shown */
    const uint8_t *shown; /* the bytes at `from` */
    uint64_t from, to;    /* what of the file it shows */
    int error;            /* why window_at has nothing: a negative errno */
    window_next next;
    helper reader;
    mailbox home;
} window;

/* 0 or -ENOMEM. */
int window_open(window *w, disk *d, uint32_t room);
void window_close(window *w);
/* It shows this file from now on; -1: none, and the one before may be closed. */
void window_turn(window *w, int handle);
/* The bytes at that place until the next call; NULL: the disk refused. All are whole blocks, at most `room`, and within
 * `size`, up to which it may read ahead: that of the file, or less. */
const uint8_t *window_at(window *w, uint64_t size, uint64_t at, uint32_t bytes);
/* The block at that place, past the window; NULL as above. */
const uint8_t *window_block(window *w, uint64_t at);

#endif
