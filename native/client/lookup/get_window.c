/* get_window.c: how many bytes of large extents are on their way from one owner.
 *
 * A GET may take fkv_get_life_ns(): with a link of 50 MB/s to itself a value of any size comes in that time. Values that
 * are asked for together share the link: from some number on all would come too late, be discarded and be READ again,
 * and a renewal of the lease would come as late behind them. So what is under way has a bound. It follows the link as
 * TCP's does (RFC 5681, congestion avoidance), by what came late in place of what was lost: about one extent more with
 * each windowful that came in time, half of it when one did not. One extent may always be under way, however large.
 *
 * What waits has let go of its layout. When there is room it READs the extent where it was seen, as from the location
 * cache (locations.h), and its time begins anew; if the extent is not the key's any more, it begins at the index.
 */
#include "internal.h"

enum { WINDOW_START = 4 << 20, WINDOW_LEAST = 64 << 10, WINDOW_MOST = 16 << 20 /* 128 ms at 1 Gbit/s */ };

void get_window_open(session_peer *p) { p->window.most = WINDOW_START; }

void get_window_close(lookup *l, session_peer *p) {
    get_window_feed(l, p);
    p->window.cut_ns = 0;
}

static bool fits(const session_peer *p, uint32_t bytes) {
    return p->window.bytes == 0 || p->window.bytes + bytes <= p->window.most;
}

bool get_window_has_room(const lookup_get *g, uint32_t bytes) {
    return g->admitted || (fits(g->peer, bytes) && list_empty(&g->peer->window.waiting));
}

void get_window_wait(lookup_get *g, uint32_t bytes) {
    list_push(&g->peer->window.waiting, &g->link);
    layout_release(g->layout);
    g->layout = NULL;
    g->peer = NULL;
    g->state = GET_STARVED;
    g->waits_for = bytes;
    g->revisits = true;
}

void get_window_enter(lookup_get *g, uint32_t bytes) {
    g->admitted = false;
    g->counted = bytes;
    g->flew_to->window.bytes += bytes;
}

session_peer *get_window_left(lookup_get *g) {
    g->flew_to->window.bytes -= g->counted;
    g->counted = 0;
    return g->flew_to;
}

void get_window_feed(lookup *l, session_peer *p) {
    while (!l->closing && !list_empty(&p->window.waiting)) {
        lookup_get *g = LIST_OF(p->window.waiting.next, lookup_get, link);
        if (p->conn && !fits(p, g->waits_for)) return;
        list_remove(&g->link);
        g->admitted = true;
        get_run(g);
    }
}

void get_window_good(const lookup_get *g) {
    struct session_window *w = &g->peer->window;
    uint64_t bytes = g->bytes < w->most ? g->bytes : w->most;
    if (list_empty(&w->waiting)) return;
    w->most += bytes * bytes / w->most;
    if (w->most > WINDOW_MOST) w->most = WINDOW_MOST;
}

void get_window_late(const lookup_get *g) {
    struct session_window *w = &g->peer->window;
    if (g->bytes < WINDOW_COUNTED && w->bytes == 0) return; /* not for what is under way beside it */
    /* Those that were on their way when it was cut are late for the same reason. */
    if (g->started_ns < w->cut_ns) return;
    w->cut_ns = lookup_polled_ns(g->l);
    w->most = w->most / 2 > WINDOW_LEAST ? w->most / 2 : WINDOW_LEAST;
}
