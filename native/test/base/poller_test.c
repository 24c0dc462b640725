/* poller_test.c: when a thread that finds nothing looks again, yields, or sleeps. Time is what the test says it is. */
#include "../../base/poller.h"
#include "../check.h"

enum { LOOK_NS = 100, MS = 1000 * 1000 };

typedef struct thread {
    poller p;
    uint64_t now;
    uint64_t away; /* how long each yield takes */
} thread;

static thread made(polling how) {
    thread t = { .now = 1000 * (uint64_t)MS };
    poller_init(&t.p, how, t.now);
    return t;
}

/* Finds nothing until `ns` are over, or until it would sleep. True: it is awake. */
static bool waits(thread *t, uint64_t ns) {
    uint64_t end = t->now + ns;
    while (t->now < end) {
        poll_step step = poller_nothing(&t->p, t->now);
        if (step == POLL_SLEEP) return false;
        t->now += step == POLL_YIELD ? LOOK_NS + t->away : LOOK_NS;
    }
    return true;
}

/* Waits so long for work, awake or asleep, and finds it. True: it was awake. */
static bool gets(thread *t, uint64_t ns) {
    uint64_t end = t->now + ns;
    bool awake = waits(t, ns);
    if (t->now < end) t->now = end;
    poller_found(&t->p, t->now);
    return awake;
}

TEST(work_that_comes_soon_is_polled_for) {
    thread t = made(POLLING_AUTO);
    for (int i = 0; i < 1000; i++) CHECK(gets(&t, 10000));
    poller_stats s = poller_get_stats(&t.p, t.now);
    CHECK_EQ(s.found, 1000);
    CHECK_EQ(s.vain + s.sleeps + s.back_offs + s.late, 0);
    CHECK(s.polled_ns >= 1000 * 10000 && s.polled_ns <= s.lived_ns);
}

TEST(a_wait_without_work_ends_in_sleep_and_a_thread_that_sleeps_does_not_poll) {
    thread t = made(POLLING_AUTO);
    uint64_t begun = t.now;
    CHECK(!waits(&t, 1000 * (uint64_t)MS));
    CHECK(t.now - begun >= POLL_WINDOW_NS && t.now - begun < 2 * POLL_WINDOW_NS);
    /* woken for a deadline, by which nothing came */
    for (int i = 0; i < 100; i++) {
        t.now += 10 * MS;
        CHECK_EQ(poller_nothing(&t.p, t.now), POLL_SLEEP);
    }
    CHECK_EQ(poller_get_stats(&t.p, t.now).vain, 1);
}

TEST(a_thread_whose_work_comes_late_hardly_polls) {
    thread t = made(POLLING_AUTO);
    for (int i = 0; i < 6400; i++) gets(&t, 10 * MS);
    poller_stats s = poller_get_stats(&t.p, t.now);
    CHECK(s.vain >= 100 && s.vain <= 110); /* one of 64, once it has learned */
    CHECK(s.polled_ns < s.lived_ns / 10000);
}

TEST(a_thread_whose_work_comes_soon_again_polls_again) {
    thread t = made(POLLING_AUTO);
    for (int i = 0; i < 1000; i++) gets(&t, MS);
    int asleep = 0;
    for (int i = 0; i < 1000; i++) asleep += !gets(&t, 5000);
    CHECK(asleep > 0 && asleep < 130);
    for (int i = 0; i < 100; i++) CHECK(gets(&t, 5000));
    /* and one wait without work is no more to it than the first */
    gets(&t, MS);
    for (asleep = 0; !gets(&t, 5000); asleep++) {}
    CHECK_EQ(asleep, 3);
}

TEST(polling_that_helps_in_every_second_wait_is_given_up) {
    thread t = made(POLLING_AUTO);
    uint32_t draw = 1;
    for (int i = 0; i < 10000; i++) {
        draw = draw * 1664525 + 1013904223;
        gets(&t, draw >> 31 ? 5000 : MS);
    }
    poller_stats s = poller_get_stats(&t.p, t.now);
    CHECK(s.vain + s.found < 10000 / 20);
}

TEST(a_thread_yields_each_microsecond_once_it_has_looked_alone) {
    thread t = made(POLLING_AUTO);
    for (int i = 0; i < 100; i++) CHECK(gets(&t, POLL_ALONE_NS));
    CHECK_EQ(poller_get_stats(&t.p, t.now).yields, 0);
    for (int i = 0; i < 100; i++) CHECK(gets(&t, POLL_ALONE_NS + 10000));
    poller_stats s = poller_get_stats(&t.p, t.now);
    CHECK(s.yields >= 100 * 8 && s.yields <= 100 * 10);
}

/* A change on its way needs processors for all the threads that it passes, and takes longer. */
TEST(a_thread_that_waits_for_a_chain_of_others_yields_soon_and_for_longer) {
    thread t = made(POLLING_AUTO);
    t.p.chain = true;
    for (int i = 0; i < 100; i++) CHECK(gets(&t, POLL_CHAIN_ALONE_NS));
    CHECK_EQ(poller_get_stats(&t.p, t.now).yields, 0);
    CHECK(gets(&t, POLL_CHAIN_ALONE_NS + LOOK_NS));
    CHECK_EQ(poller_get_stats(&t.p, t.now).yields, 1);
    for (int i = 0; i < 100; i++) CHECK(gets(&t, POLL_CHAIN_WINDOW_NS - LOOK_NS));
    CHECK(!waits(&t, 2 * POLL_CHAIN_WINDOW_NS));
    CHECK_EQ(poller_get_stats(&t.p, t.now).vain, 1);
}

/* One that has learned that it shares its processor with its peer. */
static thread sharing(void) {
    thread t = made(POLLING_AUTO);
    t.away = 2 * POLL_LATE_NS;
    CHECK(gets(&t, POLL_ALONE_NS + POLL_LATE_NS));
    return t;
}

/* Client and owner on one processor: each has it while the other yields. */
TEST(on_a_shared_processor_it_yields_before_each_look) {
    thread t = sharing();
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(poller_nothing(&t.p, t.now), POLL_YIELD);
        t.now += 2 * POLL_LATE_NS;
        poller_found(&t.p, t.now);
    }
    CHECK(poller_get_stats(&t.p, t.now).late >= 100);
    /* until they come back at once: the other sleeps, or has gone to another processor */
    t.away = 0;
    for (int i = 0; i < POLL_SHARED; i++) CHECK_EQ(poller_nothing(&t.p, t.now += LOOK_NS), POLL_YIELD);
    CHECK_EQ(poller_nothing(&t.p, t.now += LOOK_NS), POLL_LOOK);
}

TEST(after_much_work_a_shared_processor_is_slept_on) {
    thread t = sharing();
    t.p.much = true;
    int awake = 0;
    for (int i = 0; i < 10 * POLL_SLEPT; i++) awake += gets(&t, 2 * POLL_LATE_NS);
    CHECK_EQ(awake, 10); /* to see whether it still is */
    t.p.much = false;
    for (int i = 0; i < 100; i++) CHECK(gets(&t, 2 * POLL_LATE_NS));
    thread own = made(POLLING_AUTO);
    own.p.much = true;
    for (int i = 0; i < 1000; i++) CHECK(gets(&own, 10000));
}

TEST(whoever_keeps_the_processor_is_not_yielded_to_for_a_while) {
    for (int found = 0; found < 2; found++) {
        thread t = made(POLLING_AUTO);
        CHECK(waits(&t, POLL_ALONE_NS));
        CHECK_EQ(poller_nothing(&t.p, t.now), POLL_YIELD);
        t.now += POLL_TOO_LATE_NS;
        if (!found) CHECK_EQ(poller_nothing(&t.p, t.now), POLL_SLEEP);
        poller_found(&t.p, t.now);
        uint64_t until = t.now + (uint64_t)POLL_BACK_OFF_TIMES * POLL_TOO_LATE_NS;
        uint64_t yields = poller_get_stats(&t.p, t.now).yields;
        while (t.now + POLL_WINDOW_NS < until) CHECK(!gets(&t, POLL_WINDOW_NS - LOOK_NS));
        CHECK_EQ(poller_get_stats(&t.p, t.now).yields, yields);
        CHECK_EQ(poller_get_stats(&t.p, t.now).back_offs, 1);
        /* work that comes sooner is polled for even then, and later work again when that time is over */
        t.now = until;
        int asleep = 0;
        while (!gets(&t, POLL_ALONE_NS + 10000)) asleep++;
        CHECK(asleep < 1 << HABIT_STEPS_MAX);
    }
}

TEST(always_polls_however_long_nothing_came_and_sleeps_in_the_end) {
    thread t = made(POLLING_ALWAYS);
    t.away = POLL_TOO_LATE_NS;
    for (int i = 0; i < 100; i++) CHECK(gets(&t, 50 * MS));
    CHECK_EQ(poller_get_stats(&t.p, t.now).back_offs, 0);
    CHECK(!waits(&t, 1000 * (uint64_t)MS));
    poller_found(&t.p, t.now);
    CHECK(gets(&t, 50 * MS));
}

TEST(never_sleeps_at_once) {
    thread t = made(POLLING_NEVER);
    for (int i = 0; i < 100; i++) CHECK(!gets(&t, 100));
    CHECK_EQ(poller_get_stats(&t.p, t.now).polled_ns, 0);
}

int main(int argc, char **argv) {
    RUN(work_that_comes_soon_is_polled_for);
    RUN(a_wait_without_work_ends_in_sleep_and_a_thread_that_sleeps_does_not_poll);
    RUN(a_thread_whose_work_comes_late_hardly_polls);
    RUN(a_thread_whose_work_comes_soon_again_polls_again);
    RUN(polling_that_helps_in_every_second_wait_is_given_up);
    RUN(a_thread_yields_each_microsecond_once_it_has_looked_alone);
    RUN(a_thread_that_waits_for_a_chain_of_others_yields_soon_and_for_longer);
    RUN(on_a_shared_processor_it_yields_before_each_look);
    RUN(after_much_work_a_shared_processor_is_slept_on);
    RUN(whoever_keeps_the_processor_is_not_yielded_to_for_a_while);
    RUN(always_polls_however_long_nothing_came_and_sleeps_in_the_end);
    RUN(never_sleeps_at_once);
    return check_end(argc, argv);
}
