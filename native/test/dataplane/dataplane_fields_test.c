/* dataplane_fields_test.c: changes of the fields of a hash, over each provider: SET_FIELDS, DELETE_FIELDS,
 * INCREMENT_FIELD. What a retry is answered by the next owner is in dataplane_derive_copies_test.c. */
#include "../../serve/derive.h"
#include "../../dataplane/worker.h"
#include "../fields_text.h"
#include "raw_client.h"

enum { HOUR = 3600000, LENGTH = 4000 };

static fab_provider provider;
static rig r;
static raw c;

static void up(void) {
    rig_init(&r, provider, NULL);
    r.config.wait_ms = RIG_WAIT_MS;
    rig_up(&r, RIG_SHARDS, 64 << 20);
    raw_up(&c, &r, 1);
}
static void down(void) {
    raw_down(&c);
    rig_down(&r);
}
static fkv_request request_of(fkv_op op, const char *text, int64_t expected, uint8_t *body) {
    fkv_request q = raw_request(&c, op, "h");
    q.codec = FKV_CODEC_FIELDS;
    q.expected = (uint64_t)expected;
    q.value_bytes = fields_of(text, body);
    return q;
}
static fkv_status ask(fkv_op op, const char *text, int64_t expected, int64_t *answer) {
    uint8_t body[FKV_APPEND_MAX];
    fkv_reply reply;
    fkv_request q = request_of(op, text, expected, body);
    fkv_status s = raw_ask(&c, &q, "h", body, q.value_bytes, &reply);
    *answer = (int64_t)reply.expiry_ms;
    return s;
}
static void answers(fkv_op op, const char *text, int64_t expected, fkv_status s, int64_t answer) {
    int64_t got;
    CHECK_EQ(ask(op, text, expected, &got), s);
    CHECK_EQ(got, answer);
}
static fkv_status put(const void *value, uint32_t bytes, uint8_t codec, uint64_t ttl_ms) {
    fkv_request q = raw_request(&c, FKV_OP_PUT, "h");
    q.codec = codec;
    q.expiry = ttl_ms;
    q.user_flags = 77;
    q.value_bytes = bytes;
    return raw_ask(&c, &q, "h", value, bytes, NULL);
}
static fkv_reply has(const char *text) {
    fkv_reply got;
    uint8_t *value = raw_get(&c, "h", &got);
    CHECK_EQ(got.status, FKV_OK);
    CHECK_EQ(got.codec, FKV_CODEC_FIELDS);
    fields_are(value, got.value_bytes, text);
    free(value);
    return got;
}
static bool is_there(void) {
    fkv_reply got;
    free(raw_get(&c, "h", &got));
    return got.status == FKV_OK;
}

TEST(fields_are_set_in_their_places_and_new_ones_behind_them) {
    up();
    answers(FKV_OP_SET_FIELDS, "a=1 b=two empty=", 0, FKV_OK, 3);
    has("a=1 b=two empty=");
    answers(FKV_OP_SET_FIELDS, "b=2 c=3", 0, FKV_OK, 1);
    has("a=1 b=2 empty= c=3");
    answers(FKV_OP_SET_FIELDS, "d=1 a=9 d=2 a=10", 0, FKV_OK, 1); /* of one named twice the last value */
    has("a=10 b=2 empty= c=3 d=2");
    answers(FKV_OP_SET_FIELDS, "=nameless", 0, FKV_OK, 1);
    answers(FKV_OP_SET_FIELDS, "new=1 c=4", 1, FKV_VERSION_MISMATCH, 0);
    has("a=10 b=2 empty= c=3 d=2 =nameless");
    answers(FKV_OP_SET_FIELDS, "new=1", 1, FKV_OK, 1);
    has("a=10 b=2 empty= c=3 d=2 =nameless new=1");
    down();
}

TEST(a_hash_whose_last_field_is_deleted_is_gone) {
    up();
    answers(FKV_OP_DELETE_FIELDS, "a", 0, FKV_NOT_FOUND, 0);
    answers(FKV_OP_SET_FIELDS, "a=1 b=2 c=3", 0, FKV_OK, 3);
    answers(FKV_OP_DELETE_FIELDS, "x y", 0, FKV_NOT_FOUND, 0);
    answers(FKV_OP_DELETE_FIELDS, "b x b", 0, FKV_OK, 1);
    has("a=1 c=3");
    answers(FKV_OP_DELETE_FIELDS, "c a", 0, FKV_OK, 2);
    CHECK(!is_there());
    dataplane_stats *s = rig_stats(&r);
    uint64_t entries = 0;
    for (uint32_t i = 0; i < s->shards; i++) entries += s->shard[i].table.entries;
    free(s);
    CHECK_EQ(entries, 0);
    answers(FKV_OP_SET_FIELDS, "b=1", 0, FKV_OK, 1);
    has("b=1");
    down();
}

TEST(a_field_is_added_to_if_it_is_a_number_and_the_sum_is_one) {
    up();
    answers(FKV_OP_INCREMENT_FIELD, "n", 5, FKV_OK, 5);
    answers(FKV_OP_SET_FIELDS, "text=x", 0, FKV_OK, 1);
    answers(FKV_OP_INCREMENT_FIELD, "n", -12, FKV_OK, -7);
    has("n=-7 text=x");
    answers(FKV_OP_INCREMENT_FIELD, "text", 1, FKV_NOT_INTEGER, 0);
    answers(FKV_OP_SET_FIELDS, "n=9223372036854775807", 0, FKV_OK, 0);
    answers(FKV_OP_INCREMENT_FIELD, "n", 1, FKV_NOT_INTEGER, 1);
    has("n=9223372036854775807 text=x");
    down();
}

TEST(a_hash_keeps_its_time_to_live_and_its_flags) {
    uint8_t value[64];
    up();
    CHECK_EQ(put(value, fields_of("a=1 b=2", value), FKV_CODEC_FIELDS, HOUR), FKV_OK);
    uint64_t expiry = has("a=1 b=2").expiry_ms;
    CHECK(expiry > 0);
    answers(FKV_OP_SET_FIELDS, "a=2 c=3", 0, FKV_OK, 1);
    answers(FKV_OP_DELETE_FIELDS, "b", 0, FKV_OK, 1);
    answers(FKV_OP_INCREMENT_FIELD, "c", 4, FKV_OK, 7);
    fkv_reply got = has("a=2 c=7");
    CHECK_EQ(got.expiry_ms, expiry);
    CHECK_EQ(got.user_flags, 77);
    answers(FKV_OP_DELETE_FIELDS, "a c", 0, FKV_OK, 2);
    answers(FKV_OP_SET_FIELDS, "a=1", 0, FKV_OK, 1);
    CHECK_EQ(has("a=1").expiry_ms, 0);
    down();
}

TEST(a_retry_is_answered_as_the_first_and_changes_nothing) {
    uint8_t set_body[256], delete_body[256], add_body[256];
    fkv_reply first, again;
    up();
    fkv_request set = request_of(FKV_OP_SET_FIELDS, "a=1 b=2", 0, set_body);
    CHECK_EQ(raw_ask(&c, &set, "h", set_body, set.value_bytes, &first), FKV_OK);
    fkv_request add = request_of(FKV_OP_INCREMENT_FIELD, "a", 5, add_body);
    CHECK_EQ(raw_ask(&c, &add, "h", add_body, add.value_bytes, NULL), FKV_OK);
    fkv_request take = request_of(FKV_OP_DELETE_FIELDS, "a b", 0, delete_body);
    CHECK_EQ(raw_ask(&c, &take, "h", delete_body, take.value_bytes, NULL), FKV_OK);
    CHECK(!is_there());
    set.flags = add.flags = take.flags = FKV_REQUEST_RETRY;
    set.id = c.next_id++;
    CHECK_EQ(raw_ask(&c, &set, "h", set_body, set.value_bytes, &again), FKV_OK);
    CHECK(again.expiry_ms == 2 && again.version == first.version);
    add.id = c.next_id++;
    CHECK_EQ(raw_ask(&c, &add, "h", add_body, add.value_bytes, &again), FKV_OK);
    CHECK_EQ(again.expiry_ms, 6);
    take.id = c.next_id++;
    CHECK_EQ(raw_ask(&c, &take, "h", delete_body, take.value_bytes, &again), FKV_OK);
    CHECK_EQ(again.expiry_ms, 2);
    CHECK(!is_there());
    down();
}

TEST(what_is_no_hash_is_left_as_it_is) {
    uint8_t value[256];
    static const fkv_op ops[] = { FKV_OP_SET_FIELDS, FKV_OP_DELETE_FIELDS, FKV_OP_INCREMENT_FIELD };
    up();
    for (size_t i = 0; i < 3; i++) {
        uint32_t n = fields_of("a=1 b=2", value), huge = UINT32_MAX;
        CHECK_EQ(put(value, n, 0, 0), FKV_OK); /* a string */
        answers(ops[i], "b", 0, FKV_WRONG_CODEC, 0);
        CHECK_EQ(put(value, n - 1, FKV_CODEC_FIELDS, 0), FKV_OK); /* cut */
        answers(ops[i], "a", 0, FKV_WRONG_CODEC, 0);
        CHECK_EQ(put(value, fields_of("a=1 b=2 a=1", value), FKV_CODEC_FIELDS, 0), FKV_OK); /* a name twice */
        answers(ops[i], "a", 0, FKV_WRONG_CODEC, 0);
        memcpy(value, &huge, sizeof huge); /* a name beyond the end */
        CHECK_EQ(put(value, n, FKV_CODEC_FIELDS, 0), FKV_OK);
        answers(ops[i], "a", 0, FKV_WRONG_CODEC, 0);
        uint8_t kept[256];
        fkv_reply got;
        uint8_t *there = raw_get(&c, "h", &got);
        memcpy(kept, value, n);
        CHECK(got.value_bytes == n && memcmp(there, kept, n) == 0);
        free(there);
    }
    fkv_request q = raw_request(&c, FKV_OP_DELETE, "h");
    CHECK_EQ(raw_ask(&c, &q, "h", NULL, 0, NULL), FKV_OK);
    answers(FKV_OP_SET_FIELDS, "a=1", 0, FKV_OK, 1);
    q = raw_request(&c, FKV_OP_INCREMENT, "h");
    CHECK_EQ(raw_ask(&c, &q, "h", NULL, 0, NULL), FKV_WRONG_CODEC);
    has("a=1");
    down();
}

/* Fields of so many bytes until it is full; what has no room is not set, and all else goes on. */
TEST(a_hash_does_not_grow_beyond_its_limit) {
    static uint8_t body[FKV_APPEND_MAX];
    static const uint8_t value[LENGTH];
    char name[16];
    uint32_t fields = 0, all = 0;
    fkv_status s = FKV_OK;
    up();
    while (s == FKV_OK) {
        fkv_field f = { .name = (uint8_t *)name, .value = value, .value_bytes = LENGTH };
        f.name_bytes = (uint32_t)snprintf(name, sizeof name, "%u", fields);
        fkv_request q = raw_request(&c, FKV_OP_SET_FIELDS, "h");
        q.codec = FKV_CODEC_FIELDS;
        q.value_bytes = (uint32_t)(fkv_put_field(body, &f) - body);
        s = raw_ask(&c, &q, "h", body, q.value_bytes, NULL);
        if (s != FKV_OK) break;
        all += q.value_bytes;
        fields++;
    }
    CHECK_EQ(s, FKV_VALUE_TOO_LARGE);
    CHECK(all <= FKV_FIELDS_MAX && all + LENGTH > FKV_FIELDS_MAX - 64);
    fkv_reply got;
    uint8_t *there = raw_get(&c, "h", &got);
    uint32_t count;
    CHECK(got.value_bytes == all && fkv_count_fields(there, all, &count) && count == fields);
    free(there);
    answers(FKV_OP_DELETE_FIELDS, "0 1", 0, FKV_OK, 2);
    answers(FKV_OP_SET_FIELDS, "0=zero", 0, FKV_OK, 1);
    down();
}

/* Put as it is by a client. */
TEST(a_hash_beyond_its_limit_is_not_gone_through) {
    worker w = { 0 };
    uint8_t body[64];
    op o = { .worker = &w, .body = body, .request = { .op = FKV_OP_DELETE_FIELDS, .codec = FKV_CODEC_FIELDS } };
    table_entry e = { .value_bytes = FKV_FIELDS_MAX + 1, .codec = FKV_CODEC_FIELDS };
    derived d;
    o.request.value_bytes = fields_of("a", body);
    CHECK_EQ(derive(&o, &e, &d), FKV_VALUE_TOO_LARGE);
    free(w.made);
}

static void tests(void) {
    RUN(fields_are_set_in_their_places_and_new_ones_behind_them);
    RUN(a_hash_whose_last_field_is_deleted_is_gone);
    RUN(a_field_is_added_to_if_it_is_a_number_and_the_sum_is_one);
    RUN(a_hash_keeps_its_time_to_live_and_its_flags);
    RUN(a_retry_is_answered_as_the_first_and_changes_nothing);
    RUN(what_is_no_hash_is_left_as_it_is);
    RUN(a_hash_does_not_grow_beyond_its_limit);
    RUN(a_hash_beyond_its_limit_is_not_gone_through);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
