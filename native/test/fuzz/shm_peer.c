/* shm_peer.c: see shm_peer.h. */
#include "shm_peer.h"
#include <errno.h>
#include <sys/eventfd.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../check.h"

enum { FDS = 4, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, PAGES = 4 };

void shm_peer_open(shm_peer *p) {
    *p = (shm_peer){ .r = { .fd = -1, .bell = -1 } };
    unsetenv("FARKV_TEST_DIRECTORY"); /* of whoever started this one, for tests with several processes */
    raw_directory_make();
    fab_options o = { .provider = FAB_SHM, .handshake_ms = 3600000, .op_timeout_ms = 3600000 };
    CHECK_EQ(fab_open(&o, &p->domain), 0);
    CHECK_EQ(fab_cq_create(p->domain, &p->cq), 0);
    p->local = malloc(SHM_PEER_LOCAL);
    CHECK_EQ(fab_reg_local(p->domain, p->local, SHM_PEER_LOCAL, &p->local_mr), 0);
}
void shm_peer_close(shm_peer *p) {
    fab_dereg(p->local_mr);
    free(p->local);
    fab_cq_destroy(p->cq);
    fab_close(p->domain);
    raw_directory_remove();
}

static void take_message(shm_peer *p, const fab_wc *wc) {
    CHECK(wc->bytes > 0 && wc->bytes <= fab_max_message(wc->conn));
    fuzz_touch(wc->data, wc->bytes);
    if (p->kept_count < (int)(sizeof p->kept / sizeof *p->kept))
        p->kept[p->kept_count++] = wc->data;
    else
        fab_release(wc->conn, wc->data);
}
void shm_peer_turn(shm_peer *p, void (*take)(const fab_wc *wc)) {
    fab_wc wc[8];
    int n = fab_poll(p->cq, wc, 8);
    for (int i = 0; i < n; i++) {
        if (wc[i].opcode == FAB_WC_RECV) {
            take_message(p, &wc[i]);
        } else if (wc[i].opcode == FAB_WC_DISCONNECT) {
            fab_disconnect(wc[i].conn);
            p->kept_count = 0;
            p->up = false;
            p->conn = NULL;
        } else if (wc[i].opcode == FAB_WC_READ) {
            CHECK(wc[i].wr_id < p->reads);
        } else {
            take(&wc[i]);
        }
    }
    fab_flush(p->cq);
}
void shm_peer_until(shm_peer *p, const bool *done, void (*take)(const fab_wc *wc)) {
    uint64_t begun = fkv_now_ns();
    for (uint32_t i = 1; !*done && !(p->r.fd >= 0 && raw_has_ended(&p->r)); i++) {
        shm_peer_turn(p, take);
        sched_yield();
        CHECK(i % 10000 || check_in_time(begun));
    }
}
void shm_peer_hang_up(shm_peer *p, void (*take)(const fab_wc *wc)) {
    while (p->kept_count && p->conn) fab_release(p->conn, p->kept[--p->kept_count]);
    if (p->r.fd >= 0) raw_close(&p->r);
    p->r = (raw){ .fd = -1, .bell = -1 };
    uint64_t begun = fkv_now_ns();
    for (uint32_t i = 1; p->conn; i++) {
        shm_peer_turn(p, take);
        sched_yield();
        CHECK(i % 10000 || check_in_time(begun));
    }
    p->asked = 0;
    p->attached = 0;
    p->reads = 0;
}
void shm_peer_read(shm_peer *p, fuzz_in *in, uint8_t what, uint64_t rkey) {
    fab_read r = { .wr_id = p->reads, .local = p->local, .local_mr = p->local_mr, .rkey = rkey };
    r.remote_addr = SHM_PEER_ADDRESS + fuzz_u16(in);
    r.bytes = 1 + fuzz_u16(in) % SHM_PEER_LOCAL;
    if (!p->up || !p->conn) return;
    if (what & 0x80) fab_detach(p->conn, rkey);
    if (fab_post_reads(p->conn, &r, 1) == 1) p->reads++;
}

/* ---- the socket ---- */

void shm_peer_hear(shm_peer *p) {
    for (;;) {
        union {
            struct cmsghdr header;
            char room[CMSG_SPACE(sizeof(int) * FDS)];
        } control;
        shm_frame f;
        struct iovec iov = { &f, sizeof f };
        struct msghdr m = {
            .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
        };
        ssize_t n = p->r.fd < 0 ? -1 : recvmsg(p->r.fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n <= 0) return;
        int fds = 0, fd[FDS];
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        if (h) {
            fds = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(fd, CMSG_DATA(h), sizeof(int) * (size_t)fds);
        }
        CHECK_EQ(n, sizeof f);
        /* What it may not have it is not given: an ATTACH of that asks with this id. */
        if (f.type == SHM_ATTACHED && f.id == p->refusable) CHECK(f.status != FAB_SUCCESS && fds == 0);
        p->answers += f.type == SHM_ATTACHED;
        if (f.type == SHM_ATTACH) {
            int at = p->asked++ % 32;
            p->asked_id[at] = f.id;
            p->asked_address[at] = f.address;
        }
        for (int i = 0; i < fds; i++) close(fd[i]);
    }
}
int shm_peer_memory(fuzz_in *in, uint64_t *bytes) {
    uint8_t form = fuzz_u8(in);
    uint64_t size = (uint64_t)(1 + fuzz_u8(in) % PAGES) * 4096, hole = fuzz_u8(in) % (PAGES + 1) * 4096u;
    *bytes = size;
    int seals = form & 7 ? SEALS : fuzz_u8(in) & 0x1f;
    if (hole > size || !(form & 8)) hole = size;
    return raw_memory_with_hole(seals, size, hole, hole + 4096 < size ? hole + 4096 : size);
}
void shm_peer_say_frame(shm_peer *p, fuzz_in *in, shm_frame f) {
    uint8_t form = fuzz_u8(in);
    int fd[FDS], n = 0;
    uint64_t bytes;
    fuzz_change(in, &f, sizeof f);
    if (form & 1) n = 1 + fuzz_u8(in) % 3;
    for (int i = 0; i < n; i++) fd[i] = form & 2 ? shm_peer_memory(in, &bytes) : eventfd(0, 0);
    fuzz_frames++;
    if (p->r.fd >= 0) raw_send(&p->r, &f, form & 4 ? fuzz_u8(in) % sizeof f : sizeof f, fd, n);
    for (int i = 0; i < n; i++) close(fd[i]);
}
void shm_peer_say_attached(shm_peer *p, fuzz_in *in) {
    shm_peer_hear(p);
    if (!p->asked || p->r.fd < 0) return;
    uint64_t bytes;
    int which = fuzz_u8(in) % (p->asked < 32 ? p->asked : 32), fd = shm_peer_memory(in, &bytes);
    uint8_t form = fuzz_u8(in);
    shm_frame f = raw_frame(SHM_ATTACHED);
    f.id = p->asked_id[which];
    f.slot = form & 1 ? (uint32_t)fuzz_number(in) : (uint32_t)which;
    f.offset = form & 2 ? fuzz_number(in) : p->asked_address[which] - SHM_PEER_ADDRESS;
    f.status = form & 4 ? fuzz_u8(in) : FAB_SUCCESS;
    fuzz_change(in, &f, sizeof f);
    fuzz_frames++;
    raw_send(&p->r, &f, sizeof f, &fd, form & 8 ? 0 : 1);
    if (form & 16 && ftruncate(fd, 0) == 0) fuzz_frames++; /* where the product should not have mapped it */
    close(fd);
}
static void say_any(shm_peer *p, fuzz_in *in) {
    shm_frame f = raw_frame(fuzz_u8(in) % 9);
    f.id = fuzz_number(in);
    f.count = (uint32_t)fuzz_number(in);
    f.slot = (uint32_t)fuzz_number(in);
    f.status = fuzz_u8(in) % 4;
    for (int i = 0; i < 4; i++) f.slots[i] = fuzz_u8(in);
    shm_peer_say_frame(p, in, f);
}

/* ---- the memory that both share ---- */

static void ring_bell(shm_peer *p) { send(p->r.bell, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL); }
/* A message as it should be, but for its header, which may say anything. */
static void push(shm_peer *p, fuzz_in *in) {
    shm_lane *lane = &p->r.shared->lane[p->side];
    uint64_t tail = atomic_load(&lane->tail), header = 1 + fuzz_u16(in) % 2048, mask = p->r.ring_bytes - 1;
    uint8_t form = fuzz_u8(in);
    uint64_t step = shm_record_bytes((uint32_t)header);
    if (form & 1) header = fuzz_number(in);
    if (form & 2) step = fuzz_number(in);
    memcpy(p->r.ring[p->side] + (tail & mask & ~7ull), &header, 8);
    atomic_store(&lane->tail, tail + step);
    fuzz_frames++;
    if (form & 4) ring_bell(p);
}
static void set_index(shm_peer *p, fuzz_in *in) {
    uint8_t which = fuzz_u8(in);
    shm_lane *lane = &p->r.shared->lane[which & 1];
    _Atomic uint64_t *at = which & 2 ? &lane->tail : &lane->head;
    uint64_t by = fuzz_number(in);
    fuzz_frames++;
    if (which & 4)
        atomic_store(at, by);
    else
        atomic_fetch_add(at, which & 8 ? by * 8 : 0 - by);
}
/* Takes what it was sent. */
static void consume(shm_peer *p) {
    shm_lane *lane = &p->r.shared->lane[!p->side];
    atomic_store(&lane->head, atomic_load(&lane->tail));
}
static void write_any(shm_peer *p, fuzz_in *in) {
    uint8_t which = fuzz_u8(in);
    uint64_t at = fuzz_u32(in);
    fuzz_frames++;
    if (which & 1)
        fuzz_bytes(in, p->r.ring[which >> 1 & 1] + at % (p->r.ring_bytes - 8), 8);
    else if (which & 2)
        atomic_store(&p->r.shared->revoked[which >> 2 & 1][at % SHM_SLOTS], (uint8_t)(which >> 7));
    else
        atomic_store(&p->r.shared->asleep[which >> 2 & 1].flags, (uint32_t)at & 7);
}

static void send_some(shm_peer *p, fuzz_in *in) {
    static const uint8_t message[8192];
    uint32_t bytes = 1 + fuzz_u16(in) % sizeof message;
    if (p->up && p->conn) fab_send(p->conn, &(struct iovec){ (void *)(uintptr_t)message, bytes }, 1);
    fab_flush(p->cq);
}
bool shm_peer_step(shm_peer *p, fuzz_in *in, uint8_t what, void (*take)(const fab_wc *wc)) {
    bool shared = p->r.shared != NULL;
    switch (what % 16) {
    case 0: say_any(p, in); return true;
    case 1:
        if (shared) ring_bell(p);
        return true;
    case 2:
    case 3:
        if (shared) push(p, in);
        return true;
    case 4:
        if (shared) set_index(p, in);
        return true;
    case 5:
        if (shared) write_any(p, in);
        return true;
    case 6:
        if (shared) consume(p);
        return true;
    case 7: shm_peer_hear(p); return true;
    case 8: send_some(p, in); return true;
    case 9:
        while (p->kept_count && p->conn) fab_release(p->conn, p->kept[--p->kept_count]);
        return true;
    case 10:
    case 11: shm_peer_turn(p, take); return true;
    default: return false;
    }
}
