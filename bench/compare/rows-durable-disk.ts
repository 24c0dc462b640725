/**
 * What values on a disk cost beside PUTs: how long a killed server takes to serve them again, what PUTs notice of a
 * snapshot, and how many bytes are written per byte that is put. One server.
 */
import { existsSync, readdirSync, statSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '../../client/index.js';
import { Cluster } from '../../test/support/cluster.js';
import { asked } from '../copies/status.js';
import { diskProblem, readSpeed, writtenBytes } from '../disk.js';
import { recordBytes } from '../ycsb/record.js';
import { KeyNames } from '../ycsb/key-name.js';
import { withStores } from './copied-stores.js';
import type { Lab } from './lab.js';
import { drawing } from './loops.js';
import { number } from './report.js';
import { atMost, interleave, part, type Part, type Side } from './row.js';
import { inParts, keyOf, keysOf, memoryFor, valueOf, type FarkvClient } from './stores.js';
import { median, quantile } from './statistics.js';
import { farkvDatabase, ycsbRun } from './ycsb-run.js';

type Undo = (f: () => Promise<unknown>) => void;

/** A recovered server has so many times the keys of the other rows. */
const MORE_KEYS = 10;
/** The server's own default; the cluster's own is longer. */
const OWNER_LEASE_MS = 800;
/** A busy disk answers late: what it takes is measured, and no error. */
const ANSWER_MS = 60_000;
const LOOK_MS = 500;
const SETTLED_MS = 120_000;

const gb = (bytes: number): string => `${number(bytes / 1e9)} GB`;
const seconds = (value: number): string => `${value.toFixed(2)} s`;

async function startOne(count: number, valueBytes: number, undo: Undo): Promise<Cluster> {
  const cluster = await Cluster.start(
    { teardown: (end) => undo(() => Promise.resolve(end())) },
    {
      level: 'durable',
      memory: `${memoryFor(count, valueBytes)}b`,
      args: ['--owner-lease-ms', String(OWNER_LEASE_MS), '--transport', 'tcp'],
    },
  );
  const problem = diskProblem(cluster.directory);
  if (problem !== undefined) throw new Error(problem);
  return cluster;
}

const valuesOf = (cluster: Cluster): string => join(cluster.server(0).dataDir, 'values');
const isSnapshot = (name: string): boolean => name.startsWith('snapshot-');

async function withClient<T>(cluster: Cluster, use: (client: FarkvClient) => Promise<T>): Promise<T> {
  const client = await connect({ servers: cluster.addresses, transport: 'tcp', strict: true, timeoutMs: ANSWER_MS });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

const load = (lab: Lab, client: FarkvClient, count: number, value: Buffer): Promise<void> =>
  inParts(count, lab.signal, (some) => client.putMany(some.map((i) => ({ key: keyOf(i), value }))));

/** Bytes of the log's files, whole, and those of snapshots. */
async function bytesOf(cluster: Cluster): Promise<{ readonly log: number; readonly snapshots: number }> {
  const { members } = await asked(cluster.addresses, (c) => c.status());
  const logs = members.flatMap(({ node }) => node?.dataPlane?.workers ?? []).flatMap(({ log }) => log?.bytes ?? 0);
  const sizes = readdirSync(valuesOf(cluster))
    .filter(isSnapshot)
    .map((name) => statSync(join(valuesOf(cluster), name), { throwIfNoEntry: false })?.size ?? 0);
  return { log: logs.reduce((a, b) => a + b, 0), snapshots: sizes.reduce((a, b) => a + b, 0) };
}

/** Until no snapshot is written any more, and nothing of the log given back. */
async function settled(lab: Lab, cluster: Cluster): Promise<void> {
  const look = async (): Promise<string> => JSON.stringify([readdirSync(valuesOf(cluster)), await bytesOf(cluster)]);
  const until = performance.now() + SETTLED_MS;
  let before = '';
  for (let now = await look(); now !== before; now = await look()) {
    if (performance.now() > until) throw new Error('snapshots did not come to an end');
    before = now;
    await sleep(LOOK_MS, undefined, { signal: lab.signal });
  }
}

/** kill -9, and the seconds from the next start to the answer to a GET. */
async function restart(cluster: Cluster, key?: string, value?: Buffer): Promise<number> {
  const server = cluster.server(0);
  await server.kill();
  const began = performance.now();
  await server.start();
  const got = await withClient(cluster, (client) => client.get(key ?? 'nothing'));
  if (value !== undefined && got?.equals(value) !== true) throw new Error('a value is not there after the start');
  return (performance.now() - began) / 1000;
}

interface RecoveryGoals {
  /** Of values of 100 B. */
  readonly seconds: number;
  /** Beyond a server without values, times the time in which the disk reads the files, of values of 1,000 B. */
  readonly times: number;
}

/** From now on starts do not wait for clients' leases: those of a run count in the next one. */
async function withShortLeases(cluster: Cluster): Promise<void> {
  const server = cluster.server(0);
  server.args = [...server.args, '--lease-ms', '100'];
  await restart(cluster);
}

async function recoveryOf(lab: Lab, valueBytes: number, goals: RecoveryGoals, empty: Cluster): Promise<Part[]> {
  return await withStores(async (undo) => {
    const [count, value] = [MORE_KEYS * lab.keys, valueOf(valueBytes)];
    const what = `recovery of ${count.toLocaleString('en')} x ${valueBytes.toLocaleString('en')} B`;
    lab.note(`loading a durable server: ${what}`);
    const cluster = await startOne(count, valueBytes, undo);
    await withClient(cluster, (client) => load(lab, client, count, value));
    await settled(lab, cluster);
    const { log, snapshots } = await bytesOf(cluster);
    const restarts: Side = { name: 'recovery', run: () => restart(cluster, keyOf(count - 1), value) };
    const [withLeases = []] = await interleave(lab, [restarts]);
    await withShortLeases(cluster);
    const [times = [], nothing = [], speeds = []] = await interleave(lab, [
      restarts,
      { name: 'empty', run: () => restart(empty) },
      // A start makes files for the future, so the disk may have to do beside it.
      { name: 'disk', run: () => readSpeed(valuesOf(cluster)) },
    ]);
    const bytes = log + snapshots;
    const detail = `${seconds(median(times))}, a server without values ${seconds(median(nothing))}; log ${gb(log)}, snapshots ${gb(snapshots)}, the disk reads ${gb(median(speeds))}/s`;
    const untilServed = (title: string, taken: readonly number[]): Part =>
      part(title, atMost(goals.seconds, 's'), taken, detail);
    return valueBytes > 100
      ? [
          part(
            what,
            atMost(goals.times, 'times reading its files'),
            times.map((time, i) => ((time - (nothing[i] ?? 0)) * (speeds[i] ?? 0)) / bytes),
            detail,
          ),
        ]
      : [untilServed(what, times), untilServed(`${what}, leases of clients as by default`, withLeases)];
  });
}

export function recovery(lab: Lab, goals: RecoveryGoals): Promise<Part[]> {
  return withStores(async (undo) => {
    const empty = await startOne(1, 0, undo);
    await withShortLeases(empty);
    return [...(await recoveryOf(lab, 100, goals, empty)), ...(await recoveryOf(lab, 1000, goals, empty))];
  });
}

const SNAPSHOT_VALUE_BYTES = 1000;
const LANES = 16;
/** PUTs of a round of either kind, at least. */
const SAMPLES = 3000;
const ROUND_MS = 120_000;

interface Latencies {
  readonly during: number[];
  readonly without: number[];
}

/** PUTs in LANES lanes until there are enough with a snapshot under way, and enough without. */
async function putsOfRound(
  lab: Lab,
  client: FarkvClient,
  draw: () => string,
  value: Buffer,
  snapshots: () => boolean,
): Promise<Latencies> {
  const found: Latencies = { during: [], without: [] };
  const until = performance.now() + ROUND_MS;
  const enough = (): boolean => found.during.length >= SAMPLES && found.without.length >= SAMPLES;
  const lane = async (): Promise<void> => {
    while (!enough()) {
      lab.signal.throwIfAborted();
      const [key, before, began] = [draw(), snapshots(), performance.now()];
      await client.put(key, value);
      const ended = performance.now();
      found[before || snapshots() ? 'during' : 'without'].push(ended - began);
      if (ended > until) throw new Error(`no snapshot began and ended within ${ROUND_MS} ms`);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return found;
}

export function snapshotPuts(lab: Lab, goal: number): Promise<Part[]> {
  return withStores(async (undo) => {
    const value = valueOf(SNAPSHOT_VALUE_BYTES);
    const cluster = await startOne(lab.keys, SNAPSHOT_VALUE_BYTES, undo);
    return await withClient(cluster, async (client) => {
      await load(lab, client, lab.keys, value);
      const directory = valuesOf(cluster);
      const written = new Set<string>();
      let count = 0;
      const watcher = watch(directory, (_, name) => {
        if (name?.endsWith('-new') !== true || !isSnapshot(name)) return;
        if (existsSync(join(directory, name))) {
          if (!written.has(name)) count++;
          written.add(name);
        } else {
          written.delete(name);
        }
      });
      try {
        const [draws, keys] = [drawing(keysOf(lab.keys)), (): string => draws(1)[0] ?? ''];
        const rounds: Latencies[] = [];
        while (rounds.length <= lab.rounds)
          rounds.push(await putsOfRound(lab, client, keys, value, () => written.size > 0));
        const measured = rounds.slice(1);
        const p99 = (of: (round: Latencies) => readonly number[]): number[] =>
          measured.map((r) => quantile(of(r), 0.99));
        const [during, without] = [p99((r) => r.during), p99((r) => r.without)];
        const p50 = (of: (round: Latencies) => readonly number[]): string =>
          `${median(measured.map((r) => quantile(of(r), 0.5))).toFixed(2)} ms`;
        return [
          part(
            `tcp put, ${SNAPSHOT_VALUE_BYTES.toLocaleString('en')} B, ${LANES} outstanding, p99 during a snapshot`,
            atMost(goal, 'times that without'),
            during.map((time, i) => time / (without[i] ?? Number.NaN)),
            `during ${median(during).toFixed(2)} ms (p50 ${p50((r) => r.during)}), without ${median(without).toFixed(2)} ms (p50 ${p50((r) => r.without)}); ${count} snapshots`,
          ),
        ];
      } finally {
        watcher.close();
      }
    });
  });
}

const FIELDS = 10;
const FIELD_BYTES = 100;
const OUTSTANDING = 32;
/** More than are done in the time. */
const OPERATIONS = 1_000_000_000;

/** Once, for as long as `--write-seconds` says: the log is given back and snapshots are written meanwhile. */
export function writeAmplification(lab: Lab, goal: number): Promise<Part[]> {
  return withStores(async (undo) => {
    const value = recordBytes(Array.from({ length: FIELDS }, () => FIELD_BYTES));
    const cluster = await startOne(lab.keys, value, undo);
    const names = new KeyNames(false, 1, lab.keys);
    let keyBytes = 0;
    for (let i = 0; i < lab.keys; i++) keyBytes += names.of(i).length;
    const database = farkvDatabase(cluster.addresses, 'tcp');
    const run = {
      workload: 'a',
      records: lab.keys,
      operations: OPERATIONS,
      outstanding: OUTSTANDING,
      seconds: lab.writeSeconds,
    };
    await ycsbRun(lab.signal, 'farkv', 'load', database, run);
    await settled(lab, cluster);
    lab.note(`YCSB A for ${lab.writeSeconds} s`);
    const { pid } = cluster.server(0);
    const before = writtenBytes(pid);
    const { series, throughput } = await ycsbRun(lab.signal, 'farkv', 'run', database, run);
    await settled(lab, cluster);
    const written = writtenBytes(pid) - before;
    const puts = series.find(({ name }) => name === 'UPDATE')?.operations ?? 0;
    const given = puts * (value + keyBytes / lab.keys);
    return [
      part(
        `bytes written per byte put, YCSB A for ${lab.writeSeconds} s`,
        atMost(goal, 'times'),
        [written / given],
        `${gb(written)} written, ${gb(given)} put in ${puts.toLocaleString('en')} updates, ${Math.round(throughput).toLocaleString('en')} operations/s`,
      ),
    ];
  });
}
