/* read.c: two-sided GET, SCAN and LAYOUT: what is answered. How it is sent, in one message or many, is in stream.c. */
#include "read.h"
#include <string.h>
#include "../dataplane/client.h"
#include "../dataplane/worker.h"
#include "../replication/replication.h"
#include "../storage/shard.h"
#include "../table/layout.h"
#include "lease.h"
#include "stream.h"

enum { SEEN_MOST = 1024 }; /* entries that one SCAN or TALLY looks at: some 0.2 ms */
enum { SCAN_CHAINS_MIN = 16, SCAN_VALUES_ROOM = 128 << 10 };
/* For a server that copies: a larger value is cheaper READ, and a page with smaller ones has as many entries as one
 * without values, so it is made in as short a turn. */
enum { COPY_VALUE_MAX = 512, COPY_PAGE_BYTES = 32 << 10 };
/* A chain is serialised whole: its keys without values fit behind everything that was let in before. */
static_assert(SCAN_VALUES_ROOM + FKV_CHAIN_MAX * FKV_SLOTS * (sizeof(fkv_scan_entry) + FKV_KEY_MAX) <=
                  FKV_SCAN_STEP_MAX,
              "a SCAN reply fits its room");

/* The reply is made as it goes out, from 0 to `end` of what its kind counts. */
static void streams(op *o, uint32_t end) {
    o->streams = true;
    o->stream_at = 0;
    o->stream_end = end;
    op_ends(o, FKV_OK);
}

attempt_result read_attempt(op *o) {
    const fkv_request *r = &o->request;
    table_entry e;
    table_busy why;
    if (shard_status(o->worker, o->shard) != FKV_OK) {
        op_ends(o, FKV_SHARD_CLOSED);
        return ATTEMPT_DONE;
    }
    fkv_status s = table_get(o->shard->table, r->space, o->key, r->key_bytes, o->hash, &e, &why);
    if (s == FKV_BUSY) return ATTEMPT_KEY;
    /* READs of it failed too. A reply has no checksum of its value: whoever got damaged bytes would take them for good
     * ones, and a copy or a backup would give them a good checksum. */
    if (s == FKV_OK && !table_is_whole(&e)) s = FKV_CORRUPT; /* mutation: joins/damaged-at-its-owner */
    if (s != FKV_OK) {
        op_ends(o, s);
        return ATTEMPT_DONE;
    }
    o->reply.version = e.version;
    o->reply.expiry_ms = e.expiry_ms;
    o->reply.value_bytes = e.value_bytes;
    o->reply.user_flags = e.user_flags;
    o->reply.codec = e.codec;
    o->stream_value = e.value;
    o->stream_checked_ns = o->worker->now_ns;
    streams(o, e.value_bytes);
    return ATTEMPT_DONE;
}

typedef struct scan_out {
    uint8_t *bytes;
    uint32_t at, entries, entry_max, value_max; /* entry_max: with its value an entry must fit one message */
    bool values, checked; /* what is damaged here goes without its value; checked: with a checksum */
    bool spaces;          /* of every namespace, and of each entry its own */
    const op *of;         /* whose key is a prefix; NULL: every key */
    uint32_t seen;        /* entries that were looked at */
} scan_out;

static scan_out scan_of(const op *o) {
    bool copy = o->request.flags & FKV_REQUEST_SCAN_COPY;
    return (scan_out){ .bytes = o->worker->scratch,
                       .values = o->request.flags & FKV_REQUEST_SCAN_VALUES,
                       .checked = copy,
                       .spaces = copy || o->request.flags & FKV_REQUEST_SCAN_SPACES,
                       .entry_max = (uint32_t)min_u64(stream_body_max(o->client), FKV_SCAN_REPLY_MAX),
                       .value_max = copy ? COPY_VALUE_MAX : UINT32_MAX };
}

/* The value that goes with it, and its checksum. */
static uint32_t value_room(const scan_out *out, const table_entry *e, uint32_t fixed) {
    uint32_t bytes = e->value_bytes + (out->checked ? FKV_SCAN_CHECK_BYTES : 0);
    bool fits = e->value_bytes <= out->value_max && fixed + (uint64_t)bytes <= out->entry_max &&
                out->at + fixed + bytes <= SCAN_VALUES_ROOM;
    return fits ? bytes : UINT32_MAX;
}

static bool is_asked_for(const op *o, const table_entry *e) {
    uint32_t n = o->request.key_bytes;
    return n == 0 || (e->key_bytes >= n && memcmp(e->key, o->key, n) == 0);
}

static void emit(void *ctx, const table_entry *e) {
    scan_out *out = ctx;
    out->seen++;
    if (out->of && !is_asked_for(out->of, e)) return;
    uint32_t fixed = (uint32_t)sizeof(fkv_scan_entry) + e->key_bytes, room = value_room(out, e, fixed);
    bool value = out->values && e->value && room != UINT32_MAX && table_is_whole(e);
    fkv_scan_entry s = { .version = e->version,
                         .expiry_ms = e->expiry_ms,
                         .value_bytes = e->value_bytes,
                         .user_flags = e->user_flags,
                         .key_bytes = e->key_bytes,
                         .codec = e->codec,
                         .has_value = !value         ? FKV_SCAN_VALUE_NONE
                                      : out->checked ? FKV_SCAN_VALUE_CHECKED
                                                     : FKV_SCAN_VALUE_PLAIN,
                         .space = out->spaces ? e->space : 0 };
    uint8_t *to = out->bytes + out->at;
    memcpy(to, &s, sizeof s);
    memcpy(to + sizeof s, e->key, e->key_bytes);
    if (value) memcpy(to + fixed, e->value, e->value_bytes);
    if (value && out->checked) wire_put_scan_check(to + fixed + e->value_bytes, &s, e->key, e->value);
    out->at += fixed + (value ? room : 0);
    out->entries++;
}

/* How many chains a walk may see; what it saw is to be told by `walked`. */
static uint32_t may_walk(const worker *w) { return (uint32_t)max_u64(w->scan_chains, SCAN_CHAINS_MIN); }
static void walked(worker *w, uint32_t chains) { w->scan_chains -= (uint32_t)min_u64(w->scan_chains, chains); }

/* Bounded by the entries that it looks at, and by chains too: a prefix or a namespace of few entries in a large table
 * takes several requests, each with few entries or none. The SCANs of one turn share such a bound, so that many of them
 * hold up others hardly longer than one; each gets on a little. */
void read_scan(op *o) {
    bool copy = o->request.flags & FKV_REQUEST_SCAN_COPY;
    if ((copy ? shard_copy_status(o->worker, o->shard) : shard_status(o->worker, o->shard)) != FKV_OK) {
        op_ends(o, FKV_SHARD_CLOSED);
        return;
    }
    scan_out out = scan_of(o);
    out.of = o;
    uint64_t cursor = o->request.expected;
    uint32_t bytes_most = copy && out.values ? COPY_PAGE_BYTES : FKV_SCAN_REPLY_MAX;
    uint32_t chains = 0, most = may_walk(o->worker);
    do table_scan(o->shard->table, out.spaces ? TABLE_EVERY_NAMESPACE : o->request.space, &cursor, emit, &out);
    while (cursor && out.entries < o->request.value_bytes && out.at < bytes_most && out.seen < SEEN_MOST &&
           ++chains < most);
    walked(o->worker, chains);
    o->reply.version = cursor;
    o->stream_bytes = out.bytes;
    streams(o, out.at);
}

static void tally(void *ctx, const table_entry *e) {
    scan_out *out = ctx;
    out->seen++;
    out->entries += is_asked_for(out->of, e);
}

void read_tally(op *o) {
    if (shard_status(o->worker, o->shard) != FKV_OK) {
        op_ends(o, FKV_SHARD_CLOSED);
        return;
    }
    scan_out out = { .of = o };
    uint64_t cursor = o->request.expected;
    uint32_t chains = 0, most = may_walk(o->worker);
    do table_scan(o->shard->table, o->request.space, &cursor, tally, &out);
    while (cursor && out.seen < SEEN_MOST && ++chains < most);
    walked(o->worker, chains);
    o->reply.version = cursor;
    o->reply.expiry_ms = out.entries;
    op_ends(o, FKV_OK);
}

/* ---- the place at which a copy joins ---- */

enum { SEQUENCES_AN_ENTRY = 200 }; /* fit the smallest message */

static void emit_said(scan_out *out, uint16_t kind, const void *value, uint32_t bytes) {
    fkv_scan_entry e = { .value_bytes = bytes, .key_bytes = 1, .has_value = 1, .kind = kind };
    memcpy(out->bytes + out->at, &e, sizeof e);
    out->bytes[out->at + sizeof e] = 0;
    memcpy(out->bytes + out->at + sizeof e + 1, value, bytes);
    out->at += (uint32_t)sizeof e + 1 + bytes;
}

typedef struct sequences_out {
    scan_out *out;
    uint32_t count;
    bool left_out; /* there was no room for all */
    fkv_join_sequence list[SEQUENCES_AN_ENTRY];
} sequences_out;

static void emit_sequences(sequences_out *s) {
    if (s->count) emit_said(s->out, FKV_SCAN_SEQUENCES, s->list, s->count * (uint32_t)sizeof s->list[0]);
    s->count = 0;
}
static void add_sequence(void *ctx, uint64_t client, uint64_t sequence) {
    sequences_out *s = ctx;
    /* with what says so, and the join point */
    s->left_out |= s->out->at + sizeof s->list + 4 * sizeof(fkv_scan_entry) > FKV_SCAN_STEP_MAX;
    if (s->left_out) return;
    s->list[s->count++] = (fkv_join_sequence){ client, sequence };
    if (s->count == SEQUENCES_AN_ENTRY) emit_sequences(s);
}

static void emit_join(shard *s, scan_out *out) {
    const worker *w = s->w;
    sequences_out sequences = { .out = out };
    dedup_each(&w->dedup, s->slot, add_sequence, &sequences);
    emit_sequences(&sequences);
    uint64_t doubt_ns = dedup_doubt_ns(&w->dedup, s->slot);
    uint64_t doubt_ms = doubt_ns > w->now_ns ? (doubt_ns - w->now_ns) / 1000000u + 1 : 0;
    /* The doubt begins anew when a new shard is served. */
    bool is_long = sequences.left_out || (doubt_ms && shard_is_new(s));
    fkv_join_point p = { .lsn = s->repl.owner.committed,
                         .epoch = s->repl.owner.epoch,
                         .doubt_ms = is_long ? FKV_DEDUP_IDLE_MS : (uint32_t)doubt_ms };
    emit_said(out, FKV_SCAN_JOIN_POINT, &p, sizeof p);
}

void read_changed(op *o) {
    shard *s = o->shard;
    uint64_t now = o->worker->now_ns, place = o->request.expected;
    fkv_status status = shard_copy_status(o->worker, s);
    if (status == FKV_OK && place == 0) {
        place = change_log_begin(&s->changed, now);
        if (!place) status = FKV_NO_MEMORY;
        s->attended = true;
    } else if (status == FKV_OK && !change_log_reaches(&s->changed, place, now)) {
        status = FKV_STALE_SEQUENCE; /* mutation: dataplane/changes-fallen-out */
    }
    if (status != FKV_OK) {
        op_ends(o, status);
        return;
    }
    bool joins = o->request.flags & FKV_REQUEST_SCAN_FROM_HERE;
    scan_out out = scan_of(o);
    uint32_t most = joins ? SCAN_VALUES_ROOM / 2 : FKV_SCAN_REPLY_MAX;
    changed_key k;
    while (out.entries < o->request.value_bytes && out.at < most && change_log_next(&s->changed, &place, &k)) {
        table_entry e;
        uint64_t hash = fkv_hash_key(&o->worker->d->c.hash_seed, k.space, k.key, k.key_bytes);
        if (table_committed(s->table, k.space, k.key, k.key_bytes, hash, &e) != FKV_OK)
            e = (table_entry){ .space = k.space, .key_bytes = k.key_bytes, .key = k.key };
        emit(&out, &e);
    }
    if (out.entries == 0 && place != s->changed.end) { /* no note begins there */
        op_ends(o, FKV_STALE_SEQUENCE);
        return;
    }
    o->reply.version = place;
    if (place == s->changed.end) o->reply.user_flags = FKV_CHANGED_ALL;
    o->stream_bytes = out.bytes;
    if (joins && place == s->changed.end) {
        status = repl_join(s, o->request.expiry);
        if (status != FKV_OK) {
            op_ends(o, status);
            return;
        }
        o->reply.user_flags |= FKV_CHANGED_JOINED;
        emit_join(s, &out);
    }
    streams(o, out.at);
}

void read_layout(op *o) { streams(o, (uint32_t)table_segments(o->shard->table, NULL, 0)); }

void read_leases(op *o) { streams(o, lease_places(o->client->tenant->shards)); }
