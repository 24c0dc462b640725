/* mr.c: registered memory of the shm provider. A region is known by its rkey, 64 random bits; peers that attach it get
 * its descriptor and map it read-only.
 *
 * A peer's mapping outlives deregistration, so fab_dereg also sets the peer's `revoked` flag of each attachment in the
 * memory of the connection: an honest peer's READs fail from then on, as they do over the other providers.
 */
#include <errno.h>
#include <stdlib.h>
#include "../../base/hash.h"
#include "shm.h"

static shm_mr **bucket(shm_domain *d, uint64_t rkey) { return &d->mrs[rkey % SHM_MR_BUCKETS]; }

shm_mr *shm_mr_find(shm_domain *d, uint64_t rkey) {
    shm_mr *m = *bucket(d, rkey);
    while (m && m->head.rkey != rkey) m = m->next;
    return m;
}

int shm_reg(fab_domain *base, const fkv_region *r, uint32_t tenant, fab_mr **out) {
    shm_domain *d = (shm_domain *)base;
    if (!fkv_region_fd_is_sealed(r->fd, r->offset + r->bytes)) return -EINVAL;
    shm_mr *m = calloc(1, sizeof *m);
    if (!m) return -ENOMEM;
    m->fd = r->fd;
    m->offset = r->offset;
    m->bytes = r->bytes;
    m->tenant = tenant;
    /* The address peers use has nothing to do with where the region lies here: that is nobody's business. */
    uint32_t page;
    fkv_random(&page, sizeof page);
    m->head.addr = ((uint64_t)page + 1) << 12;
    pthread_mutex_lock(&d->lock);
    do fkv_random(&m->head.rkey, sizeof m->head.rkey);
    while (shm_mr_find(d, m->head.rkey));
    m->next = *bucket(d, m->head.rkey);
    *bucket(d, m->head.rkey) = m;
    pthread_mutex_unlock(&d->lock);
    *out = &m->head;
    return 0;
}

int shm_reg_local(fab_domain *d, void *base, size_t bytes, fab_mr **out) {
    (void)d, (void)base, (void)bytes;
    shm_mr *m = calloc(1, sizeof *m);
    if (!m) return -ENOMEM;
    *out = &m->head;
    return 0;
}

void shm_dereg(fab_mr *base) {
    shm_mr *m = (shm_mr *)base;
    if (!base->local) {
        shm_domain *d = (shm_domain *)base->domain;
        pthread_mutex_lock(&d->lock);
        shm_mr **at = bucket(d, base->rkey);
        while (*at != m) at = &(*at)->next;
        *at = m->next;
        for (shm_export *e = m->exports; e; e = e->next) {
            atomic_store_explicit(&e->conn->shared->revoked[e->conn->side][e->slot], 1, memory_order_release);
            e->mr = NULL;
        }
        pthread_mutex_unlock(&d->lock);
    }
    free(m);
}
