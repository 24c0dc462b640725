/* shm_raw.h: the other end of a shm connection, by hand: a test that misbehaves at the socket, in the rings or with
 * descriptors. */
#ifndef FARKV_TEST_SHM_RAW_H
#define FARKV_TEST_SHM_RAW_H
#include <sys/types.h>
#include "../../fabric/shm/lane.h"
#include "../../fabric/shm/frame.h"

typedef struct raw {
    int fd;
    shm_shared *shared; /* once raw_welcomed */
    uint8_t *ring[2];
    uint32_t ring_bytes, max_message;
    int bell;
} raw;

/* `address` is "unix:/path". */
raw raw_connect(const char *address);
void raw_close(raw *r);
/* a peer that hung up is no failure */
void raw_send(raw *r, const void *bytes, size_t n, const int *fds, int fd_count);
shm_frame raw_frame(uint8_t type);
void raw_hello(raw *r);
/* Waits for a frame of `type`. Descriptors go to fds (room for 4); returns how many. */
int raw_expect(raw *r, uint8_t type, shm_frame *f, int *fds);
/* Takes WELCOME and maps the rings. */
void raw_welcomed(raw *r);
/* Waits until the other end hangs up; frames that come before are dropped. */
void raw_wait_for_end(raw *r);
bool raw_has_ended(const raw *r);

/* An owner by hand: a listening socket. */
int raw_listen(const char *address);
raw raw_accept(int listener);

/* A memfd with these seals; the size is the file's. Whole, or without pages from `from` to `to`. */
int raw_memory(int seals, size_t bytes);
int raw_memory_with_hole(int seals, size_t bytes, size_t from, size_t to);

/* A directory of this program's own under /tmp, shared with its children; addresses in it that were not used before. */
void raw_directory_make(void);
void raw_directory_remove(void); /* fails when a file was left in it */
const char *raw_directory(void);
const char *raw_fresh_address(void);
#endif
