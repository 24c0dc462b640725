/* shm_peer.h: for targets of the shm provider: the other end of a connection, by hand (shm_raw.h): frames at its
 * socket, and any bytes in the memory that both ends share. The product's end is real, with its agent's thread. */
#ifndef FARKV_TEST_FUZZ_SHM_PEER_H
#define FARKV_TEST_FUZZ_SHM_PEER_H
#include "../../fabric/fabric.h"
#include "../fabric/shm_raw.h"
#include "fuzz.h"

enum { SHM_PEER_MESSAGE = 16 << 10, SHM_PEER_ADDRESS = 1 << 20, SHM_PEER_LOCAL = 16384 };

typedef struct shm_peer {
    fab_domain *domain;
    fab_cq *cq;
    fab_conn *conn; /* the product's end; NULL: none */
    bool up;
    int side; /* the peer's: which ring it writes */
    raw r;    /* the peer's end; r.fd -1: none */
    const void *kept[64];
    int kept_count;
    uint64_t refusable;    /* an rkey that the peer may not have */
    uint64_t asked_id[32]; /* ATTACHs of the product that the peer heard */
    uint64_t asked_address[32];
    int asked;
    uint64_t attached; /* FAB_WC_ATTACHs in order */
    uint64_t answers;  /* ATTACHEDs that the peer heard */
    uint8_t *local;    /* the product's, SHM_PEER_LOCAL bytes: where its READs go */
    fab_mr *local_mr;
    uint64_t reads; /* posted in this run */
} shm_peer;

void shm_peer_open(shm_peer *p);
void shm_peer_close(shm_peer *p);
/* One turn of the product's queue; what is common to both sides is done. Other completions go to `take`. */
void shm_peer_turn(shm_peer *p, void (*take)(const fab_wc *wc));
/* Both ends close; waits until the product has seen it. */
void shm_peer_hang_up(shm_peer *p, void (*take)(const fab_wc *wc));
/* Until `*done` or the product's end is gone, or the peer's was hung up on. */
void shm_peer_until(shm_peer *p, const bool *done, void (*take)(const fab_wc *wc));
/* Reads the frames that came, without waiting. */
void shm_peer_hear(shm_peer *p);
/* The product READs some of the peer's memory of `rkey`, which it may have detached before (`what`). */
void shm_peer_read(shm_peer *p, fuzz_in *in, uint8_t what, uint64_t rkey);
/* A step that both sides have; false: it is none of them. */
bool shm_peer_step(shm_peer *p, fuzz_in *in, uint8_t what, void (*take)(const fab_wc *wc));
/* A memfd that may lack seals, size or pages; *bytes is what it has. */
int shm_peer_memory(fuzz_in *in, uint64_t *bytes);
/* Any frame, perhaps with descriptors. */
void shm_peer_say_frame(shm_peer *p, fuzz_in *in, shm_frame f);
/* Answers one of the product's ATTACHs, of a region that begins at SHM_PEER_ADDRESS, with memory of some kind. */
void shm_peer_say_attached(shm_peer *p, fuzz_in *in);

#endif
