/* backlog_test.c: what copies that join may lack is there in order, and takes no more memory than it may. */
#include "../check.h"
#include <malloc.h>
#include <string.h>
#include "../../replication/backlog.h"
#include "../../replication/backup.h"
#include "../../replication/sender.h"

enum { ROOM = 8 << 20, RECORDS = ROOM / 64 }; /* more records than there is room for */
static backlog_budget budget;
static backlog *b;

static void up(uint64_t most) {
    budget = (backlog_budget){ .most = most };
    b = backlog_begin(&budget, 10);
    CHECK(b);
}
static void down(void) {
    backlog_free(b);
    CHECK_EQ(budget.taken, 0);
}

static void note_in(backlog *b, fkv_record_kind kind) {
    fkv_record r = { .kind = (uint8_t)kind,
                     .key_bytes = 5,
                     .value_bytes = kind == FKV_RECORD_BULK ? 1 << 20 : 7,
                     .version = b->end + 1,
                     .client = 1,
                     .sequence = b->end + 1 };
    CHECK(backlog_note(b, b->end + 1, &r, (const uint8_t *)"alpha", (const uint8_t *)"a value"));
}
static void note(fkv_record_kind kind) { note_in(b, kind); }
static size_t allocated(void) { return mallinfo2().uordblks + mallinfo2().hblkhd; }

TEST(records_are_there_from_the_first_that_was_kept) {
    up(UINT64_MAX);
    for (int i = 0; i < 1000; i++) note(i % 3 ? FKV_RECORD_PUT : FKV_RECORD_BULK);
    CHECK_EQ(backlog_first(b), 11);
    static uint8_t message[PEER_MESSAGE_MIN];
    uint16_t count;
    for (uint64_t lsn = backlog_first(b); lsn <= b->end; lsn += count) {
        uint32_t at = 0, bytes = backlog_fill(b, lsn, message, sizeof message, &count);
        fkv_record r;
        const uint8_t *key, *value;
        for (uint16_t i = 0; i < count; i++) {
            CHECK(wire_next_record(message, bytes, &at, &r, &key, &value));
            CHECK_EQ(r.version, lsn + i);
        }
        CHECK_EQ(at, bytes);
    }
    backlog_trim(b, 700);
    CHECK(backlog_first(b) <= 701 && backlog_first(b) > 690);
    down();
}

/* A small record behind a large one begins a piece of its own. */
TEST(small_and_large_records_in_turn_take_no_more_memory_than_there_may_be) {
    size_t before = allocated();
    up(ROOM);
    for (int i = 0; i < RECORDS; i++) note(i % 2 ? FKV_RECORD_BULK : FKV_RECORD_PUT);
    CHECK(allocated() - before <= ROOM + ROOM / 4); /* what malloc adds to each */
    CHECK(budget.taken <= ROOM && budget.taken > ROOM / 2);
    CHECK(b->end - backlog_first(b) > RECORDS / 4);
    down();
}

/* A copy that comes back asks for records in order, another one meanwhile for others, and what both have goes. */
TEST(records_are_found_in_any_order) {
    static const int asked[] = { 900, 20, 21, 500, 22, 1010, 11 };
    static uint8_t message[PEER_MESSAGE_MIN];
    up(UINT64_MAX);
    for (int i = 0; i < 1000; i++) note(FKV_RECORD_PUT);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        uint32_t at = 0;
        uint16_t count;
        fkv_record r;
        const uint8_t *key, *value;
        uint32_t bytes = backlog_fill(b, (uint64_t)asked[i], message, sizeof message, &count);
        CHECK(wire_next_record(message, bytes, &at, &r, &key, &value));
        CHECK_EQ(r.version, (uint64_t)asked[i]);
        if (i == 3) backlog_trim(b, 10);
    }
    backlog_trim(b, 1009);
    CHECK(!backlog_is_large(b, 1010, &(fkv_record){ 0 }, &(const uint8_t *){ NULL }));
    down();
}

/* What went before is counted no more, and of what is in one message with it only what follows. */
TEST(room_is_that_of_all_records_that_follow) {
    up(UINT64_MAX);
    for (int i = 0; i < 1000; i++) note(i % 3 ? FKV_RECORD_PUT : FKV_RECORD_BULK);
    uint64_t room = 0;
    for (uint64_t lsn = b->end; lsn > 10; lsn--) {
        CHECK_EQ(backlog_room_behind(b, lsn), room);
        room += record_room(true, 5, (lsn - 11) % 3 ? 7 : 1 << 20);
        if (lsn == 500) backlog_trim(b, 400);
        if (lsn == backlog_first(b)) break;
    }
    CHECK_EQ(backlog_room_behind(b, backlog_first(b) - 1), room);
    CHECK_EQ(backlog_room_behind(b, 10), room);
    backlog_trim(b, b->end);
    CHECK_EQ(backlog_room_behind(b, 10), 0);
    down();
}

/* However much one shard's copies lack, those of another one are kept something for. */
TEST(a_shard_that_begins_finds_room_and_then_has_as_much_as_the_other) {
    up(ROOM);
    backlog *other = backlog_begin(&budget, 10);
    CHECK(other);
    for (int i = 0; i < RECORDS; i++) note(FKV_RECORD_PUT);
    CHECK(b->taken > ROOM / 4 * 3 && b->taken < ROOM / 8 * 7);
    for (int i = 0; i < RECORDS; i++) note_in(other, FKV_RECORD_PUT);
    CHECK(other->taken > ROOM / 10 && budget.taken <= ROOM);
    for (int i = 0; i < RECORDS; i++) {
        note(FKV_RECORD_PUT);
        note_in(other, FKV_RECORD_PUT);
        CHECK(budget.taken <= ROOM);
    }
    CHECK(b->taken > ROOM / 8 * 3 && other->taken > ROOM / 8 * 3);
    backlog_free(other);
    down();
}

int main(int argc, char **argv) {
    RUN(records_are_there_from_the_first_that_was_kept);
    RUN(small_and_large_records_in_turn_take_no_more_memory_than_there_may_be);
    RUN(records_are_found_in_any_order);
    RUN(room_is_that_of_all_records_that_follow);
    RUN(a_shard_that_begins_finds_room_and_then_has_as_much_as_the_other);
    return check_end(argc, argv);
}
