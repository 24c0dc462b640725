import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import { CALLS_ALL } from './bounds.js';
import { CallGate } from './call-gate.js';

const settle = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** A gate whose calls are answered, and whose pauses end, when the test says so. */
function gate() {
  const asked: { readonly what: string; readonly answer: (value: unknown) => void }[] = [];
  const pauses: (() => void)[] = [];
  const made = new CallGate(
    (caller, method) => new Promise((resolve) => asked.push({ what: `${caller} ${method}`, answer: resolve })),
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
