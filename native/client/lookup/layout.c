/* layout.c: what is known of where a shard's memory lies, and the memory made known to the fabric.
 *
 * A layout comes from the cluster's metadata (lookup_set_route) or from the owner itself (a LAYOUT reply). The higher
 * ownership epoch wins; within one incarnation the higher layout epoch; where both are equal the owner's word. A layout
 * is replaced as a whole; a segment that both name stays attached; one that only the old layout names is detached when
 * the last GET that reads by that layout has ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* ---- segments ---- */

static void segment_release(lookup_segment *s) {
    if (--s->refs) return;
    if (s->state == SEGMENT_READY && s->peer && s->peer->conn) fab_detach(s->peer->conn, s->rkey);
    list_remove(&s->link);
    free(s);
}

static lookup_segment *segment_of(lookup_layout *y, const lookup_region *r) {
    lookup_view *v = NULL;
    if (y && r->kind == TABLE_INDEX) v = r->segment < y->index_count ? &y->index[r->segment] : NULL;
    if (y && r->kind == TABLE_HEAP) v = layout_heap_view(y, r->segment);
    lookup_segment *s = v ? v->segment : NULL;
    return s && s->tag == r->tag && s->rkey == r->rkey && s->addr == r->addr && s->bytes == r->bytes ? s : NULL;
}

static lookup_segment *segment_take(lookup *l, uint32_t shard, lookup_layout *old, const lookup_region *r) {
    lookup_segment *s = segment_of(old, r);
    if (!s) {
        s = calloc(1, sizeof *s);
        if (!s) return NULL;
        s->shard = shard;
        s->number = r->segment;
        s->tag = r->tag;
        s->kind = r->kind;
        s->bytes = r->bytes;
        s->addr = r->addr;
        s->rkey = r->rkey;
        list_push(&l->segments, &s->link);
    }
    s->refs++;
    return s;
}

/* ---- layouts ---- */

void layout_release(lookup_layout *y) {
    if (!y || --y->refs) return;
    for (uint32_t i = 0; i < y->index_count; i++)
        if (y->index[i].segment) segment_release(y->index[i].segment);
    for (uint32_t i = 0; i < y->heap_count; i++)
        if (y->heap[i].segment) segment_release(y->heap[i].segment);
    free(y->index);
    free(y->heap);
    free(y);
}

/* Sizes of the arrays that the regions need; false when they cannot be a layout. */
static bool count_regions(const lookup_region *r, uint32_t n, uint32_t rail, uint32_t *index, uint32_t *heap) {
    *index = *heap = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (fab_place(r[i].provider, r[i].device) != rail) continue;
        if (r[i].kind == TABLE_INDEX) {
            if (r[i].segment >= n || r[i].bytes < FKV_BUCKET_BYTES) return false;
            ++*index;
        } else if (r[i].kind == TABLE_HEAP) {
            if (r[i].segment == 0 || r[i].segment > 0xffff) return false;
            if (r[i].segment >= *heap) *heap = r[i].segment + 1;
        } else {
            return false;
        }
    }
    return *index > 0;
}

static void set_view(lookup_view *v, lookup_segment *s) {
    v->segment = s;
    v->bytes = s->bytes;
    v->tag = s->tag;
    v->direct = s->state == SEGMENT_READY ? s->direct : NULL;
}

/* Index segments are numbered from 0 without gaps; together they hold at least the buckets there are. */
static bool number_buckets(lookup_layout *y) {
    uint64_t first = 0;
    for (uint32_t i = 0; i < y->index_count; i++) {
        if (!y->index[i].segment) return false;
        y->index[i].first = (uint32_t)first;
        first += y->index[i].bytes / FKV_BUCKET_BYTES;
        if (first > UINT32_MAX) return false;
    }
    y->capacity = (uint32_t)first;
    return y->buckets >= 1 && y->buckets <= y->capacity;
}

static lookup_layout *make(lookup *l, uint32_t shard, uint32_t rail, const lookup_region *r, uint32_t n,
                           uint32_t buckets) {
    lookup_layout *old = l->shard[shard].layout, *y = calloc(1, sizeof *y);
    uint32_t index, heap;
    if (!y) return NULL;
    y->refs = 1;
    y->rail = rail;
    y->buckets = buckets;
    if (old && old->rail != rail) old = NULL;
    bool good = count_regions(r, n, rail, &index, &heap);
    if (good) {
        y->index = calloc(index, sizeof *y->index);
        y->heap = calloc(heap ? heap : 1, sizeof *y->heap);
        good = y->index && y->heap;
    }
    if (good) {
        y->index_count = index;
        y->heap_count = heap;
    }
    for (uint32_t i = 0; good && i < n; i++) {
        if (fab_place(r[i].provider, r[i].device) != rail) continue;
        if (r[i].kind == TABLE_INDEX && r[i].segment >= index) good = false;
        lookup_view *v = !good ? NULL : r[i].kind == TABLE_INDEX ? &y->index[r[i].segment] : &y->heap[r[i].segment];
        lookup_segment *s = !v || v->segment ? NULL : segment_take(l, shard, old, &r[i]);
        good = s != NULL;
        if (good) set_view(v, s);
    }
    if (good && number_buckets(y)) return y;
    layout_release(y);
    return NULL;
}

/* What the owner says of the number of buckets is the truth; what the metadata says may be older than what we saw. A
 * lease may already have told of a newer layout than the metadata's. */
static void adopt(lookup *l, uint32_t shard, lookup_layout *y, bool from_owner) {
    lookup_shard *sh = &l->shard[shard];
    lookup_layout *old = sh->layout;
    bool same = old && old->incarnation == y->incarnation;
    bool leased = y->incarnation == sh->lease_incarnation;
    if (from_owner || !same || sh->buckets < y->buckets || sh->buckets > y->capacity) sh->buckets = y->buckets;
    sh->outdated = leased && y->layout_epoch < sh->lease_layout_epoch;
    if (!sh->outdated) sh->index_until = leased ? sh->lease_granted_until : 0;
    sh->layout = y;
    shard_view(l, shard);
    layout_release(old);
}

/* Whether what is known now is as good as what has come. */
static bool known_already(const lookup_layout *y, uint32_t rail, uint32_t epoch, uint64_t incarnation,
                          uint32_t layout_epoch) {
    if (!y || y->rail != rail) return false;
    if (y->incarnation != incarnation) return y->epoch > epoch;
    return y->layout_epoch >= layout_epoch;
}

void layout_drop(lookup *l, uint32_t shard) {
    lookup_shard *sh = &l->shard[shard];
    lookup_layout *old = sh->layout;
    sh->layout = NULL;
    shard_view(l, shard);
    layout_release(old);
    /* The metadata's word about an incarnation that was found wrong is not to be believed again. */
    free(sh->route_regions);
    sh->route_regions = NULL;
    sh->route_count = 0;
}

/* ---- from the metadata ---- */

fkv_status lookup_set_route(lookup *l, const lookup_route *r) {
    if (r->shard >= l->shards) return FKV_BAD_REQUEST;
    lookup_shard *sh = &l->shard[r->shard];
    lookup_region *copy = NULL;
    if (r->count) {
        copy = malloc(r->count * sizeof *copy);
        if (!copy) return FKV_NO_MEMORY;
        memcpy(copy, r->regions, r->count * sizeof *copy);
    }
    free(sh->route_regions);
    sh->route_regions = copy;
    sh->route_count = r->count;
    sh->route_epoch = r->epoch;
    sh->route_incarnation = r->incarnation;
    sh->route_layout_epoch = r->layout_epoch;
    sh->route_buckets = r->buckets;
    session_route(l->session, r->shard, r->owner);
    session_peer *peer = session_peer_of(l->session, r->shard);
    bool moved = peer != sh->peer;
    bool dead = sh->layout && sh->layout->epoch < r->epoch && sh->layout->incarnation != r->incarnation;
    if (moved) {
        sh->peer = peer;
        sh->uncovered = false;
    }
    if (moved || dead) {
        lookup_layout *old = sh->layout;
        sh->layout = NULL;
        layout_release(old);
    }
    shard_view(l, r->shard);
    if (moved || dead || sh->layout) shard_wake(l, r->shard);
    return FKV_OK;
}

bool layout_from_route(lookup *l, uint32_t shard) {
    lookup_shard *sh = &l->shard[shard];
    uint32_t rail = sh->peer->rail;
    if (sh->route_count &&
        !known_already(sh->layout, rail, sh->route_epoch, sh->route_incarnation, sh->route_layout_epoch)) {
        lookup_layout *y = make(l, shard, rail, sh->route_regions, sh->route_count, sh->route_buckets);
        if (y) {
            y->incarnation = sh->route_incarnation;
            y->epoch = sh->route_epoch;
            y->layout_epoch = sh->route_layout_epoch;
            adopt(l, shard, y, false);
        }
    }
    free(sh->route_regions);
    sh->route_regions = NULL;
    sh->route_count = 0;
    return sh->layout && sh->layout->rail == rail;
}

/* ---- from the owner ---- */

/* The reply's messages, one behind the other: each a fkv_layout and its segments. */
static lookup_region *read_regions(const uint8_t *body, uint32_t bytes, uint32_t rail, fkv_layout *head, uint32_t *n) {
    uint32_t room = bytes / (uint32_t)sizeof(fkv_layout_segment) + 1, count = 0;
    lookup_region *out = calloc(room, sizeof *out);
    for (uint32_t at = 0; out && at < bytes;) {
        fkv_layout here;
        if (bytes - at < sizeof here) break;
        memcpy(&here, body + at, sizeof here);
        at += (uint32_t)sizeof here;
        if (at == sizeof here) *head = here;
        if (here.incarnation != head->incarnation || here.layout_epoch != head->layout_epoch || here.first != count)
            break;
        if ((uint64_t)here.here * sizeof(fkv_layout_segment) > bytes - at) break;
        for (uint32_t i = 0; i < here.here; i++, at += (uint32_t)sizeof(fkv_layout_segment)) {
            fkv_layout_segment s;
            memcpy(&s, body + at, sizeof s);
            out[count++] = (lookup_region){ .provider = fab_place_provider(rail),
                                            .device = fab_place_device(rail),
                                            .kind = s.kind,
                                            .segment = s.segment,
                                            .tag = s.tag,
                                            .bytes = s.bytes,
                                            .addr = s.addr,
                                            .rkey = s.rkey };
        }
    }
    *n = count;
    return out;
}

static bool take_reply(lookup *l, uint32_t shard, uint32_t rail, const session_answer *a) {
    fkv_layout head = { 0 };
    uint32_t n;
    lookup_region *r = read_regions(a->body, a->body_bytes, rail, &head, &n);
    lookup_layout *y = NULL;
    lookup_shard *sh = &l->shard[shard];
    if (r && n && n == head.count) {
        if (sh->layout && sh->layout->incarnation == head.incarnation && sh->layout->layout_epoch > head.layout_epoch) {
            free(r);
            return true; /* two answers crossed */
        }
        y = make(l, shard, rail, r, n, head.buckets);
    }
    free(r);
    if (!y) return false;
    y->incarnation = head.incarnation;
    y->epoch = head.epoch;
    y->layout_epoch = head.layout_epoch;
    adopt(l, shard, y, true);
    return true;
}

typedef struct layout_call {
    lookup *l;
    uint32_t shard;
    session_peer *peer;
    uint32_t rail;
} layout_call;

static void layout_came(void *user, session_answer *a) {
    layout_call call = *(layout_call *)user;
    free(user);
    lookup *l = call.l;
    lookup_shard *sh = &l->shard[call.shard];
    sh->layout_request = 0;
    if (l->closing) return;
    /* another owner by now: what waits saw this request under way and made none of its own */
    if (sh->peer != call.peer) {
        shard_wake(l, call.shard);
        return;
    }
    bool replied = a->status == FKV_OK && sh->peer->rail == call.rail;
    if (replied && take_reply(l, call.shard, call.rail, a)) {
        shard_wake(l, call.shard);
    } else if (a->status != FKV_DISCONNECTED) {
        /* Also with a layout: what waits does so because the layout at hand is not enough for it. */
        sh->outdated = false;
        shard_ask_waiting(l, call.shard);
    }
}

void layout_refresh(lookup *l, uint32_t shard) {
    lookup_shard *sh = &l->shard[shard];
    if (sh->layout_request || !sh->peer || !sh->peer->conn) return;
    layout_call *call = malloc(sizeof *call);
    if (!call) return;
    *call = (layout_call){ .l = l, .shard = shard, .peer = sh->peer, .rail = sh->peer->rail };
    session_ask a = { .op = FKV_OP_LAYOUT,
                      .shard = shard,
                      .deadline_ns = session_now(l->session) + 1000000000u,
                      .done = layout_came,
                      .user = call };
    if (session_request(l->session, &a, &sh->layout_request) != FKV_OK) {
        sh->layout_request = 0;
        free(call);
    }
}

/* ---- attaching ---- */

static void attach(lookup *l, lookup_segment *s, session_peer *p) {
    if (s->state != SEGMENT_NEW) return;
    int e = fab_attach(p->conn, s->rkey, s->addr, s->bytes, (uint64_t)(uintptr_t)s);
    if (e == -EEXIST) { /* READs of an older layout still hold it: once they have landed */
        l->attach_again = l->shard[s->shard].attach_again = true;
    }
    if (e == -EAGAIN || e == -ENOMEM) l->shard[s->shard].crowded = true;
    if (e) return; /* else the connection is lost: `down` comes */
    s->state = SEGMENT_ATTACHING;
    s->peer = p;
    s->refs++;
}

bool layout_attach(lookup *l, uint32_t shard) {
    lookup_shard *sh = &l->shard[shard];
    lookup_layout *y = sh->layout;
    if (y->attached) return true;
    bool ready = true, all = true;
    sh->crowded = false;
    for (uint32_t i = 0; i < y->index_count; i++) {
        attach(l, y->index[i].segment, sh->peer);
        ready = ready && y->index[i].segment->state == SEGMENT_READY;
    }
    for (uint32_t i = 0; i < y->heap_count; i++) {
        if (!y->heap[i].segment) continue;
        attach(l, y->heap[i].segment, sh->peer);
        all = all && y->heap[i].segment->state == SEGMENT_READY;
    }
    y->attached = ready && all;
    return ready;
}

/* Whom a completion is about: a segment that is being attached to this peer, or nobody. */
static lookup_segment *attaching(lookup *l, const session_peer *p, uint64_t id) {
    for (fkv_list *i = l->segments.next; i != &l->segments; i = i->next) {
        lookup_segment *s = LIST_OF(i, lookup_segment, link);
        if ((uint64_t)(uintptr_t)s == id) return s->state == SEGMENT_ATTACHING && s->peer == p ? s : NULL;
    }
    return NULL;
}

void layout_attached(void *ctx, session_peer *p, const fab_wc *wc) {
    lookup *l = ctx;
    lookup_segment *s = attaching(l, p, wc->wr_id);
    if (!s) return;
    uint32_t shard = s->shard;
    lookup_layout *y = l->shard[shard].layout;
    lookup_region r = {
        .kind = s->kind, .segment = s->number, .tag = s->tag, .bytes = s->bytes, .addr = s->addr, .rkey = s->rkey
    };
    bool current = segment_of(y, &r) == s;
    if (wc->status == FAB_SUCCESS) {
        s->state = SEGMENT_READY;
        s->direct = fab_direct(p->conn, s->rkey);
        if (current) set_view(s->kind == TABLE_INDEX ? &y->index[s->number] : &y->heap[s->number], s);
    } else {
        s->state = SEGMENT_REFUSED;
        s->peer = NULL;
    }
    segment_release(s);
    if (!current) return;
    if (wc->status == FAB_SUCCESS) {
        shard_view(l, shard);
        shard_wake(l, shard);
    } else {
        layout_drop(l, shard); /* retired meanwhile, most likely: the next GET asks for the new layout */
        shard_ask_waiting(l, shard);
    }
}

/* Rkeys outlive a connection, mappings do not. */
void layout_link_lost(lookup *l, session_peer *p) {
    for (fkv_list *i = l->segments.next, *next; i != &l->segments; i = next) {
        next = i->next;
        lookup_segment *s = LIST_OF(i, lookup_segment, link);
        if (s->peer != p) continue;
        bool attaching = s->state == SEGMENT_ATTACHING;
        s->state = SEGMENT_NEW;
        s->peer = NULL;
        s->direct = NULL;
        if (attaching) segment_release(s);
    }
    for (uint32_t i = 0; i < l->shards; i++) {
        lookup_layout *y = l->shard[i].layout;
        if (l->shard[i].peer != p || !y) continue;
        y->attached = false;
        for (uint32_t k = 0; k < y->index_count; k++) y->index[k].direct = NULL;
        for (uint32_t k = 0; k < y->heap_count; k++) y->heap[k].direct = NULL;
        shard_view(l, i);
    }
}
