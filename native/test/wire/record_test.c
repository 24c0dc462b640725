/* record_test.c: records of changes. Whatever the bytes, parsing ends in a status and touches nothing beyond the message
 * (each is parsed from an allocation of exactly its size, so that the address sanitizer sees a byte too far). */
#include "../../wire/record.h"
#include <stdlib.h>
#include <string.h>
#include "../../table/layout.h"
#include "../../wire/wire.h"
#include "../check.h"

enum { ROOM = 4096 };
static uint8_t message[ROOM];
static uint32_t bytes;

static fkv_record put(uint16_t key_bytes, uint32_t value_bytes) {
    return (fkv_record){ .kind = FKV_RECORD_PUT,
                         .key_bytes = key_bytes,
                         .space = 5,
                         .codec = 3,
                         .value_bytes = value_bytes,
                         .user_flags = 9,
                         .version = 1 << 20,
                         .expiry_ms = 77,
                         .client = 11,
                         .sequence = FKV_SEQUENCE_MAX,
                         .value = UINT64_MAX };
}
static fkv_record removal(void) {
    return (fkv_record){ .kind = FKV_RECORD_DELETE, .key_bytes = 3, .version = 2, .client = 11, .sequence = 2 };
}
static void begin(uint16_t count) {
    fkv_records head = { .op = FKV_PEER_RECORDS, .count = count, .shard = 1, .epoch = 2, .config = 3, .first = 4 };
    memcpy(message, &head, sizeof head);
    bytes = sizeof head;
}
static void add(fkv_record r, const char *key, const char *value) {
    uint32_t n = wire_put_record(message + bytes, ROOM - bytes, &r, (const uint8_t *)key, (const uint8_t *)value);
    CHECK(n > 0);
    bytes += n;
}
static fkv_status parse(uint32_t n) {
    uint8_t *exact = malloc(n ? n : 1);
    memcpy(exact, message, n);
    fkv_records head;
    const uint8_t *body;
    fkv_status s = wire_parse_records(exact, n, &head, &body);
    if (s == FKV_OK) {
        fkv_record r;
        const uint8_t *key, *value;
        uint32_t at = 0, count = 0;
        while (wire_next_record(body, n - (uint32_t)sizeof head, &at, &r, &key, &value)) {
            CHECK(key >= exact && value + (r.kind == FKV_RECORD_BULK ? 0 : r.value_bytes) <= exact + n);
            count++;
        }
        CHECK_EQ(count, head.count);
    }
    free(exact);
    return s;
}
static fkv_status parse_one(fkv_record r) {
    begin(1);
    memcpy(message + bytes, &r, sizeof r);
    return parse(bytes + (uint32_t)sizeof r + r.key_bytes + r.value_bytes);
}

TEST(records_come_as_they_were_put) {
    begin(2);
    fkv_record first = put(3, 5);
    add(first, "abc", "value");
    add(removal(), "xyz", NULL);
    CHECK_EQ(parse(bytes), FKV_OK);
    fkv_record r;
    const uint8_t *key, *value, *body = message + sizeof(fkv_records);
    uint32_t at = 0, left = bytes - (uint32_t)sizeof(fkv_records);
    CHECK(wire_next_record(body, left, &at, &r, &key, &value));
    CHECK(wire_record_whole(&r, key, value));
    first.body_crc = r.body_crc;
    CHECK(memcmp(&r, &first, sizeof r) == 0);
    CHECK(memcmp(key, "abc", 3) == 0 && memcmp(value, "value", 5) == 0);
    message[sizeof(fkv_records) + sizeof r + 4] ^= 1; /* of the value */
    CHECK(!wire_record_whole(&r, key, value));
    CHECK(wire_next_record(body, left, &at, &r, &key, &value));
    CHECK(r.kind == FKV_RECORD_DELETE && wire_record_whole(&r, key, value));
    CHECK(!wire_next_record(body, left, &at, &r, &key, &value));
}

TEST(a_record_that_does_not_fit_is_not_put) {
    uint8_t to[sizeof(fkv_record) + 8];
    fkv_record r = put(3, 6);
    CHECK_EQ(wire_put_record(to, sizeof to, &r, (const uint8_t *)"abc", (const uint8_t *)"values"), 0);
    r.value_bytes = 5;
    CHECK_EQ(wire_put_record(to, sizeof to, &r, (const uint8_t *)"abc", (const uint8_t *)"value"), sizeof to);
}

TEST(a_record_that_breaks_one_rule_is_refused) {
    memset(message, 0, sizeof message);
    CHECK_EQ(parse_one(put(3, 5)), FKV_OK);
    CHECK_EQ(parse_one(removal()), FKV_OK);
#define REFUSED(of, change)                      \
    do {                                         \
        fkv_record r = of;                       \
        change;                                  \
        CHECK_EQ(parse_one(r), FKV_BAD_REQUEST); \
    } while (0)
    REFUSED(put(3, 5), r.kind = 0);
    REFUSED(put(3, 5), r.kind = 4);
    REFUSED(put(3, 5), r.kind = FKV_RECORD_BULK); /* its value does not follow */
    REFUSED(put(3, 5), r.reserved = 1);
    REFUSED(put(3, 5), r.reserved2 = 1);
    REFUSED(put(3, 5), r.key_bytes = 0);
    REFUSED(put(3, 5), r.key_bytes = FKV_KEY_MAX + 1);
    REFUSED(put(3, 5), r.client = 0);
    REFUSED(put(3, 5), r.sequence = 0);
    REFUSED(put(3, 5), r.sequence = FKV_SEQUENCE_MAX + 1);
    REFUSED(put(3, 5), r.version = 0);
    REFUSED(put(3, 5), r.expiry_ms = (uint64_t)1 << 48);
    REFUSED(removal(), r.value_bytes = 1);
    REFUSED(removal(), r.expiry_ms = 1);
    fkv_record r = put(3, 5);
    r.value_bytes = UINT32_MAX; /* and the sum with the key wraps */
    begin(1);
    memcpy(message + bytes, &r, sizeof r);
    CHECK_EQ(parse(bytes + (uint32_t)sizeof r + 3), FKV_BAD_REQUEST);
}

TEST(every_truncation_and_a_wrong_count_is_refused) {
    begin(2);
    add(put(3, 5), "abc", "value");
    add(removal(), "xyz", NULL);
    for (uint32_t n = 0; n < bytes; n++) CHECK_EQ(parse(n), FKV_BAD_REQUEST);
    message[bytes] = 0;
    CHECK_EQ(parse(bytes + 1), FKV_BAD_REQUEST);
    fkv_records head;
    memcpy(&head, message, sizeof head);
    for (uint16_t count = 0; count < 5; count++) {
        head.count = count;
        memcpy(message, &head, sizeof head);
        CHECK_EQ(parse(bytes), count == 2 ? FKV_OK : FKV_BAD_REQUEST);
    }
    head.count = 2;
    head.first = UINT64_MAX - 1;
    memcpy(message, &head, sizeof head);
    CHECK_EQ(parse(bytes), FKV_BAD_REQUEST);
}

TEST(random_records_parse_to_something_within_the_message) {
    uint64_t random = check_seed();
    for (int i = 0; i < 200000; i++) {
        begin(2);
        add(put(3, 5), "abc", "value");
        add(removal(), "xyz", NULL);
        for (int k = 0; k < 3; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            message[(random >> 40) % bytes] ^= (uint8_t)(1u << (random >> 33) % 8);
        }
        parse(bytes - (random >> 20) % 3);
    }
}

int main(int argc, char **argv) {
    RUN(records_come_as_they_were_put);
    RUN(a_record_that_does_not_fit_is_not_put);
    RUN(a_record_that_breaks_one_rule_is_refused);
    RUN(every_truncation_and_a_wrong_count_is_refused);
    RUN(random_records_parse_to_something_within_the_message);
    return check_end(argc, argv);
}
