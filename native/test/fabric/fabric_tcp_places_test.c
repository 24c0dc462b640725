/* What peers of the tcp provider that have not said their hello can take: places for a while, and few; descriptors, but
 * not those that are to be left to others. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../fabric/tcp/tcp.h"
#include "../check.h"
#include "fabric_tcp_rig.h"
#include "tcp_raw.h"

static bool has_ended(int fd) {
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno == ECONNRESET);
}

enum { SILENT = 512, SILENT_OF_ADDRESS = 256 }; /* as provider.h says */

/* A connection that was made says its hello, and is accepted. */
static fab_conn *greets(int fd) {
    uint8_t out[TCP_HELLO_BYTES];
    tcp_hello h = rawtcp_hello();
    rawtcp_write(fd, out, tcp_hello_encode(&h, out));
    fab_conn *c = pair_expect(&rig.p, &rig.p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    CHECK_EQ(fab_accept(c, RIG_TENANT, NULL, 0), 0);
    CHECK(rawtcp_read(fd, out, sizeof out));
    return c;
}

static void leaves(int fd, fab_conn *c) {
    close(fd);
    CHECK_EQ(pair_next(&rig.p, &rig.p.owner).opcode, FAB_WC_DISCONNECT);
    fab_disconnect(c);
}

TEST(silent_clients_take_no_places_and_the_oldest_of_them_goes) {
    enum { LIMIT = 3, MORE = 10 };
    static int fd[SILENT_OF_ADDRESS + MORE];
    rig_open(&(fab_options){ .handshake_ms = 600000, .max_conns = LIMIT });
    for (int i = 0; i < SILENT_OF_ADDRESS; i++) fd[i] = rawtcp_connect(rig.p.address);
    rig_honest_read(); /* all are accepted */
    for (int i = 0; i < SILENT_OF_ADDRESS; i++) CHECK(!has_ended(fd[i]));
    for (int i = 0; i < MORE; i++) {
        fd[SILENT_OF_ADDRESS + i] = rawtcp_connect(rig.p.address);
        rawtcp_expect_end(fd[i]);
    }
    fab_conn *c[2] = { greets(fd[MORE]), greets(fd[SILENT_OF_ADDRESS + MORE - 1]) };
    tcp_hello h = rawtcp_hello(), no = rawtcp_greet(fd[MORE + 1], &h);
    CHECK(no.kind == TCP_REJECT && no.reason == TCP_REASON_FULL); /* LIMIT have said theirs */
    leaves(fd[MORE], c[0]);
    leaves(fd[SILENT_OF_ADDRESS + MORE - 1], c[1]);
    for (int i = 0; i < SILENT_OF_ADDRESS + MORE - 1; i++)
        if (i != MORE) close(fd[i]);
    rig_honest_read();
    rig_close();
}

TEST(silent_clients_of_one_address_do_not_end_those_of_another) {
    enum { ATTACKERS = SILENT + 100 };
    static int fd[ATTACKERS];
    rig_open(&(fab_options){ .handshake_ms = 600000 });
    int other = rawtcp_connect_from("127.0.0.2:0", rig.p.address);
    for (int i = 0; i < ATTACKERS; i++) fd[i] = rawtcp_connect(rig.p.address);
    for (int i = 0; i < ATTACKERS - SILENT_OF_ADDRESS; i++) rawtcp_expect_end(fd[i]);
    fab_conn *c = greets(other);
    leaves(other, c);
    for (int i = 0; i < ATTACKERS; i++) close(fd[i]);
    rig_honest_read();
    rig_close();
}

TEST(silent_clients_of_many_addresses_have_a_bound_together) {
    enum { ADDRESSES = 6, OF_EACH = SILENT / ADDRESSES + 20 };
    static int fd[ADDRESSES * OF_EACH];
    char source[32];
    rig_open(&(fab_options){ .handshake_ms = 600000 });
    for (int i = 0; i < ADDRESSES * OF_EACH; i++) {
        snprintf(source, sizeof source, "127.0.0.%d:0", 2 + i % ADDRESSES);
        fd[i] = rawtcp_connect_from(source, rig.p.address);
    }
    for (int i = 0; i < ADDRESSES * OF_EACH - SILENT; i++) rawtcp_expect_end(fd[i]);
    rig_honest_read();
    for (int i = 0; i < ADDRESSES * OF_EACH; i++) close(fd[i]);
    rig_honest_read();
    rig_close();
}

/* ---- rejected ones that stay ---- */

static tcp_conn *honest_at_owner(void) { return (tcp_conn *)(void *)rig.p.owner_conn; }
static pthread_rwlock_t *regions_of_owner(void) { return &((tcp_domain *)(void *)rig.p.owner.domain)->mr_lock; }

/* While the responder is held up by a READ, a newcomer comes, another peer says something, and so does the one whose
 * place the newcomer takes: one batch. While the responder is held up by the second of these, the user gets to know of
 * what the first did. */
TEST(a_connection_that_made_room_is_not_touched_by_its_own_event) {
    static int fd[SILENT_OF_ADDRESS + 1];
    static uint8_t room[RIG_REGION];
    fab_conn *c;
    tcp_frame f = { .type = TCP_READ, .argument = 64 };
    rig_open(&(fab_options){ .handshake_ms = 600000 });
    int reader = rig_stranger(&c);
    f.rkey = fab_mr_rkey(rig.mr);
    f.addr = fab_mr_addr(rig.mr);
    for (int i = 0; i < SILENT_OF_ADDRESS; i++) {
        tcp_hello h = rawtcp_hello();
        uint8_t out[TCP_HELLO_BYTES];
        fd[i] = rawtcp_connect(rig.p.address);
        rawtcp_write(fd[i], out, tcp_hello_encode(&h, out));
        fab_reject(pair_expect(&rig.p, &rig.p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn, NULL, 0);
        rawtcp_expect_end(fd[i]); /* of what the owner says; the rejected one stays */
    }
    tcp_conn *second = (tcp_conn *)(void *)c;
    uint64_t before = __atomic_load_n(&honest_at_owner()->rx_total, __ATOMIC_ACQUIRE);
    CHECK_EQ(pthread_mutex_lock(&second->rx_lock), 0);
    CHECK_EQ(pthread_rwlock_wrlock(regions_of_owner()), 0);
    fab_read r = { .local = rig.local,
                   .local_mr = rig.local_mr,
                   .remote_addr = fab_mr_addr(rig.mr),
                   .rkey = fab_mr_rkey(rig.mr),
                   .bytes = 64 };
    CHECK_EQ(fab_post_reads(rig.p.client_conn, &r, 1), 1);
    while (__atomic_load_n(&honest_at_owner()->rx_total, __ATOMIC_ACQUIRE) == before) pair_turn(&rig.p);
    fd[SILENT_OF_ADDRESS] = rawtcp_connect(rig.p.address);
    rawtcp_frame(reader, &f);
    rawtcp_write(fd[0], "?", 1);
    CHECK_EQ(pthread_rwlock_unlock(regions_of_owner()), 0);
    while (send(fd[0], "?", 1, MSG_NOSIGNAL) == 1) continue; /* until it has made room */
    pair_settle(&rig.p);
    CHECK_EQ(pthread_mutex_unlock(&second->rx_lock), 0);
    CHECK(rawtcp_next_frame(reader, &f) && rawtcp_read(reader, room, f.argument));
    pair_expect(&rig.p, &rig.p.client, FAB_WC_READ, FAB_SUCCESS);
    for (int i = 0; i <= SILENT_OF_ADDRESS; i++) close(fd[i]);
    leaves(reader, c);
    rig_honest_read();
    rig_close();
}

/* As many descriptors as the process may have, but for a few: those stay free however many come, silent ones make room
 * for whoever comes later, and who was accepted stays. */
TEST(connections_leave_descriptors_to_others) {
    enum { LIMIT = 160, SPARE = 40, CLIENTS = 200 };
    static int fd[CLIENTS];
    struct rlimit before, few;
    int spare[SPARE];
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rig_open(&(fab_options){ .handshake_ms = 600000, .spare_descriptors = SPARE });
    /* the strangers' own ends lie beyond the limit */
    few = (struct rlimit){ LIMIT, before.rlim_max };
    for (int i = 0; i < CLIENTS; i++) {
        int low = rawtcp_socket();
        CHECK((fd[i] = fcntl(low, F_DUPFD_CLOEXEC, LIMIT)) >= 0);
        close(low);
    }
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < CLIENTS; i++) rawtcp_reach(fd[i], rig.p.address);
    fab_conn *c = greets(fd[CLIENTS - 1]);
    for (int i = 0; i < SPARE; i++) CHECK((spare[i] = dup(0)) >= 0);
    for (int i = 0; i < SPARE; i++) close(spare[i]);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    leaves(fd[CLIENTS - 1], c);
    for (int i = 0; i < CLIENTS - 1; i++) close(fd[i]);
    rig_honest_read();
    rig_close();
}

int main(int argc, char **argv) {
    RUN(silent_clients_take_no_places_and_the_oldest_of_them_goes);
    RUN(silent_clients_of_one_address_do_not_end_those_of_another);
    RUN(silent_clients_of_many_addresses_have_a_bound_together);
    RUN(a_connection_that_made_room_is_not_touched_by_its_own_event);
    RUN(connections_leave_descriptors_to_others);
    return check_end(argc, argv);
}
