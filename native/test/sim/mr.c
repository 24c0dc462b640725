/* mr.c: registered memory of the sim provider. Keys and addresses come from the world's seed, not from this process. */
#include <errno.h>
#include <stdlib.h>
#include "private.h"

static sim_key new_key(sim_world *w, size_t bytes) {
    if (w->reuse_keys && w->old_count > 0) {
        w->counts.keys_reused++;
        return w->old_keys[--w->old_count];
    }
    sim_key k = { .rkey = sim_random(w), .addr = w->next_addr };
    w->next_addr += (bytes + 0xfffff) & ~(uint64_t)0xfffff;
    return k;
}

static void keep_key(sim_world *w, sim_key k) {
    if (w->old_count == w->old_room) {
        w->old_room = w->old_room ? w->old_room * 2 : 64;
        w->old_keys = realloc(w->old_keys, w->old_room * sizeof *w->old_keys);
        if (!w->old_keys) abort();
    }
    w->old_keys[w->old_count++] = k;
}

int sim_reg(fab_domain *domain, const fkv_region *r, uint32_t tenant, fab_mr **out) {
    sim_domain *d = (sim_domain *)domain;
    sim_mr *m = calloc(1, sizeof *m);
    if (!m) return -ENOMEM;
    sim_lock(d->world);
    if (d->lost) {
        sim_unlock(d->world);
        free(m);
        return -ENODEV;
    }
    sim_key k = new_key(d->world, r->bytes);
    m->domain = d;
    m->base = r->base;
    m->bytes = r->bytes;
    m->tenant = tenant;
    m->rkey = m->head.rkey = k.rkey;
    m->addr = m->head.addr = k.addr;
    list_push(&d->world->mrs, &m->link);
    sim_say(d->world, "register %zu bytes at %llx", r->bytes, (unsigned long long)k.addr);
    sim_unlock(d->world);
    *out = &m->head;
    return 0;
}

int sim_reg_local(fab_domain *d, void *base, size_t bytes, fab_mr **out) {
    (void)d, (void)base, (void)bytes; /* fabric.c keeps them in the head */
    sim_mr *m = calloc(1, sizeof *m);
    if (!m) return -ENOMEM;
    *out = &m->head;
    return 0;
}

void sim_dereg(fab_mr *mr) {
    sim_mr *m = (sim_mr *)mr;
    if (!mr->local) {
        sim_world *w = m->domain->world;
        sim_lock(w);
        list_remove(&m->link);
        keep_key(w, (sim_key){ m->rkey, m->addr });
        sim_say(w, "deregister %llx", (unsigned long long)m->addr);
        sim_unlock(w);
    }
    free(m);
}

const uint8_t *sim_find(sim_domain *d, uint64_t rkey, uint64_t addr, uint64_t bytes, uint32_t tenant) {
    const sim_mr *m;
    for (m = LIST_FIRST(&d->world->mrs, sim_mr, link); m; m = LIST_AFTER(&d->world->mrs, m, sim_mr, link)) {
        if (m->domain != d || m->rkey != rkey || m->tenant != tenant || addr < m->addr) continue;
        uint64_t at = addr - m->addr;
        if (at <= m->bytes && bytes <= m->bytes - at) return m->base + at;
    }
    return NULL;
}
