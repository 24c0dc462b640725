/* words.h: how the owner stores into memory that readers load at the same time. The loads are in base/shared_copy.h.
 *
 * Every aligned 8-byte word is stored whole. Data words are relaxed: what orders them is the release fence after the
 * word that announces the change (an extent's state PENDING) and the release store of the word that publishes it (state
 * LIVE, word 0 of a bucket, a slot). The thread sanitizer does not understand fences; under it every data store
 * releases instead.
 */
#ifndef FARKV_TABLE_WORDS_H
#define FARKV_TABLE_WORDS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../base/shared_copy.h"

#ifdef __SANITIZE_THREAD__
#define FKV_SHARED_STORE __ATOMIC_RELEASE
static inline void fkv_store_fence(void) {}
#else
#define FKV_SHARED_STORE __ATOMIC_RELAXED
static inline void fkv_store_fence(void) { __atomic_thread_fence(__ATOMIC_RELEASE); }
#endif

static inline void fkv_store_word(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, FKV_SHARED_STORE); }
static inline void fkv_publish_word(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

/* Copies into shared memory. The bytes beside `to` in its first and last word are kept; nobody else may write those
 * words. */
static inline void fkv_copy_in(void *to, const void *from, size_t bytes) {
    const uint8_t *in = from;
    size_t lead = (uintptr_t)to & 7;
    fkv_shared_word *word = (fkv_shared_word *)(void *)((uint8_t *)to - lead);
    if (lead && bytes) {
        size_t n = bytes < 8 - lead ? bytes : 8 - lead;
        uint64_t w = *word;
        memcpy((uint8_t *)&w + lead, in, n);
        __atomic_store_n(word++, w, FKV_SHARED_STORE);
        in += n;
        bytes -= n;
    }
    for (; bytes >= 8; bytes -= 8, in += 8) {
        uint64_t w;
        memcpy(&w, in, 8);
        __atomic_store_n(word++, w, FKV_SHARED_STORE);
    }
    if (bytes) {
        uint64_t w = *word;
        memcpy(&w, in, bytes);
        __atomic_store_n(word, w, FKV_SHARED_STORE);
    }
}
#endif
