/* fields.h: the value of a hash, which the Redis gateway has beside strings: fields in the order in which they came, each
 * with a name and a value, no two with the same name.
 *
 *   field = name bytes u32 | value bytes u32 | name | value      little-endian, not aligned
 *
 * An entry has them under the codec FKV_CODEC_FIELDS, and requests that change fields in their body. Either is hostile
 * until checked: what an entry has is what some client put there. */
#ifndef FARKV_WIRE_FIELDS_H
#define FARKV_WIRE_FIELDS_H
#include <stdbool.h>
#include <stdint.h>

enum {
    FKV_CODEC_FIELDS = 2,
    FKV_FIELDS_MAX = 1 << 20, /* bytes of a hash: each change reads and writes all of it, in one turn of its owner */
    FKV_FIELD_HEAD = 8
};

typedef struct fkv_field {
    const uint8_t *name, *value;
    uint32_t name_bytes, value_bytes;
} fkv_field;
static inline uint64_t fkv_field_bytes(const fkv_field *f) {
    return FKV_FIELD_HEAD + (uint64_t)f->name_bytes + f->value_bytes;
}

/* Reads the field at *at (start with 0) of `bytes` and moves *at behind it. False at the end, and when what is left is no
 * field (then *at is less than `bytes`). */
bool fkv_next_field(const uint8_t *fields, uint32_t bytes, uint32_t *at, fkv_field *f);
/* Whether they are whole fields, within FKV_FIELDS_MAX, and how many. */
bool fkv_count_fields(const uint8_t *fields, uint32_t bytes, uint32_t *count);
/* Writes fkv_field_bytes(f) at `to`; returns where they end. */
uint8_t *fkv_put_field(uint8_t *to, const fkv_field *f);

/* Fields that are looked for in a hash, each of whose fields then costs a search among these and no more. */
typedef struct fkv_sought {
    fkv_field asked;
    const uint8_t *value; /* of the field that was found */
    uint32_t value_bytes;
    bool found;
} fkv_sought;
/* By name; those of one name in the order of their places in memory. */
void fkv_sort_sought(fkv_sought *list, uint32_t count);
/* The first of this name in a sorted list; NULL: none. */
fkv_sought *fkv_find_sought(fkv_sought *list, uint32_t count, const fkv_field *f);

#endif
