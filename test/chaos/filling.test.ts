import test from 'ava';
import { FarkvError, type ErrorCode } from '../../client/index.js';
import { untilAnswered } from './filling.js';

/** Fails so, one time after the other, then answers. */
function failing(...codes: readonly ErrorCode[]): () => Promise<string> {
  const left = [...codes];
  return () => {
    const code = left.shift();
    return code === undefined ? Promise.resolve('answered') : Promise.reject(new FarkvError(code, 'as told'));
  };
}

test('a look for keys goes on after what passes, for a time, and ends with any other error', async (t) => {
  t.is(await untilAnswered(failing('ERR_BUSY', 'ERR_SHARD_UNAVAILABLE'), 60_000), 'answered');
  await t.throwsAsync(untilAnswered(failing('ERR_BUSY', 'ERR_CORRUPT'), 60_000), { code: 'ERR_CORRUPT' });
  await t.throwsAsync(untilAnswered(failing('ERR_BUSY'), 0), { code: 'ERR_BUSY' });
});
