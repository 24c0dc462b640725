/* A shm listener's socket file, and whom it lets in. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"
#include "fabric_pair.h"
#include "shm_raw.h"

static const fabric_under_test shm = {
    .provider = FAB_SHM, .address = raw_fresh_address, .sleeps = true, .attach_maps = true
};
static pair p;

static const char *path_of(const char *address) { return address + 5; }

static mode_t mode_of(const char *address) {
    struct stat s;
    return lstat(path_of(address), &s) == 0 ? s.st_mode : 0;
}

TEST(the_socket_is_the_user_s_alone_whatever_the_umask) {
    mode_t before = umask(0);
    pair_listen(&p, &shm, NULL);
    CHECK_EQ(mode_of(p.address), S_IFSOCK | 0600);
    umask(before);
    pair_close(&p);
    CHECK_EQ(mode_of(p.address), 0);
}

static void make_stale(const char *address) {
    int fd = raw_listen(address);
    close(fd); /* as a killed owner leaves it: the file is there, nobody listens */
    CHECK(S_ISSOCK(mode_of(address)));
}

TEST(a_socket_that_a_dead_owner_left_is_taken_over_and_a_live_one_is_not) {
    end e;
    end_open(&e, &shm, NULL);
    const char *address = raw_fresh_address();
    fab_listener *first, *second;
    for (int round = 0; round < 3; round++) {
        make_stale(address);
        CHECK_EQ(fab_listen(e.cq, address, &first), 0);
        CHECK_EQ(fab_listen(e.cq, address, &second), -EADDRINUSE);
        fab_unlisten(first);
        CHECK_EQ(mode_of(address), 0);
    }
    int fd = open(path_of(address), O_CREAT | O_WRONLY, 0600); /* somebody's file */
    close(fd);
    CHECK_EQ(fab_listen(e.cq, address, &first), -EADDRINUSE);
    CHECK(S_ISREG(mode_of(address)));
    CHECK_EQ(unlink(path_of(address)), 0);
    end_close(&e);
}

TEST(a_listener_unlinks_no_socket_but_its_own) {
    end e;
    end_open(&e, &shm, NULL);
    const char *address = raw_fresh_address();
    fab_listener *l;
    CHECK_EQ(fab_listen(e.cq, address, &l), 0);
    CHECK_EQ(unlink(path_of(address)), 0);
    make_stale(address); /* another's by now */
    fab_unlisten(l);
    CHECK(S_ISSOCK(mode_of(address)));
    CHECK_EQ(unlink(path_of(address)), 0);
    end_close(&e);
}

typedef struct starter {
    const char *address;
    int result;
    end e;
    fab_listener *l;
    pthread_barrier_t *together;
} starter;
static void *start_listening(void *arg) {
    starter *s = arg;
    pthread_barrier_wait(s->together);
    s->result = fab_listen(s->e.cq, s->address, &s->l);
    return NULL;
}

TEST(of_owners_that_start_at_once_over_a_stale_socket_one_gets_it) {
    enum { STARTERS = 4, ROUNDS = 200 };
    static starter s[STARTERS];
    pthread_barrier_t together;
    CHECK_EQ(pthread_barrier_init(&together, NULL, STARTERS), 0);
    for (int i = 0; i < STARTERS; i++) end_open(&s[i].e, &shm, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        const char *address = raw_fresh_address();
        pthread_t thread[STARTERS];
        make_stale(address);
        for (int i = 0; i < STARTERS; i++) {
            s[i].address = address;
            s[i].together = &together;
            CHECK_EQ(pthread_create(&thread[i], NULL, start_listening, &s[i]), 0);
        }
        int winners = 0;
        for (int i = 0; i < STARTERS; i++) {
            CHECK_EQ(pthread_join(thread[i], NULL), 0);
            CHECK(s[i].result == 0 || s[i].result == -EADDRINUSE);
            winners += s[i].result == 0;
        }
        CHECK_EQ(winners, 1);
        for (int i = 0; i < STARTERS; i++)
            if (s[i].result == 0) fab_unlisten(s[i].l);
        CHECK_EQ(mode_of(address), 0);
    }
    for (int i = 0; i < STARTERS; i++) end_close(&s[i].e);
}

TEST(addresses_have_a_scheme_an_absolute_path_and_a_length) {
    end e;
    end_open(&e, &shm, NULL);
    char address[200];
    fab_listener *l;
    snprintf(address, sizeof address, "unix:/tmp/%0*d", 103, 7); /* sun_path holds 107 characters */
    CHECK_EQ(strlen(path_of(address)), 108);
    CHECK_EQ(fab_listen(e.cq, address, &l), -ENAMETOOLONG);
    CHECK_EQ(fab_listen(e.cq, "unix:relative", &l), -EINVAL);
    CHECK_EQ(fab_listen(e.cq, "unix:", &l), -EINVAL);
    CHECK_EQ(fab_listen(e.cq, "/no/scheme", &l), -EINVAL);
    CHECK_EQ(fab_listen(e.cq, "127.0.0.1:7000", &l), -EINVAL);
    CHECK_EQ(fab_listen(e.cq, "unix:/nonexistent/directory/sock", &l), -ENOENT);
    end_close(&e);
}

TEST(a_process_of_another_user_is_refused) {
    if (geteuid() != 0) { /* only root can start a process as somebody else */
        printf("a_process_of_another_user_is_refused: needs root, did nothing\n");
        return;
    }
    pair_listen(&p, &shm, NULL);
    CHECK_EQ(chmod(raw_directory(), 0777), 0);
    CHECK_EQ(chmod(path_of(p.address), 0777), 0); /* so that only the credentials stand in the way */
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(65534) || setuid(65534)) _exit(2);
        raw r = raw_connect(p.address);
        raw_hello(&r);
        raw_wait_for_end(&r);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pair_settle(&p);
    CHECK(!end_has(&p.owner));
    CHECK_EQ(chmod(raw_directory(), 0700), 0);
    pair_close(&p);
}

TEST(a_client_beyond_the_limit_hears_that_it_was_refused) {
    pair_listen(&p, &shm, &(fab_options){ .max_conns = 1 });
    pair_connect(&p, 0, &p.client_conn, &p.owner_conn);
    for (int i = 0; i < 100; i++) { /* its greeting may come before or after the owner hung up */
        fab_conn *c;
        CHECK_EQ(fab_connect(p.client.cq, p.address, "hello", 5, NULL, &c), 0);
        pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_REM_ACCESS_ERR);
        pair_expect(&p, &p.client, FAB_WC_DISCONNECT, FAB_REM_ACCESS_ERR);
        fab_disconnect(c);
    }
    pair_close(&p);
}

/* ---- no descriptors ---- */

static _Atomic int errors_logged;
static void count_errors(void *ctx, int level, const char *text) {
    (void)ctx, (void)text;
    if (level == 0) errors_logged++;
}

TEST(without_descriptors_a_listener_waits_and_goes_on_later) {
    pair_listen(&p, &shm, &(fab_options){ .log = count_errors, .handshake_ms = 30000 });
    raw r = raw_connect(p.address);
    raw_hello(&r);
    fab_conn *first = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    struct rlimit before, none;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    raw second = { .fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) };
    int lowest = dup(second.fd);
    close(lowest);
    none = (struct rlimit){ .rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max };
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    strcpy(a.sun_path, path_of(p.address));
    CHECK_EQ(connect(second.fd, (struct sockaddr *)&a, sizeof a), 0);
    while (errors_logged == 0) pair_turn(&p);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    raw_hello(&second);
    fab_conn *later = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    CHECK(errors_logged < 1000); /* it waited, it did not spin */
    fab_disconnect(first);
    fab_disconnect(later);
    raw_close(&r);
    close(second.fd);
    pair_close(&p);
}

/* ---- nobody listens ---- */

static _Atomic int unreached_logged;
static void count_unreached(void *ctx, int level, const char *text) {
    (void)ctx;
    if (level == 2 && strstr(text, "connect: Connection refused")) unreached_logged++;
}

static void fail_to_connect(const char *address) {
    fab_conn *c;
    CHECK_EQ(fab_connect(p.client.cq, address, "hello", 5, NULL, &c), 0);
    pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_RETRY_EXC_ERR);
    pair_expect(&p, &p.client, FAB_WC_DISCONNECT, FAB_RETRY_EXC_ERR);
    fab_disconnect(c);
}

TEST(of_a_peer_that_is_gone_one_line_is_said_until_it_was_there_again) {
    enum { GONE = 8 };
    char gone[GONE][256];
    for (int i = 0; i < GONE; i++) {
        snprintf(gone[i], sizeof gone[i], "%s", raw_fresh_address());
        make_stale(gone[i]);
    }
    pair_listen(&p, &shm, &(fab_options){ .log = count_unreached });
    for (int i = 0; i < 100; i++) fail_to_connect(gone[0]);
    CHECK_EQ(unreached_logged, 1);
    for (int i = 0; i < 10 * GONE; i++) fail_to_connect(gone[i % GONE]);
    CHECK_EQ(unreached_logged, GONE);
    CHECK_EQ(unlink(path_of(gone[0])), 0);
    int fd = raw_listen(gone[0]);
    fab_conn *c;
    CHECK_EQ(fab_connect(p.client.cq, gone[0], "hello", 5, NULL, &c), 0);
    int accepted = accept(fd, NULL, NULL);
    CHECK(accepted >= 0);
    close(accepted);
    close(fd);
    while (!end_has(&p.client)) pair_turn(&p);
    while (end_has(&p.client)) pair_next(&p, &p.client);
    fab_disconnect(c);
    pair_settle(&p);
    while (end_has(&p.client)) pair_next(&p, &p.client);
    for (int i = 0; i < 100; i++) fail_to_connect(gone[0]);
    CHECK_EQ(unreached_logged, GONE + 1);
    pair_close(&p);
    for (int i = 0; i < GONE; i++) CHECK_EQ(unlink(path_of(gone[i])), 0);
}

int main(int argc, char **argv) {
    raw_directory_make();
    RUN(the_socket_is_the_user_s_alone_whatever_the_umask);
    RUN(a_socket_that_a_dead_owner_left_is_taken_over_and_a_live_one_is_not);
    RUN(a_listener_unlinks_no_socket_but_its_own);
    RUN(of_owners_that_start_at_once_over_a_stale_socket_one_gets_it);
    RUN(addresses_have_a_scheme_an_absolute_path_and_a_length);
    RUN(a_process_of_another_user_is_refused);
    RUN(a_client_beyond_the_limit_hears_that_it_was_refused);
    RUN(without_descriptors_a_listener_waits_and_goes_on_later);
    RUN(of_a_peer_that_is_gone_one_line_is_said_until_it_was_there_again);
    raw_directory_remove();
    return check_end(argc, argv);
}
