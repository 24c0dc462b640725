/**
 * A shard of 25 MB loses nearly all of its entries: heap and index give their memory back, and take it again, while
 * clients GET and scan over both transports.
 */
import test from 'ava';
import { setImmediate } from 'node:timers/promises';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import type { ShardStatus } from '../../server/status.js';
import { Cluster } from '../support/cluster.js';
import { statusOf, statusWhen } from '../support/status.js';

const ENTRIES = 140_000;
/** Entry number n stays when n % KEPT_OF is 0. */
const KEPT_OF = 20;
const BATCH = 500;

type Keys = Client<BufferValue, Buffer>;
const key = (n: number): string => `entry number ${n}`;
const value = (n: number, round: number): string => `${round}: ${n} `.padEnd(100, '.');

/** What the entries need when merges end, 26 bytes for each, and the first segment; and one segment, a sixteenth. */
const indexMost = (entries: number): number => ((entries * 26 + 65_536) * 17) / 16 + 8192;
const indexOf = ({ memory }: ShardStatus): number => (memory?.index ?? NaN) + (memory?.indexFree ?? NaN);

async function eachBatch(numbers: readonly number[], change: (batch: readonly number[]) => Promise<unknown>) {
  for (let at = 0; at < numbers.length; at += BATCH) await change(numbers.slice(at, at + BATCH));
}

test.serial('after mass deletion the index shrinks and grows again, and no GET and no scan is wrong', async (t) => {
  const cluster = await Cluster.start(t, { shards: 1, memory: '64mb', args: ['--lease-ms', '500'] });
  const { address } = cluster.server(0);
  const clients: Keys[] = [];
  for (const transport of ['shm', 'tcp', 'tcp'] as const) {
    const kv = await connect({ servers: cluster.addresses, transport, strict: true });
    t.teardown(() => kv.close());
    clients.push(kv);
  }
  const [writer, reader, idle] = clients as [Keys, Keys, Keys];
  const all = Array.from({ length: ENTRIES }, (_, n) => n);
  const kept = all.filter((n) => n % KEPT_OF === 0);
  const gone = all.filter((n) => n % KEPT_OF !== 0);
  const shard = async (): Promise<ShardStatus> => (await statusOf(address)).shards[0]!;
  const put = async (numbers: readonly number[], round: number): Promise<void> =>
    await eachBatch(numbers, (batch) => writer.putMany(batch.map((n) => ({ key: key(n), value: value(n, round) }))));
  /** Entries of which a client must see this round, or nothing. */
  const expect = async (kv: Keys, numbers: readonly number[], round: number | undefined): Promise<void> => {
    const found = await kv.getMany(numbers.map(key));
    found.forEach((v, i) => {
      const right = round === undefined ? undefined : value(numbers[i]!, round);
      if (v?.toString() !== right) t.fail(`entry ${numbers[i]}: ${String(v)}, and not ${String(right)}`);
    });
  };
  const some = (numbers: readonly number[], from: number): number[] =>
    Array.from({ length: 200 }, (_, i) => numbers[(from + i * 37) % numbers.length]!);

  await put(all, 1);
  await expect(idle, some(all, 1), 1);
  const full = await shard();
  t.true(full.memoryBytes! > 20_000_000 && indexOf(full) > 2_000_000);

  await eachBatch(gone, (batch) => Promise.all(batch.map((n) => writer.delete(key(n)))));
  // Until the index is small. GETs, misses and scans go on meanwhile, each checked against what there is.
  let small: ShardStatus | undefined;
  let gets = 0;
  const reads = async (kv: Keys): Promise<void> => {
    for (let at = 0; small === undefined; at += 7919) {
      await expect(kv, some(kept, at), 1);
      await expect(kv, some(gone, at), undefined);
      gets += 400;
      await setImmediate(); // GETs in place end within a turn: others must get on too
    }
  };
  const scans = async (): Promise<void> => {
    while (small === undefined) {
      const met = new Set<string>();
      for await (const found of reader.scan({ batch: 1000 })) met.add(found.key.toString());
      const missing = kept.filter((n) => !met.has(key(n)));
      t.deepEqual({ missing, met: met.size }, { missing: [], met: kept.length });
    }
  };
  const shrinks = statusWhen(address, ({ shards: [s] }) => indexOf(s!) <= indexMost(kept.length)).then((status) => {
    small = status.shards[0]!;
  });
  await Promise.all([shrinks, reads(writer), reads(reader), scans()]);
  t.log(`index: ${indexOf(full)} bytes, then ${indexOf(small!)}, after ${gets} GETs`);
  t.is(small!.entries, kept.length);
  t.true(small!.regions.some((r) => r.kind === 'index' && r.bytes <= indexOf(full)));
  // A client that read nothing meanwhile knows as many buckets as there were.
  await expect(idle, some(kept, 5), 1);
  await expect(idle, some(gone, 5), undefined);

  await put(all, 2);
  for (const kv of clients) for (let at = 0; at < 10; at++) await expect(kv, some(all, at * 1009), 2);
  const again = await statusWhen(address, ({ shards: [s] }) => indexOf(s!) > 2_000_000);
  t.is(again.shards[0]!.entries, ENTRIES);
});
