/**
 * YCSB workloads through `farkv bench`, in turn: the same property files, records and encoding for every store, none on
 * disk, one client process with one thread and the same number of operations in flight.
 */
import type { Lab } from './lab.js';
import { atLeast, interleave, part, perSecond, type Group, type Part } from './row.js';
import { median, ratios, spread } from './statistics.js';
import { farkvDatabase, ycsbRun } from './ycsb-run.js';

const RECORDS = 100_000;
const OPERATIONS = 200_000;
const OUTSTANDING = 32;
/**
 * A run that has not done its operations by then ends with those that it did: a slow machine makes the row less exact,
 * not longer.
 */
const RUN_SECONDS = 10;

export const WORKLOADS: Readonly<Record<string, string>> = {
  a: 'half reads, half updates, zipfian',
  b: '95 % reads, 5 % updates, zipfian',
  c: 'reads only, zipfian',
  d: '95 % reads, 5 % inserts, the latest most of all',
  f: 'half reads, half reads with an update, zipfian',
};

export async function ycsb(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(1000);
  const [cluster, redis, memcached] = [await s.cluster(), await s.redis(), await s.memcached()];
  const records = Math.min(RECORDS, lab.keys);
  // Namespace 1: the other rows' keys are in namespace 0.
  const farkv = (transport: string): string[] => [...farkvDatabase(cluster.addresses, transport), '--namespace', '1'];
  const toRedis = ['redis', '-p', 'redis.host=127.0.0.1', '-p', `redis.port=${redis.peer.port}`];
  const stores: readonly { readonly name: string; readonly database: readonly string[] }[] = [
    { name: 'farkv shm', database: farkv('shm') },
    { name: 'farkv tcp', database: farkv('tcp') },
    { name: 'Redis', database: toRedis },
    { name: 'memcached', database: ['memcached', '-p', `memcached.hosts=127.0.0.1:${memcached.peer.port}`] },
  ];
  const bench = async (
    phase: 'load' | 'run',
    { name, database }: (typeof stores)[number],
    workload: string,
  ): Promise<number> => {
    const { throughput } = await ycsbRun(lab.signal, name, phase, database, {
      workload,
      records,
      operations: OPERATIONS,
      outstanding: OUTSTANDING,
      seconds: RUN_SECONDS,
    });
    return throughput;
  };
  lab.note(`loading ${records.toLocaleString('en')} YCSB records`);
  // Both transports reach the same records.
  for (const store of stores.filter(({ name }) => name !== 'farkv tcp')) await bench('load', store, 'a');
  const parts: Part[] = [];
  for (const w of lab.workloads) {
    lab.note(`YCSB ${w.toUpperCase()}`);
    const measured = await interleave(
      lab,
      stores.map((store) => ({ name: store.name, run: () => bench('run', store, w) })),
    );
    const group: Group = {
      title: `YCSB ${w.toUpperCase()}: ${WORKLOADS[w] ?? ''}`,
      sides: stores.map(({ name }, i) => ({ name, rate: spread(measured[i] ?? []) })),
    };
    const [shm = [], tcp = [], r = [], m = []] = measured;
    for (const [transport, ours] of [
      ['shm', shm],
      ['tcp', tcp],
    ] as const) {
      for (const [peer, theirs] of [
        ['Redis', r],
        ['memcached', m],
      ] as const) {
        const detail = `farkv ${perSecond(median(ours))}, ${peer} ${perSecond(median(theirs))}`;
        parts.push({
          ...part(
            `YCSB ${w.toUpperCase()} over ${transport} against ${peer}`,
            atLeast(goal, 'times the throughput'),
            ratios(ours, theirs),
            detail,
          ),
          group,
        });
      }
    }
  }
  return parts;
}
