/* durable_rig.h: durable shards of servers whose disks are the test's (gated_disk.h), and what is in their logs. The links
 * between the servers are the product's. */
#ifndef FARKV_TEST_DURABLE_RIG_H
#define FARKV_TEST_DURABLE_RIG_H
#include "../../replication/durable.h"
#include "gated_disk.h"
#include "large_values.h"
#include "links_rig.h"
#include "logged.h"

enum { LOG_BUFFER = 64 << 10, LOG_FILE = 256 << 10, MOST = 512 };

static gated_disk disks[SERVERS];
static uint64_t versions[MOST]; /* of what was answered */
static uint32_t answers;
static logged read_back;
static uint32_t wait_ms;
static uint32_t failures; /* atomic: calls of on_log_failed */
static int failed_with;   /* atomic */

static const wal_identity identity = { .cluster = "cluster of tests", .instance = 5 };

static inline void log_failed(void *ctx, const char *operation, const char *file, int error) {
    (void)ctx, (void)operation, (void)file;
    __atomic_store_n(&failed_with, error, __ATOMIC_RELAXED); /* two servers may fail at once */
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELEASE);
}
static bool disks_stay; /* servers come back to what they had */
static inline void configure(int s, rig *r) {
    if (!disks_stay) gated_disk_init(&disks[s], check_seed());
    r->durable = true;
    r->config.log = (dataplane_log){
        .disk = &disks[s].table, .instance = identity.instance, .file_bytes = LOG_FILE, .buffer_bytes = LOG_BUFFER
    };
    memcpy(r->config.log.cluster, identity.cluster, sizeof identity.cluster);
    r->config.on_log_failed = log_failed;
    if (wait_ms) r->config.wait_ms = wait_ms;
}
static inline void begin(void) {
    copies_configure = configure;
    failures = answers = 0;
    wait_ms = 0;
    disks_stay = false;
}
static inline void disks_free(int count) {
    for (int s = 0; s < count; s++) gated_disk_free(&disks[s]);
}
/* The shard that was closed, as another copy. */
static inline void opens_again(uint64_t incarnation) {
    rig_call call;
    rig_call_init(&call);
    dataplane_shard again = {
        .shard = number, .epoch = 1, .incarnation = incarnation, .memory_bytes = COPY_MEMORY, .durable = true
    };
    dataplane_open_shard(servers[OWNER].r.d, &again, rig_done, &call);
    CHECK_EQ(rig_wait(&call), FKV_OK);
    free(call.result);
    visit_server(OWNER, do_make, &(errand){ .backup = OWNER });
}

/* ---- looking ---- */

static struct { uint64_t last, committed, peer, logged, held, begun, aheads, rests; } at;
static inline void do_look_at(worker *w, void *ctx) {
    (void)ctx;
    const shard *s = here(w);
    const replica_log *l = s->repl.copy->leads ? &s->repl.owner.log : &s->repl.copy->place.log;
    at.last = s->repl.copy->leads ? s->repl.owner.last : s->repl.copy->place.prepared;
    at.committed = s->repl.copy->leads ? s->repl.owner.committed : s->repl.copy->applied;
    at.peer = s->repl.owner.peer[0].prepared;
    at.logged = l->logged;
    at.begun = l->epoch;
    at.held = s->held;
    at.aheads = w->repl.log->wal.aheads;
    const wal *g = &w->repl.log->wal;
    at.rests = list_empty(&w->repl.log->behind) &&
               (wal_is_idle(g) || (!g->write.base.under_way && !w->repl.log->urgent));
}
static inline void look_at(int s) { visit_server(s, do_look_at, &(errand){ 0 }); }
#define UNTIL_AT(server, e)                                                        \
    do {                                                                           \
        uint64_t until_ = fkv_now_ns() + check_patience_ms() * 1000000u;           \
        for (look_at(server); !(e); look_at(server)) CHECK(fkv_now_ns() < until_); \
    } while (0)
/* The owner alone, which waits for its own log only. */
static inline void up_alone(void) {
    server_up(OWNER, COPY_MEMORY);
    server_leads(OWNER, 1, 1);
    CHECK(server_serves(OWNER));
    /* The maker of files is at rest, and nothing is at the disk that what comes next could go with. */
    UNTIL_AT(OWNER, at.aheads == 2 && at.rests);
    raw_up(&c, &servers[OWNER].r, CLIENT);
}
/* What would happen has had its turns. */
static inline void give_turns(void) {
    for (int i = 0; i < 20; i++) {
        look_at(OWNER);
        if (servers[NEXT].runs) look_at(NEXT);
    }
}
static inline bool is_answered(uint64_t id) {
    raw_poll(&c);
    return is_here(&c, id);
}

/* ---- what was answered ---- */

static inline fkv_status end_noted(uint64_t id) {
    raw_message *m = raw_receive(&c, id);
    fkv_status s = (fkv_status)m->reply.status;
    if (s == FKV_OK) versions[answers++] = m->reply.version;
    free(m);
    return s;
}
static inline void put(uint32_t i) { CHECK_EQ(end_noted(raw_put_begin(&c, key_at(i), &i, sizeof i)), FKV_OK); }
/* Its power is gone, and so is the server. */
static inline void loses_power(int s) {
    gated_disk_off(&disks[s]);
    server_dies(s);
    gated_disk_on(&disks[s]);
}
static inline void has_all_that_was_answered(int s) {
    logged_read(&disks[s].table, &identity, number, 1000 + number, &read_back);
    for (uint32_t i = 0; i < answers; i++) CHECK(logged_find(&read_back, versions[i]));
}

#endif
