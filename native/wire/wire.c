/* wire.c: parsing of requests and replies. Every byte is hostile until checked; nothing here allocates, and nothing is
 * read twice from the message where a second look could differ: the fixed part is copied out first. What belongs to an
 * operation is its row of ops.h. */
#include "wire.h"
#include <string.h>
#include "../base/hash.h"
#include "../table/layout.h"
#include "fields.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "messages are little-endian and copied as they lie");

const char *fkv_end_name(fkv_end e) {
    static const char *const names[FKV_END_COUNT] = { "", "quota", "stall", "malformed", "surplus", "ticket" };
    return names[e];
}

static bool rendezvous_ok(const uint8_t *body, uint32_t value_bytes) {
    fkv_rendezvous v;
    memcpy(&v, body, sizeof v);
    if (v.region_bytes > FKV_RENDEZVOUS_REGION_MAX || v.region_addr + v.region_bytes < v.region_addr) return false;
    if (v.addr < v.region_addr) return false;
    uint64_t at = v.addr - v.region_addr;
    return at <= v.region_bytes && value_bytes <= v.region_bytes - at;
}

static bool fields_ok(const fkv_request *r, const uint8_t *body, uint32_t left) {
    uint32_t count;
    if (left != r->value_bytes || r->codec != FKV_CODEC_FIELDS) return false;
    if (!fkv_count_fields(body, left, &count) || count == 0) return false; /* mutation: derive/cut-fields */
    if (r->op == FKV_OP_SET_FIELDS) return r->expected <= 1;
    return r->op != FKV_OP_INCREMENT_FIELD || count == 1;
}

/* Of what the owner makes an entry with. */
static fkv_status check_part(const fkv_request *r, const uint8_t *body, uint32_t left) {
    if (r->value_bytes > FKV_APPEND_MAX) return FKV_VALUE_TOO_LARGE;
    bool good = fkv_op_is(r->op, FKV_FIELDS) ? fields_ok(r, body, left) : left == r->value_bytes;
    return good ? FKV_OK : FKV_BAD_REQUEST;
}

static fkv_status check_value(const fkv_request *r, const uint8_t *body, uint32_t left) {
    if (r->value_bytes > FKV_VALUE_MAX) return FKV_VALUE_TOO_LARGE;
    if (!(r->flags & FKV_REQUEST_RENDEZVOUS)) return left == r->value_bytes ? FKV_OK : FKV_BAD_REQUEST;
    if (r->value_bytes == 0 || left != sizeof(fkv_rendezvous)) return FKV_BAD_REQUEST;
    return rendezvous_ok(body, r->value_bytes) ? FKV_OK : FKV_BAD_REQUEST;
}

fkv_status wire_parse_request(const void *message, uint32_t bytes, fkv_request *r, const uint8_t **key,
                              const uint8_t **body) {
    *key = *body = NULL;
    if (bytes < sizeof *r) {
        *r = (fkv_request){ 0 };
        return FKV_BAD_REQUEST;
    }
    memcpy(r, message, sizeof *r);
    uint32_t left = bytes - (uint32_t)sizeof *r;
    if (r->op == 0 || r->op >= FKV_OP_COUNT) return FKV_BAD_REQUEST;
    uint16_t traits = fkv_ops[r->op].traits;
    if (r->flags & ~fkv_ops[r->op].flags || r->reserved || r->reserved2) return FKV_BAD_REQUEST;
    if (!(traits & FKV_EXPECTS) && r->expected) return FKV_BAD_REQUEST;
    if (traits & FKV_CHANGES ? r->sequence == 0 || r->sequence > FKV_SEQUENCE_MAX : r->sequence != 0)
        return FKV_BAD_REQUEST;
    bool joins = r->flags & FKV_REQUEST_SCAN_FROM_HERE;
    bool expires = traits & FKV_EXPIRES && !(r->flags & FKV_REQUEST_KEEP_EXPIRY);
    if (joins ? r->expiry == 0 : r->expiry > (expires ? FKV_TTL_MAX : 0)) return FKV_BAD_REQUEST;
    if (traits & FKV_KEYED) {
        if (r->key_bytes == 0 || r->key_bytes > FKV_KEY_MAX) return FKV_KEY_INVALID;
    } else if (r->key_bytes > (traits & FKV_PREFIXED ? FKV_KEY_MAX : 0)) {
        return FKV_BAD_REQUEST;
    }
    if (left < r->key_bytes) return FKV_BAD_REQUEST;
    left -= r->key_bytes;
    *key = (const uint8_t *)message + sizeof *r;
    *body = *key + r->key_bytes;
    if (traits & FKV_VALUED) return (traits & FKV_DERIVES ? check_part : check_value)(r, *body, left);
    if (traits & FKV_REPORTS && left)
        return left == sizeof(fkv_report) && r->value_bytes == left ? FKV_OK : FKV_BAD_REQUEST;
    if (traits & FKV_RENEWS) return left == sizeof(fkv_renewal) && r->value_bytes == left ? FKV_OK : FKV_BAD_REQUEST;
    if (left) return FKV_BAD_REQUEST;
    bool copy = r->flags & FKV_REQUEST_SCAN_COPY, changed = r->flags & FKV_REQUEST_SCAN_CHANGED;
    bool spaces = r->flags & FKV_REQUEST_SCAN_SPACES;
    if ((changed && !copy) || (joins && !changed) || (copy && spaces)) return FKV_BAD_REQUEST;
    if (((copy || spaces) && r->space) || (copy && r->key_bytes)) return FKV_BAD_REQUEST;
    return !r->value_bytes == !(traits & FKV_COUNTED) ? FKV_OK : FKV_BAD_REQUEST;
}

static uint32_t check_bytes(const fkv_scan_entry *e) {
    return e->has_value == FKV_SCAN_VALUE_CHECKED ? FKV_SCAN_CHECK_BYTES : 0;
}

bool wire_next_scan_entry(const uint8_t *body, uint32_t body_bytes, uint32_t *at, fkv_scan_entry *e,
                          const uint8_t **key, const uint8_t **value) {
    uint32_t left = body_bytes - *at;
    if (left < sizeof *e) return false;
    memcpy(e, body + *at, sizeof *e);
    left -= (uint32_t)sizeof *e;
    if (e->key_bytes == 0 || e->key_bytes > FKV_KEY_MAX || e->key_bytes > left) return false;
    left -= e->key_bytes;
    if (e->has_value > FKV_SCAN_VALUE_CHECKED) return false;
    uint64_t bytes = !e->has_value ? 0 : (uint64_t)e->value_bytes + check_bytes(e);
    if (bytes > left) return false;
    *key = body + *at + sizeof *e;
    *value = e->has_value ? *key + e->key_bytes : NULL;
    *at += (uint32_t)sizeof *e + e->key_bytes + (uint32_t)bytes;
    return true;
}

static uint32_t crc_of(const fkv_scan_entry *e, const uint8_t *key, const uint8_t *value) {
    return fkv_crc32c(fkv_crc32c(fkv_crc32c(0, e, sizeof *e), key, e->key_bytes), value, e->value_bytes);
}

void wire_put_scan_check(uint8_t *to, const fkv_scan_entry *e, const uint8_t *key, const uint8_t *value) {
    uint32_t crc = crc_of(e, key, value);
    memcpy(to, &crc, sizeof crc);
}

bool wire_scan_value_whole(const fkv_scan_entry *e, const uint8_t *key, const uint8_t *value) {
    uint32_t crc;
    if (!value || e->has_value != FKV_SCAN_VALUE_CHECKED) return false;
    memcpy(&crc, value + e->value_bytes, sizeof crc);
    return crc == crc_of(e, key, value); /* mutation: joins/damaged-on-its-way */
}

static bool scan_body_ok(const uint8_t *body, uint32_t bytes) {
    fkv_scan_entry e;
    const uint8_t *key, *value;
    uint32_t at = 0;
    while (wire_next_scan_entry(body, bytes, &at, &e, &key, &value)) {}
    return at == bytes;
}

static bool layout_body_ok(const uint8_t *body, uint32_t bytes) {
    fkv_layout l;
    if (bytes < sizeof l) return false;
    memcpy(&l, body, sizeof l);
    uint64_t segments = (uint64_t)l.here * sizeof(fkv_layout_segment);
    return bytes - sizeof l == segments && (uint64_t)l.first + l.here <= l.count;
}

fkv_status wire_parse_reply(const void *message, uint32_t bytes, fkv_reply *r, const uint8_t **body) {
    *body = NULL;
    *r = (fkv_reply){ 0 };
    if (bytes < sizeof *r) return FKV_BAD_REQUEST;
    memcpy(r, message, sizeof *r);
    *body = (const uint8_t *)message + sizeof *r;
    if (r->status >= FKV_STATUS_COUNT) return FKV_BAD_REQUEST;
    if (r->flags & ~FKV_REPLY_MORE || r->body_bytes != bytes - sizeof *r) return FKV_BAD_REQUEST;
    /* `op` is whatever was asked */
    if (r->status != FKV_OK) return r->body_bytes || r->flags ? FKV_BAD_REQUEST : FKV_OK;
    if (r->op == 0 || r->op >= FKV_OP_COUNT) return FKV_BAD_REQUEST;
    bool good = false;
    switch (fkv_op_answer(r->op)) {
    case FKV_BODY_LEASES: good = r->body_bytes % sizeof(fkv_lease_shard) == 0; break;
    case FKV_BODY_LAYOUT: good = layout_body_ok(*body, r->body_bytes); break;
    case FKV_BODY_ENTRIES: good = scan_body_ok(*body, r->body_bytes); break;
    case FKV_BODY_VALUE:
        good = r->value_bytes <= FKV_VALUE_MAX && (uint64_t)r->offset + r->body_bytes <= r->value_bytes;
        break;
    case FKV_BODY_NONE: good = r->body_bytes == 0; break;
    case FKV_BODY_NO_REPLY: break;
    }
    return good ? FKV_OK : FKV_BAD_REQUEST;
}
