import test from 'ava';
import { Pending } from './pending.js';
import { Turn } from './turn.js';
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

/** A queue that has room when it is told, and what it has posted. */
function queueOf(most: number) {
  const room = { places: 0 };
  const posted: number[] = [];
  const queue = new WaitingQueue(
    most,
    (operation) => {
      if (room.places === 0) return false;
      room.places--;
      posted.push(numberOf(operation));
      return true;
    },
    new Turn(),
  );
  return { queue, room, posted };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

test('what room for one more costs does not depend on how many wait; the order is that of the calls', (t) => {
  const COUNT = 20_000;
  const { queue, room, posted } = queueOf(COUNT);
  for (let i = 0; i < COUNT; i++) queue.push(new Waiting(i), 0, 60_000);
  t.is(queue.length, COUNT);
  looks = 0;
  while (queue.length > 0) {
    room.places = 1;
    queue.pump();
  }
  t.deepEqual(posted, numbers(COUNT));
  // The one that is posted, and the next, for which there is no room.
  t.true(looks <= 2 * COUNT, `${looks} looks`);
});

test('while servers answer, looking for what has waited too long looks at nothing', (t) => {
  const COUNT = 20_000;
  const { queue } = queueOf(COUNT);
  for (let i = 0; i < COUNT; i++) queue.push(new Waiting(i), 0, 5000);
  looks = 0;
  for (let i = 0; i < 1000; i++) queue.expire(100 * i, 100 * i - 50);
  t.true(looks < 1000, `${looks} looks`);
  t.is(queue.length, COUNT);
});

test('without an answer for its time-out, what waits ends with ERR_TIMEOUT, and what has more time goes on waiting', async (t) => {
  const { queue, room, posted } = queueOf(100);
  const short = numbers(10).map((i) => new Waiting(i));
  const long = new Waiting(10);
  for (const one of short) queue.push(one, 0, 1000);
  queue.push(long, 0, 3000);
  queue.expire(2500, 2000);
  t.is(queue.length, 11, 'an answer came half a second ago');
  while (queue.length > 1) {
    queue.expire(3500, 2000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const one of short)
    await t.throwsAsync(one.promise, {
      code: 'ERR_TIMEOUT',
      message: /no server has answered this client for 1500 ms/u,
    });
  t.false(long.settled);
  room.places = 1;
  queue.pump();
  t.deepEqual(posted, [10]);
});

test('a long queue is posted in several turns of the event loop', async (t) => {
  const COUNT = 50_000;
  const posted: number[] = [];
  const queue = new WaitingQueue(
    COUNT,
    (operation) => {
      for (const end = performance.now() + 0.001; performance.now() < end;);
      posted.push(numberOf(operation));
      return true;
    },
    new Turn(),
  );
  for (let i = 0; i < COUNT; i++) queue.push(new Waiting(i), 0, 60_000);
  queue.pump();
  t.true(queue.length > 0, 'the first turn has not posted all');
  while (queue.length > 0) await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(posted, numbers(COUNT));
});

test('what was cancelled makes way, wherever it stands, and the rest keeps its order', async (t) => {
  const { queue, room, posted } = queueOf(100);
  const all = numbers(100).map((i) => new Waiting(i));
  for (const one of all) queue.push(one, 0, 60_000);
  const late = new Waiting(100);
  queue.push(late, 0, 60_000);
  await t.throwsAsync(late.promise, { message: /100 operations of this client wait already/u });
  for (const one of all) {
    if (one.number % 3 === 0) continue;
    one.fail(new Error('cancelled'));
    queue.cancelled();
  }
  t.is(queue.length, 34);
  queue.push(new Waiting(101), 0, 60_000);
  room.places = 100;
  queue.pump();
  t.deepEqual(posted, [...numbers(34).map((i) => 3 * i), 101]);
  t.is(queue.length, 0);
  t.deepEqual(queue.clear(), []);
});
