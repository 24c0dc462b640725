#include "check.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/hash.h"

static int tests_run;
static uint64_t seed;
static const char *current = "";

/* The same in every run, so that a run says the same of the same code: FARKV_SEED is another, or "fresh". */
static const uint64_t SEED = 20261127;
uint64_t check_seed(void) {
    if (seed == 0) {
        const char *given = getenv("FARKV_SEED");
        if (given && strcmp(given, "fresh") == 0)
            fkv_random(&seed, sizeof seed);
        else
            seed = given ? strtoull(given, NULL, 0) : SEED;
        if (seed == 0) seed = 1;
    }
    return seed;
}
uint64_t check_patience_ms(void) {
    const char *given = getenv("FARKV_PATIENCE_MS");
    uint64_t ms = given ? strtoull(given, NULL, 0) : 0;
    return ms ? ms : 60000;
}
bool check_in_time(uint64_t begun_ns) { return fkv_now_ns() - begun_ns < check_patience_ms() * 1000000u; }
void check_replays(uint64_t part_seed) { seed = part_seed; }
/* Seconds: a test that runs this long hangs. One may set an alarm() of its own, which replaces this one. */
#define TEST_MAX_S 1200
/* A hang that an alarm ends says which test it was. */
static void alarmed(int signal_number) {
    (void)signal_number;
    static const char text[] = ": still running when its alarm came\n";
    if (write(2, current, strlen(current)) < 0 || write(2, text, sizeof text - 1) < 0) _exit(1);
    abort();
}
/* FARKV_TEST_TIMES: says which test runs, and how long each took, for where they take long and may hang. */
void check_run(const char *name, void (*test)(void)) {
    const char *only = getenv("FARKV_TEST");
    if (only && strcmp(only, name) != 0) return;
    current = name;
    signal(SIGALRM, alarmed);
    alarm(TEST_MAX_S);
    uint64_t begun = fkv_now_ns();
    if (getenv("FARKV_TEST_TIMES")) fprintf(stderr, "%s ...\n", name);
    test();
    alarm(0);
    if (getenv("FARKV_TEST_TIMES"))
        fprintf(stderr, "%s: %llu ms\n", name, (unsigned long long)(fkv_now_ns() - begun) / 1000000u);
    tests_run++;
}
void check_failed(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: %s: failed: %s\n", file, line, current, what);
    if (seed) fprintf(stderr, "replay: FARKV_SEED=%llu FARKV_TEST=%s\n", (unsigned long long)seed, current);
    abort();
}
void check_eq(const char *file, int line, const char *what, long long a, long long b) {
    if (a == b) return;
    char text[512];
    snprintf(text, sizeof text, "%s (%lld and %lld)", what, a, b);
    check_failed(file, line, text);
}
int check_end(int argc, char **argv) {
    (void)argc;
    const char *slash = strrchr(argv[0], '/');
    printf("ok %s: %d tests\n", slash ? slash + 1 : argv[0], tests_run);
    return tests_run > 0 || getenv("FARKV_TEST") ? 0 : 1;
}
