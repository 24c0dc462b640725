/* base_test.c: mailboxes and the latency histogram. */
#include "../check.h"
#include "../../base/assert.h"
#include "../../base/histogram.h"
#include "../../base/mailbox.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POSTERS = 3, JOBS = 20000 };
typedef struct numbered {
    job job;
    uint32_t poster, number;
} numbered;
typedef struct poster {
    mailbox *to;
    numbered *jobs;
} poster;
static uint32_t expected[POSTERS];
static int left;

static void count(job *j) {
    const numbered *n = (const numbered *)j;
    CHECK_EQ(n->number, expected[n->poster]++);
    left--;
}
static void *post(void *arg) {
    poster *p = arg;
    for (uint32_t i = 0; i < JOBS; i++) mailbox_post(p->to, &p->jobs[i].job);
    return NULL;
}
TEST(every_posters_jobs_run_once_and_in_order) {
    mailbox box;
    CHECK_EQ(mailbox_open(&box), 0);
    pthread_t threads[POSTERS];
    poster posters[POSTERS];
    left = POSTERS * JOBS;
    for (uint32_t i = 0; i < POSTERS; i++) {
        posters[i] = (poster){ &box, calloc(JOBS, sizeof(numbered)) };
        for (uint32_t k = 0; k < JOBS; k++) posters[i].jobs[k] = (numbered){ { NULL, count }, i, k };
        CHECK_EQ(pthread_create(&threads[i], NULL, post, &posters[i]), 0);
    }
    while (left > 0) {
        mailbox_sleep(&box); /* woken whenever something was posted into an empty one */
        mailbox_run(&box);
    }
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(threads[i], NULL);
        free(posters[i].jobs);
    }
    CHECK(!mailbox_ready(&box) && mailbox_run(&box) == 0);
    mailbox_close(&box);
}
TEST(a_percentile_is_never_too_low_and_at_most_a_32nd_too_high) {
    static fkv_histogram h;
    for (uint64_t ns = 1; ns <= 100000; ns++) fkv_histogram_record(&h, ns);
    CHECK_EQ(h.count, 100000);
    CHECK_EQ(h.max, 100000);
    CHECK_EQ(h.sum, 5000050000);
    for (double part = 0.01; part < 1; part += 0.01) {
        double exact = part * 100000, got = (double)fkv_histogram_percentile(&h, part);
        CHECK(got >= exact - 1 && got <= exact * 33 / 32 + 1);
    }
    CHECK_EQ(fkv_histogram_percentile(&h, 1), 100000);
}
TEST(octaves_count_what_is_less_than_each_bound) {
    static fkv_histogram h;
    uint64_t below[FKV_HISTOGRAM_BOUNDS];
    const uint64_t first = (uint64_t)1 << FKV_HISTOGRAM_OCTAVE_FIRST, last = first << (FKV_HISTOGRAM_OCTAVES - 1);
    fkv_histogram_octaves(&h, below);
    for (int i = 0; i < FKV_HISTOGRAM_BOUNDS; i++) CHECK_EQ(below[i], 0);
    const uint64_t ns[] = { 0, first - 1, first, 2 * first - 1, 2 * first, last - 1, last, UINT64_MAX / 2 };
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) fkv_histogram_record(&h, ns[i]);
    fkv_histogram_octaves(&h, below);
    for (int i = 0; i < FKV_HISTOGRAM_OCTAVES; i++) {
        uint64_t exact = 0;
        for (size_t k = 0; k < sizeof ns / sizeof *ns; k++) exact += ns[k] < first << i;
        CHECK_EQ(below[i], exact);
    }
    CHECK_EQ(below[FKV_HISTOGRAM_OCTAVES], sizeof ns / sizeof *ns);
}
TEST(small_and_enormous_latencies_are_counted) {
    static fkv_histogram a, b;
    CHECK_EQ(fkv_histogram_percentile(&a, 0.5), 0);
    fkv_histogram_record(&a, 0);
    fkv_histogram_record(&a, 7);
    CHECK_EQ(fkv_histogram_percentile(&a, 0.5), 0);
    CHECK_EQ(fkv_histogram_percentile(&a, 1), 7);
    fkv_histogram_record(&b, 0);
    fkv_histogram_record(&b, 7);
    fkv_histogram_record(&b, UINT64_MAX / 2);
    CHECK_EQ(b.count, 3);
    CHECK_EQ(fkv_histogram_percentile(&b, 0.6), 7);
    CHECK_EQ(fkv_histogram_percentile(&b, 1), UINT64_MAX / 2);
}
TEST(buckets_rise_with_the_latency_and_stay_in_the_array) {
    uint32_t last = 0;
    for (uint64_t ns = 0; ns < 1ull << 44; ns += 1 + ns / 64) {
        uint32_t b = fkv_histogram_bucket(ns);
        CHECK(b >= last && b <= last + 1 && b < FKV_HISTOGRAM_BUCKETS);
        last = b;
    }
    CHECK_EQ(last, FKV_HISTOGRAM_BUCKETS - 1);
    CHECK_EQ(fkv_histogram_bucket(UINT64_MAX), FKV_HISTOGRAM_BUCKETS - 1);
}

TEST(a_broken_invariant_is_named_and_stops_the_process) {
    int said[2], status;
    char text[256] = "";
    CHECK_EQ(pipe(said), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(said[1], STDERR_FILENO);
        fkv_assert(said[0] == said[1]);
        _exit(0);
    }
    close(said[1]);
    CHECK(read(said[0], text, sizeof text - 1) > 0);
    close(said[0]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(text, "base_test.c") && strstr(text, "said[0] == said[1]"));
}

int main(int argc, char **argv) {
    RUN(a_broken_invariant_is_named_and_stops_the_process);
    RUN(every_posters_jobs_run_once_and_in_order);
    RUN(a_percentile_is_never_too_low_and_at_most_a_32nd_too_high);
    RUN(octaves_count_what_is_less_than_each_bound);
    RUN(small_and_enormous_latencies_are_counted);
    RUN(buckets_rise_with_the_latency_and_stay_in_the_array);
    return check_end(argc, argv);
}
