#include "notify.h"
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

_Static_assert(NOTIFY_ADDRESS_MAX < sizeof((struct sockaddr_un *)NULL)->sun_path, "a path keeps its 0 at the end");

int notify_send(const char *address, size_t address_bytes, const char *text, size_t text_bytes) {
    if (address_bytes < 2 || (address[0] != '/' && address[0] != '@')) return -EAFNOSUPPORT;
    if (address_bytes > NOTIFY_ADDRESS_MAX) return -ENAMETOOLONG;
    if (text_bytes == 0 || text_bytes > NOTIFY_TEXT_MAX) return -EMSGSIZE;
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    memcpy(to.sun_path, address, address_bytes);
    bool abstract = address[0] == '@';
    if (abstract) to.sun_path[0] = 0;
    /* An abstract name ends with its length, a path with a 0. */
    socklen_t to_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + address_bytes + (abstract ? 0 : 1));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    struct timeval wait = { .tv_sec = NOTIFY_WAIT_MS / 1000, .tv_usec = NOTIFY_WAIT_MS % 1000 * 1000 };
    int e = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) == 0 ? 0 : -errno;
    if (e == 0 && sendto(fd, text, text_bytes, MSG_NOSIGNAL, (const struct sockaddr *)&to, to_bytes) < 0) e = -errno;
    close(fd);
    return e;
}
