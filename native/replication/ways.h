/* ways.h: the ways that lead to an owner's worker: its addresses, the better first, each over one of our devices. What is
 * connected over them is an uplink's. Private to native/replication. */
#ifndef FARKV_REPLICATION_WAYS_H
#define FARKV_REPLICATION_WAYS_H
#include "uplink.h"

typedef struct ways {
    uplink_address address[UPLINK_ADDRESSES];
    uint32_t addresses, at;
    uint32_t device, others; /* of ours, that the address is dialed over; so many were tried in vain for it */
    bool answered;           /* somebody answered at one of them, in this round */
    bool hurried, patient;   /* as in session_owner of native/client/session */
} ways;

void ways_init(ways *y, const uplink_address *at, uint32_t count); /* those beyond UPLINK_ADDRESSES are left out */
bool ways_same(const ways *y, const uplink_address *at, uint32_t count);
uint32_t ways_place(const ways *y);
uint64_t ways_attempt_ms(ways *y); /* of an attempt at the address, which begins */

/* As places_other of native/client/session: the address is dialed over another device of the worker from now on; false:
 * all were. */
bool ways_other_device(ways *y, const worker *w);
/* False: that was the last, and a new round begins. *vain: in the one that ended each had its whole time, and nobody
 * answered. */
bool ways_next(ways *y, bool *vain);
void ways_up(ways *y);
void ways_lost(ways *y); /* what was up is no more */

#endif
