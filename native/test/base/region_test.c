/* Sealed memory: what a process that holds the descriptor can not do, and that the owner lives on. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../base/region.h"
#include "../check.h"
#include "../smaps.h"

enum { COLLAPSE = 25 };                /* MADV_COLLAPSE */
enum { BYTES = 2 << 20, PAGE = 4096 }; /* one huge page, so that the seals of those are tried too */
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

#define REFUSED(number, call, failure)          \
    do {                                        \
        if ((call) != (failure)) return number; \
    } while (0)

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
    if (map == MAP_FAILED || map[0] != 0x5a || map[BYTES - 1] != 0x5a) return 99; /* reading, it can */
    REFUSED(30, mprotect(map, BYTES, PROT_READ | PROT_WRITE), -1);
    REFUSED(31, madvise(map, PAGE, MADV_REMOVE), -1);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR); /* may succeed, but the file stays sealed */
    e = again >= 0 ? change_through(again, 40) : 0;
    if (e) return e;
    REFUSED(60, open(path, O_RDWR | O_TRUNC), -1);
    REFUSED(61, truncate(path, 0), -1);
    return 0;
}

TEST(a_client_that_holds_the_descriptor_changes_nothing_and_the_owner_lives) {
    static const int ways[] = { 0, FKV_REGION_PREFAULT, FKV_REGION_TRY_HUGE,
                                FKV_REGION_PREFAULT | FKV_REGION_TRY_HUGE };
    for (int i = 0; i < 4; i++) {
        fkv_region r;
        CHECK_EQ(fkv_region_alloc("test", BYTES, ways[i], &r), 0);
        memset(r.base, 0x5a, r.bytes);
        CHECK_EQ(in_client(hostile_client, r.fd), 0);
        for (size_t at = 0; at < r.bytes; at++) CHECK(r.base[at] == 0x5a);
        memset(r.base, 0x77, r.bytes); /* would be SIGBUS, had the file shrunk */
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
    fkv_region_free(&r); /* again is harmless */
}

TEST(prefaulted_memory_is_there) {
    fkv_region r;
    CHECK_EQ(fkv_region_alloc("test", 64 * PAGE, FKV_REGION_PREFAULT, &r), 0);
    uint8_t there[64];
    CHECK_EQ(mincore(r.base, r.bytes, there), 0);
    for (int i = 0; i < 64; i++) CHECK(there[i] & 1);
    fkv_region_free(&r);
}

static void expect_not_dumped(const void *at) {
    char flags[256];
    smaps_field(at, "VmFlags:", flags, sizeof flags);
    CHECK(strstr(flags, " dd") != NULL);
}

TEST(core_dumps_have_nothing_of_a_region_at_its_owner_and_at_a_reader) {
    static const int ways[] = { 0, FKV_REGION_PREFAULT | FKV_REGION_TRY_HUGE };
    for (int i = 0; i < 2; i++) {
        fkv_region r;
        CHECK_EQ(fkv_region_alloc("test", 2 * FKV_HUGE_PAGE, ways[i], &r), 0);
        expect_not_dumped(r.base);
        uint8_t *reader = fkv_region_map(r.fd, PAGE, r.bytes - PAGE, PROT_READ);
        CHECK(reader != MAP_FAILED);
        expect_not_dumped(reader);
        expect_not_dumped(reader + r.bytes - PAGE - 1);
        munmap(reader, r.bytes - PAGE);
        fkv_region_free(&r);
    }
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

/* What the kernel answered the last time that huge pages were asked of it: region.c's calls come by here. */
static struct {
    bool asked;
    int refusal; /* an errno; 0: it made them */
} collapse;
int madvise(void *at, size_t bytes, int advice) {
    int e = (int)syscall(SYS_madvise, at, bytes, advice);
    if (advice == COLLAPSE) {
        collapse.asked = true;
        collapse.refusal = e == 0 ? 0 : errno;
    }
    return e;
}
/* What it says while it has no huge pages left, which may be otherwise a moment later. */
static bool may_pass(int refusal) { return refusal == ENOMEM || refusal == EAGAIN || refusal == EBUSY; }

/* How much of the mapping at `base` huge pages back, as the kernel tells. */
static size_t huge_bytes_at(const void *base) {
    FILE *f = fopen("/proc/self/smaps", "r");
    CHECK(f != NULL);
    char line[512], name[64];
    size_t kb, sum = 0;
    bool here = false;
    while (fgets(line, sizeof line, f)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = from <= (uintptr_t)base && (uintptr_t)base < to;
        else if (here && sscanf(line, "%63[A-Za-z_]: %zu kB", name, &kb) == 2 &&
                 (!strcmp(name, "ShmemPmdMapped") || !strcmp(name, "Shared_Hugetlb") ||
                  !strcmp(name, "Private_Hugetlb")))
            sum += kb;
    }
    fclose(f);
    return sum << 10;
}

/* Found out without the code that is tried. */
static bool kernel_makes_huge_pages(void) {
    int fd = memfd_create("test", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, FKV_HUGE_PAGE), 0);
    uint8_t *room = mmap(NULL, 2 * FKV_HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(room != MAP_FAILED);
    uint8_t *at = room + (-(uintptr_t)room & (FKV_HUGE_PAGE - 1));
    CHECK(mmap(at, FKV_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at);
    at[0] = 0;
    bool made = madvise(at, FKV_HUGE_PAGE, COLLAPSE) == 0;
    munmap(room, 2 * FKV_HUGE_PAGE);
    close(fd);
    return made;
}

TEST(what_is_said_of_huge_pages_is_true_for_the_owner_and_for_a_reader) {
    enum { ALL = 6 << 20 };
    for (int huge = 0; huge < 2; huge++) {
        fkv_region r;
        collapse.asked = false;
        CHECK_EQ(fkv_region_alloc("test", ALL, FKV_REGION_PREFAULT | (huge ? FKV_REGION_TRY_HUGE : 0), &r), 0);
        bool asked = collapse.asked;
        int refusal = collapse.refusal;
        for (size_t i = 0; i < ALL; i++) CHECK(r.base[i] == 0);
        if (!huge) {
            CHECK(!asked);
            CHECK_EQ(r.pages, FKV_PAGES_SMALL);
        } else if (r.pages != FKV_PAGES_RESERVED) {
            CHECK(asked);
            CHECK_EQ(r.pages, refusal ? FKV_PAGES_SMALL : FKV_PAGES_TRANSPARENT);
            if (kernel_makes_huge_pages()) CHECK(refusal == 0 || may_pass(refusal));
        }
        if (r.pages != FKV_PAGES_SMALL) CHECK_EQ(huge_bytes_at(r.base), ALL);
        uint8_t *whole = fkv_region_map(r.fd, 0, ALL, PROT_READ);
        CHECK(whole != MAP_FAILED);
        size_t from = r.pages == FKV_PAGES_RESERVED ? FKV_HUGE_PAGE : FKV_HUGE_PAGE - PAGE;
        uint8_t *part = fkv_region_map(r.fd, from, ALL - from, PROT_READ);
        CHECK(part != MAP_FAILED);
        for (size_t i = 0; i < ALL; i += PAGE) r.base[i] = (uint8_t)(i >> 12);
        for (size_t i = 0; i < ALL; i += PAGE) CHECK(whole[i] == (uint8_t)(i >> 12));
        for (size_t i = from; i < ALL; i += PAGE) CHECK(part[i - from] == (uint8_t)(i >> 12));
        if (r.pages != FKV_PAGES_SMALL) {
            CHECK_EQ(huge_bytes_at(whole), ALL);
            CHECK_EQ(huge_bytes_at(part), ALL - FKV_HUGE_PAGE);
        }
        munmap(whole, ALL);
        munmap(part, ALL - from);
        fkv_region_free(&r);
    }
}

/* A process may forbid itself transparent huge pages, as a system may. Reserved ones that are free it still gets. */
static int without_transparent_pages(int unused) {
    (void)unused;
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return 1;
    fkv_region r;
    if (fkv_region_alloc("test", 4 << 20, FKV_REGION_PREFAULT | FKV_REGION_TRY_HUGE, &r) != 0) return 2;
    if (r.pages == FKV_PAGES_TRANSPARENT) return 3;
    memset(r.base, 1, r.bytes);
    bool none = r.pages == FKV_PAGES_SMALL;
    fkv_region_free(&r);
    int e = fkv_region_alloc("test", 4 << 20, FKV_REGION_NEED_HUGE, &r);
    if (none ? e >= 0 || r.base : e != 0 || r.pages != FKV_PAGES_RESERVED) return 4;
    fkv_region_free(&r);
    return 0;
}
TEST(where_there_are_no_huge_pages_a_wish_gets_small_ones_and_a_need_an_error) {
    CHECK_EQ(in_client(without_transparent_pages, -1), 0);
    fkv_region r;
    CHECK_EQ(fkv_region_alloc("test", (2 << 20) + PAGE, FKV_REGION_NEED_HUGE, &r), -EINVAL);
}

/* Reserved huge pages are asked for first and mostly refused; nobody else's mapping may suffer from that. */
static bool others_over;
static void *make_regions(void *arg) {
    (void)arg;
    while (!__atomic_load_n(&others_over, __ATOMIC_ACQUIRE)) {
        fkv_region r;
        CHECK_EQ(fkv_region_alloc("test", FKV_HUGE_PAGE, FKV_REGION_TRY_HUGE, &r), 0);
        fkv_region_free(&r);
    }
    return NULL;
}
TEST(regions_that_come_and_go_leave_the_mappings_of_other_threads_alone) {
    pthread_t maker;
    CHECK_EQ(pthread_create(&maker, NULL, make_regions, NULL), 0);
    for (int i = 0; i < 20000; i++) {
        uint8_t *mine = mmap(NULL, 3 * FKV_HUGE_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(mine != MAP_FAILED);
        /* ENOMEM where nothing is mapped */
        for (int look = 0; look < 3; look++) CHECK_EQ(msync(mine, 3 * FKV_HUGE_PAGE, MS_ASYNC), 0);
        munmap(mine, 3 * FKV_HUGE_PAGE);
    }
    __atomic_store_n(&others_over, true, __ATOMIC_RELEASE);
    pthread_join(maker, NULL);
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
        CHECK(!fkv_region_fd_is_sealed(fd, BYTES)); /* each one counts */
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
    CHECK(!fkv_region_fd_is_sealed(fd, 0)); /* closed */
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
    RUN(core_dumps_have_nothing_of_a_region_at_its_owner_and_at_a_reader);
    RUN(memory_that_cannot_be_had_is_an_error);
    RUN(huge_pages_never_make_a_region_larger);
    RUN(what_is_said_of_huge_pages_is_true_for_the_owner_and_for_a_reader);
    RUN(where_there_are_no_huge_pages_a_wish_gets_small_ones_and_a_need_an_error);
    RUN(regions_that_come_and_go_leave_the_mappings_of_other_threads_alone);
    RUN(only_memory_with_every_seal_and_enough_bytes_is_taken_from_a_stranger);
    return check_end(argc, argv);
}
