/* search.c: see search.h. States lie one behind the other in the order in which they were reached; a hash table finds
 * them. */
#include "search.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#ifdef __SANITIZE_ADDRESS__
enum { STATES_MOST = 1 << 18, EXPANDED_MOST = 20000 };
#else
enum { STATES_MOST = 1 << 22, EXPANDED_MOST = STATES_MOST };
#endif
enum { TABLE = 2 * STATES_MOST, STEPS_MOST = 256 };
typedef struct visit {
    uint32_t from;
    int number;
    const char *who, *what;
} visit;
struct search {
    size_t bytes;
    uint8_t *states;
    visit *visits;
    uint32_t *table;
    uint32_t count, expanding, violation; /* numbers of states count from 1 */
    const char *wrong;
};

static uint8_t *state_at(const search *s, uint32_t i) { return s->states + (size_t)i * s->bytes; }

search *search_new(const void *first, size_t state_bytes) {
    search *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    s->bytes = state_bytes;
    s->states = malloc((size_t)STATES_MOST * state_bytes);
    s->visits = calloc(STATES_MOST, sizeof *s->visits);
    s->table = calloc(TABLE, sizeof *s->table);
    CHECK(s->states && s->visits && s->table);
    search_reach(s, first, NULL, NULL, 0);
    return s;
}

bool search_next(search *s, void *state) {
    if (s->violation || s->expanding == s->count || s->expanding == EXPANDED_MOST) return false;
    memcpy(state, state_at(s, ++s->expanding), s->bytes);
    return true;
}

void search_reach(search *s, const void *next, const char *who, const char *what, int number) {
    if (s->violation) return;
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < s->bytes; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = s->bytes - i;
        memcpy(&word, (const uint8_t *)next + i, left < sizeof word ? left : sizeof word);
        h = (h ^ word) * 1099511628211u;
        h ^= h >> 32;
    }
    uint32_t at = (uint32_t)(h ^ h >> 29) % TABLE;
    for (; s->table[at]; at = (at + 1) % TABLE)
        if (memcmp(state_at(s, s->table[at]), next, s->bytes) == 0) return;
    CHECK(s->count + 2 < STATES_MOST);
    s->table[at] = ++s->count;
    memcpy(state_at(s, s->count), next, s->bytes);
    s->visits[s->count] = (visit){ s->expanding, number, who, what };
}

void search_violate(search *s, const char *who, const char *what, int number) {
    if (s->violation) return;
    s->violation = ++s->count;
    s->visits[s->count] = (visit){ s->expanding, number, who, what };
}

void search_explain(search *s, const char *wrong) { s->wrong = wrong; }

uint32_t search_states(const search *s) { return s->count; }
bool search_found(const search *s) { return s->violation != 0; }
bool search_stopped(const search *s) { return !s->violation && s->expanding < s->count; }

void search_print(const search *s) {
    uint32_t path[STEPS_MOST], n = 0;
    for (uint32_t at = s->violation; s->visits[at].what && n < STEPS_MOST; at = s->visits[at].from) path[n++] = at;
    while (n-- > 0) {
        const visit *v = &s->visits[path[n]];
        printf("#     %-9s %s", v->who, v->what);
        printf(v->number ? " %d\n" : "\n", v->number);
    }
    if (s->wrong) printf("#     so it %s\n", s->wrong);
}

void search_free(search *s) {
    free(s->states);
    free(s->visits);
    free(s->table);
    free(s);
}
