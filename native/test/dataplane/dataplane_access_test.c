/* dataplane_access_test.c: who comes in, and for how long. What was heard on the wire opens nothing, and nobody acts in
 * another client's name. */
#include <dirent.h>
#include "raw_client.h"
#include "../../dataplane/challenge.h"

static fab_provider provider;
static bool encrypted;
static rig r;

static void begin(void) {
    rig_init(&r, provider, NULL);
    r.encrypted = encrypted;
}

static const char *address(uint32_t listener) { return dataplane_address(r.d, listener); }
static uint64_t clients(void) {
    dataplane_stats *s = rig_stats(&r);
    uint64_t n = s->worker[0].clients;
    free(s);
    return n;
}

/* What a connection with this hello is told; it is closed again. */
static fkv_status told(const fkv_hello *h, uint32_t listener, bool *challenged) {
    raw c;
    raw_open(&c, &r);
    fkv_status s = raw_dial(&c, address(listener), h, sizeof *h);
    *challenged = c.challenge.number != 0;
    raw_down(&c);
    return s;
}

TEST(a_hello_that_was_heard_opens_nothing_here_or_elsewhere) {
    raw c;
    fkv_challenge asked;
    bool challenged;
    begin();
    r.config.workers = r.config.listens = 2;
    rig_start(&r);
    fkv_pass p = raw_pass(1, FKV_TICKET_READ | FKV_TICKET_WRITE);
    raw_open(&c, &r);
    CHECK(raw_challenge(&c, address(0), &asked));
    fkv_hello heard = fkv_hello_make(&p, &asked);
    told(&heard, 1, &challenged); /* the other thread has other challenges */
    CHECK_EQ(clients(), 0);
    CHECK_EQ(raw_dial(&c, address(0), &heard, sizeof heard), FKV_OK);
    for (int i = 0; i < 3; i++) {
        told(&heard, 0, &challenged);
        CHECK(challenged);
    }
    raw_hang_up(&c);
    told(&heard, 0, &challenged);
    CHECK(challenged);
    /* Under another challenge it proves nothing. */
    CHECK(raw_challenge(&c, address(0), &asked));
    fkv_hello other = heard;
    other.challenge = asked.number;
    CHECK_EQ(told(&other, 0, &challenged), FKV_UNAUTHORIZED);
    CHECK_EQ(clients(), 0);
    fkv_hello answer = fkv_hello_make(&p, &asked); /* and has used up none */
    CHECK_EQ(raw_dial(&c, address(0), &answer, sizeof answer), FKV_OK);
    raw_down(&c);
    rig_down(&r);
}

/* With a hello that answers a challenge as it should, but for what `change` makes of it. */
static fkv_status refused_hello(void (*change)(fkv_hello *h, const fkv_pass *p, const fkv_challenge *asked),
                                uint32_t bytes) {
    raw other;
    fkv_challenge asked;
    fkv_pass p = raw_pass(9, FKV_TICKET_READ);
    const char *address = dataplane_address(r.d, 0);
    raw_open(&other, &r);
    CHECK(raw_challenge(&other, address, &asked));
    fkv_hello h = fkv_hello_make(&p, &asked);
    change(&h, &p, &asked);
    fkv_status s = raw_dial(&other, address, &h, bytes);
    raw_down(&other);
    return s;
}

static void prove_again(fkv_hello *h, const fkv_pass *p, const fkv_challenge *asked) {
    fkv_prove(&p->key, fkv_hello_head(h), &h->ticket, asked->nonce, h->proof);
}
static void unchanged(fkv_hello *h, const fkv_pass *p, const fkv_challenge *asked) { (void)h, (void)p, (void)asked; }
static void later_version(fkv_hello *h, const fkv_pass *p, const fkv_challenge *asked) {
    h->version_min = h->version_max = FKV_WIRE_VERSION_MAX + 1;
    prove_again(h, p, asked);
}
static void all_versions(fkv_hello *h, const fkv_pass *p, const fkv_challenge *asked) {
    h->version_max = 200;
    prove_again(h, p, asked);
}
static void no_version(fkv_hello *h, const fkv_pass *p, const fkv_challenge *asked) {
    h->version_min = 201;
    (void)p, (void)asked;
}
static void other_magic(fkv_hello *h, const fkv_pass *p, const fkv_challenge *asked) {
    h->magic++;
    prove_again(h, p, asked);
}
static void unproved_versions(fkv_hello *h, const fkv_pass *p, const fkv_challenge *asked) {
    h->version_max = 200;
    (void)p, (void)asked;
}

TEST(a_hello_that_is_none_is_refused_and_told_why) {
    raw c;
    begin();
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&c, &r, 1);
    const uint32_t all = sizeof(fkv_hello);
    CHECK_EQ(refused_hello(unchanged, all), FKV_OK);
    CHECK_EQ(refused_hello(all_versions, all), FKV_OK);
    CHECK_EQ(refused_hello(later_version, all), FKV_VERSION_UNSUPPORTED);
    CHECK_EQ(refused_hello(no_version, all), FKV_BAD_REQUEST);
    CHECK_EQ(refused_hello(other_magic, all), FKV_BAD_REQUEST);
    CHECK_EQ(refused_hello(unproved_versions, all), FKV_UNAUTHORIZED);
    CHECK_EQ(refused_hello(unchanged, all - 1), FKV_BAD_REQUEST);
    CHECK_EQ(refused_hello(unchanged, 0), FKV_BAD_REQUEST);
    CHECK_EQ(raw_put(&c, "k", "v", 1), FKV_OK);
    raw_down(&c);
    rig_down(&r);
}

/* All that travels of another's ticket is known, its key is not. */
TEST(who_knows_a_client_s_id_and_ticket_ends_none_of_its_connections) {
    enum { TRIES = 8 };
    raw victim, thief;
    begin();
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&victim, &r, 7);
    CHECK_EQ(raw_put(&victim, "k", "v", 1), FKV_OK);
    fkv_pass own = raw_pass(8, FKV_TICKET_READ | FKV_TICKET_WRITE), stolen = raw_pass(7, own.ticket.flags);
    stolen.key = own.key;
    for (int i = 0; i < TRIES; i++) {
        raw_open(&thief, &r);
        CHECK_EQ(raw_connect(&thief, 0, &stolen), FKV_UNAUTHORIZED);
        raw_down(&thief);
    }
    CHECK_EQ(raw_put(&victim, "k", "w", 1), FKV_OK);
    CHECK(!victim.gone);
    raw_expect(&victim, "k", "w");
    raw_down(&victim);
    rig_down(&r);
}

/* ---- for how long ---- */

enum { RIGHTS = FKV_TICKET_READ | FKV_TICKET_WRITE };
static const uint64_t HOUR_MS = 3600000;

/* A client whose ticket expires so many hours from now. */
static fkv_pass pass_for(uint64_t client, uint64_t hours) {
    return raw_pass_until(&RIG_SECRET, client, 0, RIGHTS, fkv_wall_ms() + hours * HOUR_MS);
}
static void up_with(raw *c, const fkv_pass *p) {
    raw_open(c, &r);
    CHECK_EQ(raw_connect(c, 0, p), FKV_OK);
}
static void expect_end(raw *c) {
    while (!c->gone) raw_turn(c, &c->gone);
    raw_down(c);
}
static fkv_status renew_with(raw *c, const fkv_pass *p, const uint8_t nonce[FKV_NONCE_BYTES]) {
    fkv_renewal n = { .ticket = p->ticket };
    fkv_request q = { .op = FKV_OP_RENEW, .id = c->next_id++, .value_bytes = sizeof(fkv_renewal) };
    fkv_prove(&p->key, FKV_RENEWAL_HEAD, &n.ticket, nonce, n.proof);
    return raw_ask(c, &q, "", &n, sizeof n, NULL);
}
static fkv_status renew(raw *c, const fkv_pass *p) { return renew_with(c, p, c->answered_nonce); }
/* The owner's thread has begun a turn since. */
static void owner_turn(void) { free(rig_stats(&r)); }
static void skip_hours(int64_t hours) {
    fkv_clock_skip(hours * (int64_t)HOUR_MS * 1000000);
    owner_turn();
}

TEST(a_connection_ends_with_its_ticket_unless_it_was_shown_another) {
    raw ends, stays;
    begin();
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    fkv_pass one = pass_for(1, 1), two = pass_for(2, 1), longer = pass_for(2, 3);
    up_with(&ends, &one);
    up_with(&stays, &two);
    CHECK_EQ(renew(&stays, &longer), FKV_OK);
    CHECK_EQ(renew(&stays, &two), FKV_OK); /* the earlier one again takes nothing away */
    skip_hours(2);
    expect_end(&ends);
    CHECK(!stays.gone);
    CHECK_EQ(raw_put(&stays, "k", "v", 1), FKV_OK);
    raw_open(&ends, &r);
    CHECK_EQ(raw_connect(&ends, 0, &one), FKV_UNAUTHORIZED);
    raw_down(&ends);
    skip_hours(2);
    expect_end(&stays);
    CHECK_EQ(clients(), 0);
    rig_down(&r);
    fkv_clock_restore();
}

/* A thread that sleeps wakes for it, by the real clock. */
TEST(an_idle_connection_ends_in_time) {
    raw c;
    begin();
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    fkv_pass p = raw_pass_until(&RIG_SECRET, 1, 0, RIGHTS, fkv_wall_ms() + 1000);
    up_with(&c, &p);
    expect_end(&c);
    CHECK(fkv_wall_ms() >= p.ticket.expires_ms);
    rig_down(&r);
}

TEST(a_renewal_is_of_the_same_client_is_proved_and_is_for_this_connection) {
    raw c, other;
    begin();
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    fkv_pass own = pass_for(1, 1), longer = pass_for(1, 5), forged = longer, of_other = pass_for(2, 5),
             copier = raw_pass_until(&RIG_SECRET, 1, 0, RIGHTS | FKV_TICKET_COPY, fkv_wall_ms() + 5 * HOUR_MS),
             elsewhere = raw_pass_until(&RIG_SECRET, 1, 1, RIGHTS, fkv_wall_ms() + 5 * HOUR_MS),
             over = raw_pass_until(&RIG_SECRET, 1, 0, RIGHTS, fkv_wall_ms());
    up_with(&c, &own);
    up_with(&other, &own);
    forged.ticket.expires_ms++;
    CHECK_EQ(renew(&c, &forged), FKV_UNAUTHORIZED);
    CHECK_EQ(renew(&c, &of_other), FKV_UNAUTHORIZED);
    CHECK_EQ(renew(&c, &copier), FKV_UNAUTHORIZED);
    CHECK_EQ(renew(&c, &elsewhere), FKV_UNAUTHORIZED);
    CHECK_EQ(renew(&c, &over), FKV_UNAUTHORIZED);
    CHECK_EQ(renew_with(&c, &longer, other.answered_nonce), FKV_UNAUTHORIZED);
    CHECK_EQ(renew(&other, &longer), FKV_OK);
    skip_hours(2);
    expect_end(&c);
    CHECK_EQ(raw_put(&other, "k", "v", 1), FKV_OK);
    raw_down(&other);
    rig_down(&r);
    fkv_clock_restore();
}

/* With QUOTA changes in the owner's hands. */
TEST(a_renewal_does_not_count_against_the_quota_and_needs_no_right) {
    raw c;
    begin();
    r.config.client_quota = 1;
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    fkv_pass p = raw_pass_until(&RIG_SECRET, 1, 0, FKV_TICKET_WRITE, fkv_wall_ms() + HOUR_MS);
    fkv_pass longer = raw_pass_until(&RIG_SECRET, 1, 0, FKV_TICKET_WRITE, fkv_wall_ms() + 2 * HOUR_MS);
    up_with(&c, &p);
    CHECK_EQ(renew(&c, &longer), FKV_OK);
    raw_down(&c);
    rig_down(&r);
}

static const fkv_seed NEXT_SECRET = { 0x1111, 0x2222 }, LAST_SECRET = { 0x3333, 0x4444 };
static fkv_pass pass_of(const fkv_seed *secret, uint8_t number, uint64_t client) {
    fkv_pass p;
    fkv_ticket t = pass_for(client, 1).ticket;
    t.secret = number;
    fkv_pass_make(secret, &t, &p);
    return p;
}

TEST(a_ticket_is_good_under_the_next_secret_and_not_under_the_one_after_it) {
    raw old, renewed, late;
    begin();
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    /* Made in this order: a ticket that expires earlier than the one that it comes after is not taken over. */
    fkv_pass first = pass_for(1, 1), two = pass_for(2, 1), second = pass_of(&NEXT_SECRET, 1, 2);
    up_with(&old, &first);
    up_with(&renewed, &two);
    CHECK_EQ(renew(&renewed, &second), FKV_UNAUTHORIZED); /* not known yet */
    dataplane_access a = { .secrets = 2, .secret = { { 1, NEXT_SECRET }, { 0, RIG_SECRET } } };
    CHECK_EQ(dataplane_set_access(r.d, &a), FKV_OK);
    owner_turn();
    CHECK_EQ(renew(&renewed, &second), FKV_OK);
    up_with(&late, &first);
    raw_down(&late);
    CHECK_EQ(raw_put(&old, "k", "v", 1), FKV_OK);
    a = (dataplane_access){ .secrets = 2, .secret = { { 2, LAST_SECRET }, { 1, NEXT_SECRET } } };
    CHECK_EQ(dataplane_set_access(r.d, &a), FKV_OK);
    expect_end(&old);
    CHECK_EQ(raw_put(&renewed, "k", "w", 1), FKV_OK);
    raw_open(&late, &r);
    CHECK_EQ(raw_connect(&late, 0, &first), FKV_UNAUTHORIZED);
    raw_down(&late);
    raw_down(&renewed);
    a.secrets = 0;
    CHECK_EQ(dataplane_set_access(r.d, &a), FKV_BAD_REQUEST);
    rig_down(&r);
}

/* Tickets live 600 s here: what expires in an hour was made 50 minutes from now. */
TEST(who_is_revoked_goes_and_comes_back_with_a_later_ticket_only) {
    raw revoked, other, again;
    begin();
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    fkv_pass early = pass_for(1, 1), later = pass_for(1, 2), of_other = pass_for(2, 1);
    uint64_t between = fkv_wall_ms() + HOUR_MS;
    up_with(&revoked, &early);
    up_with(&other, &of_other);
    dataplane_revocation list[1] = { { .client = 1, .before_ms = between } };
    dataplane_access a = { .secrets = 1, .secret = { { 0, RIG_SECRET } }, .revocations = 1, .revoked = list };
    CHECK_EQ(dataplane_set_access(r.d, &a), FKV_OK);
    expect_end(&revoked);
    raw_open(&again, &r);
    CHECK_EQ(raw_connect(&again, 0, &early), FKV_UNAUTHORIZED);
    raw_down(&again);
    up_with(&again, &later);
    CHECK_EQ(raw_put(&other, "k", "v", 1), FKV_OK);
    list[0] = (dataplane_revocation){ .tenant = 1, .before_ms = between };
    CHECK_EQ(dataplane_set_access(r.d, &a), FKV_OK);
    owner_turn();
    CHECK_EQ(raw_put(&other, "k", "v", 1), FKV_OK); /* of another tenant */
    list[0].tenant = 0;
    CHECK_EQ(dataplane_set_access(r.d, &a), FKV_OK);
    expect_end(&other);
    CHECK_EQ(raw_put(&again, "k", "v", 1), FKV_OK);
    raw_down(&again);
    rig_down(&r);
}

/* ---- challenges ---- */

static bool same(const uint8_t *a, const uint8_t *b) { return memcmp(a, b, FKV_NONCE_BYTES) == 0; }

/* Of heaps, that this process has open. */
static int memory_files(void) {
    int n = 0;
    DIR *all = opendir("/proc/self/fd");
    for (const struct dirent *e; (e = readdir(all));) {
        char name[64] = "";
        if (readlinkat(dirfd(all), e->d_name, name, sizeof name - 1) > 0)
            n += strncmp(name, "/memfd:farkv-heap", 17) == 0;
    }
    closedir(all);
    return n;
}
static uint64_t heap_bytes(void) {
    dataplane_stats *s = rig_stats(&r);
    uint64_t bytes = s->shard[0].table.heap_bytes;
    free(s);
    return bytes;
}
static void grow(raw *c) {
    static const uint8_t value[1000];
    static int keys;
    char key[32];
    for (uint64_t before = heap_bytes(); heap_bytes() == before;) {
        do snprintf(key, sizeof key, "key %d", keys++);
        while (raw_shard_of(0, key, strlen(key)) != 0);
        fkv_status s = raw_put(c, key, value, sizeof value);
        CHECK(s == FKV_OK || s == FKV_BUSY);
    }
}

/* Whoever has mapped a memory file over shm reads in it as long as it lives. */
TEST(who_lost_its_right_finds_no_later_segment_in_memory_that_it_has_mapped) {
    raw c;
    begin();
    rig_up(&r, 1, 16 << 20);
    raw_up(&c, &r, 1);
    int before = memory_files();
    grow(&c);
    CHECK_EQ(memory_files(), before);
    const dataplane_revocation gone = { .client = 7, .before_ms = fkv_wall_ms() };
    dataplane_access a = { .secrets = 1, .secret = { { 0, RIG_SECRET } }, .revocations = 1, .revoked = &gone };
    CHECK_EQ(dataplane_set_access(r.d, &a), FKV_OK);
    grow(&c);
    CHECK_EQ(memory_files(), before + 1);
    raw_down(&c);
    rig_down(&r);
}

TEST(each_challenge_is_new_is_found_until_it_is_answered_and_not_for_ever) {
    static challenges c, other;
    uint8_t nonce[FKV_NONCE_BYTES];
    challenges_init(&c);
    challenges_init(&other);
    CHECK(!challenge_find(&c, 0, nonce) && !challenge_find(&c, 1, nonce) && !challenge_find(&c, UINT32_MAX, nonce));
    fkv_challenge first = challenge_make(&c), second = challenge_make(&c), elsewhere = challenge_make(&other);
    CHECK(first.number && !same(first.nonce, second.nonce) && !same(first.nonce, elsewhere.nonce));
    CHECK(challenge_find(&c, first.number, nonce) && same(nonce, first.nonce));
    challenge_answered(&c, first.number);
    CHECK(!challenge_find(&c, first.number, nonce));
    CHECK(challenge_find(&c, second.number, nonce) && same(nonce, second.nonce));
    for (int i = 0; i < CHALLENGES - 1; i++) challenge_make(&c);
    CHECK(challenge_find(&c, second.number, nonce));
    challenge_make(&c); /* whose bit is the second's too */
    CHECK(!challenge_find(&c, second.number, nonce) && !challenge_find(&c, first.number, nonce));
}

TEST(numbers_of_challenges_begin_again_and_their_nonces_do_not) {
    static challenges c;
    uint8_t nonce[FKV_NONCE_BYTES];
    challenges_init(&c);
    fkv_challenge first = challenge_make(&c);
    c.next = ((uint64_t)1 << 32) - 1;
    fkv_challenge last = challenge_make(&c), again = challenge_make(&c);
    CHECK_EQ(last.number, UINT32_MAX);
    CHECK_EQ(again.number, first.number); /* 0 is none */
    CHECK(!same(again.nonce, first.nonce));
    CHECK(challenge_find(&c, last.number, nonce) && same(nonce, last.nonce));
    CHECK(challenge_find(&c, again.number, nonce) && same(nonce, again.nonce));
}

/* A ticket that is no good any more, or of a secret that is not, gets no further than the handshake. */
TEST(an_expired_ticket_comes_to_no_challenge) {
    raw c;
    fkv_challenge challenge;
    begin();
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    fkv_pass over = raw_pass_until(&RIG_SECRET, 1, 0, RIGHTS, fkv_wall_ms()), good = pass_for(1, 1), forged = good;
    forged.name[20] ^= 1;
    const fkv_pass bad[] = { over, pass_of(&NEXT_SECRET, 0, 1), forged };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        raw_open(&c, &r);
        c.shown = bad[i];
        CHECK(!raw_challenge(&c, address(0), &challenge));
        CHECK_EQ(c.welcome, FKV_UNAUTHORIZED);
        raw_down(&c);
    }
    up_with(&c, &good);
    raw_down(&c);
    rig_down(&r);
}

static void tests(void) {
    encrypted = false;
    if (provider == FAB_TCP && !fab_encryption_missing(FAB_TCP)) {
        encrypted = true;
        RUN(an_expired_ticket_comes_to_no_challenge);
        RUN(a_hello_that_was_heard_opens_nothing_here_or_elsewhere);
        RUN(who_knows_a_client_s_id_and_ticket_ends_none_of_its_connections);
        RUN(a_connection_ends_with_its_ticket_unless_it_was_shown_another);
        RUN(a_ticket_is_good_under_the_next_secret_and_not_under_the_one_after_it);
        RUN(who_is_revoked_goes_and_comes_back_with_a_later_ticket_only);
        encrypted = false;
    }
    RUN(a_hello_that_was_heard_opens_nothing_here_or_elsewhere);
    RUN(a_hello_that_is_none_is_refused_and_told_why);
    RUN(who_knows_a_client_s_id_and_ticket_ends_none_of_its_connections);
    RUN(a_connection_ends_with_its_ticket_unless_it_was_shown_another);
    RUN(an_idle_connection_ends_in_time);
    RUN(a_renewal_is_of_the_same_client_is_proved_and_is_for_this_connection);
    RUN(a_renewal_does_not_count_against_the_quota_and_needs_no_right);
    RUN(a_ticket_is_good_under_the_next_secret_and_not_under_the_one_after_it);
    RUN(who_is_revoked_goes_and_comes_back_with_a_later_ticket_only);
    RUN(who_lost_its_right_finds_no_later_segment_in_memory_that_it_has_mapped);
    RUN(each_challenge_is_new_is_found_until_it_is_answered_and_not_for_ever);
    RUN(numbers_of_challenges_begin_again_and_their_nonces_do_not);
}
int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
