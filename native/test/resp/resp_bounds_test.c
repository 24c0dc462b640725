/* resp_bounds_test.c: what holds Redis clients back, whatever they ask for and whatever comes: calls, memory, a busy
 * store (resp_rig.h). */
#include "resp_rig.h"

CONVERSATION(calls_of_a_connection_are_bounded_and_a_busy_store_is_waited_for) {
    char text[64];
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "SET key%d %d\r\n", i % 200, i);
        say(fd, text);
    }
    for (int i = 0; i < 300; i++) hears_while(w, fd, "+OK\r\n", true);
    CHECK(w->most <= CALLS_MAX);
    w->room = 3;
    w->most = 0;
    exchange(w, fd, "MSET a 1 b 2 c 3 d 4 e 5 f 6\r\nMGET a b c d e f\r\nDEL a b c d e f g\r\n",
             "+OK\r\n*6\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n:6\r\n");
    CHECK_EQ(w->most, 3);
}

/* What wakes whoever waits for the store is the end of any call, also of one whose connection has gone. */
TEST(a_busy_store_is_waited_for_when_only_closed_connections_have_calls) {
    world *w = up(10);
    int one = dial(w), two = dial(w);
    w->room = 1;
    say(one, "SET a 1\r\n");
    until_calls(w, 1);
    say(two, "SET b 2\r\n");
    turns(w, 5);
    gone(w, one);
    CHECK_EQ(w->calls, 1);
    answer(w, 0);
    hears_while(w, two, "+OK\r\n", true);
    say(two, "SET c 1\r\nSET d 2\r\n");
    until_calls(w, 1);
    resp_connection *c = LIST_FIRST(&w->server->connections, resp_connection, link);
    CHECK(c && c->issuing); /* the second, which has begun to wait */
    fkv_clock_skip((int64_t)WAIT_NS);
    say(two, "PING\r\n");
    for (uint64_t begun = fkv_now_ns(); c->issuing; CHECK(check_in_time(begun))) turns(w, 1);
    fkv_clock_restore();
    answer(w, 0);
    hears(w, two, "+OK\r\n-TIMEOUT ");
    close(two);
    down(w);
}

/* A client that asks and does not read: what is kept for it is bounded, and all of it comes once it reads. */
CONVERSATION(a_client_that_does_not_read_is_held_back) {
    enum { VALUE = 200000, GETS = 200 };
    char *value = malloc(VALUE);
    CHECK(value);
    memset(value, 'v', VALUE);
    put(w, "big", value, VALUE);
    free(value);
    w->now = true;
    for (int i = 0; i < GETS; i++) say(fd, "GET big\r\n");
    turns(w, 50);
    resp_connection *c = LIST_FIRST(&w->server->connections, resp_connection, link);
    CHECK(c && resp_out_bytes(&c->out) > 0 && resp_out_bytes(&c->out) <= OUT_MAX + VALUE + 100);
    uint64_t wanted = GETS * (uint64_t)(VALUE + 11), got = 0;
    static char room[1 << 16];
    for (uint64_t begun = fkv_now_ns(); got < wanted;) {
        turns(w, 1);
        ssize_t r = recv(fd, room, sizeof room, 0);
        if (r > 0) got += (uint64_t)r;
        CHECK(r != 0 && check_in_time(begun));
    }
    CHECK_EQ(got, wanted);
}

/* Reads, in any order of the store, so many bytes; the most that the connection held meanwhile. */
static size_t most_held(world *w, int fd, size_t wanted) {
    static char room[1 << 16];
    resp_connection *c = LIST_FIRST(&w->server->connections, resp_connection, link);
    size_t got = 0, most = 0;
    if (!c) turns(w, 1);
    c = LIST_FIRST(&w->server->connections, resp_connection, link);
    CHECK(c);
    for (uint64_t begun = fkv_now_ns(); got < wanted;) {
        turns(w, 1);
        if (c->held > most) most = c->held;
        if (w->calls) answer(w, (uint32_t)(next(w) % w->calls));
        if (c->held > most) most = c->held;
        ssize_t r = recv(fd, room, sizeof room, 0);
        if (r > 0) got += (size_t)r;
        CHECK(r != 0 && check_in_time(begun));
    }
    CHECK_EQ(got, wanted);
    CHECK_EQ(c->held, 0);
    CHECK_EQ(c->queued, 0);
    return most;
}

/* How large they are is not known before they come. */
CONVERSATION(values_that_are_read_are_bounded_whatever_comes) {
    enum { VALUE = 300000, KEYS = 60 };
    char *value = calloc(1, VALUE), text[KEYS * 16] = "MGET";
    CHECK(value);
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof key, " k%d", i);
        strcat(text, key);
        put(w, key + 1, value, VALUE);
    }
    free(value);
    strcat(text, "\r\n");
    size_t answer_bytes = 5 + KEYS * (size_t)(VALUE + 11);
    for (int small = 0; small < 2; small++) {
        for (int i = 0; i < 100 * small; i++) { /* now small ones are expected, and many are under way at once */
            say(fd, "GET none\r\nGET s\r\n");
            put(w, "s", "s", 1);
            hears_while(w, fd, "$-1\r\n$1\r\ns\r\n", true);
        }
        w->most = 0;
        say(fd, text);
        CHECK(most_held(w, fd, answer_bytes) <= OUT_MAX + 2 * VALUE);
        CHECK(small ? w->most >= KEYS / 2 : w->most <= KEYS / 2);
    }
    for (int i = 0; i < 6; i++) say(fd, "SET k1 x GET\r\nSET k2 x GET\r\nGETDEL k3\r\nGET k4\r\nGET k5\r\nGET k6\r\n");
    size_t wanted = 6 * (size_t)(VALUE + 11) + 5 * (2 * 7 + 5 + 3 * (size_t)(VALUE + 11));
    CHECK(most_held(w, fd, wanted) <= OUT_MAX + 2 * VALUE);
}

CONVERSATION(values_that_commands_keep_are_bounded) {
    enum { VALUE = 400000, SETS = 12 };
    char *text = malloc(VALUE + 100);
    CHECK(text && fcntl(fd, F_SETFL, 0) == 0);
    resp_connection *c = NULL;
    size_t most = 0;
    for (int i = 0; i < SETS; i++) {
        int n = snprintf(text, 100, "*4\r\n$3\r\nSET\r\n$2\r\n%02d\r\n$%d\r\n", i, VALUE);
        memset(text + n, 'v', VALUE);
        memcpy(text + n + VALUE, "\r\n$2\r\nXX\r\n", 10);
        for (int sent = 0, all = n + VALUE + 10; sent < all;) {
            ssize_t r = send(fd, text + sent, (size_t)(all - sent), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (r > 0) sent += (int)r;
            turns(w, 1);
            c = LIST_FIRST(&w->server->connections, resp_connection, link);
            if (c && c->held > most) most = c->held;
            if (r <= 0 && w->calls) answer(w, 0);
        }
    }
    free(text);
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    size_t later = most_held(w, fd, SETS * 5); /* $-1: there is none */
    CHECK(most <= OUT_MAX + VALUE + 100 && later <= OUT_MAX + VALUE + 100);
}

CONVERSATION(commands_that_have_ended_behind_one_that_has_not_are_bounded) {
    enum { COMMANDS = 12000 };
    static char text[COMMANDS * 10 + 1];
    say(fd, "GET slow\r\n");
    until_calls(w, 1);
    w->now = true;
    for (int i = 0; i < COMMANDS; i++) memcpy(text + (size_t)i * 10, "EXISTS a\r\n", 10);
    say(fd, text);
    turns(w, 200);
    resp_connection *c = LIST_FIRST(&w->server->connections, resp_connection, link);
    CHECK(c && c->queued > QUEUED_MAX && c->queued <= QUEUED_MAX + 4096);
    CHECK(most_held(w, fd, 5 + COMMANDS * 4) <= OUT_MAX);
}

/* Commands that are not whole: each connection is within its bound, and all together are not. */
TEST(of_connections_that_hold_too_much_together_the_largest_is_closed) {
    enum { LARGE = 2500000, SMALLER = 1200000 };
    static char text[LARGE];
    world *w = up(10);
    w->server->config.memory_max = 5 << 20;
    int one = dial(w), two = dial(w), three = dial(w);
    say(three, "PING\r\n");
    hears(w, three, "+PONG\r\n");
    const int fds[] = { one, two };
    const size_t sizes[] = { LARGE, SMALLER };
    for (int k = 0; k < 2; k++) {
        say(fds[k], "*2\r\n$4\r\nECHO\r\n$60000000\r\n");
        for (size_t sent = 0; sent < sizes[k];) {
            ssize_t r = send(fds[k], text, sizes[k] - sent, MSG_NOSIGNAL);
            if (r > 0) sent += (size_t)r;
            turns(w, 1);
        }
    }
    for (uint64_t begun = fkv_now_ns(); !w->server->stats.evicted; CHECK(check_in_time(begun))) turns(w, 1);
    turns(w, 5);
    CHECK_EQ(w->server->stats.evicted, 1);
    CHECK_EQ(w->server->stats.connections, 2);
    CHECK(w->server->bytes <= 5 << 20);
    char c;
    ssize_t r = recv(one, &c, 1, 0);
    CHECK(r == 0 || errno == ECONNRESET);
    hears_nothing(w, two);
    say(three, "PING\r\n");
    hears(w, three, "+PONG\r\n");
    close(one);
    close(two);
    close(three);
    turns(w, 5);
    down(w);
}

enum { MANY = 30000 };

/* `name` with many keys; one turn with each part that the socket takes. */
static void say_many(world *w, int fd, const char *name) {
    static char text[MANY * 7 + 64];
    int n = snprintf(text, sizeof text, "*%d\r\n$%zu\r\n%s\r\n", MANY + 1, strlen(name), name);
    for (int i = 0; i < MANY; i++) n += snprintf(text + n, 8, "$1\r\na\r\n");
    for (ssize_t sent = 0, r; sent<n; sent += r> 0 ? r : 0, turns(w, 1))
        r = send(fd, text + sent, (size_t)(n - sent), MSG_NOSIGNAL);
}

/* Its calls take long, and what it holds goes with the last of them. */
TEST(for_what_a_closed_connection_still_holds_no_other_is_closed) {
    static char part[300000];
    world *w = up(10);
    int one = dial(w), two = dial(w);
    w->server->config.memory_max = 3 << 20;
    say(two, "*2\r\n$4\r\nECHO\r\n$60000000\r\n");
    for (size_t sent = 0; sent < sizeof part; turns(w, 1)) {
        ssize_t r = send(two, part, sizeof part - sent, MSG_NOSIGNAL);
        if (r > 0) sent += (size_t)r;
    }
    say_many(w, one, "MGET");
    for (uint64_t begun = fkv_now_ns(); !w->server->stats.evicted; CHECK(check_in_time(begun))) turns(w, 1);
    CHECK(w->calls > 0 && w->server->bytes > 3 << 20); /* it is still there */
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(send(two, "x", 1, MSG_NOSIGNAL), 1);
        turns(w, 2);
    }
    CHECK_EQ(w->server->stats.evicted, 1);
    CHECK_EQ(w->server->stats.connections, 2);
    while (w->calls) answer(w, 0);
    CHECK(w->server->leaving == 0 && w->server->stats.connections == 1);
    close(one);
    close(two);
    turns(w, 5);
    down(w);
}

/* The store answers at once, so nothing but their number ends a turn. */
TEST(a_command_of_many_keys_lets_others_have_their_turn) {
    world *w = up(10);
    int fd = dial(w);
    w->now = true;
    say_many(w, fd, "EXISTS");
    uint64_t most = 0;
    for (uint64_t begun = fkv_now_ns(), before; w->looked < MANY; CHECK(check_in_time(begun))) {
        before = w->looked;
        turns(w, 1);
        if (w->looked - before > most) most = w->looked - before;
    }
    CHECK(most <= 10000);
    hears(w, fd, ":0\r\n");
    close(fd);
    turns(w, 5);
    down(w);
}

/* A reply without a value has not the room of the value before. */
TEST(what_is_not_there_costs_little_behind_a_large_value) {
    enum { LARGE = 8 << 20 };
    world *w = up(10);
    int fd = dial(w);
    uint8_t *value = calloc(1, LARGE);
    CHECK(value);
    put(w, "large", value, LARGE);
    w->now = true;
    say(fd, "GET large\r\n");
    for (uint64_t begun = fkv_now_ns(), got = 0; got < LARGE + 12; CHECK(check_in_time(begun))) {
        turns(w, 1);
        ssize_t r = recv(fd, value, LARGE, 0);
        if (r > 0) got += (uint64_t)r;
    }
    resp_connection *c = LIST_FIRST(&w->server->connections, resp_connection, link);
    CHECK(c && c->guess == LARGE);
    for (int i = 0; i < 12; i++) {
        say(fd, "GET none\r\n");
        hears(w, fd, "$-1\r\n");
    }
    CHECK(c->guess < 4096);
    free(value);
    close(fd);
    turns(w, 5);
    down(w);
}

/* The connection whose descriptor is wanted still has a call under way. */
TEST(without_descriptors_a_client_waits_until_one_is_free) {
    world *w = up(10);
    int one = dial(w), two = dial(w), lowest = dup(one);
    struct rlimit before;
    CHECK(lowest >= 0 && close(lowest) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    struct rlimit few = { (rlim_t)lowest + 1, before.rlim_max };
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    say(one, "SET a 1\r\n");
    say(two, "PING\r\n");
    until_calls(w, 1);
    hears_nothing(w, two);
    gone(w, one);
    hears(w, two, "+PONG\r\n");
    CHECK_EQ(w->calls, 1);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(two);
    down(w);
}

int main(int argc, char **argv) {
    RUN(calls_of_a_connection_are_bounded_and_a_busy_store_is_waited_for);
    RUN(a_busy_store_is_waited_for_when_only_closed_connections_have_calls);
    RUN(a_client_that_does_not_read_is_held_back);
    RUN(values_that_are_read_are_bounded_whatever_comes);
    RUN(values_that_commands_keep_are_bounded);
    RUN(commands_that_have_ended_behind_one_that_has_not_are_bounded);
    RUN(of_connections_that_hold_too_much_together_the_largest_is_closed);
    RUN(for_what_a_closed_connection_still_holds_no_other_is_closed);
    RUN(a_command_of_many_keys_lets_others_have_their_turn);
    RUN(what_is_not_there_costs_little_behind_a_large_value);
    RUN(without_descriptors_a_client_waits_until_one_is_free);
    return check_end(argc, argv);
}
