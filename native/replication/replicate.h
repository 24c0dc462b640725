/* replicate.h: changes between prepare and commit, where a shard has backups; see replicate.c. Private to
 * native/replication. */
#ifndef FARKV_REPLICATION_REPLICATE_H
#define FARKV_REPLICATION_REPLICATE_H
#include "../storage/shard.h"

/* Backups have pulled a large value, or there is one more. */
void replicate_pulled(shard *s);
/* More is in the owner's own log. */
void replicate_logged(shard *s);

/* The shard, which is a copy, is the owner's from now on, by this config. */
void replicate_lead(shard *s, const replica_config *c);
/* A later config of the same epoch was applied. */
void replicate_configure(shard *s, const replica_config *c);
/* Whether it may be served: it is no copy, or it is the owner's, and nothing of an earlier owner is in the way. */
bool replicate_may_serve(const shard *s);

/* The account of the backups was changed: who is required. */
void replicate_changed(shard *s);
void replicate_count(shard *s); /* the same, but what may be committed now is left to the caller */
/* A backup has acknowledged, and granted a lease until then. False: its link is to begin anew. */
bool replicate_acked(shard *s, uint64_t id, const replica_ack *a, uint64_t lease_ns);
/* It becomes a copy: what waits for backups is undecided, and its records go on in the copy, which has room for them. */
void replicate_step_down(shard *s);

#endif
