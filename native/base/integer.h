/* integer.h: whole numbers of 64 bits in decimal text, as values of entries and as arguments of commands have them. */
#ifndef FARKV_BASE_INTEGER_H
#define FARKV_BASE_INTEGER_H
#include <stdbool.h>
#include <stdint.h>

/* No sign but a minus, no leading zeros, nothing else. False: it is not one. */
bool fkv_read_integer(const uint8_t *text, uint32_t bytes, int64_t *out);

#endif
