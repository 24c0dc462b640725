#include "fabric_tcp_rig.h"
#include <string.h>
#include "../../fabric/tcp/frame.h"
#include "../check.h"
#include "tcp_raw.h"

tcp_rig rig;
static const char *address(void) { return "127.0.0.1:0"; }
const fabric_under_test tcp_v4 = { .provider = FAB_TCP, .address = address, .sleeps = true, .forks = true };

void rig_open(const fab_options *o) { rig_open_ends(o, o); }

void rig_open_ends(const fab_options *owner, const fab_options *client) {
    pair_listen_ends(&rig.p, &tcp_v4, owner, client);
    pair_connect(&rig.p, RIG_TENANT, &rig.p.client_conn, &rig.p.owner_conn);
    CHECK_EQ(fkv_region_alloc("rig", RIG_REGION, 0, &rig.region), 0);
    pattern_fill(rig.region.base, 5, RIG_REGION);
    CHECK_EQ(fab_reg(rig.p.owner.domain, &rig.region, RIG_TENANT, &rig.mr), 0);
    CHECK_EQ(fab_reg_local(rig.p.client.domain, rig.local, sizeof rig.local, &rig.local_mr), 0);
}

void rig_close(void) {
    CHECK(!end_has(&rig.p.owner) && !end_has(&rig.p.client));
    fab_disconnect(rig.p.client_conn);
    fab_disconnect(rig.p.owner_conn);
    rig.p.client_conn = rig.p.owner_conn = NULL;
    fab_dereg(rig.local_mr);
    fab_dereg(rig.mr);
    fkv_region_free(&rig.region);
    pair_close(&rig.p);
}

void rig_honest_read(void) {
    uint64_t at = rig.reads++ * 64 % (RIG_REGION - 64);
    fab_read r = { .wr_id = rig.reads,
                   .local = rig.local,
                   .local_mr = rig.local_mr,
                   .remote_addr = fab_mr_addr(rig.mr) + at,
                   .rkey = fab_mr_rkey(rig.mr),
                   .bytes = 64 };
    CHECK_EQ(fab_post_reads(rig.p.client_conn, &r, 1), 1);
    fab_wc w = pair_expect(&rig.p, &rig.p.client, FAB_WC_READ, FAB_SUCCESS);
    CHECK(w.wr_id == rig.reads && w.conn == rig.p.client_conn);
    CHECK(memcmp(rig.local, rig.region.base + at, 64) == 0);
}

int rig_stranger(fab_conn **c) {
    int fd = rawtcp_connect(rig.p.address);
    uint8_t hello[TCP_HELLO_BYTES], answer[TCP_HELLO_BYTES];
    tcp_hello h = rawtcp_hello();
    rawtcp_write(fd, hello, tcp_hello_encode(&h, hello));
    *c = pair_expect(&rig.p, &rig.p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    CHECK_EQ(fab_accept(*c, RIG_TENANT, NULL, 0), 0);
    CHECK(rawtcp_read(fd, answer, sizeof answer));
    return fd;
}
