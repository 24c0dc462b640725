/* role.h: a shard's table becomes a copy of another owner's, follows another server, and becomes the owner's: the calls
 * of its server. Private to native/replication. */
#ifndef FARKV_REPLICATION_ROLE_H
#define FARKV_REPLICATION_ROLE_H
#include "../dataplane/command.h"
#include "../storage/shard.h"
#include "owner_link.h"

typedef struct copy_join {
    dataplane_join at; /* its pointers are not used */
    link_address address[OWNER_LINK_ADDRESSES];
    uint32_t addresses, sequences;
    dataplane_sequence sequence[];
} copy_join;
typedef struct copy_lead {
    replica_config config;
    uint64_t incarnation;
    bool handed; /* by the owner before */
} copy_lead;

/* Jobs of commands, on the worker's thread. */
void role_follow(job *j);
void role_follow_owner(job *j);
void role_lead(job *j);

/* The owner has answered the copy's FOLLOW, with FOLLOW_OK (OK) or otherwise. */
void role_answered(shard *s, fkv_status status);

#endif
