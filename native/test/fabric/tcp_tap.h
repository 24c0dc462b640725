/* tcp_tap.h: somebody on the way between a client and an owner: hears every byte, and may change, cut or hold them. */
#ifndef FARKV_TEST_TCP_TAP_H
#define FARKV_TEST_TCP_TAP_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TAP_ROOM = 1 << 20, TAP_UP = 0, TAP_DOWN = 1 }; /* up: from the client to the owner */
#define TAP_NEVER UINT64_MAX

typedef struct tap {
    char address[80], to[80]; /* where clients connect; where it leads, without "tls:" */
    /* In each direction of the last connection. Set before a connection begins: from which byte on. */
    uint64_t flip[2]; /* one bit of this byte is changed */
    uint64_t cut[2];  /* the connection ends before this byte */
    uint8_t heard[2][TAP_ROOM];
    uint64_t bytes[2]; /* heard */
    int listener, stop[2];
    pthread_t thread;
} tap;

void tap_open(tap *t, const char *to); /* `to`: an owner's address */
void tap_close(tap *t);
/* Whether `n` bytes of this are among those heard. With tap_close behind it, or while nothing travels. */
bool tap_heard(const tap *t, const void *bytes, size_t n);
#endif
