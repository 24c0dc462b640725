/* address.c: addresses as text, and the options of a socket. Numeric only: a name would have to be resolved, and that
 * blocks. */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tcp.h"

bool tcp_address_encrypted(const char **text) {
    static const char mark[] = "tls:";
    if (strncmp(*text, mark, sizeof mark - 1) != 0) return false;
    *text += sizeof mark - 1;
    return true;
}

/* "192.0.2.1:7000", "[2001:db8::1]:7000", "[fe80::1%eth0]:7000" */
int tcp_address_parse(const char *text, struct sockaddr_storage *out, socklen_t *bytes) {
    char host[FAB_ADDRESS_MAX];
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text) return -EINVAL;
    size_t n = (size_t)(colon - text);
    bool v6 = text[0] == '[';
    if (v6) {
        if (n < 3 || text[n - 1] != ']') return -EINVAL;
        text++;
        n -= 2;
    }
    if (n >= sizeof host) return -EINVAL;
    memcpy(host, text, n);
    host[n] = 0;
    if (strspn(colon + 1, "0123456789") != strlen(colon + 1)) return -EINVAL; /* strtoul would take a sign */
    unsigned long port = strlen(colon + 1) - 1 < 5 ? strtoul(colon + 1, NULL, 10) : 65536;
    if (port > 65535) return -EINVAL;
    struct addrinfo hints = { .ai_family = v6 ? AF_INET6 : AF_INET,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV },
                    *found;
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) return -EINVAL;
    memset(out, 0, sizeof *out);
    memcpy(out, found->ai_addr, found->ai_addrlen);
    *bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

void tcp_address_format(const struct sockaddr_storage *a, char *out, size_t room) {
    char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
    socklen_t bytes = a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    getnameinfo((const struct sockaddr *)a, bytes, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(out, room, a->ss_family == AF_INET6 ? "[%.200s]:%.8s" : "%.200s:%.8s", host, port);
}

void tcp_socket_options(int fd, const fab_options *o, bool accepted) {
    int one = 1, interval = 1, probes = 3;
    int idle = o->op_timeout_ms <= 1000 ? 1 : (int)((o->op_timeout_ms + 999) / 1000);
    /* Bytes that the peer's kernel does not acknowledge for so long mean that it vanished. The same option also ends a
     * connection whose peer's kernel answers but whose process does not read: an owner is patient with that one,
     * because a client's thread may well be away for a second, and because its own READs have deadlines of their
     * own. */
    unsigned vanished = o->op_timeout_ms;
    if (accepted && vanished < 10000) vanished = 10000;
    /* What waits in the kernel is out of our hands: a reply would queue behind megabytes of a large READ's answer. */
    int not_sent = 2 * TCP_SCRATCH;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &vanished, sizeof vanished);
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &not_sent, sizeof not_sent);
}
