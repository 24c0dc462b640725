/* challenge.h: challenges that clients answer to come in, each of them once. One thread. Private to the data plane's folders.
 *
 * A challenge is its number and the code of that under a secret that nobody else has: nothing is kept for one that was
 * asked for, so whoever asks and does not answer takes nothing. Those that were answered are marked in a ring of bits;
 * one that so many were asked after counts as answered. Invariant: `next` is what no challenge was made of. */
#ifndef FARKV_DATAPLANE_CHALLENGE_H
#define FARKV_DATAPLANE_CHALLENGE_H
#include "../wire/wire.h"

enum { CHALLENGES = 1 << 16 };
typedef struct challenges {
    fkv_seed secret;
    uint64_t next;
    uint8_t answered[CHALLENGES / 8];
} challenges;

void challenges_init(challenges *c);
fkv_challenge challenge_make(challenges *c);
/* False: there was none of this number, or it was answered, or it is too old. */
bool challenge_find(const challenges *c, uint32_t number, uint8_t nonce[FKV_NONCE_BYTES]);
void challenge_answered(challenges *c, uint32_t number);

#endif
