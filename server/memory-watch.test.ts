import test, { type ExecutionContext } from 'ava';
import type { DataPlaneStats } from '../native/data-plane-stats.js';
import { Log } from './log.js';
import { watchMemory } from './memory-watch.js';

/** What is said while the data plane's figures are these, one look after the other. */
async function said(
  t: ExecutionContext,
  figures: readonly { readonly missed?: number; readonly refused?: readonly number[] }[],
  quietMs: number,
): Promise<string[]> {
  const lines: string[] = [];
  const log = new Log('warn', (_level, text) => lines.push(text));
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
      const { missed: descriptorsMissed = 0, refused = [0] } = next;
      const workers = refused.map((n) => ({ refused: { ERR_TABLE_FULL: n, ERR_BUSY: 7 } }));
      return Promise.resolve({ descriptorsMissed, workers } as unknown as DataPlaneStats);
    };
    watchMemory({ stats }, log, 1, quietMs);
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
