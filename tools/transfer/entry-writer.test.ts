import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import { StoreInMemory } from '../../test/support/stored-entries.js';
import type { EntryRecord } from './entry.js';
import { EntryWriter } from './entry-writer.js';
import { patiently } from './patience.js';

const entry = (key: string, expiresAtMs?: number): EntryRecord => ({
  namespace: 0,
  key: Buffer.from(key),
  value: Buffer.from('value'),
  codec: 0,
  flags: 0,
  expiresAtMs,
});

/** A store whose puts fail with these codes, one after the other, and then succeed. */
function failing(...codes: ConstructorParameters<typeof FarkvError>[0][]) {
  const store = new StoreInMemory();
  const tried: string[] = [];
  const put = (key: Buffer): Promise<void> => {
    tried.push(String(key));
    const code = codes.shift();
    return code === undefined ? Promise.resolve() : Promise.reject(new FarkvError(code, code));
  };
  const view = { withCodec: () => view, put };
  store.namespace = () => view as never;
  return { store, tried };
}

test('what passes is tried again, until the time is over; what does not is thrown at once', async (t) => {
  const { store, tried } = failing('ERR_BUSY', 'ERR_SHARD_UNAVAILABLE', 'ERR_INDETERMINATE');
  const writer = new EntryWriter(store, false);
  await writer.put(entry('a'));
  await writer.end();
  t.deepEqual(tried, ['a', 'a', 'a', 'a']);
  t.is(writer.written, 1);
  let tries = 0;
  const busy = (): Promise<never> => {
    tries++;
    return Promise.reject(new FarkvError('ERR_BUSY', 'busy'));
  };
  await t.throwsAsync(patiently(busy, -1), { code: 'ERR_BUSY' });
  t.is(tries, 1);
});

test('an error that nobody deals with ends the next put and the end; one that is dealt with does not', async (t) => {
  const { store } = failing('ERR_UNAUTHORIZED');
  const writer = new EntryWriter(store, false);
  await writer.put(entry('a'));
  await t.throwsAsync(writer.end(), { code: 'ERR_UNAUTHORIZED' });
  await t.throwsAsync(writer.put(entry('b')), { code: 'ERR_UNAUTHORIZED' });

  const other = failing('ERR_KEY_INVALID');
  const goesOn = new EntryWriter(other.store, false);
  const errors: unknown[] = [];
  await goesOn.put(entry('a'), (error) => errors.push(error) > 0);
  await goesOn.put(entry('b'));
  await goesOn.end();
  t.is(errors.length, 1);
  t.deepEqual(other.tried, ['a', 'b']);
  t.is(goesOn.written, 1);
});
