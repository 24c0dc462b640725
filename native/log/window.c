/* window.c: see window.h. */
#include "window.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/list.h"

int window_open(window *w, disk *d, uint32_t room) {
    *w = (window){
        .disk = d, .handle = -1, .base = aligned_alloc(WAL_BLOCK, 4 * (size_t)room + WAL_BLOCK), .room = room
    };
    return w->base ? 0 : -ENOMEM;
}

/* Of piece 0 or 1, behind its room for a rest. */
static uint8_t *piece(const window *w, uint32_t i) { return w->base + (size_t)w->room * (2 * i + 1); }

/* ---- what comes next ---- */

static void came_home(job *j) {
    window_next *n = (window_next *)j;
    n->under_way = false;
    n->there = true;
}
static void read_next(job *j) {
    window_next *n = (window_next *)j;
    window *w = LIST_OF(n, window, next);
    n->error = w->disk->read(w->disk, w->handle, n->from, piece(w, 1 - w->piece), n->bytes);
    n->job.run = came_home;
    mailbox_post(&w->home, &n->job);
}
/* Without a reader each piece is read when it is wanted. */
static bool has_reader(window *w) {
    if (w->reader.name) return true;
    if (mailbox_open(&w->home) != 0) return false;
    if (helper_start(&w->reader, "farkv-log-reads") == 0) return true;
    w->reader.name = NULL;
    mailbox_close(&w->home);
    return false;
}
static void begin_next(window *w, uint64_t size) {
    window_next *n = &w->next;
    uint64_t left = size > w->to ? size - w->to : 0;
    if (left == 0 || !has_reader(w)) return;
    *n = (window_next){
        .job.run = read_next, .from = w->to, .bytes = left < w->room ? (uint32_t)left : w->room, .under_way = true
    };
    helper_post(&w->reader, &n->job);
}
static void await_next(window *w) {
    while (w->next.under_way) {
        mailbox_sleep(&w->home);
        mailbox_run(&w->home);
    }
}

void window_turn(window *w, int handle) {
    await_next(w);
    w->next.there = false;
    w->handle = handle;
    w->from = w->to = 0;
}

void window_close(window *w) {
    await_next(w);
    if (w->reader.name) {
        helper_stop(&w->reader);
        helper_free(&w->reader);
        mailbox_close(&w->home);
    }
    free(w->base);
}

/* ---- what is shown ---- */

/* The next piece, with what is shown from `at` on in front of it. */
static void go_on(window *w, uint64_t at) {
    uint32_t rest = (uint32_t)(w->to - at);
    uint8_t *to = piece(w, 1 - w->piece);
    memcpy(to - rest, w->shown + (at - w->from), rest);
    w->piece = 1 - w->piece;
    w->shown = to - rest;
    w->from = at;
    w->to += w->next.bytes;
}

static void jump(window *w, uint64_t size, uint64_t at) {
    uint64_t most = size - at < w->room ? size - at : w->room;
    w->from = w->to = at;
    w->shown = piece(w, w->piece);
    w->error = w->disk->read(w->disk, w->handle, at, piece(w, w->piece), (uint32_t)most);
    if (w->error == 0) w->to = at + most;
}

const uint8_t *window_at(window *w, uint64_t size, uint64_t at, uint32_t bytes) {
    if (at < w->from || at + bytes > w->to) {
        await_next(w);
        bool follows = w->next.there && at >= w->from && at <= w->to;
        w->error = follows ? w->next.error : 0;
        if (w->error == 0) (follows ? go_on(w, at) : jump(w, size, at));
        w->next.there = false;
        if (w->error != 0) {
            w->from = w->to = at;
            return NULL;
        }
        if (at > 0) begin_next(w, size); /* of many a file no more than the head is wanted */
    }
    return w->shown + (at - w->from);
}

const uint8_t *window_block(window *w, uint64_t at) {
    uint8_t *block = w->base + 4 * (size_t)w->room;
    await_next(w);
    w->error = w->disk->read(w->disk, w->handle, at, block, WAL_BLOCK);
    return w->error == 0 ? block : NULL;
}
