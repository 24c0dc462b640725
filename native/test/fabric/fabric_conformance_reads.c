/* One-sided READs: in order, whole, in batches, in both directions; and every way in which one must be refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"
#include "fabric_conformance.h"

enum { REGION_BYTES = 1 << 20, LOCAL_BYTES = 4 << 20, TENANT = 7 };

static const fabric_under_test *u;
static pair p;
static fkv_region region;
static uint8_t *local;
static fab_mr *region_mr, *local_mr;

static void attach_expect(fab_conn *c, end *e, uint64_t rkey, uint64_t addr, uint64_t bytes, fab_wc_status status) {
    CHECK_EQ(fab_attach(c, rkey, addr, bytes, 77), 0);
    CHECK_EQ(pair_expect(&p, e, FAB_WC_ATTACH, status).wr_id, 77);
}

/* A region at the owner, of tenant TENANT, that the client may read. */
static void open_with_region(const fab_options *o) {
    pair_open(&p, u, o, TENANT);
    CHECK_EQ(fkv_region_alloc("conformance", REGION_BYTES, 0, &region), 0);
    pattern_fill(region.base, 1, REGION_BYTES);
    CHECK_EQ(fab_reg(p.owner.domain, &region, TENANT, &region_mr), 0);
    local = calloc(1, LOCAL_BYTES);
    CHECK_EQ(fab_reg_local(p.client.domain, local, LOCAL_BYTES, &local_mr), 0);
    attach_expect(p.client_conn, &p.client, fab_mr_rkey(region_mr), fab_mr_addr(region_mr), REGION_BYTES, FAB_SUCCESS);
}

static void drop_region(void) {
    fab_dereg(region_mr);
    fkv_region_free(&region);
    region_mr = NULL;
}

static void end_test(void) {
    if (p.client_conn) fab_disconnect(p.client_conn);
    if (p.owner_conn) fab_disconnect(p.owner_conn);
    p.client_conn = p.owner_conn = NULL;
    if (region_mr) drop_region();
    fab_dereg(local_mr);
    free(local);
    pair_close(&p);
}

static fab_read read_of(uint64_t id, uint64_t offset, uint32_t bytes) {
    return (fab_read){ .wr_id = id,
                       .local = local,
                       .local_mr = local_mr,
                       .remote_addr = fab_mr_addr(region_mr) + offset,
                       .rkey = fab_mr_rkey(region_mr),
                       .bytes = bytes };
}

TEST(a_read_brings_the_bytes_of_the_region) {
    open_with_region(NULL);
    static const struct {
        uint64_t offset;
        uint32_t bytes;
    } cases[] = {
        { 0, 1 },
        { 0, 8 },
        { 0, 128 },
        { 1, 7 },
        { 3, 1000 },
        { 4095, 2 },
        { 40, 1056 },
        { REGION_BYTES - 1, 1 },
        { REGION_BYTES - 1000, 1000 },
        { 0, REGION_BYTES },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(local, 0, LOCAL_BYTES);
        fab_read r = read_of(i, cases[i].offset, cases[i].bytes);
        r.local = local + 5;
        CHECK_EQ(fab_post_reads(p.client_conn, &r, 1), 1);
        fab_flush(p.client.cq);
        fab_wc w = pair_expect(&p, &p.client, FAB_WC_READ, FAB_SUCCESS);
        CHECK_EQ(w.wr_id, i);
        CHECK(memcmp(local + 5, region.base + cases[i].offset, cases[i].bytes) == 0);
        CHECK(local[4] == 0 && local[5 + cases[i].bytes] == 0); /* and not one more */
    }
    end_test();
}

TEST(reads_of_a_batch_complete_in_order_until_the_queue_is_full) {
    enum { BATCH = 4000, BYTES = 256 };
    open_with_region(NULL);
    static fab_read r[BATCH];
    for (int i = 0; i < BATCH; i++) {
        r[i] = read_of((uint64_t)i, (uint64_t)i * 8, BYTES);
        r[i].local = local + (size_t)i * BYTES;
    }
    int posted = 0, done = 0, full = 0;
    CHECK_EQ(fab_post_reads(p.client_conn, r, 0), 0);
    CHECK_EQ(fab_post_reads(p.client_conn, r, -1), -EINVAL);
    while (done < BATCH) {
        int n = posted < BATCH ? fab_post_reads(p.client_conn, r + posted, BATCH - posted) : 0;
        CHECK(n >= 0);
        posted += n;
        full += posted < BATCH;
        CHECK_EQ(pair_expect(&p, &p.client, FAB_WC_READ, FAB_SUCCESS).wr_id, done);
        done++;
    }
    CHECK(full > 0); /* the queue has an end, and says so */
    for (int i = 0; i < BATCH; i++) CHECK(memcmp(local + (size_t)i * BYTES, region.base + i * 8, BYTES) == 0);
    end_test();
}

TEST(a_read_sees_what_was_stored_before_it_was_posted) {
    open_with_region(NULL);
    for (uint64_t i = 0; i < 1000; i++) {
        __atomic_store_n((uint64_t *)(void *)(region.base + 64), i, __ATOMIC_RELEASE);
        fab_read r = read_of(i, 64, 8);
        CHECK_EQ(fab_post_reads(p.client_conn, &r, 1), 1);
        pair_expect(&p, &p.client, FAB_WC_READ, FAB_SUCCESS);
        CHECK(memcmp(local, &i, sizeof i) == 0);
    }
    end_test();
}

TEST(the_owner_reads_a_client_s_region_too) {
    open_with_region(NULL);
    fkv_region own;
    fab_mr *own_mr, *bounce_mr;
    static uint8_t bounce[100000];
    CHECK_EQ(fkv_region_alloc("rendezvous", 200000, FKV_REGION_PREFAULT, &own), 0);
    pattern_fill(own.base, 9, own.bytes);
    /* 0: the tenant of a connection on its connecting side */
    CHECK_EQ(fab_reg(p.client.domain, &own, 0, &own_mr), 0);
    CHECK_EQ(fab_reg_local(p.owner.domain, bounce, sizeof bounce, &bounce_mr), 0);
    for (int round = 0; round < 3; round++) {
        attach_expect(p.owner_conn, &p.owner, fab_mr_rkey(own_mr), fab_mr_addr(own_mr) + 4096, own.bytes - 4096,
                      FAB_SUCCESS);
        fab_read r = { .wr_id = 5,
                       .local = bounce,
                       .local_mr = bounce_mr,
                       .remote_addr = fab_mr_addr(own_mr) + 5000,
                       .rkey = fab_mr_rkey(own_mr),
                       .bytes = sizeof bounce };
        memset(bounce, 0, sizeof bounce);
        CHECK_EQ(fab_post_reads(p.owner_conn, &r, 1), 1);
        CHECK_EQ(pair_expect(&p, &p.owner, FAB_WC_READ, FAB_SUCCESS).wr_id, 5);
        CHECK(memcmp(bounce, own.base + 5000, sizeof bounce) == 0);
        fab_detach(p.owner_conn, fab_mr_rkey(own_mr));
    }
    fab_dereg(bounce_mr);
    fab_dereg(own_mr);
    fkv_region_free(&own);
    end_test();
}

TEST(a_large_read_does_not_hold_up_a_message) {
    open_with_region(NULL);
    fab_read r[LOCAL_BYTES / REGION_BYTES];
    for (int i = 0; i < LOCAL_BYTES / REGION_BYTES; i++) {
        r[i] = read_of((uint64_t)i, 0, REGION_BYTES);
        r[i].local = local + (size_t)i * REGION_BYTES;
    }
    CHECK_EQ(fab_send(p.owner_conn, &(struct iovec){ "small", 5 }, 1), 0);
    fab_flush(p.owner.cq);
    CHECK_EQ(fab_post_reads(p.client_conn, r, LOCAL_BYTES / REGION_BYTES), LOCAL_BYTES / REGION_BYTES);
    int reads_before = 0;
    fab_wc w;
    while ((w = pair_next(&p, &p.client)).opcode != FAB_WC_RECV) reads_before++;
    CHECK(reads_before < LOCAL_BYTES / REGION_BYTES);
    for (int i = reads_before; i < LOCAL_BYTES / REGION_BYTES; i++)
        pair_expect(&p, &p.client, FAB_WC_READ, FAB_SUCCESS);
    for (int i = 0; i < LOCAL_BYTES / REGION_BYTES; i++) CHECK(memcmp(r[i].local, region.base, REGION_BYTES) == 0);
    end_test();
}

/* ---- refusals ---- */

/* `good` (may be NULL) succeeds, `bad` is refused with `status`, what was posted behind it is flushed; then comes one
 * end, and at the peer too. */
static void expect_refusal(const fab_read *good, fab_read bad, fab_wc_status status) {
    fab_read r[4] = { good ? *good : bad, bad, bad, bad };
    for (uint64_t i = 0; i < 4; i++) r[i].wr_id = i;
    int first = good ? 0 : 1;
    CHECK_EQ(fab_post_reads(p.client_conn, r + first, 4 - first), 4 - first);
    bool silent = u->silent_refusals && status == FAB_REM_ACCESS_ERR && bad.rkey >> 32 == 0;
    if (good) {
        fab_wc w = pair_next(&p, &p.client);
        CHECK(w.opcode == FAB_WC_READ && w.wr_id == 0);
        /* the refusal overtakes answers in siw's queue */
        CHECK(w.status == FAB_SUCCESS || (silent && w.status == FAB_WR_FLUSH_ERR));
    }
    CHECK_EQ(pair_expect(&p, &p.client, FAB_WC_READ, silent ? FAB_WR_FLUSH_ERR : status).wr_id, 1);
    CHECK_EQ(fab_post_reads(p.client_conn, r, 1), -ENOTCONN);
    CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ "x", 1 }, 1), -ENOTCONN);
    CHECK_EQ(fab_attach(p.client_conn, 5, 0, 8, 0), -ENOTCONN);
    CHECK_EQ(pair_expect(&p, &p.client, FAB_WC_READ, FAB_WR_FLUSH_ERR).wr_id, 2);
    CHECK_EQ(pair_expect(&p, &p.client, FAB_WC_READ, FAB_WR_FLUSH_ERR).wr_id, 3);
    fab_wc w = pair_next(&p, &p.client);
    CHECK(w.opcode == FAB_WC_DISCONNECT && w.status != FAB_SUCCESS && w.conn == p.client_conn);
    w = pair_next(&p, &p.owner);
    CHECK(w.opcode == FAB_WC_DISCONNECT && w.status != FAB_SUCCESS && w.conn == p.owner_conn);
    pair_settle(&p);
    CHECK(!end_has(&p.client) && !end_has(&p.owner));
}

TEST(reads_beyond_the_bounds_are_refused) {
    static const struct {
        uint64_t offset;
        uint32_t bytes;
    } cases[] = {
        { REGION_BYTES, 1 },
        { REGION_BYTES - 7, 8 },
        { -1ull, 1 },
        { -1ull, 8 },
        { -8ull, 8 },
        { 0, REGION_BYTES + 1 },
        { 1ull << 40, 8 },
        { 1ull << 63, 8 },
        { REGION_BYTES - 1, UINT32_MAX },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_with_region(NULL);
        fab_read good = read_of(0, 0, 8), bad = read_of(0, cases[i].offset, cases[i].bytes);
        bool fits_here = bad.bytes <= LOCAL_BYTES;
        expect_refusal(&good, bad, fits_here ? FAB_REM_ACCESS_ERR : FAB_LOC_PROT_ERR);
        end_test();
    }
    open_with_region(NULL); /* an address near the end of the address space must not wrap */
    fab_read good = read_of(0, 0, 8), bad = good;
    bad.remote_addr = UINT64_MAX - 3;
    expect_refusal(&good, bad, FAB_REM_ACCESS_ERR);
    end_test();
}

TEST(a_wrong_rkey_is_refused) {
    for (int bit = 0; bit < 64; bit += 21) {
        open_with_region(NULL);
        fab_read good = read_of(0, 0, 8), bad = good;
        bad.rkey ^= 1ull << bit;
        expect_refusal(&good, bad, FAB_REM_ACCESS_ERR);
        end_test();
    }
}

TEST(a_region_of_another_tenant_is_refused) {
    open_with_region(NULL);
    fab_mr *foreign;
    CHECK_EQ(fab_reg(p.owner.domain, &region, TENANT + 1, &foreign), 0);
    CHECK(fab_mr_rkey(foreign) != fab_mr_rkey(region_mr));
    attach_expect(p.client_conn, &p.client, fab_mr_rkey(foreign), fab_mr_addr(foreign), REGION_BYTES,
                  u->attach_maps ? FAB_REM_ACCESS_ERR : FAB_SUCCESS);
    fab_read good = read_of(0, 0, 8), bad = good;
    bad.rkey = fab_mr_rkey(foreign);
    bad.remote_addr = fab_mr_addr(foreign);
    expect_refusal(&good, bad, FAB_REM_ACCESS_ERR);
    fab_dereg(foreign);
    end_test();
}

TEST(a_deregistered_region_is_refused) {
    open_with_region(NULL);
    fab_read r = read_of(0, 0, 8);
    CHECK_EQ(fab_post_reads(p.client_conn, &r, 1), 1);
    pair_expect(&p, &p.client, FAB_WC_READ, FAB_SUCCESS);
    drop_region();
    expect_refusal(NULL, r, FAB_REM_ACCESS_ERR);
    end_test();
}

TEST(a_region_registered_anew_has_another_rkey) {
    open_with_region(NULL);
    uint64_t before = fab_mr_rkey(region_mr);
    fab_dereg(region_mr);
    CHECK_EQ(fab_reg(p.owner.domain, &region, TENANT, &region_mr), 0);
    CHECK(fab_mr_rkey(region_mr) != before);
    end_test();
}

TEST(a_local_buffer_that_is_not_registered_is_refused) {
    static uint8_t elsewhere[64];
    for (int way = 0; way < 5; way++) {
        open_with_region(NULL);
        fab_read good = read_of(0, 0, 8), bad = good;
        switch (way) {
        case 0: bad.local = elsewhere; break;
        case 1: bad.local_mr = NULL; break;
        case 2: bad.local = local + LOCAL_BYTES - 7; break;
        case 3: bad.local = local - 1; break;
        case 4: bad.local_mr = region_mr; break; /* memory that peers read is not memory that READs may write */
        }
        expect_refusal(&good, bad, FAB_LOC_PROT_ERR);
        end_test();
    }
}

TEST(an_attach_that_is_refused_leaves_the_connection_whole) {
    open_with_region(NULL);
    if (u->attach_maps) {
        attach_expect(p.client_conn, &p.client, fab_mr_rkey(region_mr) ^ 1, fab_mr_addr(region_mr), 8,
                      FAB_REM_ACCESS_ERR);
        attach_expect(p.client_conn, &p.client, fab_mr_rkey(region_mr) ^ 2, fab_mr_addr(region_mr), UINT64_MAX,
                      FAB_REM_ACCESS_ERR);
        /* not the peer's */
        attach_expect(p.owner_conn, &p.owner, fab_mr_rkey(region_mr), fab_mr_addr(region_mr), 8, FAB_REM_ACCESS_ERR);
    }
    CHECK_EQ(fab_attach(p.client_conn, 1, 0, 0, 0), -EINVAL);
    fab_detach(p.client_conn, 12345); /* never attached */
    fab_read r = read_of(0, 0, 8);
    CHECK_EQ(fab_post_reads(p.client_conn, &r, 1), 1);
    pair_expect(&p, &p.client, FAB_WC_READ, FAB_SUCCESS);
    end_test();
}

TEST(disconnecting_with_work_in_flight_touches_no_buffer_afterwards) {
    for (int round = 0; round < 20; round++) {
        open_with_region(NULL);
        fab_read r[8];
        for (int i = 0; i < 8; i++) {
            r[i] = read_of((uint64_t)i, 0, 100000);
            r[i].local = local + (size_t)i * 100000;
        }
        CHECK_EQ(fab_post_reads(p.client_conn, r, 8), 8);
        CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ "last words", 10 }, 1), 0);
        fab_flush(p.client.cq);
        for (int i = 0; i < round; i++) pair_turn(&p);
        fab_disconnect(p.client_conn);
        p.client_conn = NULL;
        p.client.head = p.client.tail; /* what was polled before */
        memset(local, 0xab, LOCAL_BYTES);
        pair_settle(&p);
        CHECK(!end_has(&p.client));
        for (size_t i = 0; i < LOCAL_BYTES; i++) CHECK(local[i] == 0xab);
        fab_wc w = pair_next(&p, &p.owner);
        if (w.opcode == FAB_WC_RECV)
            w = pair_next(&p, &p.owner);
        else
            CHECK(u->device_reads);
        CHECK(w.opcode == FAB_WC_DISCONNECT && (w.status == FAB_SUCCESS || u->device_reads));
        end_test();
    }
}

void fabric_conformance_reads(const fabric_under_test *under) {
    u = under;
    RUN(a_read_brings_the_bytes_of_the_region);
    RUN(reads_of_a_batch_complete_in_order_until_the_queue_is_full);
    RUN(a_read_sees_what_was_stored_before_it_was_posted);
    RUN(the_owner_reads_a_client_s_region_too);
    RUN(a_large_read_does_not_hold_up_a_message);
    RUN(reads_beyond_the_bounds_are_refused);
    RUN(a_wrong_rkey_is_refused);
    RUN(a_region_of_another_tenant_is_refused);
    RUN(a_deregistered_region_is_refused);
    RUN(a_region_registered_anew_has_another_rkey);
    RUN(a_local_buffer_that_is_not_registered_is_refused);
    RUN(an_attach_that_is_refused_leaves_the_connection_whole);
    RUN(disconnecting_with_work_in_flight_touches_no_buffer_afterwards);
}
