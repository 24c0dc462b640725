import test from 'ava';
import { callTimes, isTimed, timeCalls, timed } from './call-times.js';

const countOf = (caller: object): number | undefined => callTimes(caller)?.get('get')?.count;

/** Calls of `caller` until one is to be timed, which is not made yet. */
function untilTimed(): number {
  let calls = 1;
  while (!isTimed()) calls++;
  return calls;
}

test.serial(
  'one in 1,024 calls is timed once that is wanted, and whoever asks for it again gets the same answer',
  (t) => {
    const caller = {};
    t.false(Array.from({ length: 5000 }, isTimed).includes(true));
    timeCalls({});
    timeCalls(caller);
    const many = 400;
    let calls = 0;
    for (let i = 0; i < many; i++) {
      calls += untilTimed();
      t.true(isTimed());
      t.is(
        timed('get', caller, () => i),
        i,
      );
    }
    // Distances are drawn evenly from 1 to 2,048, so there are 1,024 of them, give or take 30: eight times that is no chance.
    t.true(Math.abs(calls / many - 1024) < 240, `${many} of ${calls}`);
    const { count, below } = callTimes(caller)?.get('get') ?? {};
    t.is(count, many);
    t.is(below?.at(-1), many);
  },
);

test.serial('nothing is kept of a client without latencies, and its call does not stay the next one', (t) => {
  const without = {};
  timeCalls({});
  untilTimed();
  timed('get', without, () => undefined);
  t.is(callTimes(without), undefined);
  t.true(untilTimed() <= 2048);
});

test.serial('a call that throws counts', (t) => {
  const caller = {};
  timeCalls(caller);
  const fail = (): never => {
    throw new Error('no');
  };
  t.throws(() => timed('get', caller, fail), { message: 'no' });
  t.is(countOf(caller), 1);
});

test.serial('a promise counts when it is settled, also when it fails', async (t) => {
  const caller = {};
  timeCalls(caller);
  const failing: ((reason: Error) => void)[] = [];
  const promise = new Promise<never>((_, reject) => failing.push(reject));
  t.is(
    timed('get', caller, () => promise),
    promise,
  );
  t.is(countOf(caller), undefined);
  failing[0]?.(new Error('no'));
  await t.throwsAsync(promise);
  t.is(countOf(caller), 1);
});
