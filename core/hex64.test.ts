import test from 'ava';
import { fromHex64, toHex64 } from './hex64.js';
import { hex64 } from './protocol/check.js';

test('64 bits have 16 digits, and come back', (t) => {
  for (const bits of [0n, 0xffn, 1n << 60n, 2n ** 64n - 1n]) {
    t.is(hex64(toHex64(bits), 'bits'), toHex64(bits));
    t.is(fromHex64(toHex64(bits)), bits);
  }
  t.is(toHex64(0xffn), '00000000000000ff');
});
