import { inspect } from 'node:util';
import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import { BatchLine, type Places } from './batch-line.js';
import { Status } from './errors.js';
import { Turn } from './turn.js';
import { setup, text } from '../test/support/keyspace.js';

/** A line, and what it is told of its client. */
function lineOf(most: number) {
  const places = { most, free: most, clock: 0, answeredAt: 0, closed: false, waits: () => undefined } satisfies Places;
  return { line: new BatchLine(places, new Turn()), places };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const keysOf = (count: number): string[] => numbers(count).map((i) => `k${i}`);

test('a batch that waits is not timed while servers answer, and ends when they do not', async (t) => {
  const { line, places } = lineOf(300);
  line.outstanding = 100;
  let ended = 'waits';
  const first = line.room(0, { timeoutMs: 1000 }).then(
    () => (ended = 'room'),
    () => (ended = 'over'),
  );
  places.clock = 5000;
  places.answeredAt = 4500;
  line.expire(places.answeredAt);
  line.wake();
  await turn();
  t.is(ended, 'waits');
  line.outstanding = 0;
  line.wake();
  await first;
  t.is(ended, 'room');
  const silent = t.throwsAsync(line.room(5000, { timeoutMs: 1000 }), { code: 'ERR_TIMEOUT' });
  places.clock = 6000;
  line.expire(places.answeredAt);
  await silent;
  // Of one that was called then, and waited for that one.
  await t.throwsAsync(line.room(5000, { timeoutMs: 1000 }), { code: 'ERR_TIMEOUT' });
});

test('those that wait go on in the order in which they came; a signal ends one', async (t) => {
  const { line } = lineOf(300);
  line.outstanding = 100;
  const order: number[] = [];
  const stop = new AbortController();
  const waits = numbers(3).map((i) =>
    line.room(0, { timeoutMs: 1000, ...(i === 1 ? { signal: stop.signal } : {}) }).then(() => order.push(i)),
  );
  stop.abort();
  await t.throwsAsync(waits[1] ?? Promise.resolve(), { code: 'ERR_ABORTED' });
  line.outstanding = 0;
  for (let i = 0; i < 3; i++) line.wake();
  await Promise.all([waits[0], waits[2]]);
  t.deepEqual(order, [0, 2]);
  t.is(line.length, 0);
});

test('a signal that comes when a batch goes on already takes nothing out of the queue', async (t) => {
  const { line } = lineOf(300);
  line.outstanding = 100;
  const stop = new AbortController();
  const first = line.room(0, { timeoutMs: 1000, signal: stop.signal });
  line.outstanding = 0;
  line.wake();
  stop.abort();
  await first;
  t.is(line.length, 0);
  line.outstanding = 100;
  const second = line.room(0, { timeoutMs: 1000 });
  t.is(line.length, 1);
  line.outstanding = 0;
  line.wake();
  await second;
});

test('long batches leave room for single calls, and for each other', async (t) => {
  const { native, kv, settle } = setup({ direct: false, maxOutstanding: 30 });
  native.maxOutstanding = 30;
  const puts = kv.putMany(keysOf(500).map((key) => ({ key, value: 'many' })));
  const gets = kv.getMany(keysOf(500));
  await turn();
  t.true(native.outstanding.length <= 20, `${native.outstanding.length} of batches`);
  const before = native.outstanding.length;
  const single = kv.put('single', 'one');
  t.is(native.outstanding.length, before + 1, 'it is posted at once');
  await settle();
  await single;
  await puts;
  t.is((await gets).length, 500);
});

test('single calls without end do not keep a batch from its share', async (t) => {
  const { native, operations, kv } = setup({ direct: false, maxOutstanding: 30, maxQueued: 10_000 });
  native.maxOutstanding = 30;
  const singles = keysOf(2000).map((key) => kv.put(key, 'single'));
  const batch = kv.putMany(keysOf(100).map((key) => ({ key: `many ${key}`, value: 'many' })));
  for (let i = 0; i < 40; i++) {
    native.complete(10);
    operations.drain();
    await turn();
  }
  t.is(native.log.filter((line) => line.includes('many')).length, 100);
  while (native.outstanding.length > 0) {
    native.complete();
    operations.drain();
    await turn();
  }
  await Promise.all([...singles, batch]);
});

test('what no server answers ends with ERR_TIMEOUT, the rest of a batch with one error for all', async (t) => {
  const { native, operations, kv } = setup({ direct: false, maxOutstanding: 30 });
  native.maxOutstanding = 30;
  const puts = kv.putMany(
    keysOf(1000).map((key) => ({ key, value: 'x' })),
    { timeoutMs: 20 },
  );
  const failed = t.throwsAsync(puts, { code: 'ERR_TIMEOUT', message: /1000 of 1000 keys failed/u });
  while (operations.changes.length === 0) await turn();
  while (operations.changes.length > 0) await turn();
  t.is(native.outstanding.length, 10);
  native.fail(Status.timeout);
  operations.drain();
  const error = await failed;
  const { errors, indexes } = error.cause as AggregateError & { indexes: number[] };
  t.deepEqual(indexes, numbers(1000));
  // An error that nobody catches fills no screen.
  const shown = inspect(error);
  t.regex(shown, /1000 failures \(errors, indexes\)\n +\[0\] ERR_TIMEOUT: .*\n +\[1\] .*\n +\[2\] .*\n +and 997 more/);
  t.true(shown.split('\n').length < 30, shown);
  t.true(new Set(errors).size <= 2, 'a million errors would take gigabytes');
});

test('a long batch that is answered at once lets the event loop turn', async (t) => {
  const { native, kv } = setup({ direct: true });
  native.store('k', Buffer.from('value'));
  let turns = 0;
  let over = false;
  const count = (): void => {
    turns++;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  const values = await kv.getMany(new Array<string>(200_000).fill('k'));
  over = true;
  t.true(values.every((value) => text(value) === 'value'));
  t.true(turns > 2, `${turns} turns`);
});

test('an iterable is read as there is room; what it throws ends the call, after what was sent has ended', async (t) => {
  const { native, kv, settle } = setup({ direct: false, maxOutstanding: 300 });
  let read = 0;
  let closed = false;
  function* items(throwsAt: number) {
    try {
      for (; read < 10_000; read++) {
        if (read === throwsAt) throw new Error('no more');
        yield { key: `k${read}`, value: 'x' };
      }
    } finally {
      closed = true;
    }
  }
  const all = kv.putMany(items(-1));
  await turn();
  t.true(read <= 1200, `${read} were read`);
  await settle();
  await all;
  t.is(native.entries.size, 10_000);
  native.entries.clear();
  read = 0;
  closed = false;
  const thrown = t.throwsAsync(kv.putMany(items(5000)), { code: 'ERR_ARGUMENT', message: /no more$/ });
  await settle();
  await thrown;
  t.true(closed);
  t.true(native.entries.size >= 1024 && native.entries.size <= 5000);
});
