/* replies.c: a client (session and lookup) whose owner answers what it likes: hellos, leases, layouts, values in
 * pieces, entries of scans. The fabric is a puppet (puppet.h), whose owner is silent, and this target speaks for it.
 *
 * Checked: each operation ends, once; a body is as long as it is said to be; a scan's entries lie within it.
 */
#include <stdlib.h>
#include <string.h>
#include "fuzz_guest.h"

enum { OPERATIONS = 16, HEARD = 64, STEPS = 64, SHARDS = 3, BODY = 8192 };
static const uint64_t MS = 1000000;

typedef struct operation {
    bool busy, done;
    uint64_t id;
    lookup_get *get;
} operation;

static puppet *p;
static guest c;
static operation operations[OPERATIONS];
static fkv_request heard[HEARD]; /* the latest requests */
static uint32_t heard_count;

static void hear(puppet *of, const fkv_request *q) {
    (void)of;
    heard[heard_count++ % HEARD] = *q;
}
static void end(operation *o) {
    CHECK(o->busy && !o->done);
    o->done = true;
}
static void on_got(void *ctx, lookup_get *g) {
    (void)ctx;
    const lookup_result *r = lookup_result_of(g);
    if (r->status == FKV_OK) fuzz_touch(lookup_value(g), r->value_bytes);
    end(lookup_user(g));
    lookup_release(g);
}
static void on_answer(void *user, session_answer *a) {
    end(user);
    if (a->status != FKV_OK) return;
    fuzz_touch(a->body, a->body_bytes);
    if (!a->replied || a->reply.op != FKV_OP_SCAN) return;
    fkv_scan_entry e;
    const uint8_t *key, *value;
    uint32_t at = 0;
    while (wire_next_scan_entry(a->body, a->body_bytes, &at, &e, &key, &value)) {
        fuzz_touch(key, e.key_bytes);
        if (value) fuzz_touch(value, e.value_bytes);
    }
    CHECK_EQ(at, a->body_bytes);
}

/* ---- what the client does ---- */

static void turn(void) {
    fuzz_guest_turn(&c);
    for (int i = 0; i < OPERATIONS; i++)
        if (operations[i].done) operations[i] = (operation){ 0 };
}
static void ask(fuzz_in *in) {
    static const uint8_t value[600];
    static const fkv_op ops[] = { FKV_OP_GET, FKV_OP_GET, FKV_OP_PUT, FKV_OP_DELETE, FKV_OP_CAS, FKV_OP_SCAN };
    operation *o = operations;
    while (o->busy && o < operations + OPERATIONS - 1) o++;
    if (o->busy) return;
    uint8_t what = fuzz_u8(in);
    char key[16];
    snprintf(key, sizeof key, "key %u", fuzz_u8(in) % 8);
    lookup_key k = { .bytes = (const uint8_t *)key, .count = (uint32_t)strlen(key) };
    uint64_t deadline = p->now_ns + (1 + fuzz_u8(in)) * 100 * MS;
    *o = (operation){ .busy = true };
    if (what % 3 == 0) {
        if (lookup_start(c.l, &k, p->now_ns, deadline, o, &o->get) != FKV_OK) o->busy = false;
        return;
    }
    session_ask a = { .op = ops[what / 3 % (sizeof ops / sizeof *ops)],
                      .shard = lookup_shard_of(c.l, &k),
                      .key = k.bytes,
                      .key_bytes = k.count,
                      .deadline_ns = deadline,
                      .done = on_answer,
                      .user = o };
    if (a.op == FKV_OP_SCAN) {
        a.key = NULL;
        a.key_bytes = 0;
        a.value_bytes = 10;
        a.flags = FKV_REQUEST_SCAN_VALUES;
    } else if (fkv_op_is(a.op, FKV_VALUED)) {
        a.value = value;
        a.value_bytes = fuzz_u16(in) % sizeof value;
    }
    if (session_request(c.s, &a, &o->id) != FKV_OK) o->busy = false;
}
static void give_up(fuzz_in *in) {
    operation *o = &operations[fuzz_u8(in) % OPERATIONS];
    if (!o->busy || o->done) return;
    if (o->get)
        lookup_cancel(o->get, FKV_ABORTED);
    else
        session_cancel(c.s, o->id, FKV_ABORTED);
}

/* ---- what the owner says ---- */

static uint32_t leases(fuzz_in *in, uint8_t *body) {
    uint32_t n = fuzz_u8(in) % 5;
    for (uint32_t i = 0; i < n; i++) {
        fkv_lease_shard one = { .shard = i, .layout_epoch = 1, .incarnation = p->incarnation };
        if (fuzz_u8(in) & 1) one.shard = (uint32_t)fuzz_number(in);
        memcpy(body + i * sizeof one, &one, sizeof one);
    }
    return n * (uint32_t)sizeof(fkv_lease_shard);
}
/* Segments of the puppet's memory, with one thing or another that is not so. */
static uint32_t layout(fuzz_in *in, uint8_t *body) {
    fkv_layout y = { .incarnation = p->incarnation, .layout_epoch = 1, .epoch = 7, .here = fuzz_u8(in) % 6 };
    uint8_t form = fuzz_u8(in);
    y.count = form & 1 ? (uint32_t)fuzz_number(in) : y.here;
    y.first = form & 2 ? (uint32_t)fuzz_number(in) : 0;
    y.buckets = form & 4 ? (uint32_t)fuzz_number(in) : (uint32_t)(p->memory[0].bytes / FKV_BUCKET_BYTES);
    if (form & 8) y.layout_epoch = (uint32_t)fuzz_number(in);
    if (form & 16) y.epoch = (uint32_t)fuzz_number(in);
    memcpy(body, &y, sizeof y);
    for (uint32_t i = 0; i < y.here; i++) {
        const puppet_memory *m = &p->memory[i % (uint32_t)p->memories];
        fkv_layout_segment g = { .kind = (uint8_t)(i == 0 ? TABLE_INDEX : TABLE_HEAP),
                                 .segment = i,
                                 .tag = p->h->segments[i % (uint32_t)p->h->count].tag,
                                 .bytes = m->bytes,
                                 .rkey = m->rkey,
                                 .addr = m->addr };
        uint8_t wrong = fuzz_u8(in);
        if (wrong & 1) g.segment = (uint32_t)fuzz_number(in);
        if (wrong & 2) g.bytes = fuzz_number(in);
        if (wrong & 4) g.addr += fuzz_number(in);
        if (wrong & 8) g.kind = fuzz_u8(in);
        if (wrong & 16) g.tag = fuzz_u32(in);
        memcpy(body + sizeof y + i * sizeof g, &g, sizeof g);
    }
    return (uint32_t)(sizeof y + y.here * sizeof(fkv_layout_segment));
}
static uint32_t entries(fuzz_in *in, uint8_t *body) {
    uint32_t at = 0;
    for (uint8_t n = fuzz_u8(in) % 8; n > 0; n--) {
        fkv_scan_entry e = { .version = 1, .key_bytes = 1 + fuzz_u8(in) % 32, .has_value = fuzz_u8(in) & 1 };
        e.value_bytes = fuzz_u8(in) & 1 ? fuzz_u8(in) : (uint32_t)fuzz_number(in);
        memcpy(body + at, &e, sizeof e);
        at += (uint32_t)sizeof e + e.key_bytes + (e.has_value ? e.value_bytes & 0xff : 0);
    }
    return at;
}
static void answer(fuzz_in *in) {
    static uint8_t message[sizeof(fkv_reply) + BODY];
    if (!heard_count) return;
    uint32_t back = fuzz_u8(in), known = heard_count < HEARD ? heard_count : HEARD;
    const fkv_request *q = &heard[(heard_count - 1 - back % known) % HEARD];
    fkv_reply a = { .op = q->op, .shard = q->shard, .id = q->id, .version = fuzz_u8(in) };
    uint8_t form = fuzz_u8(in), *body = message + sizeof a;
    if (form & 1) a.status = fuzz_u8(in) % FKV_STATUS_COUNT;
    if (form & 2) a.flags = FKV_REPLY_MORE;
    if (form & 4) a.layout_epoch = fuzz_u8(in);
    if (form & 8) a.buckets = (uint32_t)fuzz_number(in);
    if (form & 16) a.op = fuzz_u8(in) % FKV_OP_COUNT;
    if (a.status == FKV_OK) {
        switch (fkv_op_answer(a.op)) {
        case FKV_BODY_LEASES:
            a.expiry_ms = fuzz_u8(in) & 1 ? fuzz_number(in) : 1000 * MS;
            a.version = p->h->wall_ms;
            a.body_bytes = leases(in, body);
            break;
        case FKV_BODY_LAYOUT: a.body_bytes = layout(in, body); break;
        case FKV_BODY_ENTRIES: a.body_bytes = entries(in, body); break;
        case FKV_BODY_VALUE:
            a.body_bytes = fuzz_u16(in) % 2048;
            a.value_bytes = form & 32 ? (uint32_t)fuzz_number(in) : a.body_bytes;
            a.offset = form & 64 ? (uint32_t)fuzz_number(in) : 0;
            break;
        default: break;
        }
    }
    memcpy(message, &a, sizeof a);
    uint32_t all = (uint32_t)sizeof a + a.body_bytes;
    fuzz_change(in, message, all);
    if (form & 128) all = fuzz_u16(in) % (all + 1);
    fuzz_frames++;
    puppet_deliver(p, message, all);
}
static void say_bytes(fuzz_in *in) {
    static uint8_t message[512];
    uint32_t count = fuzz_u16(in) % sizeof message;
    fuzz_bytes(in, message, count);
    fuzz_frames++;
    puppet_deliver(p, message, count);
}
/* How the next connections are answered. */
static void greet(fuzz_in *in) {
    static uint8_t hello[FAB_PRIVATE_MAX];
    uint8_t form = fuzz_u8(in);
    p->answer = form % 4 ? hello : NULL;
    p->refuses = form & 4;
    p->refusal = FKV_UNAUTHORIZED;
    p->unreachable = (form & 0x18) == 0x18;
    fkv_welcome w = { .magic = FKV_WELCOME_MAGIC, .version = 1, .server_incarnation = p->server_incarnation };
    w.lease_ms = (uint32_t)fuzz_number(in);
    w.drift_ppm = (uint32_t)fuzz_number(in);
    w.wall_ms = fuzz_number(in);
    fkv_challenge c = { .magic = FKV_CHALLENGE_MAGIC, .number = fuzz_u32(in) };
    p->answer_bytes = form % 4 == 1 ? sizeof w : form % 4 == 2 ? sizeof c : fuzz_u8(in) % (FAB_PRIVATE_MAX + 1u);
    if (form % 4 == 2)
        memcpy(hello, &c, sizeof c);
    else
        memcpy(hello, &w, sizeof w);
    fuzz_change(in, hello, sizeof hello);
    fuzz_frames++;
    puppet_break(p, FAB_SUCCESS);
}
static void step(fuzz_in *in) {
    uint8_t what = fuzz_u8(in);
    switch (what % 16) {
    case 0: say_bytes(in); break;
    case 1: greet(in); break;
    case 2: give_up(in); break;
    case 3: puppet_time(p, fuzz_number(in) % (400 * MS)); break;
    case 4: puppet_break(p, what & 0x80 ? FAB_SUCCESS : FAB_RETRY_EXC_ERR); break;
    case 5:
        p->no_credits = !p->no_credits;
        if (!p->no_credits) puppet_credits(p);
        break;
    case 6: fuzz_guest_read(&c, in); break;
    case 7:
    case 8:
    case 9:
        ask(in);
        turn();
        break;
    case 10: turn(); break;
    default:
        answer(in);
        if (what & 0x80) turn();
        break;
    }
}

/* ---- the target ---- */

static void open_client(void) {
    p = puppet_new();
    p->shards = SHARDS;
    p->heard = hear;
}
static void close_client(void) { puppet_free(p); }
/* As it was at first, but for the time. */
static void reset(void) {
    p->answer = NULL;
    p->refuses = p->unreachable = p->no_credits = p->by_hand = p->direct = p->follows = false;
    p->silent = true;
    heard_count = 0;
}
static void one(fuzz_in *in) {
    reset();
    uint8_t form = fuzz_u8(in);
    p->by_hand = form & 1;
    p->direct = form & 2;
    p->follows = form & 4;
    fuzz_guest_open(&c, p, 256, on_got);
    for (uint32_t i = 1; i < SHARDS; i++)
        CHECK_EQ(lookup_set_route(c.l, &(lookup_route){ .shard = i, .owner = 1 }), FKV_OK);
    turn();
    for (int i = 0; i < STEPS && in->left; i++) step(in);
    lookup_close(c.l);
    for (int i = 0; i < OPERATIONS; i++) {
        CHECK(operations[i].busy == operations[i].done);
        operations[i] = (operation){ 0 };
    }
}

const fuzz_target fuzz_replies = { "replies", open_client, one, close_client };
