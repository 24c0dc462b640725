/* driver.c: runs the native hot paths one after the other, each N and 2 N times, for a program that counts
 * instructions.
 *
 * For: main.ts of this folder, which runs it under callgrind. Not for: times.
 *
 * Nothing in it depends on chance or on the machine: one thread, a fabric in which nothing happens by itself
 * (native/test/client/puppet.h), a clock that stands still, fixed seeds. The counter is asked to write down its counts
 * whenever `instructions_mark` is entered:
 *
 *     mark   first case N times   mark   2 N times   mark   mark   second case N times   mark   ...
 *
 * so that what is between the marks of one case differs by N rounds only. Standard output names the cases in their
 * order, a line each:
 *     name  N  folders of native/ that count as this path
 */
#include <stdio.h>
#include "../../native/fabric/tcp/frame.h"
#include "../../native/test/client/guest.h"
#include "responder.h"

enum { KEYS = 1000, ROUNDS = 2048, BATCH = 32 };

void instructions_mark(void);
__attribute__((noinline)) void instructions_mark(void) { __asm__ volatile("" ::: "memory"); }

static char keys[2 * KEYS][24]; /* the second half is not in the table */
static uint8_t target[1 << 16];

static lookup_key key_of(int i) { return (lookup_key){ .bytes = (const uint8_t *)keys[i], .count = 16 }; }

/* ---- GETs ---- */

static puppet *p;
static guest g;
static uint32_t under_way;

static void got(void *ctx, lookup_get *get) {
    (void)ctx;
    CHECK_EQ(lookup_result_of(get)->status, FKV_OK);
    lookup_release(get);
    under_way--;
}
/* The first GET, for layout and lease: its key is not there. */
static void got_first(void *ctx, lookup_get *get) {
    (void)ctx;
    CHECK_EQ(lookup_result_of(get)->status, FKV_NOT_FOUND);
    lookup_release(get);
    under_way--;
}
static void (*on_done)(void *ctx, lookup_get *get);
static void done(void *ctx, lookup_get *get) { on_done(ctx, get); }

static void start(int key) {
    lookup_key k = key_of(key);
    lookup_get *get;
    CHECK_EQ(lookup_start(g.l, &k, session_now(g.s), session_now(g.s) + 1000000000u, NULL, &get), FKV_OK);
    under_way++;
}
static void wait_all(void) {
    while (under_way) {
        session_flush(g.s);
        session_poll(g.s);
    }
}

static void client_of(bool direct, size_t value_bytes, uint32_t cached_locations) {
    p = puppet_new();
    for (int i = 0; i < KEYS; i++) CHECK_EQ(host_put_number(p->h, i, value_bytes), FKV_OK);
    for (int i = 0; i < 6; i++) puppet_pass(p, 3000000000u);
    puppet_register(p);
    p->direct = direct;
    lookup_config config = guest_config(&g, p);
    config.cached_locations = cached_locations;
    config.done = done;
    guest_open(&g, p, &config);
    guest_connect(&g);
    on_done = got_first;
    start(KEYS);
    while (under_way) guest_settle(&g);
    on_done = got;
}
static void client_end(void) { guest_down(&g); }

static void direct_100(void) { client_of(true, 100, 0); }
static void direct_1000(void) { client_of(true, 1000, 0); }
static void reads(void) { client_of(false, 100, 0); }
static void reads_cached(void) { client_of(false, 100, 64 * KEYS); }
static void reads_followed(void) {
    client_of(false, 100, 0);
    p->follows = true;
}

static void run_direct(int n) {
    for (int i = 0; i < n; i++) {
        lookup_key k = key_of(i % KEYS);
        lookup_result r;
        CHECK(lookup_direct(g.l, &k, target, sizeof target, &r) && r.status == FKV_OK);
    }
}
static void run_direct_miss(int n) {
    for (int i = 0; i < n; i++) {
        lookup_key k = key_of(KEYS + i % KEYS);
        lookup_result r;
        CHECK(lookup_direct(g.l, &k, target, sizeof target, &r) && r.status == FKV_NOT_FOUND);
    }
}
static void run_group(int n) {
    for (int i = 0; i < n; i += LOOKUP_GROUP) {
        lookup_key k[LOOKUP_GROUP];
        lookup_result r[LOOKUP_GROUP];
        size_t at[LOOKUP_GROUP];
        bool ended[LOOKUP_GROUP];
        for (int j = 0; j < LOOKUP_GROUP; j++) k[j] = key_of((i + j) % KEYS);
        lookup_direct_group(g.l, k, LOOKUP_GROUP, target, sizeof target, r, at, ended);
        for (int j = 0; j < LOOKUP_GROUP; j++) CHECK(ended[j] && r[j].status == FKV_OK);
    }
}
static void run_reads(int n) {
    uint64_t before = p->reads_posted;
    for (int i = 0; i < n; i++) {
        start(i % KEYS);
        wait_all();
    }
    CHECK(p->reads_posted - before >= (uint64_t)n);
}
static void run_reads_batch(int n) {
    for (int i = 0; i < n; i += BATCH) {
        for (int j = 0; j < BATCH; j++) start((i + j) % KEYS);
        wait_all();
    }
}
/* The owner's end of the fabric brings the extent along: one READ each. The first asks for none, since it is not known
 * how large one may be. */
static void run_followed(int n) {
    uint64_t before = p->reads_posted;
    run_reads(n);
    CHECK(p->reads_posted - before <= (uint64_t)n + 1);
}
/* After the warm-up each key's place is known. */
static void run_cached(int n) {
    uint64_t before = p->reads_posted;
    run_reads(n);
    CHECK(before < 2 * KEYS || p->reads_posted - before == (uint64_t)n);
}

/* ---- requests ---- */

static void answered(void *user, session_answer *a) {
    (void)user;
    CHECK_EQ(a->status, FKV_VERSION_MISMATCH);
    under_way--;
}
/* Compare-and-swaps that the owner refuses: what the table would cost is not theirs. */
static void requests(void) {
    client_of(false, 100, 0);
    p->refuses_with = FKV_VERSION_MISMATCH;
}
static void run_requests(int n) {
    for (int i = 0; i < n; i++) {
        lookup_key k = key_of(i % KEYS);
        session_ask ask = { .op = FKV_OP_CAS,
                            .shard = p->shard,
                            .key = k.bytes,
                            .key_bytes = k.count,
                            .value = target,
                            .value_bytes = 100,
                            .expected = 1,
                            .deadline_ns = session_now(g.s) + 1000000000u,
                            .done = answered };
        uint64_t id;
        CHECK_EQ(session_request(g.s, &ask, &id), FKV_OK);
        under_way++;
        wait_all();
    }
}

/* ---- the owner ---- */

static host *h;

static void owner(void) {
    h = host_open(64 << 20, 0, 0);
    for (int i = 0; i < KEYS; i++) CHECK_EQ(host_put_number(h, i, 100), FKV_OK);
    host_drain(h);
}
static void owner_end(void) { host_close(h); }
/* Each 64 PUTs a tick, which takes what was overwritten out of quarantine; a PUT every 10 us. */
static void run_put(int n) {
    for (int i = 0; i < n; i++) {
        table_op op = host_op(h, TABLE_PUT, keys[i % KEYS], 16, target, 100);
        table_prepared prepared;
        table_busy why;
        uint64_t present;
        CHECK_EQ(table_prepare(h->t, &op, &prepared, &present, &why), FKV_OK);
        table_commit(h->t, &prepared);
        h->now_ns += 10000;
        if (i % 64 == 63) {
            host_serve(h);
            table_tick(h->t, h->now_ns, h->wall_ms, 256);
        }
    }
}

/* ---- tcp ---- */

static void nothing(void) {}
static void run_frames(int n) {
    for (int i = 0; i < n; i++) {
        uint8_t bytes[TCP_READ_BYTES];
        tcp_frame in, out = {
            .type = TCP_READ, .number = (uint32_t)i, .argument = 1040, .rkey = 0x1234, .addr = (uint64_t)i << 6
        };
        size_t length = tcp_frame_encode(&out, bytes);
        CHECK(tcp_frame_decode(bytes, length, 1 << 20, &in) == TCP_READ_BYTES && in.addr == out.addr);
        out = (tcp_frame){ .type = TCP_DATA, .number = (uint32_t)i, .argument = 1040, .last = true };
        length = tcp_frame_encode(&out, bytes);
        CHECK(tcp_frame_decode(bytes, length, 1 << 20, &in) == TCP_HEADER_BYTES && in.last);
    }
}

static responder served;
static uint8_t request[KEYS][TCP_FOLLOW_BYTES];

static void responds(void) {
    owner();
    responder_open(&served, h);
    for (int i = 0; i < KEYS; i++) responder_request(&served, keys[i], 16, request[i]);
}
static void responds_no_more(void) {
    responder_close(&served);
    owner_end();
}
static void run_responses(int n) {
    for (int i = 0; i < n; i++) {
        responder_take(&served, request[i % KEYS]);
        responder_answer(&served, 1);
    }
}
static void run_responses_batch(int n) {
    for (int i = 0; i < n; i += BATCH) {
        for (int j = 0; j < BATCH; j++) responder_take(&served, request[(i + j) % KEYS]);
        responder_answer(&served, BATCH);
    }
}

static const struct {
    const char *name, *folders;
    void (*set_up)(void), (*run)(int n), (*end)(void);
} cases[] = {
    { "direct GET, hit, 100 B", "client,table,base", direct_100, run_direct, client_end },
    { "direct GET, hit, 1000 B", "client,table,base", direct_1000, run_direct, client_end },
    { "direct GET, miss", "client,table,base", direct_100, run_direct_miss, client_end },
    { "group GET, a key, 100 B", "client,table,base", direct_100, run_group, client_end },
    { "GET over READs, 100 B, cold", "client,table,base,fabric", reads, run_reads, client_end },
    { "GET over READs, 100 B, location cached", "client,table,base,fabric", reads_cached, run_cached, client_end },
    { "GET over READs, 100 B, location cached, 32 together", "client,table,base,fabric", reads_cached, run_reads_batch,
      client_end },
    { "GET over READs, 100 B, cold, followed", "client,table,base,fabric", reads_followed, run_followed, client_end },
    { "PUT at the owner, prepare and commit, 100 B", "table,base", owner, run_put, owner_end },
    { "tcp frames of a READ", "fabric", nothing, run_frames, nothing },
    { "followed READ at the owner over tcp, 100 B", "dataplane,fabric,table,base", responds, run_responses,
      responds_no_more },
    { "followed READ at the owner over tcp, 100 B, 32 together", "dataplane,fabric,table,base", responds,
      run_responses_batch, responds_no_more },
    { "request and reply at the client, 100 B", "client/session,wire,base,fabric", requests, run_requests, client_end },
};

int main(void) {
    for (int i = 0; i < 2 * KEYS; i++) snprintf(keys[i], sizeof keys[i], "user%012d", i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        printf("%s\t%d\t%s\n", cases[i].name, ROUNDS, cases[i].folders);
        cases[i].set_up();
        cases[i].run(2 * ROUNDS);
        instructions_mark();
        cases[i].run(ROUNDS);
        instructions_mark();
        cases[i].run(2 * ROUNDS);
        instructions_mark();
        cases[i].end();
    }
    return 0;
}
