/* lookup_random_test.c: many GETs at once against an owner that changes, grows, restarts, falls silent and is cut off,
 * in an order that a seed decides (puppet.h), also in the middle of a READ. Every answer is compared with what was true
 * (truth.h).
 *
 * A new owner begins, with an empty table, only when every lease that the old one granted has run out; the old memory
 * stays readable, or is refused, or its rkeys open other memory.
 */
#include "guest.h"
#include "random_gets.h"

#if defined(__SANITIZE_ADDRESS__)
enum { RUNS = 40, STEPS = 4000 };
#else
enum { RUNS = 200, STEPS = 4000 };
#endif
static const uint64_t MS = 1000000;

static puppet *p;
static guest c;
static truth t;
static random_get get[RANDOM_GETS];
static outcome answer[RANDOM_GETS];
static uint64_t answered, in_place, lease_end, location_hits, location_stale;

static uint32_t any(uint32_t below) { return truth_any(&t, below); }

/* ---- what may happen ---- */

static void finish_gets(void) {
    for (int i = 0; i < RANDOM_GETS; i++) {
        outcome *o = &answer[i];
        if (!get[i].busy || !o->done) continue;
        if (o->status == FKV_BUSY)
            get[i].busy = false; /* max_gets are under way */
        else
            answered += random_get_end(&t, &get[i], o->status, o->value, o->bytes);
    }
}
static void start_get(void) {
    int i = random_get_begin(&t, get);
    if (i >= 0) guest_start(&c, get[i].name, 20 + any(2000), &answer[i]);
}
static void get_in_place(void) {
    char name[64];
    static uint8_t value[TRUTH_VALUE_MOST];
    int key = (int)any(TRUTH_KEYS);
    lookup_result r;
    truth_key(key, name);
    lookup_key k = { .bytes = (uint8_t *)name, .count = (uint32_t)strlen(name) };
    if (!lookup_direct(c.l, &k, value, sizeof value, &r)) return;
    in_place++;
    truth_judge(&t, key, t.step, r.status, (char *)value, r.value_bytes);
}
static void turn(void) {
    session_flush(c.s);
    session_poll(c.s);
    session_tick(c.s);
}
static void some_read(void) {
    puppet_read *r = puppet_first(p);
    if (!r) return;
    if (any(3) == 0)
        puppet_carry(p, r, r->copied + any(r->r.bytes + 1));
    else
        puppet_complete(p, r);
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
    if (any(2))
        for (int i = 0; i < known; i++) p->memory[i].revoked = false;
    truth_nothing(&t);
    p->silent = false;
    if (any(2)) puppet_break(p, FAB_RETRY_EXC_ERR);
}
static void one_step(void) {
    if (!p->silent && p->grants) lease_end = p->now_ns + p->lease_ns; /* it may grant at any time */
    uint32_t what = any(1000);
    if (what < 200)
        start_get();
    else if (what < 335)
        random_change(&t, p->h);
    else if (what < 350)
        random_breathe(&t, p->h);
    else if (what < 650)
        some_read();
    else if (what < 800)
        turn();
    else if (what < 930)
        get_in_place();
    else if (what < 970)
        puppet_pass(p, any(5 * (uint32_t)MS));
    else if (what < 976)
        puppet_pass(p, any(400) * MS);
    else if (what < 979)
        puppet_break(p, any(2) ? FAB_RETRY_EXC_ERR : FAB_SUCCESS);
    else if (what < 982)
        p->silent = any(4) == 0;
    else if (what < 985)
        p->grants = any(4) != 0;
    else if (what < 988)
        p->unreachable = any(4) == 0;
    else if (what < 991)
        p->by_hand = !p->by_hand;
    else if (what < 993)
        p->direct = !p->direct;
    else if (what < 995)
        p->queue_room = any(2) ? 1 + any(4) : 0;
    else if (what < 997)
        random_grow(p->h);
    else if (what < 998)
        restart();
    else if (p->no_credits)
        puppet_credits(p);
    else
        p->no_credits = true;
    finish_gets();
}

TEST(every_answer_was_true_at_some_time_during_its_get) {
    t.seed = check_seed();
    for (int run = 0; run < RUNS; run++) {
        memset(get, 0, sizeof get);
        truth_begin(&t);
        p = puppet_new();
        p->lease_ns = (100 + any(900)) * MS;
        p->direct = any(2);
        p->by_hand = true;
        p->duplicates = any(2);
        lookup_config config = guest_config(&c, p);
        config.max_gets = 8 + any(16);
        config.cached_locations = any(3) * TRUTH_KEYS / 2;
        guest_open(&c, p, &config);
        guest_connect(&c);
        for (int i = 0; i < STEPS; i++) one_step();
        location_hits += guest_stats(&c).location_hits;
        location_stale += guest_stats(&c).location_stale;
        guest_down(&c);
        finish_gets();
        for (int i = 0; i < RANDOM_GETS; i++) CHECK(!get[i].busy);
    }
    CHECK(answered > RUNS * STEPS / 50);
    CHECK(in_place > RUNS * STEPS / 200);
    CHECK(location_hits > RUNS && location_stale > RUNS);
}

int main(int argc, char **argv) {
    RUN(every_answer_was_true_at_some_time_during_its_get);
    return check_end(argc, argv);
}
