/* walk.h: everything of a shard, given to a snapshot's writer piece by piece, between changes that go on. Private to
 * native/replication.
 *
 * For: snapshots.c, which says when. Not for: files.
 * It is in order of SCAN (table.h), so what is there from its beginning to its end is in the snapshot, growth or not. What
 * changes meanwhile may be in it as it was, as it is, or both. */
#ifndef FARKV_REPLICATION_WALK_H
#define FARKV_REPLICATION_WALK_H
#include "../log/snapshot_write.h"
#include "../storage/shard.h"
#include "snapshot_items.h"

enum { WALK_CHAIN = FKV_CHAIN_MAX * FKV_SLOTS };

typedef struct walk {
    const shard *s;
    snapshot_writer *to;
    uint64_t now_ns;
    enum { WALK_TABLE, WALK_CLIENTS, WALK_OVER } stage;
    bool full;       /* there is no room */
    uint32_t cost;   /* of this step */
    uint64_t cursor; /* of the table, then of the clients */

    /* Of a chain of the table that did not fit: the versions that are still to be given. What is not among them came after
     * the chain was seen first, and has a later record. */
    bool rest;
    uint32_t lefts;
    uint64_t left[WALK_CHAIN];
    uint64_t next; /* the chain behind it; if that is another now, so is this one */

    /* Of a chain of clients: the last that was given. */
    uint64_t client;
    uint32_t mask; /* of their table then: if it has grown, the chain is another one, in another order */
    bool passed;

    /* The large value that is being given. */
    uint32_t value_at, value_bytes; /* value_bytes 0: there is none */
    uint32_t begun, crc;            /* its checksum up to the value, which another place changes; and up to value_at */
    uint64_t version, hash;
    uint16_t space, key_bytes;
    uint8_t key[FKV_KEY_MAX];
} walk;

void walk_begin(walk *k, const shard *s, snapshot_writer *to);
/* WAITS: there is no room. OVER: all was given. A step copies so much that it takes some 50 us. */
typedef enum { WALK_GOES_ON, WALK_WAITS, WALK_IS_OVER } walk_result;
walk_result walk_step(walk *k, uint64_t now_ns);

#endif
