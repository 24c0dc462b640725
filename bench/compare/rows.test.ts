import test from 'ava';
import { readOptions } from './options.js';
import { KEYS, ROWS, type GoalSet } from './rows.js';

const names = (set: GoalSet): string[] =>
  ROWS.filter((row) => row.measure[set] !== undefined)
    .map((row) => row.name)
    .sort();

test('the rows of each set of goals keep their names', (t) => {
  t.deepEqual(names('peers'), [
    'client-processes',
    'get-p50-ten-times-the-keys',
    'listeners',
    'memory-per-entry',
    'one-processor',
    'reads-per-get',
    'scrapes',
    'server-cpu-per-get',
    'shm-get-p50',
    'shm-getinto-c-loop',
    'shm-getinto-lmdb',
    'shm-getmany-c-loop',
    'shm-getmanyinto-c-loop',
    'shm-put-p50',
    'shm-put-throughput',
    'shm-putmany-throughput',
    'tcp-get-p50',
    'tcp-get-throughput',
    'two-copies-get',
    'two-copies-memory',
    'two-copies-put-redis',
    'two-copies-put-shm',
    'two-copies-put-tcp',
    'ycsb',
  ]);
  t.deepEqual(names('main'), [
    'encrypted-get',
    'memcached-get-p50',
    'memcached-get-throughput',
    'memcached-memory-per-entry',
    'memory-per-entry',
    'server-cpu-share',
    'shm-get-p50',
    'shm-getinto-c-loop',
    'shm-getinto-lmdb',
    'shm-put-rate',
    'tcp-get-p50',
    'tcp-get-throughput',
  ]);
  t.deepEqual(names('durable'), [
    'durable-get',
    'durable-put-early-tcp',
    'durable-put-etcd',
    'durable-put-shm',
    'durable-put-tcp',
    'durable-recovery',
    'durable-snapshot-put',
    'durable-write-amplification',
    'level-put',
  ]);
  t.is(new Set(ROWS.map((row) => row.name)).size, ROWS.length);
});

test('what is not said follows from the goals', async (t) => {
  t.like(await readOptions([]), {
    goals: 'peers',
    keys: KEYS.peers,
    rounds: 5,
    servers: 1,
    only: undefined,
    workloads: ['a', 'b', 'c', 'd', 'f'],
    timeLimitMinutes: 90,
  });
  t.like(await readOptions(['--goals', 'main']), { goals: 'main', keys: KEYS.main });
  t.like(await readOptions(['--goals', 'main', '--keys', '20000', '--ycsb', 'A,d', '--time-limit', '5']), {
    keys: 20_000,
    workloads: ['a', 'd'],
    timeLimitMinutes: 5,
  });
});

test('a workload that needs scans is refused', async (t) => {
  await t.throwsAsync(readOptions(['--ycsb', 'a,e']), { message: /--ycsb: e is none of a, b, c, d, f/ });
});
