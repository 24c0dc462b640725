/** By which faults an owner may lose its shards, with leases of 1,500 ms. Times in milliseconds. */
import test from 'ava';
import type { Epoch } from './epochs.js';
import { FaultLog } from './fault-log.js';
import { PermittedLosses } from './permitted-losses.js';
import { atLeast, complement, intersection, union } from './spans.js';

const NS = 1e6;
const LEASE_MS = 1500;
const epoch = (number: number, owner: string, told: number): Epoch => ({
  shard: 0,
  epoch: number,
  owner,
  toldNs: told * NS,
  sinceNs: told * NS,
});

type Fault = Parameters<FaultLog['begin']>[0];
/** Of `servers` servers s1, s2, ... */
function logOf(servers: number, faults: readonly (readonly [Fault, number, number])[]): FaultLog {
  let time = 0;
  const log = new FaultLog(
    Array.from({ length: servers }, (_, i) => `s${i + 1}`),
    () => time * NS,
  );
  for (const [fault, from, to] of faults) {
    time = from;
    const end = log.begin(fault);
    time = to;
    if (to < Infinity) end();
  }
  return log;
}
const stopped = (server: string): Fault => ({ server, kind: 'stopped' });
const dead = (server: string): Fault => ({ server, kind: 'dead' });
const apart = (a: string, b: string, from: number, to: number): (readonly [Fault, number, number])[] => [
  [{ from: a, to: b }, from, to],
  [{ from: b, to: a }, from, to],
];
/** s2 had the shard since 0, and s3 has it without its values at `told`. */
const cause = (log: FaultLog, told: number): string | undefined =>
  new PermittedLosses(log, LEASE_MS).cause(epoch(7, 's2', 0), epoch(8, 's3', told));

test('a shard that leaves an owner to which nothing happened must have its values', (t) => {
  t.is(cause(logOf(3, []), 5000), undefined);
  t.is(
    cause(
      logOf(3, [
        [dead('s1'), 3000, 4000],
        [stopped('s3'), 3000, 6000],
      ]),
      5000,
    ),
    undefined,
    'others were ended and stopped',
  );
});

test('an owner whose process was ended has lost its values, also when it has them again under the next epoch', (t) => {
  const log = logOf(3, [[dead('s2'), 3000, 3400]]);
  t.is(cause(log, 4800), 's2 was ended');
  t.is(new PermittedLosses(log, LEASE_MS).cause(epoch(7, 's2', 0), epoch(8, 's2', 4200)), 's2 was ended');
});

test('one end of a process permits one loss', (t) => {
  const losses = new PermittedLosses(logOf(3, [[dead('s2'), 3000, 3400]]), LEASE_MS);
  t.is(losses.cause(epoch(8, 's2', 4800), epoch(9, 's3', 9000)), undefined, 'it was ended before it had the shard');
  t.is(losses.cause(epoch(7, 's2', 0), epoch(8, 's3', 2900)), undefined, 'the shard was gone before it was ended');
});

test('an owner that was stopped for its lease may lose its shards, one that was stopped for less may not', (t) => {
  t.regex(cause(logOf(3, [[stopped('s2'), 3000, 5000]]), 4600) ?? '', /could not be heard/);
  t.is(cause(logOf(3, [[stopped('s2'), 3000, 3400]]), 4600), undefined);
  t.is(
    cause(logOf(3, [[stopped('s2'), 3000, 5000]]), 3500),
    undefined,
    'it was lost before the lease can have been over',
  );
  t.is(cause(logOf(3, [[stopped('s2'), 3000, 5000]]), 9000), undefined, 'it was lost long after the owner went on');
});

test('short stops one after the other are no long one', (t) => {
  t.is(
    cause(
      logOf(
        3,
        [0, 1, 2, 3].map((i) => [stopped('s2'), 3000 + 1000 * i, 3200 + 1000 * i]),
      ),
      6400,
    ),
    undefined,
  );
});

for (const [servers, paused] of [
  [3, ['s1', 's3']],
  [3, ['s1', 's2']],
  [5, ['s1', 's3', 's4']],
  [5, ['s1', 's2', 's3']],
  [4, ['s1', 's2']],
] as const) {
  test(`when ${paused.join(', ')} of ${servers} servers, a majority, are stopped together nothing may be lost, not even by one that stood still`, (t) => {
    const log = logOf(
      servers,
      paused.map((s) => [stopped(s), 3000, 7000]),
    );
    for (const told of [3500, 5000, 7000, 7300, 8500]) t.is(cause(log, told), undefined, `at ${told}`);
  });
}

test('when all servers are suspended together nothing may be lost', (t) => {
  t.is(
    cause(
      logOf(
        3,
        ['s1', 's2', 's3'].map((s) => [stopped(s), 3000, 9000]),
      ),
      9100,
    ),
    undefined,
  );
});

test('of two servers that are stopped one after the other, the first may lose its shards while the others are a majority', (t) => {
  t.is(
    cause(
      logOf(3, [
        [stopped('s2'), 3000, 9000],
        [stopped('s1'), 3600, 9000],
      ]),
      9100,
    ),
    undefined,
    'they were one for 600 ms',
  );
  t.not(
    cause(
      logOf(3, [
        [stopped('s2'), 3000, 9000],
        [stopped('s1'), 4700, 9000],
      ]),
      4600,
    ),
    undefined,
    'they were one for 1700 ms',
  );
});

test('an owner that was cut off from a majority may lose its shards, in either direction', (t) => {
  t.not(cause(logOf(3, [...apart('s2', 's1', 3000, 5000), ...apart('s2', 's3', 3000, 5000)]), 4600), undefined);
  t.not(
    cause(
      logOf(3, [
        [{ from: 's2', to: 's1' }, 3000, 5000],
        [{ from: 's2', to: 's3' }, 3000, 5000],
      ]),
      4600,
    ),
    undefined,
  );
  t.not(
    cause(
      logOf(3, [
        [{ from: 's1', to: 's2' }, 3000, 5000],
        [{ from: 's3', to: 's2' }, 3000, 5000],
      ]),
      4600,
    ),
    undefined,
  );
});

test('an owner that belongs to the majority loses nothing when others are cut off', (t) => {
  t.is(
    cause(
      logOf(
        5,
        ['s1', 's2', 's3'].flatMap((a) => ['s4', 's5'].flatMap((b) => apart(a, b, 3000, 6000))),
      ),
      5000,
    ),
    undefined,
  );
});

test('short stalls of the leader do not keep the shards of an owner that is away', (t) => {
  const stalls = [2900, 3900, 4900].map((at): readonly [Fault, number, number] => [stopped('s1'), at, at + 200]);
  t.not(cause(logOf(3, [[stopped('s2'), 3000, 6000], ...stalls]), 4600), undefined);
  t.is(cause(logOf(3, stalls), 4600), undefined);
});

test('an owner that was silent for less than its lease before a majority was stopped, and for less after it, loses nothing', (t) => {
  const paused = ['s1', 's3'].map((s): readonly [Fault, number, number] => [stopped(s), 3800, 7000]);
  t.is(cause(logOf(3, [[stopped('s2'), 3000, 7200], ...paused]), 7400), undefined);
  t.not(cause(logOf(3, [[stopped('s2'), 3000, 8200], ...paused]), 8200), undefined);
});

test('a loss of which this process heard late, because it stood still itself, is judged by when it can have happened', (t) => {
  const log = logOf(3, [[stopped('s2'), 3000, 5000]]);
  const late = epoch(8, 's3', 9000);
  t.is(new PermittedLosses(log, LEASE_MS).cause(epoch(7, 's2', 0), late), undefined);
  t.not(new PermittedLosses(log, LEASE_MS).cause(epoch(7, 's2', 0), { ...late, sinceNs: 5500 * NS }), undefined);
});

test('a shard that nobody owned had no values', (t) => {
  t.is(
    new PermittedLosses(logOf(3, []), LEASE_MS).cause({ ...epoch(7, 's2', 0), owner: undefined }, epoch(8, 's3', 5000)),
    'nobody owned it',
  );
});

test('sets of moments', (t) => {
  const span = (fromNs: number, toNs: number) => ({ fromNs, toNs });
  t.deepEqual(union([span(5, 6), span(1, 3), span(2, 4), span(4, 5)]), [span(1, 6)]);
  t.deepEqual(intersection([span(0, 10)], [span(2, 3), span(9, 12)]), [span(2, 3), span(9, 10)]);
  t.deepEqual(complement([span(2, 3)]), [span(-Infinity, 2), span(3, Infinity)]);
  t.deepEqual(atLeast(2, [[span(0, 5)], [span(3, 8)], [span(4, 6)]]), [span(3, 6)]);
  t.deepEqual(atLeast(1, [complement([span(2, 3)])]), [span(-Infinity, 2), span(3, Infinity)]);
});
