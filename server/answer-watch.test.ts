import test from 'ava';
import { unansweredMs } from './answer-watch.js';

/** A data plane whose answers come when they are let go. */
function dataPlane() {
  const waiting: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];
  return { waiting, stats: () => new Promise<void>((resolve, reject) => waiting.push({ resolve, reject })) };
}

test('a question without an answer is told, and no other is put meanwhile', (t) => {
  const one = dataPlane();
  t.is(unansweredMs(one, 0), 0);
  t.is(unansweredMs(one, 3000), 3000);
  t.is(unansweredMs(one, 60_000), 60_000);
  t.is(one.waiting.length, 1);
});

test('however often probes ask, it is asked once in 5 s; a refusal is an answer', async (t) => {
  const one = dataPlane();
  unansweredMs(one, 0);
  one.waiting[0]?.resolve();
  await Promise.resolve();
  for (let ms = 1; ms < 5000; ms += 100) t.is(unansweredMs(one, ms), 0);
  t.is(one.waiting.length, 1);
  t.is(unansweredMs(one, 5000), 0);
  t.is(one.waiting.length, 2);
  one.waiting[1]?.reject(new Error('closed'));
  await new Promise((resolve) => setImmediate(resolve));
  t.is(unansweredMs(one, 9000), 0);
});
