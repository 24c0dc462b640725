import test from 'ava';
import { fillDeterministic, FieldValues } from './field-values.js';
import { ConstantGenerator, UniformGenerator } from './generators/uniform.js';
import { Random } from './random.js';
import { readDirectory, recordBytes, replaceField, writeDirectory } from './record.js';

function record(fields: readonly string[]): Buffer {
  const lengths = fields.map((field) => field.length);
  const bytes = Buffer.alloc(recordBytes(lengths));
  bytes.write(fields.join(''), writeDirectory(bytes, lengths), 'latin1');
  return bytes;
}

const fieldsOf = (bytes: Uint8Array) =>
  readDirectory(bytes)?.map(({ start, end }) => Buffer.from(bytes.subarray(start, end)).toString('latin1'));

test('ten fields of 100 bytes are 1,011 bytes', (t) => {
  t.is(recordBytes(new Array<number>(10).fill(100)), 1011);
});

test('fields come back as they were written', (t) => {
  const random = new Random(5);
  for (let i = 0; i < 200; i++) {
    const fields = Array.from({ length: 1 + random.below(200) }, () =>
      'x'.repeat(random.below(i % 10 === 0 ? 40_000 : 300)),
    );
    t.deepEqual(fieldsOf(record(fields)), fields);
  }
});

test('one field is replaced, by a value of the same length or another', (t) => {
  const before = record(['aaa', 'bbb', 'ccc']);
  t.deepEqual(fieldsOf(replaceField(before, 1, Buffer.from('BBB')) ?? Buffer.alloc(0)), ['aaa', 'BBB', 'ccc']);
  t.deepEqual(fieldsOf(replaceField(before, 2, Buffer.from('longer than before')) ?? Buffer.alloc(0)), [
    'aaa',
    'bbb',
    'longer than before',
  ]);
  t.deepEqual(fieldsOf(replaceField(before, 0, Buffer.alloc(0)) ?? Buffer.alloc(0)), ['', 'bbb', 'ccc']);
  t.deepEqual(fieldsOf(before), ['aaa', 'bbb', 'ccc']);
  t.is(replaceField(before, 3, Buffer.from('x')), undefined);
});

test('bytes that are no record are told from one', (t) => {
  const whole = record(['aaa', 'bbb']);
  for (let n = 0; n < whole.length; n++) t.is(readDirectory(whole.subarray(0, n)), undefined, `${n} bytes`);
  t.is(readDirectory(Buffer.concat([whole, Buffer.from('x')])), undefined);
  t.is(readDirectory(Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])), undefined);
});

/** YCSB's buildDeterministicValue as its text says it. */
function reference(key: string, field: string, size: number): string {
  const hashCode = (text: string) => Array.from(text).reduce((h, c) => (Math.imul(31, h) + c.charCodeAt(0)) | 0, 0);
  let text = `${key}:${field}`;
  while (text.length < size) {
    text += ':';
    text += String(hashCode(text));
  }
  return text.slice(0, size);
}

test("deterministic values are YCSB's, of every length", (t) => {
  for (const size of [1, 5, 20, 29, 30, 31, 100, 101, 1000]) {
    const bytes = Buffer.alloc(size);
    fillDeterministic(bytes, 0, size, 'user6284781860667377211:field3');
    t.is(bytes.toString('latin1'), reference('user6284781860667377211', 'field3', size));
  }
});

test('dataintegrity notices a changed byte, a record of another key, a lost field', (t) => {
  const random = new Random(6);
  const values = new FieldValues(random, new ConstantGenerator(100), ['field0', 'field1'], true, 100);
  const good = values.record('user1');
  t.true(values.verify('user1', good, undefined));
  t.true(values.verify('user1', good, 1));
  t.false(values.verify('user2', good, undefined));
  const changed = Buffer.from(good);
  changed[changed.length - 1] = (changed[changed.length - 1] ?? 0) ^ 1;
  t.false(values.verify('user1', changed, undefined));
  t.true(values.verify('user1', changed, 0));
  t.false(values.verify('user1', record(['x'.repeat(100)]), undefined));
});

test('random values are printable and of the lengths drawn', (t) => {
  const random = new Random(7);
  const values = new FieldValues(random, new UniformGenerator(random, 5, 50), ['a', 'b', 'c'], false, 50);
  for (let i = 0; i < 1000; i++) {
    const fields = fieldsOf(values.record('k')) ?? [];
    t.is(fields.length, 3);
    t.true(fields.every((field) => field.length >= 5 && field.length <= 50 && /^[ -~]*$/.test(field)));
  }
});
