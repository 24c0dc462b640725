/* get_read.c: the READs of a GET: posting one in pieces, as far as the queue has room, and recognising its completions.
 * What was READ is for get.c, which is told once for each READ (get_landed), when no piece is under way any more.
 *
 * Where the peer can follow a READ (fabric.h) that of a bucket asks for the extent as well, so that a GET whose
 * location is not known is one round trip. What comes so is what READ extent would have brought, later: get.c treats it
 * no differently. How large it may be has to be said before it is known: as large as those that came lately.
 */
#include <errno.h>
#include "../../base/assert.h"
#include "../session/steps.h"
#include "internal.h"

enum { PIECE = 1 << 20, PIECES = 8, INDEX_BITS = 20, PIECE_BITS = 7 };
static_assert((uint64_t)1 << (PIECE_BITS + 20) >= FKV_VALUE_MAX + 2 * PIECE, "every piece has a number");

/* What a completion is recognised by: the GET's place, the piece, the READ. Hardware has been seen to complete a failed
 * READ twice. */
static uint64_t id_of_piece(const lookup_get *g, uint32_t piece) {
    return g->read_number << (INDEX_BITS + PIECE_BITS) | (uint64_t)piece << INDEX_BITS | (uint64_t)(g - g->l->table);
}

enum { NEXT_LEAST = 512, NEXT_LATELY = 1024 };

/* Room for what the bucket leads to, if the peer can go there. It is asked for less than there is when memory is short:
 * for nothing. */
static void want_next(lookup_get *g) {
    lookup *l = g->l;
    g->wanted_next = g->landed_next = 0;
    if (g->state != GET_BUCKET || !g->peer->conn || !fab_follows(g->peer->conn)) return;
    if (l->next_room < NEXT_LEAST) l->next_room = NEXT_LEAST;
    if (g->room.base && g->room.bytes < l->next_room) buffer_give(&l->buffers, &g->room);
    if (!g->room.base && buffer_take(&l->buffers, l->next_room, &g->room) != 0) return;
    if (!buffer_mr(g->room.chunk, g->peer)) return;
    uint32_t next = g->room.bytes < FAB_FOLLOW_MAX ? (uint32_t)g->room.bytes : FAB_FOLLOW_MAX;
    if (get_window_admits(g, next)) g->wanted_next = next;
}

void get_read_seen(lookup *l, uint32_t extent_bytes) {
    if (extent_bytes > l->next_most && extent_bytes <= FAB_FOLLOW_MAX) l->next_most = extent_bytes;
    if (++l->next_seen < NEXT_LATELY && l->next_most <= l->next_room) return;
    l->next_room = l->next_most;
    l->next_most = l->next_seen = 0;
}

/* Posts what is left of the READ. When the queue is full the rest waits in lookup.unposted. */
static void post(lookup_get *g) {
    lookup *l = g->l;
    fab_mr *mr = buffer_mr(g->state == GET_BUCKET ? l->bucket_chunk : g->room.chunk, g->peer);
    uint8_t *to = g->state == GET_BUCKET ? (uint8_t *)g->bucket : g->room.base;
    int taken = !g->peer->conn ? -ENOTCONN : mr ? PIECES : -ENOMEM;
    while (taken == PIECES && g->posted < g->bytes) {
        fab_read r[PIECES];
        int n = 0;
        for (uint32_t at = g->posted; n < PIECES && at < g->bytes; n++) {
            uint32_t bytes = g->bytes - at < PIECE ? g->bytes - at : PIECE;
            r[n] = (fab_read){ .wr_id = id_of_piece(g, at / PIECE),
                               .local = to + at,
                               .local_mr = mr,
                               .remote_addr = g->remote + at,
                               .rkey = g->rkey,
                               .bytes = bytes };
            if (g->wanted_next) {
                r[n].next_bytes = g->wanted_next;
                r[n].next_local = g->room.base;
                r[n].next_mr = buffer_mr(g->room.chunk, g->peer);
                r[n].next_argument = g->hash;
            }
            at += bytes;
        }
        taken = fab_post_reads(g->peer->conn, r, n);
        for (int i = 0; i < taken; i++, g->pending++) {
            uint32_t piece = g->posted / PIECE;
            g->under_way[piece / 64] |= 1ull << piece % 64;
            g->posted += r[i].bytes;
        }
        if (taken == n) taken = PIECES;
    }
    if (taken < 0 && !g->pending) {
        list_remove(&g->flying);
        session_peer *p = get_window_leave(g);
        if (taken == -ENOTCONN)
            get_wait(g); /* the connection's end is on the way */
        else
            get_finish(g, FKV_NO_MEMORY); /* the connection stays: a wait would last until the deadline */
        if (p) get_window_feed(l, p);
        return;
    }
    if (list_empty(&g->flying)) {
        g->flew_to = g->peer;
        list_push(&l->flying, &g->flying);
        uint32_t bytes = g->bytes + g->wanted_next;
        if (bytes >= WINDOW_COUNTED) get_window_enter(g, bytes);
    }
    if (taken < 0)
        g->read_status = FAB_WR_FLUSH_ERR;
    else if (g->posted < g->bytes)
        list_push(&l->unposted, &g->link);
}

void get_read(lookup_get *g, get_state state, const lookup_view *v, uint64_t offset, uint32_t bytes) {
    g->state = state;
    g->tag = v->tag;
    g->remote = v->segment->addr + offset;
    g->rkey = v->segment->rkey;
    g->bytes = bytes;
    g->posted = g->pending = 0;
    g->read_number = (g->read_number + 1) & (((uint64_t)1 << (64 - INDEX_BITS - PIECE_BITS)) - 1);
    g->read_status = FAB_SUCCESS;
    g->l->stats.reads++;
    g->l->stats.read_bytes += bytes;
    want_next(g);
    lookup *l = g->l;
    session_peer *p = g->peer;
    post(g);
    if (__builtin_expect(l->config.session.traced, 0) && g->pending)
        session_note(l->session, p, &(session_step){ .type = SESSION_READ, .bytes = bytes });
}

/* ---- completions ---- */

static __attribute__((noinline, cold)) void note_landed(const lookup_get *g, const session_peer *p) {
    session_note(g->l->session, p,
                 &(session_step){ .type = SESSION_LANDED,
                                  .bytes = g->bytes + g->landed_next,
                                  .status = fkv_status_of_wc(g->read_status) });
}

void get_read_done(void *ctx, session_peer *p, const fab_wc *wc) {
    lookup *l = ctx;
    uint64_t index = wc->wr_id & ((1u << INDEX_BITS) - 1), piece = wc->wr_id >> INDEX_BITS & ((1u << PIECE_BITS) - 1);
    if (index >= l->places) return;
    lookup_get *g = &l->table[index];
    uint64_t bit = 1ull << piece % 64;
    if (wc->wr_id != id_of_piece(g, (uint32_t)piece) || !(g->under_way[piece / 64] & bit) || g->flew_to != p) return;
    g->under_way[piece / 64] &= ~bit;
    fkv_assert(g->pending > 0);
    g->pending--;
    if (wc->status != FAB_SUCCESS && g->read_status == FAB_SUCCESS) g->read_status = wc->status;
    if (g->wanted_next && wc->status == FAB_SUCCESS && wc->bytes > g->bytes) {
        g->landed_next = wc->bytes - g->bytes;
        l->stats.followed++;
        l->stats.read_bytes += g->landed_next;
    }
    if (g->pending || (g->posted < g->bytes && g->read_status == FAB_SUCCESS && g->state != GET_DONE)) return;
    if (__builtin_expect(l->config.session.traced, 0)) note_landed(g, p);
    get_landed(g);
}

void get_link_lost(lookup *l, session_peer *p) {
    fkv_list lost;
    list_init(&lost);
    for (fkv_list *i = l->flying.next, *next; i != &l->flying; i = next) {
        next = i->next;
        lookup_get *g = LIST_OF(i, lookup_get, flying);
        if (g->flew_to != p) continue;
        list_remove(i);
        list_push(&lost, i);
    }
    while (!list_empty(&lost)) {
        lookup_get *g = LIST_OF(lost.next, lookup_get, flying);
        g->pending = 0;
        g->under_way[0] = g->under_way[1] = 0;
        g->read_status = FAB_WR_FLUSH_ERR;
        if (l->config.session.traced) note_landed(g, p);
        get_landed(g);
    }
}

void get_post_rest(lookup *l) {
    fkv_list all;
    list_take_all(&l->unposted, &all);
    while (!list_empty(&all)) {
        lookup_get *g = LIST_OF(all.next, lookup_get, link);
        list_remove(&g->link);
        post(g);
    }
}
