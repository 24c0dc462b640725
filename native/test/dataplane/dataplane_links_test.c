/* dataplane_links_test.c: an owner and its backups with links over each provider, each on a thread of its own. */
#include <semaphore.h>
#include "links_rig.h"

/* No memory comes until it is let go. */
static sem_t memory_goes;
static void hold_memory(job *j) {
    (void)j;
    while (sem_wait(&memory_goes) != 0) {}
}
static void do_hold_memory(worker *w, void *ctx) {
    static job held;
    (void)ctx;
    held.run = hold_memory;
    helper_post(&w->d->memory, &held);
}

/* ---- */

TEST(what_was_answered_is_found_at_the_next_owner) {
    enum { N = 600 };
    static uint8_t value[3000];
    static uint64_t id[N];
    up();
    for (uint32_t i = 0; i < N; i++) {
        memset(value, (int)i, sizeof value);
        id[i] = raw_put_begin(&c, key_at(i), value, i % sizeof value);
    }
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(raw_end(&c, id[i]), FKV_OK);
    raw_down(&c);
    server_dies(OWNER);
    server_leads(NEXT, 1 << NEXT, 2);
    leases_end();
    CHECK(server_serves(NEXT));
    raw_up(&c, &servers[NEXT].r, CLIENT);
    for (uint32_t i = 0; i < N; i++) {
        fkv_reply reply;
        uint8_t *found = raw_get(&c, key_at(i), &reply);
        CHECK(found && reply.value_bytes == i % sizeof value);
        for (uint32_t k = 0; k < reply.value_bytes; k++) CHECK_EQ(found[k], (uint8_t)i);
        free(found);
    }
    down();
}

TEST(a_link_that_is_cut_is_made_again_and_nothing_is_lost) {
    enum { ROUNDS = 8, EACH = 40 };
    up();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t id[EACH];
        for (uint32_t k = 0; k < EACH; k++) {
            id[k] = raw_put_begin(&c, key_at(k), &i, sizeof i);
            if (k == i * EACH / ROUNDS) visit_server(OWNER, do_cut, &(errand){ 0 });
        }
        for (uint32_t k = 0; k < EACH; k++) CHECK_EQ(raw_end(&c, id[k]), FKV_OK);
    }
    look(OWNER);
    uint64_t records = ROUNDS * EACH;
    UNTIL(NEXT, seen.prepared == records);
    down();
}

static void on_two_devices(int s, rig *r) {
    (void)s;
    r->config.listens = 2;
    for (uint32_t i = 0; i < 2; i++) r->listen[i].device = i;
    for (uint32_t i = 0; i < 2; i++) r->listen[i].worker = 0;
}
static void do_follow_both(worker *w, void *ctx) {
    link_address at[2];
    (void)ctx;
    for (uint32_t i = 0; i < 2; i++) {
        at[i] = (link_address){ .provider = copies_over, .device = i };
        snprintf(at[i].text, sizeof at[i].text, "%s", dataplane_address(servers[OWNER].r.d, i));
    }
    CHECK(owner_link_follow(here(w)->repl.copy, at, 2));
}
static uint32_t linked_over; /* the owner's place; 0: there is no link */
static void do_look_over(worker *w, void *ctx) {
    (void)ctx;
    linked_over = 0;
    for (fkv_list *l = w->clients.next; l != &w->clients; l = l->next) {
        client *x = LIST_OF(l, client, of_worker);
        if (x->link) linked_over = x->place;
    }
}
static void until_linked_over(uint32_t place) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    for (linked_over = 0; linked_over != place; CHECK(fkv_now_ns() < until))
        visit_server(OWNER, do_look_over, &(errand){ 0 });
}

/* An owner_link that knew one address of the owner is not found again by who knows two. */
TEST(a_link_goes_on_over_the_other_device_when_the_first_is_cut_and_comes_back_to_it) {
    copies_configure = on_two_devices;
    up();
    visit_server(NEXT, do_follow_both, &(errand){ 0 });
    until_linked_over(fab_place(copies_over, 0));
    CHECK_EQ(raw_put(&c, "alpha", "one", 3), FKV_OK);
    fab_domain *at[2];
    for (int i = 0; i < 2; i++) at[i] = servers[i == 0 ? OWNER : NEXT].r.d->domain[fab_place(copies_over, 0)];
    sim_cut_between(at[0], at[1], true);
    CHECK_EQ(raw_put(&c, "alpha", "two", 3), FKV_OK);
    until_linked_over(fab_place(copies_over, 1));
    sim_cut_between(at[0], at[1], false);
    visit_server(OWNER, do_cut, &(errand){ 0 });
    until_linked_over(fab_place(copies_over, 0));
    CHECK_EQ(raw_put(&c, "alpha", "three", 5), FKV_OK);
    UNTIL(NEXT, seen.prepared == 3);
    down();
    copies_configure = NULL;
}

/* Beats keep the right of a shard that rests, and tell its backup what is committed. */
TEST(a_shard_that_rests_goes_on_to_be_served_and_its_backup_commits) {
    copies_lease_ms = 1000;
    up();
    CHECK_EQ(raw_put(&c, "alpha", "one", 3), FKV_OK);
    UNTIL(NEXT, seen.committed == 1);
    look(OWNER);
    uint64_t first = seen.right_ns;
    UNTIL(OWNER, seen.right_ns > first + 2000000000u);
    down();
    copies_lease_ms = COPY_LEASE_MS;
}

static sem_t copy_is_refused;
static void says_refused(void *ctx, uint32_t shard, uint64_t id, dataplane_copy_event what) {
    (void)ctx, (void)shard;
    if (id == id_of(NEXT) && what == DATAPLANE_COPY_UNKNOWN) CHECK_EQ(sem_post(&copy_is_refused), 0);
}
TEST(a_copy_follows_as_soon_as_its_owner_is_one) {
    CHECK_EQ(sem_init(&copy_is_refused, 0, 0), 0);
    copies_event = says_refused;
    server_up(OWNER, COPY_MEMORY);
    server_up(NEXT, COPY_MEMORY);
    follow(OWNER, NEXT);
    CHECK_EQ(sem_wait(&copy_is_refused), 0); /* STALE, for now */
    raw_up(&c, &servers[OWNER].r, CLIENT);
    fkv_request q = raw_request(&c, FKV_OP_GET, "alpha");
    CHECK_EQ(raw_ask(&c, &q, "alpha", NULL, 0, NULL), FKV_SHARD_CLOSED);
    server_leads(OWNER, BOTH, 1);
    UNTIL(OWNER, seen.fed);
    server_serves_soon(OWNER);
    UNTIL(OWNER, seen.right_ns > fkv_now_ns());
    CHECK_EQ(raw_put(&c, "alpha", "one", 3), FKV_OK);
    down();
    copies_event = NULL;
}

/* On the copy's thread, each time that it hears that it is not known there. */
static uint64_t asks_again_ms[64]; /* after so long */
static uint32_t refusals;          /* atomic */
static void notes_refusal(void *ctx, uint32_t shard, uint64_t id, dataplane_copy_event what) {
    const worker *w = ((rig *)ctx)->d->worker[0];
    uint32_t i = __atomic_load_n(&refusals, __ATOMIC_RELAXED);
    if (id != id_of(NEXT) || what != DATAPLANE_COPY_UNKNOWN || i == 64) return;
    asks_again_ms[i] = (w->by_number[shard]->repl.copy->follow_ns - w->now_ns) / 1000000u;
    __atomic_store_n(&refusals, i + 1, __ATOMIC_RELEASE);
}
TEST(a_copy_that_is_refused_asks_again_soon_and_later_less_often) {
    refusals = 0;
    copies_event = notes_refusal;
    server_up(OWNER, COPY_MEMORY);
    server_up(NEXT, COPY_MEMORY);
    follow(OWNER, NEXT);
    UNTIL(NEXT, __atomic_load_n(&refusals, __ATOMIC_ACQUIRE) >= 22);
    static const uint32_t soon[] = { 1, 2, 4, 8 };
    for (uint32_t i = 0; i < 22; i++) CHECK_EQ(asks_again_ms[i], i < 4 ? soon[i] : i < 20 ? 10 : 100);
    server_leads(OWNER, BOTH, 1);
    UNTIL(OWNER, seen.fed);
    raw_up(&c, &servers[OWNER].r, CLIENT);
    down();
    copies_event = NULL;
}

TEST(clients_do_not_take_the_places_of_links) {
    copies_clients = 1;
    up();
    for (int i = 0; i < 3; i++) {
        visit_server(OWNER, do_cut, &(errand){ 0 });
        CHECK_EQ(raw_put(&c, "alpha", "one", 3), FKV_OK);
    }
    down();
    copies_clients = 64;
}

/* The backup's table grows only after it had to wait. */
TEST(records_that_wait_for_memory_are_taken_in_order) {
    enum { N = 900 };
    static uint8_t value[12000];
    static uint64_t id[N];
    CHECK_EQ(sem_init(&memory_goes, 0, 0), 0);
    up();
    visit_server(NEXT, do_hold_memory, &(errand){ 0 });
    for (uint32_t i = 0; i < N; i++) {
        memcpy(value, &i, sizeof i);
        id[i] = raw_put_begin(&c, key_at(i % 600), value, sizeof value);
    }
    UNTIL(NEXT, seen.waits);
    CHECK(seen.prepared < N);
    CHECK_EQ(sem_post(&memory_goes), 0);
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(raw_end(&c, id[i]), FKV_OK);
    UNTIL(NEXT, seen.prepared == N);
    down();
}

/* All shards that there are, over one link. */
TEST(shards_share_a_link) {
    enum { N = 400 };
    uint64_t id[N], records[RIG_SHARDS] = { 0 };
    server_up(OWNER, COPY_MEMORY);
    server_up(NEXT, COPY_MEMORY);
    uint32_t first = number;
    for (number = 0; number < RIG_SHARDS; number++) {
        for (int s = OWNER; s <= NEXT && number != first; s++) {
            CHECK_EQ(rig_open_shard(&servers[s].r, number, 0, COPY_MEMORY, NULL), FKV_OK);
            visit_server(s, do_make, &(errand){ .backup = s });
        }
        server_leads(OWNER, BOTH, 1);
        follow(OWNER, NEXT);
        server_serves_soon(OWNER);
        UNTIL(OWNER, seen.right_ns > fkv_now_ns());
    }
    raw_up(&c, &servers[OWNER].r, CLIENT);
    for (uint32_t i = 0; i < N; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", i);
        id[i] = raw_put_begin(&c, key, &i, sizeof i);
        records[raw_shard_of(0, key, strlen(key))]++;
    }
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(raw_end(&c, id[i]), FKV_OK);
    for (number = 0; number < RIG_SHARDS; number++) UNTIL(NEXT, seen.prepared == records[number]);
    number = first;
    down();
}

/* ---- who may ---- */

static void expect_gone(const void *message, uint32_t bytes, uint32_t flags) {
    raw x;
    fkv_pass p = raw_pass(99, flags);
    raw_open(&x, &servers[OWNER].r);
    CHECK_EQ(raw_connect(&x, 0, &p), FKV_OK);
    struct iovec v = { (void *)(uintptr_t)message, bytes };
    CHECK_EQ(fab_send(x.conn, &v, 1), 0);
    fab_flush(x.cq);
    while (!x.gone) raw_turn(&x, &x.gone);
    raw_down(&x);
}
TEST(only_servers_have_links_and_over_a_link_only_its_messages_count) {
    fkv_peer_follow good = { .op = FKV_PEER_FOLLOW, .epoch = 1, .lease_ms = 1, .id = id_of(NEXT) };
    fkv_request q = { .op = FKV_OP_LEASE, .id = 1 };
    up();
    good.shard = number;
    expect_gone(&good, sizeof good, FKV_TICKET_READ | FKV_TICKET_WRITE); /* too short for a request */
    expect_gone(&q, sizeof q, FKV_TICKET_REPLICA);
    expect_gone("?", 1, FKV_TICKET_REPLICA);
    fkv_peer_list list[2] = { { .op = FKV_PEER_ACKS, .count = 1, .asked_ns = UINT64_MAX } };
    fkv_peer_ack ack = { .shard = number, .epoch = 1 };
    uint8_t acks[sizeof list[0] + sizeof ack];
    memcpy(acks, list, sizeof list[0]);
    memcpy(acks + sizeof list[0], &ack, sizeof ack);
    expect_gone(acks, sizeof acks, FKV_TICKET_REPLICA); /* of a time that was never sent */
    fkv_peer_follow_ok owners = { .op = FKV_PEER_FOLLOW_OK, .shard = number, .epoch = 1 };
    expect_gone(&owners, sizeof owners, FKV_TICKET_REPLICA);
    CHECK_EQ(raw_put(&c, "alpha", "one", 3), FKV_OK);
    down();
}

static void tests(void) {
    RUN(what_was_answered_is_found_at_the_next_owner);
    RUN(a_link_that_is_cut_is_made_again_and_nothing_is_lost);
    RUN(a_shard_that_rests_goes_on_to_be_served_and_its_backup_commits);
    RUN(a_copy_follows_as_soon_as_its_owner_is_one);
    RUN(shards_share_a_link);
    RUN(a_copy_that_is_refused_asks_again_soon_and_later_less_often);
    RUN(clients_do_not_take_the_places_of_links);
    RUN(records_that_wait_for_memory_are_taken_in_order);
    RUN(only_servers_have_links_and_over_a_link_only_its_messages_count);
    if (copies_over == FAB_SIM) RUN(a_link_goes_on_over_the_other_device_when_the_first_is_cut_and_comes_back_to_it);
    if (copies_over != FAB_TCP) return;
    if (fab_encryption_missing(FAB_TCP)) {
        printf("left out: encrypted links: %s\n", fab_encryption_missing(FAB_TCP));
        return;
    }
    copies_encrypted = true;
    RUN(what_was_answered_is_found_at_the_next_owner);
    RUN(a_link_that_is_cut_is_made_again_and_nothing_is_lost);
    copies_encrypted = false;
}

int main(int argc, char **argv) { return rig_main(argc, argv, &copies_over, tests); }
