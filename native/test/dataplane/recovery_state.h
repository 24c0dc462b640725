/* recovery_state.h: the state of one life of a server with copies, which the parts of recovery_life.c share. Private to
 * recovery_*.c.
 *
 * What the owner has sent is kept by epochs: an epoch that begins may cut off what the one before has sent, and a copy whose
 * disk does not have that beginning comes back with the other. */
#ifndef FARKV_TEST_RECOVERY_STATE_H
#define FARKV_TEST_RECOVERY_STATE_H
#include "../../replication/backup.h"
#include "../../dataplane/worker.h"
#include "recovery_life.h"

enum {
    SHARDS = RECOVERY_SHARDS,
    KEYS = 60,
    CLIENTS = 3,
    LSN_MAX = 1200,
    EPOCHS = 64,
    MEMORY = 16 << 20,
    VALUE_MAX = 200 << 10
};
#define MS   ((uint64_t)1000000)
#define SEED ((fkv_seed){ 1, 2 })

typedef struct sent {
    uint32_t key, bytes, from;
    bool put;
    uint64_t version, sequence;
    uint32_t client;
} sent;
typedef struct line {
    uint64_t last;
    sent at[LSN_MAX + 1];
} line;
typedef struct truth {
    uint64_t id;    /* of the copy; 0: there is none */
    uint32_t epoch; /* of the owner */
    line *of[EPOCHS];
    uint64_t acked, committed; /* acked: in this epoch */
    bool begun;                /* something was acknowledged, ever: so the copy is on the disk */
} truth;

typedef struct recovery_state {
    memory_disk disk;
    dataplane *d;
    worker *w;
    truth shard[SHARDS];
    uint64_t ids, sequences[CLIENTS], counter;
    uint64_t now_ns;
    bool failed;
    bool threads;             /* the next start has its own */
    bool largest;             /* the next record has the largest value that there is */
    bool log_rests;           /* nothing is written to it */
    fkv_status asked[SHARDS]; /* snapshots: FKV_STATUS_COUNT, it is under way */
    recovery_counts *counts;
} recovery_state;
extern recovery_state rec;

static inline uint32_t any(uint32_t below) { return (uint32_t)memory_random(&rec.disk, below); }
static inline shard *shard_at(uint32_t i) { return rec.w->by_number[i]; }
static inline line *line_of(const truth *t) { return t->of[t->epoch]; }

/* recovery_owner.c: what the owner does, and what a copy of it must have. */
void rec_name_keys(void);
void rec_send(uint32_t i); /* one record, if there is one to send */
void rec_hear(uint32_t i); /* an acknowledgement */
void rec_commit(uint32_t i);
void rec_next_epoch(uint32_t i, uint64_t last);
void rec_same_epoch(uint32_t i); /* its owner connects again, and has what the copy has */
void rec_check_copy(uint32_t i, const line *l);

/* recovery_life.c: turns, copies that come and go, starts and ends. */
void rec_turn(void);
void rec_note_done(void *ctx, fkv_status s, void *result);
void rec_forget(truth *t);
void rec_opens(uint32_t i);
void rec_ask(uint32_t i);
bool rec_up(char why[256]);
void rec_check(const dataplane_recovered *r);
void rec_end(bool power);
void rec_init(uint64_t seed, recovery_counts *counts);
void rec_over(void);

#endif
