/* addresses.h: the addresses of an owner's worker, the better first, each over one of our devices. Not for: what is
 * connected over them (owner_link.h). Private to native/replication. */
#ifndef FARKV_REPLICATION_ADDRESSES_H
#define FARKV_REPLICATION_ADDRESSES_H
#include "owner_link.h"

typedef struct link_addresses {
    link_address address[OWNER_LINK_ADDRESSES];
    uint32_t addresses, at;
    uint32_t device, others; /* of ours, that the address is dialed over; so many were tried in vain for it */
    bool answered;           /* somebody answered at one of them, in this round */
    bool hurried, patient;   /* as in session_owner of native/client/session */
} link_addresses;

void addresses_init(link_addresses *y, const link_address *at,
                    uint32_t count); /* those beyond OWNER_LINK_ADDRESSES are left out */
bool addresses_same(const link_addresses *y, const link_address *at, uint32_t count);
uint32_t addresses_place(const link_addresses *y);
uint64_t addresses_attempt_ms(link_addresses *y); /* of an attempt at the address, which begins */

/* As places_other of native/client/session: the address is dialed over another device of the worker from now on; false:
 * all were. */
bool addresses_other_device(link_addresses *y, const worker *w);
/* False: that was the last, and a new round begins. *vain: in the one that ended each had its whole time, and nobody
 * answered. */
bool addresses_next(link_addresses *y, bool *vain);
void addresses_up(link_addresses *y);
void addresses_lost(link_addresses *y); /* what was up is no more */

#endif
