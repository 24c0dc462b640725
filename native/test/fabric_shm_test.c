/* The shm provider: the conformance suite, and what is particular to it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"
#include "fabric_conformance.h"

static char directory[64];
static const char *fresh_address(void) {
    static char address[128];
    static int count;
    snprintf(address, sizeof address, "unix:%s/%d.%d", directory, (int)getpid(), count++);
    return address;
}

static const fabric_under_test shm = {
    .provider = FAB_SHM, .address = fresh_address, .sleeps = true, .forks = true, .attach_maps = true,
};

/* Owners that were killed leave their socket files behind. */
static void empty_directory(void) {
    DIR *d = opendir(directory);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') CHECK_EQ(unlinkat(dirfd(d), e->d_name, 0), 0);
    }
    closedir(d);
}

int main(int argc, char **argv) {
    const char *given = getenv("FARKV_TEST_DIRECTORY");
    snprintf(directory, sizeof directory, "%s", given ? given : "/tmp/farkv-shm-XXXXXX");
    if (!given) {
        CHECK(mkdtemp(directory));
        setenv("FARKV_TEST_DIRECTORY", directory, 1);   /* children use it too */
    }
    if (fabric_conformance_child(&shm, argc, argv)) return 0;
    fabric_conformance_connections(&shm);
    fabric_conformance_sends(&shm);
    fabric_conformance_reads(&shm);
    fabric_conformance_wakeups(&shm);
    CHECK_EQ(rmdir(directory), 0);   /* no file is left behind */
    CHECK_EQ(mkdir(directory, 0700), 0);
    fabric_conformance_faults(&shm);
    empty_directory();
    CHECK_EQ(rmdir(directory), 0);
    return check_end(argc, argv);
}
