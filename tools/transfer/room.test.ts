import test from 'ava';
import { Room } from './room.js';

/** Runs what can run without waiting for anything. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('no more is under way than there is room for; what is larger than all of it goes alone, in its turn', async (t) => {
  const room = new Room(10, 3);
  const inside: string[] = [];
  const enter = (name: string, bytes: number): void => void room.enter(bytes).then(() => inside.push(name));
  for (const [name, bytes] of [
    ['a', 6],
    ['b', 4],
    ['c', 1],
    ['huge', 99],
    ['d', 1],
  ] as const)
    enter(name, bytes);
  await settled();
  t.deepEqual(inside, ['a', 'b']);
  room.leave(4);
  await settled();
  t.deepEqual(inside, ['a', 'b', 'c']);
  room.leave(6);
  await settled();
  t.deepEqual(inside, ['a', 'b', 'c'], 'huge waits until it is alone, and those behind it wait too');
  room.leave(1);
  await settled();
  t.deepEqual(inside, ['a', 'b', 'c', 'huge']);
  room.leave(99);
  await settled();
  t.is(inside.at(-1), 'd');
  room.leave(1);
  for (let i = 0; i < 4; i++) enter(`small ${i}`, 0);
  await settled();
  t.is(inside.filter((name) => name.startsWith('small')).length, 3);
});
