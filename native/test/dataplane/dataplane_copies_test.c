/* dataplane_copies_test.c: the data planes of an owner and of its backups, joined by the test (copies_rig.h). What was
 * answered is found at the next owner, whatever was on its way. */
#include "copies_rig.h"

static raw c;
enum { OWNER = 0, NEXT = 1, THIRD = 2, CLIENT = 7, ALL = 7, BOTH = 3 };

/* The owner with its backups, all of them with nothing, and a client. */
static void up(uint32_t copies) {
    for (int s = 0; s < SERVERS; s++)
        if (copies >> s & 1) server_up(s, COPY_MEMORY);
    server_leads(OWNER, copies, 1);
    for (int s = 1; s < SERVERS; s++)
        if (copies >> s & 1) CHECK_EQ(line_opens(OWNER, s), FKV_OK);
    for (int s = 1; s < SERVERS; s++) line_flows(OWNER, s);
    CHECK(server_serves(OWNER));
    raw_up(&c, &servers[OWNER].r, CLIENT);
}
static void down(void) {
    raw_down(&c);
    servers_down();
}
/* The owner dies, and its client goes on at the next one, with the same sequences. */
static void fail_over(int next, uint32_t copies) {
    uint64_t sequence = c.sequence[number];
    raw_down(&c);
    server_dies(OWNER);
    server_leads(next, copies, 2);
    raw_up(&c, &servers[next].r, CLIENT);
    c.sequence[number] = sequence;
}
static void serve_after_leases(int s) {
    leases_end();
    CHECK(server_serves(s));
}
static uint64_t drawn; /* as seen last */
static void do_look(worker *w, void *ctx) {
    (void)ctx;
    drawn = here(w)->repl.owner.last;
}
static void wait_until_drawn(int s, uint64_t lsn) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    errand e = { 0 };
    for (drawn = 0; drawn < lsn; CHECK(fkv_now_ns() < until)) visit_server(s, do_look, &e);
    CHECK_EQ(drawn, lsn);
}
static uint64_t ask_again(const char *key, const char *value, uint64_t sequence) {
    fkv_request q = raw_request(&c, value ? FKV_OP_PUT : FKV_OP_DELETE, key);
    c.sequence[number]--;
    q.sequence = sequence;
    q.flags = FKV_REQUEST_RETRY;
    q.value_bytes = value ? (uint32_t)strlen(value) : 0;
    return raw_send(&c, &q, key, value, q.value_bytes);
}
static uint64_t delete_begin(const char *key) {
    fkv_request q = raw_request(&c, FKV_OP_DELETE, key);
    return raw_send(&c, &q, key, NULL, 0);
}
static void expect_none(const char *key) {
    fkv_reply reply;
    CHECK(!raw_get(&c, key, &reply));
    CHECK_EQ(reply.status, FKV_NOT_FOUND);
}
/* The i-th key of the shard. */
static const char *key_at(uint32_t i) {
    static char keys[8][32];
    static uint32_t turn;
    char *key = keys[turn++ % 8];
    for (uint32_t n = i * 1000;; n++) {
        snprintf(key, sizeof keys[0], "key-%u", n);
        if (raw_shard_of(0, key, strlen(key)) == number) return key;
    }
}

/* ---- */

TEST(what_was_answered_is_found_at_the_next_owner_and_a_retry_gets_the_same_answer) {
    up(BOTH);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(OWNER, 1);
    line_flows(OWNER, NEXT);
    raw_message *m = raw_receive(&c, id);
    CHECK_EQ(m->reply.status, FKV_OK);
    uint64_t version = m->reply.version;
    free(m);
    id = delete_begin("alpha");
    wait_until_drawn(OWNER, 2);
    line_flows(OWNER, NEXT);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    id = raw_put_begin(&c, "alpha", "two", 3);
    wait_until_drawn(OWNER, 3);
    line_flows(OWNER, NEXT);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    fail_over(NEXT, 1 << NEXT);
    CHECK(!server_serves(NEXT)); /* the owner of before may be relied on */
    serve_after_leases(NEXT);
    raw_expect(&c, "alpha", "two");
    m = raw_receive(&c, ask_again("alpha", "one", 1));
    CHECK(m->reply.status == FKV_OK && m->reply.version == version);
    free(m);
    raw_expect(&c, "alpha", "two");
    m = raw_receive(&c, raw_put_begin(&c, "alpha", "three", 5));
    CHECK(m->reply.status == FKV_OK && m->reply.version > fkv_version(2, 0));
    free(m);
    down();
}

TEST(what_was_lost_with_a_connection_is_sent_again_over_the_next) {
    up(BOTH);
    uint64_t id[6];
    for (uint32_t i = 0; i < 6; i++) {
        id[i] = raw_put_begin(&c, key_at(i), "v", 1);
        wait_until_drawn(OWNER, i + 1);
        owner_sends(OWNER, NEXT);
        if (i == 1) CHECK(backup_receives(OWNER, NEXT) && backup_receives(OWNER, NEXT)); /* not acknowledged */
        if (i == 3) line_breaks(OWNER, NEXT, true);
        if (i == 4) CHECK_EQ(line_opens(OWNER, NEXT), FKV_OK);
    }
    line_breaks(OWNER, NEXT, false); /* of which the owner does not hear before the next comes */
    CHECK_EQ(line_opens(OWNER, NEXT), FKV_OK);
    line_flows(OWNER, NEXT);
    for (uint32_t i = 0; i < 6; i++) CHECK_EQ(raw_end(&c, id[i]), FKV_OK);
    fail_over(NEXT, 1 << NEXT);
    serve_after_leases(NEXT);
    for (uint32_t i = 0; i < 6; i++) raw_expect(&c, key_at(i), "v");
    down();
}

/* A put, a removal, and a removal of what the copies do not have any more. */
TEST(what_a_new_owner_inherits_is_committed_when_the_others_have_it) {
    up(ALL);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(OWNER, 1);
    line_flows(OWNER, NEXT);
    line_flows(OWNER, THIRD);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    line_flows(OWNER, NEXT); /* hears that it is committed */
    delete_begin("alpha");
    raw_put_begin(&c, key_at(1), "two", 3);
    raw_put_begin(&c, key_at(2), "three", 5);
    wait_until_drawn(OWNER, 4);
    owner_sends(OWNER, NEXT);
    while (backup_receives(OWNER, NEXT)) {}
    fail_over(NEXT, 1 << NEXT | 1 << THIRD);
    leases_end();
    CHECK(!server_serves(NEXT)); /* the third may know of none of them */
    CHECK_EQ(line_opens(NEXT, THIRD), FKV_OK);
    line_flows(NEXT, THIRD);
    CHECK(server_serves(NEXT));
    expect_none("alpha");
    raw_expect(&c, key_at(1), "two");
    raw_expect(&c, key_at(2), "three");
    CHECK_EQ(raw_end(&c, ask_again("alpha", NULL, 2)), FKV_OK);
    id = raw_put_begin(&c, "alpha", "four", 4);
    wait_until_drawn(NEXT, 5);
    line_flows(NEXT, THIRD);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    /* and the third, alone */
    uint64_t sequence = c.sequence[number];
    raw_down(&c);
    server_dies(NEXT);
    server_leads(THIRD, 1 << THIRD, 3);
    serve_after_leases(THIRD);
    raw_up(&c, &servers[THIRD].r, CLIENT);
    c.sequence[number] = sequence;
    raw_expect(&c, "alpha", "four");
    raw_expect(&c, key_at(1), "two");
    CHECK_EQ(raw_end(&c, ask_again(key_at(2), "three", 4)), FKV_OK);
    down();
}

TEST(what_only_another_copy_has_is_dropped_there_and_made_anew_by_its_retry) {
    up(ALL);
    raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(OWNER, 1);
    owner_sends(OWNER, THIRD);
    CHECK(backup_receives(OWNER, THIRD));
    fail_over(NEXT, 1 << NEXT | 1 << THIRD);
    CHECK_EQ(line_opens(NEXT, THIRD), FKV_OK);
    line_flows(NEXT, THIRD);
    serve_after_leases(NEXT);
    line_flows(NEXT, THIRD); /* leases of now */
    expect_none("alpha");
    uint64_t id = ask_again("alpha", "one", 1);
    wait_until_drawn(NEXT, 1);
    line_flows(NEXT, THIRD);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    raw_expect(&c, "alpha", "one");
    down();
}

TEST(a_copy_that_is_removed_is_waited_for_no_more) {
    up(BOTH);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(OWNER, 1);
    line_breaks(OWNER, NEXT, true);
    server_is_left(OWNER, 1 << OWNER, 1, 2);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    CHECK_EQ(line_opens(OWNER, NEXT), FKV_NOT_OWNER);
    CHECK_EQ(raw_put(&c, "alpha", "two", 3), FKV_OK);
    down();
}

static void follow_status(fkv_peer_follow f, fkv_status expected) {
    errand e = errand_on(OWNER, NEXT);
    e.follow = f;
    visit_server(OWNER, do_begin, &e);
    CHECK_EQ(e.status, expected);
    if (e.status == FKV_OK) visit_server(OWNER, do_end, &e);
}
TEST(who_cannot_follow_is_refused) {
    up(BOTH);
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(OWNER, 1);
    line_flows(OWNER, NEXT);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    line_breaks(OWNER, NEXT, true);
    fkv_peer_follow good = { .op = FKV_PEER_FOLLOW,
                             .shard = number,
                             .epoch = 1,
                             .lease_ms = 1,
                             .id = id_of(NEXT),
                             .prepared = 1,
                             .committed = 1 },
                    f = good;
    follow_status(good, FKV_OK);
    f.id = 1; /* unknown */
    follow_status(f, FKV_NOT_OWNER);
    f = good, f.epoch = 2; /* there is a later owner */
    follow_status(f, FKV_NOT_OWNER);
    f = good, f.prepared = 2; /* more than there is */
    follow_status(f, FKV_NOT_OWNER);
    f = good, f.prepared = f.committed = 0; /* it lacks what is committed */
    follow_status(f, FKV_NOT_OWNER);
    f = good, f.shard = (number + 1) % RIG_SHARDS; /* not here */
    follow_status(f, FKV_NOT_OWNER);
    f = good, f.shard = UINT32_MAX;
    follow_status(f, FKV_NOT_OWNER);
    errand e = errand_on(NEXT, OWNER); /* who is a copy itself */
    e.follow = good;
    visit_server(NEXT, do_begin, &e);
    CHECK_EQ(e.status, FKV_NOT_OWNER);
    down();
}

TEST(an_acknowledgement_of_what_was_not_sent_is_none) {
    up(BOTH);
    raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(OWNER, 1);
    errand e = errand_on(OWNER, NEXT);
    e.ack = (fkv_peer_ack){ .shard = number, .epoch = 1, .prepared = 1 };
    visit_server(OWNER, do_acked, &e);
    CHECK(!e.yes);
    down();
}

/* Filled by one client at a time, so the next request is the one that is refused. */
TEST(a_change_that_a_backup_has_no_room_for_is_refused_before_it_is_sent) {
    static uint8_t value[8000];
    server_up(OWNER, COPY_MEMORY);
    server_up(NEXT, 4 << 20);
    server_leads(OWNER, BOTH, 1);
    CHECK_EQ(line_opens(OWNER, NEXT), FKV_OK);
    line_flows(OWNER, NEXT);
    CHECK(server_serves(OWNER));
    raw_up(&c, &servers[OWNER].r, CLIENT);
    fkv_status s = FKV_OK;
    uint32_t n = 0;
    for (; s == FKV_OK; n++) {
        uint64_t id = raw_put_begin(&c, key_at(n), value, sizeof value);
        errand e = errand_on(OWNER, NEXT);
        for (drawn = 0; drawn <= n && !c.first;) {
            visit_server(OWNER, do_look, &e);
            raw_poll(&c);
        }
        line_flows(OWNER, NEXT); /* each is taken: copies_rig.h checks that */
        s = raw_end(&c, id);
    }
    CHECK_EQ(s, FKV_TABLE_FULL);
    CHECK(n > 300);
    down();
}

/* ---- at random ---- */

enum { KEYS = 6, STEPS = 400, RUNS = 12 };
static uint64_t dice;
static uint32_t roll(uint32_t sides) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice >> 33) % sides;
}
/* One key, which has one change under way at most. */
typedef struct one_key {
    bool under_way;
    uint64_t id, sequence;
    char value[16]; /* of the latest change */
} one_key;
static one_key keys[KEYS];
static int owner;
static uint32_t left; /* servers that run, as bits */

static void change(uint32_t k, uint32_t number_of_change) {
    one_key *x = &keys[k];
    if (x->under_way) return;
    snprintf(x->value, sizeof x->value, "%u", number_of_change);
    x->id = raw_put_begin(&c, key_at(k), x->value, (uint32_t)strlen(x->value));
    x->sequence = c.sequence[number];
    x->under_way = true;
}
static void hear_answers(void) {
    raw_poll(&c);
    for (one_key *x = keys; x < keys + KEYS; x++) {
        raw_message *m = c.first;
        while (x->under_way && m && m->reply.id != x->id) m = m->next;
        if (!x->under_way || !m) continue;
        m = raw_receive(&c, x->id);
        if (m->reply.status == FKV_OK)
            x->under_way = false;
        else
            x->id = ask_again(key_at((uint32_t)(x - keys)), x->value, x->sequence);
        free(m);
    }
}
static void all_flow(void) {
    for (int s = 0; s < SERVERS; s++) {
        if (s == owner || !(left >> s & 1)) continue;
        if (!lines[owner][s].up) CHECK_EQ(line_opens(owner, s), FKV_OK);
        line_flows(owner, s);
    }
}
static void owner_dies(uint32_t epoch) {
    uint64_t sequence = c.sequence[number];
    raw_down(&c);
    server_dies(owner);
    left &= ~(1u << owner);
    do owner = (int)roll(SERVERS);
    while (!(left >> owner & 1));
    server_leads(owner, left, epoch);
    leases_end();
    all_flow();
    all_flow();
    CHECK(server_serves(owner));
    raw_up(&c, &servers[owner].r, CLIENT);
    c.sequence[number] = sequence;
    for (uint32_t k = 0; k < KEYS; k++)
        if (keys[k].under_way) keys[k].id = ask_again(key_at(k), keys[k].value, keys[k].sequence);
}
static void step(uint32_t i) {
    int s = (int)roll(SERVERS);
    bool runs = s != owner && left >> s & 1;
    switch (roll(8)) {
    case 0:
    case 1: change(roll(KEYS), i); break;
    case 2: owner_sends(owner, s); break;
    case 3:
    case 4:
        if (runs) backup_receives(owner, s);
        break;
    case 5:
        if (runs) backup_answers(owner, s);
        break;
    case 6: hear_answers(); break;
    default:
        if (!runs) break;
        if (!lines[owner][s].up)
            CHECK_EQ(line_opens(owner, s), FKV_OK);
        else if (roll(3) == 0)
            line_breaks(owner, s, roll(2));
        else
            owner_heartbeats(owner, s);
    }
}
/* Each change is made once in the end, so each key has the value of its latest. */
TEST(nothing_is_lost_whenever_owners_die_and_lines_break) {
    for (uint64_t run = 0; run < RUNS; run++) {
        dice = check_seed() + run;
        owner = OWNER;
        left = ALL;
        memset(keys, 0, sizeof keys);
        up(ALL);
        uint32_t deaths[2] = { roll(STEPS), roll(STEPS) }, epoch = 1;
        for (uint32_t i = 0; i < STEPS; i++) {
            step(i);
            for (int k = 0; k < 2; k++)
                if (deaths[k] == i) owner_dies(++epoch);
        }
        for (bool under_way = true; under_way;) {
            all_flow();
            hear_answers();
            under_way = false;
            for (uint32_t k = 0; k < KEYS; k++) under_way |= keys[k].under_way;
        }
        for (uint32_t k = 0; k < KEYS; k++)
            if (keys[k].value[0]) raw_expect(&c, key_at(k), keys[k].value);
        down();
    }
}

int main(int argc, char **argv) {
    RUN(what_was_answered_is_found_at_the_next_owner_and_a_retry_gets_the_same_answer);
    RUN(what_was_lost_with_a_connection_is_sent_again_over_the_next);
    RUN(what_a_new_owner_inherits_is_committed_when_the_others_have_it);
    RUN(what_only_another_copy_has_is_dropped_there_and_made_anew_by_its_retry);
    RUN(a_copy_that_is_removed_is_waited_for_no_more);
    RUN(who_cannot_follow_is_refused);
    RUN(an_acknowledgement_of_what_was_not_sent_is_none);
    RUN(a_change_that_a_backup_has_no_room_for_is_refused_before_it_is_sent);
    RUN(nothing_is_lost_whenever_owners_die_and_lines_break);
    return check_end(argc, argv);
}
