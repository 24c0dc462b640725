/* shared_copy.h: copying out of memory that another thread, process or NIC may be changing at the same time.
 *
 * The copy may be torn between words, never inside an aligned 8-byte word of the source; the caller finds out by a check of
 * what was copied (a checksum, or a word read again after fkv_copy_shared_end). Relaxed atomic loads, so that neither compiler
 * nor thread sanitizer sees a data race; one fence afterwards, so that what is loaded later is not older than the copy.
 */
#ifndef FARKV_BASE_SHARED_COPY_H
#define FARKV_BASE_SHARED_COPY_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The thread sanitizer does not understand fences; under it every load acquires. */
#ifdef __SANITIZE_THREAD__
#define FKV_SHARED_LOAD __ATOMIC_ACQUIRE
static inline void fkv_copy_shared_end(void) {}
#else
#define FKV_SHARED_LOAD __ATOMIC_RELAXED
static inline void fkv_copy_shared_end(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
#endif

typedef uint64_t __attribute__((may_alias)) fkv_shared_word;

static inline void fkv_copy_shared(void *to, const void *from, size_t bytes) {
    uint8_t *out = (uint8_t *)to;
    const uint8_t *in = (const uint8_t *)from;
    for (; bytes > 0 && ((uintptr_t)in & 7) != 0; bytes--) *out++ = __atomic_load_n(in++, FKV_SHARED_LOAD);
    for (; bytes >= 32; bytes -= 32, in += 32, out += 32) {
        const fkv_shared_word *w = (const fkv_shared_word *)in;
        uint64_t four[4] = {__atomic_load_n(w, FKV_SHARED_LOAD), __atomic_load_n(w + 1, FKV_SHARED_LOAD),
                            __atomic_load_n(w + 2, FKV_SHARED_LOAD), __atomic_load_n(w + 3, FKV_SHARED_LOAD)};
        memcpy(out, four, 32);
    }
    for (; bytes >= 8; bytes -= 8, in += 8, out += 8) {
        uint64_t one = __atomic_load_n((const fkv_shared_word *)in, FKV_SHARED_LOAD);
        memcpy(out, &one, 8);
    }
    for (; bytes > 0; bytes--) *out++ = __atomic_load_n(in++, FKV_SHARED_LOAD);
}
#endif
