/* peer.h: the messages between the data planes of a shard's owner and of its backups (docs/replication-links.md).
 * Little-endian, packed by hand, and as hostile as any message until checked. RECORDS has its body in record.h.
 *
 *   from a backup    FOLLOW, ACKS, UNFOLLOW, VALUE_READ
 *   from an owner    FOLLOW_OK, STALE, RECORDS, HEARTBEAT, VALUE_OFFER, VALUE_CANCEL
 *
 * A message is its head, which begins with its number; then, of ACKS and HEARTBEAT, `count` items; then nothing.
 *
 *   FOLLOW        this copy is at that place, and wants the records that it lacks; the first about its shard
 *   FOLLOW_OK     the answer: who owns the shard, and the last record that it had when its epoch began. A copy that comes
 *                 from an earlier epoch drops what it has behind that
 *   STALE         the other answer: this server does not own the shard, or not any more, or does not know the copy
 *   RECORDS       what is to be prepared, from the first that the copy lacks
 *   HEARTBEAT     up to where the owner has committed, of each shard, what its table is then, and its clock
 *   ACKS          up to where a copy has prepared, of each shard; a lease for these, which counts from asked_ns
 *   VALUE_OFFER   where a large value lies, that is to be READ; its change's record (BULK) comes later, and names it by
 *                 its version
 *   VALUE_READ    it was READ, and its checksum is right; or there is no room for it
 *   VALUE_CANCEL  its record will not come
 *   UNFOLLOW      no acknowledgement and no lease of this shard comes behind this message, but after another FOLLOW
 */
#ifndef FARKV_WIRE_PEER_H
#define FARKV_WIRE_PEER_H
#include "record.h"

/* FKV_PEER_RECORDS, 1, is in record.h */
enum {
    FKV_PEER_FOLLOW = 2,
    FKV_PEER_FOLLOW_OK,
    FKV_PEER_STALE,
    FKV_PEER_HEARTBEAT,
    FKV_PEER_ACKS,
    FKV_PEER_UNFOLLOW,
    FKV_PEER_VALUE_OFFER,
    FKV_PEER_VALUE_READ,
    FKV_PEER_VALUE_CANCEL,
    FKV_PEER_COUNT
};
enum { FKV_PEER_LEASE_MS_MAX = 3600000 };

typedef struct fkv_peer_follow {
    uint8_t op, reserved;
    uint16_t reserved2;
    uint32_t shard;
    uint32_t epoch;    /* of the owner that the copy has followed last, or was */
    uint32_t lease_ms; /* what each acknowledgement is worth */
    uint64_t id;       /* of the copy; not 0 */
    uint64_t prepared, committed;
    uint64_t room; /* bytes of extents that it can take beyond what it has prepared */
} fkv_peer_follow;
static_assert(sizeof(fkv_peer_follow) == 48, "drawing");

typedef struct fkv_peer_follow_ok {
    uint8_t op, reserved;
    uint16_t reserved2;
    uint32_t shard, epoch, config;
    uint64_t last; /* when the epoch began */
} fkv_peer_follow_ok;
static_assert(sizeof(fkv_peer_follow_ok) == 24, "drawing");

/* STALE, of which epoch is 0, and UNFOLLOW. */
typedef struct fkv_peer_notice {
    uint8_t op, reserved;
    uint16_t reserved2;
    uint32_t shard, epoch, reserved3;
} fkv_peer_notice;
static_assert(sizeof(fkv_peer_notice) == 16, "drawing");

/* ACKS, HEARTBEAT. */
typedef struct fkv_peer_list {
    uint8_t op, reserved;
    uint16_t count; /* at least 1 */
    uint32_t reserved2;
    uint64_t asked_ns; /* the owner's clock; of ACKS: the last that came over this connection; 0: no lease */
} fkv_peer_list;
static_assert(sizeof(fkv_peer_list) == 16, "drawing");
typedef struct fkv_peer_ack {
    uint32_t shard, epoch;
    uint64_t prepared;
    uint64_t limit; /* bytes of extents that the records since FOLLOW may have in all */
} fkv_peer_ack;
static_assert(sizeof(fkv_peer_ack) == 24, "drawing");
typedef struct fkv_peer_heartbeat {
    uint32_t shard, epoch;
    uint64_t committed;
    uint64_t digest; /* of the table then; 0: not said */
} fkv_peer_heartbeat;
static_assert(sizeof(fkv_peer_heartbeat) == 24, "drawing");

/* VALUE_OFFER; then one record of kind BULK. */
typedef struct fkv_peer_value_offer {
    uint8_t op, reserved;
    uint16_t reserved2;
    uint32_t shard, epoch;
    uint32_t tag;       /* of the segment that the owner's extent lies in */
    uint64_t committed; /* as of RECORDS */
    uint64_t rkey, region_addr, region_bytes;
    uint64_t addr; /* of the value, in the region */
    uint32_t crc;  /* of the owner's extent (layout.h) */
    uint32_t reserved3;
} fkv_peer_value_offer;
static_assert(sizeof(fkv_peer_value_offer) == 64, "drawing");
/* VALUE_READ; VALUE_CANCEL, of which status is OK. */
typedef struct fkv_peer_bulk {
    uint8_t op;
    uint8_t status; /* fkv_status: OK or TABLE_FULL */
    uint16_t reserved;
    uint32_t shard, epoch, reserved2;
    uint64_t version;
} fkv_peer_bulk;
static_assert(sizeof(fkv_peer_bulk) == 24, "drawing");

typedef struct fkv_peer_message {
    uint8_t op; /* says which of these it is */
    union {
        fkv_peer_follow follow;
        fkv_peer_follow_ok follow_ok;
        fkv_peer_notice notice;
        fkv_records records;
        fkv_peer_list list;
        fkv_peer_value_offer announce;
        fkv_peer_bulk bulk;
    };
    const uint8_t *body; /* of `bytes` bytes, in the message: records, items */
    uint32_t bytes;
} fkv_peer_message;

/* FKV_OK or FKV_BAD_REQUEST. After OK every number is within its limits, records and items are whole, and the message
 * has nothing else. */
fkv_status wire_parse_peer(const void *message, uint32_t bytes, fkv_peer_message *out);
/* The i-th item, i < list.count. */
fkv_peer_ack wire_peer_ack(const fkv_peer_message *m, uint32_t i);
fkv_peer_heartbeat wire_peer_heartbeat(const fkv_peer_message *m, uint32_t i);
#endif
