/* region.h: memory that may be registered with a fabric.
 *
 * A region is a memfd or part of one (files.h), mapped writable by its maker and then sealed with F_SEAL_FUTURE_WRITE, F_SEAL_SHRINK,
 * F_SEAL_GROW and F_SEAL_SEAL, so that no holder of the descriptor can map it writable, write it, punch holes in it
 * or change its size (ftruncate by a client would otherwise kill the owner with SIGBUS).
 * Invariant: base is page aligned and stays mapped until fkv_region_free; bytes is a multiple of the page size.
 * Growth of a table is a new region, never a larger one.
 *
 * Huge pages make a random load from a large table cheaper: one entry of the TLB covers 2 MiB instead of 4 KiB. Two
 * kinds: reserved ones (vm.nr_hugepages), and transparent ones, which the kernel makes of the memfd when it is asked to
 * (MADV_COLLAPSE, Linux 6.1, whatever shmem_enabled says but `deny`). Only a region of whole huge pages gets them, so
 * that they cost no byte more. Every mapping of it must lie as the pages do (fkv_region_map), or is served by small
 * entries again.
 */
#ifndef FARKV_BASE_REGION_H
#define FARKV_BASE_REGION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { FKV_PAGES_SMALL, FKV_PAGES_TRANSPARENT, FKV_PAGES_RESERVED, FKV_PAGES_KINDS } fkv_pages;

typedef struct fkv_file fkv_file;

typedef struct fkv_region {
    int fd;          /* memfd, close-on-exec */
    fkv_pages pages; /* what all of it is backed by */
    uint64_t offset; /* in the memfd */
    uint8_t *base;
    size_t bytes;
    fkv_file *file; /* that it shares with others; NULL: it has the memfd for itself */
} fkv_region;

/* TRY_HUGE: huge pages where the region is whole ones and the system has them, else small ones. NEED_HUGE: an error
 * else. Both put every huge page there at once; PREFAULT does so for small ones. ONLY_RESERVED, besides: an error unless
 * they are reserved ones. */
enum { FKV_REGION_PREFAULT = 1, FKV_REGION_TRY_HUGE = 2, FKV_REGION_NEED_HUGE = 4, FKV_REGION_ONLY_RESERVED = 8 };
enum { FKV_HUGE_PAGE = 2 << 20 };

/* Makes, maps, optionally prefaults, and seals. Returns 0 or a negative errno. Thread-safe. */
int fkv_region_alloc(const char *name, size_t bytes, int flags, fkv_region *out);
void fkv_region_free(fkv_region *r); /* one that has a memfd for itself */
/* Puts pages there as the flags say, transparent huge ones or small ones, and notes which. 0 or a negative errno. */
int fkv_region_fill(fkv_region *r, int flags);
/* Maps part of a memfd so that huge pages of it can be mapped whole, and core dumps have none of it. MAP_FAILED and
 * errno as mmap. */
void *fkv_region_map(int fd, uint64_t offset, size_t bytes, int protection);
/* True when fd carries all four seals and is at least `bytes` long: the check before mapping a stranger's memory. */
bool fkv_region_fd_is_sealed(int fd, size_t bytes);

#endif
