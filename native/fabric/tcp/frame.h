/* frame.h: the bytes that travel on a connection of the tcp provider, and their checks.
 *
 * For: encoding and decoding of headers. Not for: sockets, buffers, whose turn it is (rx.c, tx.c).
 * All integers are little-endian. A connection begins with one hello by the client and one answer by the server:
 *
 *    0 magic u32 | 4 bytes of this frame u16 | 6 kind u8 | 7 reason u8
 *    8 lowest version u8 | 9 highest version u8 | 10 features u16 | 12 largest message u32
 *   16 window u32 | 20 READs served at once u32 | 24 private bytes u32 | 28 zero u32
 *   32 private data, 48 bytes, zero padded                                             80 bytes in version 1
 *
 * A later version may make its hello longer, up to TCP_HELLO_MAX; what is not known is passed over. The answer carries
 * the version chosen in both version fields. After that, frames with a header of 16 bytes:
 *
 *    0 type u8 | 1 status u8 | 2 flags u16 | 4 READ number u32 | 8 argument u64
 *
 *   READ    argument = bytes asked for; then rkey u64, address u64. A batch is so many of these one after another.
 *   FOLLOW  a READ that is to be followed (fabric.h), of a server whose answer to the hello has TCP_FEATURE_FOLLOW
 *           among its features. argument = bytes of the first READ in the low half, most bytes of the second in the
 *           high half; rkey u64, address u64, and an argument for what follows u64. It has one READ's number and place.
 *           The answer is the first READ's DATA, flagged as the last unless the second's comes behind it, in one DATA.
 *   DATA    answers the oldest READ that is not yet answered; argument = bytes that follow. A large READ is answered by
 *           several, the last one flagged, so that a SEND need not wait for the whole of it. status: fab_wc_status; not
 *           0: no bytes, and the sender takes no further request.
 *   SEND    argument = bytes of the message, which follows.
 *   CREDIT  argument = what the receiver has given back since the connection began, in units of cost.
 *   BYE     the user closed; nothing follows. The end of the stream without it means that the peer died.
 *
 * Everything that came from a socket is hostile until tcp_frame_decode or tcp_hello_decode took it; whether a frame is
 * allowed now (a DATA that nobody asked for, a SEND beyond the window) is checked where that is known.
 */
#ifndef FARKV_FABRIC_TCP_FRAME_H
#define FARKV_FABRIC_TCP_FRAME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../fabric.h"

enum {
    TCP_VERSION_MIN = 1,
    TCP_VERSION_MAX = 1,
    TCP_MAGIC = 0x54764b46, /* "FKvT" */
    TCP_HELLO_BYTES = 80,
    TCP_HELLO_MAX = 128,
    TCP_HEADER_BYTES = 16,
    TCP_READ_BYTES = 32,
    TCP_FOLLOW_BYTES = 40,
    TCP_CHUNK = 64 << 10 /* most bytes behind one DATA header */
};

typedef enum tcp_hello_kind { TCP_HELLO = 1, TCP_ACCEPT, TCP_REJECT } tcp_hello_kind;
/* Why a server said no. Invariant: numbers keep their meaning. */
typedef enum tcp_reason { TCP_REASON_NONE = 0, TCP_REASON_USER, TCP_REASON_VERSION, TCP_REASON_FULL } tcp_reason;

typedef struct tcp_hello {
    uint8_t kind, reason, version_min, version_max;
    uint16_t features;    /* TCP_FEATURE_*; those that are not known are passed over */
    uint32_t max_message; /* largest message that the sender of this takes */
    uint32_t window;      /* sum of costs of messages that may be on their way to it */
    uint32_t depth;       /* READs that may be unanswered by it */
    uint32_t priv_bytes;
    uint8_t priv[FAB_PRIVATE_MAX];
} tcp_hello;

typedef enum tcp_frame_type { TCP_READ = 1, TCP_DATA, TCP_SEND, TCP_CREDIT, TCP_BYE, TCP_FOLLOW } tcp_frame_type;
enum { TCP_FLAG_LAST = 1 };
enum { TCP_FEATURE_FOLLOW = 1 };

typedef struct tcp_frame {
    uint8_t type, status;
    bool last;
    uint32_t number;
    uint64_t argument;
    uint64_t rkey, addr; /* READ, FOLLOW */
    uint64_t follow;     /* FOLLOW: the last of its three numbers */
} tcp_frame;

/* What a message costs of the window: what it may cost the receiver in memory, roughly. */
static inline uint32_t tcp_cost(uint32_t message_bytes) { return (message_bytes + 63u) / 64u * 64u + 64u; }

/* Both give the length of what they wrote. */
size_t tcp_hello_encode(const tcp_hello *h, uint8_t out[TCP_HELLO_BYTES]);
size_t tcp_frame_encode(const tcp_frame *f, uint8_t *out);

/* Both give the bytes used, 0 when `have` is not yet enough, or -1 when this can never become valid.
 * max_message: the largest message agreed on. */
int tcp_hello_decode(const uint8_t *in, size_t have, tcp_hello *h);
int tcp_frame_decode(const uint8_t *in, size_t have, uint32_t max_message, tcp_frame *f);

/* The highest version of both ranges, 0 when there is none. */
static inline uint8_t tcp_version_choose(const tcp_hello *h) {
    uint8_t v = h->version_max < TCP_VERSION_MAX ? h->version_max : TCP_VERSION_MAX;
    return v >= TCP_VERSION_MIN && v >= h->version_min ? v : 0;
}
#endif
