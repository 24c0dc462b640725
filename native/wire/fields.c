/* fields.c: see fields.h. Nothing here allocates but the C library's sort. */
#include "fields.h"
#include <stdlib.h>
#include <string.h>

bool fkv_next_field(const uint8_t *fields, uint32_t bytes, uint32_t *at, fkv_field *f) {
    uint32_t left = bytes - *at;
    if (left < FKV_FIELD_HEAD) return false;
    memcpy(&f->name_bytes, fields + *at, sizeof f->name_bytes);
    memcpy(&f->value_bytes, fields + *at + sizeof f->name_bytes, sizeof f->value_bytes);
    if (fkv_field_bytes(f) > left) return false;
    f->name = fields + *at + FKV_FIELD_HEAD;
    f->value = f->name + f->name_bytes;
    *at += (uint32_t)fkv_field_bytes(f);
    return true;
}

bool fkv_count_fields(const uint8_t *fields, uint32_t bytes, uint32_t *count) {
    fkv_field f;
    uint32_t at = 0;
    *count = 0;
    if (bytes > FKV_FIELDS_MAX) return false;
    while (fkv_next_field(fields, bytes, &at, &f)) ++*count;
    return at == bytes;
}

uint8_t *fkv_put_field(uint8_t *to, const fkv_field *f) {
    memcpy(to, &f->name_bytes, sizeof f->name_bytes);
    memcpy(to + sizeof f->name_bytes, &f->value_bytes, sizeof f->value_bytes);
    to += FKV_FIELD_HEAD;
    if (f->name_bytes) memcpy(to, f->name, f->name_bytes);
    if (f->value_bytes) memcpy(to + f->name_bytes, f->value, f->value_bytes);
    return to + f->name_bytes + f->value_bytes;
}

/* Lengths first: most names differ there, and those cost no look at their bytes. */
static int compare_names(const fkv_field *a, const fkv_field *b) {
    if (a->name_bytes != b->name_bytes) return a->name_bytes < b->name_bytes ? -1 : 1;
    return a->name_bytes ? memcmp(a->name, b->name, a->name_bytes) : 0;
}

static int compare_sought(const void *a, const void *b) {
    const fkv_field *x = &((const fkv_sought *)a)->asked, *y = &((const fkv_sought *)b)->asked;
    int names = compare_names(x, y);
    return names ? names : (x->name > y->name) - (x->name < y->name);
}

void fkv_sort_sought(fkv_sought *list, uint32_t count) {
    if (count > 1) qsort(list, count, sizeof *list, compare_sought);
}

fkv_sought *fkv_find_sought(fkv_sought *list, uint32_t count, const fkv_field *f) {
    uint32_t from = 0, to = count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (compare_names(&list[middle].asked, f) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from < count && compare_names(&list[from].asked, f) == 0 ? &list[from] : NULL;
}
