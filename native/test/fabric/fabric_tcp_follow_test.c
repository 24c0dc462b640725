/* fabric_tcp_follow_test.c: followed READs of the tcp provider (fabric.h): what comes along, what does not, and peers
 * that ask or answer as no honest one does. In these tests the first 16 bytes of what is READ say where to go: offset
 * u64, number u32, bytes u32. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../fabric/tcp/tcp.h"
#include "../check.h"
#include "fabric_tcp_rig.h"
#include "tcp_raw.h"

enum { GROUP = 9, FIRST = 64, OTHER_REGION = 1 << 15 };

static fkv_region other; /* what READs lead to, unless a test says otherwise; number 5 */
static fab_mr *other_mr;
static uint64_t asked; /* the argument that was given */

static bool follow(const void *bytes, uint32_t count, uint64_t argument, fab_next *out) {
    asked = argument;
    if (count < sizeof *out || argument == 0) return false;
    memcpy(&out->offset, bytes, 8);
    memcpy(&out->number, (const uint8_t *)bytes + 8, 4);
    memcpy(&out->bytes, (const uint8_t *)bytes + 12, 4);
    return true;
}

static void lead(uint64_t at, uint64_t offset, uint32_t number, uint32_t bytes) {
    memcpy(rig.region.base + at, &offset, 8);
    memcpy(rig.region.base + at + 8, &number, 4);
    memcpy(rig.region.base + at + 12, &bytes, 4);
}

static void other_open(uint32_t tenant) {
    CHECK_EQ(fkv_region_alloc("other", OTHER_REGION, 0, &other), 0);
    pattern_fill(other.base, 6, OTHER_REGION);
    CHECK_EQ(fab_reg(rig.p.owner.domain, &other, tenant, &other_mr), 0);
}
static void up(void) {
    rig_open(&(fab_options){ .follow = follow });
    other_open(RIG_TENANT);
    CHECK_EQ(fab_name(rig.mr, GROUP, FAB_NOWHERE), 0);
    CHECK_EQ(fab_name(other_mr, GROUP, 5), 0);
}
static void down(void) {
    fab_dereg(other_mr);
    fkv_region_free(&other);
    rig_close();
}

/* A READ of FIRST bytes at `at` of the rig's region, and of what they lead to. */
static fab_read read_at(uint64_t at, uint32_t next_bytes) {
    return (fab_read){ .wr_id = ++rig.reads,
                       .local = rig.local,
                       .local_mr = rig.local_mr,
                       .remote_addr = fab_mr_addr(rig.mr) + at,
                       .rkey = fab_mr_rkey(rig.mr),
                       .bytes = FIRST,
                       .next_local = rig.local + FIRST,
                       .next_mr = rig.local_mr,
                       .next_bytes = next_bytes,
                       .next_argument = rig.reads };
}
/* Bytes that landed. */
static uint32_t landed(fab_read r) {
    memset(rig.local, 0, sizeof rig.local);
    CHECK_EQ(fab_post_reads(rig.p.client_conn, &r, 1), 1);
    fab_wc w = pair_expect(&rig.p, &rig.p.client, FAB_WC_READ, FAB_SUCCESS);
    CHECK(w.wr_id == r.wr_id);
    CHECK(memcmp(rig.local, rig.region.base + (r.remote_addr - fab_mr_addr(rig.mr)), FIRST) == 0);
    return w.bytes;
}

TEST(what_a_read_leads_to_comes_with_it_and_counts_as_one) {
    up();
    CHECK(fab_follows(rig.p.client_conn));
    lead(128, 1000, 5, 777);
    uint64_t served = fab_reads_served(rig.p.owner.cq);
    CHECK_EQ(landed(read_at(128, 1024)), FIRST + 777);
    CHECK(memcmp(rig.local + FIRST, other.base + 1000, 777) == 0);
    CHECK_EQ(asked, rig.reads);
    rig_honest_read(); /* the count is made after the answer was composed */
    CHECK_EQ(fab_reads_served(rig.p.owner.cq) - served, 2);
    lead(128, 0, 5, FAB_FOLLOW_MAX);
    CHECK_EQ(landed(read_at(128, FAB_FOLLOW_MAX)), FIRST + FAB_FOLLOW_MAX);
    CHECK(memcmp(rig.local + FIRST, other.base, FAB_FOLLOW_MAX) == 0);
    down();
}

TEST(what_leads_nowhere_or_too_far_does_not_come) {
    up();
    static const struct {
        uint64_t offset;
        uint32_t number, bytes;
    } nowhere[] = {
        /* nobody has the name */
        { 0, 4, 64 },
        { 0, 6, 64 },
        { 0, FAB_NOWHERE, 64 },
        { 0, UINT32_MAX, 64 },
        { 0, 1u << 31, 64 },
        { OTHER_REGION, 5, 1 },
        { OTHER_REGION - 63, 5, 64 },
        { UINT64_MAX, 5, 64 },
        { UINT64_MAX - 63, 5, 64 },
        { 0, 5, UINT32_MAX },
        /* more than there is room for */
        { 0, 5, 0 },
        { 0, 5, 513 },
    };
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        lead(64, nowhere[i].offset, nowhere[i].number, nowhere[i].bytes);
        CHECK_EQ(landed(read_at(64, 512)), FIRST);
        for (int j = 0; j < 4096; j++) CHECK(rig.local[FIRST + j] == 0);
    }
    lead(64, OTHER_REGION - 64, 5, 64);
    CHECK_EQ(landed(read_at(64, 512)), FIRST + 64);
    fab_read none = read_at(64, 512);
    none.next_argument = 0;
    /* fab_follow says no */
    CHECK_EQ(landed(none), FIRST);
    down();
}

TEST(a_region_of_another_tenant_is_not_led_to) {
    up();
    fab_mr *foreign;
    CHECK_EQ(fab_reg(rig.p.owner.domain, &other, RIG_TENANT + 1, &foreign), 0);
    CHECK_EQ(fab_name(foreign, GROUP, 7), 0);
    lead(0, 0, 7, 64);
    CHECK_EQ(landed(read_at(0, 64)), FIRST);
    fab_dereg(foreign);
    CHECK_EQ(landed(read_at(0, 64)), FIRST);
    down();
}

TEST(a_group_leads_to_its_own_regions_only) {
    up();
    lead(0, 0, 5, 64);
    CHECK_EQ(fab_name(other_mr, GROUP + 1, 5), 0);
    CHECK_EQ(landed(read_at(0, 64)), FIRST);
    CHECK_EQ(fab_name(other_mr, GROUP, 6), 0);
    CHECK_EQ(landed(read_at(0, 64)), FIRST);
    lead(0, 0, 6, 64);
    CHECK_EQ(landed(read_at(0, 64)), FIRST + 64);
    fab_mr *again;
    CHECK_EQ(fab_reg(rig.p.owner.domain, &rig.region, RIG_TENANT, &again), 0);
    CHECK_EQ(fab_name(again, GROUP, 6), 0); /* takes the name */
    CHECK_EQ(landed(read_at(0, 64)), FIRST + 64);
    CHECK(memcmp(rig.local + FIRST, rig.region.base, 64) == 0);
    fab_dereg(other_mr); /* had it, and has it no longer */
    CHECK_EQ(landed(read_at(0, 64)), FIRST + 64);
    fab_dereg(again);
    CHECK_EQ(landed(read_at(0, 64)), FIRST);
    CHECK_EQ(fab_reg(rig.p.owner.domain, &other, RIG_TENANT, &other_mr), 0);
    CHECK_EQ(landed(read_at(0, 64)), FIRST); /* it has no name yet */
    CHECK_EQ(fab_name(other_mr, GROUP, FAB_NAMES_MAX - 1), 0);
    lead(0, 0, FAB_NAMES_MAX - 1, 64);
    CHECK_EQ(landed(read_at(0, 64)), FIRST + 64);
    CHECK_EQ(fab_name(other_mr, GROUP, FAB_NOWHERE + 1), -EINVAL);
    down();
}

TEST(a_second_half_whose_place_is_not_registered_is_not_asked_for) {
    up();
    fab_read r = read_at(0, 64);
    static uint8_t stray[64];
    r.next_local = stray;
    CHECK_EQ(fab_post_reads(rig.p.client_conn, &r, 1), 1);
    pair_expect(&rig.p, &rig.p.client, FAB_WC_READ, FAB_LOC_PROT_ERR);
    pair_expect(&rig.p, &rig.p.client, FAB_WC_DISCONNECT, FAB_WR_FLUSH_ERR);
    CHECK_EQ(pair_next(&rig.p, &rig.p.owner).opcode, FAB_WC_DISCONNECT);
    down();
}

/* Both kinds, so many that sockets fill up and frames are cut anywhere. */
TEST(reads_of_both_kinds_fill_the_queue_and_come_in_order) {
    up();
    enum { ROUNDS = 20, AT_ONCE = 1000 };
    uint64_t x = check_seed();
    for (uint64_t i = 0; i < 64; i++) lead(i * 64, i * 64, 5, (uint32_t)(1 + i * 400));
    for (int round = 0; round < ROUNDS; round++) {
        fab_read r[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            r[i] = read_at(x % 64 * 64, 30000);
            if (x >> 40 & 1) r[i].next_bytes = 0;
        }
        CHECK_EQ(fab_post_reads(rig.p.client_conn, r, AT_ONCE), AT_ONCE);
        for (int i = 0; i < AT_ONCE; i++) {
            fab_wc w = pair_expect(&rig.p, &rig.p.client, FAB_WC_READ, FAB_SUCCESS);
            CHECK_EQ(w.wr_id, r[i].wr_id);
            uint64_t from = (r[i].remote_addr - fab_mr_addr(rig.mr)) / 64;
            if (r[i].next_bytes) CHECK_EQ(w.bytes, FIRST + 1 + from * 400);
        }
    }
    down();
}

/* ---- peers that are none ---- */

static tcp_frame follow_frame(uint32_t first, uint32_t next) {
    return (tcp_frame){ .type = TCP_FOLLOW,
                        .argument = (uint64_t)next << 32 | first,
                        .rkey = fab_mr_rkey(rig.mr),
                        .addr = fab_mr_addr(rig.mr),
                        .follow = 1 };
}
static void expect_cut_off(tcp_frame f, fab_wc_status status) {
    fab_conn *c;
    int fd = rig_stranger(&c);
    rawtcp_frame(fd, &f);
    rawtcp_expect_end(fd);
    CHECK(pair_expect(&rig.p, &rig.p.owner, FAB_WC_DISCONNECT, status).conn == c);
    fab_disconnect(c);
    close(fd);
    rig_honest_read();
}

TEST(a_followed_read_that_was_not_offered_cuts_a_connection_off) {
    rig_open(NULL);
    CHECK(!fab_follows(rig.p.client_conn));
    expect_cut_off(follow_frame(64, 64), FAB_REM_INV_REQ_ERR);
    rig_close();
}

TEST(a_followed_read_beyond_the_bounds_cuts_a_connection_off) {
    up();
    expect_cut_off(follow_frame(FAB_FOLLOW_FIRST_MAX + 1, 64), FAB_REM_INV_REQ_ERR);
    expect_cut_off(follow_frame(64, FAB_FOLLOW_MAX + 1), FAB_REM_INV_REQ_ERR);
    expect_cut_off(follow_frame(0, 64), FAB_REM_INV_REQ_ERR);
    expect_cut_off(follow_frame(64, 0), FAB_REM_INV_REQ_ERR);
    expect_cut_off(follow_frame(UINT32_MAX, UINT32_MAX), FAB_REM_INV_REQ_ERR);
    tcp_frame wrong = follow_frame(64, 64);
    wrong.rkey ^= 1;
    expect_cut_off(wrong, FAB_REM_ACCESS_ERR);
    wrong = follow_frame(64, 64);
    wrong.addr += RIG_REGION - 63;
    expect_cut_off(wrong, FAB_REM_ACCESS_ERR);
    down();
}

TEST(a_followed_read_may_come_cut_at_any_byte) {
    up();
    lead(0, 0, 5, 100);
    uint8_t out[TCP_FOLLOW_BYTES], room[FIRST + 100];
    tcp_frame ask = follow_frame(FIRST, 200), f;
    CHECK_EQ(tcp_frame_encode(&ask, out), sizeof out);
    for (size_t cut = 1; cut < sizeof out; cut++) {
        fab_conn *c;
        int fd = rig_stranger(&c);
        rawtcp_write(fd, out, cut);
        rig_honest_read();
        rawtcp_write(fd, out + cut, sizeof out - cut);
        CHECK(rawtcp_next_frame(fd, &f) && f.type == TCP_DATA && !f.last && f.argument == FIRST);
        CHECK(rawtcp_read(fd, room, FIRST));
        CHECK(rawtcp_next_frame(fd, &f) && f.type == TCP_DATA && f.last && f.argument == 100);
        CHECK(rawtcp_read(fd, room + FIRST, 100) && memcmp(room + FIRST, other.base, 100) == 0);
        close(fd);
        CHECK(pair_next(&rig.p, &rig.p.owner).opcode == FAB_WC_DISCONNECT);
        fab_disconnect(c);
    }
    down();
}

/* A server that offers to follow, and answers with `a` and `b` and their payload. */
static void server_answers(const tcp_frame *a, const tcp_frame *b, fab_wc_status status) {
    static uint8_t room[512], junk[TCP_CHUNK];
    char where[64];
    fab_mr *mr;
    fab_conn *c;
    memset(room, 0, sizeof room);
    memset(junk, 0x55, sizeof junk);
    CHECK_EQ(fab_reg_local(rig.p.client.domain, room, sizeof room, &mr), 0);
    int l = rawtcp_listen(where);
    CHECK_EQ(fab_connect(rig.p.client.cq, where, NULL, 0, NULL, &c), 0);
    fab_flush(rig.p.client.cq);
    for (int i = 0; i < 10; i++) pair_turn(&rig.p);
    int fd = accept(l, NULL, NULL);
    tcp_hello yes = rawtcp_hello();
    yes.kind = TCP_ACCEPT;
    yes.features = TCP_FEATURE_FOLLOW | 0x8000; /* and what a later version may have */
    rawtcp_accept(fd, &yes);
    pair_expect(&rig.p, &rig.p.client, FAB_WC_CONNECT, FAB_SUCCESS);
    fab_read r = { .wr_id = 1,
                   .local = room + 100,
                   .local_mr = mr,
                   .remote_addr = 1,
                   .rkey = 2,
                   .bytes = 64,
                   .next_local = room + 300,
                   .next_mr = mr,
                   .next_bytes = 100,
                   .next_argument = 77 };
    CHECK_EQ(fab_post_reads(c, &r, 1), 1);
    fab_flush(rig.p.client.cq);
    tcp_frame f;
    CHECK(rawtcp_next_frame(fd, &f) && f.type == TCP_FOLLOW && f.argument == (100ull << 32 | 64) && f.rkey == 2 &&
          f.addr == 1 && f.follow == 77);
    rawtcp_frame(fd, a);
    rawtcp_write(fd, junk, a->argument);
    if (b) {
        rawtcp_frame(fd, b);
        rawtcp_write(fd, junk, b->argument);
    }
    CHECK_EQ(pair_expect(&rig.p, &rig.p.client, FAB_WC_READ, status).wr_id, 1);
    if (status != FAB_SUCCESS) pair_expect(&rig.p, &rig.p.client, FAB_WC_DISCONNECT, status);
    for (int j = 0; j < 100; j++) CHECK(room[j] == 0 && room[164 + j] == 0 && room[400 + j] == 0);
    fab_disconnect(c);
    fab_dereg(mr);
    close(fd);
    close(l);
}

TEST(false_halves_cut_a_connection_off_and_write_nothing_beyond_their_places) {
    up();
    const tcp_frame first = { .type = TCP_DATA, .argument = 64 },
                    only = { .type = TCP_DATA, .argument = 64, .last = true };
    const tcp_frame second = { .type = TCP_DATA, .argument = 100, .last = true },
                    less = { .type = TCP_DATA, .argument = 1, .last = true };
    const tcp_frame more = { .type = TCP_DATA, .argument = 101, .last = true },
                    not_last = { .type = TCP_DATA, .argument = 100 };
    const tcp_frame none = { .type = TCP_DATA, .last = true },
                    part = { .type = TCP_DATA, .argument = 63, .last = true };
    const tcp_frame over = { .type = TCP_DATA, .argument = 65 },
                    over_last = { .type = TCP_DATA, .argument = 65, .last = true };
    server_answers(&only, NULL, FAB_SUCCESS);
    server_answers(&first, &second, FAB_SUCCESS);
    server_answers(&first, &less, FAB_SUCCESS);
    server_answers(&first, &more, FAB_REM_INV_REQ_ERR);
    server_answers(&first, &not_last, FAB_REM_INV_REQ_ERR);
    server_answers(&first, &none, FAB_REM_INV_REQ_ERR);
    server_answers(&part, NULL, FAB_REM_INV_REQ_ERR);
    server_answers(&over, NULL, FAB_REM_INV_REQ_ERR);
    server_answers(&over_last, NULL, FAB_REM_INV_REQ_ERR);
    down();
}

int main(int argc, char **argv) {
    RUN(what_a_read_leads_to_comes_with_it_and_counts_as_one);
    RUN(what_leads_nowhere_or_too_far_does_not_come);
    RUN(a_region_of_another_tenant_is_not_led_to);
    RUN(a_group_leads_to_its_own_regions_only);
    RUN(a_second_half_whose_place_is_not_registered_is_not_asked_for);
    RUN(reads_of_both_kinds_fill_the_queue_and_come_in_order);
    RUN(a_followed_read_that_was_not_offered_cuts_a_connection_off);
    RUN(a_followed_read_beyond_the_bounds_cuts_a_connection_off);
    RUN(a_followed_read_may_come_cut_at_any_byte);
    RUN(false_halves_cut_a_connection_off_and_write_nothing_beyond_their_places);
    return check_end(argc, argv);
}
