/* Sleeping on fab_fd and being woken. A lost wake-up is a hang here, and the alarm ends it with a failure. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"
#include "fabric_conformance.h"

enum { MESSAGES = 50000, ALARM_S = 240 };

static const fabric_under_test *u;
static uint64_t messages;

static void sleep_until_something(fab_cq *cq) {
    if (fab_arm(cq) == 1) return;
    struct pollfd f = { .fd = fab_fd(cq), .events = POLLIN };
    CHECK(poll(&f, 1, (int)check_patience_ms()) != 0); /* what should have woken us got lost */
}

/* ---- two threads, one message back and forth, sleeping before each ---- */

static struct { fab_cq *cq; } echo;
static pthread_t thread; /* of the other end */

static void start(void *(*run)(void *)) {
    alarm(ALARM_S);
    CHECK_EQ(pthread_create(&thread, NULL, run, NULL), 0);
}
static void finish(void) {
    CHECK_EQ(pthread_join(thread, NULL), 0);
    alarm(0);
}
static void open_with(pair *p, void *(*run)(void *)) {
    pair_open(p, u, NULL, 0);
    echo.cq = p->owner.cq;
    start(run);
}

static void *echo_thread(void *arg) {
    (void)arg;
    uint64_t expected = 0;
    while (expected < messages) {
        fab_wc wc[4];
        int n = fab_poll(echo.cq, wc, 4);
        for (int i = 0; i < n; i++) {
            uint64_t value;
            CHECK(wc[i].opcode == FAB_WC_RECV && wc[i].bytes == sizeof value);
            memcpy(&value, wc[i].data, sizeof value);
            CHECK_EQ(value, expected);
            expected++;
            fab_release(wc[i].conn, wc[i].data);
            CHECK_EQ(fab_send(wc[i].conn, &(struct iovec){ &value, sizeof value }, 1), 0);
        }
        fab_flush(echo.cq);
        if (n == 0) sleep_until_something(echo.cq);
    }
    return NULL;
}

TEST(no_wake_up_is_lost_between_two_ends_that_sleep_before_each_message) {
    pair p;
    open_with(&p, echo_thread);
    for (uint64_t i = 0; i < messages; i++) {
        CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ &i, sizeof i }, 1), 0);
        fab_flush(p.client.cq);
        for (int got = 0; got == 0;) {
            fab_wc wc[4];
            got = fab_poll(p.client.cq, wc, 4);
            if (got == 0) {
                sleep_until_something(p.client.cq);
                continue;
            }
            CHECK(got == 1 && wc[0].opcode == FAB_WC_RECV && memcmp(wc[0].data, &i, sizeof i) == 0);
            fab_release(wc[0].conn, wc[0].data);
        }
    }
    finish();
    pair_close(&p);
}

/* ---- a sender that sleeps until there is room, a receiver that sleeps until something comes ---- */

static void *sink_thread(void *arg) {
    (void)arg;
    for (uint64_t expected = 0; expected < messages;) {
        fab_wc wc[8];
        int n = fab_poll(echo.cq, wc, 8);
        for (int i = 0; i < n; i++, expected++) {
            CHECK(wc[i].opcode == FAB_WC_RECV && memcmp(wc[i].data, &expected, sizeof expected) == 0);
            fab_release(wc[i].conn, wc[i].data);
        }
        fab_flush(echo.cq);
        if (n == 0) sleep_until_something(echo.cq);
    }
    return NULL;
}

TEST(a_sender_that_was_pushed_back_is_woken_when_there_is_room) {
    pair p;
    open_with(&p, sink_thread);
    static uint8_t room[2000];
    for (uint64_t i = 0; i < messages;) {
        memcpy(room, &i, sizeof i);
        if (fab_send(p.client_conn, &(struct iovec){ room, 8 + i % 1900 }, 1) == 0) {
            if (++i % 64 == 0 || i == messages) fab_flush(p.client.cq);
            continue;
        }
        fab_flush(p.client.cq);
        for (bool ready = false; !ready;) {
            fab_wc wc[4];
            int n = fab_poll(p.client.cq, wc, 4);
            if (n == 0)
                sleep_until_something(p.client.cq);
            else
                CHECK(n == 1 && wc[0].opcode == FAB_WC_SEND_READY);
            ready = n > 0;
        }
    }
    finish();
    pair_close(&p);
}

void fabric_conformance_wakeups(const fabric_under_test *under) {
    u = under;
    messages = u->messages ? u->messages : MESSAGES;
    if (!u->sleeps) return;
    RUN(no_wake_up_is_lost_between_two_ends_that_sleep_before_each_message);
    RUN(a_sender_that_was_pushed_back_is_woken_when_there_is_room);
}
