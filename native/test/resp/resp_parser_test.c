/* resp_parser_test.c: what is read of a stream of commands, in whatever pieces it comes, and what is refused as
 * redis-server 7 refuses it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../resp/parser.h"
#include "../check.h"

enum { LOG = 1 << 16 };

/* What was read, as text: each argument with its length, a command a line. */
typedef struct seen {
    char text[LOG];
    size_t n;
    resp_parsed last;
} seen;

static void note(seen *s, const resp_parser *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t bytes = p->argument[i].bytes;
        s->n += (size_t)snprintf(s->text + s->n, LOG - s->n, "%u=", bytes);
        CHECK(s->n + bytes + 2 < LOG);
        memcpy(s->text + s->n, resp_parser_bytes(p, i), bytes);
        s->n += bytes;
        s->text[s->n++] = i + 1 < p->count ? ' ' : '\n';
    }
}

static bool take(resp_parser *p, seen *s) {
    while ((s->last = resp_parser_next(p)) == RESP_COMMAND) note(s, p);
    return s->last == RESP_MORE;
}

/* Writes so many bytes, in no more pieces than the parser has room for. */
static bool feed(resp_parser *p, seen *s, const char *bytes, size_t n) {
    while (n) {
        size_t room;
        uint8_t *to = resp_parser_room(p, &room);
        CHECK(to && room);
        size_t part = n < room ? n : room;
        memcpy(to, bytes, part);
        resp_parser_filled(p, part);
        bytes += part;
        n -= part;
        if (!take(p, s)) return false;
    }
    return true;
}

static seen *whole(resp_parser *p, const char *bytes, size_t n) {
    seen *s = calloc(1, sizeof *s);
    CHECK(s);
    resp_parser_init(p);
    feed(p, s, bytes, n);
    s->text[s->n] = '\0';
    return s;
}

static seen *whole_text(resp_parser *p, const char *text) { return whole(p, text, strlen(text)); }
static bool feed_text(resp_parser *p, seen *s, const char *text) { return feed(p, s, text, strlen(text)); }

static void reads(const char *bytes, size_t n, const char *expected) {
    resp_parser p;
    seen *s = whole(&p, bytes, n);
    if (strcmp(s->text, expected) != 0) printf("read:\n%s", s->text);
    CHECK(strcmp(s->text, expected) == 0);
    CHECK_EQ(s->last, RESP_MORE);
    free(s);
    resp_parser_free(&p);
}
#define READS(bytes, expected) reads(bytes, sizeof(bytes) - 1, expected)

static void refuses(const char *bytes, const char *why) {
    resp_parser p;
    seen *s = whole(&p, bytes, strlen(bytes));
    CHECK_EQ(s->last, RESP_BAD);
    if (strcmp(p.error, why) != 0) printf("said: %s\n", p.error);
    CHECK(strcmp(p.error, why) == 0);
    free(s);
    resp_parser_free(&p);
}

TEST(arrays_of_bulk_strings_are_commands_whatever_their_bytes) {
    READS("*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n", "4=PING\n3=GET 3=a\r\n\n");
    READS("*2\r\n$0\r\n\r\n$1\r\n*\r\n", "0= 1=*\n");
    READS("*0\r\n*-1\r\n*1\r\n$1\r\nx\r\n", "1=x\n");
    READS("*1\r\n$1\r\nxAB*1\r\n$1\r\ny\r\n", "1=x\n1=y\n"); /* what ends a bulk string is not looked at */
}

TEST(inline_commands_are_words_with_quotes) {
    READS("PING\r\nget  key \n\r\n\n", "4=PING\n3=get 3=key\n");
    READS("set \"a b\" 'c d'\r\n", "3=set 3=a b 3=c d\n");
    READS("set \"\\x41\\n\\\"\" 'it\\'s' \"\"\r\n", "3=set 3=A\n\" 4=it's 0=\n");
    refuses("get \"a\r\n", "Protocol error: unbalanced quotes in request");
    refuses("get 'a'b\r\n", "Protocol error: unbalanced quotes in request");
}

TEST(what_is_no_command_is_refused_with_the_words_of_redis) {
    refuses("*a\r\n", "Protocol error: invalid multibulk length");
    refuses("*1048577\r\n", "Protocol error: invalid multibulk length");
    refuses("*01\r\n", "Protocol error: invalid multibulk length");
    refuses("*1\r\n:1\r\n", "Protocol error: expected '$', got ':'");
    refuses("*1\r\n$-1\r\n", "Protocol error: invalid bulk length");
    refuses("*1\r\n$67108865\r\n", "Protocol error: invalid bulk length");
    refuses("*1\r\n$x\r\n", "Protocol error: invalid bulk length");
}

static void refuses_a_long_line(const char *begin, const char *why) {
    size_t n = RESP_LINE_MAX + 10;
    char *bytes = calloc(1, n + 1);
    CHECK(bytes);
    memset(bytes, '1', n);
    memcpy(bytes, begin, strlen(begin));
    refuses(bytes, why);
    free(bytes);
}

TEST(lines_without_an_end_are_bounded) {
    refuses_a_long_line("PING ", "Protocol error: too big inline request");
    refuses_a_long_line("*", "Protocol error: too big mbulk count string");
    refuses_a_long_line("*1\r\n$", "Protocol error: too big bulk count string");
}

/* ---- pieces ---- */

static uint64_t next(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    return *x ^= *x << 17;
}

/* A pipeline of both kinds; returns its bytes. */
static size_t pipeline(uint64_t *x, char *out, size_t room, int commands) {
    size_t n = 0;
    for (int i = 0; i < commands; i++) {
        int count = (int)(next(x) % 5);
        bool inlined = next(x) % 4 == 0;
        if (!inlined) n += (size_t)snprintf(out + n, room - n, "*%d\r\n", count);
        for (int k = 0; k < count; k++) {
            int bytes = (int)(next(x) % (next(x) % 8 ? 12 : 300));
            if (!inlined) n += (size_t)snprintf(out + n, room - n, "$%d\r\n", bytes);
            if (inlined && k) out[n++] = ' ';
            for (int b = 0; b < bytes; b++) out[n++] = inlined ? (char)('a' + next(x) % 26) : (char)(next(x) % 256);
            if (!inlined) n += (size_t)snprintf(out + n, room - n, "\r\n");
        }
        if (inlined) n += (size_t)snprintf(out + n, room - n, next(x) % 2 ? "\n" : "\r\n");
        CHECK(n + 2048 < room);
    }
    return n;
}

/* Like `whole`, in pieces whose ends `cut` says. */
static void same_in_pieces(const char *bytes, size_t n, const seen *expected, size_t (*cut)(void *, size_t),
                           void *ctx) {
    resp_parser p;
    seen *s = calloc(1, sizeof *s);
    CHECK(s);
    resp_parser_init(&p);
    for (size_t at = 0; at < n;) {
        size_t part = cut(ctx, n - at);
        CHECK(feed(&p, s, bytes + at, part));
        at += part;
    }
    CHECK_EQ(s->n, expected->n);
    CHECK(memcmp(s->text, expected->text, s->n) == 0);
    free(s);
    resp_parser_free(&p);
}

static size_t in_two(void *ctx, size_t left) {
    size_t *first = ctx, part = *first && *first < left ? *first : left;
    *first = 0;
    return part;
}

static size_t at_random(void *ctx, size_t left) {
    uint64_t *x = ctx;
    size_t part = 1 + next(x) % (next(x) % 4 ? 7 : 400);
    return part < left ? part : left;
}

static size_t one_by_one(void *ctx, size_t left) {
    (void)ctx, (void)left;
    return 1;
}

TEST(every_way_to_cut_a_pipeline_gives_the_same_commands) {
    static char bytes[LOG];
    uint64_t x = check_seed() | 1;
    for (int round = 0; round < 20; round++) {
        resp_parser p;
        size_t n = pipeline(&x, bytes, sizeof bytes, 12);
        seen *s = whole(&p, bytes, n);
        CHECK_EQ(s->last, RESP_MORE);
        CHECK_EQ(p.from, p.to);
        for (size_t at = 1; at < n && round < 2; at++) {
            size_t first = at;
            same_in_pieces(bytes, n, s, in_two, &first);
        }
        for (int k = 0; k < 20; k++) same_in_pieces(bytes, n, s, at_random, &x);
        same_in_pieces(bytes, n, s, one_by_one, NULL);
        free(s);
        resp_parser_free(&p);
    }
}

TEST(memory_follows_what_came_and_not_what_was_announced) {
    resp_parser p;
    seen *s = whole_text(&p, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000000\r\nv");
    CHECK_EQ(s->last, RESP_MORE);
    CHECK(p.room <= 64 << 10);
    resp_parser_free(&p);
    free(s);
    s = whole_text(&p, "*1000000\r\n$1\r\na\r\n");
    CHECK_EQ(s->last, RESP_MORE);
    CHECK(p.argument_room <= 16 && p.room <= 64 << 10);
    resp_parser_free(&p);
    free(s);
}

TEST(a_command_beyond_the_bound_of_all_its_bytes_is_refused) {
    resp_parser p;
    seen *s = calloc(1, sizeof *s);
    char *megabyte = calloc(1, 1 << 20);
    CHECK(s && megabyte);
    resp_parser_init(&p);
    CHECK(feed_text(&p, s, "*3\r\n$60000000\r\n"));
    for (int left = 60000000; left > 0; left -= 1 << 20)
        CHECK(feed(&p, s, megabyte, left < 1 << 20 ? (size_t)left : 1 << 20));
    CHECK(p.room <= 60000000 + (64 << 10));
    CHECK(!feed_text(&p, s, "\r\n$60000000\r\n"));
    CHECK_EQ(s->last, RESP_BAD);
    CHECK(strcmp(p.error, "Protocol error: too big mbulk request") == 0);
    resp_parser_free(&p);
    free(megabyte);
    free(s);
}

int main(int argc, char **argv) {
    RUN(arrays_of_bulk_strings_are_commands_whatever_their_bytes);
    RUN(inline_commands_are_words_with_quotes);
    RUN(what_is_no_command_is_refused_with_the_words_of_redis);
    RUN(lines_without_an_end_are_bounded);
    RUN(every_way_to_cut_a_pipeline_gives_the_same_commands);
    RUN(memory_follows_what_came_and_not_what_was_announced);
    RUN(a_command_beyond_the_bound_of_all_its_bytes_is_refused);
    return check_end(argc, argv);
}
