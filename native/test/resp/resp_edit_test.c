/* resp_edit_test.c: commands that change a value by what it was. */
#include "resp_rig.h"

/* Another client's change comes between the read and the change. */
static void raced(world *w, int fd, const char *said, const char *theirs, const char *expected) {
    say(fd, said);
    until_calls(w, 1);
    answer(w, 0); /* the read */
    until_calls(w, 1);
    CHECK(!w->call[0].is_get);
    put(w, "a", theirs, (uint32_t)strlen(theirs));
    answer(w, 0); /* the change comes too late */
    until_calls(w, 1);
    CHECK(w->call[0].is_get);
    hears_while(w, fd, expected, true);
}

static void is_value(world *w, const char *key, const char *expected, uint32_t n) {
    const entry *e = find(w, key);
    CHECK(e && e->bytes == n && memcmp(e->value, expected, n) == 0);
}

CONVERSATION(an_edit_is_one_step) {
    put(w, "a", "old", 3);
    raced(w, fd, "SETRANGE a 1 xy\r\n", "theirs", ":6\r\n");
    is_value(w, "a", "txyirs", 6);
    put(w, "a", "1", 1);
    raced(w, fd, "INCRBYFLOAT a 0.5\r\n", "10", "$4\r\n10.5\r\n");
    raced(w, fd, "GETEX a EX 100\r\n", "new", "$3\r\nnew\r\n");
    is_value(w, "a", "new", 3);
    exchange(w, fd, "TTL a\r\n", ":100\r\n");
}

CONVERSATION(an_edit_keeps_the_time_to_live) {
    put(w, "a", "1", 1);
    find(w, "a")->expiry_ms = 5;
    exchange(w, fd, "INCRBYFLOAT a 1\r\nSETRANGE a 3 x\r\n", "$1\r\n2\r\n:4\r\n");
    CHECK_EQ(find(w, "a")->expiry_ms, 5);
    is_value(w, "a", "2\0\0x", 4);
    exchange(w, fd, "GETRANGE a -1 -1\r\nGETRANGE a 0 0\r\nGETEX b PERSIST\r\nGETEX b EX x\r\n",
             "$1\r\nx\r\n$1\r\n2\r\n$-1\r\n$-1\r\n");
    exchange(w, fd, "SET a 1 EX 100\r\nGETEX a\r\nTTL a\r\nGETEX a PERSIST\r\nTTL a\r\nGETEX a EXAT 1\r\nEXISTS a\r\n",
             "+OK\r\n$1\r\n1\r\n:100\r\n$1\r\n1\r\n:-1\r\n$1\r\n1\r\n:0\r\n");
}

/* What SETRANGE will make is counted before anything is read. */
CONVERSATION(values_that_are_made_are_bounded) {
    enum { EDITS = 64, PLACE = 300000 };
    size_t most = 0;
    for (int i = 0; i < EDITS; i++) {
        char text[64];
        snprintf(text, sizeof text, "SETRANGE k%d %d x\r\n", i, PLACE);
        say(fd, text);
    }
    char room[64];
    resp_connection *c = NULL;
    size_t got = 0;
    for (uint64_t begun = fkv_now_ns(); got < EDITS * 9; CHECK(check_in_time(begun))) {
        size_t made = 0;
        turns(w, 1);
        c = LIST_FIRST(&w->server->connections, resp_connection, link);
        if (!c) continue;
        for (const fkv_list *l = c->jobs.next; l != &c->jobs; l = l->next)
            made += LIST_OF(l, resp_job, link)->old_bytes;
        if (made > most) most = made;
        CHECK(made <= OUT_MAX + PLACE + 100 && c->held <= OUT_MAX + PLACE + 100);
        if (w->calls) answer(w, (uint32_t)(next(w) % w->calls));
        ssize_t r = recv(fd, room, sizeof room, 0);
        if (r > 0) got += (size_t)r;
    }
    CHECK(most > PLACE && c->held == 0);
}

CONVERSATION(what_is_asked_of_an_entry_is_answered) {
    put(w, "abc", "12", 2);
    exchange(w, fd, "MEMORY USAGE abc SAMPLES 0\r\nOBJECT ENCODING abc\r\nOBJECT FREQ x\r\nWAIT 1 0\r\n",
             ":75\r\n$3\r\nint\r\n$-1\r\n:0\r\n");
}

int main(int argc, char **argv) {
    RUN(an_edit_is_one_step);
    RUN(an_edit_keeps_the_time_to_live);
    RUN(what_is_asked_of_an_entry_is_answered);
    RUN(values_that_are_made_are_bounded);
    return check_end(argc, argv);
}
