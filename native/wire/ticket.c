/* ticket.c: tickets, which let a client into the data plane without a call to the control plane.
 * A ticket is made by any server of the cluster for a client it has authenticated, and is checked by every other one
 * with the cluster's secret alone. */
#include "wire.h"
#include <string.h>

enum { SIGNED_BYTES = offsetof(fkv_ticket, mac) };
static_assert(SIGNED_BYTES == 24, "the code covers everything before it");

void fkv_ticket_make(const fkv_seed *secret, uint64_t client, uint64_t expires_ms, uint32_t tenant, uint32_t flags,
                     fkv_ticket *out) {
    *out = (fkv_ticket){ .client = client, .expires_ms = expires_ms, .tenant = tenant, .flags = flags };
    fkv_mac(secret, out, SIGNED_BYTES, out->mac);
}

bool fkv_ticket_ok(const fkv_seed *secret, const fkv_ticket *t, uint64_t now_ms) {
    uint8_t mac[sizeof t->mac];
    fkv_mac(secret, t, SIGNED_BYTES, mac);
    uint8_t different = 0; /* every byte is looked at, so the time taken does not tell how many were right */
    for (size_t i = 0; i < sizeof mac; i++) different |= mac[i] ^ t->mac[i];
    return different == 0 && t->client != 0 && now_ms < t->expires_ms;
}
