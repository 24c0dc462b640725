/* mr.c: registered memory of the tcp provider: rkeys, bounds, tenants, and the copy out of a region.
 *
 * Invariant: bytes of a region are touched only with mr_lock held for reading, by at most TCP_SCRATCH of them at a
 * time. So tcp_dereg, which holds it for writing, returns when no READ touches the region any more, and waits only for
 * short copies. What a peer is told of a region is a random rkey and a random page address, not where it lies in this
 * process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../../base/hash.h"
#include "tcp.h"

int tcp_mr_init(tcp_domain *d) {
    list_init(&d->groups);
    d->mr_room = 64;
    d->mrs = calloc(d->mr_room, sizeof *d->mrs);
    if (!d->mrs) return -ENOMEM;
    /* Responders take the lock for reading all the time; without this kind a registration might never get its turn.
     * musl has no kinds. */
    pthread_rwlockattr_t a;
    pthread_rwlockattr_init(&a);
#ifdef __GLIBC__
    pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
    pthread_rwlock_init(&d->mr_lock, &a);
    pthread_rwlockattr_destroy(&a);
    return 0;
}

void tcp_mr_end(tcp_domain *d) {
    pthread_rwlock_destroy(&d->mr_lock);
    free(d->mrs);
}

/* rkeys are random: their low bits are as good as any hash of them. */
static size_t home_of(const tcp_domain *d, uint64_t rkey) { return rkey & (d->mr_room - 1); }

static size_t place_of(const tcp_domain *d, uint64_t rkey) {
    size_t i = home_of(d, rkey);
    while (d->mrs[i] && d->mrs[i]->rkey != rkey) i = (i + 1) & (d->mr_room - 1);
    return i;
}

static int grow(tcp_domain *d) {
    tcp_mr **old = d->mrs;
    size_t old_room = d->mr_room;
    d->mrs = calloc(old_room * 2, sizeof *d->mrs);
    if (!d->mrs) {
        d->mrs = old;
        return -ENOMEM;
    }
    d->mr_room = old_room * 2;
    for (size_t i = 0; i < old_room; i++)
        if (old[i]) d->mrs[place_of(d, old[i]->rkey)] = old[i];
    free(old);
    return 0;
}

int tcp_reg(fab_domain *domain, const fkv_region *r, uint32_t tenant, fab_mr **out) {
    tcp_domain *d = (tcp_domain *)domain;
    tcp_mr *m = calloc(1, sizeof *m);
    if (!m) return -ENOMEM;
    m->base = r->base;
    m->bytes = r->bytes;
    m->tenant = tenant;
    pthread_rwlock_wrlock(&d->mr_lock);
    int e = d->mr_count * 2 >= d->mr_room ? grow(d) : 0;
    if (e == 0) {
        do fkv_random(&m->rkey, sizeof m->rkey);
        while (m->rkey == 0 || d->mrs[place_of(d, m->rkey)]);
        fkv_random(&m->addr, sizeof m->addr);
        m->addr = (m->addr & 0x00003ffffffff000u) | 0x0000400000000000u;
        d->mrs[place_of(d, m->rkey)] = m;
        d->mr_count++;
    }
    pthread_rwlock_unlock(&d->mr_lock);
    if (e) {
        free(m);
        return e;
    }
    m->head.rkey = m->rkey;
    m->head.addr = m->addr;
    *out = &m->head;
    return 0;
}

int tcp_reg_local(fab_domain *d, void *base, size_t bytes, fab_mr **out) {
    (void)d, (void)base, (void)bytes; /* fabric.c keeps them in the head, and fab_local_ok looks there */
    tcp_mr *m = calloc(1, sizeof *m);
    if (!m) return -ENOMEM;
    *out = &m->head;
    return 0;
}

static void remove_from(tcp_domain *d, uint64_t rkey) {
    size_t mask = d->mr_room - 1, hole = place_of(d, rkey);
    d->mrs[hole] = NULL;
    d->mr_count--;
    /* Backward shift: what stands behind the hole moves into it unless that would put it before its home. */
    for (size_t i = (hole + 1) & mask; d->mrs[i]; i = (i + 1) & mask) {
        size_t home = home_of(d, d->mrs[i]->rkey);
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        d->mrs[hole] = d->mrs[i];
        d->mrs[i] = NULL;
        hole = i;
    }
}

void tcp_dereg(fab_mr *mr) {
    tcp_mr *m = (tcp_mr *)mr;
    tcp_domain *d = (tcp_domain *)mr->domain;
    if (!mr->local) {
        pthread_rwlock_wrlock(&d->mr_lock); /* mutation: tcp/dereg-without-lock */
        remove_from(d, m->rkey);
        tcp_unname(m);
        pthread_rwlock_unlock(&d->mr_lock);
    }
    free(m);
}

const tcp_mr *tcp_mr_find(const tcp_domain *d, uint64_t rkey, uint64_t addr, uint64_t bytes, uint32_t tenant,
                          const uint8_t **where) {
    /* mutation: tcp/any-rkey */
    const tcp_mr *m = d->mrs[place_of(d, rkey)];
    if (!m || m->tenant != tenant || addr < m->addr) return NULL; /* mutation: tcp/tenant */
    uint64_t at = addr - m->addr;
    if (at > m->bytes || bytes > m->bytes - at) return NULL; /* mutation: tcp/bounds */
    *where = m->base + at;
    return m;
}
