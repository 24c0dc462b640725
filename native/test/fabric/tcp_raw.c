#include "tcp_raw.h"
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../fabric/tcp/tcp.h"
#include "../check.h"

int rawtcp_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    return fd;
}

void rawtcp_reach(int fd, const char *address) {
    struct sockaddr_storage a;
    socklen_t n;
    int one = 1;
    CHECK_EQ(tcp_address_parse(address, &a, &n), 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&a, n), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int rawtcp_connect(const char *address) {
    int fd = rawtcp_socket();
    rawtcp_reach(fd, address);
    return fd;
}

int rawtcp_connect_from(const char *source, const char *address) {
    struct sockaddr_storage own;
    socklen_t n;
    int fd = rawtcp_socket();
    CHECK_EQ(tcp_address_parse(source, &own, &n), 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&own, n), 0);
    rawtcp_reach(fd, address);
    return fd;
}

int rawtcp_listen(char address[64]) {
    struct sockaddr_storage a;
    socklen_t n;
    CHECK_EQ(tcp_address_parse("127.0.0.1:0", &a, &n), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 8) == 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    tcp_address_format(&a, address, 64);
    return fd;
}

void rawtcp_write(int fd, const void *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t r = send(fd, (const uint8_t *)bytes + at, n - at, MSG_NOSIGNAL);
        /* the peer had enough: the test sees that by reading */
        if (r < 0 && (errno == EPIPE || errno == ECONNRESET)) return;
        CHECK(r > 0);
        at += (size_t)r;
    }
}

/* What does not come in time is a failure of the test that waits for it. */
static ssize_t receive(int fd, void *bytes, size_t n) {
    struct pollfd f = { .fd = fd, .events = POLLIN };
    int ready;
    do ready = poll(&f, 1, (int)check_patience_ms());
    while (ready < 0 && errno == EINTR);
    CHECK(ready == 1);
    return recv(fd, bytes, n, 0);
}

bool rawtcp_read(int fd, void *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t r = receive(fd, (uint8_t *)bytes + at, n - at);
        if (r <= 0) return false;
        at += (size_t)r;
    }
    return true;
}

void rawtcp_expect_end(int fd) {
    uint8_t room[4096];
    while (receive(fd, room, sizeof room) > 0) continue;
}

tcp_hello rawtcp_hello(void) {
    return (tcp_hello){ .kind = TCP_HELLO,
                        .version_min = TCP_VERSION_MIN,
                        .version_max = TCP_VERSION_MAX,
                        .max_message = 16 << 10,
                        .window = 256 << 10,
                        .depth = TCP_DEPTH };
}

static tcp_hello read_hello(int fd) {
    uint8_t in[TCP_HELLO_BYTES];
    tcp_hello h;
    CHECK(rawtcp_read(fd, in, sizeof in));
    CHECK_EQ(tcp_hello_decode(in, sizeof in, &h), TCP_HELLO_BYTES);
    return h;
}

static void write_hello(int fd, const tcp_hello *h) {
    uint8_t out[TCP_HELLO_BYTES];
    rawtcp_write(fd, out, tcp_hello_encode(h, out));
}

tcp_hello rawtcp_greet(int fd, const tcp_hello *h) {
    write_hello(fd, h);
    return read_hello(fd);
}

void rawtcp_accept(int fd, const tcp_hello *yes) {
    CHECK_EQ(read_hello(fd).kind, TCP_HELLO);
    write_hello(fd, yes);
}

void rawtcp_frame(int fd, const tcp_frame *f) {
    uint8_t out[TCP_FOLLOW_BYTES];
    rawtcp_write(fd, out, tcp_frame_encode(f, out));
}

bool rawtcp_next_frame(int fd, tcp_frame *f) {
    uint8_t in[TCP_FOLLOW_BYTES];
    if (!rawtcp_read(fd, in, TCP_HEADER_BYTES)) return false;
    int n = tcp_frame_decode(in, TCP_HEADER_BYTES, FAB_MESSAGE_MAX, f);
    CHECK(n >= 0);
    if (n > 0) return true;
    size_t all = f->type == TCP_FOLLOW ? TCP_FOLLOW_BYTES : TCP_READ_BYTES;
    CHECK(rawtcp_read(fd, in + TCP_HEADER_BYTES, all - TCP_HEADER_BYTES));
    CHECK_EQ(tcp_frame_decode(in, all, FAB_MESSAGE_MAX, f), (int)all);
    return true;
}

void rawtcp_vanish(int fd) {
    struct sock_filter drop = { .code = BPF_RET | BPF_K, .k = 0 };
    struct sock_fprog program = { .len = 1, .filter = &drop };
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

void rawtcp_add(rawtcp_bytes *b, const void *bytes, size_t n) {
    CHECK(b->n + n <= sizeof b->at);
    memcpy(b->at + b->n, bytes, n);
    b->n += n;
}

void rawtcp_add_frame(rawtcp_bytes *b, const tcp_frame *f) {
    uint8_t out[TCP_FOLLOW_BYTES];
    rawtcp_add(b, out, tcp_frame_encode(f, out));
}

void rawtcp_add_hello(rawtcp_bytes *b, const tcp_hello *h) {
    uint8_t out[TCP_HELLO_BYTES];
    rawtcp_add(b, out, tcp_hello_encode(h, out));
}
