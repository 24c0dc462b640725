/* sim.h: the world of the sim provider, for tests: virtual time, and every fault that a fabric can have, from one seed.
 *
 *     sim_world *w = sim_world_create(check_seed());
 *     fab_open(&(fab_options){.provider = FAB_SIM}, &owner);    fab_open(... , &client);     one domain for each
 *                                                                                            process
 *     fab_listen(cq, "sim:owner", &l);   fab_connect(other, "sim:owner", ...);
 *     while (!done) { poll both CQs, flush both; sim_step(w); }
 *
 * Nothing happens but in sim_step(): it takes the next event (a READ reaches the owner's memory, a message arrives,
 * ...), moves the time to it and carries it out. Between two steps the test may do anything at either end; so it
 * decides what an owner does between two cache lines of one READ. Posted work leaves with fab_flush(), as everywhere.
 *
 * The same seed and the same calls give the same events: sim_trace_hash() is equal, and the trace can be printed line
 * by line. One lock makes a world usable from several threads (a data plane's own, say); the order of events then is no
 * longer the seed's alone.
 */
#ifndef FARKV_FABRIC_SIM_H
#define FARKV_FABRIC_SIM_H
#include "../../fabric/fabric.h"

#define FAB_SIM FAB_BROUGHT

typedef struct sim_world sim_world;

/* One world at a time: domains that are opened are of it. */
sim_world *sim_world_create(uint64_t seed);
/* All domains are closed before. */
void sim_world_destroy(sim_world *w);

/* ---- time ---- */
/* The next event. False: there is none. */
bool sim_step(sim_world *w);
/* All events until then; the time is `until_ns` afterwards. */
void sim_run_until(sim_world *w, uint64_t until_ns);
uint64_t sim_now(sim_world *w); /* nanoseconds; a new world is at 1 s */
/* Calls f(ctx) as an event of the world: what an owner does between two lines of a READ, say. It may call the fabric.
 * */
void sim_after(sim_world *w, uint64_t delay_ns, void (*f)(void *ctx), void *ctx);
/* A fab_poll that finds nothing makes a step, and fab_arm says "poll again" while events are pending: for code that
 * loops by itself. */
void sim_set_auto_step(sim_world *w, bool on);
/* fkv_now_ns() of the whole process is the world's time, until the world is destroyed. */
void sim_drive_clock(sim_world *w);

/* The world's own dice, for a test whose choices are to be part of the run. */
uint64_t sim_dice(sim_world *w);

/* ---- faults ----
 * Chances are in parts per million. */
enum { SIM_ALWAYS = 1000000 };
typedef struct sim_faults {
    uint64_t delay_min_ns, delay_max_ns; /* of everything, one way */
    /* a READ reaches the owner's memory before or after its neighbours; completions keep their order */
    uint32_t reorder;
    /* a READ also completes before READs posted earlier. No provider does that on one connection (provider.h); for code
     * that is to bear more than it must */
    uint32_t overtake;
    /* the cache lines of a READ are copied in random order, at times spread over tear_span_ns */
    uint32_t tear;
    uint64_t tear_span_ns;
    uint32_t drop; /* a READ gets no answer: FAB_RETRY_EXC_ERR after op_timeout */
    /* a failed completion is given twice. Hardware has done so; upper layers must bear it: the wr_id of the second one
     * is no longer in use */
    uint32_t duplicate_error;
    uint32_t access_error; /* a READ that is in order is refused: FAB_REM_ACCESS_ERR */
    /* the queue pair goes into error by itself: a READ ends with FAB_WR_FLUSH_ERR, all others too */
    uint32_t flush_error;
    /* the connection breaks when a READ or message is sent: the oldest READ has FAB_RETRY_EXC_ERR */
    uint32_t break_conn;
} sim_faults;

/* A world begins with delays of 1 to 3 us and no fault. */
void sim_set_faults(sim_world *w, const sim_faults *f);
/* Of what this end posts and sends, instead of the world's; NULL: the world's again. */
void sim_set_conn_faults(fab_conn *c, const sim_faults *f);

/* ---- deeds ---- */
/* Breaks the connection at both ends: the oldest READ of each has `status`, the others are flushed. */
void sim_break(fab_conn *c, fab_wc_status status);
/* A paused CQ polls nothing: its thread hangs. READs of its process's memory go on, as they do on hardware. */
void sim_pause(fab_cq *cq, bool paused);
/* Nothing of the domain reaches others, nor the other way round; it is sent again every millisecond. Connections that
 * are cut for op_timeout break. */
void sim_cut_off(fab_domain *d, bool cut);
/* The same between two domains only. At most SIM_PAIRS of them are cut at once. */
enum { SIM_PAIRS = 16 };
void sim_cut_between(fab_domain *a, fab_domain *b, bool cut);
/* All connections of the domain break at both ends: its process is gone. */
void sim_break_all(fab_domain *d);
/* Its device is lost: it is cut off, its connections break, and no more memory is registered with it. */
void sim_lose_device(fab_domain *d);
/* From now on fab_reg gives the rkey and address of the region deregistered last, where there is one: as a restarted
 * owner may get them. */
void sim_reuse_keys(sim_world *w, bool on);

/* ---- what happened ---- */
typedef struct sim_counts {
    uint64_t reads, messages, reordered, overtaken, torn, torn_lines, dropped, duplicated, access_errors, flush_errors,
        broken, keys_reused;
} sim_counts;
sim_counts sim_count(sim_world *w);
uint64_t sim_trace_hash(sim_world *w);
/* Each event as a line of text, without addresses of this process. */
void sim_set_trace(sim_world *w, void (*line)(void *ctx, const char *text), void *ctx);
#endif
