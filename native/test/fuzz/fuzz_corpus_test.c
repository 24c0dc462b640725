/* fuzz_corpus_test.c: replays the inputs that the fuzzer kept, in corpus/, one test for each target. It does not look
 * for new ones: scripts/fuzz does. FARKV_FUZZ_INPUT names one file to replay instead, FARKV_FUZZ_CORPUS another folder;
 * FARKV_TEST names its target. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"
#include "fuzz.h"

static void replay_file(const fuzz_target *t, const char *path) {
    static uint8_t bytes[1 << 16];
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    /* In memory of its own size, so that reading beyond the input is seen. */
    uint8_t *exact = malloc(n ? n : 1);
    memcpy(exact, bytes, n);
    fuzz_in in = { exact, n };
    t->one(&in);
    free(exact);
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }
static int is_input(const struct dirent *e) { return e->d_name[0] != '.'; }

/* Run from native/, as make does. */
static void replay(const fuzz_target *t) {
    const char *only = getenv("FARKV_FUZZ_INPUT"), *folder = getenv("FARKV_FUZZ_CORPUS");
    char kept[64], path[512];
    snprintf(kept, sizeof kept, "test/fuzz/corpus/%s", t->name);
    if (!folder) folder = kept;
    t->open();
    if (only) {
        replay_file(t, only);
    } else {
        struct dirent **entry;
        int n = scandir(folder, &entry, is_input, by_name);
        CHECK(n > 0);
        for (int i = 0; i < n; i++) {
            snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
            replay_file(t, path);
            free(entry[i]);
        }
        free(entry);
    }
    if (t->close) t->close();
}

#define X(name) \
    TEST(name) { replay(&fuzz_##name); }
FUZZ_TARGET_LIST(X)
#undef X

int main(int argc, char **argv) {
#define X(name) RUN(name);
    FUZZ_TARGET_LIST(X)
#undef X
    return check_end(argc, argv);
}
