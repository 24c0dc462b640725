/* get.c: one GET as a state machine over fabric.h; many are under way at once.
 *
 *               lookup_start
 *                    |                     not ready: layout, lease, segments, connection
 *                    v                   +------------------------------------------------+
 *     +-------> shard_ready? ------------+--> WAITING --- what was missing came ----------+--> shard_ready?
 *     |              | ready             |
 *     |              v                   +--> (the owner must be asked) ------------------------------------+
 *     |         READ bucket <--------------------------------------+                                         |
 *     |              |                                             |                                         |
 *     |   FOREIGN    | HERE            ELSEWHERE: the other one;   |                                         |
 *     |<-- drop the  |                 AGAIN: the same one; or the next of the chain                         |
 *     |    layout    v                                             |                                         |
 *     |         a slot with the fingerprint? --- no, chain goes on-+                                         |
 *     |              | yes            \                                                                      |
 *     |              v                 +-- no, and no chain --> NOT_FOUND, if the checks below hold          |
 *     |         READ extent  <------------ other key: next slot                                              |
 *     |              |                                                                                       v
 *     |<-- AGAIN: ---+-- OK --> life and lease still good? -- yes --> DONE <---------------------------- ASKING the
 *     owner
 *     |    pending, dead, torn          | no: late, discarded                                                ^
 *     +<--------------------------------+                                                                    |
 *     after LOOKUP_RETRIES of these: ------------------------------------------------------------------------+
 *
 * Where the owner's end of the fabric can follow a READ (fabric.h), READ bucket brings the first extent as well, and
 * the two are one round trip. A GET begins at READ extent where its location is cached (locations.h); unless the key's
 * LIVE extent is there, READ bucket follows. A READ that fails breaks its connection; its GET waits for the next one.
 * The deadline ends a GET in any state; a READ that is still under way then keeps its memory until it completes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../../base/assert.h"
#include "internal.h"

/* ---- the end ---- */

static void leave(lookup_get *g) {
    layout_release(g->layout);
    g->layout = NULL;
    g->peer = NULL;
}

void get_finish(lookup_get *g, fkv_status status) {
    lookup *l = g->l;
    session_peer *roomy = NULL;
    fkv_assert(g->state != GET_DONE); /* a GET ends once */
    list_remove(&g->link);
    timer_clear(session_timers(l->session), &g->deadline);
    if (!g->pending) { /* a segment that is being READ stays attached until that has ended */
        leave(g);
        list_remove(&g->flying);
        roomy = get_window_leave(g);
    }
    g->state = GET_DONE;
    g->result.status = status;
    if (status == FKV_OK) l->stats.hits++;
    if (status == FKV_NOT_FOUND) l->stats.misses++;
    l->config.done(l->config.ctx, g);
    if (roomy) get_window_feed(l, roomy);
}

void lookup_cancel(lookup_get *g, fkv_status why) {
    if (g->state == GET_DONE || g->state == GET_FREE) return;
    if (g->state == GET_ASKING) {
        session_cancel(g->l->session, g->request, why);
        return;
    }
    const lookup_shard *sh = &g->l->shard[g->shard];
    if (why == FKV_TIMEOUT && g->state == GET_WAITING && (!sh->peer || !sh->peer->conn)) why = FKV_SHARD_CLOSED;
    get_finish(g, why);
}

/* ---- waiting, asking, doing it again ---- */

void get_wait(lookup_get *g) {
    leave(g);
    g->state = GET_WAITING;
    list_push(&g->l->shard[g->shard].waiting, &g->link);
}

static void answered(void *user, session_answer *a) {
    lookup_get *g = user;
    fkv_status status = a->status;
    if (status == FKV_OK) {
        g->value = session_take_body(a);
        if (!g->value) status = FKV_NO_MEMORY;
        g->value_owned = true;
        g->result = (lookup_result){ .codec = a->reply.codec,
                                     .user_flags = a->reply.user_flags,
                                     .version = a->reply.version,
                                     .value_bytes = a->body_bytes,
                                     .expiry_ms = a->reply.expiry_ms };
    }
    get_finish(g, status);
}

void get_ask(lookup_get *g) {
    lookup *l = g->l;
    leave(g);
    session_ask a = { .op = FKV_OP_GET,
                      .shard = g->shard,
                      .space = g->space,
                      .key = g->key,
                      .key_bytes = g->key_bytes,
                      .deadline_ns = g->deadline_ns,
                      .done = answered,
                      .user = g };
    fkv_status s = session_request(l->session, &a, &g->request);
    if (s != FKV_OK) {
        get_finish(g, s);
        return;
    }
    timer_clear(session_timers(l->session), &g->deadline); /* the request has the same one */
    g->state = GET_ASKING;
    l->stats.two_sided++;
}

/* From the index again, unless that was done often enough. */
static void again(lookup_get *g) {
    g->l->stats.retries++;
    g->revisits = false;
    if (++g->retries > LOOKUP_RETRIES)
        get_ask(g);
    else
        get_run(g);
}

static void late(lookup_get *g) {
    g->l->stats.late++;
    again(g);
}

/* What was read by this layout is not the memory that the layout was about. */
static void foreign(lookup_get *g) {
    lookup *l = g->l;
    l->stats.foreign++;
    if (l->shard[g->shard].layout == g->layout) layout_drop(l, g->shard);
    again(g);
}

/* ---- READs ---- */

static void extent_landed(lookup_get *g);

static void read_bucket(lookup_get *g) {
    lookup_view *v = layout_index_view(g->layout, g->number);
    if (!v) { /* it was split into a segment that this layout does not know yet */
        g->l->shard[g->shard].outdated = true;
        again(g);
        return;
    }
    g->chain = 0;
    get_read(g, GET_BUCKET, v, (uint64_t)(g->number - v->first) * FKV_BUCKET_BYTES, FKV_BUCKET_BYTES);
}

/* A location that the index named: attached memory of a segment that the layout knows, or another round. */
static lookup_view *locate(lookup_get *g, uint64_t location, uint32_t cls, uint64_t *offset, uint32_t *bytes) {
    lookup *l = g->l;
    lookup_view *v = layout_heap_view(g->layout, fkv_location_segment(location));
    if (!v) {
        l->shard[g->shard].outdated = true; /* a new segment: its layout is asked for before the next round */
        layout_refresh(l, g->shard);
        if (l->shard[g->shard].layout_request)
            get_wait(g);
        else
            again(g);
        return NULL;
    }
    if (v->segment->state != SEGMENT_READY) {
        if (v->segment->state == SEGMENT_ATTACHING)
            get_wait(g);
        else if (l->shard[g->shard].crowded)
            get_ask(g);
        else
            again(g);
        return NULL;
    }
    if (fkv_location_range(location, cls, v->bytes, offset, bytes)) return v;
    again(g);
    return NULL;
}

static void read_extent_at(lookup_get *g, const lookup_view *v, uint64_t word, uint64_t offset, uint32_t bytes) {
    lookup *l = g->l;
    g->where = (location){ .word = word, .tag = v->tag };
    if (!get_window_admits(g, bytes)) {
        get_window_wait(g, bytes);
        return;
    }
    if (g->room.base && g->room.bytes < bytes) buffer_give(&l->buffers, &g->room);
    if (!g->room.base) {
        int e = buffer_take(&l->buffers, bytes, &g->room);
        if (e == -EAGAIN) {
            leave(g);
            g->state = GET_STARVED;
            list_push(&l->starved, &g->link);
            return;
        }
        if (e) {
            get_finish(g, FKV_NO_MEMORY);
            return;
        }
    }
    get_read(g, GET_EXTENT, v, offset, bytes);
}

static void read_extent(lookup_get *g) {
    uint64_t slot = g->bucket->slot[g->slot], offset;
    uint32_t bytes;
    const lookup_view *v = locate(g, fkv_slot_location(slot), fkv_slot_class(slot), &offset, &bytes);
    if (v) read_extent_at(g, v, slot, offset, bytes);
}

/* The first slot that may be the key's leads to an extent that is here already if the owner followed the READ of the
 * bucket. What makes it one that READ extent could have landed is checked: the segment that the slot names is known by
 * this layout, and the class is as large. Whose extent it is, and of which life, its own tag, state, key and checksum
 * say, as for any other. */
static void first_extent(lookup_get *g) {
    uint64_t slot = g->bucket->slot[g->slot], offset;
    uint32_t bytes;
    const lookup_view *v = locate(g, fkv_slot_location(slot), fkv_slot_class(slot), &offset, &bytes);
    if (!v) return;
    get_read_seen(g->l, bytes);
    if (g->landed_next != bytes) {
        read_extent_at(g, v, slot, offset, bytes);
        return;
    }
    g->where = (location){ .word = slot, .tag = v->tag };
    g->state = GET_EXTENT;
    g->tag = v->tag;
    g->bytes = bytes;
    extent_landed(g);
}

/* Straight to where the key's extent lay the last time, or when its READ had to wait. A location is used only while its
 * segment has the tag that it had then, and while no newer layout is known to exist: what the owner has retired must
 * not be READ, for a refused READ ends a connection. */
static bool read_guess(lookup_get *g) {
    lookup *l = g->l;
    location at;
    uint64_t offset;
    uint32_t bytes;
    if (l->shard[g->shard].outdated) return false;
    if (g->revisits)
        at = g->where;
    else if (g->retries || !locations_guess(&l->locations, g->hash, &at))
        return false;
    const lookup_view *v = layout_heap_view(g->layout, fkv_location_segment(at.word));
    if (!v || v->tag != at.tag || /* mutation: lookup/another-tag */
        !fkv_location_range(fkv_slot_location(at.word), fkv_slot_class(at.word), v->bytes, &offset, &bytes)) {
        locations_forget(&l->locations, g->hash);
        return false;
    }
    if (v->segment->state != SEGMENT_READY) return false;
    g->guessed = true;
    read_extent_at(g, v, at.word, offset, bytes);
    return true;
}

/* ---- answers ---- */

static bool lease_good(lookup_get *g, uint64_t now) {
    const lookup_shard *sh = &g->l->shard[g->shard];
    /* mutation: lookup/lease-of-another-incarnation */
    return g->layout->incarnation == sh->lease_incarnation && now < sh->lease_granted_until;
}

/* `bytes`: of what the answer rests on. */
static void conclude(lookup_get *g, fkv_status status, uint32_t bytes) {
    uint64_t now = lookup_polled_ns(g->l);
    /* mutation: lookup/lease-before-read, lookup/read-for-ever */
    if (now - g->started_ns > fkv_get_life_ns(bytes) || !lease_good(g, now)) {
        get_window_late(g);
        late(g);
    } else {
        if (g->bytes >= WINDOW_COUNTED) get_window_good(g);
        get_finish(g, status);
    }
}

static void search_bucket(lookup_get *g, int from) {
    g->slot = fkv_bucket_find(g->bucket, fkv_hash_fingerprint(g->hash), from);
    if (g->slot >= 0) {
        if (from == 0)
            first_extent(g);
        else
            read_extent(g);
        return;
    }
    uint64_t next = fkv_bucket_overflow(g->bucket->word1), offset;
    uint32_t bytes;
    if (!next) {
        conclude(g, FKV_NOT_FOUND, FKV_BUCKET_BYTES);
        return;
    }
    if (++g->chain >= FKV_CHAIN_MAX) {
        again(g);
        return;
    }
    lookup_view *v = locate(g, next, FKV_CLASS_BUCKET, &offset, &bytes);
    if (v) get_read(g, GET_BUCKET, v, offset, bytes);
}

/* What follows when this READ of the primary bucket is not enough. True: it is, though the bucket is SETTLING. */
static __attribute__((noinline)) bool other_state(lookup_get *g, fkv_bucket_state s, uint32_t buckets) {
    lookup_shard *sh = &g->l->shard[g->shard];
    if (s == FKV_BUCKET_FOREIGN) {
        foreign(g);
        return false;
    }
    if (s == FKV_BUCKET_AGAIN) {
        /* mutation: lookup/settling-miss */
        if (g->settling_number == g->number && g->settling_started_ns == g->started_ns) return true;
        g->settling_number = g->number;
        g->settling_started_ns = g->started_ns;
        read_bucket(g);
        return false;
    }
    if (sh->layout == g->layout) sh->buckets = buckets;
    g->number = fkv_bucket_of(fkv_hash_bucket_bits(g->hash), buckets);
    if (++g->steps <= FKV_BUCKET_STEPS) {
        read_bucket(g);
        return false;
    }
    sh->outdated = true; /* it goes round in circles: the layout is not the table's any more, or somebody lies */
    get_ask(g);
    return false;
}

static void bucket_landed(lookup_get *g) {
    lookup_shard *sh = &g->l->shard[g->shard];
    if (g->chain) {
        if (fkv_overflow_check(g->bucket, g->tag))
            search_bucket(g, 0);
        else
            again(g);
        return;
    }
    uint32_t buckets = sh->buckets;
    fkv_bucket_state s = fkv_bucket_check(g->bucket, g->tag, g->number, fkv_hash_bucket_bits(g->hash), &buckets);
    if (__builtin_expect(s != FKV_BUCKET_HERE, 0) && !other_state(g, s, buckets)) return;
    if (sh->layout == g->layout) sh->buckets = buckets;
    search_bucket(g, 0);
}

/* Not the key's extent any more: by the index, as a GET that begins now. */
static void guess_failed(lookup_get *g) {
    lookup *l = g->l;
    if (g->revisits) {
        again(g);
        return;
    }
    l->stats.location_stale++;
    locations_stale(&l->locations, g->hash);
    g->guessed = false;
    g->started_ns = lookup_polled_ns(l);
    read_bucket(g);
}

static void note_location(lookup_get *g) {
    lookup *l = g->l;
    if (g->guessed && !g->revisits) {
        l->stats.location_hits++;
        locations_good(&l->locations, g->hash);
        return;
    }
    locations_learn(&l->locations, g->hash, g->where);
}

static void extent_landed(lookup_get *g) {
    fkv_wanted want = { .key = g->key, .key_bytes = g->key_bytes, .space = g->space, .tag = g->tag };
    fkv_found found;
    switch (fkv_extent_check(g->room.base, g->bytes, &want, &found)) {
    case FKV_READ_OK: break;
    case FKV_READ_OTHER_KEY:
        if (g->guessed)
            guess_failed(g);
        else
            search_bucket(g, g->slot + 1);
        return;
    default:
        if (g->guessed) {
            guess_failed(g);
            return;
        }
        g->l->stats.torn++;
        again(g);
        return;
    }
    note_location(g);
    g->result = (lookup_result){ .codec = found.codec,
                                 .user_flags = found.user_flags,
                                 .version = found.version,
                                 .value_bytes = found.value_bytes,
                                 .expiry_ms = found.expiry_ms };
    g->value = g->room.base + found.value_offset;
    bool expired = found.expiry_ms && session_wall_ms(g->peer, lookup_polled_ns(g->l)) >= found.expiry_ms;
    conclude(g, expired ? FKV_NOT_FOUND : FKV_OK, g->bytes);
}

/* ---- the machine ---- */

void get_run(lookup_get *g) {
    lookup *l = g->l;
    leave(g);
    /* Not later than the first READ is posted; what an answer rests on is compared with later times only. */
    uint64_t now = l->start_ns ? l->start_ns : session_now(l->session);
    shard_readiness r = shard_ready(l, g->shard, now);
    if (r == SHARD_WAIT) {
        if (session_absent(l->session, g->shard))
            get_finish(g, FKV_SHARD_CLOSED);
        else
            get_wait(g);
        return;
    }
    if (r == SHARD_ASK) {
        get_ask(g);
        return;
    }
    lookup_shard *sh = &l->shard[g->shard];
    g->layout = sh->layout;
    g->layout->refs++;
    g->peer = sh->peer;
    g->number = fkv_bucket_of(fkv_hash_bucket_bits(g->hash), sh->buckets);
    g->started_ns = now;
    g->guessed = false;
    if (read_guess(g)) return;
    g->revisits = false;
    read_bucket(g);
}

static void get_free(lookup_get *g) {
    lookup *l = g->l;
    fkv_assert(g->state == GET_DONE && g->pending == 0); /* no READ writes to its buffer any more */
    buffer_give(&l->buffers, &g->room);
    if (g->value_owned) free(g->value);
    if (g->key != g->key_room) free(g->key);
    g->value = NULL;
    g->value_owned = false;
    g->key = g->key_room;
    g->state = GET_FREE;
    list_push_front(&l->free, &g->link);
}

static void feed_starved(lookup *l) {
    fkv_list all;
    list_take_all(&l->starved, &all);
    while (!list_empty(&all)) {
        lookup_get *g = LIST_OF(all.next, lookup_get, link);
        list_remove(&g->link);
        get_run(g);
    }
}

void lookup_release(lookup_get *g) {
    g->released = true;
    if (g->pending) return;
    get_free(g);
    if (!list_empty(&g->l->starved)) feed_starved(g->l);
}

static void landed(lookup_get *g) {
    if (g->state == GET_DONE) {
        lookup *l = g->l;
        leave(g);
        if (g->released) get_free(g);
        if (!list_empty(&l->starved)) feed_starved(l); /* its buffer is free */
        return;
    }
    list_remove(&g->link); /* unposted, when a piece failed before the last was posted */
    if (g->read_status == FAB_SUCCESS) {
        if (g->state == GET_BUCKET)
            bucket_landed(g);
        else
            extent_landed(g);
        return;
    }
    lookup *l = g->l;
    if (g->guessed) locations_forget(&l->locations, g->hash);
    if (g->read_status == FAB_REM_ACCESS_ERR) {
        l->stats.foreign++;
        if (l->shard[g->shard].layout == g->layout) layout_drop(l, g->shard);
    }
    l->stats.retries++;
    if (++g->retries > LOOKUP_RETRIES)
        get_ask(g);
    else if (l->shard[g->shard].peer == g->flew_to)
        get_wait(g); /* its connection is in error: the next one wakes it */
    else
        get_run(g); /* the shard has another owner, whose connection may be there already */
}

/* All its READs have completed, or never will. */
void get_landed(lookup_get *g) {
    lookup *l = g->l;
    list_remove(&g->flying);
    session_peer *roomy = get_window_leave(g);
    landed(g);
    if (roomy) get_window_feed(l, roomy);
}
