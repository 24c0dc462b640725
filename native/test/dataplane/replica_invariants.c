/* replica_invariants.c: what must hold in every state of replica_machine.c, and states as bytes.
 *
 * A change that was answered, or READ, lies at the same place of the log of every copy in sync, and has taken effect at
 * the owner if that serves; a GET returns nothing older than what was answered or returned before it began
 * (replica_clients.c); no change is in a log twice; one that had no effect, as its client was told, has none; a record
 * takes effect only with as many copies as it needs. */
#include "replica_world.h"
#include <string.h>

/* ---- states as bytes ---- */

void world_pack(const world *x, uint8_t *out) {
    const uint32_t *w = (const uint32_t *)(const void *)x;
    for (size_t i = 0; i < WORLD_BYTES; i++) {
        CHECK(w[i] < 255 || w[i] == NO_END);
        out[i] = w[i] == NO_END ? 255 : (uint8_t)w[i];
    }
}
void world_unpack(const uint8_t *in, world *x) {
    uint32_t *w = (uint32_t *)(void *)x;
    for (size_t i = 0; i < WORLD_BYTES; i++) w[i] = in[i] == 255 ? NO_END : in[i];
}

static const char *who_is(int who) {
    static const char *const name[] = { "server 0", "server 1", "server 2", "server 3",
                                        "client",   "reader",   "metadata", "time" };
    return name[who];
}

/* ---- what must always hold ---- */

static uint64_t committed_of(const server *s) { return s->role == OWNER ? s->owner.committed : s->copy.committed; }

static bool has(const server *s, const change *c, uint32_t number, uint64_t up_to) {
    return c->lsn <= up_to && s->log[c->lsn - 1].change == number && s->log[c->lsn - 1].epoch == c->epoch;
}

/* A copy in sync has another record, or none, where the owner has committed one. */
static bool differs(const world *x, const entry *e, const server *owner) {
    for (int t = 0; t < SERVERS; t++) {
        const server *v = &x->server[t];
        if (!v->alive || !has_id(e->in_sync & ~e->marked, id_of(x, t))) continue;
        for (uint32_t at = 0; at < committed_of(owner); at++)
            if (at >= prepared_of(v) || memcmp(&v->log[at], &owner->log[at], sizeof *v->log) != 0) return true;
    }
    return false;
}

static const char *what_is_wrong(const world *x) {
    const entry *e = &x->entry[x->config];
    for (int s = 0; s < SERVERS; s++) {
        const server *v = &x->server[s];
        uint32_t id = id_of(x, s);
        bool serves = e->owner == id && v->alive && v->role == OWNER && v->serving;
        uint32_t seen = 0;
        if (e->owner == id && v->alive && v->role == OWNER && differs(x, e, v))
            return "has committed what a copy in sync has not";
        if (committed_of(v) > prepared_of(v)) return "has committed what it has not prepared";
        for (uint32_t at = 0; at < prepared_of(v); at++) {
            uint32_t bit = 1u << v->log[at].change;
            if (bit == 1) return "has a record that is none";
            if (seen & bit) return "has a change twice";
            seen |= bit;
        }
        for (uint32_t i = 1; i <= CHANGES; i++) {
            const change *c = &x->change[i - 1];
            uint32_t lsn = world_lsn(v, i);
            if (serves && c->is == WITHOUT_EFFECT && lsn && lsn <= committed_of(v)) return "made what had no effect";
            if (serves && c->lost && c->is == ANSWERED && lsn && lsn <= committed_of(v))
                return "brings back what was lost";
            if (!c->lsn || !v->alive || !has_id(e->in_sync & ~e->marked, id)) continue;
            if (!has(v, c, i, prepared_of(v))) return "is in sync and lacks what was seen";
            if (serves && !has(v, c, i, committed_of(v))) return "serves without what was seen";
        }
    }
    return NULL;
}

void world_wrong(const machine *m, int who, const char *what, uint32_t number) {
    search_violate(m->s, who_is(who), what, (int)number);
}

void world_reach(const machine *m, const world *x, int who, const char *what, uint32_t number) {
    uint8_t bytes[WORLD_BYTES];
    world_pack(x, bytes);
    search_reach(m->s, bytes, who_is(who), what, (int)number);
    const char *wrong = search_found(m->s) ? NULL : what_is_wrong(x);
    if (wrong) world_wrong(m, who, what, number), search_explain(m->s, wrong);
}
