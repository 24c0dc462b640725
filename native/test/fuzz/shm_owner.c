/* shm_owner.c: the shm provider as owners use it, with a client that writes what it likes into the shared rings, offers
 * memory of any kind for its large values, and asks for regions. One region is of another tenant: its descriptor must
 * never be given away. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"
#include "shm_peer.h"

enum { TENANT = 3, OTHER_TENANT = 4, REGION = 8192, STEPS = 48, FOREIGN = 77 };
static const uint64_t OFFERED = 0x5000;

static shm_peer p;
static fab_listener *listener;
static fkv_region region, other;
static fab_mr *region_mr, *other_mr;
static bool asked;

static void open_owner(void) {
    shm_peer_open(&p);
    p.side = 0;
    p.refusable = FOREIGN;
    CHECK_EQ(fab_listen(p.cq, raw_fresh_address(), &listener), 0);
    CHECK_EQ(fkv_region_alloc("mine", REGION, 0, &region), 0);
    CHECK_EQ(fkv_region_alloc("other", REGION, 0, &other), 0);
    CHECK_EQ(fab_reg(p.domain, &region, TENANT, &region_mr), 0);
    CHECK_EQ(fab_reg(p.domain, &other, OTHER_TENANT, &other_mr), 0);
}
static void close_owner(void) {
    fab_dereg(other_mr);
    fab_dereg(region_mr);
    fkv_region_free(&other);
    fkv_region_free(&region);
    fab_unlisten(listener);
    shm_peer_close(&p);
}

static void take(const fab_wc *wc) {
    if (wc->opcode == FAB_WC_ACCEPT) {
        CHECK(wc->bytes <= FAB_PRIVATE_MAX);
        p.conn = wc->conn;
        asked = true;
        p.up = fab_accept(wc->conn, TENANT, NULL, 0) == 0;
    } else if (wc->opcode == FAB_WC_ATTACH) {
        p.attached++;
    }
}

static void hello(fuzz_in *in) {
    uint8_t form = fuzz_u8(in);
    shm_frame f = raw_frame(SHM_HELLO);
    f.version_min = SHM_VERSION_MIN;
    f.version_max = SHM_VERSION_MAX;
    f.max_message = form & 1 ? (uint32_t)fuzz_number(in) : SHM_PEER_MESSAGE;
    if (form & 2) f.count = (uint32_t)fuzz_number(in);
    if (form & 4)
        shm_peer_say_frame(&p, in, f);
    else
        raw_send(&p.r, &f, sizeof f, NULL, 0);
    fuzz_frames++;
    asked = false;
    shm_peer_until(&p, &asked, take);
    if (p.up && !raw_has_ended(&p.r)) raw_welcomed(&p.r);
}
/* Asks for a region of the owner's. */
static void attach(fuzz_in *in) {
    uint8_t form = fuzz_u8(in);
    bool foreign = form & 1;
    fab_mr *mr = foreign ? other_mr : region_mr;
    shm_frame f = raw_frame(SHM_ATTACH);
    f.id = foreign ? FOREIGN : FOREIGN + 1 + fuzz_u8(in);
    f.rkey = fab_mr_rkey(mr);
    f.address = fab_mr_addr(mr) + (form & 2 ? fuzz_number(in) : 0);
    f.bytes = form & 4 ? fuzz_number(in) : REGION;
    fuzz_frames++;
    raw_send(&p.r, &f, sizeof f, NULL, 0);
    /* The agent answers, unless it has hung up. */
    for (uint64_t before = p.answers; p.answers == before && p.conn && !raw_has_ended(&p.r);) {
        shm_peer_turn(&p, take);
        shm_peer_hear(&p);
        sched_yield();
    }
}
static void step(fuzz_in *in) {
    uint8_t what = fuzz_u8(in);
    if (shm_peer_step(&p, in, what, take)) return;
    bool ready = p.up && p.conn;
    switch (what % 16) {
    case 12: attach(in); break;
    case 13: shm_peer_say_attached(&p, in); break;
    case 14: {
        uint64_t at = fuzz_u8(in) * 16, bytes = 1 + fuzz_u16(in) % (2 * REGION), rkey = OFFERED + fuzz_u8(in) % 4;
        if (ready) fab_attach(p.conn, rkey, SHM_PEER_ADDRESS + at, bytes, p.attached);
        break;
    }
    default: shm_peer_read(&p, in, what, OFFERED + fuzz_u8(in) % 4); break;
    }
}
static void one(fuzz_in *in) {
    p.r = raw_connect(fab_listener_address(listener));
    hello(in);
    for (int i = 0; i < STEPS && in->left; i++) step(in);
    shm_peer_hear(&p);
    shm_peer_hang_up(&p, take);
}

const fuzz_target fuzz_shm_owner = { "shm_owner", open_owner, one, close_owner };
