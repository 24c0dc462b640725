/* base_test.c: the queue between threads and the latency histogram. */
#include "../check.h"
#include "../../base/histogram.h"
#include "../../base/queue.h"
#include <pthread.h>
#include <sched.h>

typedef struct message { uint32_t producer, number; uint64_t twice; } message;
enum { PRODUCERS = 3, MESSAGES = 20000 };
typedef struct producer { fkv_queue *queue; uint32_t name; } producer;

static void *produce(void *arg) {
    producer *p = arg;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        message m = { p->name, i, 2 * (uint64_t)i };
        while (!fkv_queue_push(p->queue, &m)) sched_yield();
    }
    return NULL;
}
TEST(every_producers_elements_arrive_once_and_in_order) {
    fkv_queue q;
    CHECK_EQ(fkv_queue_init(&q, 50, sizeof(message)), 0);
    pthread_t threads[PRODUCERS];
    producer producers[PRODUCERS];
    uint32_t expected[PRODUCERS] = { 0 };
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (producer){ &q, i };
        CHECK_EQ(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    for (int left = PRODUCERS * MESSAGES; left > 0;) {
        message m;
        if (!fkv_queue_pop(&q, &m)) { sched_yield(); continue; }
        CHECK_EQ(m.number, expected[m.producer]++);
        CHECK_EQ(m.twice, 2 * (uint64_t)m.number);
        left--;
    }
    for (int i = 0; i < PRODUCERS; i++) pthread_join(threads[i], NULL);
    CHECK(!fkv_queue_ready(&q));
    fkv_queue_free(&q);
}
TEST(a_full_queue_refuses_and_an_empty_one_gives_nothing) {
    fkv_queue q;
    CHECK_EQ(fkv_queue_init(&q, 4, 3), 0);
    char text[3] = "ab";
    for (int lap = 0; lap < 3; lap++) {
        CHECK(!fkv_queue_pop(&q, text));
        for (int i = 0; i < 4; i++) { text[0] = (char)i; CHECK(fkv_queue_push(&q, text)); }
        CHECK(!fkv_queue_push(&q, text) && fkv_queue_ready(&q));
        for (int i = 0; i < 4; i++) CHECK(fkv_queue_pop(&q, text) && text[0] == (char)i && text[1] == 'b');
    }
    fkv_queue_free(&q);
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
TEST(small_and_enormous_latencies_are_counted) {
    static fkv_histogram a, b;
    CHECK_EQ(fkv_histogram_percentile(&a, 0.5), 0);
    fkv_histogram_record(&a, 0);
    fkv_histogram_record(&a, 7);
    CHECK_EQ(fkv_histogram_percentile(&a, 0.5), 0);
    CHECK_EQ(fkv_histogram_percentile(&a, 1), 7);
    fkv_histogram_record(&b, UINT64_MAX / 2);
    fkv_histogram_add(&b, &a);
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

int main(int argc, char **argv) {
    RUN(every_producers_elements_arrive_once_and_in_order);
    RUN(a_full_queue_refuses_and_an_empty_one_gives_nothing);
    RUN(a_percentile_is_never_too_low_and_at_most_a_32nd_too_high);
    RUN(small_and_enormous_latencies_are_counted);
    RUN(buckets_rise_with_the_latency_and_stay_in_the_array);
    return check_end(argc, argv);
}
