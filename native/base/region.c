/* region.c: makes sealed memory; region.h says what the seals are for.
 *
 * Order matters: the maker maps the memory writable first and seals it afterwards, because F_SEAL_FUTURE_WRITE refuses
 * every later writable mapping, write(2) and hole, but leaves the mapping that is already there.
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
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static const int SEALS = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
enum { COLLAPSE_TRIES = 3, PIECE = FKV_HUGE_PAGE / 8 };

static int make_fd(const char *name, unsigned flags) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | flags);
    /* Linux before 6.3 */
    if (fd < 0 && errno == EINVAL) fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    return fd;
}

/* Backs every page now, so that no later store waits for a page fault, and a lack of memory is an error here instead of
 * a signal there. */
static int prefault(int fd, uint64_t offset, uint8_t *base, size_t bytes, size_t page) {
    size_t done = 0; /* piece by piece: meanwhile no other thread of the process can map or unmap anything */
    while (done < bytes && madvise(base + done, bytes - done < PIECE ? bytes - done : PIECE, MADV_POPULATE_WRITE) == 0)
        done += PIECE;
    if (done >= bytes) return 0;
    if (errno != EINVAL) return errno == EFAULT ? -ENOMEM : -errno;
    if (fallocate(fd, 0, (off_t)offset, (off_t)bytes) != 0)
        return errno == ENOSPC ? -ENOMEM : -errno; /* Linux before 5.14 */
    for (size_t at = 0; at < bytes; at += page) *(volatile uint8_t *)(base + at) = 0;
    return 0;
}

/* A mapping that fails with MAP_FIXED may already have taken away what was there, and another thread's mapping may have
 * come into the hole. So what may fail is tried without it, and what was reserved is not unmapped after it has failed:
 * its ends are ours, not the part between. */
static void *map_aligned(int fd, uint64_t offset, size_t bytes, int protection) {
    uint8_t *plain = mmap(NULL, bytes, protection, MAP_SHARED, fd, (off_t)offset);
    /* address and offset agree below a huge page */
    bool lies_well = (((uintptr_t)plain - offset) & (FKV_HUGE_PAGE - 1)) == 0;
    if (plain == MAP_FAILED || bytes < FKV_HUGE_PAGE || bytes > SIZE_MAX / 2 || lies_well) return plain;
    size_t room = bytes + FKV_HUGE_PAGE;
    uint8_t *all = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return plain;
    size_t before = (size_t)(offset - (uintptr_t)all) & (FKV_HUGE_PAGE - 1);
    void *at = mmap(all + before, bytes, protection, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
    if (before > 0) munmap(all, before);
    munmap(all + before + bytes, room - before - bytes);
    if (at == MAP_FAILED) return plain;
    munmap(plain, bytes);
    return at;
}

/* Values do not belong into core dumps. */
void *fkv_region_map(int fd, uint64_t offset, size_t bytes, int protection) {
    void *at = map_aligned(fd, offset, bytes, protection);
    if (at != MAP_FAILED) madvise(at, bytes, MADV_DONTDUMP); /* mutation: base/core-dumps */
    return at;
}

/* One page of each huge one is touched, since the kernel does not collapse what is quite empty; the others come as
 * zeroes, so this costs less than prefaulting small pages. Nobody else knows the memory yet, so nobody waits for it.
 * One call for all: each waits until every CPU has emptied its lists of new pages, which takes milliseconds where they
 * are busy. */
static int collapse(int fd, uint64_t offset, uint8_t *base, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int e = 0, tries = COLLAPSE_TRIES;
    madvise(base, bytes, MADV_HUGEPAGE); /* where shmem_enabled says `advise` the touch is enough */
    for (size_t at = 0; at < bytes && e == 0; at += FKV_HUGE_PAGE) e = prefault(fd, offset + at, base + at, page, page);
    if (e) return e;
    do e = madvise(base, bytes, MADV_COLLAPSE) == 0 ? 0 : -errno;
    while (e == -EAGAIN && --tries > 0);
    return e;
}

/* Kernels before 5.13 seal reserved huge pages, and let them be mapped writable all the same. */
static bool seals_hold(int fd, size_t bytes) {
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) return true;
    munmap(map, bytes);
    return false;
}

static int fill(const fkv_region *r, int flags, fkv_pages *pages) {
    if (*pages == FKV_PAGES_TRANSPARENT) {
        int e = collapse(r->fd, r->offset, r->base, r->bytes);
        if (e == 0) return 0;
        if (flags & FKV_REGION_NEED_HUGE) return e;
        *pages = FKV_PAGES_SMALL; /* some of it may be huge: it is not said of it */
    }
    bool whole = (flags & FKV_REGION_PREFAULT) || *pages == FKV_PAGES_RESERVED;
    size_t page = *pages == FKV_PAGES_RESERVED ? FKV_HUGE_PAGE : (size_t)sysconf(_SC_PAGESIZE);
    return whole ? prefault(r->fd, r->offset, r->base, r->bytes, page) : 0;
}

int fkv_region_fill(fkv_region *r, int flags) {
    bool wanted = (flags & (FKV_REGION_TRY_HUGE | FKV_REGION_NEED_HUGE)) && r->bytes % FKV_HUGE_PAGE == 0;
    r->pages = wanted ? FKV_PAGES_TRANSPARENT : FKV_PAGES_SMALL;
    return fill(r, flags, &r->pages);
}

static int make(const char *name, size_t bytes, int flags, fkv_pages pages, fkv_region *out) {
    int fd = make_fd(name, pages == FKV_PAGES_RESERVED ? MFD_HUGETLB | MFD_HUGE_2MB : 0);
    if (fd < 0) return -errno;
    int e = ftruncate(fd, (off_t)bytes) == 0 ? 0 : -errno;
    void *base = MAP_FAILED;
    if (e == 0) {
        base = fkv_region_map(fd, 0, bytes, PROT_READ | PROT_WRITE);
        if (base == MAP_FAILED) e = -errno;
    }
    if (e == 0) e = fill(&(fkv_region){ .fd = fd, .base = base, .bytes = bytes }, flags, &pages);
    if (e == 0 && fcntl(fd, F_ADD_SEALS, SEALS) != 0) e = -errno; /* mutation: base/no-seal */
    if (e == 0 && pages == FKV_PAGES_RESERVED && !seals_hold(fd, bytes)) e = -EOPNOTSUPP;
    if (e) {
        if (base != MAP_FAILED) munmap(base, bytes);
        close(fd);
        return e;
    }
    *out = (fkv_region){ .fd = fd, .base = base, .bytes = bytes, .pages = pages };
    return 0;
}

int fkv_region_alloc(const char *name, size_t bytes, int flags, fkv_region *out) {
    *out = (fkv_region){ .fd = -1 };
    if (bytes == 0) return -EINVAL;
    if (bytes > SIZE_MAX / 2) return -ENOMEM;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + page - 1) & ~(page - 1);
    bool wanted = flags & (FKV_REGION_TRY_HUGE | FKV_REGION_NEED_HUGE);
    if (bytes % FKV_HUGE_PAGE != 0) { /* huge pages would make the region larger than was asked */
        if (flags & FKV_REGION_NEED_HUGE) return -EINVAL;
        wanted = false;
    }
    if (wanted && make(name, bytes, flags, FKV_PAGES_RESERVED, out) == 0) return 0;
    if (flags & FKV_REGION_ONLY_RESERVED) return -ENOMEM;
    return make(name, bytes, flags, wanted ? FKV_PAGES_TRANSPARENT : FKV_PAGES_SMALL, out);
}

void fkv_region_free(fkv_region *r) {
    if (r->base) munmap(r->base, r->bytes);
    if (r->base && r->fd >= 0) close(r->fd);
    *r = (fkv_region){ .fd = -1 };
}

bool fkv_region_fd_is_sealed(int fd, size_t bytes) {
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat s;
    return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &s) == 0 && s.st_size >= 0 &&
           (uint64_t)s.st_size >= bytes;
}
