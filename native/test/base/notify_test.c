/* notify_test.c: what a service manager gets, by a path and by an abstract name, and what is refused. */
#include "../check.h"
#include "../../base/notify.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int tell(const char *address, const char *text) {
    return notify_send(address, strlen(address), text, strlen(text));
}

/* A receiver that waits for nothing: a datagram is there once it was sent. */
static int receiver(const struct sockaddr_un *at, size_t name_bytes) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name_bytes);
    CHECK_EQ(bind(fd, (const struct sockaddr *)at, bytes), 0);
    return fd;
}
static void check_receives(int fd, const char *text) {
    char got[NOTIFY_TEXT_MAX + 1];
    CHECK_EQ(recv(fd, got, sizeof got, 0), strlen(text));
    CHECK_EQ(memcmp(got, text, strlen(text)), 0);
}

TEST(a_path_and_an_abstract_name_get_the_text_as_one_datagram) {
    char folder[] = "/tmp/farkv-notify.XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", folder);
    int fd = receiver(&at, strlen(at.sun_path) + 1);
    CHECK_EQ(tell(at.sun_path, "READY=1\nSTATUS=serves 4 shards"), 0);
    check_receives(fd, "READY=1\nSTATUS=serves 4 shards");
    close(fd);
    CHECK_EQ(tell(at.sun_path, "STOPPING=1"), -ECONNREFUSED);
    unlink(at.sun_path);
    rmdir(folder);
    CHECK_EQ(tell(at.sun_path, "STOPPING=1"), -ENOENT);

    char name[64];
    snprintf(name, sizeof name, "@farkv-notify-%d", (int)getpid());
    struct sockaddr_un abstract = { .sun_family = AF_UNIX };
    memcpy(abstract.sun_path + 1, name + 1, strlen(name) - 1);
    fd = receiver(&abstract, strlen(name));
    CHECK_EQ(tell(name, "STOPPING=1"), 0);
    check_receives(fd, "STOPPING=1");
    close(fd);
}
TEST(addresses_and_texts_beyond_the_limits_are_refused) {
    char address[NOTIFY_ADDRESS_MAX + 2], text[NOTIFY_TEXT_MAX + 2];
    memset(address, 'a', sizeof address);
    memset(text, 'a', sizeof text);
    address[0] = '@';
    address[NOTIFY_ADDRESS_MAX + 1] = text[NOTIFY_TEXT_MAX + 1] = 0;
    CHECK_EQ(tell(address, "READY=1"), -ENAMETOOLONG);
    address[NOTIFY_ADDRESS_MAX] = 0;
    CHECK_EQ(tell(address, "READY=1"), -ECONNREFUSED); /* nobody is there */
    CHECK_EQ(tell(address, text), -EMSGSIZE);
    text[NOTIFY_TEXT_MAX] = 0;
    CHECK_EQ(tell(address, text), -ECONNREFUSED);
    CHECK_EQ(tell(address, ""), -EMSGSIZE);
    CHECK_EQ(tell("vsock:2:1234", "READY=1"), -EAFNOSUPPORT);
    CHECK_EQ(tell("relative", "READY=1"), -EAFNOSUPPORT);
    CHECK_EQ(tell("@", "READY=1"), -EAFNOSUPPORT);
    CHECK_EQ(tell("", "READY=1"), -EAFNOSUPPORT);
}

int main(int argc, char **argv) {
    RUN(a_path_and_an_abstract_name_get_the_text_as_one_datagram);
    RUN(addresses_and_texts_beyond_the_limits_are_refused);
    return check_end(argc, argv);
}
