/* copies_rig.h: data planes of several servers that have copies of one shard, and clients of its owner. Between them
 * messages go by hand, as bytes, in order, until the test drops them: so it is the test that is slow, or cut off. */
#ifndef FARKV_TEST_COPIES_RIG_H
#define FARKV_TEST_COPIES_RIG_H
#include "../../replication/backup.h"
#include "../../replication/sender.h"
#include "../../replication/owner_link.h"
#include "../../replication/replicate.h"
#include "raw_client.h"
#include "worker_visit.h"

/* A lease ends when the test says so: it is longer than any test. */
enum { SERVERS = 3, MESSAGES = 512, COPY_LEASE_MS = 100000, COPY_MEMORY = 16 << 20 };

typedef struct server {
    rig r;
    bool runs;
} server;
typedef struct parcel {
    uint8_t *bytes;
    uint32_t count;
} parcel;
/* A connection of a backup to an owner. */
typedef struct line {
    bool up;
    sender *sender;
    parcel on_way[MESSAGES];
    uint32_t first, end;
    backup_at at; /* in the first of them */
    uint64_t asked_ns;
} line;

/* Set before servers come up. */
static fab_provider copies_over = FAB_SHM;
static uint32_t copies_lease_ms = COPY_LEASE_MS;
static bool copies_encrypted;
static uint32_t copies_clients = 64; /* that a server takes */
static uint32_t copies_scrub_ms;     /* 0: as by default */
static bool copies_alone;            /* the policy wants no copy beside the owner's */
static void (*copies_event)(void *ctx, uint32_t shard, uint64_t copy, dataplane_copy_event what);
static void (*copies_on_suspicion)(void *ctx,
                                   const dataplane_suspicion *o); /* a server's, with its rig as ctx; or NULL */

static void (*copies_configure)(int s, rig *r); /* or NULL: what else is said of a server */

static server servers[SERVERS];
static line lines[SERVERS][SERVERS]; /* [owner][backup] */
static uint32_t number;              /* of the shard of "alpha" */

static inline uint64_t id_of(int s) { return 100 + (uint64_t)s; }

/* ---- on the worker's thread ---- */

typedef struct errand {
    int owner, backup;
    line *l;
    replica_config config;
    fkv_peer_follow follow;
    fkv_peer_follow_ok follow_ok;
    fkv_peer_ack ack;
    fkv_status status;
    backup_result result;
    bool yes;
} errand;

static inline shard *here(worker *w) { return w->by_number[number]; }
static inline void visit_server(int s, void (*f)(worker *w, void *ctx), errand *e) { rig_visit(&servers[s].r, f, e); }

static inline void do_make(worker *w, void *ctx) {
    errand *e = ctx;
    CHECK(backup_make(here(w), id_of(e->backup), copies_lease_ms, &(replica_backup){ .epoch = 1 }));
}
static inline void do_lead(worker *w, void *ctx) { replicate_lead(here(w), &((errand *)ctx)->config); }
static inline void do_configure(worker *w, void *ctx) { replicate_configure(here(w), &((errand *)ctx)->config); }
static inline void do_follow(worker *w, void *ctx) { ((errand *)ctx)->follow = backup_follow(here(w)->repl.copy); }
static inline void do_begin(worker *w, void *ctx) {
    errand *e = ctx;
    e->status = sender_begin(w, &e->follow, &e->l->sender, &e->follow_ok);
}
static inline void do_led(worker *w, void *ctx) {
    errand *e = ctx;
    e->result = backup_on_epoch(here(w)->repl.copy, &e->follow_ok);
}
static inline int post_parcel(void *ctx, const void *message, uint32_t bytes) {
    line *l = ctx;
    if (l->end - l->first == MESSAGES) return -EAGAIN;
    parcel *p = &l->on_way[l->end++ % MESSAGES];
    *p = (parcel){ malloc(bytes), bytes };
    memcpy(p->bytes, message, bytes);
    return 0;
}
static inline void do_send(worker *w, void *ctx) {
    static uint8_t buffer[PEER_MESSAGE_MIN];
    errand *e = ctx;
    (void)w;
    int sent = sender_send(e->l->sender, &(peer_out){ post_parcel, e->l, buffer, sizeof buffer, copies_over });
    CHECK(sent == 0 || sent == -EAGAIN);
}
static inline void do_take(worker *w, void *ctx) {
    errand *e = ctx;
    parcel *p = &e->l->on_way[e->l->first % MESSAGES];
    fkv_peer_message m;
    CHECK_EQ(wire_parse_peer(p->bytes, p->count, &m), FKV_OK);
    e->l->asked_ns = m.records.asked_ns;
    e->result = backup_takes(here(w)->repl.copy, &m, &e->l->at);
}
static inline void do_heartbeat(worker *w, void *ctx) {
    errand *e = ctx;
    e->ack.prepared = sender_heartbeat(e->l->sender).committed;
    e->ack.epoch = here(w)->repl.owner.epoch;
    e->l->asked_ns = w->now_ns;
}
static inline void do_hear(worker *w, void *ctx) {
    errand *e = ctx;
    backup_on_commit_index(here(w)->repl.copy, e->ack.epoch, e->ack.prepared);
}
static inline void do_ack(worker *w, void *ctx) {
    errand *e = ctx;
    e->yes = backup_acknowledges(here(w)->repl.copy, fkv_now_ns(), &e->ack);
}
static inline void do_acked(worker *w, void *ctx) {
    errand *e = ctx;
    (void)w;
    e->yes = sender_acked(e->l->sender, &e->ack, e->l->asked_ns);
}
static inline void do_end(worker *w, void *ctx) {
    (void)w;
    sender_end(((errand *)ctx)->l->sender);
}

/* ---- servers ---- */

static inline void server_up(int s, uint64_t memory) {
    server *v = &servers[s];
    sim_world *world = NULL;
    for (int t = 0; t < SERVERS; t++)
        if (servers[t].runs) world = servers[t].r.sim;
    rig_init(&v->r, copies_over, world);
    v->r.encrypted = copies_encrypted;
    v->r.config.max_clients = copies_clients;
    v->r.config.on_suspicion = copies_on_suspicion;
    v->r.config.on_copy = copies_event;
    v->r.config.scrub_ms = copies_scrub_ms;
    v->r.config.ctx = &v->r;
    number = raw_shard_of(0, "alpha", 5);
    v->r.config.client_quota = 8192;
    v->r.config.wait_ms = RIG_WAIT_MS;
    if (copies_configure) copies_configure(s, &v->r);
    rig_start(&v->r);
    CHECK_EQ(rig_open_shard(&v->r, number, 0, memory, NULL), FKV_OK);
    v->runs = true;
    visit_server(s, do_make, &(errand){ .backup = s });
}
/* `copies`: servers as bits, which are in sync. */
static inline replica_config config_of(int owner, uint32_t copies, uint32_t epoch, uint32_t config) {
    replica_config c = { .epoch = epoch, .config = config, .min_in_sync = 1, .alone = copies_alone };
    for (int s = 0; s < SERVERS; s++)
        if (s != owner && copies >> s & 1) c.id[c.peers++] = id_of(s);
    return c;
}
static inline void server_leads(int owner, uint32_t copies, uint32_t epoch) {
    visit_server(owner, do_lead, &(errand){ .config = config_of(owner, copies, epoch, epoch) });
}
static inline void server_is_left(int owner, uint32_t copies, uint32_t epoch, uint32_t config) {
    visit_server(owner, do_configure, &(errand){ .config = config_of(owner, copies, epoch, config) });
}
static inline void do_ask_whether(worker *w, void *ctx) { ((errand *)ctx)->yes = replicate_may_serve(here(w)); }
/* False: it would have to wait, and is not served. */
static inline bool server_serves(int s) {
    errand e = { 0 };
    visit_server(s, do_ask_whether, &e);
    if (e.yes) CHECK_EQ(rig_shard_call(&servers[s].r, dataplane_serve_shard, number), FKV_OK);
    return e.yes;
}
/* Links that are threads' own make its copies follow it. */
static inline void server_serves_soon(int s) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (!server_serves(s)) CHECK(fkv_now_ns() < until);
}
static inline void leases_end(void) { fkv_clock_skip((int64_t)COPY_LEASE_MS * 1100000); }

/* ---- lines ---- */

static inline errand errand_on(int owner, int backup) {
    return (errand){ .owner = owner, .backup = backup, .l = &lines[owner][backup] };
}
static inline void line_drop(line *l) {
    for (; l->first != l->end; l->first++) free(l->on_way[l->first % MESSAGES].bytes);
    l->at = (backup_at){ 0 };
}
/* All that is on its way is lost. The owner notices, or does not. */
static inline void line_breaks(int owner, int backup, bool noticed) {
    errand e = errand_on(owner, backup);
    if (!e.l->up) return;
    line_drop(e.l);
    e.l->up = false;
    if (noticed && servers[owner].runs) visit_server(owner, do_end, &e);
}
/* The backup dials and follows. What it is answered; OK: the line is up. */
static inline fkv_status line_opens(int owner, int backup) {
    errand e = errand_on(owner, backup);
    line_drop(e.l);
    visit_server(backup, do_follow, &e);
    visit_server(owner, do_begin, &e);
    if (e.status != FKV_OK) return e.status;
    visit_server(backup, do_led, &e);
    CHECK_EQ(e.result, BACKUP_TOOK);
    e.l->up = true;
    e.l->asked_ns = 0;
    return FKV_OK;
}
static inline void owner_sends(int owner, int backup) {
    errand e = errand_on(owner, backup);
    if (e.l->up) visit_server(owner, do_send, &e);
}
/* The next message arrives; false: there is none. */
static inline bool backup_receives(int owner, int backup) {
    errand e = errand_on(owner, backup);
    if (!e.l->up || e.l->first == e.l->end) return false;
    do visit_server(backup, do_take, &e);
    while (e.result == BACKUP_WAITS);
    CHECK_EQ(e.result, BACKUP_TOOK);
    free(e.l->on_way[e.l->first++ % MESSAGES].bytes);
    e.l->at = (backup_at){ 0 };
    return true;
}
static inline void backup_answers(int owner, int backup) {
    errand e = errand_on(owner, backup);
    if (!e.l->up) return;
    visit_server(backup, do_ack, &e);
    if (!e.yes) return;
    visit_server(owner, do_acked, &e);
    CHECK(e.yes);
}
static inline void owner_heartbeats(int owner, int backup) {
    errand e = errand_on(owner, backup);
    if (!e.l->up) return;
    visit_server(owner, do_heartbeat, &e);
    visit_server(backup, do_hear, &e);
}
/* Everything that is on its way arrives and is answered. */
static inline void line_flows(int owner, int backup) {
    owner_sends(owner, backup);
    while (backup_receives(owner, backup)) {}
    backup_answers(owner, backup);
    owner_heartbeats(owner, backup);
    backup_answers(owner, backup);
}
static inline void server_dies(int s) {
    for (int t = 0; t < SERVERS; t++) {
        line_breaks(s, t, false);
        line_breaks(t, s, true);
    }
    rig_dies(&servers[s].r);
    servers[s].runs = false;
}
static inline void servers_down(void) {
    for (int s = 0; s < SERVERS; s++)
        if (servers[s].runs) server_dies(s);
    for (int s = 0; s < SERVERS; s++) rig_end_world(&servers[s].r);
    fkv_clock_restore();
}
#endif
