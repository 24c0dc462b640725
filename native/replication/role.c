/* role.c: see role.h. The table stays where it is through all of this; what changes is who writes to it: imports, then
 * the link, then clients. Each begins when the one before has ended, on the worker's thread. */
#include "role.h"
#include <stdlib.h>
#include "replicate.h"
#include "snapshots.h"

static const uint64_t MS = 1000000, ANSWER_NS = 5000000000u; /* how long the first FOLLOW may take */

void role_answered(shard *s, fkv_status status) { command_end(&s->repl.following, status); }

/* What the table has is what the owner had at that place: every import has ended. */
static fkv_status become_copy(shard *s, const copy_join *k) {
    const dataplane_join *at = &k->at;
    worker *w = s->w;
    replica_backup place = replica_copied(at->epoch, at->lsn);
    if (s->state != SHARD_OPEN || s->repl.copy || s->starting || !list_empty(&s->repl.imports)) return FKV_BUSY;
    if (k->addresses == 0) return FKV_ADDRESS_INVALID;
    if (at->epoch < s->epoch) return FKV_BAD_REQUEST; /* what is in the table may be of that one's */
    if (!backup_make(s, at->id, w->d->c.replica_lease_ms, &place)) return FKV_NO_MEMORY;
    for (uint32_t i = 0; i < k->sequences; i++)
        dedup_forget(&w->dedup, k->sequence[i].client, s->slot, k->sequence[i].sequence, w->now_ns);
    if (s->durable) snapshots_owe(s);
    if (at->doubt_ms) dedup_doubt(&w->dedup, s->slot, w->now_ns + at->doubt_ms * MS);
    return owner_link_follow(s->repl.copy, k->address, k->addresses) ? FKV_OK : FKV_NO_MEMORY;
}

void role_follow(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    fkv_status status = s ? become_copy(s, c->join) : command_none(c);
    if (status != FKV_OK) {
        command_done(c, status, NULL);
        return;
    }
    s->repl.following = c;
    s->repl.following_until_ns = c->w->now_ns + ANSWER_NS;
    s->attended = true;
}

void role_follow_owner(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    const copy_join *k = c->join;
    fkv_status status = !s                                                                   ? command_none(c)
                        : !s->repl.copy                                                      ? FKV_NOT_OWNER
                        : s->state == SHARD_CLOSING || s->repl.copy->leads || s->repl.basing ? FKV_BUSY
                        : k->addresses == 0                                                  ? FKV_ADDRESS_INVALID
                        : owner_link_follow(s->repl.copy, k->address, k->addresses)          ? FKV_OK
                                                                                             : FKV_NO_MEMORY;
    command_done(c, status, NULL);
}

void role_lead(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    const copy_lead *k = c->lead;
    fkv_status status = !s                                                                   ? command_none(c)
                        : !s->repl.copy                                                      ? FKV_NOT_OWNER
                        : s->state == SHARD_CLOSING || s->repl.copy->leads || s->repl.basing ? FKV_BUSY
                        : k->config.epoch <= s->repl.copy->place.epoch                       ? FKV_BAD_REQUEST
                                                                                             : FKV_OK;
    dataplane_layout *l = NULL;
    if (status == FKV_OK) {
        role_answered(s, FKV_ABORTED);
        s->incarnation = k->incarnation;
        if (k->handed) replica_handed(&s->repl.copy->place, k->config.epoch);
        replicate_lead(s, &k->config);
        l = shard_describe(s);
        if (!l) status = FKV_NO_MEMORY;
    }
    command_done(c, status, l);
}
