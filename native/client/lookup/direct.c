/* direct.c: the whole GET over memory that is mapped in this process (shm): no READ is posted, nothing is allocated.
 *
 * The first look takes slots in place and believes only what an extent confirms: LIVE, the right tag and key, unchanged
 * while it was copied. Whatever it does not find is looked for carefully: from a copy of the bucket whose header is
 * checked, and along the chain. After the last load the clock is read once, for two checks.
 *
 * The lease. It says that the owner, and so the memory, was still the shard's when the copy was made.
 *
 * The GET's life. This thread may be stopped anywhere for as long as one likes, over longer than the quarantine too,
 * and the lease may still run then.
 *   - Between the slot and the extent. What lies there by then may belong to anything; but if it is LIVE and of our
 *     key, then it is the key's value at that moment, however old the way to it: at most one extent of a key is LIVE
 *     (layout.h).
 *   - Within the copy. Version and state, before and after it, tell one life of the memory from the next, for a PUT's
 *     version never comes again. But an entry keeps its version when evacuation moves it, and may come back to where it
 *     was: moved away, the place reused by another key, freed again, and the entry moved back. Then both words are what
 *     they were, and what was copied is a mixture. Each of these steps waits for the quarantine, so the life bound is
 *     what excludes it.
 *   - Before a miss. It rests on what was not seen, along slots and chains that are left alone only as long as the
 *     quarantine.
 * So every answer obeys fkv_get_life_ns(), as over READs. What the clock said after the GET before this one serves as
 * the time at which this one began, so that the bound costs no second look at the clock: that is too early, never too
 * late. When it is too early by more than a life, after a rest or because we were held up, the GET is done again with a
 * beginning that is known.
 */
#include "../../base/pause.h"
#include "internal.h"

enum { PREFETCH_MAX = 2048 }; /* bytes of an extent */

typedef enum { LOOK_FOUND, LOOK_TOO_SMALL, LOOK_MISS, LOOK_AGAIN, LOOK_LATER } look;

typedef struct search {
    lookup *l;
    lookup_shard *sh;
    const lookup_key *key;
    uint64_t hash;
    uint8_t *to;
    size_t room;
    fkv_found found;
} search;

static inline const fkv_bucket *bucket_at(const lookup_shard *sh, uint32_t number) {
    const uint8_t *base = sh->index;
    if (__builtin_expect(number >= sh->index_buckets, 0)) {
        const lookup_view *v = layout_index_view(sh->layout, number);
        if (!v || !v->direct) return NULL;
        base = v->direct;
        number -= v->first;
    }
    return (const fkv_bucket *)(const void *)(base + (size_t)number * FKV_BUCKET_BYTES);
}

/* Where a location lies in this process; NULL: a segment that we do not know or have not mapped, or out of its bounds.
 * */
static inline const uint8_t *place_of(const lookup_shard *sh, uint64_t location, uint32_t cls, uint32_t *bytes,
                                      uint32_t *tag) {
    uint32_t number = fkv_location_segment(location);
    if (number >= sh->heap_count) return NULL;
    const lookup_view *v = &sh->heap[number];
    uint64_t offset;
    if (!v->direct || !fkv_location_range(location, cls, v->bytes, &offset, bytes)) return NULL;
    *tag = v->tag;
    return v->direct + offset;
}

/* All lines of an extent at once: loads that wait for what the header says would come one after the other. */
static inline void prefetch(const uint8_t *extent, uint32_t bytes) {
    for (uint32_t line = 0; line < bytes && line < PREFETCH_MAX; line += 64) __builtin_prefetch(extent + line);
}

static inline look look_at_slot(search *s, uint64_t slot) {
    fkv_wanted want = { .key = s->key->bytes, .key_bytes = (uint16_t)s->key->count, .space = s->key->space };
    uint32_t bytes;
    const uint8_t *extent = place_of(s->sh, fkv_slot_location(slot), fkv_slot_class(slot), &bytes, &want.tag);
    if (!extent) return LOOK_LATER;
    prefetch(extent, bytes);
    s->l->stats.reads++;
    s->l->stats.read_bytes += bytes;
    switch (fkv_extent_copy(extent, bytes, &want, s->to, s->room, &s->found)) {
    case FKV_READ_OK: return LOOK_FOUND;
    case FKV_READ_TOO_SMALL: return LOOK_TOO_SMALL;
    case FKV_READ_OTHER_KEY: return LOOK_MISS;
    default: return LOOK_AGAIN;
    }
}

/* Slots in place, as they are now. Always inline, like run(): a call costs more than the rest of it. */
static inline __attribute__((always_inline)) look first_look(search *s, const fkv_bucket *b) {
    uint16_t fingerprint = fkv_hash_fingerprint(s->hash);
    s->l->stats.reads++;
    s->l->stats.read_bytes += FKV_BUCKET_BYTES;
    for (int i = 0; i < FKV_SLOTS; i++) {
        uint64_t slot = __atomic_load_n(&b->slot[i], FKV_SHARED_LOAD);
        if (fkv_slot_fingerprint(slot) != fingerprint) continue;
        look r = look_at_slot(s, slot);
        if (r != LOOK_MISS) return r;
    }
    return LOOK_MISS;
}

static look look_in_chain(search *s, fkv_bucket *b) {
    for (int chain = 0;; chain++) {
        for (int i = -1; (i = fkv_bucket_find(b, fkv_hash_fingerprint(s->hash), i + 1)) >= 0;) {
            look r = look_at_slot(s, b->slot[i]);
            if (r != LOOK_MISS) return r;
        }
        uint64_t next = fkv_bucket_overflow(b->word1);
        if (!next) return LOOK_MISS;
        if (chain + 1 >= FKV_CHAIN_MAX) return LOOK_AGAIN;
        uint32_t bytes, tag;
        const uint8_t *at = place_of(s->sh, next, FKV_CLASS_BUCKET, &bytes, &tag);
        if (!at) return LOOK_LATER;
        fkv_bucket_copy(at, b);
        s->l->stats.reads++;
        s->l->stats.read_bytes += FKV_BUCKET_BYTES;
        if (!fkv_overflow_check(b, tag)) return LOOK_AGAIN;
    }
}

static look careful_look(search *s) {
    lookup_shard *sh = s->sh;
    uint32_t bits = fkv_hash_bucket_bits(s->hash), number = fkv_bucket_of(bits, sh->buckets);
    bool saw_settling = false;
    for (int steps = 0; steps <= FKV_BUCKET_STEPS;) {
        const lookup_view *v = layout_index_view(sh->layout, number);
        fkv_bucket b;
        if (!v || !v->direct) return LOOK_LATER;
        fkv_bucket_copy(v->direct + (size_t)(number - v->first) * FKV_BUCKET_BYTES, &b);
        s->l->stats.reads++;
        s->l->stats.read_bytes += FKV_BUCKET_BYTES;
        fkv_bucket_state state = fkv_bucket_check(&b, v->tag, number, bits, &sh->buckets);
        if (state == FKV_BUCKET_FOREIGN) return LOOK_LATER;
        if (state == FKV_BUCKET_ELSEWHERE) {
            number = fkv_bucket_of(bits, sh->buckets);
            saw_settling = false;
            steps++;
            continue;
        }
        if (state == FKV_BUCKET_HERE || saw_settling) return look_in_chain(s, &b);
        saw_settling = true;
    }
    sh->outdated = true;
    return LOOK_LATER;
}

static look look_again(search *s) {
    for (int i = 0; i <= LOOKUP_RETRIES; i++) {
        look r = careful_look(s);
        if (r != LOOK_AGAIN) return r;
        s->l->stats.retries++;
        s->l->stats.torn++;
        fkv_pause();
    }
    return LOOK_LATER;
}

/* The checks after the last load. They may refuse a value that was copied already: then *dropped is set. */
static inline bool conclude(search *s, look r, uint64_t now, lookup_result *out, bool *dropped) {
    lookup *l = s->l;
    if (__builtin_expect(now >= s->sh->lease_until, 0)) { /* mutation: lookup/lease-after-copy */
        l->stats.late++;
        *dropped = true;
        return false;
    }
    s->sh->peer->used = true;
    bool expired = r != LOOK_MISS && s->found.expiry_ms && session_wall_ms(s->sh->peer, now) >= s->found.expiry_ms;
    if (r == LOOK_MISS || expired) {
        if (expired) *dropped = true;
        *out = (lookup_result){ .status = FKV_NOT_FOUND };
        return true;
    }
    *out = (lookup_result){ .status = r == LOOK_FOUND ? FKV_OK : FKV_BUFFER_TOO_SMALL,
                            .codec = s->found.codec,
                            .user_flags = s->found.user_flags,
                            .version = s->found.version,
                            .value_bytes = s->found.value_bytes,
                            .expiry_ms = s->found.expiry_ms };
    return true;
}

/* A GET whose value did not fit fails, or is asked again with more room, and counts then. */
static inline void count(lookup *l, fkv_status status) {
    if (status == FKV_BUFFER_TOO_SMALL) return;
    l->stats.gets++;
    if (status == FKV_OK)
        l->stats.hits++;
    else
        l->stats.misses++;
}

static inline void attend(lookup *l, lookup_shard *sh, uint64_t now) {
    l->since_poll++;
    if (__builtin_expect(now >= sh->renew_at || l->since_poll >= POLL_EVERY, 0)) shard_attend(l, sh, now);
}

/* Where to look first; NULL: the shard cannot be read in place now. */
static inline const fkv_bucket *begin(search *s, lookup *l, const lookup_key *k) {
    if (__builtin_expect(k->count == 0 || k->count > FKV_KEY_MAX, 0)) return NULL;
    s->l = l;
    s->key = k;
    s->hash = lookup_key_hash(l, k);
    s->sh = &l->shard[fkv_range_shard(l->spread, s->hash)];
    return s->sh->index ? bucket_at(s->sh, fkv_bucket_of(fkv_hash_bucket_bits(s->hash), s->sh->buckets)) : NULL;
}

static inline __attribute__((always_inline)) look run(search *s, const fkv_bucket *b) {
    __builtin_prefetch((const uint8_t *)b + 64);
    look r = first_look(s, b);
    return r == LOOK_MISS || r == LOOK_AGAIN ? look_again(s) : r;
}

/* Whether all that was loaded since `looked_ns` may be believed. */
static inline bool in_time(const lookup *l, uint64_t now) {
    return now - l->looked_ns <= fkv_get_life_ns(FKV_BUCKET_BYTES);
}

bool lookup_direct(lookup *l, const lookup_key *k, uint8_t *to, size_t room, lookup_result *out) {
    search s;
    const fkv_bucket *b = begin(&s, l, k);
    if (!b) return false;
    s.to = to;
    s.room = room;
    look r = run(&s, b);
    uint64_t now = session_now(l->session);
    if (__builtin_expect(!in_time(l, now), 0)) {
        l->looked_ns = now;
        r = run(&s, b);
        now = session_now(l->session);
        if (!in_time(l, now)) r = LOOK_LATER;
    }
    l->looked_ns = now;
    bool dropped;
    bool done = r != LOOK_LATER && conclude(&s, r, now, out, &dropped);
    /* Without room what is stored beside the value is all that is asked for. */
    if (done) count(l, room == 0 && out->status == FKV_BUFFER_TOO_SMALL ? FKV_OK : out->status);
    attend(l, s.sh, now);
    return done;
}

/* Brings the extent that a bucket most likely leads to closer, while others are being looked for. */
static inline void prefetch_extent(const search *s, const fkv_bucket *b) {
    uint16_t fingerprint = fkv_hash_fingerprint(s->hash);
    for (int i = 0; i < FKV_SLOTS; i++) {
        uint64_t slot = __atomic_load_n(&b->slot[i], FKV_SHARED_LOAD);
        if (fkv_slot_fingerprint(slot) != fingerprint) continue;
        uint32_t bytes, tag;
        const uint8_t *at = place_of(s->sh, fkv_slot_location(slot), fkv_slot_class(slot), &bytes, &tag);
        if (!at) return;
        prefetch(at, bytes);
        return;
    }
}

/* Runs those that have a bucket, values one behind the other; returns the bytes that they take. Some may still be
 * dropped. */
static size_t run_group(search *s, const fkv_bucket **b, look *r, int n, uint8_t *to, size_t room, size_t *at) {
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        at[i] = used;
        s[i].to = to + used;
        s[i].room = room - used;
        r[i] = b[i] ? run(&s[i], b[i]) : LOOK_LATER;
        if (r[i] == LOOK_FOUND) used += s[i].found.value_bytes;
    }
    return used;
}

/* A copied value that was dropped afterwards leaves a gap, and later keys of the group may have found too little room
 * only because of it. So the values that stay are moved together, and what did not fit is looked for again in the room
 * that there really is. The values were checked and are private memory: moving them needs no new check. Returns the
 * bytes that they take. */
static __attribute__((noinline)) size_t close_gaps(lookup *l, const lookup_key *k, int n, uint8_t *to, size_t room,
                                                   lookup_result *out, size_t *at, bool *done) {
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        if (!done[i] || out[i].status != FKV_OK) continue;
        if (at[i] != used) memmove(to + used, to + at[i], out[i].value_bytes);
        at[i] = used;
        used += out[i].value_bytes;
    }
    for (int i = 0; i < n; i++) {
        if (!done[i] || out[i].status != FKV_BUFFER_TOO_SMALL || out[i].value_bytes > room - used) continue;
        done[i] = lookup_direct(l, &k[i], to + used, room - used, &out[i]);
        if (!done[i] || out[i].status != FKV_OK) continue;
        at[i] = used;
        used += out[i].value_bytes;
    }
    return used;
}

size_t lookup_direct_group(lookup *l, const lookup_key *k, int n, uint8_t *to, size_t room, lookup_result *out,
                           size_t *at, bool *done) {
    search s[LOOKUP_GROUP];
    const fkv_bucket *b[LOOKUP_GROUP];
    look r[LOOKUP_GROUP];
    for (int i = 0; i < n; i++) {
        b[i] = begin(&s[i], l, &k[i]);
        if (!b[i]) { /* it will be READ, and then its location is what is asked for first */
            if (k[i].count >= 1 && k[i].count <= FKV_KEY_MAX) locations_prefetch(&l->locations, s[i].hash);
            continue;
        }
        __builtin_prefetch(b[i]);
        __builtin_prefetch((const uint8_t *)b[i] + 64);
    }
    for (int i = 0; i < n; i++)
        if (b[i]) prefetch_extent(&s[i], b[i]);
    size_t used = run_group(s, b, r, n, to, room, at);
    uint64_t now = session_now(l->session);
    bool good = in_time(l, now);
    if (__builtin_expect(!good, 0)) {
        l->looked_ns = now;
        used = run_group(s, b, r, n, to, room, at);
        now = session_now(l->session);
        good = in_time(l, now);
    }
    l->looked_ns = now;
    bool dropped = !good;
    for (int i = 0; i < n; i++) {
        done[i] = good && r[i] != LOOK_LATER && conclude(&s[i], r[i], now, &out[i], &dropped);
        if (done[i]) count(l, out[i].status);
        if (b[i]) l->since_poll++;
    }
    for (int i = 0; i < n; i++) {
        if (!b[i]) continue;
        /* once is enough: the others have the same owner, or the next group attends to theirs */
        attend(l, s[i].sh, now);
        break;
    }
    return __builtin_expect(dropped, 0) ? close_gaps(l, k, n, to, room, out, at, done) : used;
}
