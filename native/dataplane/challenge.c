/* challenge.c: see challenge.h. */
#include "challenge.h"

void challenges_init(challenges *c) {
    *c = (challenges){ .next = 1 };
    fkv_random(&c->secret, sizeof c->secret);
}

static uint8_t bit_of(uint32_t number) { return (uint8_t)(1u << number % 8); }
static uint32_t byte_of(uint32_t number) { return number % CHALLENGES / 8; }

fkv_challenge challenge_make(challenges *c) {
    if ((uint32_t)c->next == 0) c->next++; /* a hello that answers none says 0 */
    uint64_t whole = c->next++;
    uint32_t number = (uint32_t)whole;
    fkv_challenge made = { .magic = FKV_CHALLENGE_MAGIC, .number = number };
    c->answered[byte_of(number)] &= (uint8_t)~bit_of(number);
    fkv_mac(&c->secret, &whole, sizeof whole, made.nonce);
    return made;
}

bool challenge_find(const challenges *c, uint32_t number, uint8_t nonce[FKV_NONCE_BYTES]) {
    uint32_t age = (uint32_t)c->next - number;
    uint64_t whole = c->next - age;
    if (number == 0 || age == 0 || age > CHALLENGES || age >= c->next) return false;
    if (c->answered[byte_of(number)] & bit_of(number)) return false;
    fkv_mac(&c->secret, &whole, sizeof whole, nonce);
    return true;
}

void challenge_answered(challenges *c, uint32_t number) { c->answered[byte_of(number)] |= bit_of(number); }
