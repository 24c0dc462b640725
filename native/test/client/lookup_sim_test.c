/* lookup_sim_test.c: the random test over the simulator (fabric/sim.h): GETs whose READs are delayed, reordered, torn
 * at cache lines, dropped, refused and completed twice, while the owner changes its table between any two events. Every
 * answer is compared with what was true (truth.h). One thread; time is the simulator's.
 *
 * The owner of this test is a listener that answers from a table (owner.h). It restarts with an empty table when every
 * lease that it granted has run out; its old memory stays registered, or is deregistered, and then its rkeys may come
 * again for other memory.
 */
#include "../sim/sim.h"
#include "../../client/lookup/lookup.h"
#include "owner.h"
#include "random_gets.h"

enum { CONNS = 32, MRS = 512, HOSTS = 8 };
#if defined(__SANITIZE_ADDRESS__)
enum { RUNS = 15, STEPS = 8000 };
#else
enum { RUNS = 60, STEPS = 10000 };
#endif
static const uint64_t MS = 1000000;
static const fkv_seed SECRET = { 5, 6 };

static truth t;
static sim_world *w;
static struct {
    fab_domain *domain;
    fab_cq *cq;
    fab_listener *listener;
    fab_conn *conn[CONNS];
    host *h, *old[HOSTS];
    int olds;
    struct {
        const uint8_t *base;
        fab_mr *mr;
    } mr[MRS];
    int mrs;
    owner_life life;
    uint64_t server_incarnation, lease_end;
    bool paused;
} o;
static lookup *l;
static session *s;
static random_get get[RANDOM_GETS];
static uint64_t answered, location_hits, location_stale;

static uint32_t any(uint32_t below) { return truth_any(&t, below); }

/* ---- the owner ---- */

static owner_key key_of(void *ctx, const table_segment *segment) {
    (void)ctx;
    for (int i = o.mrs - 1; i >= 0; i--) {
        if (o.mr[i].base == segment->region->base)
            return (owner_key){ fab_mr_rkey(o.mr[i].mr), fab_mr_addr(o.mr[i].mr) };
    }
    CHECK(o.mrs < MRS);
    CHECK_EQ(fab_reg(o.domain, segment->region, 0, &o.mr[o.mrs].mr), 0);
    o.mr[o.mrs].base = segment->region->base;
    o.mrs++;
    return key_of(ctx, segment);
}
static void accept_peer(fab_conn *c) {
    fkv_welcome welcome = { .magic = FKV_WELCOME_MAGIC,
                            .version = 1,
                            .server_incarnation = o.server_incarnation,
                            .lease_ms = (uint32_t)(o.life.lease_ns / MS),
                            .drift_ppm = 1000,
                            .wall_ms = o.h->wall_ms };
    for (int i = 0; i < CONNS; i++) {
        if (o.conn[i]) continue;
        o.conn[i] = c;
        if (fab_accept(c, 0, &welcome, sizeof welcome) == 0) return;
        o.conn[i] = NULL;
        fab_disconnect(c);
        return;
    }
    fab_reject(c, NULL, 0);
}
static void drop_peer(fab_conn *c) {
    for (int i = 0; i < CONNS; i++)
        if (o.conn[i] == c) o.conn[i] = NULL;
    fab_disconnect(c);
}
static void heard(const fab_wc *wc) {
    static uint8_t reply[OWNER_MESSAGE];
    fkv_request q;
    const uint8_t *key, *body;
    CHECK_EQ(wire_parse_request(wc->data, wc->bytes, &q, &key, &body), FKV_OK);
    uint32_t bytes = owner_answer(o.h, &o.life, &q, key, body, reply);
    if (q.op == FKV_OP_LEASE && o.life.grants) o.lease_end = fkv_now_ns() + o.life.lease_ns;
    struct iovec v = { reply, bytes };
    if (bytes) (void)fab_send(wc->conn, &v, 1);
    fab_release(wc->conn, wc->data);
}
static void owner_turn(void) {
    fab_wc wc[16];
    int n = fab_poll(o.cq, wc, 16);
    for (int i = 0; i < n; i++) {
        if (wc[i].opcode == FAB_WC_ACCEPT)
            accept_peer(wc[i].conn);
        else if (wc[i].opcode == FAB_WC_RECV)
            heard(&wc[i]);
        else if (wc[i].opcode == FAB_WC_DISCONNECT)
            drop_peer(wc[i].conn);
    }
    fab_flush(o.cq);
    uint64_t now = fkv_now_ns();
    if (now - o.h->now_ns > MS) host_pass(o.h, now - o.h->now_ns);
}
static host *new_host(void) {
    host *h = host_open(16 << 20, 0, 0);
    host_pass(h, fkv_now_ns() - h->now_ns);
    return h;
}
static void owner_up(void) {
    memset(&o, 0, sizeof o);
    CHECK_EQ(fab_open(&(fab_options){ .provider = FAB_SIM }, &o.domain), 0);
    CHECK_EQ(fab_cq_create(o.domain, &o.cq), 0);
    CHECK_EQ(fab_listen(o.cq, "sim:owner", &o.listener), 0);
    o.h = new_host();
    o.server_incarnation = 1;
    o.life = (owner_life){
        .epoch = 7, .incarnation = 100, .lease_ns = (100 + any(900)) * MS, .grants = true, .key_of = key_of
    };
}
static void forget_memory(void) {
    while (o.mrs > 0) fab_dereg(o.mr[--o.mrs].mr);
}
static void owner_down(void) {
    for (int i = 0; i < CONNS; i++)
        if (o.conn[i]) fab_disconnect(o.conn[i]);
    fab_unlisten(o.listener);
    forget_memory();
    fab_cq_destroy(o.cq);
    fab_close(o.domain);
    for (int i = 0; i < o.olds; i++) host_close(o.old[i]);
    host_close(o.h);
}

/* ---- the client ---- */

static void done(void *ctx, lookup_get *g) {
    (void)ctx;
    const lookup_result *r = lookup_result_of(g);
    int i = (int)(intptr_t)lookup_user(g);
    answered += random_get_end(&t, &get[i], r->status, (const char *)lookup_value(g), r->value_bytes);
    lookup_release(g);
}
static void event(void *ctx, const session_event *e) { (void)ctx, (void)e; }

static void client_up(void) {
    lookup_config config = { .seed = o.h->config.seed, .max_gets = RANDOM_GETS, .event = event, .done = done };
    config.cached_locations = any(3) * TRUTH_KEYS / 2;
    config.session = (session_config){ .shards = 1, .max_requests = 64, .jitter_seed = 1 + any(1000) };
    fkv_ticket t = { .client = 9, .expires_ms = UINT64_MAX, .flags = FKV_TICKET_READ | FKV_TICKET_WRITE };
    fkv_pass_make(&SECRET, &t, &config.session.pass);
    CHECK_EQ(lookup_create(&config, &l), FKV_OK);
    s = lookup_session(l);
    session_address a = { FAB_SIM, "sim:owner", 0 };
    session_owner_config owner = { .owner = 1, .incarnation = 1, .addresses = &a, .count = 1 };
    CHECK_EQ(session_set_owners(s, &owner, 1), FKV_OK);
    CHECK_EQ(lookup_set_route(l, &(lookup_route){ .shard = 0, .owner = 1 }), FKV_OK);
}
static void client_turn(void) {
    session_flush(s);
    session_poll(s);
    session_tick(s);
}
static void start_get(void) {
    int i = random_get_begin(&t, get);
    if (i < 0) return;
    lookup_key k = { .bytes = (uint8_t *)get[i].name, .count = (uint32_t)strlen(get[i].name) };
    uint64_t now = fkv_now_ns();
    lookup_get *g;
    if (lookup_start(l, &k, now, now + (20 + any(2000)) * MS, (void *)(intptr_t)i, &g) != FKV_OK) get[i].busy = false;
}

/* ---- what may happen ---- */

static void restart(void) {
    if (o.olds == HOSTS || o.mrs > MRS / 2) return;
    sim_pause(o.cq, true);
    while (fkv_now_ns() <= o.lease_end) {
        sim_run_until(w, sim_now(w) + 20 * MS);
        client_turn();
    }
    sim_pause(o.cq, false);
    bool forget = any(2);
    sim_reuse_keys(w, any(2));
    if (forget) forget_memory();
    o.old[o.olds++] = o.h;
    o.h = new_host();
    o.life.incarnation++;
    o.life.epoch++;
    o.server_incarnation++;
    truth_nothing(&t);
    for (int i = 0; i < CONNS && any(2); i++)
        if (o.conn[i]) sim_break(o.conn[i], FAB_RETRY_EXC_ERR);
}
static void luck(void) {
    sim_faults f = { .delay_min_ns = 1000, .delay_max_ns = 1000 + any(200000) };
    if (any(2)) f.reorder = any(300000);
    if (any(2)) f.tear = any(SIM_ALWAYS), f.tear_span_ns = any(400000);
    if (any(4) == 0) f.drop = any(5000);
    if (any(4) == 0) f.access_error = any(5000);
    if (any(4) == 0) f.flush_error = any(5000);
    if (any(4) == 0) f.break_conn = any(5000);
    if (any(2)) f.duplicate_error = any(SIM_ALWAYS);
    sim_set_faults(w, &f);
}
static void one_step(void) {
    uint32_t what = any(1000);
    if (what < 150)
        start_get();
    else if (what < 240)
        random_change(&t, o.h);
    else if (what < 250)
        random_breathe(&t, o.h);
    else if (what < 700)
        sim_step(w);
    else if (what < 850)
        client_turn();
    else if (what < 970)
        owner_turn();
    else if (what < 980)
        sim_run_until(w, sim_now(w) + any(3 * (uint32_t)MS));
    else if (what < 983)
        sim_run_until(w, sim_now(w) + any(300) * MS);
    else if (what < 988)
        o.life.grants = any(4) != 0;
    else if (what < 992)
        sim_pause(o.cq, o.paused = any(4) == 0);
    else if (what < 994)
        sim_cut_off(o.domain, any(4) == 0);
    else if (what < 996)
        random_grow(o.h);
    else if (what < 997)
        restart();
    else
        luck();
}

TEST(every_answer_was_true_whatever_the_fabric_did) {
    t.seed = check_seed();
    for (int run = 0; run < RUNS; run++) {
        w = sim_world_create(t.seed);
        sim_drive_clock(w);
        memset(get, 0, sizeof get);
        truth_begin(&t);
        luck();
        owner_up();
        client_up();
        for (int i = 0; i < STEPS; i++) one_step();
        lookup_stats stats;
        lookup_get_stats(l, &stats);
        location_hits += stats.location_hits;
        location_stale += stats.location_stale;
        lookup_close(l);
        for (int i = 0; i < RANDOM_GETS; i++) CHECK(!get[i].busy);
        owner_down();
        sim_world_destroy(w);
    }
    CHECK(answered > RUNS * STEPS / 100);
    CHECK(location_hits > RUNS && location_stale > RUNS);
}

int main(int argc, char **argv) {
    RUN(every_answer_was_true_whatever_the_fabric_did);
    return check_end(argc, argv);
}
