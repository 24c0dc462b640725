/* table.c: the CQ thread's side of attaching: which regions of the peer this connection has mapped. Looked up by every
 * READ. */
#include <errno.h>
#include <stdlib.h>
#include "shm.h"

/* rkeys are random bits, so their low ones are hash enough. */
static uint32_t place(const shm_table *t, uint64_t rkey) {
    uint32_t i = (uint32_t)rkey & (t->room - 1);
    while (t->at[i].a && t->at[i].rkey != rkey) i = (i + 1) & (t->room - 1);
    return i;
}

shm_attachment *shm_table_find(const shm_table *t, uint64_t rkey) {
    if (t->count == 0) return NULL;
    const struct shm_entry *e = &t->at[place(t, rkey)];
    return e->a && e->ready ? e->a : NULL;
}

static bool grow(shm_table *t) {
    shm_table bigger = { .room = t->room ? 2 * t->room : 16, .count = t->count };
    bigger.at = calloc(bigger.room, sizeof *bigger.at);
    if (!bigger.at) return false;
    for (uint32_t i = 0; i < t->room; i++)
        if (t->at[i].a) bigger.at[place(&bigger, t->at[i].rkey)] = t->at[i];
    free(t->at);
    *t = bigger;
    return true;
}

static bool add(shm_table *t, shm_attachment *a) {
    if (2 * (t->count + 1) > t->room && !grow(t)) return false;
    t->at[place(t, a->rkey)] = (struct shm_entry){ .rkey = a->rkey, .a = a };
    t->count++;
    return true;
}

/* Entries after the hole that would no longer be found move into it. */
static void take_out(shm_table *t, uint32_t hole) {
    t->at[hole].a = NULL;
    t->count--;
    for (uint32_t i = (hole + 1) & (t->room - 1); t->at[i].a; i = (i + 1) & (t->room - 1)) {
        struct shm_entry e = t->at[i];
        t->at[i].a = NULL;
        t->at[place(t, e.rkey)] = e;
    }
}

void shm_table_settle(shm_table *t, const shm_attachment *a) {
    uint32_t i = place(t, a->rkey);
    if (a->status == FAB_SUCCESS)
        t->at[i].ready = true;
    else
        take_out(t, i);
}

void shm_table_free(shm_table *t) {
    for (uint32_t i = 0; i < t->room; i++)
        if (t->at[i].a && t->at[i].ready) shm_attachment_free(t->at[i].a);
    free(t->at);
}

int shm_attach(fab_conn *base, uint64_t rkey, uint64_t address, uint64_t bytes, uint64_t wr_id) {
    shm_conn *c = (shm_conn *)base;
    if (c->state != SHM_OPEN) return -ENOTCONN;
    if (c->table.count > 0 && c->table.at[place(&c->table, rkey)].a) return -EEXIST;
    if (c->table.count == SHM_SLOTS) return -EAGAIN;
    shm_attachment *a = calloc(1, sizeof *a);
    if (!a) return -ENOMEM;
    a->rkey = rkey;
    a->address = address;
    a->bytes = bytes;
    a->wr_id = wr_id;
    if (!add(&c->table, a)) {
        free(a);
        return -ENOMEM;
    }
    pthread_mutex_lock(&c->domain->lock);
    shm_list_add(&c->orders.attach, a);
    shm_order_locked(c, 0);
    pthread_mutex_unlock(&c->domain->lock);
    return 0;
}

void shm_detach(fab_conn *base, uint64_t rkey) {
    shm_conn *c = (shm_conn *)base;
    shm_attachment *a = shm_table_find(&c->table, rkey);
    if (!a) return;
    take_out(&c->table, place(&c->table, rkey));
    for (uint32_t i = c->read_head; i != c->read_tail; i++) { /* READs still queued find it gone */
        shm_read *r = &c->reads[i % SHM_READS];
        if (r->of == a) r->status = FAB_REM_ACCESS_ERR;
    }
    pthread_mutex_lock(&c->domain->lock);
    shm_list_add(&c->orders.detach, a);
    shm_order_locked(c, 0);
    pthread_mutex_unlock(&c->domain->lock);
}

const uint8_t *shm_direct(fab_conn *base, uint64_t rkey) {
    const shm_attachment *a = shm_table_find(&((shm_conn *)base)->table, rkey);
    return a ? a->base : NULL;
}
