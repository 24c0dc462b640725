/**
 * How many memory regions a server registers with its RDMA device, and how large they are, at the most.
 *
 * Each segment of a table is one region (native/storage/memory.c), in the protection domain of its shard's tenant. A
 * table asks for segments as it grows (native/table/segment.c), each in proportion to what it has:
 *
 *          the first   each other one is, before rounding      least    most      bytes in all
 *   heap   64 KiB      1/140 of the heap or more               24 KiB   256 MiB   the shard's part of --memory
 *   index  64 KiB      1/16 of the index                       8 KiB    32 MiB    a quarter of that
 *
 * 24 KiB are two spans of three blocks. A quarter: an entry has 19 bytes of the index at most, and 64 of the heap at
 * least. Rounding down to whole spans, huge pages or grains takes less than half of a segment. So the smallest segments
 * that add up to b bytes are each more than 1/280 (heap) or 1/32 (index) of those before them, up to half the most, and
 * their number is at most that of the loop below. Segments that went and came again change nothing about that.
 *
 * Not counted: small segments that bridge the wait for huge pages, and those that take the last bytes before the limit.
 * Nor is the device's limit this server's alone: all programs of the host share it.
 */
const KIB = 2 ** 10;
const MIB = 2 ** 20;

interface Growth {
  readonly part: number;
  readonly leastBytes: number;
  readonly mostBytes: number;
}
const FIRST_BYTES = 64 * KIB;
const HEAP: Growth = { part: 280, leastBytes: 24 * KIB, mostBytes: 128 * MIB };
const INDEX: Growth = { part: 32, leastBytes: 8 * KIB, mostBytes: 16 * MIB };
const INDEX_SHARE = 4;
/** Heap segments of a shard (SEGMENT_NUMBERS in native/table/internal.h, without 0). */
const HEAP_SEGMENTS_MAX = 65_535;

/** Of a server of a cluster as it is made by default: four of its own, and copies of four of others. */
export const USUAL_SHARDS = 8;
/** Message buffers and memory for large values: two for each worker, of which there are at most 64. */
const MESSAGE_REGIONS = 128;

function segmentsMost(bytes: number, { part, leastBytes, mostBytes }: Growth): number {
  let count = 1;
  for (let grown = FIRST_BYTES; grown < bytes && count < HEAP_SEGMENTS_MAX; count++)
    grown += Math.min(Math.max(grown / part, leastBytes), mostBytes);
  return count;
}

/** Regions that a server with so much memory may need, when it is full. Equal shards have the most. */
export function regionsMost(memoryBytes: number, shards: number): number {
  const each = memoryBytes / shards;
  return MESSAGE_REGIONS + shards * (segmentsMost(each, HEAP) + segmentsMost(each / INDEX_SHARE, INDEX));
}

const HUGE_PAGE = 2 * MIB;
/** A segment is at most this part of a shard, which may have all of the memory, */
const SEGMENT_SHARE = 16;
/** or has one value of the largest class (FKV_VALUE_MAX and a block), */
const LARGEST_VALUE = 64 * MIB + 4 * KIB;
/** and at most so many bytes (HEAP_MAX in native/table/segment.c). `--huge-pages require` rounds up. */
const SEGMENT_MOST = 256 * MIB;

/** Bytes of the largest region that a server with so much memory may need. */
export function largestRegion(memoryBytes: number): number {
  const most = Math.min(Math.max(memoryBytes / SEGMENT_SHARE, LARGEST_VALUE), SEGMENT_MOST);
  return Math.min(Math.ceil(most / HUGE_PAGE) * HUGE_PAGE, memoryBytes);
}
