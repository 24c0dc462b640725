/* frame.c: headers of the tcp provider to and from bytes; see frame.h. Pure: no state, no system call. */
#include <endian.h>
#include <string.h>
#include "frame.h"

static void put16(uint8_t *p, uint16_t v) {
    v = htole16(v);
    memcpy(p, &v, 2);
}
static void put32(uint8_t *p, uint32_t v) {
    v = htole32(v);
    memcpy(p, &v, 4);
}
static void put64(uint8_t *p, uint64_t v) {
    v = htole64(v);
    memcpy(p, &v, 8);
}
static uint16_t get16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, 2);
    return le16toh(v);
}
static uint32_t get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return le32toh(v);
}
static uint64_t get64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return le64toh(v);
}

size_t tcp_hello_encode(const tcp_hello *h, uint8_t out[TCP_HELLO_BYTES]) {
    memset(out, 0, TCP_HELLO_BYTES);
    put32(out, TCP_MAGIC);
    put16(out + 4, TCP_HELLO_BYTES);
    out[6] = h->kind;
    out[7] = h->reason;
    out[8] = h->version_min;
    out[9] = h->version_max;
    put16(out + 10, h->features);
    put32(out + 12, h->max_message);
    put32(out + 16, h->window);
    put32(out + 20, h->depth);
    put32(out + 24, h->priv_bytes);
    memcpy(out + 32, h->priv, h->priv_bytes);
    return TCP_HELLO_BYTES;
}

int tcp_hello_decode(const uint8_t *in, size_t have, tcp_hello *h) {
    /* Refused at the first byte that is wrong: a stranger that speaks another protocol is not waited for. */
    uint8_t magic[4];
    put32(magic, TCP_MAGIC);
    if (memcmp(in, magic, have < 4 ? have : 4) != 0) return -1;
    if (have < 8) return 0;
    size_t bytes = get16(in + 4);
    if (bytes < TCP_HELLO_BYTES || bytes > TCP_HELLO_MAX || in[6] < TCP_HELLO || in[6] > TCP_REJECT) return -1;
    if (have < bytes) return 0;
    *h = (tcp_hello){ .kind = in[6],
                      .reason = in[7],
                      .version_min = in[8],
                      .version_max = in[9],
                      .features = get16(in + 10),
                      .max_message = get32(in + 12),
                      .window = get32(in + 16),
                      .depth = get32(in + 20),
                      .priv_bytes = get32(in + 24) };
    if (h->version_min > h->version_max || h->version_min == 0 || h->priv_bytes > FAB_PRIVATE_MAX) return -1;
    memcpy(h->priv, in + 32, h->priv_bytes);
    return (int)bytes;
}

size_t tcp_frame_encode(const tcp_frame *f, uint8_t *out) {
    out[0] = f->type;
    out[1] = f->status;
    put16(out + 2, f->last ? TCP_FLAG_LAST : 0);
    put32(out + 4, f->number);
    put64(out + 8, f->argument);
    if (f->type != TCP_READ && f->type != TCP_FOLLOW) return TCP_HEADER_BYTES;
    put64(out + 16, f->rkey);
    put64(out + 24, f->addr);
    if (f->type == TCP_READ) return TCP_READ_BYTES;
    put64(out + 32, f->follow);
    return TCP_FOLLOW_BYTES;
}

int tcp_frame_decode(const uint8_t *in, size_t have, uint32_t max_message, tcp_frame *f) {
    if (have == 0) return 0;
    if (in[0] < TCP_READ || in[0] > TCP_FOLLOW) return -1;
    if (have < TCP_HEADER_BYTES) return 0;
    uint16_t flags = get16(in + 2);
    *f = (tcp_frame){ .type = in[0],
                      .status = in[1],
                      .last = flags & TCP_FLAG_LAST,
                      .number = get32(in + 4),
                      .argument = get64(in + 8) };
    bool plain = f->status == 0 && flags == 0;
    switch (f->type) {
    case TCP_READ:
        if (!plain || f->argument > UINT32_MAX) return -1;
        if (have < TCP_READ_BYTES) return 0;
        f->rkey = get64(in + 16);
        f->addr = get64(in + 24);
        return TCP_READ_BYTES;
    case TCP_FOLLOW:
        if (!plain || (uint32_t)f->argument > FAB_FOLLOW_FIRST_MAX || f->argument >> 32 > FAB_FOLLOW_MAX) return -1;
        if ((uint32_t)f->argument == 0 || f->argument >> 32 == 0) return -1;
        if (have < TCP_FOLLOW_BYTES) return 0;
        f->rkey = get64(in + 16);
        f->addr = get64(in + 24);
        f->follow = get64(in + 32);
        return TCP_FOLLOW_BYTES;
    case TCP_DATA:
        if (flags & ~TCP_FLAG_LAST || f->status >= FAB_WC_STATUS_COUNT || f->argument > TCP_CHUNK) return -1;
        if (f->status != FAB_SUCCESS && (f->argument != 0 || !f->last)) return -1;
        if (f->argument == 0 && !f->last) return -1; /* no progress: could be sent for ever */
        return TCP_HEADER_BYTES;
    case TCP_SEND:
        if (!plain || f->number != 0 || f->argument == 0 || f->argument > max_message) return -1;
        return TCP_HEADER_BYTES;
    case TCP_CREDIT: return plain && f->number == 0 ? TCP_HEADER_BYTES : -1;
    default: return plain && f->number == 0 && f->argument == 0 ? TCP_HEADER_BYTES : -1;
    }
}
