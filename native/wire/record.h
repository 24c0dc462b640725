/* record.h: the records of a shard's changes, as its owner sends them to backups by SEND. Little-endian, packed by hand,
 * and as hostile as any message until checked.
 *
 *   message = fkv_records, then `count` records of one shard, with numbers that follow each other
 *   record  = fkv_record, key, value
 *
 * A record has all that a backup needs to make the change and to answer its retries when it is the owner: the client,
 * its sequence on the shard, the version and what else the answer says. `body_crc` is of key and value: it was computed
 * by the owner from what it prepared, and is compared when the backup has the bytes. */
#ifndef FARKV_WIRE_RECORD_H
#define FARKV_WIRE_RECORD_H
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include "../base/status.h"

typedef struct fkv_records {
    uint8_t op, reserved;
    uint16_t count;
    uint32_t shard, epoch, config;
    uint64_t first;     /* number of the first record */
    uint64_t committed; /* the owner has committed all up to here */
    uint64_t asked_ns;  /* the owner's clock; comes back with the acknowledgement, and a lease counts from it */
} fkv_records;
static_assert(sizeof(fkv_records) == 40, "drawing");
enum { FKV_PEER_RECORDS = 1 };

/* BULK: a PUT whose value came before (peer.h, VALUE_OFFER): value_bytes says how long it is, and it does not follow. */
typedef enum { FKV_RECORD_PUT = 1, FKV_RECORD_DELETE, FKV_RECORD_BULK } fkv_record_kind;
typedef struct fkv_record {
    uint8_t kind, codec;
    uint16_t reserved, key_bytes, space;
    uint32_t value_bytes, user_flags, body_crc, reserved2;
    uint64_t version;
    uint64_t expiry_ms; /* wall clock, 0 never */
    uint64_t client, sequence;
    uint64_t value; /* as in fkv_reply.expiry_ms of a change: what the answer says beside the version */
} fkv_record;
static_assert(sizeof(fkv_record) == 64, "drawing");

/* Writes a record of r, key and value at `to`, of which `room` bytes are free, and returns its bytes; 0: it does not
 * fit. Of r, body_crc and the reserved fields are set here. */
uint32_t wire_put_record(uint8_t *to, uint32_t room, const fkv_record *r, const uint8_t *key, const uint8_t *value);
/* FKV_OK or FKV_BAD_REQUEST. What follows is whole records of keys, values and numbers within their limits. */
fkv_status wire_parse_records(const void *message, uint32_t bytes, fkv_records *head, const uint8_t **body);
/* Reads the record at *at (start with 0) of a body and moves *at behind it. False at the end, and when what is left is
 * no record (then *at is less than body_bytes). */
bool wire_next_record(const uint8_t *body, uint32_t body_bytes, uint32_t *at, fkv_record *r, const uint8_t **key,
                      const uint8_t **value);
/* Whether key and value are as they were at the owner. */
bool wire_record_whole(const fkv_record *r, const uint8_t *key, const uint8_t *value);
#endif
