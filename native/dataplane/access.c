/* access.c: see access.h. */
#include "access.h"
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "worker.h"

access_rules *access_make(worker *w, void (*comes)(job *j), const dataplane_access *from) {
    access_rules *a = calloc(1, sizeof *a + from->revocations * sizeof *a->revoked);
    if (!a) return NULL;
    a->w = w;
    a->job.run = comes;
    a->secrets = from->secrets;
    a->revocations = from->revocations;
    memcpy(a->secret, from->secret, sizeof a->secret);
    if (from->revocations) memcpy(a->revoked, from->revoked, from->revocations * sizeof *a->revoked);
    return a;
}

/* NULL: it was made with none of these. */
static const fkv_seed *secret_of(const access_rules *a, const fkv_ticket *t) {
    for (uint32_t i = 0; i < a->secrets; i++)
        if ((uint8_t)a->secret[i].number == t->secret) return &a->secret[i].seed;
    return NULL;
}

static bool is_revoked(const access_rules *a, const fkv_ticket *t) {
    uint64_t made_ms = t->expires_ms - t->life_ms;
    for (uint32_t i = 0; i < a->revocations; i++) {
        const dataplane_revocation *r = &a->revoked[i];
        bool meant = r->client ? r->client == t->client : r->tenant == t->tenant && !(t->flags & FKV_TICKET_SERVERS);
        if (meant && made_ms < r->before_ms) return true;
    }
    return false;
}

bool access_good(const access_rules *a, const fkv_ticket *t, uint64_t wall_ms) {
    /* mutation: access/expired-ticket, access/revoked-ticket, access/old-secret */
    return t->client && wall_ms < t->expires_ms && t->life_ms <= t->expires_ms && secret_of(a, t) && !is_revoked(a, t);
}

bool access_proved(const access_rules *a, const fkv_ticket *t, uint64_t head, const uint8_t nonce[FKV_NONCE_BYTES],
                   const uint8_t proof[FKV_PROOF_BYTES]) {
    const fkv_seed *secret = secret_of(a, t);
    if (!secret) return false;
    fkv_seed key = fkv_ticket_key(secret, t);
    return fkv_proof_ok(&key, head, t, nonce, proof);
}

/* The name's code is right under one secret only; that the ticket says which one it was made with is looked at too. */
bool access_key_of(void *ctx, const void *name, uint32_t bytes, uint8_t key[FAB_KEY_BYTES]) {
    dataplane *d = ctx;
    bool good = false;
    if (bytes != FKV_NAME_BYTES) return false;
    pthread_mutex_lock(&d->keys_lock);
    const access_rules *a = d->keys;
    for (uint32_t i = 0; a && i < a->secrets && !good; i++) {
        fkv_ticket t;
        good = fkv_ticket_named(&a->secret[i].seed, name, &t) && (uint8_t)a->secret[i].number == t.secret &&
               access_good(a, &t, fkv_wall_ms()); /* mutation: encryption/key-of-an-expired-ticket */
        if (!good) continue;
        fkv_seed k = fkv_ticket_key(&a->secret[i].seed, &t);
        memcpy(key, &k, FAB_KEY_BYTES);
    }
    pthread_mutex_unlock(&d->keys_lock);
    return good;
}

fkv_pass access_replica_pass(const access_rules *a, uint64_t client, uint32_t tenant) {
    enum { LIFE_MS = 24 * 3600 * 1000 };
    const dataplane_secret *newest = &a->secret[0];
    for (uint32_t i = 1; i < a->secrets; i++)
        if (a->secret[i].number > newest->number) newest = &a->secret[i];
    fkv_ticket t = { .client = client,
                     .expires_ms = fkv_wall_ms() + LIFE_MS,
                     .life_ms = LIFE_MS,
                     .tenant = (uint16_t)tenant,
                     .flags = FKV_TICKET_REPLICA,
                     .secret = (uint8_t)newest->number };
    fkv_pass p;
    fkv_pass_make(&newest->seed, &t, &p);
    return p;
}
