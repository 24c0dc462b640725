/* truth.h: what was true when, and whether an answer was: for random tests whose owner's changes happen in the test's
 * own thread.
 *
 * Each key has a list of its values with the step at which each took effect; the test counts steps. A GET that lived
 * from step s to step t may return what was true at s, or what became true up to t, and nothing else. A value is a
 * number written out and a pattern of it, so that a mixture of two values shows.
 */
#ifndef FARKV_TEST_TRUTH_H
#define FARKV_TEST_TRUTH_H
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../base/status.h"
#include "../check.h"

enum { TRUTH_KEYS = 24, TRUTH_HISTORY = 8192, TRUTH_VALUE_MOST = 1200 };

typedef struct truth {
    uint64_t seed, step;
    uint32_t next_value;
    int changes[TRUTH_KEYS];
    struct {
        uint64_t step;
        uint32_t value;
    } history[TRUTH_KEYS][TRUTH_HISTORY]; /* value 0: absent */
} truth;

static inline uint32_t truth_any(truth *t, uint32_t below) {
    t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((t->seed >> 33) % below);
}
static inline void truth_key(int key, char out[64]) {
    snprintf(out, 64, key % 4 ? "key-%d" : "a key with a long name, number %d", key);
}
static inline uint32_t truth_value(char *out, uint32_t value) {
    uint32_t n = 12 + value * 2654435761u % (value % 7 ? 100 : TRUTH_VALUE_MOST - 13);
    for (uint32_t i = 0; i < n; i++) out[i] = (char)('a' + (value * 31 + i * (1 + value % 5)) % 26);
    snprintf(out, 12, "%010u|", value);
    out[11] = '.';
    out[n] = 0;
    return n;
}
static inline void truth_note(truth *t, int key, uint32_t value) {
    CHECK(t->changes[key] < TRUTH_HISTORY);
    t->history[key][t->changes[key]].step = t->step;
    t->history[key][t->changes[key]++].value = value;
}
/* Everything is absent, from now on. */
static inline void truth_nothing(truth *t) {
    t->step++;
    for (int i = 0; i < TRUTH_KEYS; i++) truth_note(t, i, 0);
}
static inline void truth_begin(truth *t) {
    t->step = 0;
    memset(t->changes, 0, sizeof t->changes);
    truth_nothing(t);
}
static inline void truth_judge(const truth *t, int key, uint64_t from, fkv_status status, const char *value,
                               uint32_t bytes) {
    char should[TRUTH_VALUE_MOST];
    uint32_t found = 0;
    if (status == FKV_OK) {
        found = (uint32_t)strtoul(value, NULL, 10);
        CHECK_EQ(bytes, truth_value(should, found));
        CHECK(memcmp(value, should, bytes) == 0);
    }
    int i = t->changes[key] - 1;
    while (i > 0 && t->history[key][i].step > from) i--;
    for (; i < t->changes[key]; i++)
        if (t->history[key][i].value == found) return;
    fprintf(stderr, "key %d from step %llu to %llu: returned %u\n", key, (unsigned long long)from,
            (unsigned long long)t->step, found);
    CHECK(!"an answer that was never true meanwhile");
}
#endif
