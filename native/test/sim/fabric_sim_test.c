/* The sim provider: the conformance suite, driven step by step; then each fault is seen, and not seen when it is off;
 * and the same seed gives the same run. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../../base/clock.h"
#include "sim.h"
#include "../check.h"
#include "../fabric/fabric_conformance.h"

static sim_world *world;
static void step(void) { sim_step(world); }
static const char *address(void) {
    static char text[32];
    static int count;
    snprintf(text, sizeof text, "sim:%d", count++);
    return text;
}
static const fabric_under_test sim = { .provider = FAB_SIM, .address = address, .idle = step };

/* ---- an owner with a region of words, and a client of it ---- */

enum { WORDS = 512, LOCALS = 64 };
static pair p;
static fkv_region region;
static fab_mr *mr, *local_mr;
static uint64_t *words, local[LOCALS][WORDS];

static void open_world(uint64_t seed, const sim_faults *f, const fab_options *o) {
    world = sim_world_create(seed);
    pair_open(&p, &sim, o, 0);
    CHECK_EQ(fkv_region_alloc("sim", WORDS * 8, 0, &region), 0);
    words = (uint64_t *)(void *)region.base;
    memset(words, 0, WORDS * 8);
    CHECK_EQ(fab_reg(p.owner.domain, &region, 0, &mr), 0);
    CHECK_EQ(fab_reg_local(p.client.domain, local, sizeof local, &local_mr), 0);
    if (f) sim_set_faults(world, f);
}

static void close_world(void) {
    if (p.client_conn) fab_disconnect(p.client_conn);
    if (p.owner_conn) fab_disconnect(p.owner_conn);
    p.client_conn = p.owner_conn = NULL;
    fab_dereg(local_mr);
    if (mr) fab_dereg(mr);
    fkv_region_free(&region);
    pair_close(&p);
    sim_world_destroy(world);
}

static void post(uint64_t id, uint32_t first, uint32_t count) {
    fab_read r = { .wr_id = id,
                   .local = local[id % LOCALS],
                   .local_mr = local_mr,
                   .remote_addr = fab_mr_addr(mr) + first * 8,
                   .rkey = fab_mr_rkey(mr),
                   .bytes = count * 8 };
    CHECK_EQ(fab_post_reads(p.client_conn, &r, 1), 1);
}

static void expect_read(uint64_t id, fab_wc_status status) {
    CHECK_EQ(pair_expect(&p, &p.client, FAB_WC_READ, status).wr_id, id);
}

static void expect_end_of_both(void) {
    CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
    CHECK_EQ(pair_next(&p, &p.owner).opcode, FAB_WC_DISCONNECT);
}

/* ---- the same seed ---- */

static void work(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        for (uint64_t j = 0; j < 4; j++) post(i * 4 + j, (uint32_t)(i * 7 + j) % 64, 40);
        CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ &i, sizeof i }, 1), 0);
        for (int got = 0; got < 4;) {
            pair_turn(&p);
            words[sim_dice(world) % 64]++;
            for (; end_has(&p.client); got++) CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_READ);
            while (end_has(&p.owner)) {
                fab_wc w = pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
                fab_release(w.conn, w.data);
            }
        }
    }
}

static const sim_faults rough = {
    .delay_min_ns = 500, .delay_max_ns = 90000, .reorder = 300000, .tear = 500000, .tear_span_ns = 20000
};

static uint64_t hash_of_run(uint64_t seed) {
    open_world(seed, &rough, NULL);
    work(100);
    uint64_t hash = sim_trace_hash(world);
    sim_counts n = sim_count(world);
    CHECK(n.reads == 400 && n.messages == 100 && n.torn > 0 && n.reordered > 0);
    close_world();
    return hash;
}

TEST(the_same_seed_gives_the_same_run) {
    uint64_t seed = check_seed();
    uint64_t first = hash_of_run(seed);
    CHECK(hash_of_run(seed) == first);
    CHECK(hash_of_run(seed + 1) != first);
}

static char trace[2][1 << 18];
static size_t traced;
static void keep_line(void *ctx, const char *text) {
    traced += (size_t)snprintf((char *)ctx + traced, sizeof trace[0] - traced, "%s\n", text);
    CHECK(traced < sizeof trace[0]);
}

TEST(the_trace_is_text_without_addresses_of_this_process) {
    for (int run = 0; run < 2; run++) {
        open_world(check_seed(), &rough, NULL);
        traced = 0;
        sim_set_trace(world, keep_line, trace[run]);
        work(20);
        close_world();
    }
    CHECK(strcmp(trace[0], trace[1]) == 0 && strstr(trace[0], "line at 64"));
}

/* ---- memory ---- */

static void write_all(uint64_t value) {
    for (int i = 0; i < WORDS; i++) words[i] = value;
}

/* READs all words again and again while the owner rewrites them between steps; counts READs that saw two versions. */
static int torn_reads(const sim_faults *f, bool *inside_a_line) {
    int torn = 0;
    open_world(check_seed(), f, NULL);
    *inside_a_line = false;
    for (uint64_t i = 0; i < 200; i++) {
        post(i, 0, WORDS);
        fab_flush(p.client.cq);
        while (!end_has(&p.client)) {
            write_all(sim_now(world));
            pair_turn(&p);
        }
        expect_read(i, FAB_SUCCESS);
        const uint64_t *got = local[i % LOCALS];
        bool two = false;
        for (int w = 1; w < WORDS; w++) {
            two |= got[w] != got[w - 1];
            *inside_a_line |= got[w] != got[w - 1] && w % 8 != 0;
        }
        torn += two;
    }
    close_world();
    return torn;
}

TEST(a_torn_read_mixes_versions_line_by_line_and_others_never_do) {
    bool inside;
    CHECK_EQ(torn_reads(&(sim_faults){ .delay_min_ns = 1000, .delay_max_ns = 3000 }, &inside), 0);
    CHECK(torn_reads(
              &(sim_faults){ .delay_min_ns = 1000, .delay_max_ns = 3000, .tear = SIM_ALWAYS, .tear_span_ns = 5000 },
              &inside) > 150);
    CHECK(!inside);
}

static void owner_step(void *ctx) { *(uint64_t *)ctx = 1; }

TEST(an_owner_s_step_may_be_an_event_between_two_lines) {
    int mixed = 0;
    for (int i = 0; i < 50; i++) {
        open_world(check_seed() + (uint64_t)i, &(sim_faults){ .tear = SIM_ALWAYS, .tear_span_ns = 10000 }, NULL);
        post(0, 0, 16);
        fab_flush(p.client.cq);
        sim_after(world, 5000, owner_step, &words[0]);
        sim_after(world, 5000, owner_step, &words[8]);
        expect_read(0, FAB_SUCCESS);
        mixed += local[0][0] != local[0][8];
        close_world();
    }
    CHECK(mixed > 5 && mixed < 45);
}

/* Two READs of one word in a batch, the owner counting it up at every step: how often did the second see the older
 * value? */
static int swapped_reads(const sim_faults *f) {
    int swapped = 0;
    open_world(check_seed(), f, NULL);
    for (uint64_t i = 0; i < 300; i += 2) {
        post(i, 0, 1);
        post(i + 1, 0, 1);
        fab_flush(p.client.cq);
        for (uint64_t got = 0; got < 2;) {
            words[0]++;
            pair_turn(&p);
            for (; end_has(&p.client); got++) expect_read(i + got, FAB_SUCCESS); /* completions keep their order */
        }
        swapped += local[i % LOCALS][0] > local[(i + 1) % LOCALS][0];
    }
    close_world();
    return swapped;
}

TEST(reordered_reads_reach_memory_in_any_order_and_complete_in_theirs) {
    CHECK_EQ(swapped_reads(&(sim_faults){ .delay_min_ns = 100, .delay_max_ns = 100000 }), 0);
    CHECK(swapped_reads(&(sim_faults){ .delay_min_ns = 100, .delay_max_ns = 100000, .reorder = SIM_ALWAYS }) > 30);
}

TEST(a_read_that_overtakes_completes_first) {
    for (int on = 0; on < 2; on++) {
        int overtaken = 0;
        open_world(check_seed(),
                   &(sim_faults){ .delay_min_ns = 100, .delay_max_ns = 100000, .overtake = on ? 500000 : 0 }, NULL);
        for (uint64_t i = 0; i < 100; i++) {
            for (uint64_t j = 0; j < 4; j++) post(j, (uint32_t)j, 1);
            for (uint64_t j = 0; j < 4; j++)
                overtaken += pair_expect(&p, &p.client, FAB_WC_READ, FAB_SUCCESS).wr_id != j;
        }
        CHECK(on ? overtaken > 20 : overtaken == 0);
        CHECK(on ? sim_count(world).overtaken > 0 : sim_count(world).overtaken == 0);
        close_world();
    }
}

/* ---- failures ---- */

TEST(a_dropped_read_ends_after_the_time_limit_and_the_connection_with_it) {
    open_world(check_seed(), &(sim_faults){ .drop = SIM_ALWAYS }, &(fab_options){ .op_timeout_ms = 700 });
    uint64_t before = sim_now(world);
    for (uint64_t i = 0; i < 3; i++) post(i, 0, 1);
    expect_read(0, FAB_RETRY_EXC_ERR);
    CHECK(sim_now(world) - before == 700000000u);
    expect_read(1, FAB_WR_FLUSH_ERR);
    expect_read(2, FAB_WR_FLUSH_ERR);
    expect_end_of_both();
    CHECK_EQ(sim_count(world).dropped, 3);
    close_world();
}

TEST(a_failed_completion_may_come_twice) {
    open_world(check_seed(), &(sim_faults){ .access_error = SIM_ALWAYS, .duplicate_error = SIM_ALWAYS }, NULL);
    post(0, 0, 1);
    post(1, 0, 1);
    expect_read(0, FAB_REM_ACCESS_ERR);
    expect_read(0, FAB_REM_ACCESS_ERR);
    expect_read(1, FAB_WR_FLUSH_ERR);
    expect_read(1, FAB_WR_FLUSH_ERR);
    expect_end_of_both();
    CHECK_EQ(sim_count(world).duplicated, 2);
    close_world();
}

TEST(errors_out_of_nowhere_end_a_connection) {
    static const struct {
        sim_faults f;
        fab_wc_status status;
    } cases[] = {
        { { .access_error = SIM_ALWAYS }, FAB_REM_ACCESS_ERR },
        { { .flush_error = SIM_ALWAYS }, FAB_WR_FLUSH_ERR },
        { { .break_conn = SIM_ALWAYS }, FAB_RETRY_EXC_ERR },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_world(check_seed(), &cases[i].f, NULL);
        post(7, 0, 1);
        post(8, 0, 1);
        expect_read(7, cases[i].status);
        expect_read(8, FAB_WR_FLUSH_ERR);
        expect_end_of_both();
        sim_counts n = sim_count(world);
        CHECK(n.access_errors + n.flush_errors + n.broken >= 1);
        close_world();
    }
    open_world(check_seed(), &(sim_faults){ .break_conn = SIM_ALWAYS }, NULL);
    CHECK_EQ(fab_send(p.owner_conn, &(struct iovec){ "never arrives", 13 }, 1), 0);
    expect_end_of_both();
    close_world();
}

TEST(faults_of_one_connection_leave_another_alone) {
    open_world(check_seed(), NULL, NULL);
    fab_conn *bad, *bad_owner;
    pair_connect(&p, 0, &bad, &bad_owner);
    sim_set_conn_faults(bad, &(sim_faults){ .access_error = SIM_ALWAYS });
    for (uint64_t i = 0; i < 50; i++) {
        post(i, 0, 1);
        expect_read(i, FAB_SUCCESS);
    }
    fab_read r = { .wr_id = 99,
                   .local = local,
                   .local_mr = local_mr,
                   .remote_addr = fab_mr_addr(mr),
                   .rkey = fab_mr_rkey(mr),
                   .bytes = 8 };
    sim_set_conn_faults(bad, NULL);
    CHECK_EQ(fab_post_reads(bad, &r, 1), 1);
    expect_read(99, FAB_SUCCESS);
    sim_set_conn_faults(bad, &(sim_faults){ .access_error = SIM_ALWAYS });
    CHECK_EQ(fab_post_reads(bad, &r, 1), 1);
    expect_read(99, FAB_REM_ACCESS_ERR);
    expect_end_of_both();
    fab_disconnect(bad);
    fab_disconnect(bad_owner);
    close_world();
}

TEST(a_connection_is_broken_on_demand) {
    open_world(check_seed(), NULL, NULL);
    post(1, 0, 1);
    post(2, 0, 1);
    fab_flush(p.client.cq);
    sim_break(p.client_conn, FAB_FATAL_ERR);
    expect_read(1, FAB_FATAL_ERR);
    expect_read(2, FAB_WR_FLUSH_ERR);
    CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ "x", 1 }, 1), -ENOTCONN);
    expect_end_of_both();
    close_world();
}

/* ---- hosts ---- */

TEST(the_memory_of_a_paused_owner_is_still_read) {
    open_world(check_seed(), NULL, NULL);
    sim_pause(p.owner.cq, true);
    CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ "hello?", 6 }, 1), 0);
    for (uint64_t i = 0; i < 20; i++) {
        words[0] = i;
        post(i, 0, 1);
        expect_read(i, FAB_SUCCESS);
        CHECK_EQ(local[i][0], i);
    }
    pair_settle(&p);
    CHECK(!end_has(&p.owner));
    sim_pause(p.owner.cq, false);
    CHECK_EQ(pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS).bytes, 6);
    close_world();
}

TEST(a_short_cut_delays_and_loses_nothing) {
    open_world(check_seed(), NULL, NULL);
    sim_cut_off(p.owner.domain, true);
    for (uint64_t i = 0; i < 10; i++) CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ &i, sizeof i }, 1), 0);
    post(3, 0, 1);
    fab_flush(p.client.cq);
    sim_run_until(world, sim_now(world) + 500000000u);
    CHECK(fab_poll(p.owner.cq, &(fab_wc){ 0 }, 1) == 0 && fab_poll(p.client.cq, &(fab_wc){ 0 }, 1) == 0);
    sim_cut_off(p.owner.domain, false);
    for (uint64_t i = 0; i < 10; i++) {
        fab_wc w = pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
        CHECK(memcmp(w.data, &i, sizeof i) == 0);
    }
    expect_read(3, FAB_SUCCESS);
    close_world();
}

TEST(a_long_cut_breaks_both_ends) {
    open_world(check_seed(), NULL, &(fab_options){ .op_timeout_ms = 300 });
    uint64_t before = sim_now(world);
    sim_cut_off(p.client.domain, true);
    post(3, 0, 1);
    expect_read(3, FAB_RETRY_EXC_ERR);
    CHECK(sim_now(world) - before == 300000000u);
    expect_end_of_both();
    sim_cut_off(p.client.domain, false);
    pair_settle(&p);
    CHECK(!end_has(&p.owner) && !end_has(&p.client));
    close_world();
}

TEST(a_region_registered_anew_has_a_key_of_its_own) {
    open_world(check_seed(), NULL, NULL);
    uint64_t rkey = fab_mr_rkey(mr), addr = fab_mr_addr(mr);
    fab_dereg(mr);
    CHECK_EQ(fab_reg(p.owner.domain, &region, 0, &mr), 0);
    CHECK(fab_mr_rkey(mr) != rkey && fab_mr_addr(mr) != addr);
    close_world();
}

/* The hazard itself: after a restart an old rkey opens new memory, without any error. */
TEST(a_region_registered_after_a_restart_may_get_the_old_key) {
    open_world(check_seed(), NULL, NULL);
    uint64_t rkey = fab_mr_rkey(mr), addr = fab_mr_addr(mr);
    words[0] = 1;
    fab_dereg(mr);
    sim_reuse_keys(world, true);
    fkv_region other;
    CHECK_EQ(fkv_region_alloc("other", WORDS * 8, 0, &other), 0);
    *(uint64_t *)(void *)other.base = 2;
    CHECK_EQ(fab_reg(p.owner.domain, &other, 0, &mr), 0);
    CHECK(fab_mr_rkey(mr) == rkey && fab_mr_addr(mr) == addr && sim_count(world).keys_reused == 1);
    post(0, 0, 1);
    expect_read(0, FAB_SUCCESS);
    CHECK_EQ(local[0][0], 2);
    fab_dereg(mr);
    mr = NULL;
    fkv_region_free(&other);
    close_world();
}

/* ---- time ---- */

TEST(the_clock_of_the_process_may_be_the_world_s) {
    open_world(check_seed(), &(sim_faults){ .delay_min_ns = 5000000, .delay_max_ns = 5000000 }, NULL);
    sim_drive_clock(world);
    uint64_t begin = fkv_now_ns();
    CHECK(begin == sim_now(world));
    CHECK(fkv_now_ns() == begin);
    post(0, 0, 1);
    fab_flush(p.client.cq);
    while (fab_poll(p.client.cq, &(fab_wc){ 0 }, 1) == 0) sim_step(world);
    CHECK(fkv_now_ns() == begin + 10000000u);
    sim_run_until(world, begin + 60000000000u);
    CHECK(fkv_now_ns() == begin + 60000000000u);
    close_world();
    CHECK(fkv_now_ns() != begin + 60000000000u);
}

TEST(with_auto_step_a_plain_loop_of_polls_makes_progress) {
    open_world(check_seed(), NULL, NULL);
    sim_set_auto_step(world, true);
    post(0, 0, 1);
    fab_flush(p.client.cq);
    fab_wc w;
    CHECK_EQ(fab_arm(p.client.cq), 1);
    while (fab_poll(p.client.cq, &w, 1) == 0) continue;
    CHECK(w.opcode == FAB_WC_READ && w.status == FAB_SUCCESS);
    sim_set_auto_step(world, false);
    CHECK_EQ(fab_arm(p.client.cq), 0);
    close_world();
}

int main(int argc, char **argv) {
    world = sim_world_create(check_seed());
    fabric_conformance(&sim);
    sim_world_destroy(world);
    RUN(the_same_seed_gives_the_same_run);
    RUN(the_trace_is_text_without_addresses_of_this_process);
    RUN(a_torn_read_mixes_versions_line_by_line_and_others_never_do);
    RUN(an_owner_s_step_may_be_an_event_between_two_lines);
    RUN(reordered_reads_reach_memory_in_any_order_and_complete_in_theirs);
    RUN(a_read_that_overtakes_completes_first);
    RUN(a_dropped_read_ends_after_the_time_limit_and_the_connection_with_it);
    RUN(a_failed_completion_may_come_twice);
    RUN(errors_out_of_nowhere_end_a_connection);
    RUN(faults_of_one_connection_leave_another_alone);
    RUN(a_connection_is_broken_on_demand);
    RUN(the_memory_of_a_paused_owner_is_still_read);
    RUN(a_short_cut_delays_and_loses_nothing);
    RUN(a_long_cut_breaks_both_ends);
    RUN(a_region_registered_anew_has_a_key_of_its_own);
    RUN(a_region_registered_after_a_restart_may_get_the_old_key);
    RUN(the_clock_of_the_process_may_be_the_world_s);
    RUN(with_auto_step_a_plain_loop_of_polls_makes_progress);
    return check_end(argc, argv);
}
