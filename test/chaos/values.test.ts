/** Foreign bytes, torn values and wrong lengths are seen in the value itself, and it is said whose the bytes are. */
import test from 'ava';
import { makeTiny, makeValue, readTiny, readValue, TINY_MAX } from './values.js';

const wrong = (seen: ReturnType<typeof readValue>): string => ('wrong' in seen ? seen.wrong : '');

test('a value of any length says which write it is of', (t) => {
  for (const bytes of [0, 1, 40, 41, 63, 64, 300, 4096, 70_000, 1_000_000])
    t.deepEqual(readValue('0:k1', makeValue('0:k1', 'shm0-7', bytes)), { id: 'shm0-7' });
});

test('the value of another key is seen', (t) => {
  t.regex(
    wrong(readValue('0:a', makeValue('0:b', 'w-1', 200))),
    /200 bytes for 0:a: \[0, \d+\) 0:b by w-1, of 200 bytes, shifted by 0/,
  );
});

test('one byte of another value anywhere is seen', (t) => {
  const value = makeValue('0:a', 'w-1', 500);
  const other = makeValue('0:a', 'w-2', 500);
  for (let at = 0; at < value.length; at++) {
    if (value[at] === other[at]) continue;
    const torn = Buffer.from(value);
    torn[at] = other[at]!;
    t.not(wrong(readValue('0:a', torn)), '', `byte ${at}`);
  }
});

test('a value that is too short, too long or lies elsewhere is seen', (t) => {
  const value = makeValue('0:a', 'w-1', 900);
  for (const bad of [
    value.subarray(0, 899),
    Buffer.concat([value, Buffer.alloc(1)]),
    value.subarray(1),
    Buffer.concat([value.subarray(450), value.subarray(0, 450)]),
  ]) {
    t.not(wrong(readValue('0:a', bad)), '');
  }
});

test('of a value that is made of two it is said where each of them is', (t) => {
  const said = wrong(
    readValue(
      '0:a',
      Buffer.concat([makeValue('0:a', 'w-1', 640).subarray(0, 320), makeValue('0:b', 'w-2', 640).subarray(320)]),
    ),
  );
  t.regex(said, /0:a by w-1/);
  t.regex(said, /0:b by w-2/);
});

test('tiny values, also empty ones, are those of their key', (t) => {
  for (let bytes = 0; bytes <= TINY_MAX; bytes++) {
    t.deepEqual(readTiny('1:y3', makeTiny('1:y3', bytes)), { id: `tiny-${bytes}` });
    if (bytes > 0) t.not(wrong(readTiny('1:y4', makeTiny('1:y3', bytes))), '');
    t.not(wrong(readTiny('1:y3', Buffer.concat([makeTiny('1:y3', bytes), Buffer.from([7])]))), '');
  }
});
