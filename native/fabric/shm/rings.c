/* rings.c: making and mapping what the two ends of a connection share: the memory of the rings and the bell; and this
 * end's private receive buffers.
 *
 * The acceptor makes a memfd of fixed size (sealed against shrinking, growing and further seals, so that neither end
 * can make the other touch missing pages) and the bell. The bell is a pair of stream sockets and not an eventfd: the
 * peer shares an eventfd's file description, could make it blocking and full, and a write from here would then never
 * return; a send to a socket says MSG_DONTWAIT each time.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shm.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { POOL_BYTES = 4 << 20, BUFFERS_MIN = 16, BUFFERS_MAX = 256, LINE = 64 };
static const int SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

uint32_t shm_ring_bytes_for(uint32_t max_message) {
    uint32_t n = SHM_RING_MIN;
    while (n < 8 * max_message) n *= 2;
    return n;
}

/* Receive buffers, the queue of READs, and the free list, in one mapping whose pages come as they are used. */
static int make_pool(shm_conn *c) {
    uint32_t n = POOL_BYTES / c->max_message;
    c->buffers = n < BUFFERS_MIN ? BUFFERS_MIN : n > BUFFERS_MAX ? BUFFERS_MAX : n;
    /* An odd number of lines, so that the first lines of the buffers do not all fall into the same cache sets. */
    c->stride = ((c->max_message + LINE - 1) / LINE | 1) * LINE;
    size_t buffers = (size_t)c->buffers * c->stride, reads = SHM_READS * sizeof(shm_read);
    c->pool_bytes = buffers + reads + c->buffers * (sizeof *c->free + sizeof *c->held);
    c->pool = mmap(NULL, c->pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (c->pool == MAP_FAILED) {
        c->pool = NULL;
        return -errno;
    }
    c->reads = (shm_read *)(void *)(c->pool + buffers);
    c->free = (uint16_t *)(void *)(c->pool + buffers + reads);
    c->held = (uint8_t *)(c->free + c->buffers);
    for (c->free_count = 0; c->free_count < c->buffers; c->free_count++)
        c->free[c->free_count] = (uint16_t)c->free_count;
    return 0;
}

static int map(shm_conn *c, int fd) {
    size_t bytes = shm_shared_bytes(c->ring_bytes);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return -errno;
    c->shared = p;
    uint8_t *rings = (uint8_t *)p + sizeof(shm_shared);
    c->out = (shm_out){ .ring = rings + (size_t)c->side * c->ring_bytes,
                        .lane = &c->shared->lane[c->side],
                        .size = c->ring_bytes };
    c->in = (shm_in){ .ring = rings + (size_t)!c->side * c->ring_bytes,
                      .lane = &c->shared->lane[!c->side],
                      .size = c->ring_bytes,
                      .max_message = c->max_message };
    return make_pool(c);
}

int shm_rings_make(shm_conn *c) {
    int fd = memfd_create("farkv-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    /* Linux before 6.3 */
    if (fd < 0 && errno == EINVAL) fd = memfd_create("farkv-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -errno;
    c->link.rings_fd = fd;
    int e = ftruncate(fd, (off_t)shm_shared_bytes(c->ring_bytes)) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0
                ? -errno
                : map(c, fd);
    if (e) return e;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) return -errno;
    c->bell = pair[0];
    c->link.peer_bell_fd = pair[1];
    return 0;
}

static bool is_bell(int fd) {
    int domain, type;
    socklen_t n = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM;
}

int shm_rings_map(shm_conn *c, int rings_fd, int bell_fd) {
    struct stat s;
    int seals = fcntl(rings_fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))) return -EPROTO;
    if (fstat(rings_fd, &s) != 0 || (uint64_t)s.st_size != shm_shared_bytes(c->ring_bytes) || !is_bell(bell_fd))
        return -EPROTO;
    int e = map(c, rings_fd);
    if (e == 0) c->bell = bell_fd;
    return e;
}

/* In the agent rather than at the first SENDs. The marks of revoked regions come as they are used: few connections need
 * many. */
void shm_rings_populate(shm_conn *c) {
    madvise(c->shared, offsetof(shm_shared, revoked), MADV_POPULATE_WRITE);
    madvise(c->shared + 1, 2 * (size_t)c->ring_bytes, MADV_POPULATE_WRITE);
}

void shm_rings_free(shm_conn *c) {
    if (c->shared) munmap(c->shared, shm_shared_bytes(c->ring_bytes));
    if (c->pool) munmap(c->pool, c->pool_bytes);
    if (c->bell >= 0) close(c->bell);
    if (c->link.rings_fd >= 0) close(c->link.rings_fd);
    if (c->link.peer_bell_fd >= 0) close(c->link.peer_bell_fd);
}
