/* failover.c: see failover.h.
 *
 * The data planes, links and clients are the product's. The test has the parts that are not theirs: it is the fabric's
 * luck, the metadata (a list of configs that a proposal adds to, if it names the last one), and each server's decisions:
 * who suspects whom, when it hears of a config, and when a server without a copy makes one. No thread and no clock but these:
 *
 *   tick     the world goes on for some time; each server that runs may take a turn, each client does; then, by the
 *            dice, something happens
 *   power    a life of a durable shard ends when all servers lose their power (failover_power.c)
 *   heal     what is cut is joined, who stands still goes on, servers that are gone are removed, until all is quiet:
 *            then every entry is read once more, and copies are compared */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../serve/loop.h"
#include "failover_life.h"

life_state life;

/* ---- luck ---- */

static void luck(void) {
    sim_faults f = { .delay_min_ns = 1000, .delay_max_ns = 1000 + any(any(4) ? 100000 : 3000000) };
    if (any(2)) f.tear = any(SIM_ALWAYS), f.tear_span_ns = any(200000);
    if (any(3) == 0) f.break_conn = any(3000);
    if (any(4) == 0) f.drop = any(3000);
    sim_set_faults(life.world, &f);
}
static fab_domain *domain_of(uint32_t s) { return life.node[s].d->domain[FAB_SIM]; }
/* From each other, or one server from all; a >= b. 0 ns: joined again. */
static void cut(uint32_t a, uint32_t b, uint64_t for_ns) {
    if (a == b)
        sim_cut_off(domain_of(a), for_ns > 0);
    else
        sim_cut_between(domain_of(a), domain_of(b), for_ns > 0);
    life.mend_ns[a][b] = for_ns ? fkv_now_ns() + for_ns : 0;
}
static void mend_what_is_due(void) {
    for (uint32_t a = 0; a < SERVERS; a++)
        for (uint32_t b = 0; b <= a; b++)
            if (life.mend_ns[a][b] && (life.heals || life.mend_ns[a][b] <= fkv_now_ns())) cut(a, b, 0);
}

/* The owner and its copies do not hear each other, but clients hear all of them; and one copy wants to be the owner.
 * What was on its way comes when leases are over. */
static void split(void) {
    uint32_t owner = now_in_force()->owner;
    for (uint32_t s = 0; s < SERVERS; s++)
        if (s != owner) cut(s > owner ? s : owner, s > owner ? owner : s, (LEASE_MS + any(80)) * MS);
    life_suspect((owner + 1 + any(SERVERS - 1)) % SERVERS);
}

/* A copy in sync that goes on is left. */
static void kill(uint32_t s) {
    uint32_t others = now_in_force()->copies & ~(1u << s);
    bool left = false;
    for (uint32_t t = 0; t < SERVERS; t++) left |= (others >> t & 1) && !life.node[t].gone;
    if (life.node[s].gone || !left) return;
    life.node[s].gone = true;
    life.counts->kills++;
    sim_break_all(domain_of(s));
    if (any(2)) loop_unlisten(life.node[s].d, 0); /* else nobody answers there */
}

static void happen(void) {
    uint32_t what = any(100000), s = any(SERVERS);
    if (what < 60)
        luck();
    else if (what < 120)
        cut(s, any(s + 1), (1 + any(any(2) ? 10 : 200)) * MS);
    else if (what < 160)
        life.node[s].stands_ns = fkv_now_ns() + any(any(2) ? 10 : 120) * MS;
    else if (what < 170)
        kill(s);
    else if (what < 190)
        life_suspect(s);
    else if (what < 215)
        split();
    else if (what < 225)
        life_remove_copy(s);
    else if (what < 325)
        life_hand_over(now_in_force()->owner);
}

/* ---- time ---- */

static bool is_lost(void) {
    for (uint32_t s = 0; s < SERVERS; s++)
        if (has_copy(now_in_force(), s) && !life.node[s].gone) return false;
    return true;
}

/* Whether it is time to hear of the next config: often soon, sometimes so late that others have gone on long ago. */
static bool hears(uint64_t *at_ns) {
    if (*at_ns == 0) *at_ns = fkv_now_ns() + any(any(2) && !life.heals ? 300 : 5) * MS;
    if (!life.heals && fkv_now_ns() < *at_ns) return false;
    *at_ns = 0;
    return true;
}

static void tick(void) {
    sim_run_until(life.world, sim_now(life.world) + 5000 + any(any(8) ? 120000 : 1000000));
    mend_what_is_due();
    life_decide();
    for (uint32_t s = 0; s < SERVERS; s++) {
        node *n = &life.node[s];
        if (any(100) == 0) life_join(s);
        if (!runs(s)) continue;
        if (any(8)) life_node_turn(n);
        if (n->config < life.last && hears(&n->hears_ns)) life_apply(s);
        if (any(20) == 0) life_try_to_serve(s);
        if (any(50) == 0) life_ask_again(s);
        if (any(50) == 0) life_ask_for_heir(s);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        player *p = &life.player[i];
        if (p->config < life.last && hears(&p->hears_ns)) {
            p->config++;
            life_route(p);
        }
        life_player_turn(p);
    }
}

/* ---- the end ---- */

/* Servers that are gone are removed; where the owner is, another copy becomes it. */
static void repair(void) {
    const config *c = now_in_force();
    if (fkv_now_ns() - life.node[c->owner].proposed_ns < 30 * MS) return;
    for (uint32_t s = 0; s < SERVERS; s++) {
        if (s == c->owner || !has_copy(c, s)) continue;
        if (life.node[s].gone)
            life_remove_copy(s);
        else if (life.node[c->owner].gone && life.node[s].config == life.last && !life.node[s].suspects)
            life_suspect(s);
    }
}
static bool is_quiet(void) {
    const config *c = now_in_force();
    node *n = &life.node[c->owner];
    if (life.history.open || !n->serves || n->config != life.last) return false;
    const shard *s = shard_at(c->owner);
    for (uint32_t t = 0; t < SERVERS; t++) {
        if (!has_copy(c, t) || t == c->owner) continue;
        if (life.node[t].gone || life.node[t].config != life.last || copy_at(t)->applied != s->repl.owner.last)
            return false;
    }
    return s->repl.owner.committed == s->repl.owner.last;
}
static bool heal(void) {
    life.heals = true;
    sim_set_faults(life.world, &(sim_faults){ .delay_min_ns = 1000, .delay_max_ns = 20000 });
    for (uint32_t s = 0; s < SERVERS; s++) life.node[s].stands_ns = 0;
    for (uint64_t until = fkv_now_ns() + 20000 * MS; !is_quiet(); CHECK(fkv_now_ns() < until)) {
        if (is_lost()) return false;
        tick();
        if (any(20) == 0) repair();
    }
    return true;
}

static void copies_are_equal(void) {
    const config *c = now_in_force();
    for (int k = 0; k < HISTORY_ALL; k++) {
        char name[16];
        int n = snprintf(name, sizeof name, "key-%d", k);
        uint64_t hash = fkv_hash_key(&HASH_SEED, 0, name, (size_t)n);
        table_entry of_owner, e;
        fkv_status s = table_committed(shard_at(c->owner)->table, 0, name, (size_t)n, hash, &of_owner);
        for (uint32_t t = 0; t < SERVERS; t++) {
            if (!has_copy(c, t)) continue;
            CHECK_EQ(copy_at(t)->failed, FKV_OK);
            CHECK(!table_check(shard_at(t)->table));
            CHECK_EQ(table_committed(shard_at(t)->table, 0, name, (size_t)n, hash, &e), s);
            if (s != FKV_OK) continue;
            CHECK_EQ(e.expiry_ms, of_owner.expiry_ms);
            CHECK(e.version == of_owner.version && e.value_bytes == of_owner.value_bytes);
            CHECK(memcmp(e.value, of_owner.value, e.value_bytes) == 0);
        }
    }
}
static void read_all(void) {
    for (int k = 0; k < HISTORY_ALL; k++) {
        uint32_t number = life.history.count + 1;
        life_ask(&life.player[0], ASKED_GET, k, 2000 * MS);
        while (life.history.open) tick();
        CHECK(life.history.all[number].end == ASKED_DONE || life.history.all[number].version == 0);
    }
}

/* ---- one life ---- */

typedef struct kind {
    bool durable, early, bases;
} kind;

static void begin(uint64_t seed, kind of, failover_counts *out) {
    memset(&life, 0, sizeof life);
    life.durable = of.durable;
    life.early = of.early;
    life.bases = of.bases;
    life.seed = life.random = seed;
    life.counts = out;
    any(2);
    life.world = sim_world_create(seed);
    sim_drive_clock(life.world);
    life.at[life.last = 1] = (config){ .epoch = 1, .copies = any(3) ? 7 : 3 };
    for (uint32_t s = 0; s < SERVERS; s++) life_node_up(s);
    life_first_copies();
    for (uint32_t i = 0; i < CLIENTS; i++) life_player_up(i);
    luck();
}
static void live_for(uint64_t ms) {
    uint64_t until = fkv_now_ns() + ms * MS;
    while (fkv_now_ns() < until && !is_lost()) {
        tick();
        happen();
        for (uint32_t i = 0; i < CLIENTS; i++)
            if (any(8) == 0) life_ask_something(&life.player[i]);
    }
}
static void clients_down(void) {
    for (uint32_t i = 0; i < CLIENTS; i++) lookup_close(life.player[i].l);
}
static void finish(void) {
    mend_what_is_due();
    for (uint32_t s = 0; s < SERVERS; s++) dataplane_destroy(life.node[s].d);
    sim_world_destroy(life.world);
    life.counts->answered += life.history.answered;
    life.counts->unknown += life.history.unknown;
    life.counts->without_effect += life.history.without_effect;
}

static void live(uint64_t seed, kind of, failover_counts *out) {
    begin(seed, of, out);
    live_for(LIFE_MS);
    if (!is_lost() && heal()) {
        read_all();
        while (!is_quiet()) tick(); /* a copy may have been added */
        copies_are_equal();
        history_check(&life.history);
    } else {
        out->lost++;
        life.heals = true;
    }
    clients_down();
    finish();
    if (of.durable) life_disks_free();
}

static void live_durable(uint64_t seed, kind of, bool at_all, failover_counts *out) {
    begin(seed, of, out);
    if (at_all) live_for(1 + any(LIFE_MS));
    life.heals = true;
    life_power_goes();
    clients_down();
    finish();
    if (of.early)
        life_disks_have_all_but_the_last();
    else
        life_disks_have_all();
}

void failover_live(uint64_t seed, failover_counts *out) { live(seed, (kind){ 0 }, out); }
void failover_live_durable(uint64_t seed, failover_counts *out) {
    live_durable(seed, (kind){ .durable = true }, true, out);
}
void failover_end_at_once(uint64_t seed, failover_counts *out) {
    live_durable(seed, (kind){ .durable = true }, false, out);
}
void failover_live_early(uint64_t seed, failover_counts *out) {
    live(seed, (kind){ .durable = true, .early = true }, out);
}
void failover_end_early(uint64_t seed, failover_counts *out) {
    live_durable(seed, (kind){ .durable = true, .early = true }, true, out);
}
void failover_live_with_bases(uint64_t seed, bool durable, failover_counts *out) {
    kind of = { .durable = durable, .bases = true };
    if (durable)
        live_durable(seed, of, true, out);
    else
        live(seed, of, out);
}
