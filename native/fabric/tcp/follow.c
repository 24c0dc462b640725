/* follow.c: followed READs at the owner's end: names of regions, and the step from what was READ to what it points at
 * (fabric.h).
 *
 * The step is no way around a check. It begins in a region that the peer has just READ under its rkey, and ends in one
 * of the same group: the group says that whoever was given the one rkey was given the other. Tenant and bounds
 * are checked again here, and whatever does not fit is not followed; the peer then has the first half, and asks for the
 * second under its own rkey, or not at all. Invariant: a group's array and members change only with mr_lock held for
 * writing, so none of them goes while bytes are copied.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tcp.h"

static tcp_group *group_of(tcp_domain *d, uint64_t id) {
    tcp_group *g;
    for (g = LIST_FIRST(&d->groups, tcp_group, link); g; g = LIST_AFTER(&d->groups, g, tcp_group, link))
        if (g->id == id) return g;
    g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->id = id;
    list_push_front(&d->groups, &g->link);
    return g;
}

static bool has_room(tcp_group *g, uint32_t number) {
    if (number == FAB_NOWHERE || number < g->room) return true;
    uint32_t room = g->room ? g->room : 16;
    while (room <= number) room *= 2;
    tcp_mr **named = realloc(g->named, room * sizeof *named);
    if (!named) return false;
    memset(named + g->room, 0, (room - g->room) * sizeof *named);
    g->named = named;
    g->room = room;
    return true;
}

static void let_go(tcp_group *g) {
    if (g->members) return;
    list_remove(&g->link);
    free(g->named);
    free(g);
}

void tcp_unname(tcp_mr *m) {
    tcp_group *g = m->group;
    if (!g) return;
    if (m->number != FAB_NOWHERE && g->named[m->number] == m) g->named[m->number] = NULL;
    m->group = NULL;
    g->members--;
    let_go(g);
}

int tcp_name(fab_mr *mr, uint64_t id, uint32_t number) {
    tcp_mr *m = (tcp_mr *)mr;
    tcp_domain *d = (tcp_domain *)mr->domain;
    pthread_rwlock_wrlock(&d->mr_lock);
    tcp_unname(m);
    tcp_group *g = group_of(d, id);
    bool there = g && has_room(g, number);
    if (there) {
        m->group = g;
        m->number = number;
        g->members++;
        if (number != FAB_NOWHERE) g->named[number] = m;
    } else if (g) {
        let_go(g);
    }
    pthread_rwlock_unlock(&d->mr_lock);
    return there ? 0 : -ENOMEM;
}

bool tcp_follows(const fab_conn *c) { return ((const tcp_conn *)c)->follows; }

const uint8_t *tcp_follow(const tcp_conn *c, const tcp_mr *m, const tcp_request *q, const void *first,
                          uint32_t *bytes) {
    fab_next to;
    const tcp_group *g = m->group;
    if (!g || !tcp_domain_of(c)->options.follow(first, q->bytes, q->follow, &to)) return NULL;
    const tcp_mr *next = to.number < g->room ? g->named[to.number] : NULL;
    /* mutation: tcp/follow-another-tenant */
    if (!next || next->tenant != c->tenant || to.bytes == 0 || to.bytes > q->next_bytes) return NULL;
    /* mutation: tcp/follow-beyond-end */
    if (to.offset > next->bytes || to.bytes > next->bytes - to.offset) return NULL;
    *bytes = to.bytes;
    return next->base + to.offset;
}
