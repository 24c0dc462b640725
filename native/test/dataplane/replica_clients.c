/* replica_clients.c: of the machine of replica_machine.c, what clients do and what servers answer them. */
#include <string.h>
#include "../../dataplane/dedup.h"
#include "replica_world.h"

uint32_t world_lsn(const server *s, uint32_t change) {
    uint64_t prepared = s->role == OWNER ? s->owner.last : s->copy.prepared;
    for (uint32_t at = 0; at < prepared; at++)
        if (s->log[at].change == change) return at + 1;
    return 0;
}

uint32_t world_visible(const machine *m, const server *s, uint32_t key) {
    uint64_t limit = s->role == OWNER ? s->owner.committed : s->copy.committed;
    if (m->wrong->live_before_acks && s->role == OWNER) limit = s->owner.last;
    for (uint64_t lsn = limit; lsn > 0; lsn--)
        if (key_of(m, s->log[lsn - 1].change) == key) return s->log[lsn - 1].change;
    return 0;
}

bool world_witness(world *x, uint32_t number, uint32_t lsn, uint32_t epoch) {
    change *c = &x->change[number - 1];
    if (c->lsn) return c->lsn == lsn && c->epoch == epoch;
    c->lsn = lsn;
    c->epoch = epoch;
    return true;
}

/* ---- at a server ---- */

enum { VERSION_OF_EPOCH = 16 }; /* a version is epoch * this + lsn */

/* What the server's retry windows say of a request, made anew from what it has been told: each record that took effect
 * there, those that were copied as forgotten, and what it has in progress itself. */
static dedup_answer recognise(const machine *m, const server *v, uint32_t number, bool retry, dedup_result *known) {
    enum { CLIENT_ID = 1, SLOT = 0, NOW = 1 };
    dedup d;
    CHECK_EQ(dedup_init(&d, 1 << 20), 0);
    uint32_t copied = 0;
    void *op = &d;
    dedup_client *c = dedup_enter(&d, CLIENT_ID, NOW);
    for (uint32_t lsn = 1; lsn <= v->owner.last; lsn++) {
        const record *r = &v->log[lsn - 1];
        dedup_result done = { FKV_OK, r->epoch * VERSION_OF_EPOCH + lsn, 0 };
        if (lsn <= v->joined)
            copied = r->change > copied ? r->change : copied;
        else if (m->wrong->sequences_stay_behind && r->epoch != v->owner.epoch)
            continue;
        else if (lsn <= v->owner.committed)
            dedup_note(&d, CLIENT_ID, SLOT, r->change, &done, NOW);
        else if (lsn > v->owner.inherited)
            CHECK_EQ(dedup_begin(&d, c, SLOT, r->change, true, NOW, &op, known), DEDUP_NEW);
    }
    if (copied && !m->wrong->joiner_knows_no_sequences) dedup_forget(&d, CLIENT_ID, SLOT, copied, NOW);
    dedup_answer a = dedup_begin(&d, c, SLOT, number, retry, NOW, &op, known);
    dedup_leave(&d, c, NOW);
    dedup_free(&d);
    return a;
}

/* Nothing was done. What was sent once is known to have had no effect; of another copy of it that is not known. */
static void refuse(const machine *m, world *x, int s, uint32_t number) {
    change *c = &x->change[number - 1];
    bool first = c->copy[s] == 1 && c->at == (uint32_t)s + 1 && !c->retried;
    c->copy[s] = 0;
    if (first && c->is == OUTSTANDING) c->is = WITHOUT_EFFECT;
    world_reach(m, x, s, first ? "refuses: nothing was done of change" : "refuses a copy of change", number);
}

static bool is_busy(const machine *m, const server *v, uint32_t number) {
    for (uint64_t lsn = v->owner.committed + 1; lsn <= v->owner.last; lsn++)
        if (key_of(m, v->log[lsn - 1].change) == key_of(m, number)) return true;
    return false;
}

static void make(const machine *m, world *x, int s, uint32_t number) {
    server *v = &x->server[s];
    if (is_busy(m, v, number) || v->owner.last == LOG) return; /* it waits */
    if (!replica_admits(&v->owner)) {
        refuse(m, x, s, number);
        return;
    }
    uint64_t lsn = replica_draw(&v->owner);
    v->log[lsn - 1] = (record){ number, v->owner.epoch };
    world_buffers(m, v);
    x->change[number - 1].copy[s] = 0;
    replica_commit(&v->owner);
    world_reach(m, x, s, "prepares change", number);
}

static void answered(const machine *m, world *x, int s, uint32_t number, uint32_t lsn, uint32_t epoch) {
    x->change[number - 1].is = ANSWERED;
    if (world_witness(x, number, lsn, epoch))
        world_reach(m, x, s, "answers change", number);
    else
        world_wrong(m, s, "answers otherwise than before change", number);
}

/* What is answered early may be lost, so nothing is answered when another one may lead: a lease, without its time. */
static bool may_answer(const machine *m, const world *x, int s) {
    return !m->set->early || m->wrong->answers_late || x->entry[x->config].owner == id_of(x, s);
}

static void take(const machine *m, const world *x, int s, uint32_t number) {
    world n = *x;
    server *v = &n.server[s];
    change *c = &n.change[number - 1];
    if (v->role == OWNER && !v->serving) return; /* it waits */
    if (v->role != OWNER || world_right(m, v) <= x->now || !may_answer(m, x, s)) {
        refuse(m, &n, s, number);
        return;
    }
    dedup_result known;
    dedup_answer a = recognise(m, v, number, c->copy[s] == 2, &known);
    if (a == DEDUP_NEW) {
        make(m, &n, s, number);
        return;
    }
    bool listens = c->is == OUTSTANDING && c->at == (uint32_t)s + 1;
    c->copy[s] = 0;
    if (a == DEDUP_DONE && listens) {
        answered(m, &n, s, number, (uint32_t)known.version % VERSION_OF_EPOCH,
                 (uint32_t)known.version / VERSION_OF_EPOCH);
        return;
    }
    if (a == DEDUP_FORGOTTEN && listens) c->is = INDETERMINATE;
    world_reach(m, &n, s, a == DEDUP_FORGOTTEN ? "no longer knows change" : "has already change", number);
}

void step_request(const machine *m, const world *x, int s) {
    for (uint32_t i = 1; i <= CHANGES; i++)
        if (x->change[i - 1].copy[s]) take(m, x, s, i);
}

/* An answer is given however late it is: it is true, unless it is early. */
void step_answers(const machine *m, const world *x, int s) {
    const server *v = &x->server[s];
    if (v->role != OWNER || !v->serving || !may_answer(m, x, s)) return;
    for (uint32_t i = 1; i <= CHANGES; i++) {
        const change *c = &x->change[i - 1];
        uint32_t lsn = world_lsn(v, i);
        if (c->is != OUTSTANDING || c->at != (uint32_t)s + 1 || !lsn) continue;
        if (lsn > v->owner.committed && !m->wrong->answers_before_commit) continue;
        if (lsn <= v->joined) continue; /* nobody waits for what came in a copy */
        world n = *x;
        answered(m, &n, s, i, lsn, v->log[lsn - 1].epoch);
    }
}

/* ---- a client that changes, and may have several changes on their way ---- */

static void send_to(const machine *m, const world *x, int s, uint32_t number, bool retry) {
    const server *v = &x->server[s];
    if (!v->alive || v->role != OWNER) return;
    world n = *x;
    change *c = &n.change[number - 1];
    c->is = OUTSTANDING;
    c->at = (uint32_t)s + 1;
    c->copy[s] = retry ? 2 : 1;
    if (retry) c->retried = 1, n.retries--;
    world_reach(m, &n, CLIENT, retry ? "sends again change" : "sends change", number);
}

void step_client(const machine *m, const world *x) {
    for (uint32_t i = 1; i <= (uint32_t)m->set->changes; i++) {
        const change *c = &x->change[i - 1];
        for (int s = 0; s < SERVERS; s++) {
            if (c->is == OUTSTANDING && x->retries) send_to(m, x, s, i, true);
            if (c->is == UNSENT) send_to(m, x, s, i, false);
        }
        if (c->is == UNSENT) break; /* sequences are given in order */
    }
}

/* ---- a client that READs key 0 ---- */

static void take_lease(const machine *m, const world *x, int s) {
    const server *v = &x->server[s];
    if (!v->alive || v->role != OWNER || !v->serving) return;
    world n = *x;
    uint32_t right = m->wrong->grants_beyond_backups ? NO_END : world_right(m, v), lease = x->now + CLIENT_LEASE;
    if (m->set->ticks == 0) lease = NO_END;
    if (right < lease) lease = right;
    if (lease <= x->now || (n.reader.at == (uint32_t)s + 1 && n.reader.lease >= lease)) return;
    n.reader.at = (uint32_t)s + 1;
    n.reader.lease = lease;
    if (n.server[s].client_leases < lease) n.server[s].client_leases = lease;
    world_reach(m, &n, READER, "gets a lease of server", (uint32_t)s);
}

static uint32_t newest_seen(const machine *m, const world *x) {
    uint32_t low = 0;
    for (uint32_t i = 1; i <= CHANGES; i++)
        if (key_of(m, i) == 0 && x->change[i - 1].lsn > low) low = x->change[i - 1].lsn;
    return low;
}

/* `result` of a reader: what it found, where in the log. */
enum { OF_LSN = 8, OF_EPOCH = 64 };

static void finish_get(const machine *m, const world *x) {
    world n = *x;
    reader *r = &n.reader;
    uint32_t number = r->result % OF_LSN, lsn = r->result % OF_EPOCH / OF_LSN, epoch = r->result / OF_EPOCH;
    bool old = lsn < r->low;
    *r = (reader){ .gets_left = r->gets_left - 1, .at = r->at, .lease = r->lease };
    if (!r->gets_left) *r = (reader){ 0 };
    if (old || (number && !world_witness(&n, number, lsn, epoch)))
        world_wrong(m, READER, old ? "returns an old value, change" : "returns another value than before, change",
                    number);
    else
        world_reach(m, &n, READER, "returns change", number);
}

void step_reader(const machine *m, const world *x) {
    world n = *x;
    reader *r = &n.reader;
    if (r->is == RESTS) {
        if (!r->gets_left) return;
        for (int s = 0; s < SERVERS; s++) take_lease(m, x, s);
        if (r->lease <= x->now) return;
        r->is = READS;
        r->low = newest_seen(m, x);
        world_reach(m, &n, READER, "begins a GET", 0);
    } else if (r->is == READS) {
        const server *v = &x->server[r->at - 1];
        uint32_t number = world_visible(m, v, 0), lsn = number ? world_lsn(v, number) : 0;
        r->is = CHECKS;
        r->result = number ? v->log[lsn - 1].epoch * OF_EPOCH + lsn * OF_LSN + number : 0;
        world_reach(m, &n, READER, "READs change", number);
    } else if (r->lease > x->now) {
        finish_get(m, x);
    } else {
        *r = (reader){ .gets_left = r->gets_left };
        world_reach(m, &n, READER, "finds its lease over, discards", 0);
    }
}
