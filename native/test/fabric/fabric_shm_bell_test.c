/* The bell of a shm connection when the peer rings without end: what is taken out of it is put in again at once. That
 * is made to happen in one thread: recv(), by which the provider empties a bell, is this file's own, and fills it. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../check.h"
#include "fabric_pair.h"
#include "shm_raw.h"

static const fabric_under_test shm = {
    .provider = FAB_SHM, .address = raw_fresh_address, .sleeps = true, .attach_maps = true
};

static raw ringer;
static bool rings;
static int emptied;

static void fill_the_bell(void) {
    static const char filler[65536];
    while (send(ringer.bell, filler, sizeof filler, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
    while (send(ringer.bell, filler, 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
}

ssize_t recv(int fd, void *room, size_t bytes, int flags) {
    if (rings) {
        CHECK(++emptied < 10000);
        fill_the_bell();
    }
    return syscall(SYS_recvfrom, fd, room, bytes, flags, NULL, NULL);
}

TEST(a_peer_that_rings_without_end_holds_nobody_up) {
    pair p;
    fab_wc w;
    pair_open(&p, &shm, NULL, 0);
    ringer = raw_connect(p.address);
    raw_hello(&ringer);
    fab_conn *conn = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    CHECK_EQ(fab_accept(conn, 0, NULL, 0), 0);
    raw_welcomed(&ringer);
    for (int i = 0; i < 10; i++) {
        while (fab_arm(p.owner.cq) != 0) CHECK_EQ(fab_poll(p.owner.cq, &w, 1), 0);
        fill_the_bell();
        rings = true;
        CHECK_EQ(fab_poll(p.owner.cq, &w, 1), 0);
        rings = false;
    }
    CHECK(emptied > 0);
    CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ "well?", 5 }, 1), 0);
    w = pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
    CHECK(w.conn == p.owner_conn);
    fab_release(w.conn, w.data);
    raw_close(&ringer);
    CHECK(pair_expect(&p, &p.owner, FAB_WC_DISCONNECT, FAB_RETRY_EXC_ERR).conn == conn);
    fab_disconnect(conn);
    pair_close(&p);
}

int main(int argc, char **argv) {
    raw_directory_make();
    RUN(a_peer_that_rings_without_end_holds_nobody_up);
    raw_directory_remove();
    return check_end(argc, argv);
}
