/* backlog_test.c: what copies that join may lack is there in order, and takes no more memory than it may. */
#include "../check.h"
#include <malloc.h>
#include <string.h>
#include "../../dataplane/backlog.h"
#include "../../dataplane/feed.h"

enum { RECORDS = BACKLOG_ROOM / 64 }; /* more than there is room for */
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

static void note(fkv_record_kind kind) {
    fkv_record r = { .kind = (uint8_t)kind,
                     .key_bytes = 5,
                     .value_bytes = kind == FKV_RECORD_BULK ? 1 << 20 : 7,
                     .version = b->end + 1,
                     .client = 1,
                     .sequence = b->end + 1 };
    CHECK(backlog_note(b, b->end + 1, &r, (const uint8_t *)"alpha", (const uint8_t *)"a value"));
}
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
    up(UINT64_MAX);
    for (int i = 0; i < RECORDS; i++) note(i % 2 ? FKV_RECORD_BULK : FKV_RECORD_PUT);
    CHECK(allocated() - before <= BACKLOG_ROOM + BACKLOG_ROOM / 4); /* what malloc adds to each */
    CHECK(budget.taken <= BACKLOG_ROOM && budget.taken > BACKLOG_ROOM / 2);
    CHECK(b->end - backlog_first(b) > RECORDS / 4);
    down();
}

/* As if copies of other shards lacked as much. */
TEST(each_gives_way_where_all_have_too_much) {
    up(BACKLOG_ROOM / 2);
    for (int i = 0; i < RECORDS; i++) note(i % 2 ? FKV_RECORD_BULK : FKV_RECORD_PUT);
    CHECK(budget.taken <= BACKLOG_ROOM / 2 + (64 << 10));
    CHECK(b->end >= backlog_first(b));
    down();
}

int main(int argc, char **argv) {
    RUN(records_are_there_from_the_first_that_was_kept);
    RUN(small_and_large_records_in_turn_take_no_more_memory_than_there_may_be);
    RUN(each_gives_way_where_all_have_too_much);
    return check_end(argc, argv);
}
