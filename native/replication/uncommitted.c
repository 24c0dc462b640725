/* uncommitted.c: see uncommitted.h. */
#include "uncommitted.h"
#include "../base/assert.h"
#include "../dataplane/op.h"
#include "backup.h"
#include "bulk.h"
#include "replication.h"

uint64_t uncommitted_last(const shard *s) {
    return backup_follows(s) ? s->repl.copy->place.prepared : s->repl.owner.last;
}

/* From the nearer end. */
static op *op_at(const shard *s, uint64_t lsn) {
    uint64_t last = s->repl.owner.last, first = LIST_OF(s->repl.unacked.next, op, link)->lsn;
    const fkv_list *l = lsn - first < last - lsn ? s->repl.unacked.next : s->repl.unacked.prev;
    if (l == s->repl.unacked.next)
        while (LIST_OF(l, op, link)->lsn < lsn) l = l->next;
    else
        while (LIST_OF(l, op, link)->lsn > lsn) l = l->prev;
    op *o = LIST_OF(l, op, link);
    fkv_assert(o->lsn == lsn);
    return o;
}

uncommitted uncommitted_at(const shard *s, uint64_t lsn) {
    uncommitted p = { .s = s, .lsn = lsn };
    if (!backup_follows(s) && lsn > s->repl.owner.inherited && lsn <= s->repl.owner.last) p.of = op_at(s, lsn);
    return p;
}
void uncommitted_next(uncommitted *p) {
    p->lsn++;
    if (p->lsn > uncommitted_last(p->s))
        p->of = NULL;
    else if (p->of)
        p->of = LIST_OF(p->of->link.next, op, link);
    else
        *p = uncommitted_at(p->s, p->lsn);
}

/* What is the same of both. */
static fkv_record describe(const table_prepared *p) {
    const fkv_extent *e = p->extent;
    if (!e) return (fkv_record){ .kind = FKV_RECORD_DELETE, .version = p->version };
    return (fkv_record){ .kind = FKV_RECORD_PUT,
                         .codec = e->codec,
                         .value_bytes = e->value_bytes,
                         .user_flags = e->user_flags,
                         .version = p->version,
                         .expiry_ms = fkv_extent_expiry(e->expiry_space) };
}
static fkv_record as_sent(fkv_record r) {
    if (r.kind == FKV_RECORD_PUT && !bulk_fits_message(r.key_bytes, r.value_bytes)) r.kind = FKV_RECORD_BULK;
    return r;
}
fkv_record uncommitted_describe(const op *o) {
    fkv_record r = describe(&o->prepared);
    r.key_bytes = o->request.key_bytes;
    r.space = o->request.space;
    r.client = dedup_client_id(o->memory);
    r.sequence = o->request.sequence;
    r.value = o->reply.expiry_ms; /* mutation: derive/copy-without-result */
    return as_sent(r);
}
fkv_record uncommitted_record(const uncommitted *p, const uint8_t **key, const uint8_t **value) {
    if (p->of) {
        *key = p->of->key;
        *value = p->of->prepared.value;
        return uncommitted_describe(p->of);
    }
    const backup_record *b = backup_record_at(p->s->repl.copy, p->lsn);
    fkv_record r = describe(&b->prepared);
    r.key_bytes = b->key_bytes;
    r.space = b->space;
    r.client = b->client;
    r.sequence = b->sequence;
    r.value = b->value;
    *key = b->key ? b->key : b->prepared.key;
    *value = b->prepared.value;
    return as_sent(r);
}
const table_prepared *uncommitted_prepared(const uncommitted *p) {
    return p->of ? &p->of->prepared : &backup_record_at(p->s->repl.copy, p->lsn)->prepared;
}

uint32_t uncommitted_fill(uncommitted *p, uint8_t *to, uint32_t room, uint16_t *count) {
    uint32_t used = 0, n;
    const uint8_t *key, *value;
    for (*count = 0; p->lsn <= uncommitted_last(p->s) && *count < UINT16_MAX; uncommitted_next(p), ++*count) {
        fkv_record r = uncommitted_record(p, &key, &value);
        if (r.kind == FKV_RECORD_BULK && *count > 0) break;
        n = wire_put_record(to + used, room - used, &r, key, value);
        if (n == 0) break;
        used += n;
    }
    return used;
}
