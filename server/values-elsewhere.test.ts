import test from 'ava';
import type { Copy, MetadataState } from '../core/metadata/state.js';
import { copy, mine, stateOf } from '../test/support/copy-states.js';
import { lackingOf, presenceOf, untilElsewhere, type Others, type Presence } from './values-elsewhere.js';

test('a copy may go where another one has as much, in a start that is there', (t) => {
  const early = (lsn: number): Partial<Copy> => ({ recovered: { epoch: 1, lsn, early: true } });
  const lacks = (
    sets: readonly (readonly Copy[])[],
    there = ['s2'],
    level = 'durable',
  ): readonly (readonly number[])[] => {
    const { alone, unconfirmed } = lackingOf(stateOf(sets, level), 's1', new Set(there));
    return [alone, unconfirmed];
  };
  const fine = [mine(), copy('in-sync')];
  t.deepEqual(lacks([fine, [copy('in-sync')], [mine(), copy('in-sync', { member: 's3' }), copy('in-sync')]]), [[], []]);
  t.deepEqual(lacks([fine, [mine()], [mine(), copy('joining')], [mine('joining')]]), [[1, 2, 3], []]);
  t.deepEqual(
    lacks([
      [mine('joining'), copy('in-sync')],
      [mine('eligible'), copy('eligible')],
    ]),
    [[], []],
  );
  t.deepEqual(lacks([fine], []), [[], [0]], 'it does not answer');
  t.deepEqual(lacks([[mine(), copy('in-sync', { start: 'before' })]]), [[], [0]], 'it has started again without it');
  t.deepEqual(lacks([[mine(), copy('in-sync', early(9))]]), [[0], []], 'it may lack what was acknowledged (--sync)');
  t.deepEqual(lacks([[mine('in-sync', early(8)), copy('in-sync', early(9))]]), [[], []]);
  t.deepEqual(lacks([[mine('in-sync', early(9)), copy('in-sync', early(8))]]), [[0], []]);
  t.deepEqual(lacks([[mine()]], ['s2'], 'replicated'), [[], []], 'those are not on disks');
  const { servers } = lackingOf(stateOf([[mine(), copy('in-sync', { member: 's3' })], fine]), 's1', new Set());
  t.deepEqual(servers, ['s2', 's3']);
});

test('only what was not found counts when a start has read its disk', (t) => {
  const state = stateOf([[mine()], [mine(), copy('in-sync')], [mine('joining')]]);
  const id = '00000000000000aa';
  const all = [0, 1].map((shard) => ({ shard, copy: id }));
  t.deepEqual(lackingOf(state, 's1', new Set(), all), { alone: [], unconfirmed: [], servers: [] });
  t.deepEqual(lackingOf(state, 's1', new Set(), []), { alone: [0], unconfirmed: [1], servers: ['s2'] });
  t.deepEqual(lackingOf(state, 's1', new Set(), [{ shard: 1, copy: id }]).alone, [0]);
  t.deepEqual(lackingOf(state, 's1', new Set(), [{ shard: 0, copy: '00000000000000bb' }]).alone, [0], 'of before');
});

test('a server that has not joined is not there', (t) => {
  t.is(presenceOf({ leaseHeld: true }), 'there');
  t.is(presenceOf({ leaseHeld: false }), 'away');
  t.is(presenceOf({}), 'away');
  t.is(presenceOf({ values: { recovering: { bytes: 1, all: 2 } } }), 'recovering');
  t.is(presenceOf({ values: { waitsFor: ['s1'] } }), 'away', 'its log is damaged, too');
});

interface Elsewhere {
  readonly others: Others;
  readonly waits: (readonly string[])[];
  readonly nowMs: () => number;
}

/** `presence`: of the others, by time in seconds. */
function elsewhere(presence: (second: number, server: string) => Presence, states: MetadataState[]): Elsewhere {
  let nowMs = 0;
  const others: Others = {
    known: () => states[0]!,
    current: () => Promise.resolve(states.length > 1 ? states.shift()! : states[0]!),
    ask: (server) => Promise.resolve(presence(nowMs / 1000, server)),
    sleep: (ms) => Promise.resolve((nowMs += ms)),
    nowMs: () => nowMs,
  };
  return { others, waits: [], nowMs: () => nowMs };
}
const wait = ({ others, waits }: Elsewhere): Promise<string | undefined> =>
  untilElsewhere(others, 's1', undefined, (servers) => waits.push(servers));
const FINE = [[mine(), copy('in-sync')]];

test('servers that lost their power too are waited for', async (t) => {
  const sets: Copy[][] = [...FINE, [mine(), copy('in-sync', { member: 's3' })]];
  const came = elsewhere((second, server) => (second >= (server === 's2' ? 3 : 5) ? 'there' : 'away'), [stateOf(sets)]);
  t.is(await wait(came), undefined);
  t.deepEqual([came.waits, came.nowMs()], [[['s2', 's3'], ['s3']], 5000]);
});

test('the metadata is looked at after the servers have answered', async (t) => {
  const gone = elsewhere(() => 'there', [stateOf([[mine()]])]);
  t.is(await wait(gone), 'No other server has all of shard 0.');
  // It joined without its copy just before it answered.
  const late = elsewhere(() => 'there', [stateOf([[mine()], [mine()]])]);
  t.is(
    await wait({ ...late, others: { ...late.others, known: () => stateOf(FINE) } }),
    'No other server has all of shards 0, 1.',
  );
});

test('the wait ends a minute after the last one has read its disk', async (t) => {
  const away = elsewhere(() => 'away', [stateOf(FINE)]);
  t.is(await wait(away), 'Other servers have all of shard 0, and are not there: start this server again when s2 is.');
  t.is(away.nowMs(), 60_000);
  const slow = elsewhere((second) => (second < 300 ? 'recovering' : second < 330 ? 'away' : 'there'), [stateOf(FINE)]);
  t.is(await wait(slow), undefined);
  t.deepEqual([slow.nowMs(), slow.waits], [330_000, [['s2']]]);
});

test('a server that is told to stop waits no longer', async (t) => {
  const away = elsewhere(() => 'away', [stateOf(FINE)]);
  const told = new Error('told to stop');
  await t.throwsAsync(wait({ ...away, others: { ...away.others, sleep: () => Promise.reject(told) } }), { is: told });
});
