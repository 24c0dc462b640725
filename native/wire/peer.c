/* peer.c: see peer.h. The head is copied out before it is checked, and nothing is read twice. */
#include "peer.h"
#include <string.h>

static const uint32_t EPOCH_END = 1u << 20; /* as a version has room for */

static bool is_follow(const fkv_peer_follow *f) {
    return !f->reserved && !f->reserved2 && f->id != 0 && f->epoch < EPOCH_END && f->committed <= f->prepared &&
           f->lease_ms >= 1 && f->lease_ms <= FKV_PEER_LEASE_MS_MAX;
}
static bool is_follow_ok(const fkv_peer_follow_ok *t) { return !t->reserved && !t->reserved2 && t->epoch < EPOCH_END; }
static bool is_notice(const fkv_peer_notice *n) {
    bool of_owner = n->op == FKV_PEER_STALE;
    return !n->reserved && !n->reserved2 && !n->reserved3 && (of_owner ? n->epoch == 0 : n->epoch < EPOCH_END);
}
static bool list_ok(const fkv_peer_list *l, uint32_t bytes, uint32_t item_bytes) {
    return !l->reserved && !l->reserved2 && l->count >= 1 && bytes == l->count * item_bytes;
}

/* One record follows, and its value lies in the region. */
static bool is_value_offer(const fkv_peer_message *m) {
    const fkv_peer_value_offer *a = &m->announce;
    fkv_record r;
    const uint8_t *key, *value;
    uint32_t at = 0;
    if (a->reserved || a->reserved2 || a->reserved3 || a->epoch >= EPOCH_END) return false;
    if (!wire_next_record(m->body, m->bytes, &at, &r, &key, &value) || at != m->bytes) return false;
    if (r.kind != FKV_RECORD_BULK || !wire_record_whole(&r, key, value)) return false;
    uint64_t into = a->addr - a->region_addr;
    return a->addr >= a->region_addr && into <= a->region_bytes && r.value_bytes <= a->region_bytes - into;
}
static bool is_bulk(const fkv_peer_bulk *b) {
    bool good = b->status == FKV_OK || (b->op == FKV_PEER_VALUE_READ && b->status == FKV_TABLE_FULL);
    return good && !b->reserved && !b->reserved2 && b->epoch < EPOCH_END && b->version != 0;
}

static bool items_ok(const fkv_peer_message *m) {
    for (uint32_t i = 0; i < m->list.count; i++) {
        uint32_t epoch = m->op == FKV_PEER_ACKS ? wire_peer_ack(m, i).epoch : wire_peer_heartbeat(m, i).epoch;
        if (epoch >= EPOCH_END) return false;
    }
    return true;
}

static uint32_t head_bytes(uint8_t op) {
    switch (op) {
    case FKV_PEER_FOLLOW: return sizeof(fkv_peer_follow);
    case FKV_PEER_FOLLOW_OK: return sizeof(fkv_peer_follow_ok);
    case FKV_PEER_STALE:
    case FKV_PEER_UNFOLLOW: return sizeof(fkv_peer_notice);
    case FKV_PEER_HEARTBEAT:
    case FKV_PEER_ACKS: return sizeof(fkv_peer_list);
    case FKV_PEER_VALUE_OFFER: return sizeof(fkv_peer_value_offer);
    case FKV_PEER_VALUE_READ:
    case FKV_PEER_VALUE_CANCEL: return sizeof(fkv_peer_bulk);
    default: return 0;
    }
}

fkv_status wire_parse_peer(const void *message, uint32_t bytes, fkv_peer_message *out) {
    *out = (fkv_peer_message){ .op = bytes ? *(const uint8_t *)message : 0 };
    if (out->op == FKV_PEER_RECORDS) {
        fkv_status s = wire_parse_records(message, bytes, &out->records, &out->body);
        out->bytes = s == FKV_OK ? bytes - (uint32_t)sizeof out->records : 0;
        return s == FKV_OK && out->records.epoch >= EPOCH_END ? FKV_BAD_REQUEST : s;
    }
    uint32_t head = head_bytes(out->op);
    if (head == 0 || bytes < head) return FKV_BAD_REQUEST;
    memcpy(&out->follow, message, head); /* every head begins there */
    out->op = out->follow.op;
    out->body = (const uint8_t *)message + head;
    out->bytes = bytes - head;
    bool good = false;
    switch (out->op) {
    case FKV_PEER_FOLLOW: good = out->bytes == 0 && is_follow(&out->follow); break;
    case FKV_PEER_FOLLOW_OK: good = out->bytes == 0 && is_follow_ok(&out->follow_ok); break;
    case FKV_PEER_STALE:
    case FKV_PEER_UNFOLLOW: good = out->bytes == 0 && is_notice(&out->notice); break;
    case FKV_PEER_VALUE_OFFER: good = is_value_offer(out); break;
    case FKV_PEER_VALUE_READ:
    case FKV_PEER_VALUE_CANCEL: good = out->bytes == 0 && is_bulk(&out->bulk); break;
    case FKV_PEER_HEARTBEAT: good = list_ok(&out->list, out->bytes, sizeof(fkv_peer_heartbeat)) && items_ok(out); break;
    case FKV_PEER_ACKS: good = list_ok(&out->list, out->bytes, sizeof(fkv_peer_ack)) && items_ok(out); break;
    }
    return good ? FKV_OK : FKV_BAD_REQUEST;
}

fkv_peer_ack wire_peer_ack(const fkv_peer_message *m, uint32_t i) {
    fkv_peer_ack a;
    memcpy(&a, m->body + i * sizeof a, sizeof a);
    return a;
}
fkv_peer_heartbeat wire_peer_heartbeat(const fkv_peer_message *m, uint32_t i) {
    fkv_peer_heartbeat b;
    memcpy(&b, m->body + i * sizeof b, sizeof b);
    return b;
}
