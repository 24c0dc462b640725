/* fetch_test.c: large values brought from a peer's memory: who waits for whom, and what is used again when. The copier
 * has no thread here and peers answer READs only when they are polled, so that each order of events is made by hand. */
#include "../../bulk/fetch.h"
#include <stdlib.h>
#include <string.h>
#include "../../base/clock.h"
#include "../../fabric/tcp/tcp.h"
#include "../check.h"
#include "../fabric/fabric_pair.h"
#include "../fabric/shm_raw.h"

enum { CHUNK = 256 << 10, PIECES = 16, SPARE = 4, PIECES_OF_SOURCE = 3, SOURCES = 8, BYTES = 5 * CHUNK + 24, SEED = 5 };

static const char *tcp_address(void) { return "127.0.0.1:0"; }
static const fabric_under_test over_tcp = {
    .provider = FAB_TCP, .address = tcp_address, .sleeps = true, .attends = true
};
static const fabric_under_test over_shm = { .provider = FAB_SHM, .address = raw_fresh_address, .sleeps = true };

/* A peer with memory, and connections to it. */
typedef struct peer {
    pair p;
    fkv_region region; /* pattern_fill with SEED */
    fab_mr *mr;
    fab_conn *theirs[SOURCES];
    fetch_source source[SOURCES];
} peer;

static struct {
    helper copier;
    mailbox back;
    fetch_pool *pool;
    peer peer[2];
} rig;

/* A value, and what came of it. */
typedef struct value {
    fetch fetch;
    bool whole, ended;
    uint8_t *to;
} value;

static void on_whole(fetch *f) { ((value *)f)->whole = true; }
static void on_ended(fetch *f) {
    CHECK(!((value *)f)->ended);
    ((value *)f)->ended = true;
}
static const fetch_use USE = { .whole = on_whole, .ended = on_ended };

static void rig_open(void) {
    CHECK_EQ(helper_open(&rig.copier, "copier"), 0);
    CHECK_EQ(mailbox_open(&rig.back), 0);
    rig.pool = fetch_pool_make(&rig.copier, &rig.back);
    CHECK(rig.pool);
}
/* Until its owner alone answers. */
static void wait_until_attended(peer *r, const fab_conn *c) {
    uint64_t begun = fkv_now_ns();
    while (r->p.under->attends && ((const tcp_conn *)c)->threaded) {
        pair_turn(&r->p);
        CHECK(check_in_time(begun));
    }
}
static peer *peer_open(uint32_t place, const fabric_under_test *u, bool maps) {
    peer *r = &rig.peer[place];
    pair_listen(&r->p, u, NULL);
    CHECK_EQ(fkv_region_alloc("fetch", 6 * CHUNK, FKV_REGION_PREFAULT, &r->region), 0);
    pattern_fill(r->region.base, SEED, r->region.bytes);
    CHECK_EQ(fab_reg(r->p.owner.domain, &r->region, 0, &r->mr), 0);
    CHECK_EQ(fetch_pool_register(rig.pool, r->p.client.domain, place), 0);
    CHECK_EQ(fetch_pool_register(rig.pool, r->p.client.domain, place), 0); /* nothing new */
    for (int i = 0; i < SOURCES; i++) {
        fab_conn *mine;
        pair_connect(&r->p, 0, &mine, &r->theirs[i]);
        wait_until_attended(r, r->theirs[i]);
        fetch_source_init(&r->source[i], mine, place, maps);
    }
    return r;
}
static void hang_up(peer *r, int i) {
    if (r->source[i].conn) fab_disconnect(r->source[i].conn);
    fetch_source_end(rig.pool, &r->source[i]);
    r->source[i].conn = NULL;
}
static void rig_close(void) {
    for (peer *r = rig.peer; r < rig.peer + 2; r++)
        for (int i = 0; i < SOURCES && r->p.under; i++) {
            hang_up(r, i);
            if (r->theirs[i]) fab_disconnect(r->theirs[i]);
        }
    CHECK_EQ(fetch_pool_jobs(rig.pool), 0);
    fetch_pool_free(rig.pool);
    for (peer *r = rig.peer; r < rig.peer + 2; r++) {
        if (!r->p.under) continue;
        fab_dereg(r->mr);
        fkv_region_free(&r->region);
        fab_unlisten(r->p.listener);
        end_close(&r->p.client);
        end_close(&r->p.owner);
    }
    mailbox_close(&rig.back);
    helper_free(&rig.copier);
    memset(&rig, 0, sizeof rig);
}

static fkv_status begin_of(value *v, peer *r, int source, const fab_mr *mr, uint32_t bytes) {
    fkv_rendezvous from = { fab_mr_rkey(mr), fab_mr_addr(mr), fab_mr_addr(mr), r->region.bytes };
    *v = (value){ .to = calloc(1, (bytes + 7) & ~7u) };
    fkv_status s = fetch_begin(&v->fetch, rig.pool, &r->source[source], &from, v->to, bytes, &USE);
    if (s != FKV_OK) free(v->to);
    return s;
}
static void begin(value *v, peer *r, int source, uint32_t bytes) {
    CHECK_EQ(begin_of(v, r, source, r->mr, bytes), FKV_OK);
}
static void end_failed(value *v, fkv_status why) {
    CHECK(v->ended);
    CHECK_EQ(v->fetch.failed, why);
    free(v->to);
}

static void completed(peer *r, const fab_wc *wc) {
    if (wc->opcode == FAB_WC_READ) fetch_pool_read(rig.pool, wc);
    for (int i = 0; i < SOURCES && wc->opcode == FAB_WC_ATTACH; i++)
        if (r->source[i].conn == wc->conn) fetch_source_attached(&r->source[i], wc);
}
/* What has come is taken; nobody answers anything. */
static void look(peer *r) {
    fab_wc wc[16];
    int n = fab_poll(r->p.client.cq, wc, 16);
    for (int i = 0; i < n; i++) completed(r, &wc[i]);
    fetch_pool_step(rig.pool);
    fab_flush(r->p.client.cq);
}
static void answer(peer *r) {
    fab_wc wc[16];
    int n = fab_poll(r->p.owner.cq, wc, 16);
    for (int i = 0; i < n; i++) CHECK_EQ(wc[i].opcode, FAB_WC_DISCONNECT);
    fab_flush(r->p.owner.cq);
}
static bool copier_works(void) {
    bool did = helper_drain(&rig.copier) > 0;
    if (mailbox_ready(&rig.back)) mailbox_run(&rig.back);
    return did;
}
#define UNTIL(r, condition, answers, copies)              \
    for (uint64_t begun_ = fkv_now_ns(); !(condition);) { \
        if (answers) answer(r);                           \
        look(r);                                          \
        if (copies) copier_works();                       \
        CHECK(check_in_time(begun_));                     \
    }
static void comes_whole(value *v, peer *r, uint32_t bytes) {
    UNTIL(r, v->ended, true, true);
    CHECK(v->whole);
    CHECK_EQ(v->fetch.failed, FKV_OK);
    CHECK(pattern_ok(v->to, SEED, bytes));
    free(v->to);
}

/* ---- values ---- */

static void values_come(const fabric_under_test *u, bool maps) {
    rig_open();
    peer *r = peer_open(0, u, maps);
    value v[3];
    begin(&v[0], r, 0, BYTES);
    begin(&v[1], r, 0, 7); /* the same connection, and its region again */
    begin(&v[2], r, 1, BYTES);
    for (int i = 0; i < 3; i++) comes_whole(&v[i], r, i == 1 ? 7 : BYTES);
    rig_close();
}
TEST(values_come_over_tcp) { values_come(&over_tcp, true); }
TEST(values_come_over_shm_in_pieces) { values_come(&over_shm, false); }
TEST(values_come_over_shm_through_a_mapping) { values_come(&over_shm, true); }

TEST(a_value_of_this_process_is_copied) {
    rig_open();
    uint8_t *from = malloc(BYTES);
    value v = { .to = malloc(BYTES) };
    pattern_fill(from, SEED, BYTES);
    fetch_begin_here(&v.fetch, rig.pool, from, v.to, BYTES, &USE);
    CHECK(!v.ended);
    CHECK(copier_works());
    CHECK(v.ended && v.whole && v.fetch.failed == FKV_OK);
    CHECK(pattern_ok(v.to, SEED, BYTES));
    free(v.to);
    free(from);
    rig_close();
}

TEST(memory_that_the_peer_has_not_registered_is_refused) {
    rig_open();
    peer *r = peer_open(0, &over_shm, false);
    value v = { .to = calloc(1, BYTES) };
    fkv_rendezvous from = { fab_mr_rkey(r->mr) ^ 1, fab_mr_addr(r->mr), fab_mr_addr(r->mr), r->region.bytes };
    CHECK_EQ(fetch_begin(&v.fetch, rig.pool, &r->source[0], &from, v.to, BYTES, &USE), FKV_OK);
    UNTIL(r, v.ended, true, true);
    CHECK(!v.whole);
    end_failed(&v, FKV_REMOTE_ACCESS);
    begin(&v, r, 0, BYTES); /* the connection is as it was */
    comes_whole(&v, r, BYTES);
    rig_close();
}

/* ---- who waits for whom ---- */

static uint32_t reads_of(const value *v) {
    uint32_t n = 0;
    for (int i = 0; i < SOURCES; i++) n += v[i].fetch.reads;
    return n;
}
TEST(peers_that_do_not_answer_leave_room_for_others) {
    rig_open();
    peer *silent = peer_open(0, &over_tcp, true), *other = peer_open(1, &over_tcp, true);
    value v[SOURCES], w;
    for (int i = 0; i < SOURCES; i++) begin(&v[i], silent, i, BYTES);
    UNTIL(silent, reads_of(v) == PIECES - SPARE, false, true);
    for (int i = 0; i < SOURCES; i++) CHECK(v[i].fetch.reads);
    begin(&w, other, 0, BYTES);
    comes_whole(&w, other, BYTES);
    CHECK_EQ(reads_of(v), PIECES - SPARE);
    for (int i = 0; i < SOURCES; i++) comes_whole(&v[i], silent, BYTES);
    rig_close();
}

TEST(memory_that_a_read_was_left_behind_in_is_not_used_again) {
    rig_open();
    peer *r = peer_open(0, &over_tcp, true);
    value v[SOURCES];
    uint32_t left = PIECES;
    for (int i = 0; i < SOURCES - 1; i++) {
        begin(&v[i], r, i, BYTES);
        UNTIL(r, v[i].fetch.reads, false, true);
        left -= v[i].fetch.reads;
        fetch_abandon(&v[i].fetch, FKV_ABORTED);
        end_failed(&v[i], FKV_ABORTED); /* without an answer */
    }
    value *last = &v[SOURCES - 1];
    begin(last, r, SOURCES - 1, BYTES);
    UNTIL(r, last->fetch.reads, false, true);
    CHECK_EQ(last->fetch.reads, 1);
    CHECK_EQ(left, 1);
    comes_whole(last, r, BYTES);
    begin(&v[0], r, 0, BYTES);
    comes_whole(&v[0], r, BYTES);
    rig_close();
}

TEST(what_fails_ends_when_its_reads_have_ended) {
    rig_open();
    peer *r = peer_open(0, &over_tcp, true);
    value v;
    begin(&v, r, 0, BYTES);
    UNTIL(r, v.fetch.reads == PIECES_OF_SOURCE, false, true);
    fetch_fail(&v.fetch, FKV_TIMEOUT);
    fetch_fail(&v.fetch, FKV_ABORTED); /* it fails already */
    CHECK(!v.ended);
    UNTIL(r, v.ended, true, true);
    CHECK(!v.whole);
    end_failed(&v, FKV_TIMEOUT);
    rig_close();
}

TEST(what_fails_ends_when_the_copier_has_done_with_it) {
    rig_open();
    peer *r = peer_open(0, &over_tcp, true);
    value v;
    for (int abandoned = 0; abandoned < 2; abandoned++) {
        begin(&v, r, 0, CHUNK);
        UNTIL(r, v.fetch.jobs == 1, true, false);
        if (abandoned)
            fetch_abandon(&v.fetch, FKV_TIMEOUT);
        else
            fetch_fail(&v.fetch, FKV_TIMEOUT);
        CHECK(!v.ended); /* the copier may be writing */
        CHECK(copier_works());
        CHECK(!v.whole);
        end_failed(&v, FKV_TIMEOUT);
    }
    rig_close();
}

TEST(a_connection_that_goes_takes_its_reads_along) {
    rig_open();
    peer *r = peer_open(0, &over_tcp, true);
    value v, w;
    begin(&v, r, 0, BYTES);
    begin(&w, r, 0, BYTES);
    UNTIL(r, v.fetch.reads + w.fetch.reads == PIECES_OF_SOURCE, false, true);
    hang_up(r, 0);
    end_failed(&v, FKV_DISCONNECTED);
    end_failed(&w, FKV_DISCONNECTED);
    begin(&v, r, 1, BYTES); /* its memory is free */
    UNTIL(r, v.fetch.reads == PIECES_OF_SOURCE, false, true);
    comes_whole(&v, r, BYTES);
    rig_close();
}

TEST(a_connection_that_goes_leaves_the_copier_its_work) {
    rig_open();
    peer *r = peer_open(0, &over_tcp, true);
    value v;
    begin(&v, r, 0, BYTES);
    UNTIL(r, v.fetch.jobs == PIECES_OF_SOURCE, true, false);
    hang_up(r, 0);
    CHECK(!v.ended);
    memset(&r->source[0], 0xff, sizeof r->source[0]); /* nobody looks at it any more */
    CHECK(copier_works());
    end_failed(&v, FKV_DISCONNECTED);
    r->source[0] = (fetch_source){ 0 };
    fetch_source_init(&r->source[0], NULL, 0, true);
    rig_close();
}

TEST(a_read_that_fails_ends_what_it_was_for) {
    rig_open();
    peer *r = peer_open(0, &over_tcp, true);
    fab_mr *mr;
    value v, w;
    CHECK_EQ(fab_reg(r->p.owner.domain, &r->region, 0, &mr), 0);
    CHECK_EQ(begin_of(&v, r, 0, mr, BYTES), FKV_OK);
    UNTIL(r, v.fetch.reads == PIECES_OF_SOURCE, false, true);
    fab_dereg(mr);
    UNTIL(r, v.ended, true, true);
    CHECK(!v.whole && v.fetch.failed != FKV_OK);
    end_failed(&v, v.fetch.failed);
    begin(&w, r, 1, BYTES); /* its memory is free */
    comes_whole(&w, r, BYTES);
    rig_close();
}

TEST(a_read_that_cannot_be_posted_ends_what_it_was_for) {
    rig_open();
    peer *r = peer_open(0, &over_tcp, true);
    value v;
    fab_disconnect(r->theirs[0]);
    r->theirs[0] = NULL;
    for (bool gone = false; !gone;) {
        fab_wc wc;
        gone = fab_poll(r->p.client.cq, &wc, 1) == 1 && wc.opcode == FAB_WC_DISCONNECT;
    }
    fkv_rendezvous from = { fab_mr_rkey(r->mr), fab_mr_addr(r->mr), fab_mr_addr(r->mr), r->region.bytes };
    v = (value){ .to = calloc(1, BYTES) };
    fkv_status s = fetch_begin(&v.fetch, rig.pool, &r->source[0], &from, v.to, BYTES, &USE);
    if (s == FKV_OK) {
        UNTIL(r, v.ended, true, true);
        CHECK_EQ(v.fetch.failed, FKV_DISCONNECTED);
    } else {
        CHECK_EQ(s, FKV_DISCONNECTED);
    }
    free(v.to);
    rig_close();
}

TEST(the_copier_is_told_when_a_mapping_is_to_go) {
    rig_open();
    peer *r = peer_open(0, &over_shm, true);
    value v;
    begin(&v, r, 0, BYTES);
    UNTIL(r, r->source[0].copying == 1, true, false);
    fetch_source_hurry(&r->source[0]);
    CHECK(!v.ended); /* it reads the mapping */
    CHECK(copier_works());
    CHECK_EQ(r->source[0].copying, 0);
    end_failed(&v, FKV_DISCONNECTED);
    rig_close();
}

TEST(a_region_makes_room_only_when_no_read_is_of_it) {
    rig_open();
    peer *r = peer_open(0, &over_tcp, true);
    fab_mr *mr[FETCH_REGIONS + 1];
    value v[FETCH_REGIONS + 1];
    for (int i = 0; i <= FETCH_REGIONS; i++) CHECK_EQ(fab_reg(r->p.owner.domain, &r->region, 0, &mr[i]), 0);
    CHECK_EQ(begin_of(&v[0], r, 0, mr[0], BYTES), FKV_OK);
    UNTIL(r, v[0].fetch.reads == PIECES_OF_SOURCE, false, true);
    fetch_abandon(&v[0].fetch, FKV_ABORTED);
    end_failed(&v[0], FKV_ABORTED);
    for (int i = 1; i < FETCH_REGIONS; i++) CHECK_EQ(begin_of(&v[i], r, 0, mr[i], BYTES), FKV_OK);
    CHECK_EQ(begin_of(&v[FETCH_REGIONS], r, 0, mr[FETCH_REGIONS], BYTES), FKV_BUSY);
    for (int i = 1; i < FETCH_REGIONS; i++) comes_whole(&v[i], r, BYTES);
    CHECK_EQ(begin_of(&v[FETCH_REGIONS], r, 0, mr[FETCH_REGIONS], BYTES), FKV_OK);
    comes_whole(&v[FETCH_REGIONS], r, BYTES);
    for (int i = 0; i <= FETCH_REGIONS; i++) fab_dereg(mr[i]);
    rig_close();
}

/* What was attached first gives way, so that a wrong name is no end of it. */
TEST(a_region_of_one_rkey_has_one_place) {
    rig_open();
    peer *r = peer_open(0, &over_shm, false);
    value v;
    begin(&v, r, 0, CHUNK);
    comes_whole(&v, r, CHUNK);
    fkv_rendezvous less = { fab_mr_rkey(r->mr), fab_mr_addr(r->mr), fab_mr_addr(r->mr), CHUNK };
    v = (value){ .to = calloc(1, CHUNK) };
    fkv_status s;
    UNTIL(r, (s = fetch_begin(&v.fetch, rig.pool, &r->source[0], &less, v.to, CHUNK, &USE)) != FKV_BUSY, true, true);
    if (s == FKV_OK) UNTIL(r, v.ended, true, true);
    free(v.to);
    UNTIL(r, begin_of(&v, r, 0, r->mr, CHUNK) != FKV_BUSY, true, true);
    comes_whole(&v, r, CHUNK);
    rig_close();
}

int main(int argc, char **argv) {
    raw_directory_make();
    RUN(values_come_over_tcp);
    RUN(values_come_over_shm_in_pieces);
    RUN(values_come_over_shm_through_a_mapping);
    RUN(a_value_of_this_process_is_copied);
    RUN(memory_that_the_peer_has_not_registered_is_refused);
    RUN(peers_that_do_not_answer_leave_room_for_others);
    RUN(memory_that_a_read_was_left_behind_in_is_not_used_again);
    RUN(what_fails_ends_when_its_reads_have_ended);
    RUN(what_fails_ends_when_the_copier_has_done_with_it);
    RUN(a_connection_that_goes_takes_its_reads_along);
    RUN(a_connection_that_goes_leaves_the_copier_its_work);
    RUN(a_read_that_fails_ends_what_it_was_for);
    RUN(a_read_that_cannot_be_posted_ends_what_it_was_for);
    RUN(a_region_of_one_rkey_has_one_place);
    RUN(the_copier_is_told_when_a_mapping_is_to_go);
    RUN(a_region_makes_room_only_when_no_read_is_of_it);
    raw_directory_remove();
    return check_end(argc, argv);
}
