/** The rows of values on disks: `--goals durable`. */
import { openFarkv, withStores } from './copied-stores.js';
import { openDurable, VALUE_BYTES } from './durable-stores.js';
import { ONE_COPY } from '../demo-cluster.js';
import type { Lab } from './lab.js';
import type { Part } from './row.js';
import { recovery, snapshotPuts, writeAmplification } from './rows-durable-disk.js';
import {
  durablePuts,
  durablePutsAgainstEtcd,
  EARLY,
  EVERY_CHANGE,
  type DurableGoals,
  type Syncs,
} from './rows-durable-put.js';
import { levelPuts } from './rows-levels.js';
import type { RowPlan } from './rows.js';
import { sameGets, sameGetTimes } from './same-gets.js';

/** Nobody but PUTs has to do with the log. */
async function durableGets(lab: Lab): Promise<Part[]> {
  const over = (transport: 'tcp' | 'shm', use: (lab: Lab, of: Parameters<typeof sameGets>[1]) => Promise<Part[]>) =>
    withStores(async (undo) => {
      const durable = await openDurable(lab, transport, 1, [], undo);
      const cache = await openFarkv(lab, transport, { servers: 1, valueBytes: VALUE_BYTES, options: ONE_COPY }, undo);
      return await use(lab, [
        { ...durable, name: 'durable' },
        { ...cache, name: 'a cache' },
      ]);
    });
  return [
    ...(await over('tcp', sameGets)),
    ...(await over('shm', async (of, sides) => [await sameGetTimes(of, 'shm', sides)])),
  ];
}

/** A row of PUTs; another way to sync is another line of DURABLE_ROWS. */
const puts = (name: string, transport: 'tcp' | 'shm', syncs: Syncs, goals: DurableGoals): RowPlan => ({
  name,
  theme: 'PUTs',
  work: `${transport} put${syncs.name}, 100 B, on the disk of one server, against Redis appendfsync ${syncs.redis}, lmdb with sync and a cache`,
  needs: ['redis-server', 'redis-benchmark'],
  measure: { durable: (lab) => durablePuts(lab, transport, syncs, goals) },
});

const GOALS: DurableGoals = { alone: 1, redis: 2, cache: 0.5 };

export const DURABLE_ROWS: readonly RowPlan[] = [
  puts('durable-put-tcp', 'tcp', EVERY_CHANGE, GOALS),
  puts('durable-put-shm', 'shm', EVERY_CHANGE, GOALS),
  puts('durable-put-early-tcp', 'tcp', EARLY, GOALS),
  {
    name: 'durable-put-etcd',
    theme: 'PUTs',
    work: 'tcp put, 100 B, three servers, on the disks of two, against three nodes of etcd',
    needs: ['etcd'],
    measure: { durable: (lab) => durablePutsAgainstEtcd(lab, { alone: 0.5, throughput: 10 }) },
  },
  {
    name: 'level-put',
    theme: 'PUTs',
    work: 'tcp put, 100 B, three servers of each level: cache, replicated, durable --sync 50ms, durable',
    needs: [],
    measure: { durable: (lab) => levelPuts(lab, { replicated: 3, early: { time: 1.25, rate: 0.8 } }) },
  },
  {
    name: 'durable-get',
    theme: 'GETs',
    work: 'tcp and shm get, 100 B, durable against a cache: READs, p50, server CPU',
    needs: [],
    measure: { durable: durableGets },
  },
  {
    name: 'durable-recovery',
    theme: 'Servers',
    work: 'a killed server until it serves again, values of 100 B and 1,000 B, against reading its files',
    needs: [],
    measure: { durable: (lab) => recovery(lab, { seconds: 1.5, times: 1.3 }) },
  },
  {
    name: 'durable-snapshot-put',
    theme: 'PUTs',
    work: 'tcp put, 1,000 B, 16 outstanding, p99 while a snapshot is written against without',
    needs: [],
    measure: { durable: (lab) => snapshotPuts(lab, 1.5) },
  },
  {
    name: 'durable-write-amplification',
    theme: 'Servers',
    work: 'bytes written to the disk per byte of key and value put, YCSB A, snapshots included',
    needs: [],
    measure: { durable: (lab) => writeAmplification(lab, 2.5) },
  },
];
