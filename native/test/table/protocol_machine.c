/* protocol_machine.c: the protocol of layout.h as a small machine, and every interleaving of it.
 *
 * One key. An owner runs a script of PUTs, DELETEs and splits; two readers GET, with a location cache; the owner may
 * lose its lease at any moment and stay half way through a change, with its memory still readable, while a second owner
 * takes over. Every step below is one access to shared memory, which is atomic: a checksum or a sequence lock makes the
 * READ of an extent whole or refused. Every state that can be reached is visited (search.h).
 *
 *   owner, PUT       begin: take an extent that may be reused; the change is safe at the backups
 *                    write it: PENDING    kill the old one: DEAD    store the slot    LIVE    acknowledge
 *   owner, DELETE    begin                kill the old one: DEAD    clear the slot            acknowledge
 *   owner, split     copy the slot to bucket b', publish the level in bucket b; later, between changes, clear b's slot
 *   reader, GET      begin
 *                    READ the extent at the cached location, take it if LIVE; else
 *                    READ the bucket (its header and its slot, in either order), go to b' if the level says so;
 *                    no slot is a miss; else READ the extent; not LIVE: start again
 *                    then compare the lease: if it has run out, discard, go to the new owner, without the cached
 *                    location: its memory has another tag, and other size classes
 *
 * What is checked, at the end of every GET: that the results are those of one register (linearizability). The changes
 * have sequence numbers in order; a GET may return the state after change i if i was begun before the GET's end, and is
 * not older than any change acknowledged, nor any state returned by a GET that ended, before the GET's begin. The least
 * such i is taken, which constrains later GETs least.
 *
 * Quarantine is modelled as what it achieves: an extent (or a moved slot) is not touched while a GET is under way that
 * began before the change that gave it up was done. With `no_quarantine` extents are reused at once, for this same key:
 * the other steps must do alone, as they must when a cached location outlives the quarantine.
 */
#include "protocol_machine.h"
#include <string.h>

/* ---- state; every field a byte, so that states are compared as bytes ---- */
enum { EXTENTS = 2, READERS = 2, OWNERS = 2, NONE = 0 };
enum { FREE = 0, PENDING, LIVE, DEAD };
typedef struct memory {
    uint8_t slot[2];  /* of bucket b and b': extent + 1, or NONE */
    uint8_t level;    /* in b's header: 1 = split */
    uint8_t to_clear; /* b's slot was copied and is still there */
    uint8_t state[EXTENTS], value[EXTENTS];
} memory;
/* step 0: between changes; old, new: extent + 1 */
typedef struct owner {
    uint8_t step, kind, sequence, old, new;
} owner;
enum reader_at { RESTING = 0, CHECKED, CACHED, BUCKET, NEED_SLOT, NEED_HEADER, EXTENT, LEASE };
typedef struct reader {
    uint8_t at, gets_left;
    uint8_t owner, cached, knows_split; /* kept from GET to GET */
    uint8_t slot, header;               /* of this GET */
    uint8_t result;                     /* sequence + 1 of the value; MISS; AGAIN */
    uint8_t low;                        /* no older state may be returned */
    uint8_t holds[OWNERS];              /* extents given up during this GET (bits), and moved slots (bit 7) */
} reader;
enum { MISS = 100, AGAIN };
typedef struct state {
    memory memory[OWNERS];
    owner owner[OWNERS];
    reader reader[READERS];
    uint8_t next_op, begun, acknowledged, returned;
    uint8_t absent[8]; /* by sequence: the key is absent after this change */
    uint8_t lease_over, taken_over;
} state;

typedef struct machine {
    search *s;
    const protocol *p;
    const setting *set;
} machine;

static const char *who_is(int who) {
    static const char *const name[] = { "owner", "new owner", "reader A", "reader B", "time" };
    return name[who];
}
static void reach(const machine *m, const state *next, const char *what, int who, int number) {
    search_reach(m->s, next, who_is(who), what, number);
}

/* ---- the owner ---- */
static bool may_reuse(const machine *s, const state *x, int o, int e) {
    const memory *m = &x->memory[o];
    if (m->state[e] == LIVE || m->state[e] == PENDING) return false;
    if (s->set->no_quarantine) return true;
    for (int r = 0; r < READERS; r++)
        if (x->reader[r].holds[o] >> e & 1) return false;
    return true;
}
static void give_up(state *x, int o, int bit) {
    for (int r = 0; r < READERS; r++)
        if (x->reader[r].at != RESTING) x->reader[r].holds[o] |= (uint8_t)(1 << bit);
}
/* The slot that the owner works on. */
static uint8_t *current_slot(const machine *s, memory *m) {
    return &m->slot[s->p->changes_after_split_go_to_the_old_bucket ? 0 : m->level];
}

static void begin_change(const machine *s, const state *x, int o) {
    op_kind kind = s->set->script[x->next_op];
    state n = *x;
    n.next_op++;
    memory *m = &n.memory[o];
    if (kind == SPLIT) {
        n.owner[o] = (owner){ .step = 1, .kind = SPLIT };
        reach(s, &n, "begins a split", o, 0);
        return;
    }
    n.owner[o] = (owner){ .step = 1, .kind = (uint8_t)kind, .sequence = ++n.begun, .old = *current_slot(s, m) };
    if (kind == DELETE) {
        n.absent[n.begun] = 1;
        reach(s, &n, "begins DELETE", o, n.begun);
        return;
    }
    for (int e = 0; e < EXTENTS; e++) {
        if (!may_reuse(s, x, o, e)) continue;
        n.owner[o].new = (uint8_t)(e + 1);
        reach(s, &n, "begins PUT", o, n.begun);
    }
}

/* The steps of a PUT by name, so that a switch can reorder them. */
typedef enum { WRITE, KILL, STORE_SLOT, MAKE_LIVE, ACKNOWLEDGE } put_step;
static put_step put_order(const protocol *p, int step) {
    static const put_step order[3][5] = {
        { WRITE, KILL, STORE_SLOT, MAKE_LIVE, ACKNOWLEDGE },
        { WRITE, MAKE_LIVE, KILL, STORE_SLOT, ACKNOWLEDGE },
        { WRITE, KILL, MAKE_LIVE, STORE_SLOT, ACKNOWLEDGE },
    };
    return order[p->live_before_dead ? 1 : p->live_before_slot ? 2 : 0][step - 1];
}
static void kill_old(state *x, int o) {
    int e = x->owner[o].old - 1;
    if (e < 0) return;
    x->memory[o].state[e] = DEAD;
}
static void acknowledge(const machine *s, state *n, int o) {
    /* outside its lease the owner answers nothing: the change is indeterminate */
    if (o == 0 && n->lease_over) return;
    uint8_t sequence = n->owner[o].sequence;
    if (n->owner[o].old) give_up(n, o, n->owner[o].old - 1);
    n->acknowledged = sequence;
    n->owner[o] = (owner){ 0 };
    reach(s, n, "acknowledges change", o, sequence);
}
static void step_put(const machine *s, const state *x, int o) {
    state n = *x;
    memory *m = &n.memory[o];
    owner *w = &n.owner[o];
    int e = w->new - 1;
    switch (put_order(s->p, w->step++)) {
    case WRITE:
        m->state[e] = s->p->without_pending ? LIVE : PENDING;
        m->value[e] = w->sequence;
        reach(s, &n, s->p->without_pending ? "writes the extent as LIVE:" : "writes the extent as PENDING:", o,
              w->sequence);
        break;
    case KILL:
        kill_old(&n, o);
        reach(s, &n, "marks the old extent DEAD", o, 0);
        break;
    case STORE_SLOT:
        *current_slot(s, m) = w->new;
        reach(s, &n, "stores the slot", o, 0);
        break;
    case MAKE_LIVE:
        m->state[e] = LIVE;
        reach(s, &n, "marks the extent LIVE:", o, w->sequence);
        break;
    case ACKNOWLEDGE: acknowledge(s, &n, o);
    }
}
static void step_delete(const machine *s, const state *x, int o) {
    state n = *x;
    int step = n.owner[o].step++;
    if (step == 3) {
        acknowledge(s, &n, o);
    } else if ((step == 1) != s->p->slot_cleared_before_dead) {
        kill_old(&n, o);
        reach(s, &n, "marks the extent DEAD", o, 0);
    } else {
        *current_slot(s, &n.memory[o]) = NONE;
        reach(s, &n, "clears the slot", o, 0);
    }
}
static void step_split(const machine *s, const state *x, int o) {
    state n = *x;
    memory *m = &n.memory[o];
    if (n.owner[o].step++ == 1) {
        m->slot[1] = m->slot[0];
        reach(s, &n, "copies the slot to b'", o, 0);
        return;
    }
    m->level = 1;
    m->to_clear = 1;
    n.owner[o] = (owner){ 0 };
    give_up(&n, o, 7);
    reach(s, &n, "publishes the new level in b", o, 0);
}
static void clear_moved(const machine *s, const state *x, int o) {
    if (!s->p->split_clears_at_once)
        for (int r = 0; r < READERS; r++)
            if (x->reader[r].holds[o] >> 7 & 1) return;
    state n = *x;
    n.memory[o].slot[0] = NONE;
    n.memory[o].to_clear = 0;
    reach(s, &n, "clears the moved slot in b", o, 0);
}
/* An owner that was stopped may go on with what it had begun; outside its lease it begins nothing. */
static void step_owner(const machine *s, const state *x, int o) {
    if (o == 1 && !x->taken_over) return;
    switch (x->owner[o].step == 0 ? NO_OP : (op_kind)x->owner[o].kind) {
    case PUT: step_put(s, x, o); return;
    case DELETE: step_delete(s, x, o); return;
    case SPLIT: step_split(s, x, o); return;
    case NO_OP: break;
    }
    if (x->memory[o].to_clear) clear_moved(s, x, o);
    bool may_begin = o == 1 || (!x->lease_over && !x->taken_over);
    if (may_begin && s->set->script[x->next_op] != NO_OP) begin_change(s, x, o);
}

/* ---- time: leases end, another owner takes over what the backups hold, or an empty table where there are none ---- */
static void step_time(const machine *s, const state *x) {
    if (!s->set->owner_may_stop) return;
    state n = *x;
    if (!x->lease_over) {
        n.lease_over = 1;
        reach(s, &n, "the owner's lease, and with it every reader's, runs out", 4, 0);
        n = *x;
    }
    if (x->taken_over || (!x->lease_over && !s->p->takeover_before_leases_end)) return;
    if (s->set->restart_empties) {
        n.absent[++n.begun] = 1;
        n.acknowledged = n.begun;
        if (s->set->imitation) n.memory[1].state[0] = LIVE, n.memory[1].value[0] = 1; /* no slot leads there */
    } else if (n.begun > 0 && !n.absent[n.begun]) {
        n.memory[1].slot[0] = 1;
        n.memory[1].state[0] = LIVE;
        n.memory[1].value[0] = n.begun;
    }
    n.taken_over = 1;
    reach(s, &n, s->set->restart_empties ? "serves, with an empty table" : "serves, from the state after change", 1,
          n.begun);
}

/* ---- a reader ---- */
static void finish(const machine *s, const state *x, int r) {
    state n = *x;
    reader *q = &n.reader[r];
    int i = q->low;
    if (q->result == MISS)
        while (i <= n.begun && !n.absent[i]) i++;
    else
        i = q->result - 1 >= i ? q->result - 1 : n.begun + 1;
    const char *what = q->result == MISS ? "returns a miss" : "returns the value of change";
    int number = q->result == MISS ? 0 : q->result - 1;
    bool wrong = i > n.begun;
    if (!wrong && i > n.returned) n.returned = (uint8_t)i;
    reader rests = {
        .gets_left = (uint8_t)(q->gets_left - 1), .owner = q->owner, .cached = q->cached, .knows_split = q->knows_split
    };
    *q = rests.gets_left ? rests : (reader){ 0 }; /* what will not be used again must not tell states apart */
    if (wrong)
        search_violate(s->s, who_is(2 + r), what, number);
    else
        reach(s, &n, what, 2 + r, number);
}
static void move_to_new_owner(const machine *s, const state *x, int r) {
    if (!x->taken_over) return; /* it waits */
    state n = *x;
    reader *q = &n.reader[r];
    uint8_t cached = s->p->cached_location_outlives_its_memory ? q->cached : NONE;
    *q = (reader){
        .at = cached ? CACHED : BUCKET, .gets_left = q->gets_left, .owner = 1, .cached = cached, .low = q->low
    };
    reach(s, &n, "finds its lease over, discards, goes to the new owner", 2 + r, 0);
}
static void check_lease(const machine *s, const state *x, int r) {
    const reader *q = &x->reader[r];
    bool after = !s->p->without_lease_check && !s->p->lease_checked_before_get && !s->p->lease_checked_before_read;
    if (after && q->owner == 0 && x->lease_over) {
        move_to_new_owner(s, x, r);
    } else if (q->result == AGAIN) {
        state n = *x;
        n.reader[r].at = BUCKET;
        reach(s, &n, "starts again at the index", 2 + r, 0);
    } else {
        finish(s, x, r);
    }
}
static void read_extent(const machine *s, const state *x, int r, int location, bool cached) {
    state n = *x;
    reader *q = &n.reader[r];
    const memory *m = &n.memory[q->owner];
    int e = location - 1;
    bool take = m->state[e] == LIVE || (s->p->reader_takes_dead && m->state[e] == DEAD);
    q->at = LEASE;
    q->result = take ? (uint8_t)(m->value[e] + 1) : AGAIN;
    q->slot = q->header = 0;
    q->cached = take ? (uint8_t)location : NONE;
    reach(s, &n,
          cached ? (take ? "READs LIVE at its cached location: value" : "READs at its cached location: not LIVE")
                 : (take ? "READs the extent: LIVE, value" : "READs the extent: not LIVE"),
          2 + r, take ? m->value[e] : 0);
}
/* Header and slot of bucket b are known now. */
static void bucket_read(const machine *s, state *n, int r, const char *what) {
    reader *q = &n->reader[r];
    if (q->header == 1) {
        q->knows_split = 1;
        q->at = BUCKET;
        q->slot = q->header = 0;
    } else if (q->slot == NONE) {
        q->at = LEASE;
        q->result = MISS;
    } else {
        q->at = EXTENT;
    }
    reach(s, n, what, 2 + r, 0);
}
static void read_bucket(const machine *s, const state *x, int r) {
    state n = *x;
    reader *q = &n.reader[r];
    const memory *m = &x->memory[q->owner];
    if (q->at == NEED_SLOT || q->at == NEED_HEADER) {
        bool slot = q->at == NEED_SLOT;
        if (slot)
            q->slot = m->slot[0];
        else
            q->header = m->level;
        bucket_read(s, &n, r, slot ? "READs b's slot" : "READs b's header");
        return;
    }
    if (q->knows_split) {
        q->slot = m->slot[1];
        bucket_read(s, &n, r, "READs bucket b'");
        return;
    }
    q->header = m->level;
    q->at = NEED_SLOT;
    reach(s, &n, m->level ? "READs b's header: split" : "READs b's header: not split", 2 + r, 0);
    n = *x;
    q->slot = m->slot[0];
    q->at = NEED_HEADER;
    reach(s, &n, m->slot[0] ? "READs b's slot" : "READs b's slot: empty", 2 + r, 0);
}
static void begin_get(const machine *s, const state *x, int r) {
    state n = *x;
    reader *q = &n.reader[r];
    bool lease_over = q->owner == 0 && x->lease_over && q->at != CHECKED;
    q->low = n.acknowledged > n.returned ? n.acknowledged : n.returned;
    q->at = q->cached ? CACHED : BUCKET;
    if ((s->p->lease_checked_before_read || s->p->lease_checked_before_get) && lease_over)
        move_to_new_owner(s, &n, r);
    else
        reach(s, &n, "begins a GET", 2 + r, 0);
}
static void step_reader(const machine *s, const state *x, int r) {
    const reader *q = &x->reader[r];
    state n = *x;
    switch ((enum reader_at)q->at) {
    case RESTING:
        if (!q->gets_left) return;
        if (s->p->lease_checked_before_get && !(q->owner == 0 && x->lease_over)) {
            n.reader[r].at = CHECKED;
            reach(s, &n, "finds its lease running", 2 + r, 0);
            return;
        }
        begin_get(s, x, r);
        return;
    case CHECKED: begin_get(s, x, r); return;
    case CACHED: read_extent(s, x, r, q->cached, true); return;
    case EXTENT: read_extent(s, x, r, q->slot, false); return;
    case BUCKET:
    case NEED_SLOT:
    case NEED_HEADER: read_bucket(s, x, r); return;
    case LEASE: check_lease(s, x, r); return;
    }
}

/* ---- exploring ---- */
search *explore(const protocol *p, const setting *set) {
    state x;
    memset(&x, 0, sizeof x);
    x.absent[0] = 1;
    for (int r = 0; r < READERS; r++) x.reader[r].gets_left = (uint8_t)set->gets[r];
    machine m = { search_new(&x, sizeof x), p, set };
    while (search_next(m.s, &x)) {
        bool watched = false;
        for (int r = 0; r < READERS; r++) watched |= x.reader[r].at != RESTING || x.reader[r].gets_left;
        if (!watched) continue;
        for (int o = 0; o < OWNERS; o++) step_owner(&m, &x, o);
        for (int r = 0; r < READERS; r++) step_reader(&m, &x, r);
        step_time(&m, &x);
    }
    return m.s;
}
