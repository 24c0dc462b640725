/* puppet.c: the fabric and the owner that puppet.h describes. */
#include "puppet.h"
#include <errno.h>
#include "../../base/clock.h"
#include "../../serve/follow.h"
#include "../../wire/wire.h"

typedef struct puppet_domain {
    fab_domain head;
    puppet *p;
} puppet_domain;
typedef struct puppet_cq {
    fab_cq head;
    puppet *p;
} puppet_cq;
typedef struct puppet_conn {
    fab_conn head;
    puppet *p;
    bool up;
} puppet_conn;

static puppet *the_puppet;

static puppet *of(const fab_conn *c) { return ((const puppet_conn *)c)->p; }

static void emit(puppet *p, fab_wc wc) {
    CHECK(p->events < PUPPET_EVENTS);
    p->message[p->events] = NULL;
    p->event[p->events++] = wc;
}

/* ---- the fabric: set-up ---- */

static int open_domain(const fab_options *o, fab_domain **out) {
    puppet_domain *d = calloc(1, sizeof *d);
    (void)o;
    d->p = the_puppet;
    *out = &d->head;
    return 0;
}
static void close_domain(fab_domain *d) { free(d); }
static int reg(fab_domain *d, const fkv_region *r, uint32_t tenant, fab_mr **out) {
    (void)d, (void)tenant;
    fab_mr *m = calloc(1, sizeof *m);
    m->rkey = 0x77000000u + (uintptr_t)m % 0xffff;
    m->addr = (uint64_t)(uintptr_t)r->base;
    *out = m;
    return 0;
}
static int reg_local(fab_domain *d, void *base, size_t bytes, fab_mr **out) {
    (void)d, (void)base, (void)bytes;
    *out = calloc(1, sizeof **out);
    return 0;
}
static void dereg(fab_mr *m) { free(m); }
static int cq_create(fab_domain *d, fab_cq **out) {
    puppet_cq *q = calloc(1, sizeof *q);
    q->p = ((puppet_domain *)d)->p;
    *out = &q->head;
    return 0;
}
static void cq_destroy(fab_cq *q) { free(q); }
static int arm(fab_cq *q) {
    (void)q;
    return 0;
}
static int no_fd(fab_cq *q) {
    (void)q;
    return -1;
}
static void nothing(fab_cq *q) { (void)q; }
static int no_listen(fab_cq *q, const char *a, fab_listener **out) {
    (void)q, (void)a, (void)out;
    return -EOPNOTSUPP;
}
static void no_unlisten(fab_listener *l) { (void)l; }
static int no_accept(fab_conn *c, uint32_t t, const void *p, uint32_t n) {
    (void)c, (void)t, (void)p, (void)n;
    return -EINVAL;
}
static int no_reject(fab_conn *c, const void *p, uint32_t n) {
    (void)c, (void)p, (void)n;
    return -EINVAL;
}

static const fab_ops puppet_ops;

static int do_connect(fab_cq *cq, const char *address, const fab_identity *who, const void *priv, uint32_t bytes,
                      void *user, fab_conn **out) {
    puppet *p = ((puppet_cq *)cq)->p;
    static fkv_welcome welcome;
    (void)who;
    CHECK_EQ(bytes, sizeof(fkv_hello));
    CHECK_EQ(((const fkv_hello *)priv)->magic, FKV_HELLO_MAGIC);
    CHECK(p->conn == NULL);
    puppet_conn *c = calloc(1, sizeof *c);
    fab_conn_init(&c->head, &puppet_ops, cq, user);
    c->p = p;
    p->conn = &c->head;
    p->connects++;
    p->conn_in_error = false;
    welcome = (fkv_welcome){ .magic = FKV_WELCOME_MAGIC,
                             .version = 1,
                             .status = (uint8_t)(p->refuses ? p->refusal : FKV_OK),
                             .server_incarnation = p->server_incarnation,
                             .lease_ms = (uint32_t)(p->lease_ns / 1000000),
                             .drift_ppm = 1000,
                             .wall_ms = p->h->wall_ms,
                             .quota = p->quota,
                             .ended = (uint8_t)p->ended };
    c->up = !p->unreachable && !p->refuses;
    c->head.max_message = c->up ? 16 << 10 : 0;
    uint32_t answer_bytes = p->answer ? p->answer_bytes : sizeof welcome;
    *out = &c->head;
    if (p->mute && strcmp(address, p->mute) == 0) return 0;
    emit(p, (fab_wc){ .opcode = FAB_WC_CONNECT,
                      .conn = &c->head,
                      .data = p->answer ? p->answer : &welcome,
                      .bytes = p->unreachable ? 0 : answer_bytes,
                      .status = c->up        ? FAB_SUCCESS
                                : p->refuses ? FAB_REM_ACCESS_ERR
                                             : FAB_RETRY_EXC_ERR });
    return 0;
}
static void free_unreleased(puppet *p) {
    while (p->unreleased_count) free(p->unreleased[--p->unreleased_count]);
}
static void do_disconnect(fab_conn *c) {
    puppet *p = of(c);
    int kept = 0;
    for (int i = 0; i < p->events; i++) {
        if (p->event[i].conn == c) {
            free(p->message[i]);
        } else {
            p->message[kept] = p->message[i];
            p->event[kept++] = p->event[i];
        }
    }
    p->events = kept;
    for (int i = 0; i < PUPPET_READS; i++) p->read[i].flying = false;
    p->flying = 0;
    free_unreleased(p);
    p->conn = NULL;
    free(c);
}

/* ---- the fabric: data ---- */

static puppet_memory *memory_of(puppet *p, uint64_t rkey) {
    for (int i = p->memories - 1; i >= 0; i--)
        if (p->memory[i].rkey == rkey && !p->memory[i].revoked) return &p->memory[i];
    return NULL;
}
puppet_read *puppet_first(puppet *p) {
    for (int i = 0; p->flying && i < PUPPET_READS; i++)
        if (p->read[i].flying) return &p->read[i];
    return NULL;
}
static void land(puppet *p, puppet_read *r) {
    r->flying = false;
    p->flying--;
}
static void emit_failed(puppet *p, const puppet_read *r, fab_wc_status status) {
    fab_wc wc = { .opcode = FAB_WC_READ, .status = status, .wr_id = r->r.wr_id, .conn = p->conn };
    emit(p, wc);
    if (p->duplicates) emit(p, wc);
}
void puppet_break(puppet *p, fab_wc_status status) {
    if (!p->conn || p->conn_in_error) return;
    p->conn_in_error = true;
    for (puppet_read *r; (r = puppet_first(p)) != NULL;) {
        land(p, r);
        emit_failed(p, r, FAB_WR_FLUSH_ERR);
    }
    emit(p, (fab_wc){ .opcode = FAB_WC_DISCONNECT, .status = status, .conn = p->conn });
}
void puppet_fail(puppet *p, puppet_read *r, fab_wc_status status) {
    land(p, r);
    emit_failed(p, r, status);
    puppet_break(p, status);
}
static bool lies_in(const puppet_memory *m, uint64_t addr, uint64_t bytes) {
    return m && addr >= m->addr && addr - m->addr <= m->bytes && m->bytes - (addr - m->addr) >= bytes;
}
static const uint8_t *shown(const puppet_memory *m) { return m->shown ? m->shown : m->base; }
void puppet_carry(puppet *p, puppet_read *r, uint32_t until) {
    puppet_memory *m = memory_of(p, r->r.rkey);
    if (!lies_in(m, r->r.remote_addr, r->r.bytes)) {
        puppet_fail(p, r, FAB_REM_ACCESS_ERR);
        return;
    }
    if (until > r->r.bytes) until = r->r.bytes;
    if (until < r->r.bytes) until &= ~7u; /* no aligned word comes in parts (table/layout.h) */
    if (until <= r->copied) return;
    const uint8_t *from = shown(m) + (r->r.remote_addr - m->addr);
    memcpy((uint8_t *)r->r.local + r->copied, from + r->copied, until - r->copied);
    r->copied = until;
}
static const puppet_memory *segment_of(const puppet *p, uint32_t number) {
    for (int i = p->h->count - 1; i >= 0; i--) {
        const host_segment *s = &p->h->segments[i];
        if (s->kind != TABLE_HEAP || s->number != number || s->retired) continue;
        for (int k = 0; k < p->memories; k++)
            if (p->memory[k].base == s->region.base) return &p->memory[k];
    }
    return NULL;
}
/* As a responder would: what the bytes that were carried over lead to, from the memory as it is now. */
static uint32_t carry_next(puppet *p, puppet_read *r) {
    _Alignas(64) uint8_t first[FAB_FOLLOW_FIRST_MAX];
    fab_next to;
    memcpy(first, r->r.local, r->r.bytes);
    if (!dataplane_follow(first, r->r.bytes, r->r.next_argument, &to) || to.bytes > r->r.next_bytes) return 0;
    const puppet_memory *m = segment_of(p, to.number);
    if (!m || !lies_in(m, m->addr + to.offset, to.bytes)) return 0;
    if (p->between) p->between(p);
    memcpy(r->r.next_local, shown(m) + to.offset, to.bytes - p->next_cut);
    return to.bytes - p->next_cut;
}
void puppet_complete(puppet *p, puppet_read *r) {
    puppet_carry(p, r, r->r.bytes);
    if (!r->flying) return; /* refused */
    land(p, r);
    uint32_t bytes = r->r.bytes + (p->follows && r->r.next_bytes ? carry_next(p, r) : 0);
    emit(p, (fab_wc){
                .opcode = FAB_WC_READ, .status = FAB_SUCCESS, .wr_id = r->r.wr_id, .conn = p->conn, .bytes = bytes });
}
static bool do_follows(const fab_conn *c) { return of((fab_conn *)(uintptr_t)c)->follows; }
static int do_post_reads(fab_conn *c, const fab_read *r, int n) {
    puppet *p = of(c);
    if (p->conn_in_error) return -ENOTCONN;
    if (p->unpinned) return -ENOMEM;
    uint32_t room = p->queue_room ? p->queue_room : PUPPET_READS;
    for (int i = 0; i < n; i++) {
        CHECK(fab_local_ok(&r[i]));
        if (p->flying >= room) return i;
        int at = 0;
        while (p->read[at].flying) at++;
        p->read[at] = (puppet_read){ .r = r[i], .flying = true };
        p->flying++;
        p->reads_posted++;
    }
    return n;
}
static int do_attach(fab_conn *c, uint64_t rkey, uint64_t addr, uint64_t bytes, uint64_t wr_id) {
    puppet *p = of(c);
    if (p->attach_room && p->attaches >= p->attach_room) return -EAGAIN;
    p->attaches++;
    fab_wc_status status = lies_in(memory_of(p, rkey), addr, bytes) ? FAB_SUCCESS : FAB_REM_ACCESS_ERR;
    emit(p, (fab_wc){ .opcode = FAB_WC_ATTACH, .status = status, .wr_id = wr_id, .conn = c });
    return 0;
}
static void do_detach(fab_conn *c, uint64_t rkey) { (void)c, (void)rkey; }
static const uint8_t *do_direct(fab_conn *c, uint64_t rkey) {
    puppet_memory *m = memory_of(of(c), rkey);
    return of(c)->direct && m ? shown(m) : NULL;
}
static void do_release(fab_conn *c, const void *message) {
    puppet *p = of(c);
    int i = p->unreleased_count - 1;
    while (i >= 0 && p->unreleased[i] != message) i--;
    CHECK(i >= 0);
    free(p->unreleased[i]);
    p->unreleased[i] = p->unreleased[--p->unreleased_count];
}
static int do_poll(fab_cq *cq, fab_wc *wc, int max) {
    puppet *p = ((puppet_cq *)cq)->p;
    while (!p->by_hand && puppet_first(p)) puppet_complete(p, puppet_first(p));
    int n = p->events < max ? p->events : max;
    memcpy(wc, p->event, (size_t)n * sizeof *wc);
    for (int i = 0; i < n; i++) {
        if (!p->message[i]) continue;
        CHECK(p->unreleased_count < PUPPET_EVENTS);
        p->unreleased[p->unreleased_count++] = p->message[i];
    }
    p->events -= n;
    memmove(p->event, p->event + n, (size_t)p->events * sizeof *wc);
    memmove(p->message, p->message + n, (size_t)p->events * sizeof *p->message);
    return n;
}
void puppet_credits(puppet *p) {
    p->no_credits = false;
    if (p->conn) emit(p, (fab_wc){ .opcode = FAB_WC_SEND_READY, .conn = p->conn });
}

void puppet_garbage(puppet *p) {
    uint8_t *m = malloc(20);
    memset(m, 0xee, 20);
    emit(p, (fab_wc){ .opcode = FAB_WC_RECV, .conn = p->conn, .data = m, .bytes = 20 });
    p->message[p->events - 1] = m;
}

/* ---- the owner ---- */

void puppet_deliver(puppet *p, const void *reply, uint32_t bytes) {
    if (!p->conn || p->conn_in_error || bytes == 0) return;
    uint8_t *m = malloc(bytes);
    memcpy(m, reply, bytes);
    emit(p, (fab_wc){ .opcode = FAB_WC_RECV, .conn = p->conn, .data = m, .bytes = bytes });
    p->message[p->events - 1] = m;
}
static owner_key key_of(void *ctx, const table_segment *s) {
    puppet *p = ctx;
    for (int i = 0; i < p->memories; i++) {
        if (p->memory[i].base == s->region->base) return (owner_key){ p->memory[i].rkey, p->memory[i].addr };
    }
    return (owner_key){ 0, 0 };
}
static void count(puppet *p, const fkv_request *q) {
    p->sends++;
    p->retries += (q->flags & FKV_REQUEST_RETRY) != 0;
    p->cancels += q->op == FKV_OP_CANCEL;
    if (p->silent || p->refuses_with != FKV_OK) return;
    p->leases += q->op == FKV_OP_LEASE;
    p->layouts += q->op == FKV_OP_LAYOUT;
    p->gets += q->op == FKV_OP_GET;
    if (!fkv_op_is(q->op, FKV_CHANGES)) return;
    p->changes++;
    p->last_sequence = q->sequence;
}
static int do_send(fab_conn *c, const struct iovec *iov, int n, uint32_t bytes) {
    puppet *p = of(c);
    if (p->conn_in_error) return -ENOTCONN;
    if (p->no_credits) return -EAGAIN;
    uint8_t *m = malloc(bytes), *at = m;
    for (int i = 0; i < n; at += iov[i].iov_len, i++) memcpy(at, iov[i].iov_base, iov[i].iov_len);
    fkv_request q;
    const uint8_t *key, *body;
    CHECK_EQ(wire_parse_request(m, bytes, &q, &key, &body), FKV_OK);
    count(p, &q);
    if (p->heard) p->heard(p, &q);
    if (!p->silent) {
        static uint8_t reply[OWNER_MESSAGE];
        owner_life life = { .shard = p->shard,
                            .epoch = p->epoch,
                            .incarnation = p->incarnation,
                            .lease_ns = p->lease_ns,
                            .grants = p->grants,
                            .key_of = key_of,
                            .ctx = p };
        bool refused = p->refuses_with != FKV_OK && q.op != FKV_OP_LEASE && q.op != FKV_OP_CANCEL;
        fkv_reply refusal = { .op = q.op, .status = (uint8_t)p->refuses_with, .shard = q.shard, .id = q.id };
        if (q.op == FKV_OP_LAYOUT) puppet_register(p);
        if (refused)
            puppet_deliver(p, &refusal, sizeof refusal);
        else
            puppet_deliver(p, reply, owner_answer(p->h, &life, &q, key, body, reply));
    }
    free(m);
    return 0;
}

static const fab_ops puppet_ops = {
    .open = open_domain,
    .close = close_domain,
    .reg = reg,
    .reg_local = reg_local,
    .dereg = dereg,
    .cq_create = cq_create,
    .cq_destroy = cq_destroy,
    .poll = do_poll,
    .flush = nothing,
    .arm = arm,
    .fd = no_fd,
    .listen = no_listen,
    .unlisten = no_unlisten,
    .connect = do_connect,
    .accept = no_accept,
    .reject = no_reject,
    .disconnect = do_disconnect,
    .post_reads = do_post_reads,
    .send = do_send,
    .release = do_release,
    .attach = do_attach,
    .detach = do_detach,
    .direct = do_direct,
    .follows = do_follows,
};

void puppet_register(puppet *p) {
    for (int i = 0; i < p->h->count; i++) {
        host_segment *s = &p->h->segments[i];
        bool known = false;
        for (int k = 0; k < p->memories; k++) {
            if (p->memory[k].base != s->region.base) continue;
            known = true;
            if (s->retired) p->memory[k].revoked = true;
        }
        if (known || s->retired) continue;
        CHECK(p->memories < PUPPET_MEMORY);
        uint64_t rkey = p->rkey_base + (uint64_t)i;
        p->memory[p->memories++] = (puppet_memory){
            .rkey = rkey, .addr = rkey << 20, .base = s->region.base, .bytes = s->region.bytes
        };
    }
}

/* As host_open, with tags that no other table has. */
static host *open_table(void) {
    static uint32_t tag = 0x20000000;
    host *h = calloc(1, sizeof *h);
    h->config = (table_config){ .shard = 0,
                                .epoch = 7,
                                .seed = { 11, 13 },
                                .memory_bytes = 16 << 20,
                                .want_segment = host_want,
                                .retire_segment = host_retire,
                                .ctx = h };
    h->now_ns = 1000000000;
    h->wall_ms = 1700000000000;
    CHECK_EQ(table_create(&h->config, &h->t), FKV_OK);
    for (int i = 0; i < 2; i++) {
        table_segment_kind kind = i ? TABLE_HEAP : TABLE_INDEX;
        size_t bytes = i ? table_first_heap_bytes(&h->config) : table_first_index_bytes(&h->config);
        host_segment *s = &h->segments[h->count++];
        *s = (host_segment){ .kind = kind, .tag = ++tag, .region = { .fd = -1, .bytes = bytes } };
        s->region.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(s->region.base != MAP_FAILED);
        CHECK_EQ(table_add_segment(h->t, kind, &s->region, s->tag, &s->number), FKV_OK);
    }
    table_tick(h->t, h->now_ns, h->wall_ms, 1000);
    host_serve(h);
    return h;
}

puppet *puppet_new(void) {
    puppet *p = the_puppet = calloc(1, sizeof *p);
    fab_bring("puppet", &puppet_ops);
    p->h = open_table();
    p->now_ns = p->h->now_ns;
    fkv_clock_set(p->now_ns);
    p->shards = 1;
    p->incarnation = 0x1111;
    p->server_incarnation = 0x2222;
    p->epoch = 7;
    p->lease_ns = 1000000000;
    p->grants = true;
    p->rkey_base = 0x100;
    puppet_register(p);
    return p;
}

void puppet_free(puppet *p) {
    free_unreleased(p);
    for (int i = 0; i < p->events; i++) free(p->message[i]);
    for (int i = 0; i < p->olds; i++) host_close(p->old[i]);
    host_close(p->h);
    free(p);
    fkv_clock_restore();
}

void puppet_restart(puppet *p, bool reused) {
    host *third = reused ? open_table() : NULL;
    uint64_t now = p->h->now_ns, wall = p->h->wall_ms;
    CHECK(p->olds + 2 <= (int)(sizeof p->old / sizeof *p->old));
    if (reused) p->old[p->olds++] = third;
    for (int i = 0; i < p->memories; i++) {
        puppet_memory *m = &p->memory[i];
        m->revoked = !reused;
        if (reused) m->base = third->segments[i % 2].region.base;
    }
    p->old[p->olds++] = p->h;
    p->h = open_table();
    p->h->now_ns = now;
    p->h->wall_ms = wall;
    table_tick(p->h->t, now, wall, 1000);
    p->incarnation++;
    p->server_incarnation++;
    p->epoch++;
    p->rkey_base += 0x1000;
    puppet_register(p);
}

void puppet_time(puppet *p, uint64_t ns) {
    p->now_ns += ns;
    fkv_clock_set(p->now_ns);
}
void puppet_pass(puppet *p, uint64_t ns) {
    puppet_time(p, ns);
    host_pass(p->h, ns);
}
