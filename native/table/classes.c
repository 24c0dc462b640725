/* classes.c: size classes of extents, and how many of a class a span holds.
 *
 * A span is 1 to 64 blocks of 4 KiB, as few as waste at most 1/256 of it at its end; an extent above 256 KiB has a span
 * of its own. Small spans keep small what a class has room for and does not use: 16 B keys with 100 B values (160 B
 * extents) take 8 KiB at a time, with 1,000 B values (1,056 B extents) 32 KiB. In a small table a span is at most 1/256
 * of it, though more be wasted at its end, so that a hundred classes can have one each.
 */
#include "internal.h"

uint8_t fkv_class_of(size_t bytes) {
    uint32_t units = (uint32_t)((bytes + FKV_UNIT - 1) / FKV_UNIT);
    if (units <= 64) return (uint8_t)(units ? units - 1 : 0);
    if (units > (64u << 20) / FKV_UNIT) return 244;
    /* In a group of classes from base (exclusive) to 2 * base, the classes are `step` apart. */
    bool coarse = units > 65536;
    uint32_t group = 31u - (uint32_t)__builtin_clz((units - 1) / (coarse ? 65536 : 64));
    uint32_t base = (coarse ? 65536u : 64u) << group, step = base / (coarse ? 4 : 16);
    uint32_t i = (units - base + step - 1) / step - 1;
    return (uint8_t)(coarse ? 224 + group * 4 + i : 64 + group * 16 + i);
}

static span_shape shape_of(uint32_t bytes, uint32_t most_blocks) {
    if (bytes > LARGE_BYTES) return (span_shape){ (uint16_t)((bytes + BLOCK_BYTES - 1) / BLOCK_BYTES), 1 };
    uint32_t fewest = bytes <= 2 * BLOCK_BYTES ? 4 : 1, best = 0;
    double best_waste = 2;
    for (uint32_t blocks = 1; blocks <= SPAN_BLOCKS_MAX; blocks++) {
        uint32_t room = blocks * BLOCK_BYTES, objects = room / bytes;
        if (objects < fewest) continue;
        if (blocks > most_blocks && best) break;
        double waste = (double)(room - objects * bytes) / room;
        if (waste < best_waste) {
            best_waste = waste;
            best = blocks;
        }
        if (waste <= 1.0 / 256) break;
    }
    return (span_shape){ (uint16_t)best, (uint16_t)(best * BLOCK_BYTES / bytes) };
}

void table_span_shapes(span_shape shape[CLASSES], uint64_t memory_bytes) {
    uint64_t blocks = memory_bytes / 256 / BLOCK_BYTES;
    uint32_t most = blocks < 4 ? 4 : blocks < SPAN_BLOCKS_MAX ? (uint32_t)blocks : SPAN_BLOCKS_MAX;
    for (uint32_t cls = 0; cls < CLASSES; cls++) {
        uint32_t bytes = class_bytes(cls);
        shape[cls] = bytes ? shape_of(bytes, most) : (span_shape){ 0, 0 };
    }
}
