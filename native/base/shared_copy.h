/* shared_copy.h: copying out of memory that another thread, process or NIC may be changing at the same time.
 *
 * The copy may be torn between words, never inside an aligned 8-byte word of the source; the caller finds out by a
 * check of what was copied (a checksum, or a word read again after fkv_copy_shared_end). Relaxed atomic loads, so that
 * neither compiler nor thread sanitizer sees a data race; one fence afterwards, so that what is loaded later is not
 * older than the copy.
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

/* 64 bytes from an 8-byte boundary on. Compilers neither merge atomic loads into vectors nor store them singly: what
 * they make of four words at a time stalls on its own stores. These are the vector loads that the CPU does word by word
 * at least; the compiler sees only that memory is read. */
static inline void fkv_copy_shared_64(uint8_t *out, const uint8_t *in) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    __asm__ volatile(
        "movdqu (%1), %%xmm0\n\tmovdqu 16(%1), %%xmm1\n\tmovdqu 32(%1), %%xmm2\n\tmovdqu 48(%1), %%xmm3\n\t"
        "movdqu %%xmm0, (%0)\n\tmovdqu %%xmm1, 16(%0)\n\tmovdqu %%xmm2, 32(%0)\n\tmovdqu %%xmm3, 48(%0)"
        :
        : "r"(out), "r"(in)
        : "memory", "xmm0", "xmm1", "xmm2", "xmm3");
#else
    for (int i = 0; i < 8; i++) {
        uint64_t one = __atomic_load_n((const fkv_shared_word *)in + i, FKV_SHARED_LOAD);
        memcpy(out + 8 * i, &one, 8);
    }
#endif
}

static inline void fkv_copy_shared(void *to, const void *from, size_t bytes) {
    uint8_t *out = (uint8_t *)to;
    const uint8_t *in = (const uint8_t *)from;
    for (; bytes > 0 && ((uintptr_t)in & 7) != 0; bytes--) *out++ = __atomic_load_n(in++, FKV_SHARED_LOAD);
    for (; bytes >= 64; bytes -= 64, in += 64, out += 64) fkv_copy_shared_64(out, in);
    for (; bytes >= 8; bytes -= 8, in += 8, out += 8) {
        uint64_t one = __atomic_load_n((const fkv_shared_word *)in, FKV_SHARED_LOAD);
        memcpy(out, &one, 8);
    }
    for (; bytes > 0; bytes--) *out++ = __atomic_load_n(in++, FKV_SHARED_LOAD);
}
#endif
