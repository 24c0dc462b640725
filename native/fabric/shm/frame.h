/* frame.h: the frames that two ends of a shm connection exchange over their Unix socket (SOCK_SEQPACKET, so a frame is
 * whole).
 *
 *   connector                              acceptor
 *      HELLO (versions, limit, private) ----->
 *      <------------------- WELCOME (limit, ring size, private) + memfd of the rings + one end of the bell
 *                     or  REJECT (private)
 *   then, either way at any time:
 *      ATTACH (id, rkey, address, bytes) ---->   <---- ATTACHED (id, status, slot, offset) + memfd of the region
 *      DETACH (slots) ------->
 *      BYE (in order, or not), then the socket is closed. A socket that closes without BYE is a peer that died.
 *
 * Every frame has the same size and is refused when any of it is out of range: a peer that sends garbage is cut off.
 * Both ends are on one machine, so integers are in its byte order.
 */
#ifndef FARKV_FABRIC_SHM_FRAME_H
#define FARKV_FABRIC_SHM_FRAME_H
#include <assert.h>
#include <stdint.h>
#include "../fabric.h"

enum { SHM_MAGIC = 0x6d687346, SHM_VERSION_MIN = 1, SHM_VERSION_MAX = 1 }; /* "Fshm" */
enum { SHM_HELLO = 1, SHM_WELCOME, SHM_REJECT, SHM_ATTACH, SHM_ATTACHED, SHM_DETACH, SHM_BYE };
enum { SHM_FRAME_FDS = 2, SHM_FRAME_SLOTS = 14 };

typedef struct shm_frame {
    uint32_t magic;
    uint8_t type;
    uint8_t version_min, version_max; /* HELLO: the range offered; WELCOME: both are the one chosen */
    uint8_t status;                   /* ATTACHED: fab_wc_status; BYE: 0 when in order */
    uint32_t max_message;
    uint32_t ring_bytes;
    uint32_t count; /* bytes of `priv`, or how many of `slots` */
    uint32_t slot;  /* ATTACHED: the flag of shm_shared.revoked that speaks of this attachment */
    uint64_t id, rkey, address, bytes;
    uint64_t offset; /* ATTACHED: of `address` in the memfd */
    union {
        uint8_t priv[56];
        uint32_t slots[SHM_FRAME_SLOTS];
    };
} shm_frame;
static_assert(sizeof(shm_frame) == 120, "drawing: no padding");
static_assert((int)FAB_PRIVATE_MAX <= 56, "private data fits a frame");

#endif
