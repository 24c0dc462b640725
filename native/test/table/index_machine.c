/* index_machine.c: growing and shrinking the index, as layout.h draws it, as a small machine.
 *
 * Two buckets: b, and its image b', which exists while b is split. One key, which b' holds then, and b else. An owner
 * runs a script of changes, splits, merges and retirements of the memory of b'; two readers GET. Every step below is
 * one access to shared memory. A READ of a bucket is two of them, word 0 and the slot, in either order; what a chain
 * adds is more slots.
 *
 *   owner, change    one step: protocol_machine.c has searched the orders within it
 *   owner, split     copy the slot to b'; publish b'; publish the new level in b; after the quarantine: clear b's slot.
 *                    b' may be split further, into itself and a third bucket
 *   owner, merge     copy the slot to b; publish the old level in b, SETTLING; publish b' as MERGED;
 *                    after the quarantine: SETTLING ends; the slot of b' is cleared, and the number may be used again
 *   owner, retire    the memory of b' goes; the next split has new memory, which readers find under a new layout only.
 *                    Until then nothing is written there, which a reader takes for foreign memory
 *   reader, GET      READ the bucket; it says: here, in the other bucket, or READ it again (SETTLING);
 *                    no slot is a miss; else READ the extent; not the live one: another try, from the beginning
 *   reader, layout   at any time between two READs it may learn of the new memory, and begins another try
 *
 * What is checked, at the end of every GET: that the results are those of one register (linearizability), as in
 * protocol_machine.c. The quarantine is modelled as what it achieves: nothing that waits is done while a try is under
 * way that began before.
 */
#include "index_machine.h"
#include <string.h>

/* ---- state; every field a byte ---- */
enum { B = 0, IMAGE = 1, LIVES = 3, READERS = 2, CHANGES = 6 };
enum { PLAIN = 0, SETTLING, MERGED };
/* What waits for the quarantine, a bit each. */
enum { CLEAR_MOVED = 1, SETTLE_B = 2, CLEAR_IMAGE = 4, SETTLE_IMAGE = 8 };
typedef struct bucket {
    uint8_t level; /* b: 1 = split. b': 1, 2 = split further; 0 = never used */
    uint8_t mark;
    uint8_t slot; /* the sequence of the change that made the extent; 0 = empty */
} bucket;
enum reader_at { RESTING = 0, BUCKET, NEED_SLOT, NEED_WORD, EXTENT };
typedef struct reader {
    uint8_t at, gets_left;
    uint8_t at_image, life;    /* which bucket it goes to, in which memory of b'; kept from GET to GET */
    uint8_t level, mark, slot; /* of this READ */
    uint8_t saw;               /* a bit for each bucket that it saw SETTLING during this try */
    uint8_t low;               /* no older state may be returned */
    uint8_t holds;             /* what this try keeps from being done */
} reader;
typedef struct state {
    bucket b, image[LIVES];
    reader reader[READERS];
    uint8_t step, next_op;
    uint8_t life; /* the memory of b' */
    uint8_t waits;
    uint8_t used; /* the number of b' was in use before: a reader may go there whatever b says now */
    uint8_t live; /* the sequence of the live extent; 0: none */
    uint8_t begun, returned;
    uint8_t absent[CHANGES + 1]; /* by sequence: the key is absent after this change */
} state;
typedef struct machine {
    search *s;
    const index_protocol *p;
    const index_setting *set;
} machine;
static const char *const owner_name = "owner";
static const char *const reader_name[READERS] = { "reader A", "reader B" };

/* ---- the owner ---- */
static void owner_reaches(const machine *m, const state *n, const char *what, int number) {
    search_reach(m->s, n, owner_name, what, number);
}
static void wait_for(state *x, int what) {
    x->waits |= (uint8_t)what;
    for (int r = 0; r < READERS; r++)
        if (x->reader[r].at != RESTING) x->reader[r].holds |= (uint8_t)what;
}
static bool is_due(const state *x, int what) {
    if (!(x->waits & what)) return false;
    for (int r = 0; r < READERS; r++)
        if (x->reader[r].holds & what) return false;
    return true;
}
static uint8_t *slot_of_key(state *x) { return x->b.level ? &x->image[x->life].slot : &x->b.slot; }

static void change(const machine *m, const state *x, bool put) {
    state n = *x;
    n.next_op++;
    n.begun++;
    n.absent[n.begun] = !put;
    n.live = put ? n.begun : 0;
    *slot_of_key(&n) = n.live;
    owner_reaches(m, &n, put ? "makes PUT" : "makes DELETE", n.begun);
}

static bool may_split(const machine *m, const state *x) {
    if (x->b.level == 1) return false;
    return !(x->waits & CLEAR_IMAGE) || m->p->number_used_again_before_it_was_cleared;
}
static void split(const machine *m, const state *x) {
    state n = *x;
    bucket *image = &n.image[x->life];
    switch (n.step++) {
    case 0:
        image->slot = n.b.slot;
        owner_reaches(m, &n, "splits: copies the slot to b'", 0);
        return;
    case 1: {
        bool used = m->p->number_in_new_memory_counts_as_new ? image->level > 0 : n.used;
        n.used = 1;
        image->level = 1;
        image->mark = used && !m->p->number_used_again_without_settling ? SETTLING : PLAIN;
        if (used) wait_for(&n, SETTLE_IMAGE);
        owner_reaches(m, &n, image->mark == SETTLING ? "publishes b', SETTLING" : "publishes b'", 0);
        return;
    }
    default:
        n.b.level = 1;
        if (n.b.slot) wait_for(&n, CLEAR_MOVED);
        n.step = 0;
        n.next_op++;
        owner_reaches(m, &n, "publishes the new level in b", 0);
    }
}

/* The key stays in b', whose mark must stay too. */
static void split_image(const machine *m, const state *x) {
    state n = *x;
    n.next_op++;
    n.image[x->life].level++;
    if (m->p->split_ends_settling) n.image[x->life].mark = PLAIN;
    owner_reaches(m, &n, "splits b' further", 0);
}

static bool may_merge(const machine *m, const state *x) {
    if (x->b.level == 0) return false;
    if (x->waits & CLEAR_MOVED && !m->p->merge_while_slots_move) return false;
    return !(x->waits & SETTLE_IMAGE) || m->p->merge_of_a_settling_bucket;
}
typedef enum { COPY, PUBLISH, MARK } merge_step;
static void merge(const machine *m, const state *x) {
    static const merge_step right[] = { COPY, PUBLISH, MARK }, wrong[] = { PUBLISH, MARK, COPY };
    state n = *x;
    bucket *image = &n.image[x->life];
    merge_step step = (m->p->merged_before_the_copy ? wrong : right)[n.step++];
    const char *what = "merges: copies the slot to b";
    if (step == COPY) {
        n.b.slot = image->slot;
    } else if (step == PUBLISH) {
        n.b.level = 0;
        n.b.mark = m->p->merge_without_settling ? PLAIN : SETTLING;
        what = "publishes the old level in b";
    } else {
        image->mark = MERGED;
        what = "marks b' as MERGED";
    }
    if (n.step == 3) {
        n.step = 0;
        n.next_op++;
        wait_for(&n, SETTLE_B | CLEAR_IMAGE);
    }
    owner_reaches(m, &n, what, 0);
}

static void retire(const machine *m, const state *x) {
    if (x->b.level == 1 || x->waits & CLEAR_IMAGE || x->life + 1 == LIVES) return;
    state n = *x;
    n.next_op++;
    n.life++;
    owner_reaches(m, &n, "retires the memory of b'", 0);
}

/* What the quarantine lets go. */
static void clear(const machine *m, const state *x) {
    bool at_once = m->p->settling_ends_at_once;
    state n = *x;
    if (is_due(x, CLEAR_MOVED)) {
        n.waits &= (uint8_t)~CLEAR_MOVED;
        n.b.slot = 0;
        owner_reaches(m, &n, "clears the moved slot in b", 0);
        n = *x;
    }
    if (is_due(x, SETTLE_B) || (at_once && x->waits & SETTLE_B)) {
        n.waits &= (uint8_t)~SETTLE_B;
        n.b.mark = PLAIN;
        owner_reaches(m, &n, "ends SETTLING in b", 0);
        n = *x;
    }
    if (is_due(x, SETTLE_IMAGE) || (at_once && x->waits & SETTLE_IMAGE)) {
        n.waits &= (uint8_t)~SETTLE_IMAGE;
        n.image[x->life].mark = PLAIN;
        owner_reaches(m, &n, "ends SETTLING in b'", 0);
        n = *x;
    }
    if (is_due(x, CLEAR_IMAGE) || (m->p->merged_slots_cleared_at_once && x->waits & CLEAR_IMAGE)) {
        n.waits &= (uint8_t)~CLEAR_IMAGE;
        n.image[x->life].slot = 0;
        owner_reaches(m, &n, "clears the merged slot in b'", 0);
    }
}

static void step_owner(const machine *m, const state *x) {
    index_op op = m->set->script[x->next_op];
    if (op == INDEX_SPLIT && (x->step || may_split(m, x))) split(m, x);
    if (op == INDEX_MERGE && (x->step || may_merge(m, x))) merge(m, x);
    if (op == INDEX_PUT || op == INDEX_DELETE) change(m, x, op == INDEX_PUT);
    if (op == INDEX_SPLIT_IMAGE) split_image(m, x);
    if (op == INDEX_RETIRE) retire(m, x);
    if (x->step == 0) clear(m, x);
}

/* ---- a reader ---- */
static void reader_reaches(const machine *m, const state *n, int r, const char *what, int number) {
    search_reach(m->s, n, reader_name[r], what, number);
}
static void forget_read(reader *q) { q->level = q->mark = q->slot = 0; }
/* A try has the life of a GET: the quarantine waits for none that began later. */
static void begin_try(const machine *m, reader *q) {
    forget_read(q);
    q->at = BUCKET;
    q->holds = 0;
    if (!m->p->reader_keeps_what_it_saw_for_another_try) q->saw = 0;
}

static void finish(const machine *m, const state *x, int r, uint8_t value) {
    state n = *x;
    reader *q = &n.reader[r];
    int i = q->low;
    if (value)
        i = value >= i ? value : n.begun + 1;
    else
        while (i <= n.begun && !n.absent[i]) i++;
    bool wrong = i > n.begun;
    if (!wrong && i > n.returned) n.returned = (uint8_t)i;
    *q = (reader){ .gets_left = (uint8_t)(q->gets_left - 1), .at_image = q->at_image, .life = q->life };
    if (!q->gets_left) *q = (reader){ 0 }; /* what will not be used again must not tell states apart */
    const char *what = value ? "returns the value of change" : "returns a miss";
    if (wrong)
        search_violate(m->s, reader_name[r], what, value);
    else
        reader_reaches(m, &n, r, what, value);
}

/* Word 0 and the slot are known now. */
static void bucket_read(const machine *m, state *n, int r, const char *what) {
    reader *q = &n->reader[r];
    uint8_t here = q->at_image, bit = (uint8_t)(1 << here), slot = q->slot, level = q->level, mark = q->mark;
    forget_read(q);
    q->at = BUCKET;
    if (here && mark == MERGED && !m->p->reader_takes_merged_slots) {
        q->at_image = 0;
    } else if (here && level == 0) { /* foreign: nothing was ever written there */
        q->at_image = 0;
        begin_try(m, q);
    } else if (!here && level == 1) {
        q->at_image = 1;
    } else if (mark == SETTLING && !(q->saw & bit) && !m->p->reader_believes_a_settling_bucket) {
        q->saw |= bit;
    } else {
        q->at = EXTENT;
        q->slot = slot;
    }
    reader_reaches(m, n, r, what, 0);
}
static void read_bucket(const machine *m, const state *x, int r) {
    state n = *x;
    reader *q = &n.reader[r];
    const bucket *from = q->at_image ? &x->image[q->life] : &x->b;
    if (q->at != NEED_WORD) {
        q->slot = q->at == NEED_SLOT || q->at == BUCKET ? from->slot : q->slot;
        if (q->at == NEED_SLOT) {
            bucket_read(m, &n, r, q->at_image ? "READs the slot of b'" : "READs the slot of b");
            return;
        }
        q->at = NEED_WORD;
        reader_reaches(m, &n, r, q->at_image ? "READs the slot of b'" : "READs the slot of b", 0);
        n = *x;
    }
    q->level = from->level;
    q->mark = from->mark;
    const char *what = q->at_image ? "READs word 0 of b'" : "READs word 0 of b";
    if (q->at == NEED_WORD) {
        bucket_read(m, &n, r, what);
        return;
    }
    q->at = NEED_SLOT;
    reader_reaches(m, &n, r, what, 0);
}
static void read_extent(const machine *m, const state *x, int r) {
    const reader *q = &x->reader[r];
    if (q->slot == 0 || q->slot == x->live) {
        finish(m, x, r, q->slot);
        return;
    }
    state n = *x;
    begin_try(m, &n.reader[r]);
    reader_reaches(m, &n, r, "READs the extent: not LIVE; begins another try", 0);
}
static void step_reader(const machine *m, const state *x, int r) {
    state n = *x;
    reader *q = &n.reader[r];
    switch ((enum reader_at)q->at) {
    case RESTING:
        if (!q->gets_left) return;
        q->low = n.begun > n.returned ? n.begun : n.returned;
        q->saw = 0;
        begin_try(m, q);
        reader_reaches(m, &n, r, "begins a GET", 0);
        return;
    case BUCKET:
        read_bucket(m, x, r);
        if (q->life == x->life) return;
        q->life = x->life;
        begin_try(m, q);
        reader_reaches(m, &n, r, "learns of the new memory; begins another try", 0);
        return;
    case NEED_SLOT:
    case NEED_WORD: read_bucket(m, x, r); return;
    case EXTENT: read_extent(m, x, r); return;
    }
}

search *index_explore(const index_protocol *p, const index_setting *set) {
    state x;
    memset(&x, 0, sizeof x);
    x.absent[0] = 1;
    for (int r = 0; r < READERS; r++) x.reader[r].gets_left = (uint8_t)set->gets[r];
    machine m = { search_new(&x, sizeof x), p, set };
    while (search_next(m.s, &x)) {
        bool watched = false;
        for (int r = 0; r < READERS; r++) watched |= x.reader[r].at != RESTING || x.reader[r].gets_left;
        if (!watched) continue;
        step_owner(&m, &x);
        for (int r = 0; r < READERS; r++) step_reader(&m, &x, r);
    }
    return m.s;
}
