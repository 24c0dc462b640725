/* data_port.c: an owner's data plane, whole, with strangers and clients at its port who send what they like. Over the
 * simulated fabric, whose time this thread moves; the worker has its own thread, as in a server.
 *
 * Checked, beside that nothing breaks: nobody is let in without the key of a good ticket; nothing is read or changed
 * that the ticket does not allow; an honest client of another tenant, whose entries only it may change, finds them as
 * it left them.
 */
#include <sched.h>
#include "../../wire/fields.h"
#include "../dataplane/raw_client.h"
#include "fuzz.h"

enum {
    GUESTS = 2,    /* hostile connections at once */
    KEYS = 8,      /* of them; more would rarely meet */
    STEPS = 48,    /* of one input */
    AGAIN = 2000,  /* inputs until the data plane is made anew, since what they left stays */
    QUIET = 20000, /* turns without anything, then the other thread may need the processor */
    MEMORY = 1 << 16,
    KEPT = 200
};
static const fkv_seed OTHER_SECRET = { 1, 2 };
static const dataplane_tenant TENANTS[] = { { .shards = 2 }, { .shards = 2 } };

typedef struct guest {
    raw c;
    uint32_t rights; /* FKV_TICKET_*, of the ticket that let it in */
    uint8_t tenant;
    fkv_pass pass;
    fab_mr *mr;
    fkv_region memory;
    uint64_t rkey, addr;
} guest;

static rig r;
static guest guests[GUESTS];
static raw honest;
static uint64_t sequence[4][RIG_SHARDS]; /* of hostile clients, by number: over all inputs, as owners remember them */
static uint32_t runs, written;

/* ---- turns ---- */

static void turn(raw *c) {
    sim_run_until(r.sim, sim_now(r.sim) + 2000);
    raw_poll(c);
    sched_yield();
}
static void patiently(raw *c, const bool *done, const char *what) {
    uint64_t begun = fkv_now_ns();
    for (uint32_t i = 1; !*done && !c->gone; i++) {
        turn(c);
        if (i % QUIET == 0 && !check_in_time(begun)) check_failed(__FILE__, __LINE__, what);
    }
}
static fkv_status dial(raw *c, const void *hello, uint32_t bytes) {
    c->answered = c->gone = false;
    fuzz_frames++;
    CHECK_EQ(fab_connect(c->cq, dataplane_address(r.d, 0), hello, bytes, NULL, &c->conn), 0);
    fab_flush(c->cq);
    patiently(c, &c->answered, "an answer to a hello");
    return c->welcome;
}
static raw_message *receive(raw *c, uint64_t id) {
    uint64_t begun = fkv_now_ns();
    for (;;) {
        for (raw_message *m = c->first; m; m = m->next)
            if (m->reply.id == id) return raw_receive(c, id);
        CHECK(!c->gone);
        turn(c);
        CHECK(check_in_time(begun));
    }
}

/* ---- the honest client ---- */

static fkv_shard_range range_of(uint8_t tenant) { return (fkv_shard_range){ tenant * 2u, 2 }; }
static uint32_t shard_of(uint8_t tenant, uint16_t space, const char *key) {
    return fkv_range_shard(range_of(tenant), fkv_hash_key(&RIG_SEED, space, key, strlen(key)));
}
static bool answers_challenge(raw *c, const fkv_pass *p) {
    fkv_hello asks = fkv_hello_make(NULL, NULL);
    dial(c, &asks, sizeof asks);
    if (!c->challenge.number) return false;
    fkv_challenge challenge = c->challenge;
    raw_hang_up(c);
    fkv_hello h = fkv_hello_make(p, &challenge);
    return dial(c, &h, sizeof h) == FKV_OK;
}
static void honest_up(void) {
    fkv_pass p = raw_pass_until(&RIG_SECRET, 7, 1, FKV_TICKET_READ | FKV_TICKET_WRITE, fkv_wall_ms() + RIG_TICKET_MS);
    raw_open(&honest, &r);
    CHECK(answers_challenge(&honest, &p));
}
/* What it wrote is there; now and then it writes anew. Behind all that was sent before it, so the answer says as well
 * that the worker has seen that. */
static void honest_is_well(void) {
    static const char key[] = "what only one may change";
    char text[16];
    bool writes = !written || runs % 16 == 0;
    if (writes) written++;
    snprintf(text, sizeof text, "%u", written);
    fkv_request q = raw_request(&honest, writes ? FKV_OP_PUT : FKV_OP_GET, key);
    q.shard = shard_of(1, 0, key);
    if (writes) {
        q.sequence = written;
        q.value_bytes = (uint32_t)strlen(text);
    }
    int e = raw_try(&honest, &q, key, text, q.value_bytes);
    CHECK_EQ(e, 0);
    raw_message *m = receive(&honest, q.id);
    CHECK_EQ(m->reply.status, FKV_OK);
    if (!writes) CHECK(m->bytes == strlen(text) && memcmp(m->body, text, m->bytes) == 0);
    free(m);
}

/* ---- what hostile ones do ---- */

static void hang_up(guest *g) {
    raw_hang_up(&g->c);
    g->c.keep = false;
    g->rights = 0;
}
static void look_at_replies(guest *g) {
    for (raw_message *m = g->c.first; m; m = m->next) {
        if (m->reply.status != FKV_OK || m->reply.op >= FKV_OP_COUNT) continue;
        if (fkv_op_is(m->reply.op, FKV_CHANGES)) CHECK(g->rights & FKV_TICKET_WRITE);
        if (m->reply.op == FKV_OP_GET || m->reply.op == FKV_OP_SCAN) CHECK(g->rights & FKV_TICKET_READ);
    }
    raw_drop_messages(&g->c);
}
/* With a ticket in which nothing, or one thing, is wrong. Of the honest one's tenant only readers are good. */
static fkv_pass some_pass(fuzz_in *in, bool *good) {
    uint8_t wrong = fuzz_u8(in) % 12, flags = fuzz_u8(in) & 7;
    fkv_ticket t = {
        .client = 100u + fuzz_u8(in) % 4, .life_ms = RIG_TICKET_MS, .tenant = fuzz_u8(in) % 2, .flags = flags
    };
    if (t.tenant == 1) t.flags &= FKV_TICKET_READ;
    t.expires_ms = fkv_wall_ms() + RIG_TICKET_MS;
    *good = wrong > 5;
    if (wrong == 0) t.expires_ms = fuzz_number(in) % fkv_wall_ms();
    if (wrong == 1) t.client = 0;
    if (wrong == 2) t.tenant = (uint16_t)(2 + fuzz_u16(in) % 0xfff0);
    if (wrong == 3) t.secret = (uint8_t)(1 + fuzz_u8(in) % 0xff);
    if (wrong == 4) t.life_ms = 0, t.expires_ms = 0;
    fkv_pass p;
    fkv_pass_make(wrong == 5 ? &OTHER_SECRET : &RIG_SECRET, &t, &p);
    return p;
}
static void arrive(guest *g, fuzz_in *in) {
    bool good;
    hang_up(g);
    fkv_pass p = some_pass(in, &good);
    fkv_hello asks = fkv_hello_make(NULL, NULL);
    dial(&g->c, &asks, sizeof asks);
    fkv_challenge challenge = g->c.challenge;
    if (!challenge.number) return;
    raw_hang_up(&g->c);
    uint8_t how = fuzz_u8(in);
    if (how % 8 == 1) challenge.number += fuzz_u8(in) % 4;
    if (how % 8 == 2) fuzz_bytes(in, challenge.nonce, sizeof challenge.nonce);
    fkv_hello h = fkv_hello_make(&p, &challenge);
    if (fuzz_change(in, &h, sizeof h)) good = false;
    uint32_t bytes = how % 8 == 3 ? fuzz_u8(in) % sizeof h : sizeof h;
    fkv_status s = dial(&g->c, &h, bytes);
    if (s == FKV_OK && !g->c.challenge.number) {
        CHECK(good && how % 8 != 3);
        memcpy(g->c.answered_nonce, challenge.nonce, sizeof challenge.nonce);
        g->rights = p.ticket.flags;
        g->tenant = (uint8_t)p.ticket.tenant;
        g->pass = p;
    }
    /* An answer that was right once is not right twice. */
    if (how & 0x80) {
        guest *other = &guests[g == guests];
        hang_up(other);
        dial(&other->c, &h, bytes);
        CHECK(other->c.welcome != FKV_OK || other->c.challenge.number);
        hang_up(other);
    }
}
static void arrive_raw(guest *g, fuzz_in *in) {
    uint8_t hello[FAB_PRIVATE_MAX];
    uint32_t bytes = fuzz_u8(in) % (sizeof hello + 1);
    hang_up(g);
    fuzz_bytes(in, hello, bytes);
    CHECK(dial(&g->c, hello, bytes) != FKV_OK || g->c.challenge.number);
    hang_up(g);
}
static void send_bytes(guest *g, const void *bytes, uint32_t count) {
    if (!g->c.conn || g->c.gone || !g->rights || count == 0) return;
    fuzz_frames++;
    fab_send(g->c.conn, &(struct iovec){ (void *)(uintptr_t)bytes, count }, 1);
    fab_flush(g->c.cq);
}
static void send_raw(guest *g, fuzz_in *in) {
    static uint8_t bytes[4096];
    uint32_t count = fuzz_u16(in) % sizeof bytes;
    fuzz_bytes(in, bytes, count < in->left ? count : in->left);
    send_bytes(g, bytes, count);
}
static uint32_t renewal(guest *g, fuzz_in *in, uint8_t *out) {
    bool good;
    fkv_pass p = some_pass(in, &good);
    if (fuzz_u8(in) % 4) { /* more likely one that can be taken */
        p = g->pass;
        p.ticket.expires_ms += fuzz_u8(in);
        fkv_pass_make(&RIG_SECRET, &p.ticket, &p);
    }
    fkv_renewal w = { .ticket = p.ticket };
    fkv_prove(&p.key, FKV_RENEWAL_HEAD, &p.ticket, g->c.answered_nonce, w.proof);
    fuzz_change(in, &w, sizeof w);
    memcpy(out, &w, sizeof w);
    /* With one like its own it may get other rights, but never COPY. */
    if (good && p.ticket.client == g->pass.ticket.client && p.ticket.tenant == g->tenant) g->rights |= p.ticket.flags;
    return sizeof w;
}
static uint32_t rendezvous(guest *g, fuzz_in *in, fkv_request *q, uint8_t *out) {
    fkv_rendezvous v = { .rkey = g->rkey, .addr = g->addr, .region_addr = g->addr, .region_bytes = MEMORY };
    q->flags |= FKV_REQUEST_RENDEZVOUS;
    q->value_bytes = 1 + fuzz_u16(in) % (MEMORY + 64);
    v.addr += fuzz_u8(in);
    if (fuzz_u8(in) % 8 == 0) v.region_bytes = fuzz_number(in);
    fuzz_change(in, &v, sizeof v);
    memcpy(out, &v, sizeof v);
    return sizeof v;
}
/* Of most numbers those that there were when the corpus was made, so that it goes on saying the same. */
static uint8_t drawn_op(uint8_t n) {
    const uint8_t before = FKV_OP_RENEW;
    if (n < 240) return (uint8_t)(1 + n % before);
    return (uint8_t)(before + 1 + n % (FKV_OP_COUNT - 1 - before));
}
/* So many, of few names; their bytes. */
static uint32_t fields(fuzz_in *in, uint8_t *body, int count) {
    static const uint8_t names[] = "abc", value[256] = "17";
    uint8_t *to = body;
    while (count--) {
        uint8_t what = fuzz_u8(in);
        fkv_field f = { .name = names + what % 3, .name_bytes = 1, .value = value, .value_bytes = what >> 2 };
        to = fkv_put_field(to, &f);
    }
    return (uint32_t)(to - body);
}
/* A request that is whole, then perhaps one byte of it changed. */
static void send_request(guest *g, fuzz_in *in) {
    static uint8_t message[sizeof(fkv_request) + 64 + 12288];
    fkv_request q = { .op = drawn_op(fuzz_u8(in)), .id = fuzz_u8(in) };
    const fkv_op_row *row = &fkv_ops[q.op];
    uint8_t form = fuzz_u8(in);
    char key[64] = "";
    uint32_t value = 0;
    if (form & 1) q.flags = fuzz_u8(in) & row->flags;
    q.space = form & 2 ? (uint16_t)(fuzz_u8(in) % 3) : 0;
    if (row->traits & FKV_KEYED) snprintf(key, sizeof key, "key %u", fuzz_u8(in) % KEYS);
    q.key_bytes = (uint16_t)strlen(key);
    q.shard = key[0] ? shard_of(g->tenant, q.space, key) : range_of(g->tenant).first + fuzz_u8(in) % 2;
    if (form & 4) q.shard = (uint32_t)fuzz_number(in);
    if (row->traits & FKV_CHANGES) {
        uint64_t *last = &sequence[g->pass.ticket.client % 4][q.shard % RIG_SHARDS];
        q.sequence = form & 8 ? 1 + fuzz_number(in) % (*last + 1100) : ++*last;
        if (form & 8 && fuzz_u8(in) == 0xff) q.sequence = fuzz_u64(in);
    }
    if (row->traits & FKV_EXPECTS) q.expected = form & 16 ? fuzz_u64(in) : fuzz_u8(in);
    if (row->traits & FKV_EXPIRES && form & 32) q.expiry = fuzz_number(in);
    if (row->traits & FKV_COUNTED) q.value_bytes = 1 + (uint32_t)fuzz_number(in);
    uint8_t *body = message + sizeof q + q.key_bytes;
    if (row->traits & FKV_RENEWS) q.value_bytes = value = renewal(g, in, body);
    if (row->traits & FKV_FIELDS) {
        q.codec = FKV_CODEC_FIELDS;
        if (q.op == FKV_OP_SET_FIELDS) q.expected &= 1;
        q.value_bytes = value = fields(in, body, q.op == FKV_OP_INCREMENT_FIELD ? 1 : 1 + form % 8);
    } else if (row->traits & FKV_VALUED) {
        if (form & 64) {
            value = rendezvous(g, in, &q, body);
        } else {
            q.value_bytes = value = form & 128 ? fuzz_u16(in) % 12288 : fuzz_u8(in);
            memset(body, (int)q.id, value);
        }
    }
    memcpy(message, &q, sizeof q);
    memcpy(message + sizeof q, key, q.key_bytes);
    uint32_t all = (uint32_t)(sizeof q + q.key_bytes + value);
    fuzz_change(in, message, sizeof q + q.key_bytes);
    if (fuzz_u8(in) == 0xff) all = fuzz_u16(in) % (all + 1);
    send_bytes(g, message, all);
}
static void step(fuzz_in *in) {
    uint8_t what = fuzz_u8(in);
    guest *g = &guests[what >> 7];
    switch (what % 16) {
    case 0: arrive_raw(g, in); break;
    case 1:
    case 2: arrive(g, in); break;
    case 3: send_raw(g, in); break;
    case 4: g->c.keep = !g->c.keep && g->c.kept_count == 0; break;
    case 5:
        if (g->c.conn) raw_release_kept(&g->c);
        break;
    case 6: hang_up(g); break;
    case 7:
        for (int i = what >> 4; i >= 0; i--) turn(&g->c);
        look_at_replies(g);
        break;
    default: send_request(g, in); break;
    }
    if (g->c.kept_count > KEPT) raw_release_kept(&g->c);
    if (g->c.gone) hang_up(g);
}

/* ---- the target ---- */

static void up(void) {
    rig_up(&r, RIG_SHARDS, 4 << 20);
    written = 0;
    memset(sequence, 0, sizeof sequence);
    honest_up();
    for (int i = 0; i < GUESTS; i++) {
        guest *g = &guests[i];
        *g = (guest){ 0 };
        raw_open(&g->c, &r);
        CHECK_EQ(fkv_region_alloc("guest", MEMORY, 0, &g->memory), 0);
        CHECK_EQ(fab_reg(g->c.domain, &g->memory, 0, &g->mr), 0);
        g->rkey = fab_mr_rkey(g->mr);
        g->addr = fab_mr_addr(g->mr);
    }
}
static void down(void) {
    raw_down(&honest);
    for (int i = 0; i < GUESTS; i++) {
        hang_up(&guests[i]);
        fab_dereg(guests[i].mr);
        fkv_region_free(&guests[i].memory);
        raw_down(&guests[i].c);
    }
    dataplane_destroy(r.d);
}
static void open_port(void) {
    sim_world *w = sim_world_create(1);
    sim_set_faults(w, &(sim_faults){ .delay_min_ns = 1000, .delay_max_ns = 1000 });
    rig_init(&r, FAB_SIM, w);
    alarm(0); /* a run lasts as long as it is asked to */
    r.config.tenant = TENANTS;
    r.config.tenants = 2;
    r.config.client_quota = 16;
    r.config.dedup_bytes = 1 << 20;
    up();
}
static void one(fuzz_in *in) {
    if (++runs % AGAIN == 0) {
        down();
        up();
    }
    for (int i = 0; i < STEPS && in->left; i++) step(in);
    honest_is_well();
    for (int i = 0; i < GUESTS; i++) {
        raw_poll(&guests[i].c);
        look_at_replies(&guests[i]);
        hang_up(&guests[i]);
    }
}
static void close_port(void) {
    down();
    sim_world_destroy(r.sim);
    memset(guests, 0, sizeof guests);
    runs = 0;
}

const fuzz_target fuzz_data_port = { "data_port", open_port, one, close_port };
