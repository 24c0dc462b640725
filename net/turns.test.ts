import test from 'ava';
import { Spent, Turns, type Budget } from './turns.js';

/** Turns whose turns end when the test says so. */
function turns(budget: Budget): { readonly made: Turns; readonly turn: () => void } {
  const next: (() => void)[] = [];
  return { made: new Turns(budget, (serve) => next.push(serve)), turn: () => next.shift()?.() };
}

const share = (frames: number, bytes = 1000): { readonly frames: number; readonly bytes: number } => ({
  frames,
  bytes,
});

/** A connection with so many frames of 10 bytes. */
function reader(made: Turns, count: number, handled: () => void): () => void {
  const spent = new Spent();
  let left = count;
  const serve = (): void => {
    while (left > 0) {
      if (!made.allows(spent)) {
        made.wait(serve);
        return;
      }
      left -= 1;
      handled();
      made.spend(spent, 10);
    }
  };
  return serve;
}

test('one connection gets its share of a turn, and the rest in later turns', (t) => {
  const { made, turn } = turns({ each: share(3), all: share(100) });
  let handled = 0;
  reader(made, 7, () => (handled += 1))();
  const seen = [handled];
  for (let i = 0; i < 3; i++) {
    turn();
    seen.push(handled);
  }
  t.deepEqual(seen, [3, 6, 7, 7]);
});

test('bytes count as frames do', (t) => {
  const { made, turn } = turns({ each: share(100, 20), all: share(100, 1000) });
  let handled = 0;
  reader(made, 5, () => (handled += 1))();
  t.is(handled, 2);
  turn();
  t.is(handled, 4);
});

test('all together get no more than the turn has, and each of those that wait is served before one is served again', (t) => {
  const { made, turn } = turns({ each: share(2), all: share(4) });
  const handled = new Map<number, number>();
  const readers = Array.from({ length: 6 }, (_, i) => reader(made, 4, () => handled.set(i, (handled.get(i) ?? 0) + 1)));
  const counts = (): number[] => readers.map((_, i) => handled.get(i) ?? 0);
  for (const serve of readers) serve();
  t.deepEqual(counts(), [2, 2, 0, 0, 0, 0]);
  const seen = [0, 1, 2].map(() => {
    turn();
    return counts();
  });
  t.deepEqual(seen, [
    [4, 4, 0, 0, 0, 0],
    [4, 4, 2, 2, 0, 0],
    [4, 4, 2, 2, 2, 2],
  ]);
  for (let i = 0; i < 6; i++) turn();
  t.deepEqual(counts(), [4, 4, 4, 4, 4, 4]);
});

test('a connection that is forgotten is not served', (t) => {
  const { made, turn } = turns({ each: share(1), all: share(9) });
  let served = 0;
  const serve = (): void => void (served += 1);
  made.wait(serve);
  made.forget(serve);
  turn();
  t.is(served, 0);
});
