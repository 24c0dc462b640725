/* record.c: see record.h. The fixed part is copied out before it is checked, and nothing is read twice. */
#include "record.h"
#include <string.h>
#include "../base/hash.h"
#include "../table/layout.h"
#include "wire.h"

static const uint64_t EXPIRY_END = (uint64_t)1 << 48; /* as an extent has room for */

/* Bytes of the value that follow the key. */
static uint32_t inline_bytes(const fkv_record *r) { return r->kind == FKV_RECORD_BULK ? 0 : r->value_bytes; }

static uint32_t body_crc(const fkv_record *r, const uint8_t *key, const uint8_t *value) {
    return fkv_crc32c(fkv_crc32c(0, key, r->key_bytes), value, inline_bytes(r));
}

uint32_t wire_put_record(uint8_t *to, uint32_t room, const fkv_record *r, const uint8_t *key, const uint8_t *value) {
    uint64_t bytes = sizeof *r + (uint64_t)r->key_bytes + inline_bytes(r);
    if (bytes > room) return 0;
    fkv_record head = *r;
    head.reserved = 0;
    head.reserved2 = 0;
    head.body_crc = body_crc(r, key, value);
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, key, r->key_bytes);
    if (inline_bytes(r)) memcpy(to + sizeof head + r->key_bytes, value, inline_bytes(r));
    return (uint32_t)bytes;
}

static bool is_within_limits(const fkv_record *r) {
    if (r->reserved || r->reserved2 || r->key_bytes == 0 || r->key_bytes > FKV_KEY_MAX) return false;
    if (r->client == 0 || r->sequence == 0 || r->sequence > FKV_SEQUENCE_MAX || r->version == 0) return false;
    if (r->kind == FKV_RECORD_DELETE) return r->value_bytes == 0 && r->expiry_ms == 0;
    if (r->kind == FKV_RECORD_BULK && r->value_bytes == 0) return false;
    return (r->kind == FKV_RECORD_PUT || r->kind == FKV_RECORD_BULK) && r->value_bytes <= FKV_VALUE_MAX &&
           r->expiry_ms < EXPIRY_END;
}

bool wire_next_record(const uint8_t *body, uint32_t body_bytes, uint32_t *at, fkv_record *r, const uint8_t **key,
                      const uint8_t **value) {
    uint32_t left = body_bytes - *at;
    if (left < sizeof *r) return false;
    memcpy(r, body + *at, sizeof *r);
    left -= (uint32_t)sizeof *r;
    if (!is_within_limits(r) || r->key_bytes > left || inline_bytes(r) > left - r->key_bytes) return false;
    *key = body + *at + sizeof *r;
    *value = *key + r->key_bytes;
    *at += (uint32_t)sizeof *r + r->key_bytes + inline_bytes(r);
    return true;
}

fkv_status wire_parse_records(const void *message, uint32_t bytes, fkv_records *head, const uint8_t **body) {
    *body = NULL;
    if (bytes < sizeof *head) return FKV_BAD_REQUEST;
    memcpy(head, message, sizeof *head);
    if (head->op != FKV_PEER_RECORDS || head->reserved || head->first == 0 || head->count == 0) return FKV_BAD_REQUEST;
    if (head->first > UINT64_MAX - head->count) return FKV_BAD_REQUEST;
    *body = (const uint8_t *)message + sizeof *head;
    fkv_record r;
    const uint8_t *key, *value;
    uint32_t at = 0, left = bytes - (uint32_t)sizeof *head, n = 0;
    while (wire_next_record(*body, left, &at, &r, &key, &value)) n++;
    return at == left && n == head->count ? FKV_OK : FKV_BAD_REQUEST;
}

bool wire_record_whole(const fkv_record *r, const uint8_t *key, const uint8_t *value) {
    return body_crc(r, key, value) == r->body_crc;
}
