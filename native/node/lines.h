/* lines.h: lines that peers cause, from any thread, go to an event loop whose queue has no bound: so many in so long do,
 * and how many did not is said with the next one. Private to native/node. */
#ifndef FARKV_NODE_LINES_H
#define FARKV_NODE_LINES_H
#include <stdbool.h>
#include <stdint.h>

enum { LINES = 20 };
#define LINES_NS UINT64_C(10000000000)

typedef struct line_budget {
    uint64_t since_ns;
    uint32_t passed, omitted; /* since then; since the latest that passed */
} line_budget;

/* Whether a line goes; *omitted: how many before it did not. Under the owner's lock. */
static inline bool line_passes(line_budget *b, uint32_t most, uint64_t now_ns, uint32_t *omitted) {
    if (b->since_ns == 0 || now_ns - b->since_ns >= LINES_NS) {
        b->since_ns = now_ns;
        b->passed = 0;
    }
    bool passes = b->passed < most;
    *omitted = b->omitted;
    b->passed += passes;
    b->omitted = passes ? 0 : *omitted + 1;
    return passes;
}

#endif
