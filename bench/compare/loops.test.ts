import test from 'ava';
import { batches, batchRate, drawing, drawingNumbers, latenciesNs, meanNs, rate } from './loops.js';

test('draws are the same in each run and another sequence with each call', (t) => {
  const items = Array.from({ length: 1000 }, (_, i) => i);
  const [a, b] = [drawing(items), drawing(items)];
  const first = a(50);
  t.deepEqual(b(50), first);
  t.notDeepEqual(a(50), first);
  t.notDeepEqual(drawing(items, 2)(50), first);
  t.deepEqual(batches(drawing(items), 5, 10).flat(), first);
});

test('numbers of items are drawn as the items are', (t) => {
  const items = Array.from({ length: 1000 }, (_, i) => `item ${i}`);
  const [draw, numbers] = [drawing(items), drawingNumbers(items.length)];
  for (const count of [50, 7])
    t.deepEqual(
      Array.from(numbers(count), (i) => items[i]),
      draw(count),
    );
});

test('every item is operated on once, in order', async (t) => {
  const seen: string[] = [];
  await meanNs(['a', 'b'], (x) => void seen.push(x));
  t.is((await latenciesNs(['c', 'd'], (x) => Promise.resolve(seen.push(x)))).length, 2);
  await batchRate([['e'], ['f', 'g']], (batch) => Promise.resolve(seen.push(...batch)));
  t.is(seen.join(''), 'abcdefg');
});

test('a rate has so many operations in flight and no more', async (t) => {
  let flying = 0;
  let most = 0;
  const seen: number[] = [];
  await rate([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 4, async (x) => {
    seen.push(x);
    most = Math.max(most, ++flying);
    await Promise.resolve();
    flying--;
  });
  t.is(most, 4);
  t.deepEqual(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});
