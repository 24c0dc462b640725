import test from 'ava';
import { Pending } from './pending.js';
import { WaitingQueue } from './waiting-queue.js';

let looks = 0;

/** Counts how often the queue looks at it. */
class Waiting extends Pending<unknown> {
  constructor(readonly number: number) {
    super(0, `key ${number}`);
    let settled = false;
    Object.defineProperty(this, 'settled', {
      get: () => {
        looks++;
        return settled;
      },
      set: (value: boolean) => {
        settled = value;
      },
    });
    this.promise.catch(() => undefined);
  }
  override post(): number {
    throw new Error('the queue posts by the function that it was given');
  }
  protected override outcome(): unknown {
    throw new Error('nothing completes here');
  }
}

function numberOf(operation: Pending<unknown>): number {
  return operation instanceof Waiting ? operation.number : -1;
}

test('what room for one more costs does not depend on how many wait; the order is that of the calls', (t) => {
  const COUNT = 20_000;
  const posted: number[] = [];
  let room = 0;
  const queue = new WaitingQueue(COUNT, (operation) => {
    if (room === 0) return false;
    room--;
    posted.push(numberOf(operation));
    return true;
  });
  for (let i = 0; i < COUNT; i++) queue.push(new Waiting(i), 60_000);
  t.is(queue.length, COUNT);
  looks = 0;
  while (queue.length > 0) {
    room = 1;
    queue.pump();
  }
  t.deepEqual(
    posted,
    Array.from({ length: COUNT }, (_, i) => i),
  );
  // The one that is posted, and the next, for which there is no room.
  t.true(looks <= 2 * COUNT, `${looks} looks`);
});

test('what was cancelled makes way, wherever it stands, and the rest keeps its order', async (t) => {
  const posted: number[] = [];
  let room = false;
  const queue = new WaitingQueue(100, (operation) => {
    if (room) posted.push(numberOf(operation));
    return room;
  });
  const all = Array.from({ length: 100 }, (_, i) => new Waiting(i));
  for (const one of all) queue.push(one, 60_000);
  for (const one of all) if (one.number % 3 !== 0) one.fail(new Error('cancelled'));
  const late = new Waiting(100);
  queue.push(late, 60_000);
  await t.throwsAsync(late.promise, { message: /100 operations of this client wait already/u });
  // The timer takes them out.
  while (queue.length > 34) await new Promise((resolve) => setImmediate(resolve));
  queue.push(new Waiting(101), 60_000);
  room = true;
  queue.pump();
  t.deepEqual(posted, [...Array.from({ length: 34 }, (_, i) => 3 * i), 101]);
  t.is(queue.length, 0);
  t.deepEqual(queue.clear(), []);
});
