/* fabric_tcp_rig.h: for tests of the tcp provider: an owner with a region, an honest client of it, and strangers at raw
 * sockets. */
#ifndef FARKV_TEST_FABRIC_TCP_RIG_H
#define FARKV_TEST_FABRIC_TCP_RIG_H
#include "fabric_pair.h"

enum { RIG_REGION = 1 << 16, RIG_TENANT = 3 };

typedef struct tcp_rig {
    pair p;
    fkv_region region; /* at the owner; pattern_fill with seed 5 */
    fab_mr *mr, *local_mr;
    uint8_t local[RIG_REGION];
    uint64_t reads;
} tcp_rig;
extern tcp_rig rig;
extern const fabric_under_test tcp_v4;

void rig_open(const fab_options *o);
void rig_open_ends(const fab_options *owner, const fab_options *client); /* with other options at each */
void rig_close(void);
/* The honest client READs. The responder answers it after whatever came before on other connections: a barrier, and a
 * proof that others are served. */
void rig_honest_read(void);
/* A raw client that was accepted, and its connection at the owner. */
int rig_stranger(fab_conn **c);
#endif
