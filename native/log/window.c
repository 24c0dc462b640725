/* window.c: see window.h. */
#include "window.h"
#include <errno.h>
#include <stdlib.h>

int window_open(window *w, disk *d, uint32_t room) {
    *w = (window){ .disk = d, .handle = -1, .base = aligned_alloc(WAL_BLOCK, room), .room = room };
    return w->base ? 0 : -ENOMEM;
}
void window_close(window *w) { free(w->base); }

void window_turn(window *w, int handle) {
    w->handle = handle;
    w->from = w->to = 0;
}

const uint8_t *window_at(window *w, uint64_t size, uint64_t at, uint32_t bytes) {
    if (at < w->from || at + bytes > w->to) {
        uint64_t most = size - at < w->room ? size - at : w->room;
        w->from = w->to = at;
        w->error = w->disk->read(w->disk, w->handle, at, w->base, (uint32_t)most);
        if (w->error != 0) return NULL;
        w->to = at + most;
    }
    return w->base + (at - w->from);
}
