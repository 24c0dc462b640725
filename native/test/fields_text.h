/* fields_text.h: the fields of a hash as tests write them: "a=1 b=two empty=". */
#ifndef FARKV_TEST_FIELDS_TEXT_H
#define FARKV_TEST_FIELDS_TEXT_H
#include <string.h>
#include "../wire/fields.h"
#include "check.h"

/* Their bytes at `to`; how many. */
static inline uint32_t fields_of(const char *text, uint8_t *to) {
    const uint8_t *begun = to;
    while (*text) {
        const char *name_end = text + strcspn(text, "= "), *end = name_end + strcspn(name_end, " ");
        const char *from = name_end + (*name_end == '=');
        fkv_field f = { .name = (const uint8_t *)text, .value = (const uint8_t *)from };
        f.name_bytes = (uint32_t)(name_end - text);
        f.value_bytes = (uint32_t)(end - from);
        to = fkv_put_field(to, &f);
        text = end + (*end == ' ');
    }
    return (uint32_t)(to - begun);
}

/* Whether they are these, in this order. */
static inline void fields_are(const uint8_t *fields, uint32_t bytes, const char *text) {
    static uint8_t expected[4096];
    CHECK(strlen(text) * (1 + FKV_FIELD_HEAD) < sizeof expected);
    CHECK_EQ(bytes, fields_of(text, expected));
    CHECK(bytes == 0 || memcmp(fields, expected, bytes) == 0);
}

#endif
