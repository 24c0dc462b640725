/** What the calls that change keys write down of answers, and which answers they call wrong. */
import test, { type ExecutionContext } from 'ava';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FarkvError } from '../../client/errors.js';
import type { Update, Updated } from '../../client/update.js';
import { Random } from '../support/random.js';
import { Caller, flagsOf, type ClientState, type View } from './caller.js';
import { CHANGES } from './calls-changes.js';
import { HeldValues } from './held.js';
import { Recorder } from './record.js';
import { addFile, emptyRecord, type Recorded } from './recorded.js';

/** What is on record when the call was made so many times of a view that answers so. */
async function called(t: ExecutionContext, name: string, view: object, times = 40): Promise<Recorded> {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-calls-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'a');
  const record = new Recorder(file);
  const all: object = { shardOf: () => 0, namespace: () => all, withCodec: () => all, ...view };
  const client: ClientState = {
    name: 'shm0',
    number: 0,
    kv: all as ClientState['kv'],
    connection: { servers: [] },
    record,
    held: new HeldValues(() => undefined),
    shm: true,
    generation: () => 0,
    views: new Map(),
    prepared: new Map(),
    written: 0,
  };
  const caller = new Caller(client, 0, new Random(1));
  for (let i = 0; i < times; i++) await CHANGES.find((one) => one.name === name)!.run(caller, 'Buffer');
  record.close();
  const recorded = emptyRecord();
  addFile(recorded, file, 'shm0');
  return recorded;
}

type Next = Update<Buffer, Buffer>;

for (const [title, changed] of [
  ['an update that says it changed nothing, though its function gave a value, is wrong', false],
  ['an update that says it changed something, though its function gave no value, is wrong', true],
] as const)
  test(title, async (t) => {
    const update = async (_: unknown, next: Next): Promise<Updated> => {
      await next(undefined, undefined);
      return { changed, version: changed ? 1n : 0n };
    };
    const { wrong } = await called(t, 'update', { update });
    t.true(wrong.length > 0);
    const what = changed
      ? 'changed is true, and the function gave none'
      : 'changed is false, and the function gave a value';
    t.true(wrong.every((one) => one.what === what));
  });

test('an update leaves flags and time to live now and then, and its value says which flags it must have', async (t) => {
  const seen = new Set<string>();
  let number = 0;
  const update: View['update'] = async (key, next, options) => {
    const value = await next(undefined, undefined);
    const id = Buffer.from(value ?? '')
      .toString('latin1')
      .split('|')[1];
    if (id !== undefined) {
      seen.add(options?.flags === undefined ? 'kept' : 'set');
      t.is(flagsOf(id), options?.flags === undefined ? 0 : undefined);
      number++;
    }
    if (options?.ttlMs !== undefined) seen.add('ttl');
    t.false(Buffer.isBuffer(key) && key.toString().startsWith('t') && options?.ttlMs === undefined && id !== undefined);
    return { changed: value !== undefined, version: BigInt(number) };
  };
  const { wrong } = await called(t, 'update', { update }, 200);
  t.deepEqual(wrong, []);
  t.deepEqual([...seen].sort(), ['kept', 'set', 'ttl']);
  t.is(flagsOf('shm0-7k4000000000'), 4_000_000_000);
});

const failing = (indexes: readonly number[], errors: readonly FarkvError[]) =>
  Promise.reject(
    new FarkvError('ERR_BUSY', 'some failed', { cause: Object.assign(new AggregateError(errors), { indexes }) }),
  );

test('of a batch in which one key failed the others are known to be changed', async (t) => {
  for (const [name, made] of [
    ['deleteMany', 'gone'],
    ['putMany', 'stored'],
  ] as const) {
    const batch = () => failing([0], [new FarkvError('ERR_BUSY', 'full')]);
    const { keys, wrong } = await called(t, name, { [name]: batch });
    const outcomes = [...keys.values()].flatMap(({ operations }) => operations).map((o) => 'outcome' in o && o.outcome);
    t.true(outcomes.includes(made));
    t.deepEqual([...new Set(outcomes)].sort(), ['no-effect', made].sort());
    t.deepEqual(wrong, []);
  }
});

test('what failed of a batch without a word whether it took effect is open, alone', async (t) => {
  const deleteMany = () => failing([0], [new FarkvError('ERR_INDETERMINATE', 'nobody knows')]);
  const { keys } = await called(t, 'deleteMany', { deleteMany });
  const outcomes = [...keys.values()].flatMap(({ operations }) => operations).map((o) => 'outcome' in o && o.outcome);
  t.deepEqual([...new Set(outcomes)].sort(), ['gone', 'open']);
});

test('a batch that failed without saying which keys may have been changed, each of them', async (t) => {
  const deleteMany = () => Promise.reject(new FarkvError('ERR_CLOSED', 'closed'));
  const { keys } = await called(t, 'deleteMany', { deleteMany });
  for (const { operations } of keys.values()) for (const o of operations) t.like(o, { outcome: 'open' });
});

test('failures of keys that were not in the batch are wrong', async (t) => {
  const deleteMany = () => failing([4000], [new FarkvError('ERR_BUSY', 'full')]);
  const { wrong } = await called(t, 'deleteMany', { deleteMany }, 1);
  t.regex(wrong[0]?.what ?? '', /keys these failed: 4000/);
});

test('a deleteMany that found some of its keys is on record with their number', async (t) => {
  const deleteMany = (keys: readonly Buffer[]) => Promise.resolve(Math.min(1, keys.length));
  const { deletes } = await called(t, 'deleteMany', { deleteMany });
  t.true(deletes.length > 0);
  for (const { keys, found } of deletes) t.true(found === 1 && keys.length > 1);
});
