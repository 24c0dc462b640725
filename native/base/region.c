/* region.c: makes sealed memory; region.h says what the seals are for.
 *
 * Order matters: the maker maps the memory writable first and seals it afterwards, because F_SEAL_FUTURE_WRITE refuses every
 * later writable mapping, write(2) and hole, but leaves the mapping that is already there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "region.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21U << 26)
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static const int SEALS = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
static const size_t HUGE_BYTES = 2u << 20;

static int make_fd(const char *name, unsigned flags) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | flags);
    if (fd < 0 && errno == EINVAL) fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);   /* Linux before 6.3 */
    return fd;
}

/* Backs every page now, so that no later store waits for a page fault, and a lack of memory is an error here instead of a
 * signal there. */
static int prefault(int fd, uint8_t *base, size_t bytes, size_t page) {
    if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return 0;
    if (errno != EINVAL) return errno == EFAULT ? -ENOMEM : -errno;
    if (fallocate(fd, 0, 0, (off_t)bytes) != 0) return errno == ENOSPC ? -ENOMEM : -errno;   /* Linux before 5.14 */
    for (size_t at = 0; at < bytes; at += page) *(volatile uint8_t *)(base + at) = 0;
    return 0;
}

static int make(const char *name, size_t bytes, int flags, bool huge, fkv_region *out) {
    size_t page = huge ? HUGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
    if (bytes > SIZE_MAX / 2) return -ENOMEM;
    bytes = (bytes + page - 1) & ~(page - 1);
    int fd = make_fd(name, huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0);
    if (fd < 0) return -errno;
    int e = ftruncate(fd, (off_t)bytes) == 0 ? 0 : -errno;
    void *base = MAP_FAILED;
    if (e == 0) {
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED) e = -errno;
    }
    if (e == 0 && (flags & FKV_REGION_TRY_HUGE) && !huge) madvise(base, bytes, MADV_HUGEPAGE);   /* a wish: may be refused */
    if (e == 0 && (flags & FKV_REGION_PREFAULT)) e = prefault(fd, base, bytes, page);
    if (e == 0 && fcntl(fd, F_ADD_SEALS, SEALS) != 0) e = -errno;
    if (e) {
        if (base != MAP_FAILED) munmap(base, bytes);
        close(fd);
        return e;
    }
    *out = (fkv_region){.fd = fd, .base = base, .bytes = bytes, .huge = huge};
    return 0;
}

int fkv_region_alloc(const char *name, size_t bytes, int flags, fkv_region *out) {
    *out = (fkv_region){.fd = -1};
    if (bytes == 0) return -EINVAL;
    bool whole = bytes % HUGE_BYTES == 0;   /* else huge pages would make the region larger than was asked */
    if ((flags & FKV_REGION_TRY_HUGE) && whole && make(name, bytes, flags, true, out) == 0) return 0;
    return make(name, bytes, flags, false, out);
}

void fkv_region_free(fkv_region *r) {
    if (r->base) munmap(r->base, r->bytes);
    if (r->base && r->fd >= 0) close(r->fd);
    *r = (fkv_region){.fd = -1};
}

bool fkv_region_fd_is_sealed(int fd, size_t bytes) {
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat s;
    return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &s) == 0 && s.st_size >= 0 && (uint64_t)s.st_size >= bytes;
}
