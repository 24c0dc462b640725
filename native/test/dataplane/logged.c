/* logged.c: see logged.h. */
#include "logged.h"
#include <string.h>
#include "../../base/hash.h"
#include "../check.h"

static void note(logged *l, const wal_section *s, uint64_t lsn, const fkv_record *r, const uint8_t *key,
                 const uint8_t *value) {
    logged_record *to = &l->at[lsn];
    CHECK(lsn <= LOGGED_MOST && r->key_bytes < LOGGED_KEY);
    *to = (logged_record){ .head = *r, .epoch = s->epoch };
    memcpy(to->key, key, r->key_bytes);
    if (r->kind == FKV_RECORD_BULK) {
        CHECK(l->announced && l->large.version == r->version && l->value_at == r->value_bytes);
        to->head.kind = FKV_RECORD_PUT;
        to->value_crc = l->value_crc;
        l->announced = false;
    } else {
        to->value_crc = fkv_crc32c(0, value, r->value_bytes);
    }
}

/* In front of the next record: first that record without its value, then the bytes of the value. */
static void part(logged *l, const wal_section *s, const uint8_t *bytes) {
    const uint8_t *key, *value;
    uint32_t at = 0;
    CHECK(s->first == l->last + 1 && s->epoch == l->epoch);
    if (!l->announced) {
        CHECK(wire_next_record(bytes, s->bytes, &at, &l->large, &key, &value) && at == s->bytes);
        CHECK_EQ(l->large.kind, FKV_RECORD_BULK);
        l->announced = true;
        l->value_at = l->value_crc = 0;
        return;
    }
    l->value_crc = fkv_crc32c(l->value_crc, bytes, s->bytes);
    l->value_at += s->bytes;
    l->pieces++;
    CHECK(l->value_at <= l->large.value_bytes);
}

static bool section(void *arg, const wal_section *s, const uint8_t *records) {
    logged *l = arg;
    if (s->shard != l->shard || s->copy != l->copy) return true;
    if (s->bytes == 0) {
        CHECK(!l->begun || (s->epoch >= l->epoch && s->first <= l->last + 1));
        if (!l->begun || l->last == l->base) l->base = s->first - 1;
        l->begun = true;
        l->announced = false;
        l->epoch = s->epoch;
        l->last = s->first - 1;
        return true;
    }
    CHECK(l->begun && s->epoch == l->epoch && s->first == l->last + 1);
    if (s->count == 0) {
        part(l, s, records);
        return true;
    }
    fkv_record r;
    const uint8_t *key, *value;
    uint32_t at = 0, count = 0;
    for (; wire_next_record(records, s->bytes, &at, &r, &key, &value); count++) {
        CHECK(wire_record_whole(&r, key, value));
        note(l, s, ++l->last, &r, key, value);
    }
    CHECK(count == s->count && at == s->bytes);
    CHECK(s->committed <= l->last);
    return true;
}

void logged_read(disk *d, const wal_identity *of, uint32_t shard, uint64_t copy, logged *out) {
    wal_found found;
    char text[200];
    memset(out, 0, sizeof *out);
    out->shard = shard;
    out->copy = copy;
    wal_replay(d, of, section, out, &found);
    wal_found_text(&found, text, sizeof text);
    if (found.verdict > WAL_TORN) check_failed(__FILE__, __LINE__, text);
    wal_files_free(&found.files);
}

const logged_record *logged_find(const logged *l, uint64_t version) {
    for (uint64_t lsn = l->base + 1; lsn <= l->last; lsn++)
        if (l->at[lsn].head.version == version) return &l->at[lsn];
    return NULL;
}
