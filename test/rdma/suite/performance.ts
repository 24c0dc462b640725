/**
 * The SDK beside perftest, both over the same device, in one run: ratios only, for emulation and soft devices make
 * every figure slow. A ratio that misses its goal is printed as missed and fails nothing: it measures the machine as
 * well. Nor does a figure that perftest did not give.
 */
import { deviceUnderTest } from './device.js';
import type { Part } from './parts.js';
import { perftest } from './perftest.js';

const ROUNDS = 2000;
/** perftest is compiled; JavaScript is when it has run some thousand times. */
const WARM_UP = 4000;
const BATCH = 64;
const VALUE_BYTES = 1000;
/** Undefined when it could not be measured. */
async function figure(tool: string, bytes: number, more: readonly string[] = []): Promise<number | undefined> {
  const { device, address } = deviceUnderTest();
  return await perftest({
    tool,
    words: ['-d', device, '-R', '-F', '-s', String(bytes), '-n', String(ROUNDS), ...more],
    address,
    bytes,
    column: 4,
  });
}

/** One line: what the SDK has, what perftest has, their ratio, and whether it meets the goal. */
function row(
  what: string,
  sdk: number,
  tool: string,
  theirs: number | undefined,
  text: (value: number) => string,
  bound: 'at most' | 'at least',
  goal: number,
): void {
  const ratio = theirs === undefined ? undefined : sdk / theirs;
  const missed = ratio !== undefined && (bound === 'at most' ? ratio > goal : ratio < goal);
  const beside = `${tool} ${theirs === undefined ? 'not measured' : text(theirs)}`;
  console.log(
    `   ${what.padEnd(30)} ${text(sdk).padStart(12)} ${beside.padStart(26)} ${(ratio?.toFixed(2) ?? '-').padStart(7)}  ${bound} ${goal}${missed ? '  MISSED' : ''}`,
  );
}

function median(list: readonly number[]): number {
  return [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? NaN;
}

async function medianUs(once: (i: number) => unknown): Promise<number> {
  const took: number[] = [];
  for (let i = -WARM_UP; i < ROUNDS; i++) {
    const begun = process.hrtime.bigint();
    const answer = once(i + WARM_UP);
    if (answer instanceof Promise) await answer;
    const us = Number(process.hrtime.bigint() - begun) / 1000;
    if (i >= 0) took.push(us);
  }
  return median(took);
}

export const performance: Part = [
  'the SDK beside perftest',
  async ({ cluster: start, client: connectTo }) => {
    // perftest's ends never stop polling, so these do not within a round trip of emulation either
    // (docs/performance-notes.md, "RDMA").
    const cluster = await start({ servers: 1, shards: 1, args: ['--lease-ms', '60000', '--polling', 'always'] });
    const warm = await connectTo(cluster, { polling: 'always' });
    const cold = await connectTo(cluster, { cachedLocations: 0 });
    const keys = Array.from({ length: BATCH }, (_, i) => `key-${i}`);
    const value = Buffer.alloc(VALUE_BYTES, 7);
    for (const key of keys) await warm.put(key, value);
    const into = Buffer.alloc(VALUE_BYTES);
    for (const key of keys) warm.getIntoSync(key, into);

    const before = warm.stats();
    const cachedUs = await medianUs((i) => warm.getIntoSync(keys[i % BATCH] ?? '', into));
    const after = warm.stats();
    const readBytes = Math.round((after.readBytes - before.readBytes) / (after.reads - before.reads));
    const coldBefore = cold.stats();
    const coldUs = await medianUs((i) => cold.getIntoSync(keys[i % BATCH] ?? '', into));
    const coldReads = (cold.stats().reads - coldBefore.reads) / (WARM_UP + ROUNDS);
    const putUs = await medianUs((i) => warm.put(keys[i % BATCH] ?? '', value));
    for (const key of keys) warm.getIntoSync(key, into);
    const batches = 100;
    for (let i = 0; i < batches; i++) await warm.getMany(keys);
    const begun = process.hrtime.bigint();
    for (let i = 0; i < batches; i++) await warm.getMany(keys);
    const batched = (batches * BATCH * 1e9) / Number(process.hrtime.bigint() - begun);

    const readUs = await figure('ib_read_lat', readBytes);
    const oneWayUs = await figure('ib_send_lat', VALUE_BYTES);
    const sendUs = oneWayUs === undefined ? undefined : 2 * oneWayUs;
    const millions = await figure('ib_read_bw', readBytes, ['-t', String(BATCH)]);
    const rate = millions === undefined ? undefined : millions * 1e6;
    console.log(
      `   values of ${VALUE_BYTES} B, READs of ${readBytes} B; cached ${((after.reads - before.reads) / (WARM_UP + ROUNDS)).toFixed(2)} and cold ${coldReads.toFixed(2)} READs a GET`,
    );
    const us = (value: number): string => `${value.toFixed(1)} us`;
    const perSecond = (value: number): string => `${Math.round(value)}/s`;
    row('GET, cached location', cachedUs, 'ib_read_lat', readUs, us, 'at most', 1.3);
    row('GET, cold', coldUs, 'ib_read_lat', readUs, us, 'at most', 2.5);
    row('PUT', putUs, '2 ib_send_lat', sendUs, us, 'at most', 1.5);
    row(`GETs, ${BATCH} at once`, batched, 'ib_read_bw', rate, perSecond, 'at least', 0.7);
  },
];
