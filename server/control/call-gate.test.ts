import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import { CALLS_ALL } from './bounds.js';
import { othersMs, type StatusCall } from '../status-call.js';
import { CallGate } from './call-gate.js';

const settle = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** A gate whose calls are answered, and whose pauses end, when the test says so. */
function gate() {
  const asked: { readonly what: string; readonly args: unknown; readonly answer: (value: unknown) => void }[] = [];
  const pauses: (() => void)[] = [];
  const made = new CallGate(
    (caller, method, args) =>
      new Promise((resolve) => asked.push({ what: `${caller} ${method}`, args, answer: resolve })),
    (then) => pauses.push(then),
  );
  return { made, asked, pauses };
}

const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'ok',
    (error: unknown) => (error as FarkvError).code,
  );

test('any number of callers for a status are one question at a time, asked after they came', async (t) => {
  const { made, asked, pauses } = gate();
  const first = made.call('monitor', 'status', {});
  await settle();
  const later = Array.from({ length: 100 }, () => made.call('monitor', 'status', {}));
  await settle();
  t.is(asked.length, 1);
  asked[0]?.answer(1);
  t.is(await first, 1);
  await settle();
  t.is(asked.length, 1);
  pauses.shift()?.();
  await settle();
  t.is(asked.length, 2);
  asked[1]?.answer(2);
  t.deepEqual(
    await Promise.all(later),
    later.map(() => 2),
  );
});

test('a status that fails is an error for those that waited for it, and the next one is asked', async (t) => {
  let fails = true;
  const made = new CallGate(
    () => (fails ? Promise.reject(new FarkvError('ERR_TIMEOUT', 'late')) : Promise.resolve('fine')),
    (then) => setImmediate(then),
  );
  t.is(await codeOf(made.call('operator', 'status', {})), 'ERR_TIMEOUT');
  fails = false;
  t.is(await made.call('operator', 'status', {}), 'fine');
});

test('calls under way are bounded', async (t) => {
  const { made, asked } = gate();
  const calls = Array.from({ length: CALLS_ALL + 5 }, () => codeOf(made.call('operator', 'a', {})));
  await settle();
  t.is(asked.length, CALLS_ALL);
  for (const { answer } of asked.splice(0)) answer('done');
  t.is((await Promise.all(calls)).filter((code) => code === 'ERR_BUSY').length, 5);
  const again = codeOf(made.call('operator', 'a', {}));
  await settle();
  asked[0]?.answer('done');
  t.is(await again, 'ok');
});

test('who has little time shares a status with those alike, and does not wait for one that gives others more', async (t) => {
  const { made, asked, pauses } = gate();
  const patient = made.call('monitor', 'status', {});
  const first = made.call('operator', 'status', { timeoutMs: 500 });
  await settle();
  const later = [3999, 0, 700].map((timeoutMs) => made.call('operator', 'status', { timeoutMs }));
  const another = made.call('operator', 'status', { timeoutMs: 4000 });
  await settle();
  t.deepEqual(
    asked.map(({ args }) => othersMs(args as StatusCall)),
    [1000, 250],
  );
  asked[1]?.answer('in time');
  t.is(await first, 'in time');
  await settle();
  pauses.shift()?.();
  await settle();
  t.deepEqual(
    asked.slice(2).map(({ args }) => othersMs(args as StatusCall)),
    [250],
    'all of them wait for it',
  );
  asked[2]?.answer('alike');
  t.deepEqual(await Promise.all(later), ['alike', 'alike', 'alike']);
  asked[0]?.answer('whole');
  t.is(await patient, 'whole');
  await settle();
  for (const over of pauses.splice(0)) over();
  await settle();
  asked[3]?.answer('whole again');
  t.is(await another, 'whole again');
  t.is(await codeOf(made.call('monitor', 'status', { timeoutMs: 'soon' })), 'ERR_PROTOCOL');
});
