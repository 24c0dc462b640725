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

enum { HISTORY_KEYS = 6, HISTORY_ASKED = 8192, HISTORY_VALUE = 1 << 20 };

typedef enum { ASKED_GET, ASKED_PUT, ASKED_DELETE, ASKED_CAS } asked_kind;
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
} asked;
typedef struct history {
    asked all[HISTORY_ASKED];
    uint32_t count, open, answered, unknown, without_effect;
    history_floor floor[HISTORY_KEYS];
} history;

/* Its number, which is that of its value too. */
uint32_t history_begin(history *h, asked_kind kind, int key, uint32_t bytes);
/* The value of a change; `out` has room for its bytes. */
void history_value(uint32_t number, uint32_t bytes, uint8_t *out);
/* It ended. Of a change: OK with its version; VERSION_MISMATCH with the version there is, 0 none. Of a GET: OK with what
 * was found. */
void history_end(history *h, uint32_t number, fkv_status s, uint64_t version, const uint8_t *value, uint32_t bytes);
/* All has ended. */
void history_check(history *h);
#endif
