/* dataplane_storm_test.c: several clients at once, connections that break at any moment, shards that close and open
 * again under them. Whatever happens, no acknowledged change is lost and none is made twice: counters are incremented
 * by compare-and-swap, each change is sent until it is answered, and the sums are compared at the end.
 *
 * An increment is: read the counter, compare-and-swap it to one more. When the connection breaks before the answer, the
 * same change is sent again over a new connection, as a retry. */
#include "raw_client.h"

enum { CLIENTS = 3, KEYS = 4, ROUNDS = 150, VALUE_MAX = 3000 };
static fab_provider provider;
static rig r;

typedef struct player {
    pthread_t thread;
    int number;
    uint64_t random;
    raw c;
    uint64_t made[KEYS];
} player;

static uint64_t rnd(player *p) { /* splitmix64 */
    uint64_t z = (p->random += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static void connect_again(player *p) {
    fkv_pass h = raw_pass((uint64_t)p->number + 1, FKV_TICKET_READ | FKV_TICKET_WRITE);
    do raw_hang_up(&p->c);
    while (raw_connect(&p->c, 0, &h) != FKV_OK);
}
/* Sends until there is an answer, hanging up before it now and then. */
static fkv_reply ask_until_answered(player *p, fkv_request q, const char *key, const void *value) {
    for (;;) {
        bool break_off = rnd(p) % 20 == 0;
        q.id = p->c.next_id++;
        fkv_reply reply = { .status = FKV_BUSY };
        if (raw_try(&p->c, &q, key, value, q.value_bytes) == 0 && !break_off) {
            bool never = false;
            while (!p->c.first && !p->c.gone) raw_turn(&p->c, &never);
            if (p->c.first) {
                raw_message *m = raw_receive(&p->c, q.id);
                reply = m->reply;
                /* the counter */
                if (reply.op == FKV_OP_GET && reply.status == FKV_OK) memcpy(&reply.expiry_ms, m->body, 8);
                free(m);
                if (reply.status != FKV_BUSY) return reply;
                continue; /* it had no effect */
            }
        }
        connect_again(p);
        if (q.sequence) q.flags |= FKV_REQUEST_RETRY;
    }
}

static void increment(player *p, int k) {
    char key[32];
    snprintf(key, sizeof key, "counter-%d", k);
    for (;;) {
        fkv_reply got = ask_until_answered(p, raw_request(&p->c, FKV_OP_GET, key), key, NULL);
        CHECK(got.status == FKV_OK || got.status == FKV_NOT_FOUND);
        uint64_t value = (got.status == FKV_OK ? got.expiry_ms : 0) + 1;
        fkv_request q = raw_request(&p->c, FKV_OP_CAS, key);
        q.expected = got.status == FKV_OK ? got.version : 0;
        q.value_bytes = 8;
        fkv_reply swapped = ask_until_answered(p, q, key, &value);
        if (swapped.status == FKV_OK) break;
        CHECK_EQ(swapped.status, FKV_VERSION_MISMATCH);
    }
    p->made[k]++;
}

static void *play(void *arg) {
    player *p = arg;
    raw_open(&p->c, &r);
    connect_again(p);
    for (int i = 0; i < ROUNDS; i++) increment(p, (int)(rnd(p) % KEYS));
    raw_down(&p->c);
    return NULL;
}

TEST(every_acknowledged_increment_counts_once_whatever_breaks) {
    static player players[CLIENTS];
    raw c;
    rig_init(&r, provider, NULL);
    r.config.polling = POLLING_AUTO;
    if (provider == FAB_SIM) {
        sim_set_faults(r.sim, &(sim_faults){ .delay_min_ns = 1000, .delay_max_ns = 300000, .break_conn = 20000 });
    }
    rig_up(&r, RIG_SHARDS, 16 << 20);
    for (int i = 0; i < CLIENTS; i++) {
        players[i] = (player){ .number = i, .random = check_seed() + (uint64_t)i };
        CHECK_EQ(pthread_create(&players[i].thread, NULL, play, &players[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) pthread_join(players[i].thread, NULL);
    if (provider == FAB_SIM) sim_set_faults(r.sim, &(sim_faults){ .delay_min_ns = 1000, .delay_max_ns = 3000 });
    raw_up(&c, &r, 1000);
    for (int k = 0; k < KEYS; k++) {
        char key[32];
        fkv_reply reply;
        uint64_t sum = 0, count = 0;
        snprintf(key, sizeof key, "counter-%d", k);
        for (int i = 0; i < CLIENTS; i++) sum += players[i].made[k];
        uint8_t *v = raw_get(&c, key, &reply);
        if (v) memcpy(&count, v, 8);
        free(v);
        CHECK_EQ(count, sum);
    }
    raw_down(&c);
    rig_down(&r);
}

/* ---- shards that come and go ---- */

static bool over; /* atomic */

static void *pester(void *arg) {
    player *p = arg;
    char key[32];
    raw_open(&p->c, &r);
    connect_again(p);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        uint64_t id[16];
        int n = 0;
        for (; n < 16; n++) {
            snprintf(key, sizeof key, "key-%d", (int)(rnd(p) % 200));
            fkv_op op = (fkv_op)(rnd(p) % FKV_OP_COUNT);
            if (op == 0 || !raw_can_ask(op)) op = FKV_OP_PUT;
            fkv_request q = raw_well_formed(&p->c, op, key);
            if (fkv_op_is(op, FKV_VALUED) && !fkv_op_is(op, FKV_FIELDS)) q.value_bytes = (uint32_t)(rnd(p) % VALUE_MAX);
            if (!fkv_op_is(op, FKV_KEYED)) q.shard = (uint32_t)(rnd(p) % RIG_SHARDS);
            int e = raw_try(&p->c, &q, key, raw_value, raw_carried(&q));
            if (e) break;
            id[n] = q.id;
        }
        bool broken = rnd(p) % 30 == 0;
        for (int i = 0; i < n && !broken; i++) {
            for (bool more = true; more;) {
                raw_message *m = raw_receive(&p->c, id[i]);
                CHECK(m->reply.status != FKV_INTERNAL && m->reply.status != FKV_BAD_REQUEST);
                more = m->reply.flags & FKV_REPLY_MORE;
                free(m);
            }
        }
        if (broken) connect_again(p);
    }
    raw_down(&p->c);
    return NULL;
}

TEST(shards_close_and_open_under_load) {
    static player players[CLIENTS];
    rig_init(&r, provider, NULL);
    r.config.lease_ms = 20;
    rig_up(&r, RIG_SHARDS, 16 << 20);
    over = false;
    for (int i = 0; i < CLIENTS; i++) {
        players[i] = (player){ .number = i, .random = check_seed() + (uint64_t)i };
        CHECK_EQ(pthread_create(&players[i].thread, NULL, pester, &players[i]), 0);
    }
    for (uint32_t i = 0; i < 24; i++) {
        rig_close(&r, i % RIG_SHARDS);
        CHECK_EQ(rig_open_shard(&r, i % RIG_SHARDS, 0, 16 << 20, NULL), FKV_OK);
        rig_serve(&r, i % RIG_SHARDS);
        free(rig_stats(&r));
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < CLIENTS; i++) pthread_join(players[i].thread, NULL);
    rig_down(&r);
}

static void tests(void) {
    check_seed();
    RUN(every_acknowledged_increment_counts_once_whatever_breaks);
    RUN(shards_close_and_open_under_load);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
