import test from 'ava';
import { largestRegion, regionsMost } from './regions.js';

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** Segments of a table that grows to `heapBytes` with values of so large spans (native/table/segment.c). */
function grown(heapBytes: number, spanBytes: number): number {
  const few = Math.floor(Math.min(Math.max(2 * spanBytes, 32 * KIB), 64 * KIB) / spanBytes) * spanBytes;
  const least = Math.max(few, spanBytes);
  let count = 1;
  for (let heap = 64 * KIB; heap < heapBytes; count++) {
    const wanted = Math.min(Math.max(heap / 140, least), 256 * MIB);
    const part = wanted >= 2 * MIB && spanBytes <= 256 * KIB ? 2 * MIB : spanBytes;
    heap += Math.floor(wanted / part) * part;
  }
  return count;
}

test('no table has more segments, whatever the size of its values', (t) => {
  for (const spanKib of [4, 8, 12, 20, 32, 36, 256, 260, 1028, 2600, 65_540])
    for (const gib of [1 / 64, 1 / 4, 1, 2.2, 16, 64, 300]) {
      const most = regionsMost(gib * GIB, 1);
      t.true(grown(gib * GIB, spanKib * KIB) < most, `spans of ${spanKib} KiB, ${gib} GiB: ${most}`);
    }
});

test('more memory and more shards need more regions, and a large server fewer than NICs have', (t) => {
  t.true(regionsMost(2 * GIB, 8) > regionsMost(GIB, 8));
  t.true(regionsMost(GIB, 16) > regionsMost(GIB, 8));
  t.true(regionsMost(1024 * GIB, 8) < 65_536);
});

test('the largest region is a sixteenth of the memory, or has one large value, and is no more than 256 MiB', (t) => {
  t.is(largestRegion(4 * MIB), 4 * MIB);
  t.is(largestRegion(GIB), 66 * MIB);
  t.is(largestRegion(2 * GIB), 128 * MIB);
  t.is(largestRegion(1024 * GIB), 256 * MIB);
});
