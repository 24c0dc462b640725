/* dedup.h: what changes a client has made, so that a retry is answered and not made again. One thread.
 *
 * For each client and shard there is a window: a ring of the last sequences with their results. It grows from 64 to
 * FKV_DEDUP_WINDOW entries of 24 bytes. A client is remembered for FKV_DEDUP_IDLE_MS after its last connection; all
 * windows together are at most bytes_max. When room runs out, clients without a connection are forgotten first, the
 * longest gone first; then windows stop growing. Whatever is forgotten early is known to be forgotten: a retry that may
 * be a second write gets DEDUP_FORGOTTEN.
 *
 * A shard that had another owner, or this one before a restart, comes without that one's windows. A change of then may
 * have been made and seen before its memory was lost or copied, so a retry of it gets DEDUP_FORGOTTEN too: made again,
 * it would bring back a value that was gone, or win a compare-and-swap twice. A backup is told of each change by its
 * owner (dedup_note, dedup_forget), so that it knows them when it is promoted. */
#ifndef FARKV_DATAPLANE_DEDUP_H
#define FARKV_DATAPLANE_DEDUP_H
#include <stdbool.h>
#include <stdint.h>
#include "../base/list.h"
#include "../base/status.h"

typedef struct dedup_client dedup_client;
typedef struct dedup {
    dedup_client **table; /* by client id, chained */
    uint32_t mask, clients;
    uint64_t bytes, bytes_max;
    fkv_list gone; /* clients that nothing pins, the longest gone first */
    /* until then a retry without a window may be one of a client that was forgotten early */
    uint64_t doubt_until_ns;
    /* by slot: until then one may be of a change that an earlier owner was sent; 0: there was none */
    uint64_t *slot_doubt_ns;
    uint32_t slots;
} dedup;

int dedup_init(dedup *d, uint64_t bytes_max); /* 0 or -ENOMEM */
void dedup_free(dedup *d);

/* A connection of the client, or an operation of it, holds its memory; NULL when there is none left. */
dedup_client *dedup_enter(dedup *d, uint64_t client, uint64_t now_ns);
void dedup_hold(dedup_client *c);
uint64_t dedup_client_id(const dedup_client *c);
uint32_t dedup_holders(const dedup_client *c); /* connections and operations */
void dedup_leave(dedup *d, dedup_client *c, uint64_t now_ns);
/* Why a connection of the client was ended (fkv_end), for its next one: asked once. 0: it was not. */
void dedup_note_end(dedup_client *c, uint8_t why);
uint8_t dedup_take_end(dedup_client *c);

/* What a change ended with: OK and the version it made, or why it changed nothing. `value` is room for what an operation
 * answers beside that and what a retry must be answered again, as an increment's new number; else 0. */
typedef struct dedup_result {
    fkv_status status;
    uint64_t version, value;
} dedup_result;
typedef enum {
    DEDUP_NEW,         /* make the change; dedup_finish, dedup_cancel or dedup_hand_over follows */
    DEDUP_DONE,        /* *result is its result */
    DEDUP_IN_PROGRESS, /* *op is the one that is making it */
    DEDUP_FORGOTTEN,   /* it may have been made */
    DEDUP_NO_ROOM      /* no memory, or the window is full of changes in progress */
} dedup_answer;
/* `slot` numbers the shards of this data-plane thread from 0. *op is the operation that asks, and the one in progress
 * after that answer. */
dedup_answer dedup_begin(dedup *d, dedup_client *c, uint32_t slot, uint64_t sequence, bool retry, uint64_t now_ns,
                         void **op, dedup_result *result);
void dedup_finish(dedup_client *c, uint32_t slot, uint64_t sequence, const dedup_result *result);
void dedup_cancel(dedup_client *c, uint32_t slot, uint64_t sequence); /* it had no effect: as if never begun */
void dedup_hand_over(dedup_client *c, uint32_t slot, uint64_t sequence, void *op);
/* A backup's part. Another owner has made this change; or it has made some up to `sequence`, of which no more is known,
 * so that their retries get DEDUP_FORGOTTEN. One whose place a later one has, in a window that cannot grow, counts as such
 * a sequence. Where there is no room at all, every retry of a client without a window gets that for FKV_DEDUP_IDLE_MS. */
void dedup_note(dedup *d, uint64_t client, uint32_t slot, uint64_t sequence, const dedup_result *result,
                uint64_t now_ns);
void dedup_forget(dedup *d, uint64_t client, uint32_t slot, uint64_t sequence, uint64_t now_ns);
/* What a copy that joins has to be told of a shard: of each client the highest sequence that it has used; and until when
 * more than that may have been made (0: no more). */
void dedup_each(const dedup *d, uint32_t slot, void (*f)(void *ctx, uint64_t client, uint64_t sequence), void *ctx);
uint64_t dedup_doubt_ns(const dedup *d, uint32_t slot);
/* The same, at the copy. */
void dedup_doubt(dedup *d, uint32_t slot, uint64_t until_ns);
/* For a snapshot: one step of a walk over what is remembered of a shard, as table_scan is one over its keys: *cursor is 0
 * at first and at the end, and a client that is known from the first step to the last is met, though it may be twice.
 * What is in progress is left out: it has a record, or no effect. */
typedef struct dedup_change {
    uint64_t sequence;
    dedup_result result;
} dedup_change;
typedef void (*dedup_window)(void *ctx, uint64_t client, uint64_t forgotten, const dedup_change *change,
                             uint32_t changes);
void dedup_scan(const dedup *d, uint32_t slot, uint64_t *cursor, dedup_window f, void *ctx);
/* A shard comes to this slot. had_owner: not for the first time in its life. 0 or -ENOMEM. */
int dedup_open_slot(dedup *d, uint32_t slot, bool had_owner, uint64_t now_ns);
/* The shard is gone, and with it everything that its changes did. Nothing of it is in progress. */
void dedup_drop_slot(dedup *d, uint32_t slot);

#endif
