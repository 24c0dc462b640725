/* disk_names.c: see disk_names.h. */
#include "disk_names.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void found(void *arg, const char *name) {
    disk_names *n = arg;
    size_t bytes = strlen(name) + 1;
    if (bytes > DISK_NAME_MAX || n->error) return;
    if (n->count == n->room) {
        uint32_t room = n->room ? 2 * n->room : 64;
        void *more = realloc(n->name, room * sizeof *n->name);
        if (!more) {
            n->error = -ENOMEM;
            return;
        }
        n->name = more;
        n->room = room;
    }
    memcpy(n->name[n->count++], name, bytes);
}

int disk_names_read(disk_names *n, disk *d) {
    *n = (disk_names){ 0 };
    int e = d->list(d, found, n);
    return e != 0 ? e : n->error;
}

void disk_names_free(disk_names *n) { free(n->name); }
