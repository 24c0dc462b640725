/* walk.h: what commands that go through all keys share: walk.c draws it. */
#ifndef FARKV_RESP_WALK_H
#define FARKV_RESP_WALK_H
#include "internal.h"

struct resp_walk {
    uint32_t shard, pages;
    uint32_t shards_left; /* RANDOMKEY goes round */
    uint64_t cursor;
    int64_t counted, wanted;
    resp_out keys;        /* replies, `counted` of them */
    bool matches;         /* there is a pattern */
    bool hashes, strings; /* likewise a type: only those */
    uint32_t prefix_bytes, pattern_bytes;
    uint8_t prefix[FKV_KEY_MAX];
    uint8_t pattern[];
};

/* A job that walks through the keys that match. NULL: no memory, or no pattern, which was answered. */
resp_job *walk_new(resp_connection *c, const resp_work *work, resp_bytes pattern);
extern const resp_bytes WALK_EVERYTHING;
uint32_t walk_shards(const resp_job *j); /* the walk is over when it has come so far */

/* Asks for the next page, with FKV_REQUEST_SCAN_* as flags. */
call_start walk_page_start(resp_job *j, resp_call *k, fkv_op op, uint8_t flags, uint32_t entries);
/* Goes on to the page behind it. False: it failed, and that is the end. */
bool walk_page_ended(resp_walk *w, const lookup_result *r);

#endif
