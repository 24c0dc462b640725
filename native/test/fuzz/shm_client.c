/* shm_client.c: the shm provider as clients use it, with an owner by hand: a welcome with rings of any kind, memory of
 * any kind in place of its regions, any bytes in the rings. Checked: what the client maps can be read to its end. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../check.h"
#include "shm_peer.h"

enum { STEPS = 48, REGIONS = 4, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
static const uint64_t KEYS = 0x5000;

static shm_peer p;
static char address[128];
static int listener;
static bool answered;
static uint64_t bytes_of[REGIONS];

static void open_client(void) {
    shm_peer_open(&p);
    p.side = 1;
    snprintf(address, sizeof address, "%s", raw_fresh_address());
    listener = raw_listen(address);
}
static void close_client(void) {
    close(listener);
    unlink(address + 5);
    shm_peer_close(&p);
}

static void take(const fab_wc *wc) {
    if (wc->opcode == FAB_WC_CONNECT) {
        CHECK(wc->bytes <= FAB_PRIVATE_MAX);
        answered = true;
        p.up = wc->status == FAB_SUCCESS;
    } else if (wc->opcode == FAB_WC_ATTACH) {
        uint64_t which = wc->wr_id;
        const uint8_t *base = wc->status == FAB_SUCCESS ? fab_direct(wc->conn, KEYS + which) : NULL;
        if (base) fuzz_touch(base, bytes_of[which]);
    }
}

static void welcome(fuzz_in *in) {
    uint8_t form = fuzz_u8(in);
    uint32_t ring = form & 1 ? (uint32_t)fuzz_number(in) : (uint32_t)SHM_RING_MIN << fuzz_u8(in) % 2;
    uint64_t bytes = shm_shared_bytes(ring), shown = bytes;
    shm_frame f = raw_frame(form & 2 && fuzz_u8(in) & 1 ? SHM_REJECT : SHM_WELCOME);
    f.version_min = f.version_max = SHM_VERSION_MAX;
    f.max_message = form & 4 ? (uint32_t)fuzz_number(in) : 4096;
    f.ring_bytes = ring;
    if (form & 8) f.count = (uint32_t)fuzz_number(in);
    if (form & 16) shown = fuzz_number(in);
    int seals = form & 32 ? fuzz_u8(in) & 0x1f : SEALS, pair[2];
    /* A file that is large only by its name takes no memory. */
    int fd[2] = { memfd_create("rings", MFD_CLOEXEC | MFD_ALLOW_SEALING), -1 };
    if (ftruncate(fd[0], (off_t)(shown & 0xffffff)) == 0 && seals) fcntl(fd[0], F_ADD_SEALS, seals);
    CHECK_EQ(socketpair(AF_UNIX, form & 64 ? SOCK_SEQPACKET : SOCK_STREAM, 0, pair), 0);
    fd[1] = pair[1];
    fuzz_change(in, &f, sizeof f);
    fuzz_frames++;
    int sent = form & 128 ? fuzz_u8(in) % 3 : 2;
    raw_send(&p.r, &f, sizeof f, fd, sent);
    answered = false;
    shm_peer_until(&p, &answered, take);
    if (p.up && sent == 2) {
        CHECK(ftruncate(fd[0], 0) != 0); /* what it has mapped stays */
        p.r.ring_bytes = f.ring_bytes;
        void *map = mmap(NULL, shm_shared_bytes(f.ring_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd[0], 0);
        CHECK(map != MAP_FAILED);
        p.r.shared = map;
        p.r.bell = pair[0];
        for (int i = 0; i < 2; i++) p.r.ring[i] = (uint8_t *)(p.r.shared + 1) + (size_t)i * f.ring_bytes;
    } else {
        close(pair[0]);
    }
    close(fd[0]);
    close(fd[1]);
}
static void step(fuzz_in *in) {
    uint8_t what = fuzz_u8(in);
    if (shm_peer_step(&p, in, what, take)) return;
    bool ready = p.up && p.conn;
    switch (what % 16) {
    case 12:
    case 13: shm_peer_say_attached(&p, in); break;
    case 14: {
        uint64_t which = fuzz_u8(in) % REGIONS, bytes = 1 + fuzz_u16(in) % SHM_PEER_LOCAL;
        if (!ready || fab_direct(p.conn, KEYS + which)) break;
        if (fab_attach(p.conn, KEYS + which, SHM_PEER_ADDRESS + fuzz_u8(in) * 16, bytes, which) == 0)
            bytes_of[which] = bytes;
        break;
    }
    default: shm_peer_read(&p, in, what, KEYS + fuzz_u8(in) % REGIONS); break;
    }
}
static void one(fuzz_in *in) {
    CHECK_EQ(fab_connect(p.cq, address, NULL, 0, NULL, &p.conn), 0);
    fab_flush(p.cq);
    p.r = raw_accept(listener);
    shm_frame f;
    int fds[4];
    raw_expect(&p.r, SHM_HELLO, &f, fds);
    welcome(in);
    for (int i = 0; i < STEPS && in->left; i++) step(in);
    shm_peer_hear(&p);
    shm_peer_hang_up(&p, take);
}

const fuzz_target fuzz_shm_client = { "shm_client", open_client, one, close_client };
