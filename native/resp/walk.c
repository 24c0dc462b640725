/* walk.c: DBSIZE, SCAN, KEYS and RANDOMKEY: one call after the other, each a page of one shard.
 *
 * A walk begins when the calls before it have ended, and nothing behind it in its connection is run before its end: so
 * it sees what came before it, and one connection holds the pages of one walk. Other connections have their turns between
 * its calls, each of which is a short turn of the shard's owner.
 *
 * A cursor of SCAN is a number that any later call goes on from, of this gateway or of another one: the shard, counted
 * from the first, in the bits above 32, and the owner's own cursor, a place in the order of the hash.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/hash.h"
#include "../wire/fields.h"
#include "glob.h"
#include "walk.h"

enum {
    PAGE = 1024,               /* entries that are asked for at once, at most */
    PATTERN_MAX = 2 << 10,     /* so that a page's keys are compared soon */
    SCAN_BYTES = 64 << 10,     /* of keys: no further page is added */
    SCAN_STEPS = 64,           /* likewise pages, if they are empty */
    KEYS_BYTES_MAX = 16 << 20, /* of the answer to KEYS */
    CURSOR_TEXT = 64
};

void walk_free(resp_walk *w) {
    if (!w) return;
    resp_out_free(&w->keys);
    free(w);
}

size_t walk_bytes(const resp_walk *w) { return w ? sizeof *w + w->pattern_bytes + w->keys.room : 0; }

uint32_t walk_shards(const resp_job *j) { return j->c->server->config.store.shards; }

/* ---- one page ---- */

call_start walk_page_start(resp_job *j, resp_call *k, fkv_op op, uint8_t flags, uint32_t entries) {
    const resp_store *s = &j->c->server->config.store;
    const resp_walk *w = j->walk;
    session_ask a = { .op = op,
                      .flags = flags,
                      .space = flags & FKV_REQUEST_SCAN_SPACES ? 0 : j->space,
                      .shard = w->shard,
                      .expected = w->cursor,
                      .key = w->prefix,
                      .key_bytes = w->prefix_bytes,
                      .value_bytes = entries };
    free(k->value);
    k->value = NULL;
    return call_started(j, k, s->walk(s->ctx, &a, k));
}

static call_start list_start(resp_job *j, resp_call *k) {
    int64_t left = j->walk->wanted - j->walk->counted;
    return walk_page_start(j, k, FKV_OP_SCAN, 0, left < PAGE ? (uint32_t)left : PAGE);
}

bool walk_page_ended(resp_walk *w, const lookup_result *r) {
    if (r->status != FKV_OK) return false;
    w->pages++;
    w->cursor = r->version;
    if (!w->cursor) w->shard++;
    return true;
}

static void list_page(resp_walk *w, resp_call *k) {
    fkv_scan_entry e;
    const uint8_t *key, *value;
    for (uint32_t at = 0; k->value && wire_next_scan_entry(k->value, k->result.value_bytes, &at, &e, &key, &value);) {
        if (e.codec == FKV_CODEC_FIELDS ? w->strings : w->hashes) continue;
        if (w->matches && !resp_glob_matches(w->pattern, w->pattern_bytes, key, e.key_bytes)) continue;
        resp_bulk(&w->keys, key, e.key_bytes);
        w->counted++;
    }
    if (w->keys.failed) k->result.status = FKV_NO_MEMORY;
}

resp_job *walk_new(resp_connection *c, const resp_work *work, resp_bytes pattern) {
    if (pattern.n > PATTERN_MAX) {
        resp_error(connection_answer(c), "ERR a pattern of %u bytes: at most %d, see docs/gateway.md", pattern.n,
                   PATTERN_MAX);
        return NULL;
    }
    resp_walk *w = calloc(1, sizeof *w + pattern.n);
    resp_job *j = w ? job_new_walk(c, work, w) : NULL;
    if (!j) {
        free(w);
        if (!w) answer_failure(connection_answer(c), FKV_NO_MEMORY);
        return NULL;
    }
    w->wanted = INT64_MAX;
    w->matches = pattern.n != 1 || pattern.bytes[0] != '*';
    w->pattern_bytes = pattern.n;
    if (pattern.n) memcpy(w->pattern, pattern.bytes, pattern.n);
    w->prefix_bytes = resp_glob_prefix(pattern.bytes, pattern.n, w->prefix, sizeof w->prefix);
    return j;
}

/* `n` of the replies in `keys`. */
static void answer_keys(resp_job *j, resp_out *o, int64_t n) {
    resp_array(o, (uint32_t)n);
    resp_out_move(o, &j->walk->keys);
}

const resp_bytes WALK_EVERYTHING = { (const uint8_t *)"*", 1 };

/* ---- DBSIZE ---- */

static call_start dbsize_start(resp_job *j, resp_call *k) { return walk_page_start(j, k, FKV_OP_TALLY, 0, 0); }

static bool dbsize_ended(resp_job *j, resp_call *k) {
    resp_walk *w = j->walk;
    if (!walk_page_ended(w, &k->result)) return true;
    w->counted += (int64_t)k->result.expiry_ms;
    return w->shard == walk_shards(j);
}

static void dbsize_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (r->status == FKV_OK)
        resp_integer(o, j->walk->counted);
    else
        answer_failure(o, r->status);
}
static const resp_work dbsize_work = {
    .walks = true, .start = dbsize_start, .ended = dbsize_ended, .finish = dbsize_finish
};

void dbsize_command(resp_connection *c) { walk_new(c, &dbsize_work, WALK_EVERYTHING); }

/* ---- KEYS ---- */

static bool keys_ended(resp_job *j, resp_call *k) {
    resp_walk *w = j->walk;
    if (!walk_page_ended(w, &k->result)) return true;
    list_page(w, k);
    return w->shard == walk_shards(j) || resp_out_bytes(&w->keys) > KEYS_BYTES_MAX || k->result.status != FKV_OK;
}

static void keys_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (r->status != FKV_OK)
        answer_failure(o, r->status);
    else if (resp_out_bytes(&j->walk->keys) > KEYS_BYTES_MAX)
        resp_error(o, "ERR KEYS would answer more than %d bytes: use SCAN, see docs/gateway.md", KEYS_BYTES_MAX);
    else
        answer_keys(j, o, j->walk->counted);
}
static const resp_work keys_work = {
    .walks = true, .wants_value = true, .start = list_start, .ended = keys_ended, .finish = keys_finish
};

void keys_command(resp_connection *c) { walk_new(c, &keys_work, argument(c, 1)); }

/* ---- SCAN ---- */

static bool scan_ended(resp_job *j, resp_call *k) {
    resp_walk *w = j->walk;
    if (!walk_page_ended(w, &k->result)) return true;
    list_page(w, k);
    return w->shard == walk_shards(j) || w->counted >= w->wanted || w->pages >= SCAN_STEPS ||
           resp_out_bytes(&w->keys) > SCAN_BYTES || k->result.status != FKV_OK;
}

static void answer_scan(resp_out *o, uint64_t cursor) {
    char text[CURSOR_TEXT];
    snprintf(text, sizeof text, "%llu", (unsigned long long)cursor);
    resp_array(o, 2);
    resp_text(o, text);
}

static void scan_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    const resp_walk *w = j->walk;
    if (r->status != FKV_OK) {
        answer_failure(o, r->status);
        return;
    }
    answer_scan(o, w->shard == walk_shards(j) ? 0 : (uint64_t)w->shard << 32 | w->cursor);
    answer_keys(j, o, w->counted);
}
static const resp_work scan_work = {
    .walks = true, .wants_value = true, .start = list_start, .ended = scan_ended, .finish = scan_finish
};

/* Whatever strtoul takes but a leading blank, a text that is not whole, and what overflows. */
static bool read_cursor(resp_bytes b, uint64_t *out) {
    char text[CURSOR_TEXT], *end;
    if (b.n >= sizeof text || (b.n && isspace(b.bytes[0]))) return false;
    memcpy(text, b.bytes, b.n);
    text[b.n] = '\0';
    errno = 0;
    *out = strtoul(text, &end, 10);
    return !*end && errno != ERANGE;
}

typedef struct scan_options {
    resp_bytes pattern;
    int64_t wanted;
    bool hashes, strings; /* only those */
} scan_options;

/* False: answered. */
static bool read_scan_options(resp_connection *c, scan_options *s) {
    for (uint32_t i = 2; i < c->parser.count; i += 2) {
        resp_bytes b = argument(c, i);
        bool valued = i + 1 < c->parser.count;
        if (valued && is_word(b, "count")) {
            if (!integer_argument(c, i + 1, &s->wanted)) return false;
            if (s->wanted >= 1) continue;
        } else if (valued && is_word(b, "match")) {
            s->pattern = argument(c, i + 1);
            continue;
        } else if (valued && is_word(b, "type")) {
            s->hashes = !is_word(argument(c, i + 1), "string");
            s->strings = !is_word(argument(c, i + 1), "hash");
            continue;
        }
        resp_error(connection_answer(c), "ERR syntax error");
        return false;
    }
    return true;
}

void scan_command(resp_connection *c) {
    resp_out *o = connection_answer(c);
    scan_options s = { .pattern = WALK_EVERYTHING, .wanted = 10 };
    uint64_t cursor;
    if (!read_cursor(argument(c, 1), &cursor)) {
        resp_error(o, "ERR invalid cursor");
        return;
    }
    if (!read_scan_options(c, &s)) return;
    if ((s.hashes && s.strings) || cursor >> 32 >= c->server->config.store.shards) { /* no key is there */
        answer_scan(o, 0);
        resp_array(o, 0);
        return;
    }
    resp_job *j = walk_new(c, &scan_work, s.pattern);
    if (!j) return;
    j->walk->shard = (uint32_t)(cursor >> 32);
    j->walk->cursor = (uint32_t)cursor;
    j->walk->wanted = s.wanted;
    j->walk->hashes = s.hashes;
    j->walk->strings = s.strings;
}

/* ---- RANDOMKEY ---- */

/* One key of the first page from a random place on that has any. */
static bool randomkey_ended(resp_job *j, resp_call *k) {
    resp_walk *w = j->walk;
    if (!walk_page_ended(w, &k->result)) return true;
    list_page(w, k);
    if (!w->cursor) {
        w->shards_left--;
        if (w->shard == walk_shards(j)) w->shard = 0;
    }
    return w->counted || !w->shards_left || k->result.status != FKV_OK;
}

static void randomkey_finish(resp_job *j, resp_out *o) {
    const resp_call *k = &j->call[0];
    fkv_scan_entry e;
    const uint8_t *key = NULL, *value;
    uint32_t at = 0, which;
    if (k->result.status != FKV_OK) {
        answer_failure(o, k->result.status);
        return;
    }
    if (!j->walk->counted) {
        resp_null(o, j->protocol);
        return;
    }
    fkv_random(&which, sizeof which);
    which %= (uint32_t)j->walk->counted;
    do wire_next_scan_entry(k->value, k->result.value_bytes, &at, &e, &key, &value);
    while (which--);
    resp_bulk(o, key, e.key_bytes);
}
static const resp_work randomkey_work = {
    .walks = true, .wants_value = true, .start = list_start, .ended = randomkey_ended, .finish = randomkey_finish
};

void randomkey_command(resp_connection *c) {
    resp_job *j = walk_new(c, &randomkey_work, WALK_EVERYTHING);
    uint32_t place[2];
    if (!j) return;
    fkv_random(place, sizeof place);
    j->walk->shard = place[0] % walk_shards(j);
    j->walk->cursor = place[1];
    j->walk->wanted = 1;
    j->walk->shards_left = walk_shards(j) + 1; /* the first one again, for what lies before the place */
}
