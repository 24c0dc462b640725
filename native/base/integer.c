/* integer.c: see integer.h. */
#include "integer.h"

bool fkv_read_integer(const uint8_t *text, uint32_t bytes, int64_t *out) {
    bool minus = bytes > 0 && text[0] == '-';
    uint32_t digits = bytes - minus;
    uint64_t n = 0, most = (uint64_t)INT64_MAX + minus;
    if (digits == 0 || digits > 19) return false;
    if (text[minus] == '0' && (digits > 1 || minus)) return false;
    for (uint32_t i = minus; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        n = n * 10 + (uint64_t)(text[i] - '0'); /* 19 digits are below 2^64 */
    }
    if (n > most) return false;
    *out = (int64_t)(minus ? 0 - n : n);
    return true;
}
