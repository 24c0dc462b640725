/* dataplane_tenant_test.c: tenants at the owner: a client of one gets nothing from the shards of another, neither
 * by a request of any kind nor by a READ with the right rkey. Domain 0 has shards 0 and 1 here, domain 1 has shards 2
 * and 3. */
#include "raw_client.h"

enum { OF_EACH = RIG_SHARDS / 2 };
static const dataplane_tenant TENANT[2] = { { .shards = OF_EACH }, { .shards = OF_EACH } };
static fab_provider provider;
static rig r;
static raw c[2]; /* a client of each domain */

static fkv_status connect_as(raw *client, uint64_t id, uint32_t tenant) {
    fkv_pass h = raw_pass_until(&RIG_SECRET, id, tenant, FKV_TICKET_READ | FKV_TICKET_WRITE,
                                fkv_wall_ms() + RIG_TICKET_MS);
    raw_open(client, &r);
    return raw_connect(client, 0, &h);
}
static void configure(void) {
    rig_init(&r, provider, NULL);
    r.config.tenant = TENANT;
    r.config.tenants = 2;
}
static void up(void) {
    configure();
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    for (uint32_t i = 0; i < 2; i++) CHECK_EQ(connect_as(&c[i], i + 1, i), FKV_OK);
}
static void down(void) {
    for (int i = 0; i < 2; i++) raw_down(&c[i]);
    rig_down(&r);
}
static uint32_t shard_in(uint32_t tenant, const char *key) {
    uint64_t h = fkv_hash_key(&RIG_SEED, 0, key, strlen(key));
    return fkv_range_shard((fkv_shard_range){ tenant * OF_EACH, OF_EACH }, h);
}
/* Of client `i`, for where the key is in domain `tenant`. */
static fkv_request placed_in(int i, uint32_t tenant, const char *key, fkv_request q) {
    q.shard = shard_in(tenant, key);
    if (q.sequence) q.sequence = ++c[i].sequence[q.shard];
    return q;
}
static fkv_request request_in(int i, uint32_t tenant, fkv_op op, const char *key) {
    return placed_in(i, tenant, key, raw_request(&c[i], op, key));
}
static fkv_status put(int i, uint32_t tenant, const char *key, const char *value) {
    fkv_request q = request_in(i, tenant, FKV_OP_PUT, key);
    q.value_bytes = (uint32_t)strlen(value);
    return raw_ask(&c[i], &q, key, value, q.value_bytes, NULL);
}
static void expect(int i, const char *key, const char *value) {
    fkv_request q = request_in(i, (uint32_t)i, FKV_OP_GET, key);
    raw_message *m = raw_receive(&c[i], raw_send(&c[i], &q, key, NULL, 0));
    CHECK_EQ(m->reply.status, FKV_OK);
    CHECK(m->bytes == strlen(value) && memcmp(m->body, value, m->bytes) == 0);
    free(m);
}
static uint64_t entries(uint32_t shard) {
    uint64_t n = 0;
    dataplane_stats *s = rig_stats(&r);
    for (uint32_t i = 0; i < s->shards; i++)
        if (s->shard[i].shard == shard) n = s->shard[i].table.entries;
    free(s);
    return n;
}

TEST(the_same_key_is_another_one_in_each_domain) {
    up();
    CHECK_EQ(put(0, 0, "key", "of the first"), FKV_OK);
    CHECK_EQ(put(1, 1, "key", "of the second"), FKV_OK);
    expect(0, "key", "of the first");
    expect(1, "key", "of the second");
    fkv_request q = request_in(0, 0, FKV_OP_GET, "key");
    q.shard ^= 1; /* the domain's, but not this key's */
    CHECK_EQ(raw_ask(&c[0], &q, "key", NULL, 0, NULL), FKV_BAD_REQUEST);
    down();
}

TEST(every_kind_of_request_for_a_shard_of_another_domain_is_refused) {
    fkv_rendezvous large = { .rkey = 1, .addr = 4096, .region_addr = 4096, .region_bytes = 1 << 20 };
    up();
    CHECK_EQ(put(1, 1, "key", "safe"), FKV_OK);
    uint32_t shard = shard_in(1, "key");
    for (int i = 0; i < 2; i++) { /* both ways, the second time as the domain itself: then it is not refused so */
        for (int op = 1; op < FKV_OP_COUNT; op++) {
            if (!raw_can_ask((fkv_op)op) || !fkv_op_is((uint8_t)op, FKV_OF_SHARD)) continue;
            fkv_request q = placed_in(i, 1, "key", raw_well_formed(&c[i], (fkv_op)op, "key"));
            fkv_status s = raw_ask(&c[i], &q, "key", raw_value, raw_carried(&q), NULL);
            if (i == 0)
                CHECK_EQ(s, FKV_UNAUTHORIZED);
            else
                CHECK(s != FKV_UNAUTHORIZED && s != FKV_BAD_REQUEST);
        }
        if (i == 0) {
            fkv_request q = request_in(0, 1, FKV_OP_PUT, "key");
            q.flags = FKV_REQUEST_RENDEZVOUS;
            q.value_bytes = 1 << 20;
            CHECK_EQ(raw_ask(&c[0], &q, "key", &large, sizeof large, NULL), FKV_UNAUTHORIZED);
            expect(1, "key", "safe");
            CHECK_EQ(entries(shard), 1);
        }
    }
    down();
}

/* Whether it is open here is not to be learned either. */
TEST(a_shard_of_another_domain_is_refused_also_where_it_is_not_open) {
    configure();
    rig_start(&r);
    CHECK_EQ(connect_as(&c[0], 1, 0), FKV_OK);
    CHECK_EQ(put(0, 0, "key", "v"), FKV_NOT_OWNER);
    CHECK_EQ(put(0, 1, "key", "v"), FKV_UNAUTHORIZED);
    raw_down(&c[0]);
    rig_down(&r);
}

TEST(a_lease_covers_the_shards_of_the_clients_domain_only) {
    up();
    for (uint32_t i = 0; i < 2; i++) {
        fkv_lease_shard list[OF_EACH];
        fkv_request q = raw_request(&c[i], FKV_OP_LEASE, "");
        raw_message *m = raw_receive(&c[i], raw_send(&c[i], &q, "", NULL, 0));
        CHECK_EQ(m->reply.status, FKV_OK);
        CHECK(!(m->reply.flags & FKV_REPLY_MORE));
        CHECK_EQ(m->bytes, sizeof list);
        memcpy(list, m->body, sizeof list);
        for (uint32_t k = 0; k < OF_EACH; k++) CHECK_EQ(list[k].shard, i * OF_EACH + k);
        free(m);
    }
    down();
}

TEST(requests_and_reports_count_for_the_tenant_of_the_client_that_sent_them) {
    up();
    CHECK_EQ(put(0, 0, "key", "v"), FKV_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(put(1, 1, "key", "v"), FKV_OK);
    CHECK_EQ(put(0, 1, "key", "v"), FKV_UNAUTHORIZED);
    fkv_report report = { .hits = 3, .reads = 5, .read_bytes = 700 };
    fkv_request q = raw_request(&c[1], FKV_OP_LEASE, "");
    q.value_bytes = sizeof report;
    CHECK_EQ(raw_ask(&c[1], &q, "", &report, sizeof report, NULL), FKV_OK);
    dataplane_stats *s = rig_stats(&r);
    const dataplane_tenant_stats *of = s->tenant;
    CHECK_EQ(s->tenants, 2);
    CHECK_EQ(of[0].answered[FKV_OP_PUT], 1);
    CHECK_EQ(of[1].answered[FKV_OP_PUT], 2);
    CHECK_EQ(s->worker[0].latency[FKV_OP_PUT].count, 3);
    CHECK_EQ(of[0].refused_of[FKV_OP_PUT][FKV_UNAUTHORIZED], 1);
    CHECK_EQ(of[1].refused_of[FKV_OP_PUT][FKV_UNAUTHORIZED], 0);
    CHECK_EQ(s->worker[0].refused_of[FKV_OP_PUT][FKV_UNAUTHORIZED], 1);
    CHECK_EQ(of[0].reports.hits, 0);
    CHECK(of[1].reports.hits == 3 && of[1].reports.reads == 5 && of[1].reports.read_bytes == 700);
    CHECK_EQ(s->worker[0].reports.hits, 3);
    free(s);
    down();
}

/* ---- READs ---- */

static fab_wc_status ended(raw *of, fab_wc_opcode opcode) {
    for (;;) {
        fab_wc wc[8];
        int n = fab_poll(of->cq, wc, 8);
        fab_wc_status status = FAB_WC_STATUS_COUNT;
        for (int i = 0; i < n; i++) {
            if (wc[i].opcode == opcode) status = wc[i].status;
            if (wc[i].opcode == FAB_WC_DISCONNECT) of->gone = true;
        }
        if (status != FAB_WC_STATUS_COUNT) return status;
        fab_flush(of->cq);
        if (n || fab_arm(of->cq) != 0) continue;
        struct pollfd f = { .fd = fab_fd(of->cq), .events = POLLIN };
        CHECK(poll(&f, 1, (int)check_patience_ms()) > 0);
    }
}
static fab_wc_status read_first_bucket(raw *of, const dataplane_region *g) {
    static _Alignas(64) uint8_t to[FKV_BUCKET_BYTES];
    fab_mr *local;
    CHECK_EQ(fab_reg_local(of->domain, to, sizeof to, &local), 0);
    CHECK_EQ(fab_attach(of->conn, g->rkey, g->addr, g->bytes, 1), 0);
    fab_wc_status attached = ended(of, FAB_WC_ATTACH);
    fab_read read = {
        .wr_id = 2, .local = to, .local_mr = local, .remote_addr = g->addr, .rkey = g->rkey, .bytes = sizeof to
    };
    CHECK_EQ(fab_post_reads(of->conn, &read, 1), 1);
    fab_flush(of->cq);
    fab_wc_status s = ended(of, FAB_WC_READ);
    if (s == FAB_SUCCESS) CHECK_EQ(attached, FAB_SUCCESS);
    fab_dereg(local);
    return s;
}

TEST(a_read_with_the_right_rkey_of_another_domains_region_is_refused) {
    configure();
    rig_start(&r);
    dataplane_layout *layout[2];
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(rig_open_shard(&r, i * OF_EACH, 0, TABLE_MEMORY_MIN, &layout[i]), FKV_OK);
        CHECK_EQ(connect_as(&c[i], i + 1, i), FKV_OK);
    }
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(layout[i]->region[0].kind, TABLE_INDEX);
        CHECK_EQ(read_first_bucket(&c[i], &layout[i]->region[0]), FAB_SUCCESS);
        CHECK_EQ(read_first_bucket(&c[i], &layout[1 - i]->region[0]), FAB_REM_ACCESS_ERR);
        raw_down(&c[i]);
        CHECK_EQ(connect_as(&c[i], i + 1, i), FKV_OK);
        CHECK_EQ(read_first_bucket(&c[i], &layout[i]->region[0]), FAB_SUCCESS);
    }
    free(layout[0]);
    free(layout[1]);
    down();
}

/* ---- who comes in ---- */

TEST(a_ticket_of_a_domain_that_there_is_not_is_refused) {
    up();
    raw stranger;
    CHECK_EQ(connect_as(&stranger, 9, 2), FKV_UNAUTHORIZED);
    raw_down(&stranger);
    down();
}

TEST(connections_of_one_domain_leave_room_for_the_others) {
    configure();
    dataplane_tenant bounded[2] = { { .shards = OF_EACH }, { .shards = OF_EACH, .max_clients = 1 } };
    r.config.tenant = bounded;
    rig_start(&r);
    raw second, server;
    /* of a server: none of its clients */
    fkv_pass copier = raw_pass_until(&RIG_SECRET, 4, 1, FKV_TICKET_READ | FKV_TICKET_COPY,
                                     fkv_wall_ms() + RIG_TICKET_MS);
    raw_open(&server, &r);
    CHECK_EQ(raw_connect(&server, 0, &copier), FKV_OK);
    CHECK_EQ(connect_as(&c[1], 1, 1), FKV_OK);
    CHECK_EQ(connect_as(&second, 2, 1), FKV_BUSY);
    raw_down(&second);
    CHECK_EQ(connect_as(&c[0], 3, 0), FKV_OK);
    raw_down(&c[1]);
    for (fkv_status s = FKV_BUSY; s != FKV_OK;) { /* until its end was noticed */
        s = connect_as(&c[1], 1, 1);
        CHECK(s == FKV_OK || s == FKV_BUSY);
        if (s != FKV_OK) raw_down(&c[1]);
    }
    raw_down(&server);
    down();
}

TEST(domains_that_are_not_all_shards_are_refused) {
    dataplane *d;
    configure();
    const dataplane_tenant wrong[][2] = { { { .shards = OF_EACH }, { .shards = OF_EACH + 1 } },
                                          { { .shards = OF_EACH }, { .shards = 1 } },
                                          { { .shards = RIG_SHARDS }, { .shards = 0 } },
                                          { { .shards = UINT32_MAX }, { .shards = RIG_SHARDS + 1 } } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        r.config.tenant = wrong[i];
        CHECK_EQ(dataplane_create(&r.config, &d), FKV_BAD_REQUEST);
    }
    r.config.tenant = NULL;
    CHECK_EQ(dataplane_create(&r.config, &d), FKV_BAD_REQUEST);
    r.config.tenant = TENANT;
    r.config.tenants = DATAPLANE_TENANTS_MAX + 1;
    CHECK_EQ(dataplane_create(&r.config, &d), FKV_BAD_REQUEST);
    r.config.tenants = 2;
    rig_start(&r);
    rig_down(&r);
}

static void tests(void) {
    RUN(the_same_key_is_another_one_in_each_domain);
    RUN(every_kind_of_request_for_a_shard_of_another_domain_is_refused);
    RUN(a_shard_of_another_domain_is_refused_also_where_it_is_not_open);
    RUN(a_lease_covers_the_shards_of_the_clients_domain_only);
    RUN(requests_and_reports_count_for_the_tenant_of_the_client_that_sent_them);
    RUN(a_read_with_the_right_rkey_of_another_domains_region_is_refused);
    RUN(a_ticket_of_a_domain_that_there_is_not_is_refused);
    RUN(connections_of_one_domain_leave_room_for_the_others);
    RUN(domains_that_are_not_all_shards_are_refused);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
