/* file.c: see file.h. */
#include "file.h"
#include <stdlib.h>

enum { PLACES_FIRST = 16 };

wal_file *wal_file_new(uint64_t number, uint64_t bytes, uint32_t stride) {
    wal_file *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    *f = (wal_file){ .number = number, .bytes = bytes, .stride = stride, .at = WAL_BLOCK, .handle = -1 };
    list_init(&f->link);
    return f;
}
void wal_file_free(wal_file *f) {
    free(f->reach);
    free(f);
}
uint64_t wal_file_place(const wal_file *f, uint32_t bytes) {
    uint64_t end = wal_file_stride_end(f, f->at);
    return f->at + bytes <= end ? f->at : end; /* mutation: log/batch-across-stride */
}

void wal_files_free(fkv_list *files) {
    while (!list_empty(files)) {
        wal_file *f = LIST_FIRST(files, wal_file, link);
        list_remove(&f->link);
        wal_file_free(f);
    }
}

/* The place of the copy, or the empty one where it goes. There is always an empty one. */
static wal_reach *place_of(wal_reach *table, uint32_t places, uint32_t shard, uint64_t copy) {
    uint64_t hash = (copy ^ shard) * 0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(hash >> 32);; i++) {
        wal_reach *r = &table[i & (places - 1)];
        if (r->end == 0 || (r->shard == shard && r->copy == copy)) return r;
    }
}

static bool grow(wal_file *f) {
    uint32_t places = f->places ? f->places * 2 : PLACES_FIRST;
    wal_reach *table = calloc(places, sizeof *table);
    if (!table) return false;
    for (uint32_t i = 0; i < f->places; i++)
        if (f->reach[i].end) *place_of(table, places, f->reach[i].shard, f->reach[i].copy) = f->reach[i];
    free(f->reach);
    f->reach = table;
    f->places = places;
    return true;
}

void wal_file_note(wal_file *f, const wal_section *s) {
    if (f->reaches >= f->places / 2 && !grow(f)) {
        f->unknown = true;
        return;
    }
    wal_reach *r = place_of(f->reach, f->places, s->shard, s->copy);
    if (r->end == 0) {
        *r = (wal_reach){ .shard = s->shard, .copy = s->copy };
        f->reaches++;
    }
    /* mutation: durable/file-given-back-early */
    uint64_t end = s->first + (s->bytes > 0 && s->count == 0 ? 1 : s->count); /* a part goes with its record */
    if (r->end < end) r->end = end;
    if (r->epoch < s->epoch) r->epoch = s->epoch;
}

bool wal_file_covered(const wal_file *f, wal_covered covered, void *arg) {
    if (f->unknown) return false;
    for (uint32_t i = 0; i < f->places; i++)
        if (f->reach[i].end && !covered(arg, &f->reach[i])) return false; /* mutation: log/file-given-back */
    return true;
}
