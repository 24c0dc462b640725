/* dataplane_derive_test.c: changes that an owner makes from the present entry, over each provider. What a retry is
 * answered is here; what it is answered by the next owner is in dataplane_derive_copies_test.c. */
#include "../../base/integer.h"
#include "../../serve/derive.h"
#include "raw_client.h"
#include "large_values.h"
#include "worker_visit.h"

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
static fkv_status put(const char *key, const char *value, uint8_t codec, uint64_t ttl_ms) {
    fkv_request q = raw_request(&c, FKV_OP_PUT, key);
    q.codec = codec;
    q.expiry = ttl_ms;
    q.user_flags = 77;
    q.value_bytes = (uint32_t)strlen(value);
    return raw_ask(&c, &q, key, value, q.value_bytes, NULL);
}
static fkv_request increment_of(const char *key, int64_t by) {
    fkv_request q = raw_request(&c, FKV_OP_INCREMENT, key);
    q.expected = (uint64_t)by;
    return q;
}
static fkv_status increment(const char *key, int64_t by, int64_t *sum) {
    fkv_reply reply;
    fkv_request q = increment_of(key, by);
    fkv_status s = raw_ask(&c, &q, key, NULL, 0, &reply);
    *sum = (int64_t)reply.expiry_ms;
    return s;
}
static fkv_status append(const char *key, const void *bytes, uint32_t count, uint64_t *length) {
    fkv_reply reply;
    fkv_request q = raw_request(&c, FKV_OP_APPEND, key);
    q.value_bytes = count;
    fkv_status s = raw_ask(&c, &q, key, bytes, count, &reply);
    *length = reply.expiry_ms;
    return s;
}
static fkv_status touch(const char *key, uint64_t ttl_ms) {
    fkv_request q = raw_request(&c, FKV_OP_TOUCH, key);
    q.expiry = ttl_ms;
    return raw_ask(&c, &q, key, NULL, 0, NULL);
}
static fkv_reply look(const char *key) {
    fkv_reply got;
    free(raw_get(&c, key, &got));
    return got;
}

TEST(an_increment_adds_to_what_is_there_and_answers_the_sum) {
    int64_t sum;
    up();
    CHECK_EQ(increment("n", 5, &sum), FKV_OK);
    CHECK_EQ(sum, 5);
    CHECK_EQ(increment("n", -12, &sum), FKV_OK);
    CHECK_EQ(sum, -7);
    raw_expect(&c, "n", "-7");
    CHECK_EQ(put("n", "9223372036854775800", 0, 0), FKV_OK);
    CHECK_EQ(increment("n", 7, &sum), FKV_OK);
    CHECK_EQ(sum, INT64_MAX);
    raw_expect(&c, "n", "9223372036854775807");
    CHECK_EQ(look("n").user_flags, 77); /* as they were put */
    CHECK_EQ(increment("m", INT64_MIN, &sum), FKV_OK);
    CHECK_EQ(sum, INT64_MIN);
    raw_expect(&c, "m", "-9223372036854775808");
    CHECK_EQ(increment("m", INT64_MAX, &sum), FKV_OK);
    CHECK_EQ(sum, -1);
    down();
}

TEST(an_increment_beyond_64_bits_changes_nothing) {
    int64_t sum;
    up();
    CHECK_EQ(put("n", "9223372036854775807", 0, 0), FKV_OK);
    uint64_t version = look("n").version;
    CHECK_EQ(increment("n", 1, &sum), FKV_NOT_INTEGER);
    CHECK_EQ(increment("n", INT64_MAX, &sum), FKV_NOT_INTEGER);
    CHECK_EQ(look("n").version, version);
    CHECK_EQ(put("n", "-9223372036854775808", 0, 0), FKV_OK);
    CHECK_EQ(increment("n", -1, &sum), FKV_NOT_INTEGER);
    raw_expect(&c, "n", "-9223372036854775808");
    down();
}

TEST(only_whole_numbers_in_decimal_text_are_incremented) {
    static const char *none[] = { "",
                                  " 1",
                                  "1 ",
                                  "+1",
                                  "-",
                                  "-0",
                                  "01",
                                  "0x1",
                                  "1.0",
                                  "1e",
                                  "a",
                                  "--1",
                                  "1\n",
                                  "00",
                                  "-01",
                                  "9223372036854775808",
                                  "-9223372036854775809",
                                  "18446744073709551616",
                                  "10000000000000000000" };
    int64_t sum;
    up();
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK_EQ(put("n", none[i], 0, 0), FKV_OK);
        CHECK_EQ(increment("n", 1, &sum), FKV_NOT_INTEGER);
        raw_expect(&c, "n", none[i]);
    }
    CHECK_EQ(put("n", "1", 1, 0), FKV_OK); /* a number to the eye, and of another codec */
    CHECK_EQ(increment("n", 1, &sum), FKV_WRONG_CODEC);
    uint64_t length;
    CHECK_EQ(append("n", "1", 1, &length), FKV_WRONG_CODEC);
    raw_expect(&c, "n", "1");
    down();
}

TEST(numbers_are_read_as_they_are_written) {
    char text[24];
    int64_t n, read;
    for (int bits = 0; bits < 64; bits++) {
        for (int off = -2; off <= 2; off++) {
            n = (int64_t)(((uint64_t)1 << bits) + (uint64_t)(int64_t)off); /* wraps below the smallest */
            uint32_t count = (uint32_t)snprintf(text, sizeof text, "%lld", (long long)n);
            CHECK(fkv_read_integer((const uint8_t *)text, count, &read));
            CHECK(read == n);
        }
    }
}

TEST(a_retry_is_answered_the_first_sum_and_adds_nothing) {
    int64_t sum;
    fkv_reply reply;
    up();
    fkv_request lost = increment_of("n", 5);
    CHECK_EQ(raw_ask(&c, &lost, "n", NULL, 0, &reply), FKV_OK);
    uint64_t version = reply.version;
    CHECK_EQ(increment("n", 10, &sum), FKV_OK);
    CHECK_EQ(sum, 15);
    lost.flags = FKV_REQUEST_RETRY;
    lost.id = c.next_id++;
    CHECK_EQ(raw_ask(&c, &lost, "n", NULL, 0, &reply), FKV_OK);
    CHECK_EQ((int64_t)reply.expiry_ms, 5);
    CHECK_EQ(reply.version, version);
    raw_expect(&c, "n", "15");
    fkv_request tail = raw_request(&c, FKV_OP_APPEND, "n");
    tail.value_bytes = 1;
    CHECK_EQ(raw_ask(&c, &tail, "n", "0", 1, &reply), FKV_OK);
    CHECK_EQ(reply.expiry_ms, 3);
    CHECK_EQ(put("n", "", 0, 0), FKV_OK);
    tail.flags = FKV_REQUEST_RETRY;
    tail.id = c.next_id++;
    CHECK_EQ(raw_ask(&c, &tail, "n", "0", 1, &reply), FKV_OK);
    CHECK_EQ(reply.expiry_ms, 3);
    raw_expect(&c, "n", "");
    down();
}

/* All of them come in one turn: each is made from what the one before has left. */
TEST(increments_that_come_together_all_count) {
    enum { MANY = 100 };
    uint64_t id[MANY];
    up();
    for (int i = 0; i < MANY; i++) {
        fkv_request q = increment_of("n", 1);
        id[i] = raw_send(&c, &q, "n", NULL, 0);
    }
    for (int i = 0; i < MANY; i++) {
        raw_message *m = raw_receive(&c, id[i]);
        CHECK_EQ(m->reply.status, FKV_OK);
        CHECK_EQ(m->reply.expiry_ms, (uint64_t)i + 1);
        free(m);
    }
    raw_expect(&c, "n", "100");
    down();
}

TEST(an_append_goes_behind_what_is_there) {
    uint64_t length;
    up();
    CHECK_EQ(append("a", "one", 3, &length), FKV_OK);
    CHECK_EQ(length, 3);
    CHECK_EQ(append("a", "", 0, &length), FKV_OK);
    CHECK_EQ(length, 3);
    CHECK_EQ(append("a", ",two", 4, &length), FKV_OK);
    CHECK_EQ(length, 7);
    raw_expect(&c, "a", "one,two");
    CHECK_EQ(append("empty", "", 0, &length), FKV_OK);
    CHECK_EQ(length, 0);
    raw_expect(&c, "empty", "");
    static uint8_t much[FKV_APPEND_MAX], *all;
    fkv_reply got;
    for (uint32_t i = 0; i < 20; i++) { /* past what the worker copies itself */
        memset(much, 'a' + (int)i, sizeof much);
        CHECK_EQ(append("long", much, sizeof much - 1, &length), FKV_OK);
        CHECK_EQ(length, (i + 1) * (sizeof much - 1));
    }
    all = raw_get(&c, "long", &got);
    CHECK_EQ(got.value_bytes, length);
    for (uint32_t at = 0; at < length; at++) CHECK_EQ(all[at], 'a' + at / (sizeof much - 1));
    free(all);
    down();
}

TEST(a_value_is_not_appended_to_beyond_its_limit) {
    memory m;
    uint64_t length;
    op o = { .request = { .op = FKV_OP_APPEND, .value_bytes = 2 } };
    table_entry e = { .value_bytes = FKV_VALUE_MAX - 1 };
    derived d;
    CHECK_EQ(derive(&o, &e, &d), FKV_VALUE_TOO_LARGE); /* before room is looked for */
    o.request.value_bytes = 1;
    CHECK_EQ(derive(&o, &e, &d), FKV_OK);
    rig_init(&r, provider, NULL);
    r.config.wait_ms = RIG_WAIT_MS;
    r.config.transfer_ms = 10 * RIG_WAIT_MS; /* 64 MiB under a sanitizer, beside other tests */
    rig_up(&r, RIG_SHARDS, 256 << 20);
    raw_up(&c, &r, 1);
    memory_make(&m, &c, FKV_VALUE_MAX, 1);
    CHECK_EQ(raw_end(&c, large_put_begin(&c, &m, "a", FKV_VALUE_MAX - 1)), FKV_OK);
    CHECK_EQ(append("a", "xy", 2, &length), FKV_VALUE_TOO_LARGE);
    CHECK_EQ(look("a").value_bytes, FKV_VALUE_MAX - 1);
    CHECK_EQ(append("a", "x", 1, &length), FKV_OK);
    CHECK_EQ(length, FKV_VALUE_MAX);
    CHECK_EQ(append("a", "x", 1, &length), FKV_VALUE_TOO_LARGE);
    CHECK_EQ(touch("a", 3600000), FKV_OK);
    fkv_reply got;
    uint8_t *value = raw_get(&c, "a", &got);
    CHECK_EQ(got.value_bytes, FKV_VALUE_MAX);
    CHECK(memcmp(value, m.region.base, FKV_VALUE_MAX - 1) == 0 && value[FKV_VALUE_MAX - 1] == 'x');
    free(value);
    raw_hang_up(&c);
    memory_free(&m);
    down();
}

TEST(a_time_to_live_is_kept_by_increment_and_append_and_changed_by_touch) {
    int64_t sum;
    uint64_t length;
    enum { HOUR = 3600000 };
    up();
    CHECK_EQ(put("n", "5", 0, HOUR), FKV_OK);
    uint64_t expiry = look("n").expiry_ms;
    CHECK(expiry > 0);
    CHECK_EQ(increment("n", 1, &sum), FKV_OK);
    CHECK_EQ(look("n").expiry_ms, expiry);
    CHECK_EQ(append("n", "0", 1, &length), FKV_OK);
    CHECK_EQ(look("n").expiry_ms, expiry);
    fkv_request q = increment_of("n", 1);
    q.expiry = 2 * HOUR; /* of a new entry, which this is not */
    CHECK_EQ(raw_ask(&c, &q, "n", NULL, 0, NULL), FKV_OK);
    CHECK_EQ(look("n").expiry_ms, expiry);
    CHECK_EQ(touch("n", 2 * HOUR), FKV_OK);
    CHECK(look("n").expiry_ms >= expiry + HOUR);
    CHECK_EQ(look("n").user_flags, 77);
    raw_expect(&c, "n", "61");
    CHECK_EQ(touch("n", 0), FKV_OK);
    CHECK_EQ(look("n").expiry_ms, 0);
    CHECK_EQ(touch("none", HOUR), FKV_NOT_FOUND);
    q = increment_of("new", 1);
    q.expiry = HOUR;
    CHECK_EQ(raw_ask(&c, &q, "new", NULL, 0, NULL), FKV_OK);
    CHECK(look("new").expiry_ms > 0);
    CHECK_EQ(touch("new", 1), FKV_OK);
    while (look("new").status == FKV_OK) {}
    CHECK_EQ(touch("new", HOUR), FKV_NOT_FOUND); /* it has expired */
    CHECK_EQ(increment("new", 4, &sum), FKV_OK);
    CHECK_EQ(sum, 4);
    CHECK_EQ(look("new").expiry_ms, 0);
    down();
}

/* Else what is made of it would have a good checksum. */
TEST(of_what_is_damaged_nothing_is_made) {
    int64_t sum;
    uint64_t length;
    char key[16] = "n"; /* of the first shard, which the first worker has */
    for (int i = 0; raw_shard_of(0, key, strlen(key)) != 0; i++) snprintf(key, sizeof key, "n%d", i);
    up();
    CHECK_EQ(put(key, "5", 0, 0), FKV_OK);
    rig_damages(&r, 0, key);
    CHECK_EQ(increment(key, 1, &sum), FKV_CORRUPT);
    CHECK_EQ(append(key, "0", 1, &length), FKV_CORRUPT);
    CHECK_EQ(touch(key, 1000), FKV_CORRUPT);
    CHECK_EQ(look(key).status, FKV_CORRUPT);
    CHECK_EQ(put(key, "6", 0, 0), FKV_OK);
    CHECK_EQ(increment(key, 1, &sum), FKV_OK);
    CHECK_EQ(sum, 7);
    down();
}

static void tests(void) {
    RUN(of_what_is_damaged_nothing_is_made);
    RUN(an_increment_adds_to_what_is_there_and_answers_the_sum);
    RUN(an_increment_beyond_64_bits_changes_nothing);
    RUN(only_whole_numbers_in_decimal_text_are_incremented);
    RUN(numbers_are_read_as_they_are_written);
    RUN(a_retry_is_answered_the_first_sum_and_adds_nothing);
    RUN(increments_that_come_together_all_count);
    RUN(an_append_goes_behind_what_is_there);
    RUN(a_value_is_not_appended_to_beyond_its_limit);
    RUN(a_time_to_live_is_kept_by_increment_and_append_and_changed_by_touch);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
