/* import.c: entries of a shard that is copied here are taken over into its table, before the copy follows, with their
 * versions.
 *
 * A command has whole entries; they are taken in order, and one command after the other. When the table must first have
 * memory the rest waits for the next turns (repl_tick), as changes of clients do. Nobody else changes the table
 * meanwhile. */
#include "import.h"
#include "base.h"

static const uint64_t WAIT_NS = 1000000;

fkv_status import_entry(shard *s, const fkv_scan_entry *e, const uint8_t *key, const uint8_t *value, bool damaged) {
    table_op op = { .kind = e->version ? TABLE_PUT : TABLE_DELETE,
                    .space = e->space,
                    .key_bytes = e->key_bytes,
                    .codec = e->codec,
                    .key = key,
                    .hash = fkv_hash_key(&s->w->d->c.hash_seed, e->space, key, e->key_bytes),
                    .value = value,
                    .value_bytes = value ? e->value_bytes : 0,
                    .user_flags = e->user_flags,
                    .expiry_ms = e->expiry_ms,
                    .version = e->version };
    table_prepared p;
    table_busy why;
    uint64_t present;
    fkv_status status = table_prepare(s->table, &op, &p, &present, &why);
    if (status == FKV_OK && damaged) table_seal_damaged(s->table, &p); /* mutation: snapshots/damaged-made-good */
    if (status == FKV_OK) table_commit(s->table, &p);
    return status == FKV_NOT_FOUND || status == FKV_VERSION_MISMATCH ? FKV_OK : status;
}

static fkv_status run(shard *s, command *c) {
    fkv_scan_entry e;
    const uint8_t *key, *value;
    for (uint32_t next = c->entries_at; wire_next_scan_entry(c->entries, c->entries_bytes, &next, &e, &key, &value);) {
        if (e.version && !value) return FKV_BAD_REQUEST;
        fkv_status status = import_entry(s, &e, key, value, false);
        if (status != FKV_OK) return status;
        c->entries_at = next;
    }
    return c->entries_at == c->entries_bytes ? FKV_OK : FKV_BAD_REQUEST;
}

static void end(command *c, fkv_status status) {
    list_remove(&c->importing);
    command_done(c, status, NULL);
}

void imports_continue(shard *s) {
    while (!list_empty(&s->repl.imports)) {
        command *c = LIST_OF(s->repl.imports.next, command, importing);
        fkv_status status = c->page ? base_compare(s, c) : run(s, c);
        s->touched = true;
        if (status == FKV_BUSY) {
            s->tick_ns = min_u64(s->tick_ns, s->w->now_ns + WAIT_NS);
            return;
        }
        end(c, status);
    }
}

void imports_end(shard *s, fkv_status why) {
    while (!list_empty(&s->repl.imports)) end(LIST_OF(s->repl.imports.next, command, importing), why);
}

void import_begin(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    bool takes = s && s->state == SHARD_OPEN && !s->starting && !s->repl.basing;
    if (!takes || s->repl.copy) { /* mutation: joins/import-into-a-copy */
        command_done(c, s ? FKV_BUSY : command_none(c), NULL);
        return;
    }
    /* mutation: durable/takeover-not-owed */
    s->repl.snapshot.owed = s->durable; /* what is taken over is in no log */
    list_push(&s->repl.imports, &c->importing);
    imports_continue(s);
}
