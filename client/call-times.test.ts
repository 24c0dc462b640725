import test from 'ava';
import { callTimes, isTimed, timeCalls, timed } from './call-times.js';

test('one in 1,024 calls is timed once that is wanted, and whoever asks for it again gets the same answer', (t) => {
  const caller = {};
  t.false(Array.from({ length: 5000 }, isTimed).includes(true));
  timeCalls();
  timeCalls();
  const calls = 1024 * 400;
  for (let i = 0; i < calls; i++)
    if (isTimed()) {
      t.true(isTimed());
      t.is(
        timed('get', caller, () => i),
        i,
      );
    }
  const { count = 0, below = [] } = callTimes(caller).get('get') ?? {};
  // Distances are drawn evenly from 1 to 2,048, so 400 are timed, give or take 12: eight times that is no chance.
  t.true(count > 300 && count < 500, `${count} of ${calls}`);
  t.is(below.at(-1), count);
});
