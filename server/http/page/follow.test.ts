import test from 'ava';
import { setTimeout as pause } from 'node:timers/promises';
import { follow, type Source } from './follow.js';

test('a stream that was refused is opened again, one that the browser opens again is not', async (t) => {
  const opened: { readyState: number; fail: () => void }[] = [];
  const open = (): Source => {
    const one = {
      readyState: 0,
      fail: (): void => t.fail(),
      addEventListener: (_: 'error', listener: () => void) => (one.fail = listener),
    };
    opened.push(one);
    return one;
  };
  follow(open, 1);
  opened[0]?.fail();
  await pause(20);
  t.is(opened.length, 1);
  for (const times of [1, 2]) {
    const last = opened.at(-1);
    if (last !== undefined) last.readyState = 2;
    last?.fail();
    await pause(20);
    t.is(opened.length, 1 + times);
  }
});
