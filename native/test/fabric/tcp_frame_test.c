/* Headers of the tcp provider: what is written is read back, what is cut is waited for, what is wrong is refused, and
 * no bytes at all
 * make the decoder read or say what it should not. */
#include "../../fabric/tcp/frame.h"
#include <stdlib.h>
#include <string.h>
#include "../check.h"

enum { MESSAGE = 4096 };

static const tcp_frame good[] = {
    { .type = TCP_READ, .number = 7, .argument = 1056, .rkey = 0x0123456789abcdefu, .addr = 0xfedcba9876543210u },
    { .type = TCP_READ, .number = UINT32_MAX, .argument = UINT32_MAX, .rkey = UINT64_MAX, .addr = UINT64_MAX },
    { .type = TCP_READ },
    { .type = TCP_DATA, .number = 9, .argument = TCP_CHUNK },
    { .type = TCP_DATA, .number = 9, .argument = 1, .last = true },
    { .type = TCP_DATA, .last = true },
    { .type = TCP_DATA, .last = true, .status = FAB_REM_ACCESS_ERR, .number = 1 },
    { .type = TCP_SEND, .argument = 1 },
    { .type = TCP_SEND, .argument = MESSAGE },
    { .type = TCP_CREDIT, .argument = UINT64_MAX },
    { .type = TCP_BYE },
    { .type = TCP_FOLLOW,
      .argument = (uint64_t)FAB_FOLLOW_MAX << 32 | FAB_FOLLOW_FIRST_MAX,
      .number = 7,
      .rkey = UINT64_MAX,
      .addr = 4096,
      .follow = UINT64_MAX - 1 },
};
enum { GOOD = sizeof good / sizeof good[0] };

static bool same(const tcp_frame *a, const tcp_frame *b) {
    return a->follow == b->follow && a->type == b->type && a->status == b->status && a->last == b->last &&
           a->number == b->number && a->argument == b->argument && a->rkey == b->rkey && a->addr == b->addr;
}

/* The bytes are put at the end of an allocation, so that the address sanitizer sees a decoder that looks further. */
static int decode(const uint8_t *bytes, size_t n, tcp_frame *f) {
    uint8_t *exact = malloc(n ? n : 1);
    memcpy(exact, bytes, n);
    *f = (tcp_frame){ 0 };
    int r = tcp_frame_decode(exact, n, MESSAGE, f);
    free(exact);
    return r;
}
static int decode_hello(const uint8_t *bytes, size_t n, tcp_hello *h) {
    uint8_t *exact = malloc(n ? n : 1);
    memcpy(exact, bytes, n);
    *h = (tcp_hello){ 0 };
    int r = tcp_hello_decode(exact, n, h);
    free(exact);
    return r;
}

TEST(frames_are_read_back_as_written_and_waited_for_when_cut) {
    for (int i = 0; i < GOOD; i++) {
        uint8_t out[TCP_FOLLOW_BYTES];
        tcp_frame f;
        size_t n = tcp_frame_encode(&good[i], out);
        CHECK_EQ(n, good[i].type == TCP_READ     ? TCP_READ_BYTES
                    : good[i].type == TCP_FOLLOW ? TCP_FOLLOW_BYTES
                                                 : TCP_HEADER_BYTES);
        for (size_t cut = 0; cut < n; cut++) CHECK_EQ(decode(out, cut, &f), 0);
        CHECK_EQ(decode(out, n, &f), n);
        CHECK(same(&f, &good[i]));
    }
}

TEST(frames_that_mean_nothing_are_refused) {
    static const tcp_frame bad[] = {
        { .type = 0 },
        { .type = TCP_FOLLOW + 1 },
        { .type = TCP_FOLLOW, .argument = 1024ull << 32 | (FAB_FOLLOW_FIRST_MAX + 1) },
        { .type = TCP_FOLLOW, .argument = (FAB_FOLLOW_MAX + 1ull) << 32 | 128 },
        { .type = TCP_FOLLOW, .argument = 128 },
        { .type = TCP_FOLLOW, .argument = 1024ull << 32 },
        { .type = TCP_FOLLOW, .argument = 1024ull << 32 | 128, .status = 1 },
        { .type = TCP_FOLLOW, .argument = 1024ull << 32 | 128, .last = true },
        { .type = 255 },
        { .type = TCP_READ, .argument = 1ull << 32 },
        { .type = TCP_READ, .argument = 8, .status = 1 },
        { .type = TCP_READ, .argument = 8, .last = true },
        { .type = TCP_DATA, .argument = TCP_CHUNK + 1 },
        { .type = TCP_DATA, .argument = UINT64_MAX },
        { .type = TCP_DATA, .argument = 0 },
        { .type = TCP_DATA, .last = true, .status = FAB_WC_STATUS_COUNT },
        { .type = TCP_DATA, .last = true, .status = FAB_REM_ACCESS_ERR, .argument = 1 },
        { .type = TCP_DATA, .status = FAB_REM_ACCESS_ERR },
        { .type = TCP_SEND, .argument = 0 },
        { .type = TCP_SEND, .argument = MESSAGE + 1 },
        { .type = TCP_SEND, .argument = UINT64_MAX },
        { .type = TCP_SEND, .argument = 8, .number = 1 },
        { .type = TCP_SEND, .argument = 8, .last = true },
        { .type = TCP_CREDIT, .argument = 8, .number = 1 },
        { .type = TCP_CREDIT, .argument = 8, .status = 1 },
        { .type = TCP_BYE, .argument = 1 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t out[TCP_FOLLOW_BYTES];
        tcp_frame f;
        CHECK_EQ(decode(out, tcp_frame_encode(&bad[i], out), &f), -1);
    }
    for (int i = 0; i < GOOD; i++) {
        uint8_t out[TCP_FOLLOW_BYTES];
        tcp_frame f;
        size_t n = tcp_frame_encode(&good[i], out);
        for (int flag = 1; flag < 16; flag++) { /* flags that nobody knows yet */
            out[2] ^= (uint8_t)(1 << (flag % 8));
            out[3] ^= flag >= 8;
            if (flag % 8) CHECK_EQ(decode(out, n, &f), -1);
            out[2] ^= (uint8_t)(1 << (flag % 8));
            out[3] ^= flag >= 8;
        }
    }
}

TEST(hellos_are_read_back_and_longer_ones_of_later_versions_too) {
    tcp_hello h = { .kind = TCP_HELLO,
                    .reason = 0,
                    .version_min = 1,
                    .version_max = 9,
                    .features = 0x8001,
                    .max_message = 16384,
                    .window = 1 << 18,
                    .depth = 1024,
                    .priv_bytes = FAB_PRIVATE_MAX },
              back;
    for (int i = 0; i < FAB_PRIVATE_MAX; i++) h.priv[i] = (uint8_t)(i * 7 + 1);
    uint8_t out[TCP_HELLO_MAX] = { 0 };
    CHECK_EQ(tcp_hello_encode(&h, out), TCP_HELLO_BYTES);
    for (size_t cut = 0; cut < TCP_HELLO_BYTES; cut++) CHECK_EQ(decode_hello(out, cut, &back), 0);
    CHECK_EQ(decode_hello(out, TCP_HELLO_BYTES, &back), TCP_HELLO_BYTES);
    CHECK(memcmp(&h, &back, sizeof h) == 0);
    CHECK_EQ(tcp_version_choose(&back), TCP_VERSION_MAX);
    out[4] = TCP_HELLO_MAX;
    for (size_t cut = 0; cut < TCP_HELLO_MAX; cut++) CHECK_EQ(decode_hello(out, cut, &back), 0);
    CHECK_EQ(decode_hello(out, TCP_HELLO_MAX, &back), TCP_HELLO_MAX);
    CHECK(memcmp(&h, &back, sizeof h) == 0);
}

TEST(hellos_that_mean_nothing_are_refused) {
    tcp_hello h = { .kind = TCP_HELLO,
                    .version_min = 1,
                    .version_max = 1,
                    .max_message = 16384,
                    .window = 1 << 18,
                    .depth = 1 },
              back;
    uint8_t good_hello[TCP_HELLO_BYTES], out[TCP_HELLO_BYTES];
    tcp_hello_encode(&h, good_hello);
    static const struct {
        int at, value;
    } bad[] = {
        { 0, 'G' },
        { 1, 0 },
        { 2, 0xff },
        { 3, 0 }, /* magic: refused as soon as it is seen */
        { 4, TCP_HELLO_BYTES - 1 },
        { 4, TCP_HELLO_MAX + 1 },
        { 5, 1 },
        { 6, 0 },
        { 6, TCP_REJECT + 1 },
        { 8, 0 },
        { 8, 2 },
        { 24, FAB_PRIVATE_MAX + 1 },
        { 27, 1 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memcpy(out, good_hello, sizeof out);
        out[bad[i].at] = (uint8_t)bad[i].value;
        if (bad[i].at < 4) CHECK_EQ(decode_hello(out, (size_t)bad[i].at + 1, &back), -1);
        CHECK_EQ(decode_hello(out, sizeof out, &back), -1);
    }
    CHECK_EQ(tcp_version_choose(&(tcp_hello){ .version_min = TCP_VERSION_MAX + 1, .version_max = 200 }), 0);
}

TEST(random_bytes_are_never_read_beyond_their_end) {
    uint64_t x = check_seed();
    for (int round = 0; round < 200000; round++) {
        uint8_t bytes[TCP_HELLO_MAX];
        for (size_t i = 0; i < sizeof bytes; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            bytes[i] = (uint8_t)(x >> 32);
        }
        size_t n = x % sizeof bytes;
        if (round % 2) bytes[0] = (uint8_t)(1 + x % 5);
        if (round % 4 == 1) memset(bytes + 1, 0, 3);
        tcp_frame f;
        int used = decode(bytes, n, &f);
        CHECK(used >= -1 && used <= (int)n);
        if (used > 0 && f.type == TCP_SEND) CHECK(f.argument >= 1 && f.argument <= MESSAGE);
        if (used > 0 && f.type == TCP_DATA) CHECK(f.argument <= TCP_CHUNK && f.status < FAB_WC_STATUS_COUNT);
        uint8_t magic[8] = { 0x46, 0x4b, 0x76, 0x54, TCP_HELLO_BYTES, 0, 1, 0 };
        if (round % 3) memcpy(bytes, magic, 8);
        tcp_hello h;
        used = decode_hello(bytes, n, &h);
        CHECK(used >= -1 && used <= (int)n);
        if (used > 0) CHECK(h.priv_bytes <= FAB_PRIVATE_MAX && h.version_min <= h.version_max);
    }
}

int main(int argc, char **argv) {
    RUN(frames_are_read_back_as_written_and_waited_for_when_cut);
    RUN(frames_that_mean_nothing_are_refused);
    RUN(hellos_are_read_back_and_longer_ones_of_later_versions_too);
    RUN(hellos_that_mean_nothing_are_refused);
    RUN(random_bytes_are_never_read_beyond_their_end);
    return check_end(argc, argv);
}
