/** A client's life ends well at every stage: in a process of its own, and in worker threads that come and go. */
import test from 'ava';
import { fileURLToPath } from 'node:url';
import { CompletionField, PENDING_BASE } from '../native-client.js';
import { lifeInProcess, testLivesInThreads } from '../../test/support/lives.js';
import { DEVICELESS } from '../../test/support/deviceless.js';
import { Driver, Plane } from '../../test/support/native-pair.js';

/** Room for the records of two keys. */
const RECORDS = 2 * CompletionField.Words;
const PROGRAM = fileURLToPath(new URL('../../test/support/native-stages.js', import.meta.url));

const ends: readonly (readonly [stage: string, out: string, code: number, ...options: string[]])[] = [
  ['made', 'made', 0],
  ['made and closed', 'closed', 0],
  ['made and collected', 'collected', 0],
  ['connected and idle', 'idle', 0],
  ['trying to connect', 'trying', 0],
  ['outstanding until its time is over', 'ERR_SHARD_UNAVAILABLE', 0],
  ['outstanding and exit', 'exiting', 0],
  ['in the middle of values and exit', 'exiting', 0],
  ['an exception that nobody catches', 'throwing', 1],
  ['closed and not drained', 'closed', 0],
  ['closed with a held value and no memory left', 'ERR_NO_MEMORY', 0, '--single-threaded'],
  ['methods outlive the client', '-18 0 0', 0],
  ['arrays outlive the client', '7', 0],
  ['a whole life', 'lived', 0],
];

for (const [stage, out, code, ...options] of ends) {
  test(`a process ends well: ${stage}`, async (t) => {
    const end = await lifeInProcess(t, PROGRAM, stage, options);
    t.deepEqual({ code: end.code, signal: end.signal, out: end.out }, { code, signal: null, out }, end.err);
  });
}

testLivesInThreads(PROGRAM, ['made', 'connected and idle', 'closed and not drained', 'trying to connect']);

test('getters in the arrays of getMany may close the client or take its buffers away', async (t) => {
  const plane = await Plane.start({ provider: 'shm' });
  const keysWith = (act: () => void): string[] => Object.defineProperty(['a', 'b'], 1, { get: () => (act(), 'b') });
  const closing = Driver.to(plane);
  t.throws(
    () =>
      closing.native.getMany(
        0,
        keysWith(() => closing.close()),
        Buffer.alloc(100),
        0,
        new Uint32Array(RECORDS),
        1000,
      ),
    { code: 'ERR_CLOSED' },
  );
  const client = Driver.to(plane);
  const target = new Uint8Array(100);
  const detach = (bytes: ArrayBufferLike): void => void structuredClone(bytes, { transfer: [bytes as ArrayBuffer] });
  t.throws(() =>
    client.native.getMany(
      0,
      keysWith(() => detach(target.buffer)),
      target,
      0,
      new Uint32Array(RECORDS),
      1000,
    ),
  );
  const records = new Uint32Array(RECORDS);
  t.throws(() =>
    client.native.getMany(
      0,
      keysWith(() => detach(records.buffer)),
      new Uint8Array(100),
      0,
      records,
      1000,
    ),
  );
  const answers = new Uint32Array(2);
  const value = Buffer.from('v');
  t.throws(() =>
    client.native.putMany(
      0,
      keysWith(() => detach(answers.buffer)),
      [value, value],
      0,
      answers,
      1000,
    ),
  );
  client.native.close();
  const last = Driver.to(plane);
  const two = new Uint32Array(2);
  last.native.putMany(
    0,
    keysWith(() => last.native.close()),
    [value, value],
    0,
    two,
    1000,
  );
  t.is(two[1], 18, 'closed before it was sent');
  await plane.close();
});

test('a getter among the values of putMany may call putMany, and take the lengths of its keys away', async (t) => {
  const plane = await Plane.start({ provider: 'shm' });
  const client = Driver.to(plane);
  const [outer, inner] = [new Uint32Array(3), new Uint32Array(3)];
  const lengths = Uint32Array.of(1, 1, 1);
  const value = Buffer.from('v');
  const values = Object.defineProperty([value, value, value], 1, {
    get: () => {
      client.native.putMany(
        0,
        ['x', 'y', 'z'],
        [value, value, value],
        0,
        inner,
        10_000,
        'xyz',
        Uint32Array.of(1, 1, 1),
      );
      structuredClone(lengths.buffer, { transfer: [lengths.buffer] });
      return value;
    },
  });
  client.native.putMany(0, ['', '', ''], values, 0, outer, 10_000, 'abc', lengths);
  await Promise.all([...inner, ...outer].map((answer) => client.adopt(answer - PENDING_BASE)));
  for (const key of ['a', 'b', 'c', 'x', 'y', 'z']) t.is((await client.get(key)).value.toString(), 'v', key);
  client.close();
  await plane.close();
});

for (const provider of DEVICELESS)
  test(`${provider}: time in which the program holds the event loop is none of its operations'`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane);
    t.is((await client.put('warm', 'up')).status, 'OK');
    await client.get('warm');
    const put = client.put('k', 'v', 50);
    const get = client.outcome(() => client.native.get(0, 'warm', undefined, 0, 50));
    for (const end = performance.now() + 2000; performance.now() < end;);
    t.is((await put).status, 'OK');
    t.is((await get).status, 'OK');
    client.close();
    await plane.close();
  });
