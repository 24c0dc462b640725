/* log_window_test.c: a window over a file shows what the file has, in whatever order it is asked, though the next piece is
 * read beside; and a disk that refuses is told where what it refused is wanted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../../base/list.h"
#include "../../log/window.h"
#include "../check.h"

enum { ROOM = 4 * WAL_BLOCK, SIZE = 101 * WAL_BLOCK, NOWHERE = SIZE };

typedef struct file_disk {
    disk table;
    uint64_t refused; /* atomic: the block at that place is not read */
    uint32_t reads;   /* atomic */
} file_disk;

static uint32_t block_of(int file, uint64_t at) { return (uint32_t)file * 1000 + (uint32_t)(at / WAL_BLOCK); }

static int read_file(disk *t, int file, uint64_t at, void *to, uint32_t bytes) {
    file_disk *d = LIST_OF(t, file_disk, table);
    uint64_t refused = __atomic_load_n(&d->refused, __ATOMIC_RELAXED);
    __atomic_fetch_add(&d->reads, 1, __ATOMIC_RELAXED);
    CHECK((at | bytes | (uintptr_t)to) % DISK_BLOCK == 0);
    CHECK(at + bytes <= SIZE && bytes <= ROOM && file >= 0);
    if (refused >= at && refused < at + bytes) return -EIO;
    for (uint32_t i = 0; i < bytes; i += WAL_BLOCK) {
        uint32_t number = block_of(file, at + i);
        for (uint32_t k = 0; k < WAL_BLOCK; k += sizeof number) memcpy((uint8_t *)to + i + k, &number, sizeof number);
    }
    return 0;
}
static file_disk d = { .table = { .read = read_file } };

static void shows(window *w, int file, uint64_t at, uint32_t bytes) {
    const uint8_t *there = window_at(w, SIZE, at, bytes);
    CHECK(there != NULL);
    for (uint32_t i = 0; i < bytes; i += sizeof(uint32_t)) {
        uint32_t number;
        memcpy(&number, there + i, sizeof number);
        CHECK_EQ(number, block_of(file, at + i));
    }
}

static window w;
static void up(void) {
    d.refused = NOWHERE;
    d.reads = 0;
    CHECK_EQ(window_open(&w, &d.table, ROOM), 0);
    window_turn(&w, 0);
}

TEST(a_file_is_shown_in_order_each_block_read_once) {
    up();
    for (uint64_t at = 0; at < SIZE; at += WAL_BLOCK) shows(&w, 0, at, WAL_BLOCK);
    CHECK_EQ(d.reads, (SIZE + ROOM - 1) / ROOM);
    window_close(&w);
}

TEST(whatever_is_asked_is_shown) {
    uint64_t seed = check_seed();
    up();
    int file = 0;
    uint64_t at = 0;
    for (int n = 0; n < 20000; n++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t drawn = (uint32_t)(seed >> 33);
        if (drawn % 97 == 0) window_turn(&w, ++file);
        if (drawn % 31 == 0) at = drawn / 31 % (SIZE / WAL_BLOCK) * WAL_BLOCK;
        uint32_t bytes = (1 + drawn / 7 % (ROOM / WAL_BLOCK)) * WAL_BLOCK;
        if (at + bytes > SIZE) at = 0;
        shows(&w, file, at, bytes);
        at += drawn % 3 ? bytes : WAL_BLOCK; /* on, or again from a part of it on */
    }
    window_close(&w);
}

TEST(what_the_disk_refuses_is_told_where_it_is_wanted) {
    for (uint64_t refused = 0; refused < SIZE; refused += WAL_BLOCK) {
        up();
        d.refused = refused;
        uint64_t at = 0;
        while (at < SIZE && window_at(&w, SIZE, at, WAL_BLOCK)) at += WAL_BLOCK;
        CHECK(at <= refused && refused < at + ROOM);
        CHECK_EQ(w.error, -EIO);
        __atomic_store_n(&d.refused, NOWHERE, __ATOMIC_RELAXED);
        shows(&w, 0, at, ROOM < SIZE - at ? ROOM : (uint32_t)(SIZE - at));
        window_turn(&w, 1); /* the other file is not to blame */
        shows(&w, 1, 0, ROOM);
        window_close(&w);
    }
}

int main(int argc, char **argv) {
    RUN(a_file_is_shown_in_order_each_block_read_once);
    RUN(whatever_is_asked_is_shown);
    RUN(what_the_disk_refuses_is_told_where_it_is_wanted);
    return check_end(argc, argv);
}
