/* failover_history.h: what clients of one shard asked for and were told, and whether all of it can be true of one shard
 * that never lost anything. Every value is written once, so a value that is seen says which change made it.
 *
 * Versions are the order of the changes of a key. So it is checked of each answer:
 *   a change has one version, however often it was sent and whoever answers
 *   nothing older is returned than what was answered or returned before the request began
 *   a change that ended as "no effect" is never seen
 *   an entry is gone only where a removal may have had its turn */
#ifndef FARKV_TEST_FAILOVER_HISTORY_H
#define FARKV_TEST_FAILOVER_HISTORY_H
#include <stdbool.h>
#include <stdint.h>
#include "../../base/status.h"
#include "../check.h"

/* Behind the keys that are put there is one that is only appended to, one that is only incremented, and a hash of which
 * one field is (failover_tails.c). */
enum { HISTORY_KEYS = 6, HISTORY_LIST = HISTORY_KEYS, HISTORY_COUNTER, HISTORY_HASH, HISTORY_ALL };
enum { HISTORY_ASKED = 8192, HISTORY_VALUE = 1 << 20 };

typedef enum {
    ASKED_GET,
    ASKED_PUT,
    ASKED_DELETE,
    ASKED_CAS,
    ASKED_APPEND,
    ASKED_INCREMENT,
    ASKED_INCREMENT_FIELD,
    ASKED_TOUCH
} asked_kind;
typedef enum { ASKED_OPEN, ASKED_DONE, ASKED_WITHOUT_EFFECT, ASKED_UNKNOWN } asked_end;
/* Nothing is older than `version`, and where it is `gone`, neither is that itself. */
typedef struct history_floor {
    uint64_t version;
    bool gone;
} history_floor;
typedef struct asked {
    asked_kind kind;
    asked_end end;
    int key;
    uint32_t bytes;      /* of its value */
    uint64_t version;    /* that it was seen with; 0: it was not seen */
    history_floor floor; /* when it began */
    uint64_t began_ns, ended_ns;
} asked;
typedef struct history_tail {
    uint64_t known;                /* pieces, or the sum, that somebody was told of */
    uint32_t by[HISTORY_ASKED];    /* of the n-th piece, or the sum n: the change that made it; 0: not known */
    uint32_t place[HISTORY_ASKED]; /* the other way round */
} history_tail;
typedef struct history {
    history_tail tail[HISTORY_ALL - HISTORY_KEYS];
    asked all[HISTORY_ASKED];
    uint32_t count, open, answered, unknown, without_effect;
    history_floor floor[HISTORY_KEYS];
} history;

/* Its number, which is that of its value too. */
uint32_t history_begin(history *h, asked_kind kind, int key, uint32_t bytes);
/* The value of a change; `out` has room for its bytes. */
void history_value(uint32_t number, uint32_t bytes, uint8_t *out);
/* It ended. Of a change: OK with its version; VERSION_MISMATCH with the version there is, 0 none. Of a GET: OK with what
 * was found; of APPEND, INCREMENT and INCREMENT_FIELD OK with the 8 bytes of the result as the value. */
void history_end(history *h, uint32_t number, fkv_status s, uint64_t version, const uint8_t *value, uint32_t bytes);
/* Of failover_tails.c. */
bool history_is_tail(int key);
void history_tail_begin(const history *h, asked *a);
void history_tail_end(history *h, uint32_t number, fkv_status s, uint64_t version, const uint8_t *value,
                      uint32_t bytes);
void history_tail_check(history *h);
/* All has ended. */
void history_check(history *h);
#endif
