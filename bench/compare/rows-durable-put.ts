/**
 * PUTs of 100 B that are answered when they are on the disk, or some time before: farkv beside Redis with its
 * append-only file, lmdb with syncs, and farkv as a cache; three servers beside etcd. All on one disk. The keys are
 * there already.
 */
import { connect } from '../../client/index.js';
import { openFarkv, withStores, type OpenFarkv } from './copied-stores.js';
import { diskDirectory, openAppendOnlyRedis, openDurable, openSyncedLmdb, VALUE_BYTES } from './durable-stores.js';
import { openEtcd } from './etcd.js';
import { ONE_COPY } from '../demo-cluster.js';
import type { Lab } from './lab.js';
import { batches, batchRate, drawing, medianNs, rate } from './loops.js';
import { redisBenchmark } from './peers.js';
import { atLeast, atMost, interleave, nanoseconds, part, perSecond, type Goal, type Part, type Side } from './row.js';
import { inParts, keyOf, keysOf, valueOf } from './stores.js';
import { median, ratios } from './statistics.js';

type Put = (key: string, at: number) => unknown;
type Undo = (f: () => Promise<unknown>) => void;

/** At most, in a round of one side; a slow one ends when its time is over. */
export const SEQUENTIAL = 10_000;
const PUTS = 100_000;
export const LIMIT_MS = 2500;
export const SOME = 64;
const CLIENTS = 8;
const MANY = 1000;
const BATCH = MANY / CLIENTS;
/** Each as many as one client has in flight. */
const BATCHES = 160;
/** etcd takes long to load. */
const ETCD_KEYS = 10_000;

/** How both sides sync. */
export interface Syncs {
  /** Behind `put` in titles. */
  readonly name: string;
  readonly farkv: readonly string[];
  readonly redis: 'always' | 'everysec';
}
export const EVERY_CHANGE: Syncs = { name: '', farkv: [], redis: 'always' };
/** Answered before the disk has it: a loss of power loses the last 50 ms, and of Redis the last second. */
export const EARLY: Syncs = { name: ' with --sync 50ms', farkv: ['--sync', '50ms'], redis: 'everysec' };

export interface DurableGoals {
  /** Times Redis's p50. */
  readonly alone: number;
  /** Times Redis's throughput. */
  readonly redis: number;
  /** Times that of farkv as a cache. */
  readonly cache: number;
}

interface Comparison {
  readonly title: string;
  readonly unit: 'time' | 'rate';
  /** farkv's first. */
  readonly sides: readonly Side[];
  /** Against the other sides, in their order; what is behind the last goal is not compared. */
  readonly goals: readonly Goal[];
}

/** All sides in turn, and a part for each goal, with farkv as so many times that side. */
async function compared(lab: Lab, { title, unit, sides, goals }: Comparison): Promise<Part[]> {
  const measured = await interleave(lab, sides);
  const show = unit === 'time' ? nanoseconds : perSecond;
  const [ours = []] = measured;
  return goals.map((goal, i) => {
    const [peer = '', theirs = []] = [sides[i + 1]?.name, measured[i + 1]];
    const detail = `farkv ${show(median(ours))}, ${peer} ${show(median(theirs))}`;
    return part(`${title}, against ${peer}`, goal, ratios(ours, theirs), detail);
  });
}

const timeGoal = (value: number, of: string): Goal => atMost(value, `times ${of}`);
const rateGoal = (value: number, of: string): Goal => atLeast(value, `times ${of}`);

/** More clients of the same servers, so that there are CLIENTS of them. */
async function clientsOf({ cluster }: OpenFarkv, transport: 'tcp' | 'shm', undo: Undo): Promise<OpenFarkv['client'][]> {
  return await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const client = await connect({ servers: cluster.addresses, transport, strict: true });
      undo(() => client.close());
      return client;
    }),
  );
}

/** Of each operation the next of the list. */
const inTurn =
  (puts: readonly Put[]): Put =>
  (key, at) =>
    puts[at % puts.length]?.(key, at);

/** Keys that each side draws by itself, in the same order. */
function side(
  keys: readonly string[],
  name: string,
  run: (draw: (count: number) => string[]) => Promise<number>,
): Side {
  const draw = drawing(keys);
  return { name, run: () => run(draw) };
}

export function durablePuts(lab: Lab, transport: 'tcp' | 'shm', syncs: Syncs, goals: DurableGoals): Promise<Part[]> {
  return withStores(async (undo) => {
    const durable = await openDurable(lab, transport, 1, syncs.farkv, undo);
    const cache = await openFarkv(lab, transport, { servers: 1, valueBytes: VALUE_BYTES, options: ONE_COPY }, undo);
    const redis = await openAppendOnlyRedis(lab, syncs.redis, undo);
    const lmdb = await openSyncedLmdb(lab, undo);
    const [keys, value] = [keysOf(lab.keys), valueOf(VALUE_BYTES)];
    const [ours, cached] = [await clientsOf(durable, transport, undo), await clientsOf(cache, transport, undo)];
    const redises = Array.from({ length: CLIENTS }, () => {
      const client = redis.client.duplicate();
      undo(() => {
        client.disconnect();
        return Promise.resolve();
      });
      return client;
    });
    const puts = (clients: readonly OpenFarkv['client'][]): Put =>
      inTurn(clients.map((c) => (key) => c.put(key, value)));
    const stores: readonly (readonly [string, Put])[] = [
      ['farkv', puts(ours)],
      ['Redis', inTurn(redises.map((c) => (key) => c.set(key, value)))],
      ['lmdb', (key) => lmdb.put(key, value)],
      ['cache', puts(cached)],
    ];
    /** One client of each where one operation is in flight, or as many as fit one connection. */
    const alone: readonly (readonly [string, Put])[] = [
      ['farkv', (key) => durable.client.put(key, value)],
      ['Redis', (key) => redis.client.set(key, value)],
      ['lmdb', (key) => lmdb.put(key, value)],
      ['cache', (key) => cache.client.put(key, value)],
    ];
    const about = `${transport} put${syncs.name}`;
    const rates = [rateGoal(goals.redis, 'Redis'), rateGoal(1, 'lmdb'), rateGoal(goals.cache, 'the cache')];
    return [
      ...(await compared(lab, {
        title: `${about}, one at a time, p50`,
        unit: 'time',
        sides: alone.map(([name, put]) =>
          side(keys, name, (draw) => medianNs(draw(SEQUENTIAL), (key) => put(key, 0), 1, LIMIT_MS)),
        ),
        goals: [timeGoal(goals.alone, 'Redis'), timeGoal(1, 'lmdb')],
      })),
      ...(await compared(lab, {
        title: `${about}, ${SOME} outstanding`,
        unit: 'rate',
        sides: alone.map(([name, put]) => side(keys, name, (draw) => rate(draw(PUTS), SOME, put, LIMIT_MS))),
        goals: rates,
      })),
      ...(await compared(lab, {
        title: `${about}, ${MANY.toLocaleString('en')} outstanding over ${CLIENTS} clients`,
        unit: 'rate',
        sides: stores.map(([name, put]) => side(keys, name, (draw) => rate(draw(2 * PUTS), MANY, put, LIMIT_MS))),
        goals: rates,
      })),
      ...(await compared(lab, {
        title: `${about}, ${CLIENTS} clients with putMany of ${BATCH}`,
        unit: 'rate',
        sides: [
          side(keys, 'farkv', (draw) => togetherRate(ours, (count) => draw(count).map((key) => ({ key, value })))),
          {
            name: `redis-benchmark -c ${CLIENTS} -P ${BATCH}`,
            run: () =>
              redisBenchmark(
                redis.peer.port,
                keys.length,
                CLIENTS * BATCHES * BATCH,
                ['SET', 'user__rand_int__', 'v'.repeat(VALUE_BYTES)],
                { clients: CLIENTS, depth: BATCH },
              ),
          },
        ],
        goals: [rateGoal(goals.redis, 'Redis')],
      })),
    ];
  });
}

/** Each client sends one batch after the other; records per second of all. */
async function togetherRate(
  clients: readonly OpenFarkv['client'][],
  draw: (count: number) => { key: string; value: Buffer }[],
): Promise<number> {
  const work = clients.map(() => batches(draw, BATCHES, BATCH));
  const began = performance.now();
  await Promise.all(clients.map((client, i) => batchRate(work[i] ?? [], (batch) => client.putMany(batch))));
  return (clients.length * BATCHES * BATCH * 1000) / (performance.now() - began);
}

/** Three servers with values on the disks of two, against three nodes of etcd. */
export function durablePutsAgainstEtcd(
  lab: Lab,
  goals: { readonly alone: number; readonly throughput: number },
): Promise<Part[]> {
  return withStores(async (undo) => {
    const few = { ...lab, keys: Math.min(ETCD_KEYS, lab.keys) };
    const { client } = await openDurable(few, 'tcp', 3, [], undo);
    lab.note(`starting three nodes of etcd (${few.keys.toLocaleString('en')} records)`);
    const etcd = (await openEtcd(diskDirectory(undo), undo)).client;
    const [keys, value] = [keysOf(few.keys), valueOf(VALUE_BYTES)];
    await inParts(few.keys, lab.signal, (some) => rate(some, MANY, (i) => etcd.put(keyOf(i), value)));
    const stores: readonly (readonly [string, Put])[] = [
      ['farkv', (key) => client.put(key, value)],
      ['etcd', (key) => etcd.put(key, value)],
    ];
    const rates = async (outstanding: number): Promise<Part[]> =>
      await compared(lab, {
        title: `tcp put, three servers, ${outstanding.toLocaleString('en')} outstanding`,
        unit: 'rate',
        sides: stores.map(([name, put]) => side(keys, name, (draw) => rate(draw(PUTS), outstanding, put, LIMIT_MS))),
        goals: [rateGoal(goals.throughput, 'etcd')],
      });
    return [
      ...(await compared(lab, {
        title: 'tcp put, three servers, one at a time, p50',
        unit: 'time',
        sides: stores.map(([name, put]) =>
          side(keys, name, (draw) => medianNs(draw(SEQUENTIAL), (key) => put(key, 0), 1, LIMIT_MS)),
        ),
        goals: [timeGoal(goals.alone, 'etcd')],
      })),
      ...(await rates(SOME)),
      ...(await rates(MANY)),
    ];
  });
}
