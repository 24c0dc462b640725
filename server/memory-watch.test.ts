import test, { type ExecutionContext } from 'ava';
import type { DataPlaneStats } from '../native/data-plane-stats.js';
import { Log } from './log.js';
import { LATELY_MS, watchMemory } from './memory-watch.js';

const workersOf = (refused: readonly number[], diskFull = false): object[] =>
  refused.map((n) => ({ refused: { ERR_TABLE_FULL: n, ERR_BUSY: 7 }, log: { diskFull } }));

/** What is said while the data plane's figures are these, one look after the other. */
async function said(
  t: ExecutionContext,
  figures: readonly {
    readonly missed?: number;
    readonly refused?: readonly number[];
    readonly limits?: readonly number[];
    readonly diskFull?: boolean;
  }[],
  quietMs: number,
): Promise<string[]> {
  const lines: string[] = [];
  const log = new Log('info', (_level, text) => lines.push(text));
  // Looking keeps no process alive.
  const alive = setInterval(() => undefined, 1000);
  t.teardown(() => clearInterval(alive));
  const left = [...figures];
  await new Promise<void>((resolve) => {
    const stats = (): Promise<DataPlaneStats> => {
      const next = left.shift();
      if (next === undefined) {
        resolve();
        return Promise.reject(new Error('closed'));
      }
      const { missed: descriptorsMissed = 0, refused = [0], limits = [], diskFull = false } = next;
      const shards = limits.map((memoryBytes) => ({ memoryBytes }));
      const workers = workersOf(refused, diskFull);
      return Promise.resolve({ descriptorsMissed, workers, shards } as unknown as DataPlaneStats);
    };
    watchMemory({ stats }, log, { lookMs: 1, quietMs });
  });
  return lines;
}

test('descriptors that were missed are a line in the log, once', async (t) => {
  const lines = await said(t, [{ missed: 3 }, { missed: 3 }, { missed: 3 }], 0);
  t.is(lines.length, 1);
  t.regex(lines[0] ?? '', /EMFILE.*ERR_NO_MEMORY.*LimitNOFILE=/);
});

test('changes that were refused for want of memory are counted in the log, those of all threads', async (t) => {
  const lines = await said(t, [{}, { refused: [1, 0] }, { refused: [1, 0] }, { refused: [100, 34] }], 0);
  t.is(lines.length, 2);
  t.regex(lines[0] ?? '', /^1 change was refused.*ERR_TABLE_FULL.*farkv status/);
  t.regex(lines[1] ?? '', /^133 changes were refused/);
});

test('of changes that are refused all the time one line is said for a while', async (t) => {
  const lines = await said(t, [{ refused: [1] }, { refused: [2] }, { refused: [3] }], 3_600_000);
  t.is(lines.length, 1);
});

test('beside refused changes stands what a shard may have, which a value must fit into', async (t) => {
  const [line = ''] = await said(t, [{ refused: [1], limits: [30 << 20, 21 << 20] }], 0);
  t.regex(line, /farkv status says which.*A shard may have 21\.0 MiB here: a value must fit into what is free$/);
});

test('a disk without room for the log of values is said, with how much it needs, and that it has room again', async (t) => {
  const lines = await said(t, [{ diskFull: true }, { diskFull: true }, {}, {}], 3_600_000);
  t.is(lines.length, 2);
  t.regex(lines[0] ?? '', /^no room on the disk .* until 128 MiB are free for each data-plane thread$/);
  t.regex(lines[1] ?? '', /^the disk of the data directory has room again: changes of durable values/);
});

test('for a while the status knows that changes were refused, from the figures that it is given', (t) => {
  let now = 1000;
  const stats = (...refused: number[]): DataPlaneStats =>
    ({ descriptorsMissed: 0, workers: workersOf(refused), shards: [] }) as unknown as DataPlaneStats;
  const watch = watchMemory({ stats: () => Promise.resolve(stats(0)) }, new Log('error', t.log), { nowMs: () => now });
  t.is(watch.refusedAgoMs(stats(0, 0)), undefined);
  t.is(watch.refusedAgoMs(stats(3, 4)), 0);
  now += 2000;
  t.is(watch.refusedAgoMs(stats(3, 4)), 2000);
  t.is(watch.refusedAgoMs(stats(3, 3)), 2000, 'figures that were asked for earlier');
  now += LATELY_MS;
  t.is(watch.refusedAgoMs(stats(3, 4)), undefined);
  t.is(watch.refusedAgoMs(stats(3, 5)), 0);
});
