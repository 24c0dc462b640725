/* notify.h: tells the program that started this process how far it is, as systemd's sd_notify does: one datagram to the
 * Unix socket that NOTIFY_SOCKET names. Node.js opens no such socket. Not for: what the states mean. */
#ifndef FARKV_BASE_NOTIFY_H
#define FARKV_BASE_NOTIFY_H
#include <stddef.h>

enum {
    NOTIFY_ADDRESS_MAX = 107, /* bytes of a path, or of an abstract name with its @ */
    NOTIFY_TEXT_MAX = 1024,
    NOTIFY_WAIT_MS = 1000, /* at most, for a receiver that has no room */
};

/* `address`: an absolute path, or @ and an abstract name. 0 or a negative errno: -EAFNOSUPPORT for any other address,
 * -ENAMETOOLONG, -EMSGSIZE, or that of the socket (-EAGAIN: the receiver takes nothing). */
int notify_send(const char *address, size_t address_bytes, const char *text, size_t text_bytes);
#endif
