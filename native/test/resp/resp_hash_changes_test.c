/* resp_hash_changes_test.c: hashes that are changed: what the gateway asks of an owner, which makes it as a server's. */
#include "../../serve/derive.h"
#include "../../dataplane/worker.h"
#include "../fields_text.h"
#include "resp_rig.h"

#define WRONG "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

/* As an owner makes it. */
static lookup_result fields_changed(world *w, const asked *a) {
    entry *e = find(w, a->key);
    worker by = { 0 };
    op o = { .worker = &by, .body = a->value, .request = { .op = (uint8_t)a->a.op, .codec = a->a.codec } };
    derived d;
    o.request.expected = a->a.expected;
    o.request.value_bytes = a->a.value_bytes;
    table_entry present = { 0 };
    if (e) present = (table_entry){ .value = e->value, .value_bytes = e->bytes, .codec = e->codec };
    fkv_status s = derive(&o, e ? &present : NULL, &d);
    if (s == FKV_OK && d.removes) {
        free(e->value);
        *e = (entry){ 0 };
    } else if (s == FKV_OK) {
        put(w, a->key, d.tail, d.tail_bytes);
        find(w, a->key)->codec = d.codec;
    }
    free(by.made);
    return (lookup_result){ .status = s, .expiry_ms = d.answer };
}

static void hash_is(world *w, const char *key, const char *text) {
    const entry *e = find(w, key);
    CHECK(e && e->codec == FKV_CODEC_FIELDS);
    fields_are(e->value, e->bytes, text);
}

CONVERSATION(fields_are_set_deleted_and_added_to_by_their_owner) {
    w->fields = fields_changed;
    exchange(w, fd, "HSET h a 1 b 2\r\nHSET h a 3 c 4\r\nHMSET h d 5\r\nHSETNX h a 6\r\nHSETNX h e 7\r\n",
             ":2\r\n:1\r\n+OK\r\n:0\r\n:1\r\n");
    hash_is(w, "h", "a=3 b=2 c=4 d=5 e=7");
    exchange(w, fd, "HINCRBY h a 39\r\nHINCRBY h n -5\r\nHDEL h b x c\r\nHDEL h b\r\n", ":42\r\n:-5\r\n:2\r\n:0\r\n");
    hash_is(w, "h", "a=42 d=5 e=7 n=-5");
    exchange(w, fd, "HDEL h a d e n\r\nEXISTS h\r\nTYPE h\r\n", ":4\r\n:0\r\n+none\r\n");
    CHECK(!find(w, "h"));
}

CONVERSATION(a_change_of_fields_is_one_call_and_reads_nothing) {
    w->fields = fields_changed;
    say(fd, "HSET h a 1\r\n");
    until_calls(w, 1);
    CHECK(!w->call[0].is_get && w->call[0].a.op == FKV_OP_SET_FIELDS && w->call[0].a.codec == FKV_CODEC_FIELDS);
    fields_are(w->call[0].value, w->call[0].a.value_bytes, "a=1");
    answer(w, 0);
    hears(w, fd, ":1\r\n");
    say(fd, "HINCRBY h a 2\r\n");
    until_calls(w, 1);
    CHECK(w->call[0].a.op == FKV_OP_INCREMENT_FIELD && w->call[0].a.expected == 2);
    answer(w, 0);
    hears(w, fd, ":3\r\n");
}

CONVERSATION(what_is_beyond_a_bound_is_said) {
    w->fields = fields_changed;
    exchange(w, fd, "HSET h a text\r\n", ":1\r\n");
    while (find(w, "h")->bytes < FKV_FIELDS_MAX - FKV_APPEND_MAX) { /* until one more does not fit */
        entry *e = find(w, "h");
        uint8_t *more = calloc(1, FKV_FIELDS_MAX), *zeros = calloc(1, FKV_FIELDS_MAX);
        fkv_field f = { .name = (const uint8_t *)"x", .name_bytes = 1, .value = zeros };
        CHECK(more && zeros);
        memcpy(more, e->value, e->bytes);
        f.value_bytes = FKV_FIELDS_MAX - FKV_FIELD_HEAD - 1 - e->bytes;
        uint32_t n = (uint32_t)(fkv_put_field(more + e->bytes, &f) - more);
        set_value(w, e, more, n);
        free(zeros);
        free(more);
    }
    exchange(w, fd, "HSET h y 1\r\nHLEN h\r\nHINCRBY h a 1\r\nHINCRBY h a x\r\n",
             "-ERR a hash has at most 1048576 bytes, see docs/gateway.md\r\n:2\r\n-ERR hash value is not an integer\r\n"
             "-ERR value is not an integer or out of range\r\n");
    exchange(w, fd, "HSET s a 1\r\nGET s\r\nDEL s\r\nSET s x\r\nHSET s a 1\r\nHDEL s a\r\nHINCRBY s a 1\r\n",
             ":1\r\n" WRONG ":1\r\n+OK\r\n" WRONG WRONG WRONG);
}

int main(int argc, char **argv) {
    RUN(fields_are_set_deleted_and_added_to_by_their_owner);
    RUN(a_change_of_fields_is_one_call_and_reads_nothing);
    RUN(what_is_beyond_a_bound_is_said);
    return check_end(argc, argv);
}
