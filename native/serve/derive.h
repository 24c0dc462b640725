/* derive.h: changes that make an entry from the present one: those that DERIVE by ops.h; those of the fields of a hash
 * are in derive_fields.c. What is made is computed here; that nothing comes between the look and the change is run.c's
 * to see to. Private to native/serve. */
#ifndef FARKV_SERVE_DERIVE_H
#define FARKV_SERVE_DERIVE_H
#include "stages.h"

/* An entry that is to be made: `kept` bytes of the present value, then `tail_bytes` of `tail`. */
typedef struct derived {
    const uint8_t *present; /* valid while the key is prepared or nothing else has run */
    const uint8_t *tail;    /* the request's, `text`, or worker.made */
    uint32_t kept, tail_bytes;
    uint32_t user_flags;
    uint8_t codec;
    bool removes;       /* nothing is left of it */
    uint64_t expiry_ms; /* wall clock, 0 never */
    uint64_t answer;    /* what the reply says beside the version */
    char text[24];
} derived;

/* `e`: the present entry, NULL: there is none. OK, or why nothing is to be changed: NOT_FOUND, NOT_INTEGER, WRONG_CODEC,
 * VALUE_TOO_LARGE, VERSION_MISMATCH, NO_MEMORY. `out` points into itself, the request's body, the entry and what its
 * worker makes values in: it is of use until that makes the next one. */
fkv_status derive(const op *o, const table_entry *e, derived *out);

/* For derive.c: an operation of the trait FIELDS, on an entry of its codec or on none. */
fkv_status derive_fields(const op *o, const table_entry *e, derived *out);
/* The number in `value` (NULL: 0) and that of the request become the text and the answer; NOT_INTEGER answers as
 * INCREMENT_FIELD does. */
fkv_status derive_sum(const op *o, const uint8_t *value, uint32_t value_bytes, derived *out);

#endif
