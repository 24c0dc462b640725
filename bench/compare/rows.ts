/**
 * The rows of the comparison: what is measured, under a name that stays, and the goals. Three sets of goals: `main`,
 * those of the first version, over 100,000 keys; `peers`, those of being ahead of every peer, over 1,000,000; and
 * `durable`, those of values on disks (rows-durable.ts). The workloads of the first two are the same.
 */
import type { Lab } from './lab.js';
import type { Program } from './peers.js';
import type { Part, Theme } from './row.js';
import { clientProcesses, cpuPerGet, serverShare } from './rows-cpu.js';
import {
  getIntoAgainstC,
  getIntoAgainstLmdb,
  getManyAgainstC,
  getManyIntoAgainstC,
  getOfTenTimesTheKeys,
  sequentialGet,
  sequentialGetAgainstMemcached,
  tcpThroughput,
  throughputAgainstMemcached,
} from './rows-get.js';
import { copiedGets, copiedMemory, copiedPuts, copiedPutsAgainstRedis } from './rows-copies.js';
import { DURABLE_ROWS } from './rows-durable.js';
import { encryptedGets } from './rows-encrypted.js';
import { listeners } from './rows-listeners.js';
import { memoryAgainstMemcached, memoryPerEntry } from './rows-memory.js';
import { outstandingPuts, putManyAgainstRedis, putRate, sequentialPut } from './rows-put.js';
import { oneProcessor } from './rows-one-processor.js';
import { readsPerGet } from './rows-reads.js';
import { scrapes } from './rows-scrapes.js';
import { ycsb } from './rows-ycsb.js';

export const GOAL_SETS = ['peers', 'main', 'durable'] as const;
export type GoalSet = (typeof GOAL_SETS)[number];
export const KEYS: Readonly<Record<GoalSet, number>> = { main: 100_000, peers: 1_000_000, durable: 100_000 };
/** The documents that have the figures. */
export const DOCUMENTS: Readonly<Partial<Record<GoalSet, string>>> = {
  peers: 'bench/README.md',
  durable: 'bench/durable.md',
};

export interface RowPlan {
  readonly name: string;
  readonly theme: Theme;
  readonly work: string;
  /** What must be installed. */
  readonly needs: readonly Program[];
  /** Measures with the goals of a set; a set without an entry has no such row. */
  readonly measure: Readonly<Partial<Record<GoalSet, (lab: Lab) => Promise<Part[]>>>>;
}

const REDIS: readonly Program[] = ['redis-server'];
const REDIS_BENCHMARK: readonly Program[] = ['redis-server', 'redis-benchmark'];
const MEMCACHED: readonly Program[] = ['memcached'];
const C: readonly Program[] = ['gcc', 'make'];

/** Rows over values of the same size stand together: the stores are loaded once for them. */
export const ROWS: readonly RowPlan[] = [
  {
    name: 'shm-getinto-lmdb',
    theme: 'GETs',
    work: 'shm getInto, 1,000 B, uniform, against lmdb getBinaryFast',
    needs: [],
    measure: { main: (lab) => getIntoAgainstLmdb(lab, 2), peers: (lab) => getIntoAgainstLmdb(lab, 3) },
  },
  {
    name: 'shm-getinto-c-loop',
    theme: 'GETs',
    work: 'shm getInto, 1,000 B, uniform, against a C loop over the same region',
    needs: C,
    measure: { main: (lab) => getIntoAgainstC(lab, 2), peers: (lab) => getIntoAgainstC(lab, 1.4) },
  },
  {
    name: 'shm-get-p50',
    theme: 'GETs',
    work: 'shm await get, 1,000 B, one at a time, p50, against ioredis',
    needs: REDIS,
    measure: { main: (lab) => sequentialGet(lab, 'shm', 10), peers: (lab) => sequentialGet(lab, 'shm', 25) },
  },
  {
    name: 'tcp-get-p50',
    theme: 'GETs',
    work: 'tcp await get, 1,000 B, one at a time, p50, against ioredis',
    needs: REDIS,
    measure: { main: (lab) => sequentialGet(lab, 'tcp', 1), peers: (lab) => sequentialGet(lab, 'tcp', 1.3) },
  },
  {
    name: 'tcp-get-throughput',
    theme: 'GETs',
    work: 'tcp get, 1,000 B, 100 outstanding, against ioredis; getMany of 100 against redis-benchmark',
    needs: REDIS_BENCHMARK,
    measure: { main: (lab) => tcpThroughput(lab, 2), peers: (lab) => tcpThroughput(lab, 4, 1.3) },
  },
  {
    name: 'memcached-get-p50',
    theme: 'GETs',
    work: 'shm and tcp await get, 1,000 B, one at a time, p50, against memcached',
    needs: MEMCACHED,
    measure: { main: sequentialGetAgainstMemcached },
  },
  {
    name: 'memcached-get-throughput',
    theme: 'GETs',
    work: 'shm and tcp get, 1,000 B, 100 outstanding, against memcached',
    needs: MEMCACHED,
    measure: { main: throughputAgainstMemcached },
  },
  {
    name: 'encrypted-get',
    theme: 'GETs',
    work: 'tcp with TLS: get, 1,000 B, one at a time and 100 outstanding, against clear text, and Redis and memcached with TLS',
    needs: [...REDIS, ...MEMCACHED],
    measure: { main: encryptedGets },
  },
  {
    name: 'server-cpu-share',
    theme: 'Servers',
    work: 'server CPU during ten seconds of GETs over shm',
    needs: [],
    measure: { main: (lab) => serverShare(lab, 2) },
  },
  {
    name: 'server-cpu-per-get',
    theme: 'Servers',
    work: 'server CPU a GET over shm; over tcp against Redis',
    needs: REDIS,
    measure: { peers: (lab) => cpuPerGet(lab, 1 / 3) },
  },
  {
    name: 'client-processes',
    theme: 'Servers',
    work: 'server CPU with 1, 2, 4, 8 and 16 client processes over shm',
    needs: [],
    measure: { peers: (lab) => clientProcesses(lab, 1) },
  },
  {
    name: 'scrapes',
    theme: 'Servers',
    work: 'tcp put and get, 100 B, 64 outstanding, while metrics are asked for each second; processor time of an answer',
    needs: [],
    measure: { peers: (lab) => scrapes(lab, { share: 0.99, time: 1.01, ms: 10 }) },
  },
  {
    name: 'reads-per-get',
    theme: 'READs',
    work: 'READs a GET with a location cache, after warm-up',
    needs: [],
    measure: { peers: (lab) => readsPerGet(lab, [1.2, 1.45, 1.93, 2.02]) },
  },
  {
    name: 'ycsb',
    theme: 'YCSB',
    work: 'YCSB A, B, C, D, F over shm and over tcp against Redis and memcached',
    needs: [...REDIS, ...MEMCACHED],
    measure: { peers: (lab) => ycsb(lab, 1) },
  },
  {
    name: 'shm-getmany-c-loop',
    theme: 'GETs',
    work: 'shm getMany of 100, 100 B, against a C loop over the same region without prefetch, a key',
    needs: C,
    measure: { peers: (lab) => getManyAgainstC(lab, 1) },
  },
  {
    name: 'shm-getmanyinto-c-loop',
    theme: 'GETs',
    work: 'shm getManyInto of 100, 100 B, against the same loop, a key',
    needs: C,
    measure: { peers: (lab) => getManyIntoAgainstC(lab, 1) },
  },
  {
    name: 'listeners',
    theme: 'GETs',
    work: 'shm getIntoSync, get and getMany, 100 B, processor time of a call when nobody listens, and with `latencies`',
    needs: [],
    measure: { peers: (lab) => listeners(lab, 1.01) },
  },
  {
    name: 'shm-put-p50',
    theme: 'PUTs',
    work: 'shm put, 100 B, one at a time, p50, against ioredis SET',
    needs: REDIS,
    measure: { peers: (lab) => sequentialPut(lab, 4) },
  },
  {
    name: 'shm-put-throughput',
    theme: 'PUTs',
    work: 'shm put, 100 B, 64 outstanding, against ioredis',
    needs: REDIS,
    measure: { peers: (lab) => outstandingPuts(lab, 4) },
  },
  {
    name: 'one-processor',
    theme: 'PUTs',
    work: 'shm put, tcp get and put, 100 B, one at a time, p50, client and servers on one processor, against ioredis',
    needs: REDIS,
    measure: { peers: (lab) => oneProcessor(lab, 4) },
  },
  {
    name: 'shm-put-rate',
    theme: 'PUTs',
    work: 'shm put, 100 B, 64 outstanding',
    needs: [],
    measure: { main: (lab) => putRate(lab, 300_000) },
  },
  {
    name: 'shm-putmany-throughput',
    theme: 'PUTs',
    work: 'shm putMany of 100, 100 B, against redis-benchmark SET -c 1 -P 100',
    needs: REDIS_BENCHMARK,
    measure: { peers: (lab) => putManyAgainstRedis(lab, 1.5) },
  },
  {
    name: 'get-p50-ten-times-the-keys',
    theme: 'GETs',
    work: 'shm await get, 100 B, p50, with ten times the keys',
    needs: [],
    measure: { peers: (lab) => getOfTenTimesTheKeys(lab, 1.5) },
  },
  {
    name: 'memory-per-entry',
    theme: 'Memory',
    work: 'memory an entry beyond key and value, index included, and against Redis used_memory',
    needs: REDIS,
    measure: { main: (lab) => memoryPerEntry(lab, 80, false), peers: (lab) => memoryPerEntry(lab, 80, true) },
  },
  {
    name: 'memcached-memory-per-entry',
    theme: 'Memory',
    work: 'memory an entry beyond key and value against memcached',
    needs: MEMCACHED,
    measure: { main: memoryAgainstMemcached },
  },
  {
    name: 'two-copies-put-tcp',
    theme: 'PUTs',
    work: 'tcp put, 100 B, one at a time and 64 outstanding, two copies against one',
    needs: [],
    measure: { peers: (lab) => copiedPuts(lab, 'tcp', { alone: 1.6, throughput: 0.6, together: 1.5 }) },
  },
  {
    name: 'two-copies-put-shm',
    theme: 'PUTs',
    work: 'shm put, 100 B, one at a time and 64 outstanding, two copies against one, links over shm',
    needs: [],
    measure: { peers: (lab) => copiedPuts(lab, 'shm', { alone: 2, throughput: 0.5 }) },
  },
  {
    name: 'two-copies-put-redis',
    theme: 'PUTs',
    work: 'tcp put, 100 B, two copies, against Redis SET + WAIT 1 with one replica',
    needs: REDIS,
    measure: { peers: (lab) => copiedPutsAgainstRedis(lab, { alone: 0.5, throughput: 3 }) },
  },
  {
    name: 'two-copies-get',
    theme: 'GETs',
    work: 'tcp get, 100 B, two copies against one: READs, p50, server CPU',
    needs: [],
    measure: { peers: copiedGets },
  },
  {
    name: 'two-copies-memory',
    theme: 'Memory',
    work: 'memory of all servers, 100 B, two copies against one',
    needs: [],
    measure: { peers: (lab) => copiedMemory(lab, 2.04) },
  },
  ...DURABLE_ROWS,
];
