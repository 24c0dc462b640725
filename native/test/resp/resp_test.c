/* resp_test.c: what Redis clients are answered, in their order, whatever the store does (resp_rig.h). */
#include "resp_rig.h"

CONVERSATION(answers_come_in_order_whatever_the_order_of_the_store) {
    say(fd, "SET a 1\r\nPING\r\nSET b 2\r\nGET c\r\nECHO x\r\nSET d 4\r\n");
    until_calls(w, 4);
    answer(w, 3);
    answer(w, 2);
    answer(w, 1);
    hears_nothing(w, fd);
    answer(w, 0);
    hears(w, fd, "+OK\r\n+PONG\r\n+OK\r\n$-1\r\n$1\r\nx\r\n+OK\r\n");
}

CONVERSATION(a_connection_sees_its_own_changes) {
    w->now = true; /* a GET could be answered at once, and must not be */
    say(fd, "SET a 1\r\nGET a\r\nSET a 2\r\nMGET b a\r\n");
    until_calls(w, 1);
    hears_nothing(w, fd);
    answer(w, 0);
    hears(w, fd, "+OK\r\n$1\r\n1\r\n");
    until_calls(w, 1);
    answer(w, 0);
    hears(w, fd, "+OK\r\n*2\r\n$-1\r\n$1\r\n2\r\n");
    w->now = false; /* a change waits for reads of its key as well */
    say(fd, "GET a\r\nGET a\r\nDEL a\r\n");
    until_calls(w, 2);
    answer(w, 1);
    until_calls(w, 1);
    answer(w, 0);
    until_calls(w, 1);
    CHECK(!w->call[0].is_get);
    answer(w, 0);
    hears(w, fd, "$1\r\n2\r\n$1\r\n2\r\n:1\r\n");
}

CONVERSATION(of_one_key_twice_in_a_command_the_last_value_stays) {
    for (int i = 0; i < 50; i++) {
        say(fd, "MSET a 1 b 2 a 3 c 4 a 5\r\nGET a\r\n");
        hears_while(w, fd, "+OK\r\n$1\r\n5\r\n", true);
    }
}

/* Another client's change comes between the read and the change. */
CONVERSATION(a_set_that_looks_first_is_one_step) {
    put(w, "a", "old", 3);
    say(fd, "SET a mine GET\r\n");
    until_calls(w, 1);
    answer(w, 0); /* the read */
    until_calls(w, 1);
    put(w, "a", "theirs", 6);
    answer(w, 0); /* the change comes too late */
    until_calls(w, 1);
    CHECK(w->call[0].is_get);
    hears_while(w, fd, "$6\r\ntheirs\r\n", true);
    CHECK(memcmp(find(w, "a")->value, "mine", 4) == 0);
    exchange(w, fd, "SET a x NX\r\nSET b y NX\r\nSET c z XX\r\nGETDEL b\r\nGETDEL b\r\nSETNX a 1\r\nSETNX d 1\r\n",
             "$-1\r\n+OK\r\n$-1\r\n$1\r\ny\r\n$-1\r\n:0\r\n:1\r\n");
    exchange(w, fd, "SET a 1 PX 100000\r\nSET a 2 KEEPTTL\r\nTTL a\r\nPERSIST a\r\nTTL a\r\nPERSIST a\r\nTTL zz\r\n",
             "+OK\r\n+OK\r\n:100\r\n:1\r\n:-1\r\n:0\r\n:-2\r\n");
}

/* The time of the present entry is its owner's: whatever the clock here says, it stays to the millisecond. */
CONVERSATION(keepttl_keeps_what_the_owner_has_and_calculates_nothing) {
    put(w, "a", "1", 1);
    find(w, "a")->expiry_ms = 5;
    exchange(w, fd, "SET a 2 KEEPTTL\r\nSET a 3 XX GET KEEPTTL\r\nSET b 1 KEEPTTL\r\n", "+OK\r\n$1\r\n2\r\n+OK\r\n");
    CHECK_EQ(find(w, "a")->expiry_ms, 5);
    CHECK(find(w, "a")->value[0] == '3');
    CHECK_EQ(find(w, "b")->expiry_ms, 0);
    say(fd, "GETSET a 4\r\n"); /* keeps none, as in Redis */
    hears_while(w, fd, "$1\r\n3\r\n", true);
    CHECK_EQ(find(w, "a")->expiry_ms, 0);
}

CONVERSATION(numbers_that_are_none_are_told_from_sums_that_are_none) {
    exchange(w, fd,
             "SET a 9223372036854775807\r\nINCR a\r\nSET b x\r\nINCR b\r\nINCRBY c -5\r\nDECR c\r\nINCRBY c 1.5\r\n",
             "+OK\r\n-ERR increment or decrement would overflow\r\n+OK\r\n"
             "-ERR value is not an integer or out of range\r\n:-5\r\n:-6\r\n"
             "-ERR value is not an integer or out of range\r\n");
}

TEST(a_protocol_error_is_told_after_what_was_asked_before_and_ends_the_connection) {
    world *w = up(10);
    int fd = dial(w);
    say(fd, "SET a 1\r\n*1\r\nx\r\nPING\r\n");
    until_calls(w, 1);
    hears_nothing(w, fd);
    answer(w, 0);
    hears(w, fd, "+OK\r\n-ERR Protocol error: expected '$', got 'x'\r\n");
    hears_the_end(w, fd);
    close(fd);
    fd = dial(w);
    say(fd, "QUIT\r\nPING\r\n");
    hears(w, fd, "+OK\r\n");
    hears_the_end(w, fd);
    close(fd);
    down(w);
}

/* A buffer that had no memory behind the first bytes of a reply. */
TEST(a_reply_without_memory_ends_the_connection_and_no_part_of_it_is_sent) {
    world *w = up(10);
    int fd = dial(w);
    say(fd, "SET a 1\r\n");
    until_calls(w, 1);
    resp_connection *c = LIST_FIRST(&w->server->connections, resp_connection, link);
    resp_raw(&c->out, "$5\r\nab");
    c->out.failed = true;
    answer(w, 0);
    hears_the_end(w, fd);
    close(fd);
    resp_out o = { 0 };
    CHECK(resp_out_room(&o, 1 << 20));
    o.to = 1;
    o.failed = true;
    resp_out_took(&o, 1);
    CHECK(o.failed && !o.bytes);
    down(w);
}

/* What a web page can have a browser send to the port. */
TEST(http_ends_the_connection_before_its_body_is_run) {
    static const char *const requests[] = { "POST / HTTP/1.1\r\nSET a 1\r\n",
                                            "PUT / HTTP/1.1\r\nHost: x\r\nSET a 1\r\n" };
    world *w = up(10);
    char text[200];
    for (int i = 0; i < 2; i++) {
        int fd = dial(w);
        say(fd, requests[i]);
        ssize_t r = -1;
        for (uint64_t begun = fkv_now_ns(); r != 0 && !(r < 0 && errno == ECONNRESET);
             r = recv(fd, text, sizeof text, 0)) {
            turns(w, 1);
            CHECK(w->calls == 0 && check_in_time(begun));
        }
        CHECK_EQ(w->calls, 0);
        close(fd);
    }
    down(w);
}

CONVERSATION(after_a_refused_multi_nothing_is_run_until_its_end) {
#define REFUSED "-ERR MULTI and WATCH are not supported by farkv's gateway, see docs/gateway.md\r\n"
    exchange(w, fd, "MULTI\r\nSET a 1\r\nPING\r\nBOO\r\nEXEC\r\nPING\r\nEXEC\r\n",
             REFUSED REFUSED REFUSED REFUSED
             "-EXECABORT Transaction discarded because of previous errors.\r\n+PONG\r\n-ERR EXEC without MULTI\r\n");
    exchange(w, fd,
             "MULTI\r\nMULTI\r\nGET a\r\nDISCARD\r\nPING\r\nDISCARD\r\nMULTI\r\nRESET\r\nPING\r\nWATCH a\r\nPING\r\n",
             REFUSED REFUSED REFUSED "+OK\r\n+PONG\r\n-ERR DISCARD without MULTI\r\n" REFUSED
                                     "+RESET\r\n+PONG\r\n" REFUSED "+PONG\r\n");
    CHECK_EQ(w->most, 0);
}

TEST(connections_that_go_leave_nothing_but_their_calls) {
    world *w = up(2);
    int one = dial(w), two = dial(w);
    say(one, "SET a 1\r\nSET b 2 GET\r\nGET c\r\n");
    until_calls(w, 3);
    say(two, "PING\r\n");
    hears(w, two, "+PONG\r\n");
    int three = dial(w);
    hears(w, three, "-ERR max number of clients reached\r\n");
    hears_the_end(w, three);
    close(three);
    gone(w, one);
    answer(w, 1); /* the read of a SET that looks first: the change does not follow */
    turns(w, 2);
    CHECK_EQ(w->calls, 2);
    answer(w, 0);
    answer(w, 0);
    three = dial(w);
    say(three, "PING\r\n");
    hears(w, three, "+PONG\r\n");
    close(three);
    say(two, "GET a\r\n");
    until_calls(w, 1);
    close(two);
    down(w); /* with a call under way */
}

TEST(a_server_that_ends_answers_what_is_under_way_and_nothing_more) {
    world *w = up(10);
    int busy = dial(w), idle = dial(w);
    say(idle, "PING\r\n");
    hears(w, idle, "+PONG\r\n");
    say(busy, "SET a 1\r\n");
    until_calls(w, 1);
    resp_server_end(w->server);
    hears_the_end(w, idle);
    say(busy, "SET b 1\r\n");
    hears_nothing(w, busy);
    resp_server_end(w->server);
    answer(w, 0);
    hears(w, busy, "+OK\r\n");
    for (uint64_t begun = fkv_now_ns(); w->server->stats.connections; CHECK(check_in_time(begun))) turns(w, 1);
    CHECK_EQ(w->most, 1);
    close(busy);
    close(idle);
    int late = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(late >= 0 && try_to_connect(w, late) != 0 && errno == ECONNREFUSED);
    close(late);
    down(w);
}

CONVERSATION(answers_of_resp3_differ_where_they_do) {
    w->now = true;
    say(fd, "GET a\r\nHELLO 3\r\nGET a\r\nMGET a\r\nCONFIG GET save\r\nRESET\r\nGET a\r\nHELLO 4\r\n");
    hears(w, fd,
          "$-1\r\n%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n"
          "$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
          "_\r\n*1\r\n_\r\n%1\r\n$4\r\nsave\r\n$0\r\n\r\n+RESET\r\n$-1\r\n-NOPROTO unsupported protocol version\r\n");
}

/* Only what is there is listed: a closed connection's descriptor may be another's. */
TEST(clients_are_listed_by_name_and_those_that_have_gone_are_not) {
    world *w = up(10);
    int one = dial(w), two = dial(w);
    char text[2048] = "";
    exchange(w, one, "CLIENT SETNAME first\r\n", "+OK\r\n");
    exchange(w, two, "CLIENT SETNAME second\r\n", "+OK\r\n");
    say(two, "SET a 1\r\n");
    until_calls(w, 1);
    gone(w, two);
    CHECK_EQ(w->server->stats.connections, 2);
    say(one, "CLIENT LIST\r\nPING\r\n");
    size_t n = 0;
    for (uint64_t begun = fkv_now_ns(); !strstr(text, "+PONG"); CHECK(check_in_time(begun))) {
        turns(w, 1);
        ssize_t r = recv(one, text + n, sizeof text - 1 - n, 0);
        if (r > 0) n += (size_t)r;
    }
    CHECK(strstr(text, " name=first ") && strstr(text, "addr=127.0.0.1:") && strstr(text, "cmd=client|list"));
    CHECK(!strstr(text, "name=second"));
    close(one);
    down(w);
}

CONVERSATION(what_a_list_of_clients_costs_is_bounded) {
    exchange(w, fd, "PING\r\n", "+PONG\r\n");
    uint64_t there = w->server->stats.connections;
    w->server->stats.connections = 1025;
    exchange(w, fd, "CLIENT LIST\r\n",
             "-ERR CLIENT LIST has at most 1024 clients and there are 1025, see INFO for their number\r\n");
    w->server->stats.connections = there;
}

CONVERSATION(what_a_question_for_settings_costs_is_bounded) {
    char text[1024] = "CONFIG GET";
    exchange(w, fd, "CONFIG GET DATA*S maxclients\r\nCONFIG GET none\r\nCLIENT NO-EVICT ON\r\n",
             "*4\r\n$9\r\ndatabases\r\n$5\r\n65536\r\n$10\r\nmaxclients\r\n$2\r\n10\r\n*0\r\n"
             "-ERR CLIENT NO-EVICT ON is not built: no client is spared, see docs/gateway.md\r\n");
    for (int i = 0; i < 65; i++) strcat(text, " ?x");
    exchange(w, fd, strcat(text, "\r\n"), "-ERR CONFIG GET takes at most 64 names, each of at most 64 bytes\r\n");
    snprintf(text, sizeof text, "CONFIG GET %065d\r\n", 0);
    exchange(w, fd, text, "-ERR CONFIG GET takes at most 64 names, each of at most 64 bytes\r\n");
}

int main(int argc, char **argv) {
    RUN(answers_come_in_order_whatever_the_order_of_the_store);
    RUN(a_connection_sees_its_own_changes);
    RUN(of_one_key_twice_in_a_command_the_last_value_stays);
    RUN(a_set_that_looks_first_is_one_step);
    RUN(keepttl_keeps_what_the_owner_has_and_calculates_nothing);
    RUN(numbers_that_are_none_are_told_from_sums_that_are_none);
    RUN(a_protocol_error_is_told_after_what_was_asked_before_and_ends_the_connection);
    RUN(a_reply_without_memory_ends_the_connection_and_no_part_of_it_is_sent);
    RUN(http_ends_the_connection_before_its_body_is_run);
    RUN(after_a_refused_multi_nothing_is_run_until_its_end);
    RUN(connections_that_go_leave_nothing_but_their_calls);
    RUN(a_server_that_ends_answers_what_is_under_way_and_nothing_more);
    RUN(answers_of_resp3_differ_where_they_do);
    RUN(clients_are_listed_by_name_and_those_that_have_gone_are_not);
    RUN(what_a_list_of_clients_costs_is_bounded);
    RUN(what_a_question_for_settings_costs_is_bounded);
    return check_end(argc, argv);
}
