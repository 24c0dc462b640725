/** Keys keep their names through every form: bytes that a scan gives lead back to the key. */
import test from 'ava';
import { Random } from '../support/random.js';
import { drawKeys, EMPTY_NAMESPACE, idOfBytes, keyOf, keyOfId, keysOfGeneration, NAMESPACES, WIDE } from './keys.js';

test('every key is found again by its bytes, in its own namespace and in no other', (t) => {
  const keys = [...keysOfGeneration(3), keyOf('w', 3, 0), keyOf('w', 3, WIDE - 1)];
  t.is(new Set(keys.map(({ id }) => id)).size, keys.length);
  for (const key of keys) {
    t.is(idOfBytes(key.space, key.bytes), key.id);
    t.is(idOfBytes(EMPTY_NAMESPACE, key.bytes), undefined);
    t.is(idOfBytes(key.space, Buffer.concat([key.bytes, Buffer.from('x')])), undefined);
    t.deepEqual(keyOfId(key.id), key);
  }
  t.is(idOfBytes(0, Buffer.from('nobody')), undefined);
});

test('some keys are no text, and some are long', (t) => {
  t.true(keysOfGeneration(0).some(({ text }) => text === undefined));
  t.true(keysOfGeneration(0).some(({ bytes }) => bytes.length === 300));
});

test('a batch is of one namespace, has keys twice, and may be larger than one crossing', (t) => {
  for (const space of NAMESPACES) {
    const keys = drawKeys(new Random(space), 2, space, space === 3 ? 1500 : 60);
    t.true(keys.every((key) => key.space === space));
    t.true(new Set(keys.map(({ id }) => id)).size < keys.length);
  }
  t.true(new Set(drawKeys(new Random(1), 2, 3, 1500).map(({ id }) => id)).size > 1024);
});
