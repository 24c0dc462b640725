/* rendezvous.c: the pool that rendezvous.h describes. A quarter of the bound may lie idle, ready for the next value. */
#include "rendezvous.h"
#include <assert.h>
#include <stdlib.h>
#include "../../wire/wire.h"

enum { SMALLEST = 15, CLASSES = 13 }; /* 32 KiB to 128 MiB */

struct rendezvous_pool {
    uint64_t max_bytes, bytes, idle_bytes;
    rendezvous *idle[CLASSES];
};

static uint32_t class_of(size_t bytes) {
    uint32_t c = 0;
    while (c < CLASSES - 1 && ((size_t)1 << (SMALLEST + c)) < bytes) c++;
    return c;
}
static_assert((uint64_t)1 << (SMALLEST + CLASSES - 1) <= FKV_RENDEZVOUS_REGION_MAX, "an owner takes the largest");

rendezvous_pool *rendezvous_pool_create(uint64_t max_bytes) {
    rendezvous_pool *p = calloc(1, sizeof *p);
    if (p) p->max_bytes = max_bytes;
    return p;
}

static void destroy(rendezvous_pool *p, rendezvous *r) {
    for (size_t i = 0; i < sizeof r->registered / sizeof *r->registered; i++) fab_dereg(r->registered[i]);
    p->bytes -= r->region.bytes;
    fkv_region_free(&r->region);
    free(r);
}

static void drop_idle(rendezvous_pool *p) {
    for (uint32_t c = 0; c < CLASSES; c++) {
        while (p->idle[c]) {
            rendezvous *r = p->idle[c];
            p->idle[c] = r->next;
            p->idle_bytes -= r->region.bytes;
            destroy(p, r);
        }
    }
}

void rendezvous_pool_destroy(rendezvous_pool *p) {
    if (!p) return;
    drop_idle(p);
    free(p);
}

fkv_status rendezvous_take(rendezvous_pool *p, size_t bytes, rendezvous **out) {
    uint32_t c = class_of(bytes);
    rendezvous *r = p->idle[c];
    if (r) {
        p->idle[c] = r->next;
        p->idle_bytes -= r->region.bytes;
        *out = r;
        return FKV_OK;
    }
    size_t room = (size_t)1 << (SMALLEST + c);
    if (p->bytes + room > p->max_bytes) drop_idle(p);
    if (p->bytes + room > p->max_bytes) return FKV_BUSY;
    r = calloc(1, sizeof *r);
    if (!r) return FKV_NO_MEMORY;
    /* An owner takes no memory with holes. */
    if (fkv_region_alloc("farkv-rendezvous", room, FKV_REGION_PREFAULT, &r->region) != 0) {
        free(r);
        return FKV_NO_MEMORY;
    }
    p->bytes += r->region.bytes;
    *out = r;
    return FKV_OK;
}

int rendezvous_register(rendezvous *r, const session_peer *p, fab_mr **mr) {
    fab_mr **there = &r->registered[p->place];
    if (*there && fab_mr_gone(*there)) {
        fab_dereg(*there);
        *there = NULL;
    }
    int e = *there ? 0 : fab_reg(p->domain, &r->region, 0, there);
    *mr = *there;
    return e;
}

void rendezvous_give(rendezvous_pool *p, rendezvous *r, bool reuse) {
    if (!reuse || p->idle_bytes + r->region.bytes > p->max_bytes / 4) {
        destroy(p, r);
        return;
    }
    uint32_t c = class_of(r->region.bytes);
    p->idle_bytes += r->region.bytes;
    r->next = p->idle[c];
    p->idle[c] = r;
}
