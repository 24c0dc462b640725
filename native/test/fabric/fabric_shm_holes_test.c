/* What an owner makes of memory that a client offers over shm: it maps what the client has paid for, and pays for nothing
 * itself. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../check.h"
#include "../smaps.h"
#include "fabric_pair.h"
#include "shm_raw.h"

static const fabric_under_test shm = {
    .provider = FAB_SHM, .address = raw_fresh_address, .sleeps = true, .attach_maps = true
};
static const int SEALS = F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SEAL;
enum { OFFER_BYTES = 64 << 20 };
static pair p;

static uint64_t file_bytes(int fd) {
    struct stat s;
    CHECK_EQ(fstat(fd, &s), 0);
    return (uint64_t)s.st_blocks * 512;
}

static uint64_t resident_bytes(const void *address) {
    char kb[64];
    smaps_field(address, "Rss:", kb, sizeof kb);
    return strtoull(kb, NULL, 10) << 10;
}

/* The owner attaches all of what the client offers. */
static raw offer(fab_conn **conn, int fd, uint64_t offset, uint64_t bytes) {
    raw r = raw_connect(p.address);
    raw_hello(&r);
    *conn = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    CHECK_EQ(fab_accept(*conn, 0, NULL, 0), 0);
    raw_welcomed(&r);
    shm_frame f, reply = raw_frame(SHM_ATTACHED);
    int fds[4];
    CHECK_EQ(fab_attach(*conn, 42, 4096, bytes, 1), 0);
    raw_expect(&r, SHM_ATTACH, &f, fds);
    reply.id = f.id;
    reply.offset = offset;
    raw_send(&r, &reply, sizeof reply, &fd, 1);
    return r;
}

static void expect_refused(size_t from, size_t to) {
    fab_conn *conn;
    int fd = raw_memory_with_hole(SEALS, OFFER_BYTES, from, to);
    uint64_t before = file_bytes(fd);
    raw r = offer(&conn, fd, 0, OFFER_BYTES);
    CHECK_EQ(pair_next(&p, &p.owner).status, FAB_WR_FLUSH_ERR);
    fab_wc w = pair_next(&p, &p.owner);
    CHECK(w.opcode == FAB_WC_DISCONNECT && w.status == FAB_GENERAL_ERR);
    CHECK_EQ(file_bytes(fd), before);
    fab_disconnect(conn);
    raw_wait_for_end(&r);
    raw_close(&r);
    close(fd);
}

TEST(memory_with_holes_is_not_mapped_and_stays_as_it_is) {
    pair_listen(&p, &shm, NULL);
    expect_refused(0, OFFER_BYTES); /* nothing but one */
    expect_refused(0, 4096);
    expect_refused(OFFER_BYTES - 4096, OFFER_BYTES);
    expect_refused(OFFER_BYTES / 2, OFFER_BYTES / 2 + 4096);
    pair_close(&p);
}

/* Pages beyond the file's end count as its own, and fill no hole. */
TEST(pages_beyond_the_end_do_not_hide_a_hole) {
    fab_conn *conn;
    pair_listen(&p, &shm, NULL);
    int fd = raw_memory_with_hole(0, OFFER_BYTES, 0, OFFER_BYTES);
    CHECK_EQ(fallocate(fd, FALLOC_FL_KEEP_SIZE, OFFER_BYTES, OFFER_BYTES), 0);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, SEALS), 0);
    raw r = offer(&conn, fd, 0, OFFER_BYTES);
    CHECK_EQ(pair_next(&p, &p.owner).status, FAB_WR_FLUSH_ERR);
    CHECK_EQ(pair_next(&p, &p.owner).opcode, FAB_WC_DISCONNECT);
    CHECK_EQ(file_bytes(fd), OFFER_BYTES);
    fab_disconnect(conn);
    raw_wait_for_end(&r);
    raw_close(&r);
    close(fd);
    pair_close(&p);
}

/* The kernel maps a few pages around the one that is read. */
TEST(of_memory_that_a_client_offers_the_owner_has_in_its_tables_what_it_read) {
    enum { AROUND = 1 << 20 };
    fab_conn *conn;
    pair_listen(&p, &shm, NULL);
    int fd = raw_memory(SEALS, OFFER_BYTES);
    raw r = offer(&conn, fd, 4096, OFFER_BYTES - 8192);
    pair_expect(&p, &p.owner, FAB_WC_ATTACH, FAB_SUCCESS);
    const volatile uint8_t *at = fab_direct(conn, 42);
    CHECK_EQ(resident_bytes((const void *)(uintptr_t)at), 0);
    CHECK_EQ(at[OFFER_BYTES / 2], 0);
    CHECK(resident_bytes((const void *)(uintptr_t)at) <= AROUND);
    fab_disconnect(conn);
    raw_wait_for_end(&r);
    raw_close(&r);
    close(fd);
    pair_close(&p);
}

int main(int argc, char **argv) {
    raw_directory_make();
    RUN(memory_with_holes_is_not_mapped_and_stays_as_it_is);
    RUN(pages_beyond_the_end_do_not_hide_a_hole);
    RUN(of_memory_that_a_client_offers_the_owner_has_in_its_tables_what_it_read);
    raw_directory_remove();
    return check_end(argc, argv);
}
