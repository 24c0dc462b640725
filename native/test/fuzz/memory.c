/* memory.c: a client that READs the memory of an owner who has written there what it likes. The fabric is a puppet
 * (puppet.h) with an honest owner; what its readers find is a copy of the table in which this target changes bytes.
 *
 * Checked: no byte outside the owner's memory and the client's buffers is touched; and a GET by READs that says OK has
 * the key's value, unless the checksum was made to fit as well.
 */
#include <stdlib.h>
#include <string.h>
#include "fuzz_guest.h"

enum { KEYS = 40, STEPS = 48, CHANGES = 512, VALUE_MOST = 3000, GETS = 8, SEGMENTS = 64 };
static const uint64_t MS = 1000000;

typedef struct change {
    uint64_t *at, was;
} change;
typedef struct got {
    bool busy;
    int key;
} got;

static puppet *p;
static guest c;
static uint8_t *copies[SEGMENTS];
static change changes[CHANGES];
static int change_count;
static bool forged; /* in this run a checksum was made to fit */
static got gets[GETS];

static int name(int key, char *out) { return sprintf(out, "key %d", key); }
static uint32_t value_of(int key, uint8_t *out) {
    uint32_t n = (uint32_t)(key * key) * 2 % VALUE_MOST;
    memset(out, 'a' + key % 26, n);
    return n;
}
static void look(const lookup_result *r, const uint8_t *value) {
    if (r->status == FKV_OK) fuzz_touch(value, r->value_bytes);
}
/* Of a GET by READs: one in place needs no checksum, for nothing is torn that its state does not tell. */
static void judge(int key, const lookup_result *r, const uint8_t *value) {
    uint8_t right[VALUE_MOST];
    uint32_t n = value_of(key, right);
    look(r, value);
    if (r->status == FKV_OK && !forged) CHECK(r->value_bytes == n && memcmp(value, right, n) == 0);
}
static void on_got(void *ctx, lookup_get *g) {
    (void)ctx;
    got *o = lookup_user(g);
    CHECK(o->busy);
    judge(o->key, lookup_result_of(g), lookup_value(g));
    o->busy = false;
    lookup_release(g);
}

/* ---- the hostile owner ---- */

static void set(uint64_t *at, uint64_t to) {
    if (change_count == CHANGES) return;
    changes[change_count++] = (change){ at, *at };
    *at = to;
}
static void take_back(void) {
    while (change_count--) *changes[change_count].at = changes[change_count].was;
    change_count = 0;
}
static fkv_bucket *bucket_of(int key) {
    char text[16];
    uint32_t bits = fkv_hash_bucket_bits(host_hash(p->h, 0, text, (size_t)name(key, text)));
    return (fkv_bucket *)(void *)copies[0] + fkv_bucket_of(bits, table_buckets(p->h->t));
}
/* Where the owner's own table has it; *left: bytes from there to the end of its segment. */
static fkv_extent *extent_of(int key, uint64_t *left) {
    char text[16];
    table_entry e;
    CHECK_EQ(host_get(p->h, text, (size_t)name(key, text), &e), FKV_OK);
    const uint8_t *at = e.key - FKV_EXTENT_HEADER;
    int i = p->memories - 1;
    while (at - p->memory[i].base >= (ptrdiff_t)p->memory[i].bytes || at < p->memory[i].base) i--;
    *left = p->memory[i].bytes - (uint64_t)(at - p->memory[i].base);
    return (fkv_extent *)(void *)(copies[i] + (at - p->memory[i].base));
}
static void change_extent(fuzz_in *in) {
    uint64_t left;
    fkv_extent *e = extent_of(fuzz_u8(in) % KEYS, &left);
    uint64_t *at = (uint64_t *)(void *)e + fuzz_u8(in) % 8;
    set(at, *at ^ fuzz_number(in) << fuzz_u8(in) % 64);
}
/* Lengths, states and times as it likes, under a checksum that fits where it can. */
static void forge_extent(fuzz_in *in) {
    uint64_t left;
    fkv_extent *e = extent_of(fuzz_u8(in) % KEYS, &left), f = *e;
    uint8_t form = fuzz_u8(in);
    if (form & 1) f.value_bytes = (uint32_t)fuzz_number(in);
    if (form & 2) f.key_bytes = (uint16_t)fuzz_number(in);
    if (form & 4) f.expiry_space = fuzz_number(in);
    if (form & 8) f.version = fuzz_u64(in);
    if (form & 16) f.tag ^= fuzz_u8(in);
    uint64_t words[sizeof f / 8];
    memcpy(words, &f, sizeof f);
    for (size_t i = 1; i < sizeof f / 8; i++) set((uint64_t *)(void *)e + i, words[i]);
    if ((uint64_t)f.key_bytes + f.value_bytes + FKV_EXTENT_HEADER <= left)
        f.crc = fkv_extent_crc(e, f.key_bytes, f.value_bytes);
    memcpy(words, &f, sizeof f);
    set((uint64_t *)(void *)e, words[0]);
    forged = true;
}
static void change_bucket(fuzz_in *in) {
    uint64_t *words = (uint64_t *)(void *)bucket_of(fuzz_u8(in) % KEYS);
    uint8_t which = fuzz_u8(in), form = fuzz_u8(in);
    uint64_t *at = &words[which % 16];
    if (form % 4 == 0) {
        set(at, *at ^ fuzz_number(in) << fuzz_u8(in) % 64);
    } else if (which % 16 == 0) {
        set(at, fkv_bucket_word0(p->h->segments[0].tag, fuzz_u8(in) % 64, fuzz_u8(in) & 0xc0));
    } else {
        uint64_t to = fkv_location(fuzz_u8(in) % (form & 8 ? 256 : p->memories), (uint32_t)fuzz_number(in) & 0xffffff);
        if (which % 16 == 1)
            set(at, fkv_bucket_word1(to, 1));
        else
            set(at, fkv_slot(form & 16 ? fuzz_u16(in) : fkv_slot_fingerprint(*at), fuzz_u8(in), to));
    }
}
/* Anywhere; what looks like a bucket of a chain, for instance. */
static void change_any(fuzz_in *in) {
    int which = fuzz_u8(in) % p->memories;
    uint64_t *at = (uint64_t *)(void *)copies[which] + fuzz_u32(in) % (p->memory[which].bytes / 8);
    set(at, fuzz_u64(in));
}
static void copy_bucket(fuzz_in *in) {
    fkv_bucket *from = bucket_of(fuzz_u8(in) % KEYS);
    uint32_t unit = fuzz_u16(in) % (uint32_t)(p->memory[1].bytes / FKV_UNIT - FKV_BUCKET_BYTES / FKV_UNIT);
    uint64_t *to = (uint64_t *)(void *)(copies[1] + (size_t)unit * FKV_UNIT);
    for (int i = 0; i < FKV_BUCKET_BYTES / 8; i++) set(&to[i], ((uint64_t *)(void *)from)[i]);
    set(&to[0], fkv_bucket_word0(p->h->segments[1].tag, 0, 0));
    set(&((uint64_t *)(void *)from)[1], fkv_bucket_word1(fkv_location(1, unit), 1));
}

/* ---- the client ---- */

static void get(fuzz_in *in) {
    char text[16];
    for (int i = 0; i < GETS; i++) {
        if (gets[i].busy) continue;
        gets[i] = (got){ .busy = true, .key = fuzz_u8(in) % KEYS };
        lookup_key k = { .bytes = (const uint8_t *)text, .count = (uint32_t)name(gets[i].key, text) };
        lookup_get *g;
        if (lookup_start(c.l, &k, p->now_ns, p->now_ns + 500 * MS, &gets[i], &g) != FKV_OK) gets[i].busy = false;
        return;
    }
}
static void get_in_place(fuzz_in *in) {
    char text[16];
    int key = fuzz_u8(in) % KEYS;
    lookup_key k = { .bytes = (const uint8_t *)text, .count = (uint32_t)name(key, text) };
    lookup_result r;
    uint32_t room = fuzz_u8(in) & 1 ? VALUE_MOST : fuzz_u16(in) % VALUE_MOST;
    uint8_t *to = malloc(room ? room : 1);
    if (lookup_direct(c.l, &k, to, room, &r)) look(&r, to);
    free(to);
}
static void get_group(fuzz_in *in) {
    char text[LOOKUP_GROUP][16];
    lookup_key k[LOOKUP_GROUP];
    lookup_result r[LOOKUP_GROUP];
    size_t at[LOOKUP_GROUP], room = fuzz_u16(in);
    bool done[LOOKUP_GROUP];
    int n = 1 + fuzz_u8(in) % LOOKUP_GROUP;
    uint8_t *to = malloc(room ? room : 1);
    for (int i = 0; i < n; i++) {
        int key = fuzz_u8(in) % KEYS;
        k[i] = (lookup_key){ .bytes = (const uint8_t *)text[i], .count = (uint32_t)name(key, text[i]) };
    }
    CHECK(lookup_direct_group(c.l, k, n, to, room, r, at, done) <= room);
    for (int i = 0; i < n; i++)
        if (done[i] && r[i].status == FKV_OK) look(&r[i], to + at[i]);
    free(to);
}
static void step(fuzz_in *in) {
    uint8_t what = fuzz_u8(in);
    fuzz_frames++;
    switch (what % 16) {
    case 0:
    case 1: change_extent(in); break;
    case 2: forge_extent(in); break;
    case 3:
    case 4: change_bucket(in); break;
    case 5: change_any(in); break;
    case 6: copy_bucket(in); break;
    case 7: take_back(); break;
    case 8: fuzz_guest_read(&c, in); break;
    case 9: get_group(in); break;
    case 10:
    case 11: get_in_place(in); break;
    case 12: fuzz_guest_turn(&c); break;
    default:
        get(in);
        fuzz_guest_turn(&c);
        break;
    }
}

/* ---- the target ---- */

static void open_memory(void) {
    p = puppet_new();
    for (int key = 0; key < KEYS; key++) {
        char text[16];
        uint8_t value[VALUE_MOST];
        uint32_t n = value_of(key, value);
        table_op op = host_op(p->h, TABLE_PUT, text, (size_t)name(key, text), value, n);
        CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
    }
    puppet_register(p);
    CHECK(p->memories <= SEGMENTS);
    for (int i = 0; i < p->memories; i++) {
        copies[i] = malloc(p->memory[i].bytes);
        memcpy(copies[i], p->memory[i].base, p->memory[i].bytes);
        p->memory[i].shown = copies[i];
    }
}
static void close_memory(void) {
    for (int i = 0; i < p->memories; i++) free(copies[i]);
    puppet_free(p);
}
static void one(fuzz_in *in) {
    uint8_t form = fuzz_u8(in);
    p->by_hand = p->silent = p->refuses = false;
    p->direct = form & 2;
    p->follows = form & 4;
    fuzz_guest_open(&c, p, form & 8 ? 256 : 0, on_got);
    fuzz_in first = { (const uint8_t *)"", 0 };
    for (int i = 0; i < 8; i++) { /* it learns of leases and segments by a GET */
        if (i == 2) get(&first);
        fuzz_guest_turn(&c);
    }
    p->by_hand = form & 1;
    for (int i = 0; i < STEPS && in->left; i++) step(in);
    lookup_close(c.l);
    for (int i = 0; i < GETS; i++) CHECK(!gets[i].busy);
    take_back();
    forged = false;
}

const fuzz_target fuzz_memory = { "memory", open_memory, one, close_memory };
