/* libfuzzer.c: one target under libFuzzer; FARKV_FUZZ names it. Built by `make -C native fuzz`, with clang. */
#include <stdio.h>
#include <stdlib.h>
#include "fuzz.h"

static const fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void end(void) {
    if (target->close) target->close();
    fprintf(stderr, "frames: %llu\n", (unsigned long long)fuzz_frames);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    const char *name = getenv("FARKV_FUZZ");
    target = name ? fuzz_target_named(name) : NULL;
    if (!target) {
        fprintf(stderr, "FARKV_FUZZ names no target\n");
        exit(2);
    }
    target->open();
    atexit(end);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    fuzz_in in = { bytes, count };
    target->one(&in);
    return 0;
}
