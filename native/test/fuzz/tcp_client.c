/* tcp_client.c: the tcp provider as clients use it, with a server that answers READs wrongly, too late or with too
 * much. Checked: nothing is written outside the buffers that were given for READs, and each READ ends, once, in order.
 */
#include <stdlib.h>
#include <string.h>
#include "../check.h"
#include "tcp_peer.h"

enum { LOCAL = 4096, READS = 32, STEPS = 64, NEXT = 1024 };

static tcp_peer p;
static uint8_t *local[READS]; /* of malloc each, so that a sanitizer sees what lies outside */
static uint32_t wanted[READS], next[READS];
static fab_mr *mr[READS];
static uint64_t posted, ended;
static bool up;

static void open_client(void) {
    tcp_peer_open(&p, &(fab_options){ .provider = FAB_TCP, .handshake_ms = 3600000, .op_timeout_ms = 3600000 });
    for (int i = 0; i < READS; i++) {
        local[i] = malloc(LOCAL);
        CHECK_EQ(fab_reg_local(p.domain, local[i], LOCAL, &mr[i]), 0);
    }
}
static void close_client(void) {
    for (int i = 0; i < READS; i++) {
        fab_dereg(mr[i]);
        free(local[i]);
    }
    tcp_peer_close(&p);
}

static void look_at_read(const fab_wc *wc) {
    CHECK_EQ(wc->wr_id, ended);
    uint64_t i = ended++ % READS;
    uint32_t landed = wc->status == FAB_SUCCESS && next[i] ? wc->bytes : wanted[i];
    if (wc->status == FAB_SUCCESS) CHECK(landed >= wanted[i] && landed <= wanted[i] + next[i]);
    /* A READ lies at its buffer's beginning, what follows at its end; between the two nothing was touched. */
    for (uint32_t at = wanted[i]; at < LOCAL - next[i]; at++) CHECK(local[i][at] == 0xaa);
}
static void take(const fab_wc *wc) {
    switch (wc->opcode) {
    case FAB_WC_CONNECT:
        up = wc->status == FAB_SUCCESS;
        CHECK(wc->bytes <= FAB_PRIVATE_MAX);
        break;
    case FAB_WC_READ: look_at_read(wc); break;
    case FAB_WC_RECV:
        fuzz_touch(wc->data, wc->bytes);
        fab_release(wc->conn, wc->data);
        break;
    case FAB_WC_DISCONNECT:
        CHECK_EQ(ended, posted);
        fab_disconnect(wc->conn);
        up = false;
        p.conn = NULL;
        break;
    default: break;
    }
}

static void post(fuzz_in *in) {
    uint32_t bytes = fuzz_u16(in) % (LOCAL - NEXT) + 1, more = fuzz_u8(in) & 1 ? NEXT : 0;
    if (!up || !p.conn || posted - ended >= READS) return;
    uint64_t i = posted % READS;
    if (more && bytes > FAB_FOLLOW_FIRST_MAX) bytes = FAB_FOLLOW_FIRST_MAX;
    if (!fab_follows(&p.conn->head)) more = 0;
    memset(local[i], 0xaa, LOCAL);
    wanted[i] = bytes;
    next[i] = more;
    fab_read r = { .wr_id = posted,
                   .local = local[i],
                   .local_mr = mr[i],
                   .remote_addr = 1 << 20,
                   .rkey = 5,
                   .bytes = bytes,
                   .next_bytes = more,
                   .next_local = more ? local[i] + LOCAL - NEXT : NULL,
                   .next_mr = more ? mr[i] : NULL };
    if (fab_post_reads(&p.conn->head, &r, 1) == 1) posted++;
    fab_flush(p.cq);
}
static tcp_frame some_frame(fuzz_in *in, uint8_t what) {
    uint64_t i = ended % READS;
    uint8_t form = fuzz_u8(in);
    tcp_frame f = { .type = (uint8_t)(what % 6 + 1), .number = p.conn ? (uint32_t)p.conn->answered : 0, .last = true };
    f.argument = form & 1 ? wanted[i] : fuzz_u16(in);
    if (f.type == TCP_SEND) f.argument = 1 + f.argument % 2048;
    if (f.type == TCP_CREDIT && p.conn) f.argument = p.conn->returned + fuzz_u16(in);
    return f;
}
static void step(fuzz_in *in) {
    uint8_t what = fuzz_u8(in);
    switch (what % 16) {
    case 0: tcp_peer_say_bytes(&p, in); break;
    case 1: tcp_peer_say_hello(&p, in, fuzz_u8(in) & 1 ? TCP_ACCEPT : TCP_REJECT); break;
    case 2: tcp_peer_listen(&p); break;
    case 3:
    case 4: tcp_peer_turn(&p, take); break;
    case 5:
    case 6:
    case 7: post(in); break;
    case 8:
        if (up && p.conn) {
            static const uint8_t request[8192];
            uint32_t bytes = 1 + fuzz_u16(in) % sizeof request;
            fab_send(&p.conn->head, &(struct iovec){ (void *)(uintptr_t)request, bytes }, 1);
            fab_flush(p.cq);
        }
        break;
    default: tcp_peer_say_frame(&p, in, some_frame(in, what & 0x80 ? TCP_DATA - 1 : what >> 4)); break;
    }
}
static void one(fuzz_in *in) {
    posted = ended = 0;
    up = false;
    tcp_peer_connect(&p, NULL, TCP_CONNECTING);
    if (fuzz_u8(in) & 1) { /* beyond the answer to its hello at once */
        fuzz_in none = { NULL, 0 };
        tcp_peer_say_hello(&p, &none, TCP_ACCEPT);
        tcp_peer_turn(&p, take);
        CHECK(up);
    }
    for (int i = 0; i < STEPS && in->left; i++) step(in);
    tcp_peer_hang_up(&p, take);
    CHECK_EQ(ended, posted);
}

const fuzz_target fuzz_tcp_client = { "tcp_client", open_client, one, close_client };
