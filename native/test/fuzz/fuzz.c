/* fuzz.c: reading inputs; the list of targets. See fuzz.h. */
#include "fuzz.h"
#include <string.h>

uint64_t fuzz_frames;

void fuzz_bytes(fuzz_in *in, void *to, size_t bytes) {
    size_t n = bytes < in->left ? bytes : in->left;
    if (n) memcpy(to, in->at, n);
    if (bytes > n) memset((uint8_t *)to + n, 0, bytes - n);
    if (n) in->at += n;
    in->left -= n;
}
uint8_t fuzz_u8(fuzz_in *in) {
    uint8_t v;
    fuzz_bytes(in, &v, sizeof v);
    return v;
}
uint16_t fuzz_u16(fuzz_in *in) {
    uint16_t v;
    fuzz_bytes(in, &v, sizeof v);
    return v;
}
uint32_t fuzz_u32(fuzz_in *in) {
    uint32_t v;
    fuzz_bytes(in, &v, sizeof v);
    return v;
}
uint64_t fuzz_u64(fuzz_in *in) {
    uint64_t v;
    fuzz_bytes(in, &v, sizeof v);
    return v;
}
uint64_t fuzz_number(fuzz_in *in) {
    uint8_t kind = fuzz_u8(in);
    if (kind < 0x60) return kind;
    if (kind < 0xa0) return ((uint64_t)1 << (kind & 0x3f)) - 1;
    if (kind < 0xe0) return (uint64_t)1 << (kind & 0x3f);
    if (kind < 0xf0) return fuzz_u16(in);
    return kind == 0xff ? UINT64_MAX : fuzz_u64(in);
}
void fuzz_touch(const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) (void)*((const volatile uint8_t *)bytes + i);
}
bool fuzz_change(fuzz_in *in, void *bytes, size_t count) {
    uint8_t by = fuzz_u8(in);
    if (by == 0 || count == 0) return false;
    ((uint8_t *)bytes)[fuzz_u16(in) % count] ^= by;
    return true;
}

const fuzz_target *fuzz_target_named(const char *name) {
    static const fuzz_target *const all[] = {
#define X(name) &fuzz_##name,
        FUZZ_TARGET_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}
