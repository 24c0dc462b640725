/* dataplane_derive_copies_test.c: changes that an owner makes from the present entry where a shard has copies: the copy
 * has what was made, and as the next owner it answers a retry what the first owner answered, or would have. */
#include "../fields_text.h"
#include "copies_rig.h"
#include "large_values.h"

static raw c;
enum { OWNER = 0, NEXT = 1, CLIENT = 7, BOTH = 3 };

static void up(void) {
    for (int s = 0; s < 2; s++) server_up(s, COPY_MEMORY);
    server_leads(OWNER, BOTH, 1);
    CHECK_EQ(line_opens(OWNER, NEXT), FKV_OK);
    line_flows(OWNER, NEXT);
    CHECK(server_serves(OWNER));
    raw_up(&c, &servers[OWNER].r, CLIENT);
}
static void down(void) {
    raw_down(&c);
    servers_down();
}
static void fail_over(void) {
    uint64_t sequence = c.sequence[number];
    raw_down(&c);
    server_dies(OWNER);
    server_leads(NEXT, 1 << NEXT, 2);
    raw_up(&c, &servers[NEXT].r, CLIENT);
    c.sequence[number] = sequence;
    leases_end();
    CHECK(server_serves(NEXT));
}
/* Its answer; meanwhile what there is for the copy goes there. */
static fkv_reply ask(const fkv_request *q, const void *body) {
    uint64_t id = raw_send(&c, q, "alpha", body, q->value_bytes);
    while (!is_here(&c, id)) {
        if (servers[OWNER].runs) line_flows(OWNER, NEXT);
        raw_poll(&c);
    }
    raw_message *m = raw_receive(&c, id);
    fkv_reply reply = m->reply;
    free(m);
    return reply;
}
static fkv_request request_of(fkv_op op, int64_t by, uint32_t bytes) {
    fkv_request q = raw_request(&c, op, "alpha");
    q.expected = (uint64_t)by;
    q.value_bytes = bytes;
    return q;
}
/* The same change once more. */
static fkv_reply again(fkv_request q, const void *body) {
    q.id = c.next_id++;
    q.flags = FKV_REQUEST_RETRY;
    return ask(&q, body);
}

TEST(the_next_owner_answers_a_retry_the_first_result) {
    up();
    fkv_request five = request_of(FKV_OP_INCREMENT, 5, 0), ten = request_of(FKV_OP_INCREMENT, 10, 0);
    fkv_request tail = request_of(FKV_OP_APPEND, 0, 1), ends = request_of(FKV_OP_TOUCH, 0, 0);
    ends.expiry = 3600000;
    fkv_reply first = ask(&five, NULL);
    CHECK(first.status == FKV_OK && first.expiry_ms == 5);
    CHECK_EQ(ask(&ten, NULL).expiry_ms, 15);
    CHECK_EQ(ask(&tail, "0").expiry_ms, 3);
    CHECK_EQ(ask(&ends, NULL).status, FKV_OK);
    fail_over();
    raw_expect(&c, "alpha", "150");
    fkv_reply got, reply = again(five, NULL);
    CHECK(reply.status == FKV_OK && reply.expiry_ms == 5 && reply.version == first.version);
    CHECK_EQ(again(ten, NULL).expiry_ms, 15);
    CHECK_EQ(again(tail, "0").expiry_ms, 3);
    CHECK_EQ(again(ends, NULL).status, FKV_OK);
    free(raw_get(&c, "alpha", &got));
    CHECK(got.expiry_ms > 0);
    raw_expect(&c, "alpha", "150");
    fkv_request one = request_of(FKV_OP_INCREMENT, 1, 0);
    CHECK_EQ(ask(&one, NULL).expiry_ms, 151);
    down();
}

TEST(the_next_owner_has_the_expiry_that_a_compare_and_swap_kept) {
    fkv_reply before, after;
    up();
    fkv_request first = request_of(FKV_OP_PUT, 0, 1), swap;
    first.expiry = 3600000;
    CHECK_EQ(ask(&first, "1").status, FKV_OK);
    free(raw_get(&c, "alpha", &before));
    swap = request_of(FKV_OP_CAS, (int64_t)before.version, 3);
    swap.flags = FKV_REQUEST_KEEP_EXPIRY;
    CHECK_EQ(ask(&swap, "two").status, FKV_OK);
    fail_over();
    raw_expect(&c, "alpha", "two");
    free(raw_get(&c, "alpha", &after));
    CHECK(before.expiry_ms > 0 && after.expiry_ms == before.expiry_ms);
    down();
}

static fkv_request fields_request(fkv_op op, const char *text, int64_t expected, uint8_t *body) {
    fkv_request q = request_of(op, expected, fields_of(text, body));
    q.codec = FKV_CODEC_FIELDS;
    return q;
}
static void hash_is(const char *text) {
    fkv_reply got;
    uint8_t *value = raw_get(&c, "alpha", &got);
    if (*text) CHECK(got.status == FKV_OK && got.codec == FKV_CODEC_FIELDS);
    if (*text) fields_are(value, got.value_bytes, text);
    CHECK_EQ(got.status == FKV_OK, *text != 0);
    free(value);
}

TEST(the_next_owner_has_the_fields_and_answers_a_retry_the_first_result) {
    uint8_t set_body[128], add_body[128], take_body[128];
    up();
    fkv_request set = fields_request(FKV_OP_SET_FIELDS, "a=1 b=2 c=3", 0, set_body);
    fkv_request add = fields_request(FKV_OP_INCREMENT_FIELD, "b", 40, add_body);
    fkv_request take = fields_request(FKV_OP_DELETE_FIELDS, "a c", 0, take_body);
    CHECK_EQ(ask(&set, set_body).expiry_ms, 3);
    CHECK_EQ(ask(&add, add_body).expiry_ms, 42);
    CHECK_EQ(ask(&take, take_body).expiry_ms, 2);
    fail_over();
    hash_is("b=42");
    CHECK_EQ(again(set, set_body).expiry_ms, 3);
    CHECK_EQ(again(add, add_body).expiry_ms, 42);
    CHECK_EQ(again(take, take_body).expiry_ms, 2);
    hash_is("b=42");
    down();
}

/* Its record is that of a deletion, though the operation has values. */
TEST(the_next_owner_does_not_have_a_hash_whose_last_field_was_deleted) {
    uint8_t set_body[128], take_body[128];
    up();
    fkv_request set = fields_request(FKV_OP_SET_FIELDS, "a=1 b=2", 0, set_body);
    fkv_request take = fields_request(FKV_OP_DELETE_FIELDS, "a b", 0, take_body);
    CHECK_EQ(ask(&set, set_body).expiry_ms, 2);
    CHECK_EQ(ask(&take, take_body).expiry_ms, 2);
    hash_is("");
    fail_over();
    hash_is("");
    CHECK_EQ(again(take, take_body).expiry_ms, 2);
    CHECK_EQ(again(set, set_body).expiry_ms, 2);
    hash_is("");
    down();
}

/* The copy has the record, and nobody was answered. */
TEST(what_the_copy_has_and_nobody_was_answered_is_answered_by_the_next_owner) {
    up();
    fkv_request five = request_of(FKV_OP_INCREMENT, 5, 0), seven = request_of(FKV_OP_INCREMENT, 7, 0);
    CHECK_EQ(ask(&five, NULL).expiry_ms, 5);
    raw_send(&c, &seven, "alpha", NULL, 0);
    do {
        raw_poll(&c);
        owner_sends(OWNER, NEXT);
    } while (!backup_receives(OWNER, NEXT)); /* and does not acknowledge */
    fail_over();
    fkv_reply reply = again(seven, NULL);
    CHECK(reply.status == FKV_OK && reply.expiry_ms == 12);
    CHECK_EQ(again(five, NULL).expiry_ms, 5);
    raw_expect(&c, "alpha", "12");
    down();
}

static void do_room(worker *w, void *ctx) {
    (void)ctx;
    const shard *s = here(w);
    static uint64_t drawn;
    if (!s->repl.copy || s->repl.copy->leads)
        drawn = s->repl.drawn_bytes;
    else
        CHECK_EQ(s->repl.copy->taken, drawn);
}

/* What an owner thinks that its copies have room for rests on the values that come of its changes, not on the requests. */
TEST(owner_and_copy_count_the_same_bytes) {
    enum { PIECE = 200 };
    static uint8_t much[PIECE];
    errand e = { 0 };
    up();
    for (int i = 0; i < 12; i++) {
        fkv_request tail = request_of(FKV_OP_APPEND, 0, sizeof much);
        CHECK_EQ(ask(&tail, much).expiry_ms, (uint64_t)(i + 1) * sizeof much);
        fkv_request ends = request_of(FKV_OP_TOUCH, 0, 0);
        CHECK_EQ(ask(&ends, NULL).status, FKV_OK);
        visit_server(OWNER, do_room, &e);
        visit_server(NEXT, do_room, &e);
    }
    fail_over();
    fkv_reply got;
    free(raw_get(&c, "alpha", &got));
    CHECK_EQ(got.value_bytes, 12 * sizeof much);
    down();
}

TEST(owner_and_copy_count_the_same_bytes_of_a_hash_that_comes_and_goes) {
    uint8_t body[128];
    errand e = { 0 };
    up();
    /* The last two have the memory of the request before them, which left no entry. */
    for (int i = 0; i < 12; i++) {
        static const fkv_op ops[] = { FKV_OP_SET_FIELDS, FKV_OP_DELETE_FIELDS, FKV_OP_PUT, FKV_OP_DELETE };
        fkv_op op = ops[i % 4];
        bool hash = op == FKV_OP_SET_FIELDS || op == FKV_OP_DELETE_FIELDS;
        fkv_request q = hash ? fields_request(op, op == FKV_OP_SET_FIELDS ? "a=1 b=2" : "a b", 0, body)
                             : request_of(op, 0, op == FKV_OP_PUT ? 5 : 0);
        fkv_reply reply = ask(&q, hash ? (const void *)body : "value");
        CHECK(reply.status == FKV_OK && (!hash || reply.expiry_ms == 2));
        visit_server(OWNER, do_room, &e);
        visit_server(NEXT, do_room, &e);
    }
    down();
}

int main(int argc, char **argv) {
    RUN(the_next_owner_answers_a_retry_the_first_result);
    RUN(the_next_owner_has_the_fields_and_answers_a_retry_the_first_result);
    RUN(the_next_owner_does_not_have_a_hash_whose_last_field_was_deleted);
    RUN(the_next_owner_has_the_expiry_that_a_compare_and_swap_kept);
    RUN(what_the_copy_has_and_nobody_was_answered_is_answered_by_the_next_owner);
    RUN(owner_and_copy_count_the_same_bytes);
    RUN(owner_and_copy_count_the_same_bytes_of_a_hash_that_comes_and_goes);
    return check_end(argc, argv);
}
