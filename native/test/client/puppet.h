/* puppet.h: a fabric in which nothing happens by itself: READs lie where they were posted until the test carries them
 * out, whole, in parts, or not at all; time stands still until the test moves it. One client, one owner, one thread.
 *
 * For: tests of native/client/lookup and native/client/session that need one exact interleaving. Not for: random ones
 * over many peers. It is a provider that the program brings (FAB_BROUGHT), in place of the simulator. Domains that are
 * opened are of the latest puppet.
 *
 * The owner is a real table (table_host.h) and answers requests as a data plane would, unless `silent`. Its memory is
 * known to the fabric by rkeys that the test may revoke, or give to other memory.
 */
#ifndef FARKV_TEST_PUPPET_H
#define FARKV_TEST_PUPPET_H
#include "../../fabric/provider.h"
#include "owner.h"

enum { PUPPET_MEMORY = 256, PUPPET_READS = 1024, PUPPET_EVENTS = 4096 };

typedef struct puppet_memory {
    uint64_t rkey, addr;
    const uint8_t *base;
    const uint8_t *shown; /* what readers find in its place; NULL: what is there */
    uint64_t bytes;
    bool revoked;
} puppet_memory;

typedef struct puppet_read {
    fab_read r;
    bool flying;
    uint32_t copied; /* bytes of it that were carried over so far */
} puppet_read;

typedef struct puppet {
    /* the fabric */
    bool unreachable, refuses; /* connections fail; connections are rejected with `refusal` */
    const char *mute;          /* a connection to this address is answered by nobody */
    fkv_status refusal;
    const void *answer; /* to fab_connect, in place of a welcome; NULL: a welcome */
    uint32_t answer_bytes;
    bool direct;                       /* attached memory can be read in place */
    bool follows;                      /* READs are followed (fabric.h), the second half when the first is whole */
    void (*between)(struct puppet *p); /* called between the two; NULL: nothing happens then */
    /* so many bytes of the second half are kept back, though it is said to be whole without them */
    uint32_t next_cut;
    bool by_hand;         /* READs wait for puppet_carry; else the next poll carries them out whole */
    uint32_t queue_room;  /* READs that the queue takes at once; 0: PUPPET_READS */
    bool unpinned;        /* fab_post_reads gives -ENOMEM: where the READ is to land cannot be registered */
    uint64_t attach_room; /* fab_attach has no place for more than so many; 0: for all */
    bool no_credits;      /* fab_send gives -EAGAIN until puppet_credits */
    bool duplicates;      /* failed completions are given twice */
    bool conn_in_error;
    uint64_t now_ns;
    fab_conn *conn; /* the connection, NULL: none */
    puppet_memory memory[PUPPET_MEMORY];
    int memories;
    puppet_read read[PUPPET_READS];
    uint32_t flying; /* of them */
    fab_wc event[PUPPET_EVENTS];
    int events;
    uint8_t *message[PUPPET_EVENTS];
    uint8_t *unreleased[PUPPET_EVENTS]; /* polled messages */
    int unreleased_count;
    uint64_t connects, reads_posted, sends, attaches;

    /* the owner */
    host *h;
    host *old[64]; /* tables of former lives: their memory stays */
    int olds;
    uint32_t shard, shards;
    uint64_t incarnation, server_incarnation;
    uint32_t epoch;
    uint64_t lease_ns;
    bool silent; /* answers nothing */
    /* called for each request; NULL: nobody wants to know */
    void (*heard)(struct puppet *p, const fkv_request *q);
    uint32_t quota;          /* of welcomes; 0: no bound */
    fkv_end ended;           /* the same */
    bool grants;             /* LEASE replies list the shard */
    fkv_status refuses_with; /* not OK: GETs and changes are answered so */
    uint64_t rkey_base;      /* of the table's segments */
    uint64_t leases, layouts, gets, changes, cancels, retries;
    uint64_t last_sequence;
} puppet;

/* A puppet whose owner has an empty table of shard `shard` of 1 shard. */
puppet *puppet_new(void);
void puppet_free(puppet *p);
/* Another table in the same place, empty, with tags of its own: a restarted server. The old rkeys are refused, or with
 * `reused` they open memory of a third table, which is not the shard's at all. The connection stays: puppet_break ends
 * it. */
void puppet_restart(puppet *p, bool reused);
/* Makes the table's segments known to the fabric, as registration does; after the table grew. */
void puppet_register(puppet *p);

/* The READ that was posted first and is still flying; NULL: none. */
puppet_read *puppet_first(puppet *p);
/* Carries bytes over, up to `until` of it, from the memory as it is now. */
void puppet_carry(puppet *p, puppet_read *r, uint32_t until);
/* Carries over what is left and completes. */
void puppet_complete(puppet *p, puppet_read *r);
void puppet_fail(puppet *p, puppet_read *r, fab_wc_status status);
void puppet_break(puppet *p, fab_wc_status status); /* the connection ends */
void puppet_credits(puppet *p);
void puppet_garbage(puppet *p); /* a message that is no reply */
/* A message of the owner's, if there is a connection. */
void puppet_deliver(puppet *p, const void *message, uint32_t bytes);

/* Time goes on: the client's, and with puppet_pass the table's too. */
void puppet_time(puppet *p, uint64_t ns);
void puppet_pass(puppet *p, uint64_t ns);

#endif
