/* fuzz.h: targets of the fuzzer: the C core fed with what a hostile peer may send. An input is a small program, whose
 * bytes a target reads as steps: a whole frame with right lengths, a frame with one field changed, bytes without any
 * form. So that most inputs get beyond the first check.
 *
 * Two programs run targets: libfuzzer.c, which looks for inputs that reach new code (scripts/fuzz), and
 * fuzz_corpus_test.c, which replays the inputs that are kept in corpus/. A target fails by a CHECK, by an invariant of
 * the product, or by a sanitizer's report.
 */
#ifndef FARKV_TEST_FUZZ_H
#define FARKV_TEST_FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is left of an input. Behind its end all bytes are 0. */
typedef struct fuzz_in {
    const uint8_t *at;
    size_t left;
} fuzz_in;
uint8_t fuzz_u8(fuzz_in *in);
uint16_t fuzz_u16(fuzz_in *in);
uint32_t fuzz_u32(fuzz_in *in);
uint64_t fuzz_u64(fuzz_in *in);
/* A number of which small ones and those around powers of two are likely. */
uint64_t fuzz_number(fuzz_in *in);
/* Copies `bytes`; what the input lacks is 0. */
void fuzz_bytes(fuzz_in *in, void *to, size_t bytes);
/* Looks at each byte, so that a sanitizer does. */
void fuzz_touch(const void *bytes, size_t count);
/* Changes one byte of what a peer is about to send, or, for a step of 0, none; says whether it did. */
bool fuzz_change(fuzz_in *in, void *bytes, size_t count);

typedef struct fuzz_target {
    const char *name;   /* and of its folder in corpus/ */
    void (*open)(void); /* once */
    void (*one)(fuzz_in *in);
    void (*close)(void); /* NULL: nothing is left to be freed */
} fuzz_target;

#define FUZZ_TARGET_LIST(X) \
    X(data_port) X(tcp_owner) X(tcp_client) X(replies) X(memory) X(links) X(shm_owner) X(shm_client)
#define X(name) extern const fuzz_target fuzz_##name;
FUZZ_TARGET_LIST(X)
#undef X
const fuzz_target *fuzz_target_named(const char *name); /* NULL: there is none */

/* Frames that were given to the product: each target counts its own. */
extern uint64_t fuzz_frames;

#endif
