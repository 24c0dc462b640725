/* peer_test.c: the messages of links. Whatever the bytes, parsing ends in a status and touches nothing beyond the
 * message (each is parsed from an allocation of exactly its size, so that the address sanitizer sees a byte too far). */
#include "../../wire/peer.h"
#include <stdlib.h>
#include <string.h>
#include "../../wire/wire.h"
#include "../check.h"

enum { ROOM = 4096 };
static uint8_t message[ROOM];
static uint32_t bytes;

static fkv_peer_follow follow = { .op = FKV_PEER_FOLLOW,
                                  .shard = 3,
                                  .epoch = (1 << 20) - 1,
                                  .lease_ms = 250,
                                  .id = 9,
                                  .prepared = 7,
                                  .committed = 7,
                                  .room = UINT64_MAX };
static fkv_peer_follow_ok follow_ok = { .op = FKV_PEER_FOLLOW_OK, .shard = 3, .epoch = 2, .config = 5, .last = 8 };
static fkv_peer_notice stale = { .op = FKV_PEER_STALE, .shard = 3 };
static fkv_peer_notice unfollow = { .op = FKV_PEER_UNFOLLOW, .shard = 3, .epoch = 2 };

static void put(const void *head, size_t n) {
    memcpy(message, head, n);
    bytes = (uint32_t)n;
}
static void add(const void *item, size_t n) {
    memcpy(message + bytes, item, n);
    bytes += (uint32_t)n;
}
static void put_list(uint8_t op, uint16_t count) {
    fkv_peer_list l = { .op = op, .count = count, .asked_ns = 77 };
    put(&l, sizeof l);
    for (uint32_t i = 0; i < count; i++) {
        fkv_peer_ack a = { .shard = i, .epoch = 1 + i, .prepared = 10 + i, .limit = 20 + i };
        fkv_peer_heartbeat b = { .shard = i, .epoch = 1 + i, .committed = 10 + i, .digest = 30 + i };
        if (op == FKV_PEER_ACKS)
            add(&a, sizeof a);
        else
            add(&b, sizeof b);
    }
}
static void put_records(uint32_t epoch) {
    fkv_records head = { .op = FKV_PEER_RECORDS, .count = 1, .shard = 1, .epoch = epoch, .first = 4 };
    fkv_record r = {
        .kind = FKV_RECORD_PUT, .key_bytes = 3, .value_bytes = 5, .version = 1, .client = 1, .sequence = 1
    };
    put(&head, sizeof head);
    bytes += wire_put_record(message + bytes, ROOM - bytes, &r, (const uint8_t *)"abc", (const uint8_t *)"value");
}

/* A value of 20,000 bytes, 100 bytes into a region of 30,000. */
static fkv_peer_value_offer announce = { .op = FKV_PEER_VALUE_OFFER,
                                         .shard = 3,
                                         .epoch = 2,
                                         .tag = 5,
                                         .committed = 6,
                                         .rkey = 7,
                                         .region_addr = 4096,
                                         .region_bytes = 30000,
                                         .addr = 4196,
                                         .crc = 8 };
static fkv_peer_bulk pulled = {
    .op = FKV_PEER_VALUE_READ, .status = FKV_TABLE_FULL, .shard = 3, .epoch = 2, .version = 9
};
static fkv_peer_bulk forget = { .op = FKV_PEER_VALUE_CANCEL, .shard = 3, .epoch = 2, .version = 9 };
static void put_announce(uint32_t value_bytes, uint8_t kind) {
    fkv_record r = {
        .kind = kind, .key_bytes = 3, .value_bytes = value_bytes, .version = 1, .client = 1, .sequence = 1
    };
    static const uint8_t value[20000];
    put(&announce, sizeof announce);
    bytes += wire_put_record(message + bytes, ROOM - bytes, &r, (const uint8_t *)"abc", value);
}

static fkv_status parse(uint32_t n) {
    uint8_t *exact = malloc(n ? n : 1);
    memcpy(exact, message, n);
    fkv_peer_message m;
    fkv_status s = wire_parse_peer(exact, n, &m);
    if (s == FKV_OK) {
        CHECK(m.body >= exact && m.body + m.bytes == exact + n);
        for (uint32_t i = 0; m.op == FKV_PEER_ACKS && i < m.list.count; i++)
            CHECK(wire_peer_ack(&m, i).epoch < 1 << 20);
        for (uint32_t i = 0; m.op == FKV_PEER_HEARTBEAT && i < m.list.count; i++)
            CHECK(wire_peer_heartbeat(&m, i).epoch < 1 << 20);
    }
    free(exact);
    return s;
}
/* One whole message of each kind; false: there are no more. */
static bool put_any(int i) {
    switch (i) {
    case 0: put(&follow, sizeof follow); return true;
    case 1: put(&follow_ok, sizeof follow_ok); return true;
    case 2: put(&stale, sizeof stale); return true;
    case 3: put(&unfollow, sizeof unfollow); return true;
    case 4: put_list(FKV_PEER_ACKS, 3); return true;
    case 5: put_list(FKV_PEER_HEARTBEAT, 2); return true;
    case 6: put_records(1); return true;
    case 7: put_announce(20000, FKV_RECORD_BULK); return true;
    case 8: put(&pulled, sizeof pulled); return true;
    case 9: put(&forget, sizeof forget); return true;
    default: return false;
    }
}

TEST(messages_come_as_they_were_put) {
    fkv_peer_message m;
    put_any(0);
    CHECK_EQ(wire_parse_peer(message, bytes, &m), FKV_OK);
    CHECK(m.op == FKV_PEER_FOLLOW && memcmp(&m.follow, &follow, sizeof follow) == 0);
    put_any(1);
    CHECK_EQ(wire_parse_peer(message, bytes, &m), FKV_OK);
    CHECK(m.op == FKV_PEER_FOLLOW_OK && memcmp(&m.follow_ok, &follow_ok, sizeof follow_ok) == 0);
    put_any(2);
    CHECK_EQ(wire_parse_peer(message, bytes, &m), FKV_OK);
    CHECK(m.op == FKV_PEER_STALE && m.notice.shard == 3);
    put_any(3);
    CHECK_EQ(wire_parse_peer(message, bytes, &m), FKV_OK);
    CHECK(m.op == FKV_PEER_UNFOLLOW && m.notice.shard == 3 && m.notice.epoch == 2);
    put_any(4);
    CHECK_EQ(wire_parse_peer(message, bytes, &m), FKV_OK);
    CHECK(m.op == FKV_PEER_ACKS && m.list.count == 3 && m.list.asked_ns == 77);
    fkv_peer_ack a = wire_peer_ack(&m, 2);
    CHECK(a.shard == 2 && a.epoch == 3 && a.prepared == 12 && a.limit == 22);
    put_any(5);
    CHECK_EQ(wire_parse_peer(message, bytes, &m), FKV_OK);
    fkv_peer_heartbeat b = wire_peer_heartbeat(&m, 1);
    CHECK(m.op == FKV_PEER_HEARTBEAT && b.shard == 1 && b.epoch == 2 && b.committed == 11 && b.digest == 31);
    put_any(6);
    CHECK_EQ(wire_parse_peer(message, bytes, &m), FKV_OK);
    CHECK(m.op == FKV_PEER_RECORDS && m.records.first == 4 && m.bytes == bytes - sizeof m.records);
    put_any(7);
    CHECK_EQ(wire_parse_peer(message, bytes, &m), FKV_OK);
    CHECK(m.op == FKV_PEER_VALUE_OFFER && memcmp(&m.announce, &announce, sizeof announce) == 0);
    put_any(8);
    CHECK_EQ(wire_parse_peer(message, bytes, &m), FKV_OK);
    CHECK(m.op == FKV_PEER_VALUE_READ && memcmp(&m.bulk, &pulled, sizeof pulled) == 0);
}

TEST(every_truncation_and_every_byte_too_many_is_refused) {
    for (int i = 0; put_any(i); i++) {
        CHECK_EQ(parse(bytes), FKV_OK);
        for (uint32_t n = 0; n < bytes; n++) CHECK_EQ(parse(n), FKV_BAD_REQUEST);
        message[bytes] = 0;
        CHECK_EQ(parse(bytes + 1), FKV_BAD_REQUEST);
    }
}

TEST(a_message_that_breaks_one_rule_is_refused) {
#define REFUSED(of, change)                      \
    do {                                         \
        __typeof__(of) m = of;                   \
        change;                                  \
        put(&m, sizeof m);                       \
        CHECK_EQ(parse(bytes), FKV_BAD_REQUEST); \
    } while (0)
    REFUSED(follow, m.op = 0);
    REFUSED(follow, m.op = FKV_PEER_COUNT);
    REFUSED(follow, m.reserved = 1);
    REFUSED(follow, m.reserved2 = 1);
    REFUSED(follow, m.id = 0);
    REFUSED(follow, m.epoch = 1 << 20);
    REFUSED(follow, m.committed = m.prepared + 1);
    REFUSED(follow, m.lease_ms = 0);
    REFUSED(follow, m.lease_ms = FKV_PEER_LEASE_MS_MAX + 1);
    REFUSED(follow_ok, m.reserved = 1);
    REFUSED(follow_ok, m.reserved2 = 1);
    REFUSED(follow_ok, m.epoch = 1 << 20);
    REFUSED(stale, m.epoch = 1);
    REFUSED(stale, m.reserved3 = 1);
    REFUSED(unfollow, m.epoch = 1 << 20);
    REFUSED(unfollow, m.reserved = 1);
    REFUSED(unfollow, m.reserved2 = 1);
    for (uint8_t op = FKV_PEER_HEARTBEAT; op <= FKV_PEER_ACKS; op++) {
        fkv_peer_list l;
        put_list(op, 2);
        memcpy(&l, message, sizeof l);
        l.reserved2 = 1;
        memcpy(message, &l, sizeof l);
        CHECK_EQ(parse(bytes), FKV_BAD_REQUEST);
        l.reserved2 = 0;
        for (uint16_t count = 0; count < 5; count++) {
            l.count = count;
            memcpy(message, &l, sizeof l);
            CHECK_EQ(parse(bytes), count == 2 ? FKV_OK : FKV_BAD_REQUEST);
        }
        put_list(op, 0);
        CHECK_EQ(parse(bytes), FKV_BAD_REQUEST);
        put_list(op, 1);
        uint32_t epoch = 1 << 20;
        memcpy(message + sizeof l + 4, &epoch, sizeof epoch);
        CHECK_EQ(parse(bytes), FKV_BAD_REQUEST);
    }
    put_records(1 << 20);
    CHECK_EQ(parse(bytes), FKV_BAD_REQUEST);
    REFUSED(pulled, m.status = FKV_BUSY);
    REFUSED(pulled, m.version = 0);
    REFUSED(pulled, m.epoch = 1 << 20);
    REFUSED(pulled, m.reserved = 1);
    REFUSED(pulled, m.reserved2 = 1);
    REFUSED(forget, m.status = FKV_TABLE_FULL);
#define REFUSED_OFFER(change)                    \
    do {                                         \
        fkv_peer_value_offer m = announce;       \
        change;                                  \
        put_announce(20000, FKV_RECORD_BULK);    \
        memcpy(message, &m, sizeof m);           \
        CHECK_EQ(parse(bytes), FKV_BAD_REQUEST); \
    } while (0)
    REFUSED_OFFER(m.reserved = 1);
    REFUSED_OFFER(m.reserved2 = 1);
    REFUSED_OFFER(m.reserved3 = 1);
    REFUSED_OFFER(m.epoch = 1 << 20);
    REFUSED_OFFER(m.addr = m.region_addr - 1);
    REFUSED_OFFER(m.addr = m.region_addr + 10001);
    REFUSED_OFFER(m.region_bytes = 20099);
    REFUSED_OFFER(m.addr = UINT64_MAX);
    put_announce(0, FKV_RECORD_BULK);
    CHECK_EQ(parse(bytes), FKV_BAD_REQUEST);
    put_announce(1000, FKV_RECORD_PUT);
    CHECK_EQ(parse(bytes), FKV_BAD_REQUEST);
}

TEST(random_messages_parse_to_something_within_the_message) {
    uint64_t random = check_seed();
    for (int i = 0; i < 200000; i++) {
        put_any(i % 10);
        for (int k = 0; k < 3; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            message[(random >> 40) % bytes] ^= (uint8_t)(1u << (random >> 33) % 8);
        }
        parse(bytes - (random >> 20) % 3);
    }
}

int main(int argc, char **argv) {
    RUN(messages_come_as_they_were_put);
    RUN(every_truncation_and_every_byte_too_many_is_refused);
    RUN(a_message_that_breaks_one_rule_is_refused);
    RUN(random_messages_parse_to_something_within_the_message);
    return check_end(argc, argv);
}
