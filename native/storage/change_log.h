/* change_log.h: which keys of a shard were changed lately, in order: what a server that copies the shard has still to
 * copy.
 *
 * For: one shard, on its worker's thread, from the first question of a copying server on; nothing is kept, and nothing
 * is paid, before that. Not for: what was changed: the table knows. A key is noted when its change is committed, so
 * whoever asks for the table's entry of a noted key after that sees this change or a later one, and a later one is
 * noted again.
 *
 * Places in the log are counted in bytes and only rise. The oldest notes give way when the room is used up; who asks
 * for a place that is gone is told so and has to begin anew. A log that nobody asked for CHANGE_LOG_IDLE_NS is given
 * up, whether anything is changed or not: the copy has joined, or ended. */
#ifndef FARKV_STORAGE_CHANGE_LOG_H
#define FARKV_STORAGE_CHANGE_LOG_H
#include <stdbool.h>
#include <stdint.h>
#include "../table/layout.h"

enum { CHANGE_LOG_ROOM = 8 << 20 };
#define CHANGE_LOG_IDLE_NS ((uint64_t)60 * 1000000000u)

typedef struct change_log {
    uint8_t *ring;       /* CHANGE_LOG_ROOM bytes; NULL: nothing is noted */
    uint64_t first, end; /* places: what there is. Invariant: end - first <= CHANGE_LOG_ROOM; end never falls */
    uint64_t asked_ns;
} change_log;

typedef struct changed_key {
    uint16_t space, key_bytes;
    uint8_t key[FKV_KEY_MAX];
} changed_key;

/* Returns the present end, from which on everything is noted; 0: no memory. */
uint64_t change_log_begin(change_log *l, uint64_t now_ns);
void change_log_note(change_log *l, uint16_t space, const uint8_t *key, uint16_t key_bytes);
/* When nobody will have asked for it for too long; UINT64_MAX: there is none. From then on change_log_rest gives it up.
 * */
uint64_t change_log_idle_ns(const change_log *l);
void change_log_rest(change_log *l, uint64_t now_ns);
/* Whether everything since `place` is here. Whoever asks may name a place at which no note begins. */
bool change_log_reaches(change_log *l, uint64_t place, uint64_t now_ns);
/* The key that was noted at *place, which moves behind it; false: that is the end, or there is no note. What is found
 * from the middle of a note on is a key by its length, and of no use to who asked for it. */
bool change_log_next(const change_log *l, uint64_t *place, changed_key *out);
void change_log_free(change_log *l);

#endif
