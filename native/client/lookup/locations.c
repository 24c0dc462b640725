/* locations.c: the location cache that locations.h draws and explains. */
#define LOCATION_BITS 0xffffffffffffull /* size class and location */
#include "locations.h"
#include <assert.h>
#include <stddef.h>
#include <sys/mman.h>

enum { USE_SHIFT = 48, TRUST_SHIFT = 56, USE_EXACT = 4, AGE_EVERY_BITS = 6 };
static_assert(sizeof(location_entry) == LOCATION_BYTES && LOCATION_BYTES * LOCATION_WAYS == 64,
              "a set is one cache line");

static size_t bytes_of(const locations *c) { return (size_t)c->sets * LOCATION_WAYS * sizeof *c->entry; }

bool locations_create(locations *c, uint32_t entries) {
    *c = (locations){ .dice = 1 };
    if (entries == 0) return true;
    c->sets = entries < LOCATION_WAYS ? 1 : entries / LOCATION_WAYS;
    void *memory = mmap(NULL, bytes_of(c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    c->entry = memory;
    return true;
}

void locations_free(locations *c) {
    if (c->entry) munmap(c->entry, bytes_of(c));
    c->entry = NULL;
}

static uint32_t use_of(const location_entry *e) { return (uint32_t)(e->word >> USE_SHIFT) & 0xff; }
static uint32_t trust_of(const location_entry *e) { return (uint32_t)(e->word >> TRUST_SHIFT); }
static uint64_t where_of(const location_entry *e) { return e->word & LOCATION_BITS; }
static void add_use(location_entry *e, int64_t n) { e->word += (uint64_t)n << USE_SHIFT; }
static void set_where(location_entry *e, uint64_t where) { e->word = (e->word & ~LOCATION_BITS) | where; }

static location_entry *set_of(const locations *c, uint64_t hash) {
    return c->entry + ((uint64_t)(uint32_t)hash * c->sets >> 32) * LOCATION_WAYS;
}

static location_entry *find(const locations *c, uint64_t hash) {
    location_entry *set = set_of(c, hash);
    uint32_t check = (uint32_t)(hash >> 32);
    for (int i = 0; i < LOCATION_WAYS; i++)
        if (set[i].check == check && set[i].word) return &set[i];
    return NULL;
}

/* Random bits, the high ones the best. */
static uint64_t roll(locations *c) { return c->dice = c->dice * 6364136223846793005u + 1442695040888963407u; }

/* Every 64th use of a set, by chance, makes all of it a little older. */
static void age(location_entry *set) {
    for (int i = 0; i < LOCATION_WAYS; i++)
        if (use_of(&set[i]) > 1) add_use(&set[i], -1);
}

/* Exact up to USE_EXACT, then with half the chance for each step. */
static void count_use(location_entry *e, uint64_t dice) {
    uint32_t use = use_of(e);
    if (use >= LOCATION_USE_MAX) return;
    if (use >= USE_EXACT && (dice >> 32 & ((1u << (use - USE_EXACT + 1)) - 1)) != 0) return;
    add_use(e, 1);
}

void locations_prefetch(const locations *c, uint64_t hash) {
    if (c->entry) __builtin_prefetch(set_of(c, hash), 1);
}

bool locations_guess(locations *c, uint64_t hash, location *out) {
    if (!c->entry) return false;
    uint64_t dice = roll(c);
    if (dice >> (64 - AGE_EVERY_BITS) == 0) age(set_of(c, hash));
    location_entry *e = find(c, hash);
    if (!e) return false;
    if (trust_of(e) < LOCATION_TRUSTED) { /* of no use now: nor does it deserve its place */
        c->bypassed++;
        return false;
    }
    count_use(e, dice);
    *out = (location){ .word = where_of(e), .tag = e->tag };
    return out->word != 0;
}

static void add_trust(location_entry *e, int n) {
    uint32_t trust = trust_of(e);
    if (n > 0 ? trust < LOCATION_TRUST_MAX : trust > 0) e->word += (uint64_t)(int64_t)n << TRUST_SHIFT;
}

void locations_good(locations *c, uint64_t hash) {
    location_entry *e = c->entry ? find(c, hash) : NULL;
    if (e) add_trust(e, 1);
}

void locations_stale(locations *c, uint64_t hash) {
    location_entry *e = c->entry ? find(c, hash) : NULL;
    if (!e) return;
    add_trust(e, -1);
    set_where(e, 0);
}

void locations_forget(locations *c, uint64_t hash) {
    location_entry *e = c->entry ? find(c, hash) : NULL;
    if (e) set_where(e, 0);
}

/* An empty place, or that of the least used; among equals by chance. */
static location_entry *place(locations *c, uint64_t hash) {
    location_entry *set = set_of(c, hash);
    uint32_t first = (uint32_t)(roll(c) >> 62), least = 0;
    for (uint32_t i = 0; i < LOCATION_WAYS; i++)
        if (!set[i].word) return &set[i];
    for (uint32_t i = 0; i < LOCATION_WAYS; i++) {
        uint32_t way = (first + i) % LOCATION_WAYS;
        if (i == 0 || use_of(&set[way]) < use_of(&set[least])) least = way;
    }
    c->evicted++;
    return &set[least];
}

void locations_learn(locations *c, uint64_t hash, location where) {
    if (!c->entry) return;
    uint64_t word = where.word & LOCATION_BITS;
    location_entry *e = find(c, hash);
    if (!e) {
        e = place(c, hash);
        *e = (location_entry){ .check = (uint32_t)(hash >> 32),
                               .tag = where.tag,
                               .word = word | 1ull << USE_SHIFT | (uint64_t)LOCATION_TRUSTED << TRUST_SHIFT };
        return;
    }
    if (where_of(e)) add_trust(e, where_of(e) == word && e->tag == where.tag ? 1 : -1);
    set_where(e, word);
    e->tag = where.tag;
}
