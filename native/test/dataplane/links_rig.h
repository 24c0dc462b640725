/* links_rig.h: an owner and a backup that are joined by links of the product, each with a thread of its own, and a client
 * of the owner. */
#ifndef FARKV_TEST_LINKS_RIG_H
#define FARKV_TEST_LINKS_RIG_H
#include "../../replication/owner_link.h"
#include "copies_rig.h"

static raw c;
enum { OWNER = 0, NEXT = 1, CLIENT = 7, BOTH = 3 };

/* ---- on the worker's thread ---- */

static inline void do_owner_link(worker *w, void *ctx) {
    const errand *e = ctx;
    static link_address at[SERVERS]; /* where it was, once it is gone */
    link_address *a = &at[e->owner];
    if (servers[e->owner].runs) {
        a->provider = copies_over;
        snprintf(a->text, sizeof a->text, "%s", dataplane_address(servers[e->owner].r.d, 0));
    }
    CHECK(owner_link_follow(here(w)->repl.copy, a, 1));
}
static inline void do_cut(worker *w, void *ctx) {
    (void)ctx;
    for (fkv_list *l = w->clients.next, *after; l != &w->clients; l = after) {
        after = l->next;
        client *x = LIST_OF(l, client, of_worker);
        if (x->link) client_doom(x, FKV_END_NONE);
    }
}
static struct { uint64_t fed, waits, right_ns, prepared, committed, granted_ns; } seen;
static inline void do_look(worker *w, void *ctx) {
    const shard *s = here(w);
    (void)ctx;
    seen.fed = !list_empty(&s->repl.senders);
    seen.waits = !list_empty(&s->repl.copy->held);
    seen.right_ns = shard_right(w, s);
    seen.prepared = s->repl.copy->place.prepared;
    seen.committed = s->repl.copy->applied;
    seen.granted_ns = s->repl.copy->place.granted_until_ns;
}
static inline void look(int s) { visit_server(s, do_look, &(errand){ 0 }); }
/* Waits for what a server comes to by itself. */
#define UNTIL(server, e)                                                     \
    do {                                                                     \
        uint64_t until_ = fkv_now_ns() + check_patience_ms() * 1000000u;     \
        for (look(server); !(e); look(server)) CHECK(fkv_now_ns() < until_); \
    } while (0)

static inline void follow(int owner, int backup) { visit_server(backup, do_owner_link, &(errand){ .owner = owner }); }

static inline void up(void) {
    server_up(OWNER, COPY_MEMORY);
    server_up(NEXT, COPY_MEMORY);
    server_leads(OWNER, BOTH, 1);
    follow(OWNER, NEXT);
    server_serves_soon(OWNER);
    UNTIL(OWNER, seen.right_ns > fkv_now_ns());
    raw_up(&c, &servers[OWNER].r, CLIENT);
}
static inline void down(void) {
    raw_down(&c);
    servers_down();
}
/* The i-th key of the shard. */
static inline const char *key_at(uint32_t i) {
    static char key[32];
    for (uint32_t n = i * 1000;; n++) {
        snprintf(key, sizeof key, "key-%u", n);
        if (raw_shard_of(0, key, strlen(key)) == number) return key;
    }
}
#endif
