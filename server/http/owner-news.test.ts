import test, { type ExecutionContext } from 'ava';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Copy, MetadataState, Shard } from '../../core/metadata/state.js';
import { OwnerNews } from './owner-news.js';

interface World {
  /** Of shards 0, 1, ... */
  readonly owners: readonly (string | undefined)[];
  /** Members with a copy of each of them. */
  readonly copies?: readonly (readonly string[])[];
  /** Shards that their last owners have handed over. */
  readonly handed?: readonly number[];
  /** Of all members; the news are of 'a'. */
  readonly start?: string;
}

/** What is told of these states, one after the other; the first is the beginning. */
async function told(t: ExecutionContext, ...worlds: readonly World[]): Promise<string[]> {
  const lines: string[] = [];
  let last = (): void => undefined;
  const news = new OwnerNews({
    incarnation: 'a',
    tell: (text, atMs) => {
      lines.push(`${atMs} ${text}`);
      setImmediate(last);
    },
    wholeMs: 1,
  });
  t.teardown(() => news.close());
  const epochs: number[] = [];
  let before: readonly (string | undefined)[] = [];
  const over = new Promise<void>((resolve) => (last = resolve));
  worlds.forEach(({ owners, copies = [], handed = [], start = 'a' }, i) => {
    const state = {
      ...EMPTY,
      members: new Map(['s1', 's2', 's3'].map((id) => [id, { id, incarnation: start }])),
      shards: owners.map((owner, shard) => {
        epochs[shard] = (epochs[shard] ?? 0) + (before[shard] === owner ? 0 : 1);
        return { shard, epoch: epochs[shard], ...(owner === undefined ? {} : { owner }) } as Shard;
      }),
      copySets: owners.map((_, shard) => ({
        config: 1,
        ...(handed.includes(shard) ? { handed: epochs[shard] } : {}),
        copies: (copies[shard] ?? []).map((member) => ({ member, start: 'a', state: 'in-sync', id: member }) as Copy),
      })),
    } as unknown as MetadataState;
    before = owners;
    news.observe(state, 1000 + i);
  });
  // The timer keeps no process alive.
  const alive = setInterval(() => undefined, 1000);
  await over;
  clearInterval(alive);
  return lines;
}

const BOTH = ['s1', 's2'];

test('owners that were planned are told by the way that shards went, and those of shards that had none', async (t) => {
  const lines = await told(
    t,
    { owners: ['s1', 's2', 's2', undefined] },
    { owners: ['s1', 's1', 's1', 's3'], handed: [1, 2] },
  );
  t.deepEqual(lines, ['1001 from s2 to s1: shards 1, 2', '1001 s3 owns shard 3']);
});

test('a failover is one line, though its shards come one by one, and without an owner meanwhile', async (t) => {
  const copies = [BOTH, BOTH, BOTH];
  const lines = await told(
    t,
    { owners: ['s1', 's1', 's1'], copies },
    { owners: ['s2', 's1', undefined], copies },
    { owners: ['s2', 's2', 's2'], copies },
  );
  t.deepEqual(lines, [
    '1001 failover: shards 0, 1, 2 from s1 to s2, since s1 did not answer: with all values, from a copy',
  ]);
});

test('shards that came with all values, and those that came empty, are told apart', async (t) => {
  const copies = [BOTH, ['s1']];
  const lines = await told(t, { owners: ['s1', 's1'], copies }, { owners: ['s2', 's2'], copies: [BOTH, ['s2']] });
  t.deepEqual(lines, [
    '1001 failover: shard 0 from s1 to s2, since s1 did not answer: with all values, from a copy',
    '1001 failover: shard 1 from s1 to s2, since s1 did not answer: empty, since s2 had no copy',
  ]);
});

test('what a start applies of the log before it has joined is no news', async (t) => {
  const lines = await told(
    t,
    { owners: ['s1', 's1'], start: 'before' },
    { owners: ['s2', 's1'], start: 'before' },
    { owners: ['s3', 's1'] },
    { owners: ['s3', 's2'] },
  );
  t.deepEqual(lines, ['1003 failover: shard 1 from s1 to s2, since s1 did not answer: empty, since s2 had no copy']);
});
