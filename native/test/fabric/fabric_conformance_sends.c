/* SENDs: whole, in order, at every size; push back; many connections at one CQ. */
#include <errno.h>
#include <string.h>
#include "../../base/clock.h"
#include "../../fabric/provider.h"
#include "../check.h"
#include "fabric_conformance.h"

static const fabric_under_test *u;
static pair p;

static uint64_t random_state;
static uint32_t random_below(uint32_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) * n >> 32);
}

static void send_pattern(fab_conn *c, uint64_t seed, uint32_t bytes) {
    static uint8_t room[FAB_MESSAGE_MAX];
    pattern_fill(room, seed, bytes);
    /* in three pieces, some of them empty */
    uint32_t a = random_below(bytes + 1), b = a + random_below(bytes - a + 1);
    struct iovec iov[3] = { { room, a }, { room + a, b - a }, { room + b, bytes - b } };
    CHECK_EQ(fab_send(c, iov, 3), 0);
    memset(room, 0xee, bytes); /* the caller's buffers are free on return */
}

static void check_size(uint32_t bytes) {
    for (int who = 0; who < 2; who++) {
        send_pattern(who ? p.owner_conn : p.client_conn, bytes, bytes);
        fab_wc w = pair_expect(&p, who ? &p.client : &p.owner, FAB_WC_RECV, FAB_SUCCESS);
        CHECK_EQ(w.bytes, bytes);
        CHECK(w.conn == (who ? p.client_conn : p.owner_conn));
        CHECK_EQ((uintptr_t)w.data % 8, 0);
        CHECK(pattern_ok(w.data, bytes, bytes));
        fab_release(w.conn, w.data);
    }
}

TEST(messages_of_every_size_arrive_whole) {
    static const uint32_t limits[] = { FAB_MESSAGE_MIN, 16 << 10, FAB_MESSAGE_MAX };
    for (int l = 0; l < 3; l++) {
        pair_open(&p, u, &(fab_options){ .max_message = limits[l] }, 0);
        CHECK_EQ(fab_max_message(p.client_conn), limits[l]);
        for (uint32_t bytes = 1; bytes <= limits[l]; bytes += bytes < 300 ? 1 : limits[l] / 97) check_size(bytes);
        for (uint32_t bytes = limits[l] - 9; bytes <= limits[l]; bytes++) check_size(bytes);
        pair_close(&p);
    }
}

TEST(messages_that_cannot_be_sent_are_refused) {
    pair_open(&p, u, &(fab_options){ .max_message = 1024 }, 0);
    static uint8_t room[2048];
    CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ room, 1025 }, 1), -EMSGSIZE);
    struct iovec two[2] = { { room, 1000 }, { room, 25 } };
    CHECK_EQ(fab_send(p.client_conn, two, 2), -EMSGSIZE);
    CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ room, SIZE_MAX }, 1), -EMSGSIZE);
    CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ room, 0 }, 1), -EINVAL);
    CHECK_EQ(fab_send(p.client_conn, two, 0), -EINVAL);
    check_size(1024);
    pair_close(&p);
}

/* ---- push back ---- */

enum { HOLD_MOST = 100000 };
static struct {
    uint64_t sent, got;
    int ready;
    uint32_t bytes;
    const void *held[HOLD_MOST];
} hold;

static void send_until_refused(void) {
    static uint8_t room[16 << 10];
    int e;
    do {
        memcpy(room, &hold.sent, sizeof hold.sent);
        e = fab_send(p.client_conn, &(struct iovec){ room, hold.bytes }, 1);
        if (e == 0) hold.sent++;
        fab_flush(p.client.cq);
        CHECK(hold.sent < HOLD_MOST);
    } while (e == 0);
    CHECK_EQ(e, -EAGAIN);
}

static void hold_what_came(void) {
    while (end_has(&p.owner)) {
        fab_wc w = pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
        CHECK_EQ(w.bytes, hold.bytes);
        CHECK(memcmp(w.data, &hold.got, sizeof hold.got) == 0);
        hold.held[hold.got++] = w.data;
    }
    for (; end_has(&p.client); hold.ready++) pair_expect(&p, &p.client, FAB_WC_SEND_READY, FAB_SUCCESS);
}

TEST(a_receiver_that_holds_its_messages_pushes_back_until_it_releases_them) {
    static const uint32_t sizes[] = { 8, 1000, 16 << 10 };
    for (int s = 0; s < 3; s++) {
        pair_open(&p, u, NULL, 0);
        memset(&hold, 0, sizeof hold);
        hold.bytes = sizes[s];
        uint64_t before;
        /* there is an end to what a peer takes without releasing; a machine may be too busy for it to be the first that
         * is met */
        do {
            before = hold.sent;
            hold.ready = 0;
            send_until_refused();
            uint64_t settled = fkv_now_ns() + 20000000;
            while (hold.got == 0 || fkv_now_ns() < settled) { /* a provider's own thread may need its time */
                pair_turn(&p);
                hold_what_came();
            }
            CHECK(hold.ready <= 1);
        } while (hold.ready || hold.sent > before);
        CHECK(hold.sent >= 8 && hold.got >= 1);
        for (uint64_t released = 0; hold.got < hold.sent || hold.ready == 0;) {
            for (; released < hold.got; released++) { /* in an order of its own */
                uint64_t other = released + random_below((uint32_t)(hold.got - released));
                fab_release(p.owner_conn, hold.held[other]);
                hold.held[other] = hold.held[released];
            }
            pair_turn(&p);
            hold_what_came();
        }
        CHECK_EQ(hold.ready, 1);
        static uint8_t room[16 << 10];
        CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ room, hold.bytes }, 1), 0);
        pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
        pair_close(&p);
    }
}

/* ---- everything at once ---- */

typedef struct stream {
    uint64_t sent, got;
    bool refused;
    const void *held[8];
} stream;

static uint32_t size_of(int who, uint64_t i) {
    return 8 + (uint32_t)((i * 2654435761u + (uint64_t)who * 40503u) % 3000);
}

static void stream_send(stream *s, int who, uint64_t most) {
    static uint8_t room[4096];
    while (!s->refused && s->sent < most && random_below(8)) {
        pattern_fill(room, s->sent * 2 + (uint64_t)who, size_of(who, s->sent));
        int e = fab_send(who ? p.owner_conn : p.client_conn, &(struct iovec){ room, size_of(who, s->sent) }, 1);
        if (e == 0)
            s->sent++;
        else
            CHECK_EQ(e, -EAGAIN);
        s->refused = e != 0;
    }
}

static void stream_take(stream *s, stream *reverse, int who) {
    end *e = who ? &p.client : &p.owner;
    fab_conn *c = who ? p.client_conn : p.owner_conn;
    while (end_has(e)) {
        fab_wc w = pair_next(&p, e);
        CHECK(w.conn == c && w.status == FAB_SUCCESS);
        if (w.opcode == FAB_WC_SEND_READY) {
            reverse->refused = false;
            continue;
        }
        CHECK_EQ(w.opcode, FAB_WC_RECV);
        CHECK_EQ(w.bytes, size_of(who, s->got));
        CHECK(pattern_ok(w.data, s->got * 2 + (uint64_t)who, w.bytes));
        s->got++;
        const void **slot = &s->held[random_below(8)]; /* some are released much later than others */
        if (*slot) fab_release(c, *slot);
        *slot = w.data;
    }
}

TEST(two_streams_of_random_messages_stay_whole_and_in_order) {
    enum { MESSAGES = 20000 };
    pair_open(&p, u, NULL, 0);
    stream s[2] = { { 0 } }; /* [0]: client to owner */
    while (s[0].got < MESSAGES || s[1].got < MESSAGES) {
        for (int who = 0; who < 2; who++)
            if (random_below(2)) stream_send(&s[who], who, MESSAGES);
        pair_turn(&p);
        stream_take(&s[0], &s[1], 0);
        stream_take(&s[1], &s[0], 1);
    }
    pair_close(&p);
}

TEST(many_connections_share_a_cq) {
    enum { CONNS = 150, ROUNDS = 40 };
    static fab_conn *client[CONNS], *owner[CONNS];
    static uint32_t order[CONNS];
    pair_listen(&p, u, NULL);
    for (int i = 0; i < CONNS; i++) {
        pair_connect(&p, 0, &client[i], &owner[i]);
        order[i] = (uint32_t)i;
        fab_set_user(owner[i], &order[i]);
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint32_t talk = 1 + random_below(CONNS); /* some speak, in any order, the others are idle */
        for (uint32_t i = 0; i < talk; i++) {
            uint32_t j = i + random_below(CONNS - i), c = order[j];
            order[j] = order[i];
            order[i] = c;
            CHECK_EQ(fab_send(client[c], &(struct iovec){ &round, sizeof round }, 1), 0);
        }
        for (uint32_t i = 0; i < talk; i++) {
            fab_wc w = pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
            CHECK(w.bytes == sizeof round && memcmp(w.data, &round, sizeof round) == 0);
            CHECK_EQ(fab_send(w.conn, &(struct iovec){ &i, sizeof i }, 1), 0);
            fab_release(w.conn, w.data);
        }
        for (uint32_t i = 0; i < talk; i++) {
            fab_wc w = pair_expect(&p, &p.client, FAB_WC_RECV, FAB_SUCCESS);
            fab_release(w.conn, w.data);
        }
        for (int i = 0; i < 1200; i++) pair_turn(&p); /* long enough for idle ones to be treated as such */
        CHECK(!end_has(&p.owner) && !end_has(&p.client));
    }
    for (int i = 0; i < CONNS; i++) {
        fab_disconnect(client[i]);
        fab_disconnect(owner[i]);
    }
    pair_close(&p);
}

/* The flood does not end before the quiet one's message is there; a provider that serves its first connection until
 * there is nothing more would never come to it. */
TEST(a_flooding_peer_does_not_starve_another) {
    enum { FLOOD_MOST = 5000000 };
    pair_open(&p, u, NULL, 0);
    fab_conn *quiet, *quiet_owner;
    pair_connect(&p, 0, &quiet, &quiet_owner);
    uint8_t room[32] = { 0 };
    bool asked = false, came = false;
    for (int before = 0; !came;) {
        while (fab_send(p.client_conn, &(struct iovec){ room, sizeof room }, 1) == 0) continue;
        if (!asked) CHECK_EQ(fab_send(quiet, &(struct iovec){ room, 1 }, 1), 0);
        asked = true;
        pair_turn(&p);
        for (; end_has(&p.client);) pair_expect(&p, &p.client, FAB_WC_SEND_READY, FAB_SUCCESS);
        while (end_has(&p.owner)) {
            fab_wc w = pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
            came |= w.conn == quiet_owner;
            fab_release(w.conn, w.data);
            CHECK(before++ < FLOOD_MOST);
        }
    }
    fab_disconnect(quiet);
    fab_disconnect(quiet_owner);
    pair_close(&p);
}

void fabric_conformance_sends(const fabric_under_test *under) {
    u = under;
    random_state = check_seed() | 1;
    RUN(messages_of_every_size_arrive_whole);
    RUN(messages_that_cannot_be_sent_are_refused);
    RUN(a_receiver_that_holds_its_messages_pushes_back_until_it_releases_them);
    RUN(two_streams_of_random_messages_stay_whole_and_in_order);
    RUN(many_connections_share_a_cq);
    RUN(a_flooding_peer_does_not_starve_another);
}
