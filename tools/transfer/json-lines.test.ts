import test from 'ava';
import { PassThrough, Readable } from 'node:stream';
import { FarkvError } from '../../core/errors.js';
import { seeded } from '../../test/support/random.js';
import { nameOf, randomEntry, StoreInMemory } from '../../test/support/stored-entries.js';
import type { EntryRecord } from './entry.js';
import { importJsonLines } from './import-lines.js';
import { entryOfLine, LineError, lineOf, linesOf } from './json-lines.js';

const entry = (more: Partial<EntryRecord> = {}): EntryRecord => ({
  namespace: 0,
  key: Buffer.from('key'),
  value: Buffer.from('value'),
  codec: 0,
  flags: 0,
  expiresAtMs: undefined,
  ...more,
});

/** The bytes, in pieces that are cut wherever it happens. */
// eslint-disable-next-line @typescript-eslint/require-await -- a stream is asynchronous
async function* pieces(bytes: Buffer, sizeOf: () => number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length;) {
    const size = sizeOf();
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function textsOf(bytes: Buffer, size: number, most?: number): Promise<(string | undefined)[]> {
  const texts: (string | undefined)[] = [];
  for await (const line of linesOf(
    pieces(bytes, () => size),
    most,
  ))
    texts[line.number - 1] = line.bytes?.toString();
  return texts;
}

test('any entry is the same after a round trip, byte for byte', (t) => {
  const random = seeded(t, import.meta.filename);
  const odd = ['', '\ufeff mark', 'line\nfeed \u2028', '"\\', '\u0000', 'ä€😀'];
  const entries = [
    ...odd.map((text) => entry({ value: Buffer.from(text), key: Buffer.from(`k${text}`) })),
    entry({ key: Buffer.from([0xff, 0]), value: Buffer.from([0xc0, 0x80]) }),
    ...Array.from({ length: 500 }, () => randomEntry(random, 200)),
  ];
  for (const one of entries) {
    const line = lineOf(one);
    t.is(line.indexOf('\n'), line.length - 1);
    t.deepEqual(entryOfLine(Buffer.from(line.trimEnd()), 9), {
      ...one,
      namespace: line.includes('"namespace"') ? one.namespace : 9,
    });
  }
  const large = Buffer.alloc(3 << 20, '\u0001');
  const line = lineOf(entry({ value: large }));
  t.true(line.length < 4.1 * (1 << 20), 'a large value takes base64, whatever it is');
  t.true(entryOfLine(Buffer.from(line), 0).value.equals(large));
  t.is(lineOf(entry()), '{"key":"key","value":"value"}\n');
  t.is(lineOf(entry({ key: Buffer.from([255]), flags: 1 })), '{"key64":"/w==","value":"value","flags":1}\n');
});

test('what is no entry is refused, with what is wrong', (t) => {
  const wrong: readonly [string, RegExp][] = [
    ['{', /not JSON/],
    ['[]', /not a JSON object/],
    ['null', /not a JSON object/],
    ['{"key":"a"}', /either value or value64/],
    ['{"value":"a"}', /either key or key64/],
    ['{"key":"a","key64":"YQ==","value":""}', /either key or key64/],
    ['{"key":1,"value":""}', /key is not a text/],
    ['{"key":"a","value":"","expiresAt":1}', /unknown field expiresAt; did you mean expiresAtMs\?/],
    ['{"key":"a","value64":"Y"}', /value64 is not base64/],
    ['{"key":"a","value64":"YQ=="}'.replace('YQ==', 'Y!Q='), /value64 is not base64/],
    ['{"key":"a","value":"\\ud800"}', /half a character/],
    ['{"key":"a","value":"","namespace":65536}', /namespace is not an integer from 0 to 65535/],
    ['{"key":"a","value":"","flags":-1}', /flags/],
    ['{"key":"a","value":"","codec":1.5}', /codec/],
    ['{"key":"a","value":"","expiresAtMs":"tomorrow"}', /expiresAtMs/],
    ['{"key":"a","value":"1","key":"b"}', /the field key stands twice/],
    ['{"key":"a","value":"1","flags":1,"flags" : 1}', /the field flags stands twice/],
    ['{"key":"a","value":"\\\\","\\u006bey":"b"}', /the field key stands twice/],
  ];
  for (const [line, message] of wrong)
    t.throws(() => entryOfLine(Buffer.from(line), 0), { instanceOf: LineError, message }, line);
  t.throws(() => entryOfLine(Buffer.from([0x22, 0xff, 0x22]), 0), { message: /not UTF-8/ });
});

test('a stream is cut into its lines wherever its pieces end; one that is too long is not held', async (t) => {
  const text = 'one\n\nthree is longer\r\nlast';
  for (let size = 1; size <= text.length + 1; size++) {
    t.deepEqual(await textsOf(Buffer.from(text), size), ['one', '', 'three is longer\r', 'last']);
    t.deepEqual(await textsOf(Buffer.from(text), size, 4), ['one', '', undefined, 'last']);
  }
  t.deepEqual(await textsOf(Buffer.from('a\n'), 1), ['a']);
  t.deepEqual(await textsOf(Buffer.alloc(0), 1), []);
});

const LINES = ['{"key":"a","value":"1"}', '', '{"key":"b"}', '{"key":"c","value":"3"}', 'x', '{"key":"d","value":"4"}'];

async function imported(lines: readonly string[], skip: boolean, store = new StoreInMemory()) {
  const bad: [number, string][] = [];
  const done = await importJsonLines(store, Readable.from(pieces(Buffer.from(lines.join('\n')), () => 7)), {
    namespace: 2,
    keep: false,
    skip,
    onBad: (line, why) => bad.push([line, why]),
    onRead: () => undefined,
  });
  return { done, bad: bad.map(([line]) => line), keys: [...store.entries.keys()] };
}

test('a bad line ends the import, or is named and left out', async (t) => {
  const keys = (...names: string[]): string[] => names.map((key) => nameOf({ namespace: 2, key: Buffer.from(key) }));
  t.like(await imported(LINES, false), { done: { bad: 1, written: 1, lines: 3 }, bad: [3], keys: keys('a') });
  t.like(await imported(LINES, true), {
    done: { bad: 2, written: 3, lines: 6 },
    bad: [3, 5],
    keys: keys('a', 'c', 'd'),
  });
});

test('an import that stops waits for nothing more of its stream', async (t) => {
  const open = new PassThrough();
  const bad: number[] = [];
  const done = importJsonLines(new StoreInMemory(), open, {
    namespace: 0,
    keep: false,
    skip: false,
    onBad: (line) => bad.push(line),
    onRead: () => undefined,
  });
  open.write('{"key":"a","value":"1"}\nbad\n');
  t.like(await done, { lines: 2, bad: 1, written: 1 });
  t.deepEqual(bad, [2]);
  t.true(open.destroyed);
});

test('an import ends when the cluster does not take an entry, and waits for nothing more of its stream', async (t) => {
  const store = new StoreInMemory();
  store.refuses = () => new FarkvError('ERR_UNAUTHORIZED', 'may only read');
  const open = new PassThrough();
  const done = importJsonLines(store, open, {
    namespace: 0,
    keep: false,
    skip: true,
    onBad: () => t.fail(),
    onRead: () => undefined,
  });
  open.write('{"key":"a","value":"1"}\n');
  await t.throwsAsync(done, { code: 'ERR_UNAUTHORIZED', message: 'may only read' });
});

test('a line whose time is over is left out and counted', async (t) => {
  const late = `{"key":"late","value":"","expiresAtMs":${Date.now() - 1}}`;
  t.like(await imported([late, LINES[0] ?? ''], false), { done: { bad: 0, written: 1, expired: 1 } });
});

test('a value that looks like fields is a value; a byte order mark before the first line is left out', async (t) => {
  for (const text of ['"key":"a","key":"b"', '\\', '\\"', 'x\\\\":', '":":"']) {
    const one = entry({ value: Buffer.from(text), key: Buffer.from(text) });
    t.deepEqual(entryOfLine(Buffer.from(lineOf(one)), 0), one, text);
  }
  const marked = Buffer.from('\ufeff{"key":"a","value":"1"}\n\ufeff{}\n');
  for (const size of [1, 2, 3, 100]) t.deepEqual(await textsOf(marked, size), ['{"key":"a","value":"1"}', '\ufeff{}']);
});
