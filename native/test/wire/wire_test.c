/* wire_test.c: messages and tickets. Whatever the bytes, parsing ends in a status and touches nothing beyond the
 * message (every message is parsed from an allocation of exactly its size, so that the address sanitizer sees a byte
 * too far). */
#include "../check.h"
#include <stdlib.h>
#include <string.h>
#include "../../table/layout.h"
#include "../../wire/fields.h"
#include "../../wire/wire.h"

static uint64_t state;
static uint64_t rnd(void) { /* splitmix64 */
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static fkv_status parse(const fkv_request *q, const void *rest, uint32_t rest_bytes, fkv_request *r) {
    uint32_t bytes = (uint32_t)sizeof *q + rest_bytes;
    uint8_t *m = malloc(bytes);
    memcpy(m, q, sizeof *q);
    if (rest_bytes) memcpy(m + sizeof *q, rest, rest_bytes);
    const uint8_t *key, *body;
    fkv_status s = wire_parse_request(m, bytes, r, &key, &body);
    if (s == FKV_OK) CHECK(key == m + sizeof *q && body == key + r->key_bytes);
    free(m);
    return s;
}
static fkv_status parse_keyed(fkv_request q, uint32_t rest_bytes) {
    fkv_request r;
    uint8_t *rest = calloc(1, rest_bytes + 1);
    fkv_status s = parse(&q, rest, rest_bytes, &r);
    CHECK(memcmp(&q, &r, sizeof q) == 0);
    free(rest);
    return s;
}
static fkv_request put(uint16_t key_bytes, uint32_t value_bytes) {
    return (
        fkv_request){ .op = FKV_OP_PUT, .id = 7, .sequence = 1, .key_bytes = key_bytes, .value_bytes = value_bytes };
}

TEST(a_well_formed_request_of_each_op_parses) {
    fkv_request q = put(3, 5);
    CHECK_EQ(parse_keyed(q, 8), FKV_OK);
    q.expiry = FKV_TTL_MAX;
    q.flags = FKV_REQUEST_RETRY;
    CHECK_EQ(parse_keyed(q, 8), FKV_OK);
    q.op = FKV_OP_CAS;
    q.expected = 9;
    CHECK_EQ(parse_keyed(q, 8), FKV_OK);
    q.flags = FKV_REQUEST_RENDEZVOUS;
    q.value_bytes = FKV_VALUE_MAX;
    fkv_request r;
    uint8_t rest[3 + sizeof(fkv_rendezvous)] = { 0 };
    fkv_rendezvous v = { .addr = 4096, .region_addr = 4096, .region_bytes = FKV_VALUE_MAX };
    memcpy(rest + 3, &v, sizeof v);
    CHECK_EQ(parse(&q, rest, sizeof rest, &r), FKV_OK);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_GET, .key_bytes = FKV_KEY_MAX }, FKV_KEY_MAX), FKV_OK);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_DELETE, .sequence = 1, .key_bytes = 1 }, 1), FKV_OK);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_CAS_DELETE, .sequence = 1, .expected = 3, .key_bytes = 1 }, 1),
             FKV_OK);
    fkv_request derives = { .op = FKV_OP_INCREMENT, .sequence = 1, .key_bytes = 1, .expected = UINT64_MAX };
    derives.expiry = FKV_TTL_MAX;
    CHECK_EQ(parse_keyed(derives, 1), FKV_OK);
    derives.op = FKV_OP_TOUCH;
    derives.expected = 0;
    CHECK_EQ(parse_keyed(derives, 1), FKV_OK);
    derives.op = FKV_OP_APPEND;
    derives.value_bytes = FKV_APPEND_MAX;
    CHECK_EQ(parse_keyed(derives, 1 + FKV_APPEND_MAX), FKV_OK);
    fkv_request keeps = { .op = FKV_OP_CAS, .sequence = 1, .key_bytes = 1, .flags = FKV_REQUEST_KEEP_EXPIRY };
    CHECK_EQ(parse_keyed(keeps, 1), FKV_OK);
    keeps.expiry = 1;
    CHECK_EQ(parse_keyed(keeps, 1), FKV_BAD_REQUEST);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_LEASE }, 0), FKV_OK);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_LAYOUT }, 0), FKV_OK);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_SCAN, .value_bytes = 100, .flags = FKV_REQUEST_SCAN_VALUES }, 0),
             FKV_OK);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_SCAN, .value_bytes = 1, .flags = FKV_REQUEST_SCAN_SPACES }, 0),
             FKV_OK);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_SCAN, .value_bytes = 1, .key_bytes = 5 }, 5), FKV_OK);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_TALLY, .expected = 7 }, 0), FKV_OK);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_TALLY, .key_bytes = FKV_KEY_MAX }, FKV_KEY_MAX), FKV_OK);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_CANCEL, .expected = 4 }, 0), FKV_OK);
}

TEST(keys_and_values_outside_their_limits_have_their_own_status) {
    CHECK_EQ(parse_keyed(put(0, 5), 5), FKV_KEY_INVALID);
    CHECK_EQ(parse_keyed(put(FKV_KEY_MAX + 1, 5), FKV_KEY_MAX + 6), FKV_KEY_INVALID);
    CHECK_EQ(parse_keyed(put(3, FKV_VALUE_MAX + 1), 8), FKV_VALUE_TOO_LARGE);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_GET }, 0), FKV_KEY_INVALID);
}

TEST(a_request_that_breaks_one_rule_is_refused) {
    fkv_request q = put(3, 5);
    CHECK_EQ(parse_keyed(q, 7), FKV_BAD_REQUEST);
    CHECK_EQ(parse_keyed(q, 9), FKV_BAD_REQUEST);
    CHECK_EQ(parse_keyed(q, 2), FKV_BAD_REQUEST);
#define BROKEN(field, value)                          \
    {                                                 \
        fkv_request b = q;                            \
        b.field = value;                              \
        CHECK_EQ(parse_keyed(b, 8), FKV_BAD_REQUEST); \
    }
    BROKEN(op, 0)
    BROKEN(op, FKV_OP_RENEW)
    BROKEN(op, FKV_OP_COUNT)
    BROKEN(op, 255)
    BROKEN(flags, FKV_REQUEST_SCAN_VALUES)
    BROKEN(flags, 0x80)
    BROKEN(flags, FKV_REQUEST_RENDEZVOUS)
    BROKEN(reserved, 1)
    BROKEN(reserved2, 1)
    BROKEN(sequence, 0)
    BROKEN(sequence, (uint64_t)1 << 56)
    BROKEN(expected, 1)
    BROKEN(expiry, FKV_TTL_MAX + 1)
    BROKEN(op, FKV_OP_DELETE)
    BROKEN(op, FKV_OP_GET)
    BROKEN(op, FKV_OP_LEASE)
    BROKEN(op, FKV_OP_SCAN)
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_SCAN }, 0), FKV_BAD_REQUEST);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_LAYOUT, .key_bytes = 1 }, 1), FKV_BAD_REQUEST);
    fkv_request scan = { .op = FKV_OP_SCAN, .value_bytes = 1, .flags = FKV_REQUEST_SCAN_SPACES, .space = 1 };
    CHECK_EQ(parse_keyed(scan, 0), FKV_BAD_REQUEST);
    scan = (fkv_request){ .op = FKV_OP_SCAN, .value_bytes = 1 };
    scan.flags = FKV_REQUEST_SCAN_SPACES | FKV_REQUEST_SCAN_COPY;
    CHECK_EQ(parse_keyed(scan, 0), FKV_BAD_REQUEST);
    scan = (fkv_request){ .op = FKV_OP_SCAN, .value_bytes = 1, .flags = FKV_REQUEST_SCAN_COPY, .key_bytes = 1 };
    CHECK_EQ(parse_keyed(scan, 1), FKV_BAD_REQUEST);
    scan = (fkv_request){ .op = FKV_OP_SCAN, .value_bytes = 1, .key_bytes = FKV_KEY_MAX + 1 };
    CHECK_EQ(parse_keyed(scan, FKV_KEY_MAX + 1), FKV_BAD_REQUEST);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_TALLY, .value_bytes = 1 }, 0), FKV_BAD_REQUEST);
    CHECK_EQ(parse_keyed((fkv_request){ .op = FKV_OP_TALLY, .key_bytes = 2 }, 1), FKV_BAD_REQUEST);
    q = put(3, 0);
    q.flags = FKV_REQUEST_RENDEZVOUS;
    CHECK_EQ(parse_keyed(q, 3 + sizeof(fkv_rendezvous)), FKV_BAD_REQUEST);
}

TEST(a_change_of_the_present_entry_that_breaks_one_rule_is_refused) {
    fkv_request q = { .op = FKV_OP_INCREMENT, .sequence = 1, .key_bytes = 1, .expected = 5 }, b;
#define REFUSED(field, value, rest, status) \
    b = q;                                  \
    b.field = value;                        \
    CHECK_EQ(parse_keyed(b, rest), status)
    REFUSED(sequence, 0, 1, FKV_BAD_REQUEST);
    REFUSED(value_bytes, 1, 2, FKV_BAD_REQUEST);
    REFUSED(value_bytes, 1, 1, FKV_BAD_REQUEST);
    REFUSED(flags, FKV_REQUEST_RENDEZVOUS, 1 + sizeof(fkv_rendezvous), FKV_BAD_REQUEST);
    REFUSED(expiry, FKV_TTL_MAX + 1, 1, FKV_BAD_REQUEST);
    q = (fkv_request){ .op = FKV_OP_TOUCH, .sequence = 1, .key_bytes = 1, .expiry = 5 };
    REFUSED(expected, 1, 1, FKV_BAD_REQUEST);
    REFUSED(value_bytes, 1, 2, FKV_BAD_REQUEST);
    REFUSED(expiry, FKV_TTL_MAX + 1, 1, FKV_BAD_REQUEST);
    q = (fkv_request){ .op = FKV_OP_APPEND, .sequence = 1, .key_bytes = 1, .value_bytes = 5 };
    REFUSED(expected, 1, 6, FKV_BAD_REQUEST);
    REFUSED(value_bytes, FKV_APPEND_MAX + 1, 2 + FKV_APPEND_MAX, FKV_VALUE_TOO_LARGE);
    REFUSED(value_bytes, 6, 6, FKV_BAD_REQUEST);
    REFUSED(flags, FKV_REQUEST_RENDEZVOUS, 1 + sizeof(fkv_rendezvous), FKV_BAD_REQUEST);
#undef REFUSED
}

TEST(fields_that_break_one_rule_are_refused) {
    uint8_t body[FKV_APPEND_MAX + 16];
    fkv_field f = { .name = (const uint8_t *)"name", .value = (const uint8_t *)"value" }, got;
    f.name_bytes = 4;
    f.value_bytes = 5;
    uint32_t one = (uint32_t)fkv_field_bytes(&f), at = 0, count;
    memcpy(body, "k", 1); /* the key */
    fkv_put_field(fkv_put_field(body + 1, &f), &f);
    fkv_request q = { .op = FKV_OP_SET_FIELDS, .codec = FKV_CODEC_FIELDS, .sequence = 1, .key_bytes = 1 }, r;
    q.value_bytes = 2 * one;
    CHECK_EQ(parse(&q, body, 1 + 2 * one, &r), FKV_OK);
    q.expected = 1;
    CHECK_EQ(parse(&q, body, 1 + 2 * one, &r), FKV_OK);
    q.expected = 2;
    CHECK_EQ(parse(&q, body, 1 + 2 * one, &r), FKV_BAD_REQUEST);
    q.expected = 0;
    q.codec = 0;
    CHECK_EQ(parse(&q, body, 1 + 2 * one, &r), FKV_BAD_REQUEST);
    q.codec = FKV_CODEC_FIELDS;
    q.op = FKV_OP_DELETE_FIELDS;
    CHECK_EQ(parse(&q, body, 1 + 2 * one, &r), FKV_OK);
    q.op = FKV_OP_INCREMENT_FIELD; /* of one */
    CHECK_EQ(parse(&q, body, 1 + 2 * one, &r), FKV_BAD_REQUEST);
    q.expected = UINT64_MAX;
    q.value_bytes = one;
    CHECK_EQ(parse(&q, body, 1 + one, &r), FKV_OK);
    q.op = FKV_OP_DELETE_FIELDS;
    q.expected = 0;
    for (uint32_t n = 0; n < one; n++) { /* cut anywhere */
        q.value_bytes = n;
        CHECK_EQ(parse(&q, body, 1 + n, &r), FKV_BAD_REQUEST);
    }
    q.value_bytes = FKV_APPEND_MAX + 1;
    CHECK_EQ(parse(&q, body, 1 + FKV_APPEND_MAX + 1, &r), FKV_VALUE_TOO_LARGE);
    CHECK(fkv_next_field(body + 1, one, &at, &got) && at == one && !fkv_next_field(body + 1, one, &at, &got));
    CHECK(got.name_bytes == 4 && memcmp(got.value, "value", 5) == 0);
    for (int i = 0; i < 2; i++) { /* lengths that go round */
        uint32_t huge = UINT32_MAX - 3;
        memcpy(body + 1 + 4 * i, &huge, sizeof huge);
        CHECK(!fkv_count_fields(body + 1, one, &count));
    }
}

TEST(a_lease_carries_a_whole_report_or_none) {
    enum { BYTES = sizeof(fkv_report) };
    fkv_request q = { .op = FKV_OP_LEASE, .value_bytes = BYTES };
    CHECK_EQ(parse_keyed(q, BYTES), FKV_OK);
    CHECK_EQ(parse_keyed(q, BYTES - 1), FKV_BAD_REQUEST);
    CHECK_EQ(parse_keyed(q, BYTES + 1), FKV_BAD_REQUEST);
    CHECK_EQ(parse_keyed(q, 0), FKV_BAD_REQUEST);
    q.value_bytes = BYTES - 1;
    CHECK_EQ(parse_keyed(q, BYTES - 1), FKV_BAD_REQUEST);
    CHECK_EQ(parse_keyed(q, BYTES), FKV_BAD_REQUEST);
    q = (fkv_request){ .op = FKV_OP_LAYOUT, .value_bytes = BYTES };
    CHECK_EQ(parse_keyed(q, BYTES), FKV_BAD_REQUEST);
}

TEST(a_rendezvous_lies_within_the_region_it_names) {
    fkv_request q = put(1, 100), r;
    q.flags = FKV_REQUEST_RENDEZVOUS;
    const struct {
        uint64_t addr, region_addr, region_bytes;
        fkv_status s;
    } cases[] = {
        { 1000, 1000, 100, FKV_OK },
        { 1000, 900, 200, FKV_OK },
        { 1000, 1000, 99, FKV_BAD_REQUEST },
        { 999, 1000, 200, FKV_BAD_REQUEST },
        { UINT64_MAX, 1000, 4096, FKV_BAD_REQUEST },
        { UINT64_MAX - 10, UINT64_MAX - 10, 4096, FKV_BAD_REQUEST },
        { 1000, 1000, FKV_RENDEZVOUS_REGION_MAX + 1, FKV_BAD_REQUEST },
        { 1000, 1000, UINT64_MAX, FKV_BAD_REQUEST },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t rest[1 + sizeof(fkv_rendezvous)] = { 'k' };
        fkv_rendezvous v = { .addr = cases[i].addr,
                             .region_addr = cases[i].region_addr,
                             .region_bytes = cases[i].region_bytes };
        memcpy(rest + 1, &v, sizeof v);
        CHECK_EQ(parse(&q, rest, sizeof rest, &r), cases[i].s);
    }
}

TEST(every_truncation_of_a_request_is_refused) {
    uint8_t message[sizeof(fkv_request) + 8] = { 0 };
    fkv_request q = put(3, 5), r;
    memcpy(message, &q, sizeof q);
    for (uint32_t n = 0; n <= sizeof message; n++) {
        uint8_t *exact = malloc(n + 1);
        memcpy(exact + 1, message, n); /* also unaligned */
        const uint8_t *key, *body;
        fkv_status s = wire_parse_request(exact + 1, n, &r, &key, &body);
        CHECK_EQ(s, n == sizeof message ? FKV_OK : FKV_BAD_REQUEST);
        CHECK_EQ(r.id, n >= sizeof q ? 7 : 0);
        free(exact);
    }
}

TEST(random_requests_parse_to_something_within_the_message) {
    state = check_seed();
    for (int i = 0; i < 200000; i++) {
        fkv_request q, r;
        uint8_t *bytes = (uint8_t *)&q;
        for (size_t b = 0; b < sizeof q; b++) bytes[b] = (uint8_t)rnd();
        /* Half of them are nearly right, so that the deeper checks are reached too. */
        if (rnd() & 1) {
            q = put((uint16_t)(rnd() % 1100), (uint32_t)(rnd() % 64));
            q.op = (uint8_t)(rnd() % (FKV_OP_COUNT + 1));
            q.flags = (uint8_t)(rnd() % 8);
            bytes[rnd() % sizeof q] ^= (uint8_t)(1u << rnd() % 8);
        }
        uint8_t rest[1200] = { 0 };
        uint32_t n = rnd() & 1 ? q.key_bytes + q.value_bytes : (uint32_t)(rnd() % sizeof rest);
        if (n > sizeof rest) n = sizeof rest;
        if (parse(&q, rest, n, &r) == FKV_OK) {
            CHECK(r.key_bytes <= n);
            uint32_t left = n - r.key_bytes;
            if (fkv_op_is(r.op, FKV_VALUED)) {
                CHECK_EQ(left, r.flags & FKV_REQUEST_RENDEZVOUS ? sizeof(fkv_rendezvous) : r.value_bytes);
            } else {
                CHECK_EQ(left, 0);
            }
        }
    }
}

static fkv_status parse_reply(const fkv_reply *q, const void *rest, uint32_t rest_bytes) {
    uint32_t bytes = (uint32_t)sizeof *q + rest_bytes;
    uint8_t *m = malloc(bytes);
    memcpy(m, q, sizeof *q);
    if (rest_bytes) memcpy(m + sizeof *q, rest, rest_bytes);
    fkv_reply r;
    const uint8_t *body;
    fkv_status s = wire_parse_reply(m, bytes, &r, &body);
    if (s == FKV_OK) CHECK(body == m + sizeof *q && r.body_bytes == rest_bytes);
    free(m);
    return s;
}

TEST(replies_are_checked_by_their_op) {
    uint8_t room[256] = { 0 };
    fkv_reply q = { .op = FKV_OP_PUT, .id = 1 };
    CHECK_EQ(parse_reply(&q, room, 0), FKV_OK);
    CHECK_EQ(parse_reply(&q, room, 1), FKV_BAD_REQUEST);
    q.body_bytes = 1;
    CHECK_EQ(parse_reply(&q, room, 1), FKV_BAD_REQUEST);
    q = (fkv_reply){ .op = FKV_OP_PUT, .status = FKV_STATUS_COUNT };
    CHECK_EQ(parse_reply(&q, room, 0), FKV_BAD_REQUEST);
    q = (fkv_reply){ .op = FKV_OP_GET, .value_bytes = 10, .offset = 4, .body_bytes = 6 };
    CHECK_EQ(parse_reply(&q, room, 6), FKV_OK);
    q.offset = 5;
    CHECK_EQ(parse_reply(&q, room, 6), FKV_BAD_REQUEST);
    q.offset = UINT32_MAX;
    CHECK_EQ(parse_reply(&q, room, 6), FKV_BAD_REQUEST);
    q = (fkv_reply){ .op = FKV_OP_GET, .status = FKV_NOT_FOUND, .body_bytes = 6 };
    CHECK_EQ(parse_reply(&q, room, 6), FKV_BAD_REQUEST);
    q = (fkv_reply){ .op = FKV_OP_LEASE, .body_bytes = 32 };
    CHECK_EQ(parse_reply(&q, room, 32), FKV_OK);
    q.body_bytes = 31;
    CHECK_EQ(parse_reply(&q, room, 31), FKV_BAD_REQUEST);
    q = (fkv_reply){ .op = FKV_OP_LAYOUT, .body_bytes = 32 + 80 };
    fkv_layout l = { .count = 3, .first = 1, .here = 2 };
    memcpy(room, &l, sizeof l);
    CHECK_EQ(parse_reply(&q, room, 32 + 80), FKV_OK);
    l.first = UINT32_MAX;
    memcpy(room, &l, sizeof l);
    CHECK_EQ(parse_reply(&q, room, 32 + 80), FKV_BAD_REQUEST);
    l.first = 0;
    l.here = 0x06666667; /* times 40 is 2^32 + 24 */
    memcpy(room, &l, sizeof l);
    CHECK_EQ(parse_reply(&q, room, 32 + 80), FKV_BAD_REQUEST);
    q = (fkv_reply){ .op = FKV_OP_CANCEL };
    CHECK_EQ(parse_reply(&q, room, 0), FKV_BAD_REQUEST);
}

TEST(a_scan_body_is_whole_entries) {
    uint8_t body[200] = { 0 };
    fkv_scan_entry a = { .version = 1, .value_bytes = 5, .key_bytes = 3, .has_value = 1 };
    fkv_scan_entry b = { .version = 2, .value_bytes = 5000, .key_bytes = 4 };
    memcpy(body, &a, sizeof a);
    memcpy(body + sizeof a, "keyvalue", 8);
    uint32_t second = sizeof a + 8;
    memcpy(body + second, &b, sizeof b);
    memcpy(body + second + sizeof b, "four", 4);
    uint32_t all = second + sizeof b + 4;
    for (uint32_t n = 0; n <= all; n++) {
        fkv_reply q = { .op = FKV_OP_SCAN, .body_bytes = n };
        CHECK_EQ(parse_reply(&q, body, n), n == 0 || n == second || n == all ? FKV_OK : FKV_BAD_REQUEST);
    }
    uint32_t at = 0;
    fkv_scan_entry e;
    const uint8_t *key, *value;
    CHECK(wire_next_scan_entry(body, all, &at, &e, &key, &value));
    CHECK(e.version == 1 && memcmp(key, "key", 3) == 0 && memcmp(value, "value", 5) == 0);
    CHECK(wire_next_scan_entry(body, all, &at, &e, &key, &value));
    CHECK(e.version == 2 && memcmp(key, "four", 4) == 0 && value == NULL);
    CHECK(!wire_next_scan_entry(body, all, &at, &e, &key, &value) && at == all);
}

/* To a server that copies: it must not take over what was damaged on its way. */
TEST(a_checked_value_is_whole_or_is_not_taken) {
    uint8_t body[200] = { 0 };
    fkv_scan_entry a = { .version = 1, .value_bytes = 5, .key_bytes = 3, .has_value = FKV_SCAN_VALUE_CHECKED }, e;
    memcpy(body, &a, sizeof a);
    memcpy(body + sizeof a, "keyvalue", 8);
    uint32_t all = sizeof a + 8 + FKV_SCAN_CHECK_BYTES, at = 0;
    wire_put_scan_check(body + sizeof a + 8, &a, body + sizeof a, body + sizeof a + 3);
    const uint8_t *key, *value;
    for (uint32_t n = 0; n <= all; n++) {
        fkv_reply q = { .op = FKV_OP_SCAN, .body_bytes = n };
        CHECK_EQ(parse_reply(&q, body, n), n == 0 || n == all ? FKV_OK : FKV_BAD_REQUEST);
    }
    CHECK(wire_next_scan_entry(body, all, &at, &e, &key, &value) && at == all);
    CHECK(wire_scan_value_whole(&e, key, value) && memcmp(value, "value", 5) == 0);
    for (uint32_t bit = 8 * sizeof a; bit < 8 * all; bit++) {
        body[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(!wire_scan_value_whole(&e, key, value));
        body[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    e.has_value = FKV_SCAN_VALUE_PLAIN; /* it does not say */
    CHECK(!wire_scan_value_whole(&e, key, value));
}

TEST(random_replies_parse_to_something_within_the_message) {
    state = check_seed();
    for (int i = 0; i < 200000; i++) {
        fkv_reply q = { .op = (uint8_t)(rnd() % 10), .id = rnd() };
        uint8_t *bytes = (uint8_t *)&q, rest[300];
        for (size_t b = 0; b < sizeof rest; b++) rest[b] = rnd() % 3 ? 0 : (uint8_t)rnd();
        for (int k = 0; k < 3; k++) bytes[rnd() % sizeof q] ^= (uint8_t)(1u << rnd() % 8);
        uint32_t n = (uint32_t)(rnd() % sizeof rest);
        if (rnd() % 8) q.body_bytes = n;
        parse_reply(&q, rest, n);
    }
}

TEST(a_name_says_its_ticket_to_those_who_have_the_secret_and_nothing_to_others) {
    const fkv_seed secret = { 1, 2 }, other = { 1, 3 };
    fkv_ticket t = { .client = 42, .expires_ms = 1000, .life_ms = 1000, .flags = FKV_TICKET_READ }, found;
    fkv_pass p, of_next;
    fkv_pass_make(&secret, &t, &p);
    CHECK(fkv_ticket_named(&secret, p.name, &found) && memcmp(&found, &t, sizeof t) == 0);
    CHECK(!fkv_ticket_named(&other, p.name, &found));
    for (size_t bit = 0; bit < 8 * sizeof p.name; bit++) {
        uint8_t forged[FKV_NAME_BYTES];
        memcpy(forged, p.name, sizeof forged);
        forged[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(!fkv_ticket_named(&secret, forged, &found));
    }
    /* Neither a field of it nor what two tickets have in common can be seen. */
    t.client = 43;
    fkv_pass_make(&secret, &t, &of_next);
    for (size_t at = 0; at + 4 <= sizeof p.name; at++) {
        CHECK(memcmp(p.name + at, of_next.name + at, 4) != 0);
        for (size_t of = 0; of + 8 <= sizeof t; of++)
            CHECK(at + 8 > sizeof p.name || memcmp(p.name + at, (uint8_t *)&p.ticket + of, 8) != 0);
    }
    CHECK(memcmp(p.name, &p.key, sizeof p.key) != 0);
}

TEST(a_pass_is_good_only_unchanged_and_proves_one_thing_once) {
    const fkv_seed secret = { 1, 2 }, other = { 1, 3 };
    const fkv_ticket t = { .client = 42, .expires_ms = 1000, .life_ms = 1000, .flags = FKV_TICKET_READ };
    uint8_t nonce[FKV_NONCE_BYTES] = { 7 }, proof[FKV_PROOF_BYTES];
    fkv_pass p;
    fkv_pass_make(&secret, &t, &p);
    CHECK(fkv_pass_ok(&secret, &p));
    CHECK(!fkv_pass_ok(&other, &p));
    for (size_t bit = 0; bit < 8 * sizeof p; bit++) {
        fkv_pass forged = p;
        ((uint8_t *)&forged)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(!fkv_pass_ok(&secret, &forged));
    }
    fkv_prove(&p.key, 5, &t, nonce, proof);
    CHECK(fkv_proof_ok(&p.key, 5, &t, nonce, proof));
    CHECK(!fkv_proof_ok(&other, 5, &t, nonce, proof));
    CHECK(!fkv_proof_ok(&p.key, 6, &t, nonce, proof));
    nonce[15] ^= 1;
    CHECK(!fkv_proof_ok(&p.key, 5, &t, nonce, proof));
    nonce[15] ^= 1;
    for (size_t bit = 0; bit < 8 * sizeof proof; bit++) {
        uint8_t forged[sizeof proof];
        memcpy(forged, proof, sizeof proof);
        forged[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(!fkv_proof_ok(&p.key, 5, &t, nonce, forged));
    }
    fkv_pass_make(&secret, &(fkv_ticket){ .expires_ms = 1000 }, &p);
    CHECK(!fkv_pass_ok(&secret, &p)); /* there is no client 0 */
}

int main(int argc, char **argv) {
    RUN(a_well_formed_request_of_each_op_parses);
    RUN(keys_and_values_outside_their_limits_have_their_own_status);
    RUN(a_request_that_breaks_one_rule_is_refused);
    RUN(a_change_of_the_present_entry_that_breaks_one_rule_is_refused);
    RUN(fields_that_break_one_rule_are_refused);
    RUN(a_lease_carries_a_whole_report_or_none);
    RUN(a_rendezvous_lies_within_the_region_it_names);
    RUN(every_truncation_of_a_request_is_refused);
    RUN(random_requests_parse_to_something_within_the_message);
    RUN(replies_are_checked_by_their_op);
    RUN(a_scan_body_is_whole_entries);
    RUN(a_checked_value_is_whole_or_is_not_taken);
    RUN(random_replies_parse_to_something_within_the_message);
    RUN(a_name_says_its_ticket_to_those_who_have_the_secret_and_nothing_to_others);
    RUN(a_pass_is_good_only_unchanged_and_proves_one_thing_once);
    return check_end(argc, argv);
}
