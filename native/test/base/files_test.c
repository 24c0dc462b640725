/* files_test.c: regions that share memory files: where they lie, that they are zeroes, and when pages go back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../check.h"
#include "../../base/files.h"

enum { KIB = 1 << 10, MIB = 1 << 20, PARTS = 4 };

static uint64_t pages_of(int fd) {
    struct stat s;
    CHECK(fstat(fd, &s) == 0);
    return (uint64_t)s.st_blocks * 512;
}

static fkv_region take(fkv_files *f, size_t bytes, uint64_t fresh_wanted) {
    fkv_region r;
    uint64_t fresh;
    CHECK_EQ(fkv_files_take(f, bytes, 0, &r, &fresh), 0);
    CHECK_EQ(fresh, fresh_wanted);
    CHECK_EQ(r.bytes, bytes);
    for (size_t i = 0; i < bytes; i++) CHECK_EQ(r.base[i], 0);
    memset(r.base, 0xab, bytes);
    return r;
}

static void regions_share_a_file_that_nobody_else_can_write_or_resize(void) {
    fkv_files *f = fkv_files_make("farkv-test", PARTS, 0);
    fkv_region r[PARTS + 1];
    for (int i = 0; i <= PARTS; i++) r[i] = take(f, 64 * KIB, 64 * KIB);
    for (int i = 1; i < PARTS; i++) {
        CHECK_EQ(r[i].fd, r[0].fd);
        CHECK_EQ(r[i].offset, (uint64_t)i * 64 * KIB);
    }
    CHECK(r[PARTS].fd != r[0].fd);
    CHECK(fkv_region_fd_is_sealed(r[0].fd, PARTS * 64 * KIB));
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r[0].fd, 0) == MAP_FAILED);
    CHECK_EQ(ftruncate(r[0].fd, 4096), -1);
    CHECK_EQ(pages_of(r[PARTS].fd), 64 * KIB); /* what is not carved has no pages */
    for (int i = 0; i <= PARTS; i++) fkv_files_give(&r[i]);
    fkv_files_leave(f);
}

static void pages_go_back_with_the_last_region_of_a_file(void) {
    fkv_files *f = fkv_files_make("farkv-test", PARTS, 0);
    fkv_region a = take(f, 64 * KIB, 64 * KIB), b = take(f, 32 * KIB, 32 * KIB);
    int fd = a.fd;
    CHECK_EQ(fkv_files_give(&a), 0);
    CHECK_EQ(fkv_files_holes(f), 64 * KIB);
    CHECK_EQ(fkv_file_carved(b.file), 96 * KIB);
    CHECK_EQ(fkv_files_give(&b), 96 * KIB);
    CHECK_EQ(fkv_files_holes(f), 0);
    struct stat s;
    CHECK(fstat(fd, &s) == -1 && errno == EBADF);
    fkv_files_leave(f);
}

static void holes_are_used_again_as_zeroes_and_grow_together(void) {
    fkv_files *f = fkv_files_make("farkv-test", PARTS, 0);
    fkv_region r[PARTS];
    for (int i = 0; i < PARTS; i++) r[i] = take(f, 64 * KIB, 64 * KIB);
    int fd = r[0].fd;
    fkv_files_give(&r[0]);
    fkv_files_give(&r[2]);
    CHECK_EQ(fkv_files_lack(f, 128 * KIB), 128 * KIB);
    fkv_files_give(&r[1]);
    CHECK_EQ(fkv_files_lack(f, 128 * KIB), 0);
    fkv_region large = take(f, 128 * KIB, 0), small = take(f, 64 * KIB, 0);
    CHECK(large.fd == fd && large.offset == 0);
    CHECK(small.fd == fd && small.offset == 128 * KIB);
    CHECK_EQ(pages_of(fd), 256 * KIB);
    CHECK_EQ(fkv_files_give(&large) + fkv_files_give(&small), 0);
    CHECK_EQ(fkv_files_give(&r[3]), 256 * KIB);
    fkv_files_leave(f);
}

static void what_is_new_goes_into_the_fullest_file_and_into_none_that_is_closed(void) {
    fkv_files *f = fkv_files_make("farkv-test", PARTS, 0);
    fkv_region r[2 * PARTS];
    for (int i = 0; i < 2 * PARTS; i++) r[i] = take(f, 64 * KIB, 64 * KIB);
    int full = r[0].fd, empty = r[PARTS].fd;
    for (int i = PARTS; i < 2 * PARTS - 1; i++) fkv_files_give(&r[i]);
    fkv_files_give(&r[1]);
    fkv_region again = take(f, 64 * KIB, 0);
    CHECK_EQ(again.fd, full);
    fkv_file_close(r[2 * PARTS - 1].file, true);
    fkv_region other = take(f, 64 * KIB, 64 * KIB);
    CHECK(other.fd != empty && other.fd != full);
    CHECK_EQ(fkv_files_give(&r[2 * PARTS - 1]), PARTS * 64 * KIB);
    fkv_files_give(&again);
    fkv_files_give(&other);
    for (int i = 0; i < PARTS; i++)
        if (i != 1) fkv_files_give(&r[i]);
    fkv_files_leave(f);
}

static void after_a_renewal_nothing_new_comes_into_files_of_before(void) {
    fkv_files *f = fkv_files_make("farkv-test", PARTS, 0);
    fkv_region a = take(f, 64 * KIB, 64 * KIB), b = take(f, 64 * KIB, 64 * KIB);
    int fd = a.fd;
    fkv_files_give(&a);
    fkv_files_renew(f);
    CHECK_EQ(fkv_files_lack(f, 64 * KIB), 64 * KIB);
    fkv_region c = take(f, 64 * KIB, 64 * KIB), d = take(f, 64 * KIB, 64 * KIB);
    CHECK(c.fd != fd && d.fd == c.fd);
    CHECK_EQ(fkv_files_give(&b), 128 * KIB);
    fkv_files_give(&c);
    fkv_files_give(&d);
    fkv_files_leave(f);
}

static void the_last_descriptors_are_left_to_others(void) {
    struct rlimit before, few;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    few = before;
    few.rlim_cur = 64;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    fkv_files *f = fkv_files_make("farkv-test", 1, 0);
    fkv_region r[64], none;
    uint64_t fresh;
    int n = 0, e;
    while ((e = fkv_files_take(f, 4096, 0, &r[n], &fresh)) == 0) n++;
    CHECK_EQ(e, -EMFILE);
    CHECK_EQ(fresh, 0);
    CHECK(n > 32);
    for (int i = 0; i < 7; i++) CHECK((r[n + i].fd = dup(0)) >= 0); /* an eighth of 64, but for one */
    for (int i = 0; i < 7; i++) close(r[n + i].fd);
    CHECK_EQ(fkv_files_take(f, 4096, 0, &none, &fresh), -EMFILE);
    while (n > 0) fkv_files_give(&r[--n]);
    fkv_files_leave(f);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

static void an_owner_may_leave_before_its_regions_are_given_back(void) {
    fkv_files *f = fkv_files_make("farkv-test", PARTS, MIB);
    fkv_region r = take(f, 64 * KIB, 64 * KIB);
    fkv_files_leave(f);
    CHECK_EQ(fkv_files_give(&r), 64 * KIB);
}

int main(int argc, char **argv) {
    RUN(regions_share_a_file_that_nobody_else_can_write_or_resize);
    RUN(pages_go_back_with_the_last_region_of_a_file);
    RUN(holes_are_used_again_as_zeroes_and_grow_together);
    RUN(what_is_new_goes_into_the_fullest_file_and_into_none_that_is_closed);
    RUN(after_a_renewal_nothing_new_comes_into_files_of_before);
    RUN(the_last_descriptors_are_left_to_others);
    RUN(an_owner_may_leave_before_its_regions_are_given_back);
    return check_end(argc, argv);
}
