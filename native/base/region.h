/* region.h: memory that may be registered with a fabric.
 *
 * A region is one memfd, mapped writable by its maker and then sealed with F_SEAL_FUTURE_WRITE, F_SEAL_SHRINK,
 * F_SEAL_GROW and F_SEAL_SEAL, so that no holder of the descriptor can map it writable, write it, punch holes in it
 * or change its size (ftruncate by a client would otherwise kill the owner with SIGBUS).
 * Invariant: base is page aligned and stays mapped until fkv_region_free; bytes is a multiple of the page size.
 * Growth of a table is a new region, never a larger one.
 */
#ifndef FARKV_BASE_REGION_H
#define FARKV_BASE_REGION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fkv_region {
    int fd;          /* memfd, close-on-exec */
    uint8_t *base;
    size_t bytes;
    bool huge;       /* backed by huge pages */
} fkv_region;

enum { FKV_REGION_PREFAULT = 1, FKV_REGION_TRY_HUGE = 2 };

/* Makes, maps, optionally prefaults, and seals. Returns 0 or a negative errno. Thread-safe. */
int fkv_region_alloc(const char *name, size_t bytes, int flags, fkv_region *out);
void fkv_region_free(fkv_region *r);
/* True when fd carries all four seals and is at least `bytes` long: the check before mapping a stranger's memory. */
bool fkv_region_fd_is_sealed(int fd, size_t bytes);

#endif
