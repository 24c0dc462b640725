/* The tcp provider's wake-up, in the orders of two threads' steps that are rare: a fab_wake that is held up between its
 * words and its write, and one that comes while the poll of another is at work. Both are made to happen, in one thread:
 * read() and write() are this file's own, and the step of the other side is taken within them. */
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../check.h"
#include "fabric_tcp_rig.h"

static void (*before_read)(void), (*before_write)(void);

static void take_step(void (**step)(void)) {
    void (*taken)(void) = *step;
    *step = NULL;
    taken();
}

ssize_t read(int fd, void *room, size_t bytes) {
    if (before_read) take_step(&before_read);
    return syscall(SYS_read, fd, room, bytes);
}

ssize_t write(int fd, const void *data, size_t bytes) {
    if (before_write) take_step(&before_write);
    return syscall(SYS_write, fd, data, bytes);
}

static end e;
static int announced, seen, polls_before_the_write;

static void look_and_poll(void) {
    fab_wc wc;
    seen = announced;
    CHECK_EQ(fab_poll(e.cq, &wc, 1), 0);
}

static void wake(void) {
    announced++;
    fab_wake(e.cq);
}

/* What the one that is woken does before the write comes. */
static void meanwhile(void) {
    for (int i = 0; i < polls_before_the_write; i++) {
        look_and_poll();
        CHECK(i > 0 || fab_arm(e.cq) == 1);
    }
}

static void two_more(void) {
    wake();
    wake();
}

/* Whoever announced something before fab_wake is sure that it is looked at: the sleeper does not lie down with what it
 * has not seen. */
static void sleep_or_look(void) {
    for (int turns = 0; fab_arm(e.cq) == 1; turns++) {
        CHECK(turns < 10);
        look_and_poll();
    }
    struct pollfd f = { .fd = fab_fd(e.cq), .events = POLLIN };
    while (poll(&f, 1, 0) == 1) {
        look_and_poll();
        while (fab_arm(e.cq) == 1) look_and_poll();
    }
    CHECK_EQ(seen, announced);
}

TEST(a_wake_that_comes_while_another_is_polled_away_is_not_lost) {
    for (polls_before_the_write = 0; polls_before_the_write < 3; polls_before_the_write++) {
        end_open(&e, &tcp_v4, NULL);
        announced = seen = 0;
        before_write = meanwhile;
        before_read = NULL;
        wake(); /* held up before its write */
        before_read = two_more;
        look_and_poll();
        sleep_or_look();
        CHECK_EQ(announced, 3);
        end_close(&e);
    }
}

/* Who looked before the wake has not seen what it announces. */
TEST(after_a_wake_that_was_polled_away_there_is_another_look) {
    fab_wc wc;
    end_open(&e, &tcp_v4, NULL);
    before_write = before_read = NULL;
    fab_wake(e.cq);
    CHECK_EQ(fab_poll(e.cq, &wc, 1), 0);
    CHECK_EQ(fab_arm(e.cq), 1);
    CHECK_EQ(fab_poll(e.cq, &wc, 1), 0);
    CHECK_EQ(fab_arm(e.cq), 0);
    end_close(&e);
}

int main(int argc, char **argv) {
    RUN(a_wake_that_comes_while_another_is_polled_away_is_not_lost);
    RUN(after_a_wake_that_was_polled_away_there_is_another_look);
    return check_end(argc, argv);
}
