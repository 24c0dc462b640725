/* access.h: which tickets are good: made with a secret of now, not revoked, not expired. Each worker has a copy of its
 * own, and the transports' threads have one together (access_key_of). Private to the data plane's folders. */
#ifndef FARKV_DATAPLANE_ACCESS_H
#define FARKV_DATAPLANE_ACCESS_H
#include "../base/mailbox.h"
#include "../wire/wire.h"
#include "dataplane.h"

typedef struct worker worker;

typedef struct access_rules {
    job job; /* on its way to the worker */
    worker *w;
    uint32_t secrets, revocations;
    dataplane_secret secret[DATAPLANE_SECRETS_MAX];
    dataplane_revocation revoked[];
} access_rules;

/* `comes`: the job by which they come to the worker; NULL where they are not posted. NULL: no memory. */
access_rules *access_make(worker *w, void (*comes)(job *j), const dataplane_access *from);
/* Whether a ticket, whose proof was or will be looked at, is good as such. */
bool access_good(const access_rules *a, const fkv_ticket *t, uint64_t wall_ms);
/* With a proof that whoever shows it has its key. */
bool access_proved(const access_rules *a, const fkv_ticket *t, uint64_t head, const uint8_t nonce[FKV_NONCE_BYTES],
                   const uint8_t proof[FKV_PROOF_BYTES]);

/* What this server shows an owner whose shards it has copies of: a ticket of a day, by the newest secret. */
fkv_pass access_replica_pass(const access_rules *a, uint64_t client, uint32_t tenant);

/* The key of a good ticket by its name (wire.h), for transports that encrypt. Any thread; ctx: the data plane. */
fab_key_of access_key_of;

#endif
