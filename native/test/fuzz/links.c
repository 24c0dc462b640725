/* links.c: both ends of a link between data planes (docs/replication-links.md), with a hostile server at the other one:
 * one that has the cluster's secret, and so a good ticket. Two data planes over the simulated fabric, in simulated time
 * and on this thread: the owner of shards, to which a hostile copy comes; and a copy of a shard, which dials a hostile
 * owner.
 *
 * Checked, beside that nothing breaks: a change is answered only when the copy it waits for has acknowledged a record
 * of it; a shard of which the hostile server has no copy stays as an honest client left it; the table of the copy is
 * whole, whatever was in the records.
 */
#include "../../replication/backup.h"
#include "../../replication/bulk.h"
#include "../../dataplane/op.h"
#include "../../serve/loop.h"
#include "../../replication/replicate.h"
#include "../../replication/owner_link.h"
#include "../dataplane/raw_client.h"
#include "fuzz.h"

enum { LARGE = 40000, MEMORY = 1 << 16 };
enum { COPIED = 0, ALONE = 1, COPY_ID = 7, LEASE_MS = 1000, SHARDS = 2, STEPS = 40, AGAIN = 500, ATTEMPTS = 100000 };

static sim_world *world;
static rig owner, copy;
static raw hostile, guest; /* both of the owner's; the first shows a server's ticket */
static struct {
    fab_domain *domain;
    fab_cq *cq;
    fab_listener *listener;
    fab_conn *conn;    /* of the copy; NULL: it has not come */
    fkv_region memory; /* that values are READ from */
    fab_mr *mr;
} imposter;
static uint64_t acknowledged; /* highest record that the hostile copy said it has, in a message that was right */
static uint64_t version;      /* of the last record that was made up */
static uint32_t runs, written;

static shard *shard_of(rig *r, uint32_t n) { return r->d->worker[0]->by_number[n]; }

static uint32_t placed_at(const char *key) {
    return fkv_hash_shard(fkv_hash_key(&RIG_SEED, 0, key, strlen(key)), SHARDS);
}

/* ---- turns ---- */

static void step_rig(rig *r) {
    helper_drain(&r->d->memory);
    helper_drain(&r->d->huge);
    helper_drain(&r->d->copier);
    worker_turn(r->d->worker[0]);
}
static void listen_to_copy(void) {
    fab_wc wc[16];
    int n = fab_poll(imposter.cq, wc, 16);
    for (int i = 0; i < n; i++) {
        if (wc[i].opcode == FAB_WC_ACCEPT) {
            fkv_welcome w = { .magic = FKV_WELCOME_MAGIC, .version = FKV_WIRE_VERSION_MAX };
            if (imposter.conn) fab_disconnect(imposter.conn);
            imposter.conn = fab_accept(wc[i].conn, 0, &w, sizeof w) == 0 ? wc[i].conn : NULL;
            if (!imposter.conn) fab_disconnect(wc[i].conn);
        } else if (wc[i].opcode == FAB_WC_RECV) {
            fkv_peer_message m;
            CHECK_EQ(wire_parse_peer(wc[i].data, wc[i].bytes, &m), FKV_OK); /* what the product says is right */
            if (wc[i].conn == imposter.conn) fab_release(wc[i].conn, wc[i].data);
        } else if (wc[i].opcode == FAB_WC_DISCONNECT && wc[i].conn == imposter.conn) {
            fab_disconnect(imposter.conn);
            imposter.conn = NULL;
        }
    }
    fab_flush(imposter.cq);
}
/* What the owner sends to its hostile copy is thrown away. */
static void listen_to_owner(void) {
    fab_wc wc[16];
    int n = fab_poll(hostile.cq, wc, 16);
    for (int i = 0; i < n; i++) {
        if (wc[i].opcode == FAB_WC_RECV) {
            fkv_peer_message m;
            CHECK_EQ(wire_parse_peer(wc[i].data, wc[i].bytes, &m), FKV_OK);
            fab_release(wc[i].conn, wc[i].data);
        } else if (wc[i].opcode == FAB_WC_DISCONNECT) {
            hostile.gone = true;
        }
    }
    fab_flush(hostile.cq);
}
static void turn(uint64_t ns) {
    sim_run_until(world, sim_now(world) + ns);
    step_rig(&owner);
    step_rig(&copy);
    listen_to_copy();
    if (hostile.answered) listen_to_owner();
    raw_poll(&guest);
}

/* ---- connections ---- */

static fkv_status dial(raw *c, const fkv_pass *p, const fkv_challenge *answers) {
    fkv_hello h = fkv_hello_make(p, answers);
    c->answered = c->gone = false;
    CHECK_EQ(fab_connect(c->cq, dataplane_address(owner.d, 0), &h, sizeof h, NULL, &c->conn), 0);
    fab_flush(c->cq);
    for (int i = 0; !c->answered; i++) {
        CHECK(i < ATTEMPTS);
        turn(2000);
        raw_poll(c);
    }
    return c->welcome;
}
static void come(raw *c, uint64_t id, uint32_t flags) {
    fkv_pass p = raw_pass(id, flags);
    raw_hang_up(c);
    dial(c, &p, NULL);
    fkv_challenge challenge = c->challenge;
    raw_hang_up(c);
    CHECK_EQ(dial(c, &p, &challenge), FKV_OK);
}

/* ---- the honest client ---- */

static const char *key_of(uint32_t n) {
    static char key[2][16];
    static uint32_t of[2];
    for (uint32_t i = of[n]; key[n][0] == 0 || placed_at(key[n]) != n; of[n] = ++i)
        snprintf(key[n], sizeof key[n], "key %u", i);
    return key[n];
}
static uint64_t ask(fkv_op op, uint32_t n, const char *value) {
    fkv_request q = raw_request(&guest, op, key_of(n));
    q.shard = n;
    if (op == FKV_OP_PUT) {
        q.sequence = ++guest.sequence[n + 2];
        q.value_bytes = (uint32_t)strlen(value);
    }
    CHECK_EQ(raw_try(&guest, &q, key_of(n), value, q.value_bytes), 0);
    return q.id;
}
/* The largest value that a request carries: its record fits no message of a link. */
static const char *large_text(void) {
    static char text[1 << 17];
    size_t n = fab_max_message(guest.conn) - sizeof(fkv_request) - strlen(key_of(COPIED));
    CHECK(n < sizeof text && !bulk_fits_message((uint32_t)strlen(key_of(COPIED)), (uint32_t)n));
    memset(text, 'x', n);
    text[n] = 0;
    return text;
}
static raw_message *find(uint64_t id) {
    for (raw_message *m = guest.first; m; m = m->next)
        if (m->reply.id == id) return raw_receive(&guest, id);
    return NULL;
}
static raw_message *receive(uint64_t id) {
    raw_message *m;
    for (int i = 0; !(m = find(id)); i++) {
        CHECK(i < ATTEMPTS && !guest.gone);
        turn(2000);
    }
    return m;
}
static void guest_is_well(void) {
    char text[16];
    bool writes = !written || runs % 8 == 0;
    written += writes;
    snprintf(text, sizeof text, "%u", written);
    raw_message *m = receive(ask(writes ? FKV_OP_PUT : FKV_OP_GET, ALONE, text));
    CHECK_EQ(m->reply.status, FKV_OK);
    if (m->reply.op == FKV_OP_GET) CHECK(m->bytes == strlen(text) && memcmp(m->body, text, m->bytes) == 0);
    free(m);
}
/* A change that waits for the hostile copy. */
static void look_at_answers(void) {
    const shard *s = shard_of(&owner, COPIED);
    CHECK(s->repl.owner.committed <= acknowledged);
    raw_drop_messages(&guest);
}

/* ---- what a hostile server says ---- */

static void send_to(fab_conn *c, fab_cq *cq, const void *bytes, uint32_t count) {
    if (!c || count == 0) return;
    fuzz_frames++;
    fab_send(c, &(struct iovec){ (void *)(uintptr_t)bytes, count }, 1);
    fab_flush(cq);
}
/* A number that fits what there is, or any. */
static uint64_t close_to(fuzz_in *in, uint64_t n) {
    uint8_t how = fuzz_u8(in);
    return how < 200 ? n + how % 4 - (how % 4 > n ? 0 : how % 2) : fuzz_number(in);
}
static void to_owner(fuzz_in *in, void *bytes, uint32_t count) {
    fkv_peer_message m;
    fuzz_change(in, bytes, count);
    if (wire_parse_peer(bytes, count, &m) == FKV_OK && m.op == FKV_PEER_ACKS)
        for (uint32_t i = 0; i < m.list.count; i++) {
            fkv_peer_ack a = wire_peer_ack(&m, i);
            if (a.shard == COPIED && a.prepared > acknowledged) acknowledged = a.prepared;
        }
    send_to(hostile.gone ? NULL : hostile.conn, hostile.cq, bytes, count);
}
static void say_follow(fuzz_in *in) {
    const replica_owner *o = &shard_of(&owner, COPIED)->repl.owner;
    fkv_peer_follow f = { .op = FKV_PEER_FOLLOW,
                          .shard = fuzz_u8(in) % 8 == 7 ? (uint32_t)fuzz_number(in) : COPIED,
                          .epoch = (uint32_t)close_to(in, o->epoch),
                          .lease_ms = 1 + fuzz_u16(in) % 2000,
                          .id = fuzz_u8(in) % 8 == 7 ? fuzz_number(in) : COPY_ID,
                          .prepared = close_to(in, o->committed),
                          .room = close_to(in, 1 << 20) };
    to_owner(in, &f, sizeof f);
}
static void say_acks(fuzz_in *in) {
    const replica_owner *o = &shard_of(&owner, COPIED)->repl.owner;
    struct {
        fkv_peer_list head;
        fkv_peer_ack item[3];
    } m = { .head = {
                .op = FKV_PEER_ACKS, .count = 1 + fuzz_u8(in) % 3, .asked_ns = close_to(in, fkv_now_ns() - 1000) } };
    for (uint32_t i = 0; i < m.head.count; i++)
        m.item[i] = (fkv_peer_ack){ .shard = fuzz_u8(in) % 4 == 3 ? (uint32_t)fuzz_number(in) : COPIED,
                                    .epoch = (uint32_t)close_to(in, o->epoch),
                                    .prepared = close_to(in, o->last),
                                    .limit = fuzz_number(in) };
    to_owner(in, &m, (uint32_t)(sizeof m.head + m.head.count * sizeof m.item[0]));
}
static void say_unfollow(fuzz_in *in) {
    fkv_peer_notice n = { .op = FKV_PEER_UNFOLLOW, .shard = fuzz_u8(in) % 3, .epoch = (uint32_t)close_to(in, 1) };
    to_owner(in, &n, sizeof n);
}

static void to_copy(fuzz_in *in, void *bytes, uint32_t count) {
    fuzz_change(in, bytes, count);
    send_to(imposter.conn, imposter.cq, bytes, count);
}
static void say_follow_ok(fuzz_in *in) {
    const backup *b = shard_of(&copy, COPIED)->repl.copy;
    fkv_peer_follow_ok t = { .op = FKV_PEER_FOLLOW_OK,
                             .shard = fuzz_u8(in) % 8 == 7 ? (uint32_t)fuzz_number(in) : COPIED,
                             .epoch = (uint32_t)close_to(in, b->place.epoch),
                             .config = fuzz_u8(in),
                             .last = close_to(in, b->place.prepared) };
    to_copy(in, &t, sizeof t);
}
static void say_records(fuzz_in *in) {
    static uint8_t bytes[PEER_MESSAGE_MIN];
    static const uint8_t value[4096];
    const backup *b = shard_of(&copy, COPIED)->repl.copy;
    uint8_t wanted = fuzz_u8(in) % 8 + 1, form = fuzz_u8(in);
    fkv_records head = { .op = FKV_PEER_RECORDS,
                         .shard = COPIED,
                         .epoch = (uint32_t)close_to(in, b->place.epoch),
                         .first = form & 1 ? close_to(in, b->place.prepared + 1) : b->place.prepared + 1,
                         .committed = close_to(in, b->place.prepared),
                         .asked_ns = fkv_now_ns() };
    uint32_t used = sizeof head;
    for (; head.count < wanted; head.count++) {
        char key[16];
        uint8_t how = fuzz_u8(in);
        snprintf(key, sizeof key, "%u", how & 64 ? how : fuzz_u8(in) & 31u);
        if (!(form & 2))
            for (uint32_t i = 0; placed_at(key) != COPIED; i++)
                snprintf(key, sizeof key, "%u", 100 + how % 32 + 32 * i);
        fkv_record r = { .kind = how & 1 ? FKV_RECORD_DELETE : FKV_RECORD_PUT,
                         .key_bytes = (uint16_t)strlen(key),
                         .value_bytes = how & 1 ? 0 : (uint32_t)(how & 2 ? fuzz_u16(in) % sizeof value : how),
                         .version = form & 4 ? close_to(in, version) : ++version,
                         .client = 1 + how % 4,
                         .sequence = 1 + fuzz_number(in) % FKV_SEQUENCE_MAX };
        uint32_t n = wire_put_record(bytes + used, (uint32_t)sizeof bytes - used, &r, (uint8_t *)key, value);
        if (n == 0) break;
        used += n;
    }
    memcpy(bytes, &head, sizeof head);
    to_copy(in, bytes, used);
}
/* A large value, of which all may be as it should. */
static void say_value_offer(fuzz_in *in) {
    const backup *b = shard_of(&copy, COPIED)->repl.copy;
    uint8_t bytes[sizeof(fkv_peer_value_offer) + sizeof(fkv_record) + 16], form = fuzz_u8(in);
    char key[16];
    for (uint32_t i = form % 8; i == form % 8 || placed_at(key) != COPIED; i += 8) snprintf(key, sizeof key, "%u", i);
    fkv_record r = { .kind = FKV_RECORD_BULK,
                     .key_bytes = (uint16_t)strlen(key),
                     .value_bytes = form & 8 ? 1 + fuzz_u16(in) % LARGE : LARGE,
                     .version = ++version,
                     .client = 1,
                     .sequence = 1 + fuzz_u16(in) };
    fkv_extent e = { .version = r.version, .tag = 9, .value_bytes = r.value_bytes, .key_bytes = r.key_bytes };
    fkv_peer_value_offer a = { .op = FKV_PEER_VALUE_OFFER,
                               .shard = COPIED,
                               .epoch = (uint32_t)close_to(in, b->place.epoch),
                               .tag = 9,
                               .committed = close_to(in, b->place.prepared),
                               .rkey = fab_mr_rkey(imposter.mr),
                               .region_addr = fab_mr_addr(imposter.mr),
                               .region_bytes = MEMORY,
                               .addr = fab_mr_addr(imposter.mr) + (form & 16 ? fuzz_u16(in) : 0) };
    a.crc = fkv_crc32c(fkv_crc32c(0, (uint8_t *)&e + 8, FKV_EXTENT_HEADER - 8), key, r.key_bytes);
    a.crc = fkv_crc32c(a.crc, imposter.memory.base, r.value_bytes);
    memcpy(bytes, &a, sizeof a);
    uint32_t n = wire_put_record(bytes + sizeof a, sizeof bytes - sizeof a, &r, (uint8_t *)key, NULL);
    to_copy(in, bytes, (uint32_t)sizeof a + n);
    if (form & 32) turn(1000000);
    if (!(form & 64)) return;
    fkv_records head = { .op = FKV_PEER_RECORDS,
                         .count = 1,
                         .shard = COPIED,
                         .epoch = b->place.epoch,
                         .first = b->place.prepared + 1,
                         .committed = b->place.prepared };
    memcpy(bytes, &head, sizeof head);
    n = wire_put_record(bytes + sizeof head, sizeof bytes - sizeof head, &r, (uint8_t *)key, NULL);
    to_copy(in, bytes, (uint32_t)sizeof head + n);
}
static void say_forget(fuzz_in *in) {
    fkv_peer_bulk m = { .op = FKV_PEER_VALUE_CANCEL, .shard = COPIED, .epoch = 1, .version = close_to(in, version) };
    to_copy(in, &m, sizeof m);
}
/* Of the first value that the owner announced. */
static void say_pulled(fuzz_in *in) {
    const shard *s = shard_of(&owner, COPIED);
    const op *o = list_empty(&s->repl.bulks) ? NULL : LIST_OF(s->repl.bulks.next, op, link);
    fkv_peer_bulk m = { .op = FKV_PEER_VALUE_READ,
                        .status = fuzz_u8(in) % 8 ? FKV_OK : FKV_TABLE_FULL,
                        .shard = COPIED,
                        .epoch = (uint32_t)close_to(in, 1),
                        .version = close_to(in, o ? o->prepared.version : 1) };
    to_owner(in, &m, sizeof m);
}

static void say_heartbeat(fuzz_in *in) {
    struct {
        fkv_peer_list head;
        fkv_peer_heartbeat item[2];
    } m = { .head = { .op = FKV_PEER_HEARTBEAT, .count = 1 + fuzz_u8(in) % 2, .asked_ns = fuzz_number(in) } };
    for (uint32_t i = 0; i < m.head.count; i++)
        m.item[i] = (fkv_peer_heartbeat){ .shard = fuzz_u8(in) % 3,
                                          .epoch = (uint32_t)close_to(in,
                                                                      shard_of(&copy, COPIED)->repl.copy->place.epoch),
                                          .committed = close_to(in, shard_of(&copy, COPIED)->repl.copy->place.prepared),
                                          .digest = fuzz_u8(in) % 32 ? 0 : fuzz_number(in) };
    to_copy(in, &m, (uint32_t)(sizeof m.head + m.head.count * sizeof m.item[0]));
}
static void say_stale(fuzz_in *in) {
    fkv_peer_notice n = { .op = FKV_PEER_STALE, .shard = fuzz_u8(in) % 3 };
    to_copy(in, &n, sizeof n);
}

static void say_raw(fuzz_in *in, bool to_the_owner) {
    static uint8_t bytes[2048];
    uint32_t count = fuzz_u16(in) % sizeof bytes;
    fuzz_bytes(in, bytes, count < in->left ? count : (uint32_t)in->left);
    if (to_the_owner)
        to_owner(in, bytes, count);
    else
        to_copy(in, bytes, count);
}

static void step(fuzz_in *in) {
    uint8_t what = fuzz_u8(in);
    switch (what % 16) {
    case 0: say_raw(in, what & 16); break;
    case 1:
        if (hostile.gone || what & 16) come(&hostile, 900 + (what >> 5), FKV_TICKET_REPLICA);
        break;
    case 2:
    case 3: say_follow(in); break;
    case 4:
    case 5: say_acks(in); break;
    case 6: say_unfollow(in); break;
    case 7:
        if (what & 16)
            say_pulled(in);
        else
            ask(FKV_OP_PUT, COPIED, what & 32 ? large_text() : "what the copy is to have");
        break;
    case 8:
        if (what & 16)
            say_stale(in);
        else if (what & 32)
            say_forget(in);
        else
            say_value_offer(in);
        break;
    case 9:
    case 10: say_follow_ok(in); break;
    case 11:
    case 12: say_records(in); break;
    case 13: say_heartbeat(in); break;
    default:
        for (int i = what >> 4; i >= 0; i--) turn(1u << (what >> 4));
        turn(20000000);
        break;
    }
    turn(10000);
    look_at_answers();
}

/* ---- the target ---- */

static void up_one(rig *r, uint32_t shards) {
    rig_init(r, FAB_SIM, world);
    alarm(0); /* a run lasts as long as it is asked to */
    char why[256];
    r->config.shards = SHARDS;
    r->config.dedup_bytes = 1 << 20;
    r->config.wait_ms = 50;
    CHECK_EQ(dataplane_create(&r->config, &r->d), FKV_OK);
    r->d->stepped = true;
    CHECK_EQ(dataplane_start(r->d, why, sizeof why), FKV_OK);
    for (uint32_t n = 0; n < shards; n++) {
        rig_call c;
        rig_call_init(&c);
        dataplane_shard s = { .shard = n, .epoch = 1, .incarnation = 1, .memory_bytes = 8 << 20 };
        dataplane_open_shard(r->d, &s, rig_done, &c);
        while (!c.done) step_rig(r);
        CHECK_EQ(c.status, FKV_OK);
        free(c.result);
    }
    CHECK(backup_make(shard_of(r, COPIED), 1, LEASE_MS, &(replica_backup){ .epoch = 1 }));
}
static void serve(uint32_t n) {
    rig_call c;
    rig_call_init(&c);
    dataplane_serve_shard(owner.d, n, rig_done, &c);
    while (!c.done) step_rig(&owner);
    CHECK_EQ(c.status, FKV_OK);
}
static void up(void) {
    up_one(&owner, 2);
    up_one(&copy, 1);
    replica_config c = { .epoch = 1, .config = 1, .min_in_sync = 1, .peers = 1, .id = { COPY_ID } };
    replicate_lead(shard_of(&owner, COPIED), &c);
    /* As if its copy followed it: others come in its name. */
    CHECK(replicate_acked(shard_of(&owner, COPIED), COPY_ID, &(replica_ack){ .epoch = 1 }, 0));
    serve(COPIED);
    serve(ALONE);
    CHECK_EQ(fab_open(&(fab_options){ .provider = FAB_SIM }, &imposter.domain), 0);
    CHECK_EQ(fab_cq_create(imposter.domain, &imposter.cq), 0);
    CHECK_EQ(fkv_region_alloc("imposter", MEMORY, 0, &imposter.memory), 0);
    CHECK_EQ(fab_reg(imposter.domain, &imposter.memory, 0, &imposter.mr), 0);
    CHECK_EQ(fab_listen(imposter.cq, "sim:imposter", &imposter.listener), 0);
    link_address a = { .provider = FAB_SIM, .text = "sim:imposter" };
    CHECK(owner_link_follow(shard_of(&copy, COPIED)->repl.copy, &a, 1));
    raw_open(&hostile, &owner);
    raw_open(&guest, &owner);
    come(&guest, 5, FKV_TICKET_READ | FKV_TICKET_WRITE);
    come(&hostile, 900, FKV_TICKET_REPLICA);
    acknowledged = written = 0;
    version = 1;
}
static void down(void) {
    raw_down(&hostile);
    raw_down(&guest);
    dataplane_destroy(copy.d);
    dataplane_destroy(owner.d);
    if (imposter.conn) fab_disconnect(imposter.conn);
    fab_unlisten(imposter.listener);
    fab_dereg(imposter.mr);
    fkv_region_free(&imposter.memory);
    fab_cq_destroy(imposter.cq);
    fab_close(imposter.domain);
    memset(&imposter, 0, sizeof imposter);
}
static void open_links(void) {
    world = sim_world_create(1);
    sim_drive_clock(world);
    sim_set_faults(world, &(sim_faults){ .delay_min_ns = 1000, .delay_max_ns = 1000 });
    up();
}
static void one(fuzz_in *in) {
    runs++;
    for (int i = 0; i < STEPS && in->left; i++) step(in);
    CHECK(!table_check(shard_of(&copy, COPIED)->table));
    /* A copy that can be none any more has had its turn. */
    if (runs % AGAIN == 0 || shard_of(&copy, COPIED)->repl.copy->failed != FKV_OK) {
        down();
        up();
    }
    guest_is_well();
}
static void close_links(void) {
    down();
    sim_world_destroy(world);
    runs = 0;
}

const fuzz_target fuzz_links = { "links", open_links, one, close_links };
