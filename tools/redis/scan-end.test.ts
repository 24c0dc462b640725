import test from 'ava';
import { RedisFailure } from './replies.js';
import { ScanEnd } from './scan-end.js';

/** Pages until the end is given up. */
async function pages(cursorOf: (page: number) => string, keys: number, size: number | undefined, most: number) {
  const end = new ScanEnd();
  for (let page = 0; page < most; page++)
    await end
      .page(cursorOf(page), keys, () => Promise.resolve(size))
      .catch((error: unknown) => {
        throw new Error(`page ${page}`, { cause: error });
      });
  return end.keys;
}

test('a cursor that comes again is seen, however long the round and whatever comes before it', async (t) => {
  for (const round of [1, 2, 3, 10, 1000])
    for (const before of [0, 1, 17]) {
      const cursorOf = (page: number): string => String(page < before ? 10_000 + page : 1 + ((page - before) % round));
      const error = await t.throwsAsync(pages(cursorOf, 0, 10, 10_000));
      t.true(error.cause instanceof RedisFailure && error.cause.message.includes('goes round'));
      t.true(
        Number(error.message.slice(5)) <= 3 * (round + before) + 3,
        `${error.message} of ${round} after ${before}`,
      );
    }
});

test('keys without an end are seen; a store of any size is read, and one that does not say its size', async (t) => {
  const error = await t.throwsAsync(pages((page) => String(page + 1), 1000, 5000, 100_000));
  t.regex((error.cause as Error).message, /does not come to an end: SCAN has named [\d,]+ keys, DBSIZE says 5,000/);
  t.is(await pages((page) => String(page + 1), 1000, 10_000_000, 20_000), 20_000_000);
  t.is(await pages((page) => String(page + 1), 1000, undefined, 20_000), 20_000_000);
  t.is(await pages((page) => String(page + 1), 0, 5, 20_000), 0);
});
