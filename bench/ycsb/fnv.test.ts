import test from 'ava';
import { decimal64, fnvHash64, fnvModulo, hashed } from './fnv.js';
import { KeyNames } from './key-name.js';
import { Random } from './random.js';

/** YCSB's hash as its text says it, on BigInts. */
function reference(value: bigint): bigint {
  let hash = 0xcbf29ce484222325n;
  let rest = value;
  for (let i = 0; i < 8; i++) {
    hash = ((hash ^ (rest & 0xffn)) * 1099511628211n) & 0xffffffffffffffffn;
    rest >>= 8n;
  }
  const signed = BigInt.asIntN(64, hash);
  return signed < 0n ? BigInt.asIntN(64, -signed) : signed;
}

function hash(value: number): bigint {
  fnvHash64(value);
  return (BigInt(hashed.high) << 32n) | BigInt(hashed.low);
}

test('the hash of a record number is the 64-bit one, bit by bit', (t) => {
  const random = new Random(1);
  const values = [0, 1, 2, 255, 256, 65_535, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 9_999_999_999, 2 ** 53 - 1];
  for (let i = 0; i < 20_000; i++) values.push(random.below(i % 2 === 0 ? 10_000_000_001 : 1_000_000));
  for (const value of values)
    if (hash(value) !== reference(BigInt(value))) t.fail(`${value}: ${hash(value)} is not ${reference(BigInt(value))}`);
  t.pass();
});

test('known key names of YCSB', (t) => {
  // user6284781860667377211 is the first key that YCSB loads with insertorder=hashed.
  const names = new KeyNames(false, 1, 10);
  t.is(names.of(0), 'user6284781860667377211');
  t.is(names.of(1), 'user8517097267634966620');
  t.is(names.of(0), 'user6284781860667377211');
});

test('ordered names are padded to zeropadding digits', (t) => {
  t.is(new KeyNames(true, 1, 10).of(5), 'user5');
  t.is(new KeyNames(true, 8, 10).of(5), 'user00000005');
  t.is(new KeyNames(true, 2, 10).of(12_345), 'user12345');
});

test('decimal64 writes what Long.toString writes', (t) => {
  const random = new Random(2);
  for (let i = 0; i < 20_000; i++) {
    const high = (random.int32() >>> 0) & (i % 3 === 0 ? 0xff : 0x7fffffff);
    const low = random.int32() >>> 0;
    t.is(decimal64(high, low), String((BigInt(high) << 32n) | BigInt(low)));
  }
  t.is(decimal64(0, 0), '0');
  t.is(decimal64(0x7fffffff, 0xffffffff), '9223372036854775807');
  t.is(decimal64(0x80000000, 0), '-9223372036854775808');
});

test('fnvModulo is the remainder of the hash', (t) => {
  const random = new Random(3);
  for (let i = 0; i < 20_000; i++) {
    const value = random.below(10_000_000_001);
    const modulus = 1 + random.below(i % 2 === 0 ? 1000 : 2 ** (i % 3 === 0 ? 37 : 31));
    t.is(fnvModulo(value, modulus), Number(reference(BigInt(value)) % BigInt(modulus)));
  }
});
