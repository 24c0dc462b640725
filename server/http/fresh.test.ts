import test from 'ava';
import { Fresh } from './fresh.js';

const HOUR = 3_600_000;

test('whoever asks while a question is under way, or shortly after, gets its answer', async (t) => {
  let now = 0;
  let asked = 0;
  const open: ((n: number) => void)[] = [];
  const ask = (): Promise<number> => new Promise((resolve) => (asked++, open.push(resolve)));
  const answer = (n: number): void => {
    for (const one of open.splice(0)) one(n);
  };
  t.teardown(() => answer(0));
  const fresh = new Fresh({ ask, freshMs: 100, answerMs: HOUR, now: () => now });
  const first = [fresh.get(), fresh.get()];
  now = 5000;
  const late = fresh.get();
  t.is(asked, 1, 'a question that takes long is asked once');
  answer(1);
  t.deepEqual(await Promise.all([...first, late]), [1, 1, 1]);
  now = 5099;
  const soon = fresh.get();
  t.is(asked, 1);
  answer(2);
  t.is(await soon, 1);
  now = 5100;
  const next = fresh.get();
  t.is(asked, 2);
  answer(2);
  t.is(await next, 2);
});

test('a question that failed is asked again, and one without an answer is an error', async (t) => {
  let now = 0;
  const answers = [Promise.reject(new Error('no')), Promise.resolve(1)];
  const fresh = new Fresh({
    ask: () => answers.shift() ?? Promise.resolve(0),
    freshMs: 1,
    answerMs: HOUR,
    now: () => now,
  });
  await t.throwsAsync(fresh.get(), { message: 'no' });
  now = 1;
  t.is(await fresh.get(), 1);
  const silent = new Fresh({ ask: () => new Promise<never>(() => undefined), freshMs: 1, answerMs: 1 });
  await t.throwsAsync(silent.get(), { code: 'ERR_TIMEOUT' });
});
