#include "shm_raw.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "../check.h"

enum { FDS = 4 };

static struct sockaddr_un name_of(const char *address) {
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    snprintf(a.sun_path, sizeof a.sun_path, "%s", address + 5);
    return a;
}

raw raw_connect(const char *address) {
    raw r = { .fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), .bell = -1 };
    struct sockaddr_un a = name_of(address);
    CHECK(r.fd >= 0);
    CHECK_EQ(connect(r.fd, (struct sockaddr *)&a, sizeof a), 0);
    return r;
}

int raw_listen(const char *address) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = name_of(address);
    CHECK_EQ(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    CHECK_EQ(listen(fd, 8), 0);
    return fd;
}

raw raw_accept(int listener) {
    raw r = { .fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), .bell = -1 };
    CHECK(r.fd >= 0);
    return r;
}

void raw_close(raw *r) {
    close(r->fd);
    if (r->bell >= 0) close(r->bell);
    if (r->shared) munmap(r->shared, shm_shared_bytes(r->ring_bytes));
}

void raw_send(raw *r, const void *bytes, size_t n, const int *fds, int fd_count) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * FDS)];
    } control = { 0 };
    struct iovec iov = { (void *)(uintptr_t)bytes, n };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    if (fd_count > 0) {
        size_t room = sizeof(int) * (size_t)fd_count;
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(room);
        control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SCM_RIGHTS,
                                           .cmsg_len = CMSG_LEN(room) };
        memcpy(CMSG_DATA(&control.header), fds, room);
    }
    if (sendmsg(r->fd, &m, MSG_NOSIGNAL) < 0) CHECK(errno == EPIPE || errno == ECONNRESET);
}

shm_frame raw_frame(uint8_t type) { return (shm_frame){ .magic = SHM_MAGIC, .type = type }; }

void raw_hello(raw *r) {
    shm_frame f = raw_frame(SHM_HELLO);
    f.version_min = SHM_VERSION_MIN;
    f.version_max = SHM_VERSION_MAX;
    f.max_message = 16 << 10;
    raw_send(r, &f, sizeof f, NULL, 0);
}

/* 0: the other end hung up. */
static ssize_t receive(raw *r, shm_frame *f, int *fds, int *fd_count) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * FDS)];
    } control;
    struct iovec iov = { f, sizeof *f };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    struct pollfd p = { .fd = r->fd, .events = POLLIN };
    CHECK_EQ(poll(&p, 1, (int)check_patience_ms()), 1);
    ssize_t n = recvmsg(r->fd, &m, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == ECONNRESET) return receive(r, f, fds, fd_count);
    CHECK(n >= 0);
    *fd_count = 0;
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    if (h) {
        *fd_count = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(h), sizeof(int) * (size_t)*fd_count);
    }
    return n;
}

int raw_expect(raw *r, uint8_t type, shm_frame *f, int *fds) {
    int n;
    CHECK_EQ(receive(r, f, fds, &n), sizeof *f);
    CHECK_EQ(f->type, type);
    return n;
}

void raw_welcomed(raw *r) {
    shm_frame f;
    int fds[FDS];
    CHECK_EQ(raw_expect(r, SHM_WELCOME, &f, fds), 2);
    r->ring_bytes = f.ring_bytes;
    r->max_message = f.max_message;
    r->shared = mmap(NULL, shm_shared_bytes(f.ring_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    CHECK(r->shared != MAP_FAILED);
    for (int i = 0; i < 2; i++) r->ring[i] = (uint8_t *)(r->shared + 1) + (size_t)i * r->ring_bytes;
    close(fds[0]);
    r->bell = fds[1];
}

void raw_wait_for_end(raw *r) {
    shm_frame f;
    int fds[FDS], n;
    while (receive(r, &f, fds, &n) > 0)
        for (int i = 0; i < n; i++) close(fds[i]);
}

bool raw_has_ended(const raw *r) {
    char byte;
    ssize_t n = recv(r->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 0 || (n < 0 && errno == ECONNRESET);
}

int raw_memory(int seals, size_t bytes) { return raw_memory_with_hole(seals, bytes, bytes, bytes); }

/* fallocate alone would leave what SEEK_HOLE calls a hole. */
static void fill(int fd, size_t from, size_t to) {
    static const uint8_t zeroes[1 << 16];
    for (size_t at = from; at < to; at += sizeof zeroes) {
        size_t n = to - at < sizeof zeroes ? to - at : sizeof zeroes;
        CHECK_EQ(pwrite(fd, zeroes, n, (off_t)at), (ssize_t)n);
    }
}

int raw_memory_with_hole(int seals, size_t bytes, size_t from, size_t to) {
    int fd = memfd_create("offer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(fd, (off_t)bytes), 0);
    fill(fd, 0, from);
    fill(fd, to, bytes);
    if (seals) CHECK_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static char directory[64];

void raw_directory_make(void) {
    const char *given = getenv("FARKV_TEST_DIRECTORY");
    snprintf(directory, sizeof directory, "%s", given ? given : "/tmp/farkv-shm-XXXXXX");
    if (given) return;
    CHECK(mkdtemp(directory));
    setenv("FARKV_TEST_DIRECTORY", directory, 1);
}

void raw_directory_remove(void) { CHECK_EQ(rmdir(directory), 0); }
const char *raw_directory(void) { return directory; }

const char *raw_fresh_address(void) {
    static char address[128];
    static int count;
    snprintf(address, sizeof address, "unix:%s/%d.%d", directory, (int)getpid(), count++);
    return address;
}
