/* bulk.c: see bulk.h.
 *
 * A change with a large value has no number until all required copies have the value. So those behind it in the log do
 * not wait for it; and one that a copy has no room for can still be refused. Its version names it: no other change has
 * the same one. In `announced` and `pulled` of an op there is one bit for each place of replica_owner.peer. */
#include "bulk.h"
#include <string.h>
#include "../base/hash.h"
#include "../dataplane/op.h"
#include "../dataplane/worker.h"
#include "backup_link.h"
#include "replication.h"
#include "uncommitted.h"

enum { BULKS_MAX = 64 }; /* of a shard, with a number or without */

bool bulk_fits_message(uint32_t key_bytes, uint32_t value_bytes) {
    return sizeof(fkv_records) + sizeof(fkv_record) + (uint64_t)key_bytes + value_bytes <= PEER_MESSAGE_MIN;
}

static uint64_t room_of(const op *o) { return record_room(true, o->request.key_bytes, o->value_bytes); }

fkv_status bulk_admits(const op *o) { return o->shard->repl.bulk_count < BULKS_MAX ? FKV_OK : FKV_BUSY; }

void bulk_begin(op *o) {
    shard *s = o->shard;
    o->state = OP_IS_PULLED;
    o->announced = o->pulled = 0;
    s->repl.drawn_bytes += room_of(o); /* so that small changes leave its room alone */
    s->repl.bulk_count++;
    list_push(&s->repl.bulks, &o->link);
    backup_links_wake(s);
}

void bulk_over(op *o) { o->shard->repl.bulk_count--; }

static bool is_everywhere(const shard *s, const op *o) {
    for (int i = 0; i < REPLICA_PEERS; i++)
        if (s->repl.owner.peer[i].standing >= REPLICA_REQUIRED && !(o->pulled >> i & 1)) return false;
    return true;
}

op *bulk_next(shard *s) {
    if (!replica_admits(&s->repl.owner)) return NULL;
    for (fkv_list *l = s->repl.bulks.next; l != &s->repl.bulks; l = l->next) {
        op *o = LIST_OF(l, op, link);
        if (!is_everywhere(s, o)) continue;
        list_remove(l);
        return o;
    }
    return NULL;
}

/* A copy that nobody waits for has no room: it is asked again when somebody waits for it, or with the record. */
static void withdraw(sender *f, op *o, int i) {
    backup_link_forgets(f, o->prepared.version);
    o->announced &= (uint8_t) ~(1u << i); /* mutation: bulk/refusal-kept */
}

/* Without a number: it has no effect, wherever its value lies. */
static void end(op *o, fkv_status status) {
    shard *s = o->shard;
    for (fkv_list *l = s->repl.senders.next, *next; l != &s->repl.senders; l = next) {
        next = l->next;
        sender *f = LIST_OF(l, sender, of_shard);
        int i = replica_place(&s->repl.owner, f->id);
        if (i >= 0 && o->announced >> i & 1) backup_link_forgets(f, o->prepared.version);
    }
    list_remove(&o->link);
    s->repl.drawn_bytes -= room_of(o);
    bulk_over(o);
    s->w->feed_starved = true;
    op_ends(o, status);
}

void bulks_end(shard *s, fkv_status why) {
    while (!list_empty(&s->repl.bulks)) end(LIST_OF(s->repl.bulks.next, op, link), why);
}

uint64_t bulk_bytes(const shard *s) {
    uint64_t bytes = 0;
    for (const fkv_list *l = s->repl.bulks.next; l != &s->repl.bulks; l = l->next)
        bytes += room_of(LIST_OF(l, op, link));
    return bytes;
}

/* ---- to a copy ---- */

void bulk_sender_begins(shard *s, uint32_t place) {
    uint8_t others = (uint8_t) ~(1u << place);
    fkv_list *lists[] = { &s->repl.bulks, &s->repl.unacked };
    for (int i = 0; i < 2; i++)
        for (fkv_list *l = lists[i]->next; l != lists[i]; l = l->next) {
            op *o = LIST_OF(l, op, link);
            o->announced &= others;
            o->pulled &= others;
        }
    backup *b = s->repl.copy;
    for (uint64_t lsn = b ? b->applied + 1 : 1; b && b->leads && lsn <= b->place.prepared; lsn++)
        backup_record_announced(b, lsn, others, 0);
}

/* The segment that the extent lies in. */
static const segment *segment_of(const shard *s, const fkv_extent *e) {
    const segment_list *list = &s->segments[TABLE_HEAP - 1];
    for (uint32_t i = 0; i < list->top; i++) {
        const segment *m = list->at[i];
        if (m && (uintptr_t)e - (uintptr_t)m->region.base < m->region.bytes) return m;
    }
    return NULL;
}

int bulk_announce(sender *f, const peer_out *out, const table_prepared *p, fkv_record r, const uint8_t *key,
                  uint8_t *announced) {
    const shard *s = f->shard;
    int i = replica_place(&s->repl.owner, f->id);
    const segment *m = segment_of(s, p->extent);
    if (i < 0 || !m || !m->mr[out->place]) return -ESTALE;
    if (*announced >> i & 1) return 0;
    uint64_t base = fab_mr_addr(m->mr[out->place]);
    fkv_peer_value_offer head = { .op = FKV_PEER_VALUE_OFFER,
                                  .shard = s->number,
                                  .epoch = s->repl.owner.epoch,
                                  .tag = p->extent->tag,
                                  .committed = s->repl.owner.committed,
                                  .rkey = fab_mr_rkey(m->mr[out->place]),
                                  .region_addr = base,
                                  .region_bytes = m->region.bytes,
                                  .addr = base + (uint64_t)(p->value - (const uint8_t *)m->region.base),
                                  .crc = p->extent->crc };
    memcpy(out->buffer, &head, sizeof head);
    uint32_t n = wire_put_record(out->buffer + sizeof head, out->room - (uint32_t)sizeof head, &r, key, NULL);
    int e = out->send(out->ctx, out->buffer, (uint32_t)sizeof head + n);
    if (e == 0) *announced |= (uint8_t)(1u << i);
    return e;
}

int bulk_announce_all(sender *f, const peer_out *out) {
    shard *s = f->shard;
    int e = 0, i = replica_place(&s->repl.owner, f->id);
    if (i < 0 || s->repl.owner.peer[i].standing < REPLICA_REQUIRED) return 0;
    int left = BULKS_MAX; /* more may have been fetched from clients together: these wait for the first */
    for (fkv_list *l = s->repl.bulks.next; l != &s->repl.bulks && e == 0 && left-- > 0; l = l->next) {
        op *o = LIST_OF(l, op, link);
        e = bulk_announce(f, out, &o->prepared, uncommitted_describe(o), o->key, &o->announced);
    }
    return e;
}

int bulk_announce_committed(sender *f, const peer_out *out, const fkv_record *r, const uint8_t *key, bool *there) {
    const shard *s = f->shard;
    table_entry e;
    uint64_t hash = fkv_hash_key(&s->w->d->c.hash_seed, r->space, key, r->key_bytes);
    *there = table_committed(s->table, r->space, key, r->key_bytes, hash, &e) == FKV_OK && e.version == r->version;
    if (*there) {
        fkv_extent *extent = (fkv_extent *)(uintptr_t)(e.key - FKV_EXTENT_HEADER);
        table_prepared p = { .version = e.version, .value = (uint8_t *)(uintptr_t)e.value, .extent = extent };
        uint8_t announced = 0;
        return bulk_announce(f, out, &p, *r, key, &announced);
    }
    fkv_peer_bulk m = {
        .op = FKV_PEER_VALUE_CANCEL, .shard = s->number, .epoch = s->repl.owner.epoch, .version = r->version
    };
    return out->send(out->ctx, &m, sizeof m); /* mutation: bulk/not-withdrawn */
}

void bulk_pulled(sender *f, uint64_t version, fkv_status status) {
    shard *s = f->shard;
    int i = replica_place(&s->repl.owner, f->id);
    for (fkv_list *l = s->repl.bulks.next; l != &s->repl.bulks && i >= 0; l = l->next) {
        op *o = LIST_OF(l, op, link);
        if (o->prepared.version != version || !(o->announced >> i & 1)) continue;
        if (status == FKV_OK)
            o->pulled |= (uint8_t)(1u << i);
        else if (s->repl.owner.peer[i].standing >= REPLICA_REQUIRED)
            end(o, status);
        else
            withdraw(f, o, i);
        backup_links_wake(s); /* others may be announced */
        return;
    }
}
