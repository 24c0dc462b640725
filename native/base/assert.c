/* assert.c: see assert.h. */
#include "assert.h"
#include <stdio.h>
#include <stdlib.h>

void fkv_broken(const char *invariant, const char *file, int line) {
    fprintf(stderr, "farkv: broken invariant at %s:%d: %s; please report it\n", file, line, invariant);
    abort();
}
