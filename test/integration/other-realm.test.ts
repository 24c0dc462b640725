/**
 * Programs whose Uint8Array is not the one of Node.js: within node:vm, and within the sandbox of a test runner. What the
 * SDK is given, and what it is made of, may be of another realm.
 */
import test from 'ava';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { farkvDriver } from '../../adapters/unstorage.js';
import { oneServer } from '../support/adapters.js';

const server = oneServer(test);
const CHILD = fileURLToPath(new URL('../support/realm-child.js', import.meta.url));

test('the SDK runs in a realm of its own', async (t) => {
  const words = ['--no-warnings', '--experimental-vm-modules', CHILD, server().address];
  const { stdout } = await promisify(execFile)(process.execPath, words);
  t.deepEqual(JSON.parse(stdout), {
    own: true,
    foreign: false,
    got: [2, 3, 4],
    into: 2,
    target: [0, 2, 3, 0],
    used: 3,
    many: [2, 3, 5],
    typed: { map: { a: 1 }, at: 0, of: [9] },
    wrong: 'ERR_KEY_INVALID',
    changed: true,
    keys: 1,
    deleted: 1,
  });
});

/** Made in another realm. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- says what the source makes
const of = <T>(source: string): T => runInNewContext(source) as T;

test('keys, values, targets, spans and prefixes of another realm are taken', async (t) => {
  const kv = server().space();
  const key = of<Uint8Array>('new Uint8Array([1, 2])');
  t.false(key instanceof Uint8Array);
  const value = of<Uint8Array>('new Uint8Array([3, 4, 5])');
  await kv.put(key, value);
  const owned = of<Uint8Array>('new Uint8Array([1, 2])');
  const update = kv.update(owned, (old) => Buffer.concat([old ?? Buffer.alloc(0), Buffer.from([6])]));
  owned.fill(0xff); // its own by now
  t.true((await update).changed);
  const target = of<Uint8Array>('new Uint8Array(6)');
  t.is(await kv.getInto(key, target, 1), 4);
  t.is(kv.getIntoSync(key, target, 2), 4);
  t.deepEqual([...target], [0, 3, 3, 4, 5, 6]);
  const spans = of<Uint32Array>('new Uint32Array(2)');
  t.is(await kv.getManyInto([key], target, spans), 4);
  t.deepEqual([...spans], [0, 4]);
  t.is(await kv.count({ prefix: of<Uint8Array>('new Uint8Array([1])') }), 1);
  t.is(await kv.append(key, value), 7);
  t.is(await kv.deleteMany(of<Uint8Array[]>('[new Uint8Array([1, 2])]')), 1);
  for (const wrong of ['new Uint16Array(4)', 'new Uint8ClampedArray(4)', '[1, 2]', 'new ArrayBuffer(4)'])
    t.throws(() => kv.getIntoSync('k', of<Uint8Array>(wrong)), { code: 'ERR_ARGUMENT' }, wrong);
  await t.throwsAsync(kv.get(of<Uint8Array>('new Uint8Array(1025)')), {
    code: 'ERR_KEY_INVALID',
    message: /this one has 1025/,
  });
});

test('a raw item of unstorage may be an ArrayBuffer of another realm', async (t) => {
  const driver = farkvDriver({ source: server().space() });
  await driver.setItemRaw!('raw', of<ArrayBuffer>('new Uint8Array([7, 8]).buffer'), {});
  t.deepEqual(await driver.getItemRaw!('raw', {}), Buffer.from([7, 8]));
});

/** A signal as another library makes it: no instance of the class of Node.js. */
class OtherSignal {
  aborted = false;
  reason: unknown;
  readonly listeners = new Set<() => void>();
  addEventListener(_: string, listener: () => void): void {
    this.listeners.add(listener);
  }
  removeEventListener(_: string, listener: () => void): void {
    this.listeners.delete(listener);
  }
  abort(reason: unknown): void {
    this.aborted = true;
    this.reason = reason;
    for (const listener of this.listeners) listener();
  }
}

test('a signal of another library ends calls, and has one listener however many there are', async (t) => {
  const kv = server().space();
  const other = new OtherSignal();
  const signal = other as unknown as AbortSignal;
  for (let i = 0; i < 5; i++) await kv.put('k', String(i), { signal });
  t.is(other.listeners.size, 1);
  const waits = kv.update('k', () => new Promise<string>(() => undefined), { signal });
  other.abort('enough');
  await t.throwsAsync(waits, { code: 'ERR_ABORTED' });
  const late = await t.throwsAsync(kv.get('k', { signal }), { code: 'ERR_ABORTED' });
  t.is(late.cause, 'enough');
  const only = Object.create(AbortSignal.prototype) as AbortSignal;
  for (const none of [only, {}, 5, null, { aborted: false }] as AbortSignal[])
    await t.throwsAsync(kv.get('k', { signal: none }), { code: 'ERR_ARGUMENT', message: /signal is an AbortSignal/ });
});

test('an error of another realm is one: its text is in the error of the call', async (t) => {
  const kv = server().space();
  const codec = {
    id: 20,
    name: 'own',
    encode: () => of<never>('(() => { throw new Error("from there") })()'),
    decode: (bytes: Buffer) => bytes,
  };
  const error = await t.throwsAsync(kv.withCodec(codec).put('k', 'v'), { code: 'ERR_ARGUMENT' });
  t.regex(String(error.cause), /from there/);
  const options = of<object>('({ get timeoutMs() { throw new RangeError("from there") } })');
  await t.throwsAsync(kv.get('k', options), { code: 'ERR_ARGUMENT', message: /from there/ });
});
