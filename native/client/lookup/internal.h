/* internal.h: what the files of native/client/lookup share. Private to the folder.
 *
 *   lookup.c    a lookup's life, the session's hooks      shard.c    is a shard ready to be read? leases; who waits
 *   get.c       the state machine of one GET              layout.c   layouts and segments: made, attached, replaced
 *   direct.c    the whole GET over mapped memory          buffers.c  where READs land
 *   locations.c where extents lay: the location cache               get_read.c, get_start.c
 *   get_window.c    how much is READ from one owner at a time
 */
#ifndef FARKV_CLIENT_LOOKUP_INTERNAL_H
#define FARKV_CLIENT_LOOKUP_INTERNAL_H
#include "../../base/list.h"
#include "../session/timers.h"
#include "../../table/reader.h"
#include "../../table/table.h"
#include "buffers.h"
#include "locations.h"
#include "lookup.h"

enum { KEY_ROOM = 64, POLL_EVERY = 256 };

/* ---- where memory lies ---- */

typedef enum { SEGMENT_NEW, SEGMENT_ATTACHING, SEGMENT_READY, SEGMENT_REFUSED } segment_state;

/* One registered segment, as named by one or several successive layouts of a shard. */
typedef struct lookup_segment {
    fkv_list link; /* lookup.segments */
    uint32_t refs; /* layouts that name it, and an attach under way */
    uint32_t shard, number, tag;
    uint8_t kind;
    uint64_t bytes, addr, rkey;
    segment_state state;
    session_peer *peer;    /* to which it is attached or being attached; NULL: none */
    const uint8_t *direct; /* where it is mapped; NULL: not */
} lookup_segment;

/* What a reader needs of a segment, side by side. */
typedef struct lookup_view {
    const uint8_t *direct;
    uint64_t bytes;
    uint32_t tag;
    uint32_t first;          /* index: number of its first bucket */
    lookup_segment *segment; /* NULL: there is no heap segment of this number */
} lookup_view;

/* Invariant: what a layout names never changes; what is learned later is another layout. */
typedef struct lookup_layout {
    uint32_t refs; /* the shard's, and one for each GET that reads by it */
    uint32_t rail; /* session_peer.rail of the connections that these rkeys are for */
    uint64_t incarnation;
    uint32_t epoch, layout_epoch;
    uint32_t buckets;  /* how many there were when it was made */
    uint32_t capacity; /* buckets that the index segments hold */
    uint32_t index_count, heap_count;
    bool attached;      /* all of its segments are: nothing is left to be asked for */
    lookup_view *index; /* in bucket order */
    lookup_view *heap;  /* by segment number */
} lookup_layout;

typedef struct lookup_shard {
    /* What lookup_direct needs of a shard: one cache line. */
    uint64_t lease_until; /* of the layout's incarnation; 0: none */
    uint64_t renew_at;    /* from then on a reader asks for the lease again */
    session_peer *peer;   /* the owner; NULL: nobody */
    /* where the first index segment is mapped; NULL: this shard cannot be read in place now */
    const uint8_t *index;
    uint32_t index_buckets; /* how many buckets that is */
    uint32_t buckets;       /* how many we know of in all; rises while an incarnation lives */
    uint32_t heap_count;    /* the layout's, 0 when `index` is NULL */
    lookup_view *heap;

    lookup_layout *layout; /* NULL: none */

    /* The rest. */
    uint64_t lease_incarnation; /* what the last lease covered */
    uint64_t lease_granted_until;
    bool listed;       /* by the LEASE reply that is being received */
    bool uncovered;    /* the last LEASE reply did not list it: the owner has to be asked */
    bool attach_again; /* a segment's rkey was still attached under an older layout */
    /* the fabric had no place for a segment: what lies there the owner has to be asked for */
    bool crowded;
    bool outdated; /* a newer layout of the same incarnation is known to exist */
    /* Until when an outdated layout may be used for the index: the end of the last lease that told of no newer one. */
    uint64_t index_until;
    uint32_t lease_layout_epoch; /* as the last lease has it */
    uint64_t uncovered_ns;
    uint64_t layout_request;      /* LAYOUT under way, 0: none */
    fkv_list waiting;             /* GETs that wait for the shard to become ready */
    lookup_region *route_regions; /* of all rails, from lookup_set_route */
    uint32_t route_count, route_epoch, route_layout_epoch, route_buckets;
    uint64_t route_incarnation;
} lookup_shard;

/* ---- a GET ---- */

typedef enum {
    GET_FREE,
    GET_WAITING, /* in its shard's `waiting` */
    GET_STARVED, /* in lookup.starved: no room for its extent; or in its peer's window.waiting */
    GET_BUCKET,  /* a bucket is being READ: the primary one, or one of the chain */
    GET_EXTENT,  /* an extent is being READ */
    GET_ASKING,  /* the owner was asked */
    GET_DONE
} get_state;

struct lookup_get {
    fkv_list link; /* free, waiting, starved, window.waiting, or lookup.unposted */
    /* lookup.flying, from the first piece of a READ to the last: those that wait for room need the peer, too */
    fkv_list flying;
    timer_node deadline;
    lookup *l;
    get_state state;
    bool released; /* the user is done with it; it is freed with its last READ */
    uint8_t retries;
    uint8_t steps; /* from one primary bucket to another */
    bool guessed;  /* GET_EXTENT: at a cached location, or */
    bool revisits; /* at that of an extent whose READ had to wait */
    bool admitted; /* has waited for the window, and is not to wait again */
    uint8_t chain; /* buckets of the chain behind it */
    uint16_t key_bytes, space;
    uint32_t shard;
    uint64_t hash, deadline_ns, held_ns; /* held_ns: session_put_off */
    uint8_t *key;                        /* key_room or of malloc */
    lookup_layout *layout;               /* by which it reads; NULL while it does not */
    session_peer *peer;
    uint64_t started_ns; /* before its first READ was posted, this time round */
    uint32_t number;     /* of the primary bucket */
    /* The bucket that a READ found SETTLING, and when its try started: another READ of it by the same try counts. */
    uint32_t settling_number;
    uint64_t settling_started_ns;
    location where;     /* of the extent */
    uint32_t waits_for; /* in window.waiting: bytes of the extent */
    uint32_t counted;   /* of window.bytes those that are this GET's, while it is in lookup.flying */
    int slot;           /* that led to the extent */
    uint32_t tag;       /* of the segment that is being READ */

    fkv_bucket *bucket;    /* where buckets land: its own part of lookup.bucket_chunk */
    buffer room;           /* where the extent lands */
    uint64_t remote, rkey; /* the READ in pieces: bytes from `remote` on */
    uint32_t bytes, posted, pending;
    uint64_t read_number;  /* of this READ: completions of earlier ones are nobody's */
    uint64_t under_way[2]; /* pieces, a bit each: `pending` of them */
    session_peer *flew_to;
    fab_wc_status read_status;
    /* GET_BUCKET: the peer may go on to an extent of so many bytes, into `room`; 0: it is not asked to */
    uint32_t wanted_next;
    uint32_t landed_next; /* and that so many came */

    uint64_t request; /* GET_ASKING */
    lookup_result result;
    uint8_t *value;
    bool value_owned; /* of malloc */
    void *user;
    uint8_t key_room[KEY_ROOM];
};

struct lookup {
    session *session;
    fkv_seed seed;
    uint32_t shards, seed_mark; /* shards: those of the session */
    fkv_shard_range spread;     /* those that keys are in */
    uint32_t since_poll;        /* direct GETs since the completion queues were looked at */
    uint64_t looked_ns;         /* the time after the last look at mapped memory: the next one began later */
    bool closing;
    bool attach_again; /* some shard's is set */
    lookup_shard *shard;
    lookup_config config;
    lookup_get *table;
    uint32_t capacity, places; /* places: of them, those that were ever in use; the others are zeros */
    fkv_list free, starved, unposted, flying;
    fkv_list segments;
    buffer_pool buffers;
    buffer_chunk *bucket_chunk;
    locations locations;
    /* room for extents that followed READs bring; the largest of late, among so many */
    uint32_t next_room, next_most, next_seen;
    uint64_t start_ns; /* while lookup_start runs: the time it was given; else 0 */
    /* the time after the fab_poll whose completions are being handed out; 0: not yet asked */
    uint64_t polled_ns;
    lookup_stats stats, reported; /* reported: of `stats` what owners were sent */
};

static inline uint64_t lookup_key_hash(const lookup *l, const lookup_key *k) {
    return k->hashed ? k->hash : fkv_hash_key(&l->seed, k->space, k->bytes, k->count);
}

/* ---- shard.c ---- */
typedef enum { SHARD_READY, SHARD_WAIT, SHARD_ASK } shard_readiness;
/* READY: its layout, lease and index can be used now. WAIT: what is missing is on its way. ASK: the owner must be
 * asked. */
shard_readiness shard_ready(lookup *l, uint32_t shard, uint64_t now);
void shard_wake(lookup *l, uint32_t shard);        /* runs the GETs that wait */
void shard_view(lookup *l, uint32_t shard);        /* brings the line that lookup_direct reads up to date */
void shard_ask_waiting(lookup *l, uint32_t shard); /* what waits asks the owner instead */
void shard_lease(void *ctx, session_peer *p, const fkv_lease_shard *list, uint32_t n, uint64_t until_ns,
                 uint64_t renew_ns);
void shard_lease_end(void *ctx, session_peer *p, fkv_status s);
void shard_attend(lookup *l, lookup_shard *sh, uint64_t now); /* from inside loops over lookup_direct */

/* ---- layout.c ---- */
void layout_release(lookup_layout *y);
void layout_refresh(lookup *l, uint32_t shard);    /* asks the owner, unless that is under way */
void layout_drop(lookup *l, uint32_t shard);       /* what is known is wrong: none until the owner was asked */
bool layout_from_route(lookup *l, uint32_t shard); /* true: there is one now */
bool layout_attach(lookup *l, uint32_t shard);     /* true: every index segment is attached */
void layout_attached(void *ctx, session_peer *p, const fab_wc *wc);
void layout_link_lost(lookup *l, session_peer *p);
static inline lookup_view *layout_index_view(lookup_layout *y, uint32_t bucket) {
    uint32_t i = y->index_count;
    while (i-- > 0)
        if (bucket >= y->index[i].first) return bucket < y->capacity ? &y->index[i] : NULL;
    return NULL;
}
static inline lookup_view *layout_heap_view(lookup_layout *y, uint32_t number) {
    return number < y->heap_count && y->heap[number].segment ? &y->heap[number] : NULL;
}

/* ---- get.c ---- */
void get_run(lookup_get *g); /* in no list */
void get_ask(lookup_get *g);
void get_wait(lookup_get *g); /* until its shard can be read again */
void get_finish(lookup_get *g, fkv_status status);
void get_landed(lookup_get *g); /* all READs of it have completed, or never will */

/* ---- get_window.c ---- */
void get_window_open(session_peer *p);
void get_window_close(lookup *l, session_peer *p); /* the connection is gone: what waits runs */
enum { WINDOW_COUNTED = 4 << 10 }; /* bytes; smaller READs are no burden, as many as a client may have */
bool get_window_has_room(const lookup_get *g, uint32_t bytes);
static inline bool get_window_admits(const lookup_get *g, uint32_t bytes) {
    return bytes < WINDOW_COUNTED || get_window_has_room(g, bytes);
}
void get_window_wait(lookup_get *g, uint32_t bytes);  /* runs again, from g->where, when there is room */
void get_window_enter(lookup_get *g, uint32_t bytes); /* at least WINDOW_COUNTED */
session_peer *get_window_left(lookup_get *g);
/* The peer whose window has room since; NULL: none. Whoever is given one calls get_window_feed with it at the end. */
static inline session_peer *get_window_leave(lookup_get *g) { return g->counted ? get_window_left(g) : NULL; }
void get_window_feed(lookup *l, session_peer *p);
/* An extent of g came in time, of at least WINDOW_COUNTED; or something too late, by fkv_get_life_ns() or its lease. */
void get_window_good(const lookup_get *g);
void get_window_late(const lookup_get *g);

/* ---- get_start.c ---- */
fkv_status get_table(lookup *l);

/* ---- get_read.c ---- */
/* GET_BUCKET or GET_EXTENT */
void get_read(lookup_get *g, get_state state, const lookup_view *v, uint64_t offset, uint32_t bytes);
void get_read_seen(lookup *l, uint32_t extent_bytes); /* a bucket led to an extent of this size */
void get_read_done(void *ctx, session_peer *p, const fab_wc *wc);
void get_link_lost(lookup *l, session_peer *p);
void get_post_rest(lookup *l); /* what waited for room in a queue */

static inline uint64_t lookup_polled_ns(lookup *l) {
    if (!l->polled_ns) l->polled_ns = session_now(l->session);
    return l->polled_ns;
}

#endif
