/* lookup_random_test.c: many GETs at once against an owner that changes, grows, restarts, falls silent and is cut off, in an
 * order that a seed decides (puppet.h), also in the middle of a READ. Every answer is compared with what was true.
 *
 * The truth: each key has a list of its values with the step at which each took effect. A GET that lived from step s to step t
 * may return what was true at s, or what became true up to t, and nothing else. A new owner begins, with an empty table, only
 * when every lease that the old one granted has run out; the old memory stays readable, or is refused, or its rkeys open other
 * memory.
 */
#include <stdio.h>
#include "puppet.h"

enum { KEYS = 24, GETS = 16, HISTORY = 4096, VALUE_MOST = 1200 };
#if defined(__SANITIZE_ADDRESS__)
enum { RUNS = 40, STEPS = 4000 };
#else
enum { RUNS = 200, STEPS = 4000 };
#endif
static const uint64_t MS = 1000000;

static puppet *p;
static guest c;
static uint64_t seed, step;
static struct { uint64_t step; uint32_t value; } history[KEYS][HISTORY];   /* value 0: absent */
static int changes[KEYS];
static struct { bool busy; int key; uint64_t started; outcome o; } get[GETS];
static uint64_t answered, in_place, lease_end;
static uint32_t next_value;

static uint32_t any(uint32_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % below);
}
static void name_of(int key, char out[64]) { snprintf(out, 64, key % 4 ? "key-%d" : "a key with a long name, number %d", key); }

static uint32_t make_value(char *out, uint32_t value) {
    uint32_t n = 12 + value * 2654435761u % (value % 7 ? 100 : VALUE_MOST - 12);
    for (uint32_t i = 0; i < n; i++) out[i] = (char)('a' + (value * 31 + i * (1 + value % 5)) % 26);
    snprintf(out, 12, "%010u|", value);
    out[11] = '.';
    out[n] = 0;
    return n;
}
static void note(int key, uint32_t value) {
    CHECK(changes[key] < HISTORY);
    history[key][changes[key]].step = step;
    history[key][changes[key]++].value = value;
}
static void judge(int key, uint64_t from, fkv_status status, const char *value, uint32_t bytes) {
    char should[VALUE_MOST];
    uint32_t found = 0;
    if (status == FKV_OK) {
        found = (uint32_t)strtoul(value, NULL, 10);
        CHECK_EQ(bytes, make_value(should, found));
        CHECK(memcmp(value, should, bytes) == 0);
    }
    int i = changes[key] - 1;
    while (i > 0 && history[key][i].step > from) i--;
    for (; i < changes[key]; i++) if (history[key][i].value == found) return;
    fprintf(stderr, "key %d from step %llu to %llu: returned %u\n", key, (unsigned long long)from, (unsigned long long)step, found);
    CHECK(!"an answer that was never true meanwhile");
}

/* ---- what may happen ---- */

static void finish_gets(void) {
    for (int i = 0; i < GETS; i++) {
        if (!get[i].busy || !get[i].o.done) continue;
        fkv_status s = get[i].o.status;
        get[i].busy = false;
        if (s == FKV_OK || s == FKV_NOT_FOUND) {
            answered++;
            judge(get[i].key, get[i].started, s, get[i].o.value, get[i].o.bytes);
        } else {
            CHECK(s == FKV_TIMEOUT || s == FKV_DISCONNECTED || s == FKV_SHARD_CLOSED || s == FKV_BUSY || s == FKV_CLOSED);
        }
    }
}
static void start_get(void) {
    char name[64];
    for (int i = 0; i < GETS; i++) {
        if (get[i].busy) continue;
        get[i].busy = true;
        get[i].key = (int)any(KEYS);
        get[i].started = step;
        name_of(get[i].key, name);
        guest_start(&c, name, 20 + any(2000), &get[i].o);
        return;
    }
}
static void get_in_place(void) {
    char name[64];
    static uint8_t value[VALUE_MOST];
    int key = (int)any(KEYS);
    lookup_result r;
    name_of(key, name);
    lookup_key k = { .bytes = (uint8_t *)name, .count = (uint32_t)strlen(name) };
    if (!lookup_direct(c.l, &k, value, sizeof value, &r)) return;
    in_place++;
    judge(key, step, r.status, (char *)value, r.value_bytes);
}
static void change(void) {
    char name[64], value[VALUE_MOST];
    int key = (int)any(KEYS);
    table_busy why;
    name_of(key, name);
    step++;
    if (any(4) == 0) {
        table_op op = host_op(p->h, TABLE_DELETE, name, strlen(name), NULL, 0);
        if (host_do(p->h, &op, NULL, &why) == FKV_OK) note(key, 0);
        return;
    }
    uint32_t bytes = make_value(value, ++next_value);
    table_op op = host_op(p->h, TABLE_PUT, name, strlen(name), value, bytes);
    if (host_do(p->h, &op, NULL, &why) == FKV_OK) note(key, next_value);
}
static void grow(void) {
    static uint32_t more;
    char name[64];
    table_busy why;
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "more-%u", more++);
        table_op op = host_op(p->h, TABLE_PUT, name, strlen(name), name, strlen(name));
        host_do(p->h, &op, NULL, &why);
    }
}
static void turn(void) {
    session_flush(c.s);
    session_poll(c.s);
    session_tick(c.s);
}
static void some_read(void) {
    puppet_read *r = puppet_first(p);
    if (!r) return;
    if (any(3) == 0) puppet_carry(p, r, r->copied + any(r->r.bytes + 1));
    else puppet_complete(p, r);
}
/* The owner stops, and a new one takes over when the last lease has run out. */
static void restart(void) {
    if (p->olds > 30 || p->memories > PUPPET_MEMORY / 2) return;
    p->silent = true;
    while (p->now_ns <= lease_end) {
        puppet_pass(p, 50 * MS);
        turn();
        if (any(2)) some_read();
        finish_gets();
    }
    int known = p->memories;
    puppet_restart(p, any(3) == 0);
    if (any(2)) for (int i = 0; i < known; i++) p->memory[i].revoked = false;
    step++;
    for (int i = 0; i < KEYS; i++) note(i, 0);
    p->silent = false;
    if (any(2)) puppet_break(p, FAB_RETRY_EXC_ERR);
}
static void one_step(void) {
    if (!p->silent && p->grants) lease_end = p->now_ns + p->lease_ns;   /* it may grant at any time */
    uint32_t what = any(1000);
    if (what < 200) start_get();
    else if (what < 350) change();
    else if (what < 650) some_read();
    else if (what < 800) turn();
    else if (what < 930) get_in_place();
    else if (what < 970) puppet_pass(p, any(5 * (uint32_t)MS));
    else if (what < 976) puppet_pass(p, any(400) * MS);
    else if (what < 979) puppet_break(p, any(2) ? FAB_RETRY_EXC_ERR : FAB_SUCCESS);
    else if (what < 982) p->silent = any(4) == 0;
    else if (what < 985) p->grants = any(4) != 0;
    else if (what < 988) p->unreachable = any(4) == 0;
    else if (what < 991) p->by_hand = !p->by_hand;
    else if (what < 993) p->direct = !p->direct;
    else if (what < 995) p->queue_room = any(2) ? 1 + any(4) : 0;
    else if (what < 997) grow();
    else if (what < 998) restart();
    else if (p->no_credits) puppet_credits(p);
    else p->no_credits = true;
    finish_gets();
}

TEST(every_answer_was_true_at_some_time_during_its_get) {
    seed = check_seed();
    for (int run = 0; run < RUNS; run++) {
        memset(get, 0, sizeof get);
        memset(changes, 0, sizeof changes);
        step = 1;
        for (int i = 0; i < KEYS; i++) note(i, 0);
        p = puppet_new();
        p->lease_ns = (100 + any(900)) * MS;
        p->direct = any(2);
        p->by_hand = true;
        p->duplicates = any(2);
        lookup_config config = guest_config(&c, p);
        config.max_gets = 8 + any(16);
        guest_open(&c, p, &config);
        guest_connect(&c);
        for (int i = 0; i < STEPS; i++) one_step();
        guest_down(&c);
        finish_gets();
        for (int i = 0; i < GETS; i++) CHECK(!get[i].busy);
    }
    CHECK(answered > RUNS * STEPS / 50);
    CHECK(in_place > RUNS * STEPS / 200);
}

int main(int argc, char **argv) {
    RUN(every_answer_was_true_at_some_time_during_its_get);
    return check_end(argc, argv);
}
