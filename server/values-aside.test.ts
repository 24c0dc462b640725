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
import type { MetadataState } from '../core/metadata/state.js';
import type { Found } from '../core/shards/index.js';
import { copy, mine, stateOf } from '../test/support/copy-states.js';
import { EarlyMark } from './early-mark.js';
import type { Log } from './log.js';
import { startsWith, type Opened } from './values-aside.js';
import type { Others } from './values-elsewhere.js';
import { ValuesWatch } from './values-watch.js';

const DAMAGED = Object.assign(new Error('the log cannot be gone on with: 0-1: damaged at 4096'), {
  code: 'ERR_CORRUPT',
});

const TOLD = new Error('told to stop');
const FINE = [[mine(), copy('in-sync')]];

interface Start {
  readonly directory: string;
  readonly aside: string;
  /** What was there when the data plane was started, each time, and what it came to. */
  readonly seen: string[][];
  readonly closed: () => number;
  readonly said: string[];
  readonly early: EarlyMark;
  /** The first start fails with `error`, unless that is undefined. */
  readonly begin: (
    error: Error | undefined,
    more?: { readonly state?: MetadataState; readonly found?: readonly Found[]; readonly isThere?: boolean },
  ) => Promise<Opened>;
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
  let closed = 0;
  const close = (): Promise<unknown> => Promise.resolve((closed += 1));
  const begin: Start['begin'] = (error, { state = stateOf(FINE), found = [], isThere = true } = {}) => {
    let starts = 0;
    const others: Others = {
      known: () => state,
      current: () => Promise.resolve(state),
      ask: (server) => Promise.resolve(server === 's2' && isThere ? 'there' : 'away'),
      sleep: () => Promise.reject(TOLD),
      nowMs: () => 0,
    };
    const values = { log: { directory }, early, watch: new ValuesWatch(directory) };
    return startsWith(values, { id: 's1', others, log }, () => {
      seen.push(readdirSync(directory));
      if (starts++ === 0 && error !== undefined) return Promise.reject(error);
      return Promise.resolve({ plane: { close }, found });
    });
  };
  return { directory, aside: `${directory}.damaged`, seen, closed: () => closed, said, early, begin };
}

test('a damaged log is put aside where others have what is in it, and nothing is removed', async (t) => {
  const { directory, aside, seen, said, early, begin } = fixture(t);
  t.true(early.found);
  await begin(DAMAGED);
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
  await t.throwsAsync(begin(DAMAGED, { state: stateOf([...FINE, [mine()]]) }), {
    code: 'ERR_DATA_DIR',
    message:
      /damaged at 4096\. No other server has all of shard 1\. Put back what this server wrote there\. Or, to go on/,
  });
  t.is(seen.length, 1);
  t.deepEqual(readdirSync(directory), ['0-1', 'early']);
  t.false(existsSync(aside));
});

test('it is put aside by no wait that ended otherwise', async (t) => {
  const { aside, said, begin } = fixture(t);
  await t.throwsAsync(begin(DAMAGED, { isThere: false }), { is: TOLD });
  t.false(existsSync(aside));
  t.deepEqual(said.length, 1);
  t.regex(said[0] ?? '', /damaged at 4096\. Waiting for s2 to be there with what was in it$/);
});

test('a start after a run that ended before it joined asks again', async (t) => {
  const { directory, aside, closed, begin } = fixture(t);
  renameSync(directory, aside);
  mkdirSync(directory);
  await t.throwsAsync(begin(undefined, { isThere: false }), { is: TOLD });
  await t.throwsAsync(begin(undefined, { state: stateOf([[mine()]]) }), {
    code: 'ERR_DATA_DIR',
    message:
      /put aside as \S+values\.damaged, since its log was damaged\. No other server has all of shard 0\. Put back .* move \S+values\.damaged away/,
  });
  t.is(closed(), 2);
  await begin(undefined);
  // What was found needs nobody.
  const found = [{ shard: 0, copy: '00000000000000aa', whole: true }] as unknown as Found[];
  await begin(undefined, { isThere: false, found });
  t.is(closed(), 2);
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
