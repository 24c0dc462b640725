/* ticket.c: tickets and their keys, which let a client into the data plane without a call to the control plane.
 * A ticket is made by any server of the cluster for a client it has authenticated; every other one computes its key with
 * the cluster's secret alone, and asks the client to show that it has it. */
#include "wire.h"
#include <string.h>

static_assert(sizeof(fkv_seed) == 16, "a code is a key");

fkv_seed fkv_ticket_key(const fkv_seed *secret, const fkv_ticket *t) {
    fkv_seed key;
    uint8_t mac[16];
    fkv_mac(secret, t, sizeof *t, mac);
    memcpy(&key, mac, sizeof key);
    return key;
}

/* Every byte is looked at, so the time taken does not tell how many were right. */
static bool is_same(const void *a, const void *b, size_t bytes) {
    uint8_t different = 0;
    for (size_t i = 0; i < bytes; i++) different |= ((const uint8_t *)a)[i] ^ ((const uint8_t *)b)[i];
    return different == 0;
}

/* ---- names ----
 * Codes are of inputs of different lengths, so none is another's: a key of a ticket, a name's of one byte more, and the
 * bytes that hide the ticket are codes of the name's code and a number. */

static void name_code(const fkv_seed *secret, const fkv_ticket *t, uint8_t code[16]) {
    uint8_t all[1 + sizeof *t] = { 'N' };
    memcpy(all + 1, t, sizeof *t);
    fkv_mac(secret, all, sizeof all, code);
}

static void hide(const fkv_seed *secret, const uint8_t code[16], const void *from, void *to) {
    uint8_t all[2 + 16] = { 'H' }, bytes[32];
    memcpy(all + 2, code, 16);
    for (uint8_t i = 0; i < 2; i++) {
        all[1] = i;
        fkv_mac(secret, all, sizeof all, bytes + 16 * i);
    }
    /* mutation: encryption/name-shows-ticket */
    for (size_t i = 0; i < sizeof(fkv_ticket); i++) ((uint8_t *)to)[i] = ((const uint8_t *)from)[i] ^ bytes[i];
}

bool fkv_ticket_named(const fkv_seed *secret, const uint8_t name[FKV_NAME_BYTES], fkv_ticket *out) {
    uint8_t code[16];
    hide(secret, name, name + 16, out);
    name_code(secret, out, code);
    return is_same(code, name, sizeof code);
}

void fkv_pass_make(const fkv_seed *secret, const fkv_ticket *t, fkv_pass *out) {
    *out = (fkv_pass){ .ticket = *t, .key = fkv_ticket_key(secret, t) };
    name_code(secret, t, out->name);
    hide(secret, out->name, t, out->name + 16);
}

bool fkv_pass_ok(const fkv_seed *secret, const fkv_pass *p) {
    fkv_pass right;
    fkv_pass_make(secret, &p->ticket, &right);
    return is_same(&right.key, &p->key, sizeof p->key) && is_same(right.name, p->name, sizeof p->name) &&
           p->ticket.client != 0;
}

void fkv_prove(const fkv_seed *key, uint64_t head, const fkv_ticket *t, const uint8_t nonce[FKV_NONCE_BYTES],
               uint8_t proof[FKV_PROOF_BYTES]) {
    uint8_t all[sizeof head + sizeof *t + FKV_NONCE_BYTES];
    memcpy(all, &head, sizeof head); /* mutation: access/proof-for-anything */
    memcpy(all + sizeof head, t, sizeof *t);
    memcpy(all + sizeof head + sizeof *t, nonce, FKV_NONCE_BYTES);
    fkv_mac(key, all, sizeof all, proof);
}

bool fkv_proof_ok(const fkv_seed *key, uint64_t head, const fkv_ticket *t, const uint8_t nonce[FKV_NONCE_BYTES],
                  const uint8_t proof[FKV_PROOF_BYTES]) {
    uint8_t right[FKV_PROOF_BYTES];
    fkv_prove(key, head, t, nonce, right);
    return is_same(right, proof, sizeof right);
}

fkv_hello fkv_hello_make(const fkv_pass *p, const fkv_challenge *challenge) {
    fkv_hello h = { .magic = FKV_HELLO_MAGIC,
                    .version_min = FKV_WIRE_VERSION_MIN,
                    .version_max = FKV_WIRE_VERSION_MAX };
    if (!challenge) return h;
    h.challenge = challenge->number;
    h.ticket = p->ticket;
    fkv_prove(&p->key, fkv_hello_head(&h), &h.ticket, challenge->nonce, h.proof);
    return h;
}
