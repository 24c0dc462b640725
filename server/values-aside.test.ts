import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Copy, MetadataState } from '../core/metadata/state.js';
import { EarlyMark } from './early-mark.js';
import type { Log } from './log.js';
import { lackingOf, startsWith, type Others } from './values-aside.js';

const DAMAGED = Object.assign(new Error('the log cannot be gone on with: 0-1: damaged at 4096'), {
  code: 'ERR_CORRUPT',
});

/** Of server s2, unless named. `start`: the one that the metadata names is 'now'. */
const copy = (state: Copy['state'], { member = 's2', start = 'now', ...more }: Partial<Copy> = {}): Copy =>
  ({ member, start, id: '00000000000000aa', state, ...more }) as Copy;
const mine = (state: Copy['state'] = 'in-sync', more: Partial<Copy> = {}): Copy =>
  copy(state, { member: 's1', ...more });

function stateOf(sets: readonly (readonly Copy[])[], level = 'durable'): MetadataState {
  return {
    policies: [{ level }],
    tenants: [],
    members: new Map(['s1', 's2', 's3'].map((id) => [id, { id, incarnation: 'now' }])),
    shards: sets.map((_, shard) => ({ shard })),
    copySets: sets.map((copies) => ({ copies })),
  } as unknown as MetadataState;
}

test('a copy may go where another one has as much, in a start that is there', (t) => {
  const early = (lsn: number): Partial<Copy> => ({ recovered: { epoch: 1, lsn, early: true } });
  const lacks = (
    sets: readonly (readonly Copy[])[],
    holding = ['s2'],
    level = 'durable',
  ): readonly (readonly number[])[] => {
    const { alone, unconfirmed } = lackingOf(stateOf(sets, level), 's1', new Set(holding));
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

interface Start {
  readonly directory: string;
  readonly aside: string;
  /** What was there when the data plane was started, each time. */
  readonly seen: string[][];
  readonly said: string[];
  readonly early: EarlyMark;
  /** The first start fails with `error`. */
  readonly begin: (error: Error, state?: MetadataState, others?: Partial<Others>) => Promise<string>;
}

function fixture(t: ExecutionContext): Start {
  const parent = mkdtempSync(join(tmpdir(), 'farkv-aside-'));
  t.teardown(() => rmSync(parent, { recursive: true }));
  const directory = join(parent, 'values');
  mkdirSync(directory);
  writeFileSync(join(directory, '0-1'), 'log');
  writeFileSync(join(directory, 'early'), '');
  const early = new EarlyMark(directory);
  const seen: string[][] = [];
  const said: string[] = [];
  const say = (text: string): unknown => said.push(text);
  const log = { error: say, warn: say } as unknown as Log;
  const begin: Start['begin'] = (error, state = stateOf([[mine(), copy('in-sync')]]), others = {}) => {
    let starts = 0;
    const all: Others = {
      current: () => Promise.resolve(state),
      holdsLease: (server) => Promise.resolve(server === 's2'),
      sleep: () => Promise.reject(new Error('nobody is waited for')),
      ...others,
    };
    return startsWith({ log: { directory }, early }, { id: 's1', others: all, log }, () => {
      seen.push(readdirSync(directory));
      return starts++ === 0 ? Promise.reject(error) : Promise.resolve('started');
    });
  };
  return { directory, aside: `${directory}.damaged`, seen, said, early, begin };
}

test('a damaged log is put aside where others have what is in it, and nothing is removed', async (t) => {
  const { directory, aside, seen, said, early, begin } = fixture(t);
  t.true(early.found);
  t.is(await begin(DAMAGED), 'started');
  t.deepEqual(seen, [['0-1', 'early'], []]);
  t.deepEqual(readdirSync(aside), ['0-1', 'early']);
  t.is(said.length, 1);
  t.true(said[0]?.startsWith(`${directory}: the log cannot be gone on with: 0-1: damaged at 4096. Other servers have`));
  t.regex(said[0] ?? '', new RegExp(`it is put aside as ${aside}, .*remove ${aside} when farkv status shows`));
  // The mark is that of the other log.
  t.false(early.found);
  early.begins(50);
  early.ended(true);
  t.deepEqual(readdirSync(directory), []);
});

test('it stays, and the server ends, where a shard is nowhere else', async (t) => {
  const { directory, aside, seen, begin } = fixture(t);
  await t.throwsAsync(begin(DAMAGED, stateOf([[mine(), copy('in-sync')], [mine()]])), {
    code: 'ERR_DATA_DIR',
    message:
      /damaged at 4096\. No other server has all of shard 1\. Put back what this server wrote there\. Or, to go on/,
  });
  await t.throwsAsync(begin(DAMAGED, stateOf([[mine()], [mine()]])), {
    message: /No other server has all of shards 0, 1\. Put back/,
  });
  t.is(seen.length, 2);
  t.deepEqual(readdirSync(directory), ['0-1', 'early']);
  t.false(existsSync(aside));
});

test('servers that lost their power too are waited for', async (t) => {
  const { aside, said, begin } = fixture(t);
  let looks = 0;
  const comes: Partial<Others> = {
    holdsLease: (server) => Promise.resolve(server === 's2' && looks === 3),
    sleep: () => Promise.resolve(t.false(existsSync(aside), String((looks += 1)))),
  };
  t.is(await begin(DAMAGED, undefined, comes), 'started');
  t.is(looks, 3);
  t.deepEqual([said.length, existsSync(aside)], [2, true]);
  t.regex(said[0] ?? '', /damaged at 4096\. Waiting for s2 to be there with what was in it$/);
});

test('the metadata is looked at after the servers have answered', async (t) => {
  const { aside, begin } = fixture(t);
  const states = [stateOf([[mine(), copy('in-sync')]]), stateOf([[mine()]])];
  const current = (): Promise<MetadataState> => Promise.resolve(states.shift() ?? stateOf([[mine()]]));
  await t.throwsAsync(begin(DAMAGED, undefined, { current }), { message: /No other server has all of shard 0/ });
  t.false(existsSync(aside));
});

test('the wait ends, and so does the server', async (t) => {
  const { aside, begin } = fixture(t);
  const away: Partial<Others> = { holdsLease: () => Promise.resolve(false), sleep: () => Promise.resolve() };
  await t.throwsAsync(begin(DAMAGED, undefined, away), {
    code: 'ERR_DATA_DIR',
    message: /Other servers have all of shard 0, and are not there: start this server again when s2 is\. Put back/,
  });
  const told = new Error('told to stop');
  await t.throwsAsync(begin(DAMAGED, undefined, { ...away, sleep: () => Promise.reject(told) }), { is: told });
  t.false(existsSync(aside));
});

test('a second damage waits for an operator', async (t) => {
  const { directory, aside, begin } = fixture(t);
  await begin(DAMAGED);
  writeFileSync(join(directory, '0-2'), 'log');
  await t.throwsAsync(begin(DAMAGED), {
    code: 'ERR_DATA_DIR',
    message: new RegExp(`A damaged log was put aside before, as ${aside}: look at the disk\\. Put back`),
  });
  t.deepEqual([readdirSync(directory), readdirSync(aside)], [['0-2'], ['0-1', 'early']]);
});

test('what cannot be put aside is said with the damage', async (t) => {
  const { directory, aside, begin } = fixture(t);
  // It lies on another disk.
  renameSync(directory, `${directory}-there`);
  symlinkSync(`${directory}-there`, directory);
  await t.throwsAsync(begin(DAMAGED), {
    code: 'ERR_DATA_DIR',
    message: /damaged at 4096\. It is not put aside, since it is a link\. Put/,
  });
  t.false(existsSync(aside));
});

test("the log of another server, and what is not the log's fault, is left alone", async (t) => {
  const { directory, aside, begin } = fixture(t);
  const other = Object.assign(new Error('0-1 belongs to another data directory'), { code: 'ERR_DATA_DIR' });
  await t.throwsAsync(begin(other), { code: 'ERR_DATA_DIR', message: /another data directory\. Put back/ });
  const port = Object.assign(new Error('in use'), { code: 'ERR_ADDRESS_IN_USE' });
  await t.throwsAsync(begin(port), { is: port });
  t.deepEqual(readdirSync(directory), ['0-1', 'early']);
  t.false(existsSync(aside));
});
