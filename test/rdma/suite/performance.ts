/**
 * The SDK beside perftest, both over the same device, in one run: ratios only, for emulation and soft devices make every figure slow. A ratio
 * that misses its goal is printed as missed and fails nothing: it measures the machine as well.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { deviceUnderTest } from './device.js';
import type { Part } from './parts.js';

const ROUNDS = 2000;
/** perftest is compiled; JavaScript is when it has run some thousand times. */
const WARM_UP = 4000;
const BATCH = 64;
const VALUE_BYTES = 1000;
/** perftest's ends never stop polling, so these do not within a round trip of emulation either (docs/performance-notes.md, "RDMA"). */
const POLL_US = 100_000;

async function perftest(tool: string, bytes: number, more: readonly string[], column: number): Promise<number> {
  const { device, address } = deviceUnderTest();
  const words = ['-d', device, '-R', '-F', '-s', String(bytes), '-n', String(ROUNDS), ...more];
  const server = spawn(tool, words, { stdio: 'ignore' });
  let out = '';
  // The server says nothing when it is ready: the client is tried until it is answered.
  for (let tries = 0; tries < 50; tries++) {
    const client = spawnSync(tool, [...words, address], { encoding: 'utf8', timeout: 60_000 });
    out = client.stdout;
    if (client.status === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  if (server.exitCode === null) await Promise.race([once(server, 'exit'), new Promise((resolve) => setTimeout(resolve, 5000))]);
  server.kill('SIGKILL');
  const line = out.split('\n').find((l) => l.trim().startsWith(`${bytes} `));
  assert.ok(line !== undefined, `${tool} said: ${out}`);
  return Number(line.trim().split(/\s+/)[column]);
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
    const cluster = await start({ servers: 1, shards: 1, args: ['--lease-ms', '60000', '--spin-us', String(POLL_US)] });
    const warm = await connectTo(cluster, { putSpinUs: POLL_US, getSpinUs: POLL_US });
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

    const readUs = await perftest('ib_read_lat', readBytes, [], 4);
    const sendUs = 2 * (await perftest('ib_send_lat', VALUE_BYTES, [], 4));
    const rate = (await perftest('ib_read_bw', readBytes, ['-t', String(BATCH)], 4)) * 1e6;
    const row = (what: string, sdk: string, theirs: string, ratio: number, goal: string, met: boolean): void => {
      console.log(`   ${what.padEnd(30)} ${sdk.padStart(12)} ${theirs.padStart(26)} ${ratio.toFixed(2).padStart(7)}  ${goal}${met ? '' : '  MISSED'}`);
    };
    console.log(`   values of ${VALUE_BYTES} B, READs of ${readBytes} B; cached ${((after.reads - before.reads) / (WARM_UP + ROUNDS)).toFixed(2)} and cold ${coldReads.toFixed(2)} READs a GET`);
    row('GET, cached location', `${cachedUs.toFixed(1)} us`, `ib_read_lat ${readUs.toFixed(1)} us`, cachedUs / readUs, 'at most 1.3', cachedUs <= 1.3 * readUs);
    row('GET, cold', `${coldUs.toFixed(1)} us`, `ib_read_lat ${readUs.toFixed(1)} us`, coldUs / readUs, 'at most 2.5', coldUs <= 2.5 * readUs);
    row('PUT', `${putUs.toFixed(1)} us`, `2 ib_send_lat ${sendUs.toFixed(1)} us`, putUs / sendUs, 'at most 1.5', putUs <= 1.5 * sendUs);
    row(`GETs, ${BATCH} at once`, `${Math.round(batched)}/s`, `ib_read_bw ${Math.round(rate)}/s`, batched / rate, 'at least 0.7', batched >= 0.7 * rate);
  },
];
