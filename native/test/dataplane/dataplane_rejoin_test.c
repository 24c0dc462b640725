/* dataplane_rejoin_test.c: a copy that was away for too long joins anew with what it has: only values that differ are READ,
 * and what its owner has no more goes (docs/rejoin.md). Between real data planes. */
#include "../../replication/backup.h"
#include "join_rig.h"
#include "large_values.h"

enum { KEYS = 2000, VALUE = 100, AT_ONCE = 32 };

/* Where backups do not let the owner answer, for now, it is another change that is sent again, as a client does. */
static void change_some(fkv_op op, uint32_t from, uint32_t count, int byte) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u, id[AT_ONCE];
    uint8_t value[VALUE];
    char key[32];
    memset(value, byte, sizeof value);
    for (uint32_t i = 0; i < count; i++) {
        fkv_request q = raw_request(&c, op, key_at(from + i, key));
        q.value_bytes = op == FKV_OP_PUT ? VALUE : 0;
        id[i] = raw_send(&c, &q, key, value, q.value_bytes);
    }
    for (uint32_t i = 0; i < count; i++) {
        fkv_status s = raw_end(&c, id[i]);
        CHECK(s == FKV_OK || (s == FKV_SHARD_CLOSED && fkv_now_ns() < until));
        if (s != FKV_OK) change_some(op, from + i, 1, byte);
    }
}
static void change(fkv_op op, uint32_t from, uint32_t to, int byte) {
    for (uint32_t count; from < to; from += count) {
        count = to - from < AT_ONCE ? to - from : AT_ONCE;
        change_some(op, from, count, byte);
    }
}
static void put_values(uint32_t from, uint32_t to, int byte) { change(FKV_OP_PUT, from, to, byte); }
static void delete_keys(uint32_t from, uint32_t to) { change(FKV_OP_DELETE, from, to, 0); }
/* byte 0: they are not there. */
static void values_are(uint32_t from, uint32_t to, int byte) {
    char key[32];
    for (uint32_t i = from; i < to; i++) {
        fkv_reply r;
        uint8_t *v = raw_get(&c, key_at(i, key), &r);
        CHECK_EQ(r.status, byte ? FKV_OK : FKV_NOT_FOUND);
        if (v) CHECK(r.value_bytes == VALUE && v[0] == byte && v[VALUE - 1] == byte);
        free(v);
    }
}

typedef struct look {
    uint64_t digest;
    table_stats table;
    const char *wrong;
} look;
static void do_look(worker *w, void *ctx) {
    look *l = ctx;
    const shard *s = w->by_number[number];
    l->digest = table_digest(s->table);
    l->wrong = table_check(s->table);
    table_get_stats(s->table, &l->table);
}
static look look_at(int s) {
    look l;
    rig_visit(&nodes[s].r, do_look, &l);
    if (l.wrong) check_failed(__FILE__, __LINE__, l.wrong);
    return l;
}
/* Nothing is changed any more. */
static void both_have_the_same(int s, int other) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    look a, b;
    do {
        CHECK(fkv_now_ns() < until);
        a = look_at(s);
        b = look_at(other);
    } while (a.digest != b.digest);
    CHECK_EQ(a.table.entries, b.table.entries);
    CHECK_EQ(a.table.key_value_bytes, b.table.key_value_bytes);
}

/* SECOND has been in sync, and the metadata has it no more. */
static void begin(uint32_t keys) {
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    put_values(0, keys, 1);
    both_have_the_same(FIRST, SECOND);
    CHECK_EQ(node_configures(FIRST, 0, 2, 1), FKV_OK);
}
static void joins_again(int owner, uint32_t config) {
    CHECK_EQ(node_keeps_base(SECOND), FKV_OK);
    node_joins(SECOND, owner, 0, config);
}
static void leads(int from) {
    raw_down(&c);
    fails_over(from, SECOND, 0, nodes[from].epoch + 1);
    raw_up(&c, &nodes[SECOND].r, CLIENT + 1);
}
static void end(void) {
    raw_down(&c);
    down();
}

TEST(only_values_that_differ_are_read) {
    enum { DIFFERENT = 130 };
    begin(KEYS);
    put_values(0, 50, 2);           /* changed */
    delete_keys(50, 100);           /* deleted */
    delete_keys(100, 150);          /* deleted, and put again with the same value */
    put_values(100, 150, 1);        /* ... */
    put_values(KEYS, KEYS + 30, 3); /* new */
    joins_again(FIRST, 3);
    const shard_copy_stats *k = &nodes[SECOND].copied;
    CHECK_EQ(k->kept, KEYS - 150);
    CHECK_EQ(k->entries, DIFFERENT);
    CHECK(k->bytes >= DIFFERENT * (VALUE + sizeof(fkv_scan_entry)));
    CHECK(k->bytes <= DIFFERENT * (VALUE + sizeof(fkv_scan_entry) + 32));
    /* One or two for each; more where the owner's table moves entries meanwhile, for it has just lost many. */
    CHECK(k->reads + k->two_sided >= DIFFERENT && k->reads < KEYS);
    both_have_the_same(FIRST, SECOND);
    leads(FIRST);
    values_are(0, 50, 2);
    values_are(50, 100, 0);
    values_are(100, KEYS, 1);
    values_are(KEYS, KEYS + 30, 3);
    end();
}

TEST(a_copy_that_lacks_nothing_reads_nothing) {
    begin(KEYS);
    joins_again(FIRST, 3);
    CHECK_EQ(nodes[SECOND].copied.kept, KEYS);
    CHECK_EQ(nodes[SECOND].copied.entries, 0);
    CHECK_EQ(nodes[SECOND].copied.reads, 0);
    put_values(KEYS, KEYS + 1, 4); /* and follows */
    both_have_the_same(FIRST, SECOND);
    leads(FIRST);
    values_are(0, KEYS, 1);
    values_are(KEYS, KEYS + 1, 4);
    end();
}

/* Its owner's table has shrunk: a page of it is a large part of this one. */
TEST(what_the_owner_has_no_more_goes_however_much_it_is) {
    enum { MANY = 8000 };
    begin(MANY);
    delete_keys(3, MANY);
    joins_again(FIRST, 3);
    CHECK_EQ(nodes[SECOND].copied.kept, 3);
    both_have_the_same(FIRST, SECOND);
    CHECK_EQ(look_at(SECOND).table.entries, 3);
    leads(FIRST);
    values_are(0, 3, 1);
    values_are(3, MANY, 0);
    end();
}

TEST(the_owners_table_may_have_grown) {
    enum { MANY = 8000 };
    begin(100);
    put_values(100, MANY, 2);
    joins_again(FIRST, 3);
    CHECK_EQ(nodes[SECOND].copied.kept, 100);
    both_have_the_same(FIRST, SECOND);
    leads(FIRST);
    values_are(0, 100, 1);
    values_are(100, MANY, 2);
    end();
}

TEST(a_copy_joins_with_its_base_while_the_shard_is_changed) {
    up();
    node_up(SECOND, 1);
    load_begins(&work, FIRST, 1);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    put_values(LOAD_KEYS, KEYS, 1);
    for (uint32_t config = 2; config < 10; config += 2) {
        CHECK_EQ(node_configures(FIRST, 0, config, 1), FKV_OK);
        put_values(LOAD_KEYS, LOAD_KEYS + 20, (int)config);
        joins_again(FIRST, config + 1);
        CHECK(nodes[SECOND].copied.kept > KEYS / 2);
    }
    load_ends(&work);
    both_have_the_same(FIRST, SECOND);
    leads(FIRST);
    load_is_there(&work, &c);
    values_are(LOAD_KEYS, LOAD_KEYS + 20, 8);
    values_are(LOAD_KEYS + 20, KEYS, 1);
    end();
}

/* The owner waits for another copy: SECOND has a change that has not taken effect, and that the next owner lacks. */
TEST(what_was_prepared_and_not_committed_is_not_of_the_base) {
    rig_hold h;
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    node_up(THIRD, 1);
    node_joins(THIRD, FIRST, 1 << SECOND, 2);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    put_values(0, 10, 1);
    both_have_the_same(FIRST, SECOND);
    rig_hold_up_by(&h, &nodes[THIRD].r, number);
    char key[32];
    uint8_t value[VALUE] = { 9 };
    raw_put_begin(&c, key_at(3, key), value, sizeof value);
    raw_put_begin(&c, key_at(11, key), value, sizeof value);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    dataplane_copy_stats copy;
    do CHECK(fkv_now_ns() < until);
    while (copy = copy_stats(SECOND), copy.prepared - copy.committed < 2);
    raw_down(&c);
    node_dies(FIRST);
    rig_let_go(&h);
    CHECK_EQ(node_keeps_base(SECOND), FKV_OK);
    CHECK(!copy_stats(SECOND).known);
    CHECK_EQ(look_at(SECOND).table.prepared, 0);
    CHECK_EQ(look_at(SECOND).table.entries, 10);
    CHECK_EQ(node_leads(THIRD, 0, 2, 200), FKV_OK);
    node_serves(THIRD);
    node_joins(SECOND, THIRD, 0, 201);
    CHECK(nodes[SECOND].copied.kept >= 9);
    both_have_the_same(THIRD, SECOND);
    down();
}

static void imports(int s, uint32_t i, uint64_t version, int byte) {
    char key[32];
    uint8_t entry[sizeof(fkv_scan_entry) + sizeof key + VALUE];
    fkv_scan_entry e = { .version = version, .value_bytes = VALUE, .has_value = 1 };
    e.key_bytes = (uint16_t)strlen(key_at(i, key));
    memcpy(entry, &e, sizeof e);
    memcpy(entry + sizeof e, key, e.key_bytes);
    memset(entry + sizeof e + e.key_bytes, byte, VALUE);
    rig_call import;
    rig_call_init(&import);
    dataplane_import(plane(s), number, entry, (uint32_t)sizeof e + e.key_bytes + VALUE, rig_done, &import);
    CHECK_EQ(rig_wait(&import), FKV_OK);
}

/* An operator has given up what was in the shard: its owner has what is older. */
TEST(a_base_with_other_contents_becomes_what_the_owner_has) {
    begin(10);
    raw_down(&c);
    node_dies(FIRST);
    node_up(THIRD, 2);
    imports(THIRD, 4, 2, 7);                  /* older than what SECOND has */
    imports(THIRD, 5, fkv_version(1, 99), 8); /* newer */
    node_serves(THIRD);
    joins_again(THIRD, 3);
    CHECK_EQ(nodes[SECOND].copied.kept, 0);
    both_have_the_same(THIRD, SECOND);
    raw_up(&c, &nodes[THIRD].r, CLIENT);
    leads(THIRD);
    values_are(0, 4, 0);
    values_are(4, 5, 7);
    values_are(5, 6, 8);
    values_are(6, 10, 0);
    end();
}

/* In the middle of its join: the table has a part of what the first owner has changed, and is the base again. */
TEST(a_join_that_fails_begins_anew_with_what_it_has_by_then) {
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    put_values(0, KEYS, 1);
    node_up(THIRD, 1);
    CHECK_EQ(node_configures(FIRST, 0, 2, 1), FKV_OK);
    node_joins(THIRD, FIRST, 0, 3);
    put_values(0, 100, 2);
    CHECK_EQ(node_keeps_base(SECOND), FKV_OK);
    copy_begins(SECOND, FIRST);
    CHECK_EQ(rig_wait(&nodes[SECOND].caught_up), FKV_OK);
    CHECK(!copy_stats(SECOND).known); /* it counts as nothing */
    delete_keys(100, 150);
    raw_down(&c);
    node_dies(FIRST);
    node_stops_copying(SECOND);
    CHECK_EQ(node_leads(THIRD, 0, 2, 200), FKV_OK);
    node_serves(THIRD);
    joins_again(THIRD, 201);
    CHECK(nodes[SECOND].copied.kept >= KEYS - 150);
    CHECK(nodes[SECOND].copied.entries <= 100);
    both_have_the_same(THIRD, SECOND);
    raw_up(&c, &nodes[THIRD].r, CLIENT);
    leads(THIRD);
    values_are(0, 100, 2);
    values_are(100, 150, 0);
    values_are(150, KEYS, 1);
    end();
}

TEST(large_values_that_are_there_are_not_read) {
    enum { LARGE = 1 << 20 };
    memory one, two;
    begin(10);
    memory_make(&one, &c, LARGE, 1);
    memory_make(&two, &c, LARGE, 2);
    CHECK_EQ(raw_end(&c, large_put_begin(&c, &one, "alpha", LARGE)), FKV_OK);
    char key[32];
    CHECK_EQ(raw_end(&c, large_put_begin(&c, &one, key_at(11, key), LARGE)), FKV_OK);
    joins_again(FIRST, 3);
    CHECK(nodes[SECOND].copied.entries == 2 && nodes[SECOND].copied.bytes > 2 * LARGE);
    both_have_the_same(FIRST, SECOND);
    CHECK_EQ(node_configures(FIRST, 0, 4, 1), FKV_OK);
    CHECK_EQ(raw_end(&c, large_put_begin(&c, &two, "alpha", LARGE)), FKV_OK);
    joins_again(FIRST, 5);
    const shard_copy_stats *k = &nodes[SECOND].copied;
    CHECK(k->kept == 11 && k->entries == 1 && k->bytes > LARGE && k->bytes < LARGE + 4096);
    both_have_the_same(FIRST, SECOND);
    memory_free(&one);
    memory_free(&two);
    end();
}

/* By the clock of each: a base and a list may differ in what has ended. */
TEST(entries_that_expire_are_kept_and_go) {
    begin(10);
    char key[32];
    for (uint32_t i = 20; i < 40; i++) {
        fkv_request q = raw_request(&c, FKV_OP_PUT, key_at(i, key));
        q.value_bytes = 1;
        q.expiry = 3600000;
        CHECK_EQ(raw_ask(&c, &q, key, "x", 1, NULL), FKV_OK);
    }
    CHECK_EQ(node_configures(FIRST, 0, 4, 1), FKV_OK);
    delete_keys(30, 40);
    joins_again(FIRST, 5);
    CHECK_EQ(look_at(SECOND).table.entries, look_at(FIRST).table.entries);
    end();
}

static void do_damage(worker *w, void *ctx) {
    (void)ctx;
    w->by_number[number]->repl.copy->failed = FKV_CORRUPT;
}
TEST(what_is_served_or_leads_or_is_damaged_is_no_base) {
    begin(10);
    CHECK_EQ(node_keeps_base(FIRST), FKV_BUSY);
    rig_visit(&nodes[SECOND].r, do_damage, NULL);
    CHECK_EQ(node_keeps_base(SECOND), FKV_CORRUPT);
    node_up(THIRD, 1);
    node_joins(THIRD, FIRST, 0, 3);
    raw_down(&c);
    node_dies(FIRST);
    CHECK_EQ(node_leads(THIRD, 0, 2, 200), FKV_OK);
    CHECK_EQ(node_keeps_base(THIRD), FKV_BUSY);
    node_serves(THIRD);
    CHECK_EQ(node_keeps_base(THIRD), FKV_BUSY);
    raw_up(&c, &nodes[THIRD].r, CLIENT);
    values_are(0, 10, 1);
    end();
}

static void tests(void) {
    RUN(only_values_that_differ_are_read);
    RUN(a_copy_that_lacks_nothing_reads_nothing);
    RUN(what_the_owner_has_no_more_goes_however_much_it_is);
    RUN(the_owners_table_may_have_grown);
    RUN(a_copy_joins_with_its_base_while_the_shard_is_changed);
    RUN(what_was_prepared_and_not_committed_is_not_of_the_base);
    RUN(a_base_with_other_contents_becomes_what_the_owner_has);
    RUN(a_join_that_fails_begins_anew_with_what_it_has_by_then);
    RUN(large_values_that_are_there_are_not_read);
    RUN(entries_that_expire_are_kept_and_go);
    RUN(what_is_served_or_leads_or_is_damaged_is_no_base);
}

int main(int argc, char **argv) { return join_main(argc, argv, tests, NULL); }
