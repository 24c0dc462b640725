/* Sealed memory: what a process that holds the descriptor can not do, and that the owner lives on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../base/region.h"
#include "check.h"

enum { BYTES = 1 << 20, PAGE = 4096 };
static const int ALL_SEALS = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/* Runs `client` in a child process, which ends with the number of the first attempt that succeeded, 0 for none. */
static int in_client(int (*client)(int fd), int fd) {
    pid_t pid = fork();
    if (pid == 0) _exit(client(fd));
    CHECK(pid > 0);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define REFUSED(number, call, failure) do { if ((call) != (failure)) return number; } while (0)

static int change_through(int fd, int first) {
    char byte = 'x';
    REFUSED(first, mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    REFUSED(first + 1, mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, PAGE), MAP_FAILED);
    REFUSED(first + 2, write(fd, &byte, 1), -1);
    REFUSED(first + 3, pwrite(fd, &byte, 1, 100), -1);
    REFUSED(first + 4, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE), -1);
    REFUSED(first + 5, fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, PAGE), -1);
    REFUSED(first + 6, fallocate(fd, 0, 0, 2 * BYTES), -1);
    REFUSED(first + 7, ftruncate(fd, 0), -1);
    REFUSED(first + 8, ftruncate(fd, BYTES - PAGE), -1);
    REFUSED(first + 9, ftruncate(fd, BYTES + PAGE), -1);
    REFUSED(first + 10, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    return 0;
}

static int hostile_client(int fd) {
    int e = change_through(fd, 1);
    if (e) return e;
    uint8_t *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED || map[0] != 0x5a || map[BYTES - 1] != 0x5a) return 99;   /* reading, it can */
    REFUSED(30, mprotect(map, BYTES, PROT_READ | PROT_WRITE), -1);
    REFUSED(31, madvise(map, PAGE, MADV_REMOVE), -1);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR);   /* may succeed, but the file stays sealed */
    e = again >= 0 ? change_through(again, 40) : 0;
    if (e) return e;
    REFUSED(60, open(path, O_RDWR | O_TRUNC), -1);
    REFUSED(61, truncate(path, 0), -1);
    return 0;
}

TEST(a_client_that_holds_the_descriptor_changes_nothing_and_the_owner_lives) {
    static const int ways[] = {0, FKV_REGION_PREFAULT, FKV_REGION_TRY_HUGE, FKV_REGION_PREFAULT | FKV_REGION_TRY_HUGE};
    for (int i = 0; i < 4; i++) {
        fkv_region r;
        CHECK_EQ(fkv_region_alloc("test", BYTES, ways[i], &r), 0);
        memset(r.base, 0x5a, r.bytes);
        CHECK_EQ(in_client(hostile_client, r.fd), 0);
        for (size_t at = 0; at < r.bytes; at++) CHECK(r.base[at] == 0x5a);
        memset(r.base, 0x77, r.bytes);   /* would be SIGBUS, had the file shrunk */
        fkv_region_free(&r);
    }
}

TEST(a_region_is_whole_zeroed_aligned_and_closed_on_exec) {
    fkv_region r;
    CHECK_EQ(fkv_region_alloc("test", 10000, 0, &r), 0);
    CHECK_EQ(r.bytes, 12288);
    CHECK_EQ((uintptr_t)r.base % PAGE, 0);
    for (size_t i = 0; i < r.bytes; i++) CHECK(r.base[i] == 0);
    CHECK(fcntl(r.fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(fcntl(r.fd, F_GET_SEALS) & ALL_SEALS, ALL_SEALS);
    fkv_region_free(&r);
    CHECK(r.base == NULL && r.fd == -1);
    fkv_region_free(&r);   /* again is harmless */
}

TEST(prefaulted_memory_is_there) {
    fkv_region r;
    CHECK_EQ(fkv_region_alloc("test", 64 * PAGE, FKV_REGION_PREFAULT, &r), 0);
    uint8_t there[64];
    CHECK_EQ(mincore(r.base, r.bytes, there), 0);
    for (int i = 0; i < 64; i++) CHECK(there[i] & 1);
    fkv_region_free(&r);
}

TEST(memory_that_cannot_be_had_is_an_error) {
    fkv_region r;
    CHECK_EQ(fkv_region_alloc("test", 0, 0, &r), -EINVAL);
    CHECK(fkv_region_alloc("test", SIZE_MAX, 0, &r) < 0 && r.base == NULL);
    CHECK(fkv_region_alloc("test", SIZE_MAX - 5000, FKV_REGION_TRY_HUGE, &r) < 0 && r.base == NULL);
    CHECK(fkv_region_alloc("test", 1ull << 50, FKV_REGION_PREFAULT, &r) < 0 && r.base == NULL);
}

TEST(huge_pages_never_make_a_region_larger) {
    fkv_region r;
    CHECK_EQ(fkv_region_alloc("test", (2 << 20) + PAGE, FKV_REGION_TRY_HUGE, &r), 0);
    CHECK_EQ(r.bytes, (2 << 20) + PAGE);
    fkv_region_free(&r);
    CHECK_EQ(fkv_region_alloc("test", 4 << 20, FKV_REGION_TRY_HUGE, &r), 0);
    CHECK_EQ(r.bytes, 4 << 20);
    fkv_region_free(&r);
}

static int unsealed(size_t bytes) {
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, (off_t)bytes), 0);
    return fd;
}

TEST(only_memory_with_every_seal_and_enough_bytes_is_taken_from_a_stranger) {
    for (int seal = 1; seal <= ALL_SEALS; seal <<= 1) {
        if (!(seal & ALL_SEALS)) continue;
        int fd = unsealed(BYTES);
        CHECK_EQ(fcntl(fd, F_ADD_SEALS, ALL_SEALS & ~seal), 0);
        CHECK(!fkv_region_fd_is_sealed(fd, BYTES));   /* each one counts */
        CHECK_EQ(close(fd), 0);
    }
    int fd = unsealed(BYTES);
    CHECK(!fkv_region_fd_is_sealed(fd, BYTES));
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, ALL_SEALS), 0);
    CHECK(fkv_region_fd_is_sealed(fd, BYTES));
    CHECK(fkv_region_fd_is_sealed(fd, 0));
    CHECK(!fkv_region_fd_is_sealed(fd, BYTES + 1));
    CHECK(!fkv_region_fd_is_sealed(fd, SIZE_MAX));
    close(fd);
    CHECK(!fkv_region_fd_is_sealed(fd, 0));   /* closed */
    fd = open("/dev/zero", O_RDONLY);
    CHECK(!fkv_region_fd_is_sealed(fd, 0));
    close(fd);
    fd = fileno(tmpfile());
    CHECK_EQ(ftruncate(fd, BYTES), 0);
    CHECK(!fkv_region_fd_is_sealed(fd, BYTES));
}

int main(int argc, char **argv) {
    RUN(a_client_that_holds_the_descriptor_changes_nothing_and_the_owner_lives);
    RUN(a_region_is_whole_zeroed_aligned_and_closed_on_exec);
    RUN(prefaulted_memory_is_there);
    RUN(memory_that_cannot_be_had_is_an_error);
    RUN(huge_pages_never_make_a_region_larger);
    RUN(only_memory_with_every_seal_and_enough_bytes_is_taken_from_a_stranger);
    return check_end(argc, argv);
}
