/* calls.c: calls from other threads that are about copies, logs and entries that come from elsewhere: jobs that are posted to
 * the thread that owns the shard. Those of its life are in serve/calls.c. */
#include <stdlib.h>
#include <string.h>
#include "../dataplane/command.h"
#include "base.h"
#include "copies.h"
#include "handover.h"
#include "import.h"
#include "recovery.h"
#include "rely.h"
#include "role.h"
#include "snapshots.h"

void dataplane_import(dataplane *d, uint32_t shard, const uint8_t *entries, uint32_t bytes, dataplane_done done,
                      void *ctx) {
    command *c = command_make(d, shard, import_begin, done, ctx);
    if (!c) return;
    c->entries = entries;
    c->entries_bytes = bytes;
    list_init(&c->importing);
    command_post(d, c, PLACE_OPEN);
}

/* ---- copies ---- */

void dataplane_compare(dataplane *d, uint32_t shard, const dataplane_page *p, dataplane_done done, void *ctx) {
    command *c = command_make(d, shard, import_begin, done, ctx);
    if (!c) return;
    list_init(&c->importing);
    c->page = calloc(1, sizeof *c->page);
    if (!c->page) {
        command_done(c, FKV_NO_MEMORY, NULL);
        return;
    }
    *c->page = (base_page){ .of = *p, .at = p->from };
    c->entries = p->entries;
    c->entries_bytes = p->bytes;
    command_post(d, c, PLACE_OPEN);
}

static void follow(dataplane *d, uint32_t shard, void (*run)(job *), const dataplane_join *at,
                   const dataplane_owner_address *address, uint32_t addresses, dataplane_done done, void *ctx) {
    command *c = command_make(d, shard, run, done, ctx);
    if (!c) return;
    copy_join *k = c->join = calloc(1, sizeof *k + at->sequences * sizeof *k->sequence);
    if (!k) {
        command_done(c, FKV_NO_MEMORY, NULL);
        return;
    }
    k->at = *at;
    k->sequences = at->sequences;
    if (at->sequences) memcpy(k->sequence, at->sequence, at->sequences * sizeof *k->sequence);
    for (uint32_t i = 0; i < addresses && k->addresses < OWNER_LINK_ADDRESSES; i++) {
        if (strlen(address[i].text) >= OWNER_LINK_ADDRESS_MAX) continue;
        link_address *a = &k->address[k->addresses++];
        a->provider = address[i].provider;
        a->device = address[i].device;
        strcpy(a->text, address[i].text);
    }
    command_post(d, c, PLACE_OPEN);
}
void dataplane_follow_copy(dataplane *d, uint32_t shard, const dataplane_join *at,
                           const dataplane_owner_address *address, uint32_t addresses, dataplane_done done, void *ctx) {
    follow(d, shard, role_follow, at, address, addresses, done, ctx);
}
void dataplane_follow_owner(dataplane *d, uint32_t shard, const dataplane_owner_address *address, uint32_t addresses,
                            dataplane_done done, void *ctx) {
    follow(d, shard, role_follow_owner, &(dataplane_join){ 0 }, address, addresses, done, ctx);
}

static_assert((int)DATAPLANE_COPIES_MAX == (int)REPLICA_PEERS, "each has a place");
static void configure(dataplane *d, uint32_t shard, void (*run)(job *), uint64_t incarnation, const dataplane_copies *k,
                      dataplane_done done, void *ctx) {
    command *c = command_make(d, shard, run, done, ctx);
    if (!c) return;
    bool fits = k->in_sync <= REPLICA_PEERS && k->eligible <= REPLICA_PEERS && k->joining <= REPLICA_PEERS;
    c->lead = fits ? calloc(1, sizeof *c->lead) : NULL;
    if (!c->lead) {
        command_done(c, fits ? FKV_NO_MEMORY : FKV_BAD_REQUEST, NULL);
        return;
    }
    *c->lead = (copy_lead){ .incarnation = incarnation,
                            .handed = k->handed,
                            .config = { .epoch = k->epoch,
                                        .config = k->config,
                                        .min_in_sync = k->min_in_sync,
                                        .alone = k->alone,
                                        .peers = k->in_sync,
                                        .eligible = k->eligible,
                                        .joining = k->joining } };
    for (uint32_t i = 0; i < k->in_sync; i++) c->lead->config.id[i] = k->id[i];
    for (uint32_t i = 0; i < k->eligible; i++) c->lead->config.eligible_id[i] = k->eligible_id[i];
    for (uint32_t i = 0; i < k->joining; i++) c->lead->config.joining_id[i] = k->joining_id[i];
    command_post(d, c, PLACE_OPEN);
}
void dataplane_lead_copy(dataplane *d, uint32_t shard, uint64_t incarnation, const dataplane_copies *c,
                         dataplane_done done, void *ctx) {
    configure(d, shard, role_lead, incarnation, c, done, ctx);
}
void dataplane_configure_copies(dataplane *d, uint32_t shard, const dataplane_copies *c, dataplane_done done,
                                void *ctx) {
    configure(d, shard, copies_configure, 0, c, done, ctx);
}

static void about_copy(dataplane *d, uint32_t shard, void (*run)(job *), uint64_t id, dataplane_done done, void *ctx) {
    command *c = command_make(d, shard, run, done, ctx);
    if (!c) return;
    c->copy = id;
    command_post(d, c, PLACE_OPEN);
}
void dataplane_require_copy(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx) {
    about_copy(d, shard, copies_require, id, done, ctx);
}
void dataplane_drop_copy(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx) {
    about_copy(d, shard, copies_drop, id, done, ctx);
}

void dataplane_rely_on_disk(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    command_ask(d, shard, rely_begin, PLACE_OPEN, done, ctx);
}

void dataplane_keep_base(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx) {
    about_copy(d, shard, base_keep, id, done, ctx);
}
void dataplane_hand_over(dataplane *d, uint32_t shard, uint64_t copy, dataplane_done done, void *ctx) {
    about_copy(d, shard, handover_begin, copy, done, ctx);
}
void dataplane_step_down(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx) {
    about_copy(d, shard, handover_step_down, id, done, ctx);
}

/* ---- what is on the disk ---- */

void dataplane_snapshot(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    command_ask(d, shard, snapshots_ask, PLACE_OPEN, done, ctx);
}
void dataplane_discard_copy(dataplane *d, uint32_t shard, uint64_t copy, dataplane_done done, void *ctx) {
    command *c = command_make(d, shard, recovery_discard, done, ctx);
    if (!c) return;
    c->copy = copy;
    pthread_mutex_lock(&d->lock);
    int worker = recovery_worker(d, shard, copy);
    fkv_status s = d->state != DP_RUNNING ? FKV_CLOSED : worker < 0 ? FKV_NOT_FOUND : FKV_OK;
    if (s == FKV_OK) {
        c->w = d->worker[worker];
        worker_post(c->w, &c->job);
    }
    pthread_mutex_unlock(&d->lock);
    if (s != FKV_OK) command_done(c, s, NULL);
}
