/* resp_hash_test.c: hashes that are read, and what is refused before an owner is asked. */
#include "../fields_text.h"
#include "resp_rig.h"

static void put_hash(world *w, const char *key, const char *text) {
    uint8_t fields[1024];
    put(w, key, fields, fields_of(text, fields));
    find(w, key)->codec = FKV_CODEC_FIELDS;
}
CONVERSATION(fields_are_read_one_by_one_and_all_together) {
    put_hash(w, "h", "a=1 b= c=three");
    exchange(w, fd, "HGET h a\r\nHGET h b\r\nHGET h x\r\nHGET none a\r\n", "$1\r\n1\r\n$0\r\n\r\n$-1\r\n$-1\r\n");
    exchange(w, fd, "HMGET h c x a c\r\nHMGET none a\r\n",
             "*4\r\n$5\r\nthree\r\n$-1\r\n$1\r\n1\r\n$5\r\nthree\r\n*1\r\n$-1\r\n");
    exchange(w, fd, "HLEN h\r\nHLEN none\r\nHEXISTS h b\r\nHEXISTS h x\r\nHSTRLEN h c\r\nHSTRLEN h x\r\n",
             ":3\r\n:0\r\n:1\r\n:0\r\n:5\r\n:0\r\n");
    exchange(w, fd, "HKEYS h\r\nHVALS h\r\n",
             "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n*3\r\n$1\r\n1\r\n$0\r\n\r\n$5\r\nthree\r\n");
    exchange(w, fd, "HGETALL h\r\nHGETALL none\r\n",
             "*6\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$0\r\n\r\n$1\r\nc\r\n$5\r\nthree\r\n*0\r\n");
}

CONVERSATION(all_fields_are_a_map_in_resp3) {
    put_hash(w, "h", "a=1");
    say(fd, "HELLO 3\r\n");
    turns(w, 5);
    char text[1024];
    CHECK(recv(fd, text, sizeof text, 0) > 0);
    exchange(w, fd, "HGETALL h\r\nHKEYS h\r\nHGET h x\r\nHGETALL none\r\n",
             "%1\r\n$1\r\na\r\n$1\r\n1\r\n*1\r\n$1\r\na\r\n_\r\n%0\r\n");
}

#define WRONG "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

CONVERSATION(strings_are_no_hashes_and_hashes_no_strings) {
    put_hash(w, "s", "a=1");
    find(w, "s")->codec = 0; /* a string with the same bytes */
    put_hash(w, "h", "a=1");
    exchange(w, fd, "HGET s a\r\nHMGET s a\r\nHGETALL s\r\nHLEN s\r\nHEXISTS s a\r\n", WRONG WRONG WRONG WRONG WRONG);
    exchange(w, fd, "GET h\r\nSTRLEN h\r\nGETDEL h\r\nSETRANGE h 0 x\r\nINCRBYFLOAT h 1\r\nSET h x GET\r\n",
             WRONG WRONG WRONG WRONG WRONG WRONG);
    exchange(w, fd, "TYPE s\r\nTYPE h\r\nOBJECT ENCODING h\r\n", "+string\r\n+hash\r\n$8\r\nlistpack\r\n");
    exchange(w, fd, "SET h x\r\nTYPE h\r\nGET h\r\n", "+OK\r\n+string\r\n$1\r\nx\r\n");
}

/* An entry that says that it is a hash, and is none. */
CONVERSATION(damaged_hashes_are_answered_and_not_believed) {
    static const char *const commands[] = { "HGET h a", "HMGET h a b", "HGETALL h",
                                            "HLEN h",   "HEXISTS h a", "HSTRLEN h a" };
    uint8_t fields[64];
    uint32_t n = fields_of("a=1 b=2", fields), huge = UINT32_MAX;
    for (uint32_t cut = 0; cut <= 2 * n; cut++) {
        if (cut == 0 || cut == n / 2) continue; /* whole fields */
        if (cut >= n) memcpy(fields + (cut - n) / 4 % 2 * 4, &huge, sizeof huge);
        put(w, "h", fields, cut < n ? cut : n);
        find(w, "h")->codec = FKV_CODEC_FIELDS;
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
            char text[64];
            snprintf(text, sizeof text, "%s\r\n", commands[i]);
            exchange(w, fd, text, WRONG);
        }
        fields_of("a=1 b=2", fields);
    }
}

CONVERSATION(fields_of_a_command_are_bounded) {
    enum { LENGTH = FKV_APPEND_MAX - FKV_FIELD_HEAD };
    char *text = calloc(1, LENGTH + 64);
    CHECK(text);
    size_t at = (size_t)sprintf(text, "HSET h a ");
    memset(text + at, 'v', LENGTH);
    strcpy(text + at + LENGTH, "\r\n");
    exchange(w, fd, text, "-ERR fields of 8193 bytes: at most 8192 at a time, see docs/gateway.md\r\n");
    memcpy(text, "HMGET h ", 8);
    memset(text + 8, 'v', LENGTH + 1);
    strcpy(text + 8 + LENGTH + 1, "\r\n");
    exchange(w, fd, text, "-ERR fields of 8193 bytes: at most 8192 at a time, see docs/gateway.md\r\n");
    free(text);
    exchange(
        w, fd, "HSET h a 1 b\r\nHMSET h a 1 b\r\nHSETNX h a\r\nHGET h\r\nHDEL h\r\n",
        "-ERR wrong number of arguments for 'hset' command\r\n-ERR wrong number of arguments for 'hmset' command\r\n"
        "-ERR wrong number of arguments for 'hsetnx' command\r\n-ERR wrong number of arguments for 'hget' command\r\n"
        "-ERR wrong number of arguments for 'hdel' command\r\n");
}

/* One name again and again, of a large field. */
CONVERSATION(the_answer_to_many_names_is_bounded) {
    enum { VALUE = 20000, TIMES = 840 };
    uint8_t *fields = malloc(VALUE + 64), *value = calloc(1, VALUE);
    char text[16 + 2 * TIMES] = "HMGET h";
    CHECK(fields && value);
    const fkv_field f = { .name = (const uint8_t *)"a", .value = value, .name_bytes = 1, .value_bytes = VALUE };
    put(w, "h", fields, (uint32_t)(fkv_put_field(fields, &f) - fields));
    find(w, "h")->codec = FKV_CODEC_FIELDS;
    for (int i = 0; i < TIMES; i++) strcat(text, " a");
    exchange(w, fd, strcat(text, "\r\n"), "-ERR HMGET would answer more than 16777216 bytes, see docs/gateway.md\r\n");
    free(fields);
    free(value);
}

CONVERSATION(a_listing_tells_hashes_from_strings) {
    put_hash(w, "h", "a=1");
    put(w, "s", "x", 1);
    exchange(w, fd, "SCAN 0 COUNT 1000 TYPE hash\r\nSCAN 0 COUNT 1000 TYPE string\r\nSCAN 0 COUNT 1000 TYPE list\r\n",
             "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nh\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\ns\r\n*2\r\n$1\r\n0\r\n*0\r\n");
}

int main(int argc, char **argv) {
    RUN(fields_are_read_one_by_one_and_all_together);
    RUN(all_fields_are_a_map_in_resp3);
    RUN(strings_are_no_hashes_and_hashes_no_strings);
    RUN(damaged_hashes_are_answered_and_not_believed);
    RUN(fields_of_a_command_are_bounded);
    RUN(the_answer_to_many_names_is_bounded);
    RUN(a_listing_tells_hashes_from_strings);
    return check_end(argc, argv);
}
