/* resp_walk_test.c: commands that look through all keys, and their patterns. */
#include "../../resp/glob.h"
#include "resp_rig.h"

static bool matches(const char *pattern, const char *text) {
    return resp_glob_matches((const uint8_t *)pattern, (uint32_t)strlen(pattern), (const uint8_t *)text,
                             (uint32_t)strlen(text));
}

/* What redis-server 7 answers to KEYS, with this key alone. */
TEST(patterns_match_as_in_redis) {
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        { "*", "a", true },
        { "", "a", false },
        { "a", "a", true },
        { "a", "ab", false },
        { "a?", "ab", true },
        { "a?", "a", false },
        { "a*", "a", true },
        { "*b*d", "abcd", true },
        { "*b*d", "abcde", false },
        { "**a**", "bab", true },
        { "[ab]c", "bc", true },
        { "[ab]c", "cc", false },
        { "[a-c]", "b", true },
        { "[c-a]", "b", true },
        { "[^a]", "b", true },
        { "[^a]", "a", false },
        { "[a-c]x", "bx", true },
        { "\\*", "*", true },
        { "\\*", "a", false },
        { "a\\", "a\\", true },
        { "[\\]]", "]", true },
        { "[]a]", "a", false },
        { "[", "[", false },
        { "[a", "a", true },
        { "[^", "a", true },
        { "[a-", "-", true },
        { "[a-]", "b", false },
        { "[a-]", "_", true },
        { "[a-]", "]", true },
        { "[\\a-c]", "b", false },
        { "[\\a-c]", "-", true },
        { "*[0-9]", "k12", true },
        { "a*b?c*", "aXXbYcZ", true },
        { "*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool got = matches(rows[i].pattern, rows[i].text);
        if (got != rows[i].matches) printf("%s %s: %d\n", rows[i].pattern, rows[i].text, got);
        CHECK(got == rows[i].matches);
    }
}

TEST(a_pattern_begins_with_bytes_that_its_keys_begin_with) {
    static const char *const rows[][2] = { { "user:*", "user:" }, { "a\\*b?", "a*b" }, { "*a", "" }, { "a[b]", "a" },
                                           { "plain", "plain" },  { "a\\", "a\\" },    { "", "" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t to[16];
        uint32_t n = resp_glob_prefix((const uint8_t *)rows[i][0], (uint32_t)strlen(rows[i][0]), to, sizeof to);
        CHECK(n == strlen(rows[i][1]) && memcmp(to, rows[i][1], n) == 0);
    }
    uint8_t two[2];
    CHECK_EQ(resp_glob_prefix((const uint8_t *)"abc*", 4, two, 2), 2);
}

static void fill(world *w, int n) {
    char key[16];
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "k%03d", i);
        put(w, key, "v", 1);
    }
}

/* Everything up to the answer to a marker. */
static char *asked_for(world *w, int fd, const char *said) {
    static char text[1 << 16];
    size_t got = 0;
    say(fd, said);
    say(fd, "ECHO marker\r\n");
    memset(text, 0, sizeof text);
    for (uint64_t begun = fkv_now_ns(); !strstr(text, "marker\r\n"); CHECK(check_in_time(begun))) {
        turns(w, 1);
        if (w->calls) answer(w, (uint32_t)(next(w) % w->calls));
        ssize_t r = recv(fd, text + got, sizeof text - 1 - got, 0);
        if (r > 0) got += (size_t)r;
    }
    return text;
}

CONVERSATION(a_scan_goes_on_from_its_cursor_and_leaves_nothing_out) {
    enum { KEYS = 150 };
    bool seen[KEYS] = { false };
    char cursor[32] = "0", said[64];
    int pages = 0;
    fill(w, KEYS);
    do {
        snprintf(said, sizeof said, "SCAN %s MATCH k* COUNT 7\r\n", cursor);
        const char *at = asked_for(w, fd, said);
        CHECK_EQ(sscanf(at, "*2 $%*d %31s", cursor), 1);
        for (int k; (at = strstr(at, "\r\nk")); at += 3) {
            CHECK_EQ(sscanf(at, "\r\nk%d", &k), 1);
            CHECK(k >= 0 && k < KEYS);
            seen[k] = true;
        }
        pages++;
    } while (strcmp(cursor, "0") != 0);
    CHECK(pages > KEYS / (7 + PAGE_ENTRIES) && pages <= KEYS / 7 + 1);
    for (int i = 0; i < KEYS; i++) CHECK(seen[i]);
}

CONVERSATION(keys_are_counted_and_listed_in_all_shards) {
    exchange(w, fd, "DBSIZE\r\nKEYS *\r\nRANDOMKEY\r\nSCAN 0\r\n", ":0\r\n*0\r\n$-1\r\n*2\r\n$1\r\n0\r\n*0\r\n");
    fill(w, 100);
    exchange(w, fd, "DBSIZE\r\nKEYS k042\r\nKEYS k?4[2]\r\nKEYS K*\r\nSCAN 0 TYPE list\r\nSCAN 99999999999\r\n",
             ":100\r\n*1\r\n$4\r\nk042\r\n*1\r\n$4\r\nk042\r\n*0\r\n*2\r\n$1\r\n0\r\n*0\r\n*2\r\n$1\r\n0\r\n*0\r\n");
    CHECK(strncmp(asked_for(w, fd, "KEYS *\r\n"), "*100\r\n$4\r\nk", 11) == 0);
    exchange(w, fd, "SCAN x\r\nSCAN 0 COUNT 0\r\nSCAN 0 MATCH\r\n",
             "-ERR invalid cursor\r\n-ERR syntax error\r\n-ERR syntax error\r\n");
}

/* From wherever it begins, also behind the only key's place. */
CONVERSATION(a_random_key_is_found_if_there_is_one) {
    put(w, "only", "v", 1);
    for (int i = 0; i < 40; i++) exchange(w, fd, "RANDOMKEY\r\n", "$4\r\nonly\r\n");
}

CONVERSATION(a_walk_sees_what_came_before_it_and_nothing_behind_it) {
    fill(w, 20);
    for (int i = 0; i < 20; i++)
        exchange(w, fd, "SET x 1\r\nDBSIZE\r\nDEL x\r\nPING\r\nDBSIZE\r\n", "+OK\r\n:21\r\n:1\r\n+PONG\r\n:20\r\n");
}

/* Another connection is answered while one walks. */
TEST(a_walk_holds_up_its_own_connection_alone) {
    world *w = up(10);
    int one = dial(w), two = dial(w);
    fill(w, 100);
    say(one, "KEYS *\r\nPING\r\n");
    until_calls(w, 1);
    exchange(w, two, "PING\r\n", "+PONG\r\n");
    w->now = true;
    say(two, "GET k001\r\n");
    hears(w, two, "$1\r\nv\r\n");
    CHECK_EQ(w->calls, 1);
    hears_nothing(w, one);
    gone(w, one); /* with a page under way */
    answer(w, 0);
    turns(w, 3);
    CHECK_EQ(w->calls, 0);
    close(two);
    down(w);
}

/* The store takes one call at a time, and often that of another connection. */
TEST(a_flush_deletes_every_key_that_there_was) {
    world *w = up(10);
    int one = dial(w), two = dial(w);
    exchange(w, one, "SELECT 3\r\n", "+OK\r\n");
    for (int i = 0; i < 10; i++) {
        fill(w, 100);
        w->room = 1;
        for (int k = 0; k < 40; k++) say(two, "GET a\r\n");
        until_calls(w, 1);
        exchange(w, one, i % 2 ? "FLUSHALL ASYNC\r\nDBSIZE\r\n" : "FLUSHDB\r\nDBSIZE\r\n", "+OK\r\n:0\r\n");
        for (int k = 0; k < 40; k++) hears_while(w, two, "$-1\r\n", true);
        for (int k = 0; k < ENTRIES; k++) CHECK(!w->entry[k].value);
    }
    exchange(
        w, one, "FLUSHDB NOW\r\nFUNCTION FLUSH\r\nMSETNX a 1\r\nDBSIZE\r\n",
        "-ERR syntax error\r\n+OK\r\n-ERR MSETNX sets all of its keys or none, which farkv cannot promise of several "
        "keys: use SETNX or SET NX for each, see docs/gateway.md\r\n:0\r\n");
    close(one);
    close(two);
    down(w);
}

/* Pages of long keys, more of them than KEYS may answer. */
CONVERSATION(keys_that_are_listed_are_bounded) {
    enum { PAGE_KEYS = 256, PAGES = 160 };
    static uint8_t page[PAGE_KEYS * (sizeof(fkv_scan_entry) + FKV_KEY_MAX)];
    fkv_scan_entry e = { .key_bytes = FKV_KEY_MAX };
    char answered[256];
    size_t got = 0, most = 0;
    for (uint32_t at = 0; at < sizeof page; at += (uint32_t)sizeof e + FKV_KEY_MAX) memcpy(page + at, &e, sizeof e);
    say(fd, "KEYS *\r\n");
    for (uint64_t begun = fkv_now_ns(), n = 0; !got; CHECK(check_in_time(begun))) {
        turns(w, 1);
        const resp_connection *c = LIST_FIRST(&w->server->connections, resp_connection, link);
        if (c && c->held > most) most = c->held;
        if (w->calls) {
            lookup_result r = { .status = FKV_OK, .version = ++n < PAGES, .value_bytes = sizeof page };
            resp_call_ended(w->call[--w->calls].call, &r, page);
        }
        ssize_t r = recv(fd, answered, sizeof answered - 1, 0);
        if (r > 0) got += (size_t)r;
    }
    answered[got] = '\0';
    CHECK(strstr(answered, "-ERR KEYS would answer more than 16777216 bytes") == answered);
    CHECK(most > 16 << 20 && most < 35 << 20);
}

int main(int argc, char **argv) {
    RUN(patterns_match_as_in_redis);
    RUN(a_pattern_begins_with_bytes_that_its_keys_begin_with);
    RUN(a_scan_goes_on_from_its_cursor_and_leaves_nothing_out);
    RUN(keys_are_counted_and_listed_in_all_shards);
    RUN(a_random_key_is_found_if_there_is_one);
    RUN(a_walk_sees_what_came_before_it_and_nothing_behind_it);
    RUN(a_walk_holds_up_its_own_connection_alone);
    RUN(a_flush_deletes_every_key_that_there_was);
    RUN(keys_that_are_listed_are_bounded);
    return check_end(argc, argv);
}
