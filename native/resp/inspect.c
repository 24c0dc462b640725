/* inspect.c: OBJECT and MEMORY: how an entry is stored. A redis-server's encodings are told as it would choose them for the
 * value if that were SET now, since programs look at them; there are none here. */
#include "../base/integer.h"
#include "../wire/fields.h"
#include "internal.h"

enum { EMBEDDED_MAX = 44 };                        /* bytes that a redis-server keeps beside the entry */
enum { COMPACT_FIELDS = 512, COMPACT_BYTES = 64 }; /* of a hash that it keeps in one piece */
enum { ENTRY_BYTES = 70 };                         /* beyond key and value: see README.md */
enum { KEY_ARGUMENT = 2 };

static void bad_subcommand(resp_connection *c, const char *command) {
    resp_bytes what = argument(c, 1);
    resp_error(connection_answer(c), "ERR unknown subcommand '%.*s'. Try %s HELP.", what.n < 128 ? (int)what.n : 128,
               (const char *)what.bytes, command);
}

/* Of a hash that was never larger. */
static void hash_encoding(const resp_job *j, resp_out *o) {
    const resp_call *k = &j->call[0];
    uint32_t count, at = 0;
    fkv_field f;
    if (!hash_fields(j, o, &count)) return;
    bool compact = count <= COMPACT_FIELDS;
    while (compact && fkv_next_field(k->value, k->result.value_bytes, &at, &f))
        compact = f.name_bytes <= COMPACT_BYTES && f.value_bytes <= COMPACT_BYTES;
    resp_text(o, compact ? "listpack" : "hashtable");
}

static void encoding_finish(resp_job *j, resp_out *o) {
    const resp_call *k = &j->call[0];
    uint32_t n = k->result.value_bytes;
    int64_t number;
    if (k->result.status == FKV_OK && k->result.codec == FKV_CODEC_FIELDS)
        hash_encoding(j, o);
    else if (answered_bad(o, &k->result))
        return;
    else if (k->result.status == FKV_NOT_FOUND)
        resp_null(o, j->protocol);
    else if (n <= EMBEDDED_MAX)
        resp_text(o, k->value && fkv_read_integer(k->value, n, &number) ? "int" : "embstr");
    else
        resp_text(o, "raw");
}
static const resp_work encoding_work = { .wants_value = true, .start = start_read, .finish = encoding_finish };

static void freq_finish(resp_job *j, resp_out *o) {
    fkv_status s = j->call[0].result.status;
    if (s == FKV_NOT_FOUND)
        resp_null(o, j->protocol);
    else if (s != FKV_OK)
        answer_failure(o, s);
    else
        resp_error(o,
                   "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when "
                   "switching between policies at runtime LRU and LFU data will take some time to adjust.");
}
static const resp_work freq_work = { .start = start_read, .finish = freq_finish };

void object_command(resp_connection *c) {
    bool encoding = is_word(argument(c, 1), "encoding"), freq = is_word(argument(c, 1), "freq");
    if (!encoding && !freq)
        bad_subcommand(c, "OBJECT");
    else if (c->parser.count != 3)
        wrong_arguments(c, encoding ? "object|encoding" : "object|freq");
    else
        job_new(c, encoding ? &encoding_work : &freq_work, 1, KEY_ARGUMENT, 1);
}

static void usage_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (r->status == FKV_NOT_FOUND)
        resp_null(o, j->protocol);
    else if (r->status != FKV_OK)
        answer_failure(o, r->status);
    else
        resp_integer(o, ENTRY_BYTES + j->from + r->value_bytes);
}
static const resp_work usage_work = { .start = start_read, .finish = usage_finish };

/* SAMPLES is of values of many elements; here it changes nothing. */
static bool samples_are_good(resp_connection *c) {
    int64_t samples;
    for (uint32_t i = KEY_ARGUMENT + 1; i < c->parser.count; i += 2) {
        bool named = is_word(argument(c, i), "samples") && i + 1 < c->parser.count;
        if (named && !integer_argument(c, i + 1, &samples)) return false;
        if (named && samples >= 0) continue;
        resp_error(connection_answer(c), "ERR syntax error");
        return false;
    }
    return true;
}

void memory_command(resp_connection *c) {
    if (!is_word(argument(c, 1), "usage")) {
        bad_subcommand(c, "MEMORY");
    } else if (c->parser.count < 3) {
        wrong_arguments(c, "memory|usage");
    } else if (samples_are_good(c)) {
        uint32_t key_bytes = argument(c, KEY_ARGUMENT).n;
        resp_job *j = job_new(c, &usage_work, 1, KEY_ARGUMENT, 1);
        if (j) j->from = key_bytes;
    }
}
