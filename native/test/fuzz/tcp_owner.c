/* tcp_owner.c: the tcp provider as owners use it, with a peer that asks for READs, followed READs and more than it may
 * have. Beside its own regions there is one of another tenant: nothing of that may ever be sent. */
#include <stdlib.h>
#include <string.h>
#include "../../serve/follow.h"
#include "../../table/layout.h"
#include "../check.h"
#include "tcp_peer.h"

enum { TENANT = 3, OTHER_TENANT = 4, REGION = 8192, STEPS = 64, MESSAGES = 4096, GROUP = 9, FLOOD = 2048 };
static const char SECRET[] = "of another tenant";

static tcp_peer p;
static tcp_listener listener = { .fd = -1 };
static fkv_region mine[2], other;
static fab_mr *mine_mr[2], *other_mr;
static const void *kept[MESSAGES];
static int kept_count;
static uint64_t kept_cost;
static bool up; /* accepted */

/* In memory of malloc, so that a sanitizer sees what lies outside. */
static void region(fkv_region *r, fab_mr **mr, uint32_t tenant, uint32_t number) {
    *r = (fkv_region){ .fd = -1, .base = malloc(REGION), .bytes = REGION };
    CHECK_EQ(fab_reg(p.domain, r, tenant, mr), 0);
    CHECK_EQ(fab_name(*mr, GROUP, number), 0);
}
static void open_owner(void) {
    tcp_peer_open(&p, &(fab_options){ .provider = FAB_TCP, .follow = dataplane_follow, .handshake_ms = 3600000 });
    listener.head = (fab_listener){ .ops = &fab_tcp_ops, .cq = p.cq };
    for (uint32_t i = 0; i < 2; i++) region(&mine[i], &mine_mr[i], TENANT, i);
    region(&other, &other_mr, OTHER_TENANT, 2);
    for (size_t i = 0; i + sizeof SECRET <= REGION; i += sizeof SECRET) memcpy(other.base + i, SECRET, sizeof SECRET);
}
static void close_owner(void) {
    for (int i = 0; i < 2; i++) {
        fab_dereg(mine_mr[i]);
        free(mine[i].base);
    }
    fab_dereg(other_mr);
    free(other.base);
    tcp_peer_close(&p);
}

static void take(const fab_wc *wc) {
    switch (wc->opcode) {
    case FAB_WC_ACCEPT:
        CHECK(wc->bytes <= FAB_PRIVATE_MAX);
        up = fab_accept(wc->conn, TENANT, NULL, 0) == 0;
        break;
    case FAB_WC_RECV:
        CHECK(wc->bytes > 0 && wc->bytes <= 16 << 10 && ((uintptr_t)wc->data & 7) == 0);
        fuzz_touch(wc->data, wc->bytes);
        kept[kept_count++] = wc->data;
        kept_cost += tcp_cost(wc->bytes);
        CHECK(kept_cost <= TCP_WINDOW && kept_count < MESSAGES);
        break;
    case FAB_WC_DISCONNECT:
        fab_disconnect(wc->conn);
        kept_count = 0;
        kept_cost = 0;
        up = false;
        p.conn = NULL;
        break;
    default: break;
    }
}

static tcp_frame some_frame(fuzz_in *in, uint8_t what) {
    uint8_t of = fuzz_u8(in);
    fab_mr *mr = of % 8 == 7 ? other_mr : mine_mr[of & 1];
    tcp_frame f = { .type = (uint8_t)(what % 6 + 1), .rkey = fab_mr_rkey(mr), .addr = fab_mr_addr(mr) };
    f.addr += fuzz_u16(in) % (REGION + 128);
    f.argument = fuzz_u16(in);
    if (f.type == TCP_FOLLOW) {
        f.argument = FKV_BUCKET_BYTES | (uint64_t)fuzz_u16(in) << 32;
        f.follow = (uint64_t)fuzz_u32(in);
    }
    if (f.type == TCP_SEND) f.argument = 1 + f.argument % 2048;
    if (of % 16 == 5) f.rkey ^= 1;
    return f;
}
/* What the first region holds is what followed READs are led by: buckets, whose slots name places in any region. */
static void fill(fuzz_in *in) {
    uint8_t *at = mine[0].base + (size_t)(fuzz_u8(in) % 60) * 8;
    uint64_t slot = fkv_slot(fuzz_u8(in) & 3, fuzz_u8(in), fkv_location(fuzz_u8(in) % 4, (uint32_t)fuzz_number(in)));
    memcpy(at, &slot, sizeof slot);
}
static void release(void) {
    while (kept_count && p.conn) fab_release(&p.conn->head, kept[--kept_count]);
    kept_cost = 0;
}
/* More than it may have: READs that are not answered, or messages that are not given back. */
static void flood(fuzz_in *in) {
    static const uint8_t payload[1024];
    uint8_t out[TCP_FOLLOW_BYTES];
    tcp_frame f = some_frame(in, fuzz_u8(in) & 1 ? TCP_READ - 1 : TCP_SEND - 1);
    if (f.type == TCP_SEND) f.argument = sizeof payload;
    for (uint32_t n = fuzz_u16(in) % FLOOD, i = 0; i < n && p.conn; i++) {
        f.number = i;
        tcp_peer_write(&p, out, tcp_frame_encode(&f, out));
        if (f.type == TCP_SEND) tcp_peer_write(&p, payload, sizeof payload);
        if (i % 64 == 63) tcp_peer_turn(&p, take);
        if (p.conn) CHECK(p.conn->serve_tail - p.conn->serve_head <= TCP_DEPTH);
    }
}
static void step(fuzz_in *in) {
    uint8_t what = fuzz_u8(in);
    switch (what % 16) {
    case 0: tcp_peer_say_bytes(&p, in); break;
    case 1: tcp_peer_say_hello(&p, in, TCP_HELLO); break;
    case 2: tcp_peer_listen(&p); break;
    case 3:
    case 4: tcp_peer_turn(&p, take); break;
    case 5: fill(in); break;
    case 6: release(); break;
    case 7:
        if (up && p.conn) {
            static const uint8_t reply[8192];
            fab_send(&p.conn->head, &(struct iovec){ (void *)(uintptr_t)reply, 1 + fuzz_u16(in) % sizeof reply }, 1);
            fab_flush(p.cq);
        }
        break;
    case 8: flood(in); break;
    default: tcp_peer_say_frame(&p, in, some_frame(in, what >> 4)); break;
    }
    if (p.conn) CHECK(p.conn->serve_tail - p.conn->serve_head <= TCP_DEPTH);
}
static void one(fuzz_in *in) {
    kept_count = 0;
    kept_cost = 0;
    up = false;
    memset(mine[0].base, 0, REGION);
    tcp_peer_connect(&p, &listener, TCP_GREETING);
    if (fuzz_u8(in) & 1) { /* beyond the hello at once */
        fuzz_in none = { NULL, 0 };
        tcp_peer_say_hello(&p, &none, TCP_HELLO);
        tcp_peer_turn(&p, take);
        tcp_peer_turn(&p, take);
        CHECK(up);
    }
    for (int i = 0; i < STEPS && in->left; i++) step(in);
    for (int i = 0; i < 4; i++) {
        tcp_peer_turn(&p, take);
        tcp_peer_listen(&p);
    }
    CHECK(!memmem(p.heard, p.heard_bytes, SECRET, sizeof SECRET));
    release();
    tcp_peer_hang_up(&p, take);
    CHECK_EQ(listener.live, 0);
}

const fuzz_target fuzz_tcp_owner = { "tcp_owner", open_owner, one, close_owner };
