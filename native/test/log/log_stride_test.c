/* log_stride_test.c: batches do not cross the strides of a file. So a start reads little of what was not written, and
 * yet finds damage wherever something was written behind it. */
#include <string.h>
#include "../../base/list.h"
#include "../check.h"
#include "log_rig.h"

enum { STRIDE = WAL_STRIDE(RIG_BUFFER), STRIDES = 5, FILE_BYTES = STRIDES * STRIDE, FILES = 3 /* at least */ };

static rig r;

typedef struct place {
    uint32_t file, at, bytes; /* of a batch */
} place;
static place batches[256];
static int count, gaps;
static uint32_t files;

static uint8_t *bytes_of(uint32_t file) {
    char name[WAL_NAME_MAX];
    wal_file_name(name, rig_identity.thread, file);
    return memory_disk_file(&r.disk, name)->bytes;
}
static wal_batch head_at(uint32_t file, uint32_t at) {
    wal_batch h;
    memcpy(&h, bytes_of(file) + at, sizeof h);
    return h;
}
static uint32_t stride_end(uint32_t at) { return (at / STRIDE + 1) * STRIDE; }

static void find_batches(uint32_t file) {
    for (uint32_t at = WAL_BLOCK; at < FILE_BYTES;) {
        uint32_t bytes = wal_whole_blocks(head_at(file, at).bytes);
        if (bytes == 0) {
            at = stride_end(at);
            if (at < FILE_BYTES) gaps += head_at(file, at).bytes > 0;
            continue;
        }
        batches[count++] = (place){ file, at, bytes };
        at += bytes;
    }
}
/* Batches of one to three blocks in each stride of two files, and in some of a third. Where it starts again, the last
 * batch of a file may be the first of a stride. */
static void fill(uint64_t seed, bool starts_again) {
    rig_init(&r, seed, 4096);
    r.config.file_bytes = FILE_BYTES;
    CHECK(rig_recover(&r));
    rig_settle(&r);
    for (bool full = false; !full;) {
        CHECK(rig_append(&r, (uint32_t)memory_random(&r.disk, RIG_SHARDS), 1 + (uint32_t)memory_random(&r.disk, 4),
                         2900));
        rig_settle(&r);
        const wal_file *last = LIST_LAST(&r.log.kept, const wal_file, link);
        uint64_t in_stride = (last->at - 1) % STRIDE;
        full = last->number >= FILES && last->at > 2 * STRIDE && in_stride > 4 * WAL_BLOCK;
        files = (uint32_t)last->number;
        if (starts_again && last->at % STRIDE >= WAL_BLOCK && last->at % STRIDE <= 3 * WAL_BLOCK) {
            starts_again = false;
            rig_end(&r, true);
            CHECK(rig_recover(&r));
            rig_settle(&r);
        }
    }
    CHECK_EQ(r.durable, r.count);
    rig_end(&r, true);
    count = gaps = 0;
    for (uint32_t file = 1; file <= files; file++) find_batches(file);
    CHECK(gaps > 0 && batches[count - 1].file == files);
}
static void replay(void) {
    rig_replay(&r);
    wal_files_free(&r.found.files);
}
static void check_found(wal_verdict verdict, place p) {
    char name[WAL_NAME_MAX];
    wal_file_name(name, rig_identity.thread, p.file);
    CHECK_EQ(r.found.verdict, verdict);
    CHECK(strcmp(r.found.file, name) == 0);
    CHECK_EQ(r.found.offset, p.at);
}
/* Whether a batch lies behind that place in another stride, or another file. */
static bool goes_on_behind(place p) {
    place last = batches[count - 1];
    return last.file > p.file || last.at >= stride_end(p.at);
}

TEST(a_batch_that_does_not_fit_into_a_stride_goes_to_the_next_and_all_are_replayed) {
    for (uint64_t seed = check_seed(), n = 0; n < 20; n++) {
        fill(seed + n, n % 2);
        for (int i = 0; i < count; i++) CHECK(batches[i].at + batches[i].bytes <= stride_end(batches[i].at));
        replay();
        CHECK_EQ(r.found.verdict, WAL_WHOLE);
        CHECK(r.from == 0 && r.to == r.count);
        rig_free(&r);
    }
}

static void flip_each(void) {
    for (int i = 0; i < count; i++)
        for (uint32_t at = 0; at < batches[i].bytes; at += at < sizeof(wal_batch) ? 1 : 509) {
            uint8_t *byte = bytes_of(batches[i].file) + batches[i].at + at;
            *byte ^= (uint8_t)(1 << at % 8);
            replay();
            check_found(i == count - 1 ? WAL_TORN : WAL_DAMAGED, batches[i]);
            *byte ^= (uint8_t)(1 << at % 8);
        }
}

TEST(a_flipped_bit_is_found_in_whatever_stride_the_batch_is) {
    uint64_t seed = check_seed();
    for (uint64_t n = 0; n < 4; n++) {
        fill(seed + n, n % 2);
        flip_each();
        rig_free(&r);
    }
}

/* Its first block is all that is lost, and no head tells that a batch was there. */
TEST(the_first_block_of_a_stride_may_be_gone) {
    static uint8_t kept[WAL_BLOCK];
    uint64_t seed = check_seed();
    for (uint64_t n = 0; n < 4; n++) {
        fill(seed + n, false);
        for (int i = 0; i + 1 < count; i++) {
            if (batches[i].at % STRIDE != 0) continue;
            uint8_t *block = bytes_of(batches[i].file) + batches[i].at;
            memcpy(kept, block, WAL_BLOCK);
            memset(block, 0, WAL_BLOCK);
            replay();
            CHECK_EQ(r.found.verdict, WAL_DAMAGED);
            memcpy(block, kept, WAL_BLOCK);
        }
        rig_free(&r);
    }
}

/* All of a stride from that batch on; what lies in the next one, or in the next file, shows it. */
TEST(a_stride_that_has_lost_its_end_is_damaged_where_something_was_written_behind_it) {
    static uint8_t kept[STRIDE];
    fill(check_seed(), false);
    int ends = 0;
    for (int i = 0; i < count; i++) {
        place p = batches[i];
        uint8_t *from = bytes_of(p.file) + p.at;
        uint32_t bytes = stride_end(p.at) - p.at;
        memcpy(kept, from, bytes);
        memset(from, 0, bytes);
        replay();
        bool first = p.at % STRIDE == 0; /* then the place may be said to be in the stride before */
        if (!goes_on_behind(p))
            CHECK(r.found.verdict <= WAL_TORN && ++ends);
        else if (first)
            CHECK_EQ(r.found.verdict, WAL_DAMAGED);
        else
            check_found(WAL_DAMAGED, p);
        memcpy(from, kept, bytes);
    }
    CHECK(ends > 0 && ends < count / 4);
    rig_free(&r);
}

/* Of the last stride with batches not even the first is whole, but its head can be told; a good one lies behind. */
TEST(a_stride_whose_first_batch_is_bad_is_looked_through) {
    fill(check_seed(), false);
    int tried = 0;
    for (int i = 0; i + 1 < count; i++) {
        place p = batches[i], next = batches[i + 1];
        bool begins_stride = p.at % STRIDE == 0, last_stride = p.file == files && !goes_on_behind(p);
        if (!begins_stride || !last_stride || next.at >= stride_end(p.at)) continue;
        memset(bytes_of(p.file) + p.at + sizeof(wal_batch), 0, p.bytes - sizeof(wal_batch));
        replay();
        check_found(WAL_DAMAGED, p);
        tried++;
    }
    CHECK_EQ(tried, 1);
    rig_free(&r);
}

static int (*reads)(disk *d, int file, uint64_t at, void *to, uint32_t bytes);
static uint64_t bytes_read; /* atomic */
static int counted_read(disk *d, int file, uint64_t at, void *to, uint32_t bytes) {
    __atomic_fetch_add(&bytes_read, bytes, __ATOMIC_RELAXED);
    return reads(d, file, at, to, bytes);
}

/* As a server has them: two files of 64 MiB lie ahead of each thread's log. Of the one that was written it reads two. */
TEST(of_a_file_in_which_nothing_was_written_a_start_reads_one_stride) {
    const uint64_t stride = WAL_STRIDE(WAL_BATCH_MAX), file = 8 * stride;
    rig_init(&r, check_seed(), 4096);
    reads = r.disk.table.read;
    r.disk.table.read = counted_read;
    r.config.buffer_bytes = WAL_BATCH_MAX;
    r.config.file_bytes = (uint32_t)file;
    CHECK(rig_recover(&r));
    rig_settle(&r);
    CHECK(rig_append(&r, 0, 1, 100));
    rig_settle(&r);
    rig_end(&r, true);
    bytes_read = 0;
    replay();
    CHECK(r.found.verdict == WAL_WHOLE && r.to == r.count);
    CHECK(bytes_read >= 4 * (stride - WAL_BLOCK) && bytes_read < 4 * (stride + 9 * WAL_BLOCK));
    rig_free(&r);
}

int main(int argc, char **argv) {
    RUN(a_batch_that_does_not_fit_into_a_stride_goes_to_the_next_and_all_are_replayed);
    RUN(the_first_block_of_a_stride_may_be_gone);
    RUN(a_flipped_bit_is_found_in_whatever_stride_the_batch_is);
    RUN(a_stride_that_has_lost_its_end_is_damaged_where_something_was_written_behind_it);
    RUN(a_stride_whose_first_batch_is_bad_is_looked_through);
    RUN(of_a_file_in_which_nothing_was_written_a_start_reads_one_stride);
    return check_end(argc, argv);
}
