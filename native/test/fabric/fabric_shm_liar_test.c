/* A shm client against an owner that lies: descriptors and sizes that could hurt the client, a bell that blocks. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../check.h"
#include "fabric_pair.h"
#include "shm_raw.h"

static const fabric_under_test shm = {
    .provider = FAB_SHM, .address = raw_fresh_address, .sleeps = true, .attach_maps = true
};
static pair p;

typedef struct lying_owner {
    int listener, fds[2], own_bell;
    raw r;
    shm_frame hello, welcome;
    const char *address;
} lying_owner;

/* A client connects; what it would be welcomed with is prepared and sound. The bell's ends block, as a liar could make
 * them. */
static lying_owner meet_owner(void) {
    lying_owner o = { .address = raw_fresh_address(), .welcome = raw_frame(SHM_WELCOME) };
    int bell[2];
    memset(&p, 0, sizeof p);
    p.under = &shm;
    end_open(&p.client, &shm, NULL);
    end_open(&p.owner, &shm, NULL); /* plays no part */
    o.listener = raw_listen(o.address);
    CHECK_EQ(fab_connect(p.client.cq, o.address, NULL, 0, NULL, &p.client_conn), 0);
    o.r = raw_accept(o.listener);
    CHECK_EQ(raw_expect(&o.r, SHM_HELLO, &o.hello, o.fds), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bell), 0);
    o.welcome.version_min = o.welcome.version_max = SHM_VERSION_MAX;
    o.welcome.max_message = 1024;
    o.welcome.ring_bytes = SHM_RING_MIN;
    o.fds[0] = raw_memory(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, shm_shared_bytes(SHM_RING_MIN));
    o.fds[1] = bell[0];
    o.own_bell = bell[1];
    return o;
}

static fab_wc_status welcome(lying_owner *o, int fd_count) {
    raw_send(&o->r, &o->welcome, sizeof o->welcome, o->fds, fd_count);
    fab_wc w = pair_next(&p, &p.client);
    CHECK_EQ(w.opcode, FAB_WC_CONNECT);
    return w.status;
}

static void part(lying_owner *o) {
    close(o->fds[0]);
    close(o->fds[1]);
    close(o->own_bell);
    close(o->listener);
    raw_close(&o->r);
    pair_close(&p);
    CHECK_EQ(unlink(o->address + 5), 0);
}

TEST(a_client_takes_no_rings_that_could_hurt_it) {
    const size_t right = shm_shared_bytes(SHM_RING_MIN);
    for (int way = 0; way < 11; way++) {
        lying_owner o = meet_owner();
        int n = 2, *rings = &o.fds[0], *bell = &o.fds[1];
        shm_frame *f = &o.welcome;
        switch (way) {
        case 0:
            close(*rings);
            *rings = raw_memory(F_SEAL_GROW | F_SEAL_SEAL, right);
            break; /* may shrink */
        case 1:
            close(*rings);
            *rings = raw_memory(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, right - 4096);
            break;
        case 2:
            close(*rings);
            *rings = open("/dev/null", O_RDWR);
            break;
        case 3: n = 1; break;
        case 4: f->ring_bytes = SHM_RING_MIN + 4096; break; /* not a power of two */
        case 5: f->ring_bytes = 1u << 31; break;
        case 6: f->max_message = o.hello.max_message + 1; break;
        case 7: f->version_min = f->version_max = SHM_VERSION_MAX + 1; break;
        case 8:
            close(*bell);
            *bell = open("/dev/null", O_RDWR);
            break;
        case 9: f->count = FAB_PRIVATE_MAX + 1; break;
        case 10: f->max_message = 0; break;
        }
        CHECK(welcome(&o, n) != FAB_SUCCESS);
        CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
        part(&o);
    }
}

TEST(a_bell_made_blocking_does_not_block_the_client) {
    lying_owner o = meet_owner();
    CHECK_EQ(welcome(&o, 2), FAB_SUCCESS);
    shm_shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, o.fds[0], 0);
    CHECK(shared != MAP_FAILED);
    alarm(60);
    for (uint64_t i = 0; i < 2000; i++) {
        atomic_store(&shared->asleep[1].flags, SHM_ASLEEP);
        CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ &i, sizeof i }, 1), 0);
        fab_flush(p.client.cq);
    }
    alarm(0);
    munmap(shared, sizeof *shared);
    part(&o);
}

int main(int argc, char **argv) {
    raw_directory_make();
    RUN(a_client_takes_no_rings_that_could_hurt_it);
    RUN(a_bell_made_blocking_does_not_block_the_client);
    raw_directory_remove();
    return check_end(argc, argv);
}
