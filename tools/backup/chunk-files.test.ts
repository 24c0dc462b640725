/** Files of backups: what was written comes back, and whatever is changed in one is noticed before it is handed out. */
import test, { type ExecutionContext } from 'ava';
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seeded } from '../../test/support/random.js';
import { randomEntry } from '../../test/support/stored-entries.js';
import type { EntryRecord } from '../transfer/entry.js';
import { readChunks, type Damage } from './chunk-reader.js';
import { ChunkWriter } from './chunk-writer.js';
import { CHUNK_HEAD_BYTES, FOOT_BYTES, HEAD_BYTES, type Place } from './format.js';

const PLACE: Place = { backup: '00112233445566778899aabbccddeeff', tenant: 0, shard: 7 };
/** So that a small file has many chunks. */
const CHUNK = 40;

function directoryOf(t: ExecutionContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-chunks-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  return directory;
}

async function write(path: string, entries: readonly EntryRecord[], place = PLACE, chunk = CHUNK) {
  const writer = await ChunkWriter.create(path, place, chunk);
  await writer.add(entries);
  return await writer.finish();
}

interface Found {
  readonly entries: EntryRecord[];
  readonly damages: Damage[];
  readonly offsets: number[];
  readonly whole: boolean;
}

async function read(path: string, place = PLACE): Promise<Found> {
  const found = { entries: [] as EntryRecord[], damages: [] as Damage[], offsets: [] as number[], whole: false };
  for await (const part of readChunks(path, place)) {
    if (part.kind === 'damage') found.damages.push(part);
    else if (part.kind === 'end') found.whole = true;
    else {
      found.entries.push(...part.entries);
      found.offsets.push(part.offset);
    }
  }
  return found;
}

const entry = (key: string, value: string): EntryRecord => ({
  namespace: 3,
  key: Buffer.from(key),
  value: Buffer.from(value),
  codec: 1,
  flags: 9,
  expiresAtMs: 1_790_000_000_000,
});
const SEVEN = Array.from({ length: 7 }, (_, i) => entry(`key ${i}`, `value ${i} `.repeat(2)));

test('entries come back as they were, whatever their bytes; an empty shard has a file too', async (t) => {
  const random = seeded(t, import.meta.filename);
  const path = join(directoryOf(t), 'file');
  const entries = Array.from({ length: 300 }, () => randomEntry(random, 3000));
  const file = await write(path, entries, PLACE, 4096);
  t.like(file, { name: 'file', shard: 7, entries: 300, bytes: statSync(path).size });
  t.is(statSync(path).mode & 0o777, 0o600);
  const found = await read(path);
  t.deepEqual(found.entries, entries);
  t.true(found.whole);
  t.is(found.offsets.length, file.chunks);
  const empty = `${path}-empty`;
  t.like(await write(empty, []), { entries: 0, chunks: 0, bytes: HEAD_BYTES + FOOT_BYTES });
  t.like(await read(empty), { whole: true, entries: [], damages: [] });
});

test('a value of the largest size lies in one chunk', async (t) => {
  const path = join(directoryOf(t), 'file');
  const large = { ...entry('large', ''), value: Buffer.alloc(64 << 20, 'abc') };
  const file = await write(path, [entry('before', 'x'), large, entry('behind', 'y')], PLACE, 256 << 10);
  t.is(file.chunks, 2);
  const found = await read(path);
  t.true(found.whole);
  t.true(found.entries[1]?.value.equals(large.value));
});

test('any flipped bit is damage, and nothing is handed out that was not written', async (t) => {
  const random = seeded(t, import.meta.filename);
  const path = join(directoryOf(t), 'file');
  await write(path, SEVEN);
  const bytes = readFileSync(path);
  const copy = `${path}-copy`;
  for (let at = 0; at < bytes.length; at++) {
    const bit = random.below(8);
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
    writeFileSync(copy, flipped);
    const { damages, entries, whole } = await read(copy);
    t.true(damages.length > 0 && !whole, `bit ${bit} of byte ${at}`);
    t.true(
      entries.every((one) => SEVEN.some((was) => was.key.equals(one.key) && was.value.equals(one.value))),
      `bit ${bit} of byte ${at}`,
    );
  }
});

test('a file that is cut off anywhere is damage, and is said to be cut off', async (t) => {
  const path = join(directoryOf(t), 'file');
  await write(path, SEVEN);
  const bytes = readFileSync(path);
  const copy = `${path}-copy`;
  for (let length = 0; length < bytes.length; length++) {
    writeFileSync(copy, bytes.subarray(0, length));
    const { damages, whole } = await read(copy);
    t.false(whole);
    t.is(damages.length, 1);
    t.regex(damages[0]?.what ?? '', /cut off/, `${length} of ${bytes.length} bytes`);
  }
  writeFileSync(copy, Buffer.concat([bytes, Buffer.from('x')]));
  t.like(await read(copy), { whole: false, damages: [{ what: '1 bytes follow the foot', offset: bytes.length }] });
});

test('a damaged chunk is named by its offset, and those behind it are still read', async (t) => {
  const path = join(directoryOf(t), 'file');
  await write(path, SEVEN);
  const { offsets } = await read(path);
  t.true(offsets.length > 3);
  const bytes = readFileSync(path);
  const at = offsets[1] ?? 0;
  bytes[at + CHUNK_HEAD_BYTES + 30] = (bytes[at + CHUNK_HEAD_BYTES + 30] ?? 0) ^ 1;
  writeFileSync(path, bytes);
  const found = await read(path);
  t.like(found.damages, [{ kind: 'damage', file: 'file', offset: at }]);
  t.is(found.damages.length, 1);
  t.deepEqual(
    found.offsets,
    offsets.filter((offset) => offset !== at),
  );
});

/** The chunks of a file, each with its head. */
function cut(bytes: Buffer, offsets: readonly number[]): Buffer[] {
  const ends = [...offsets.slice(1), bytes.length - FOOT_BYTES];
  return offsets.map((offset, i) => bytes.subarray(offset, ends[i]));
}

test('chunks that are left out, doubled, in another order, of another file or another backup are damage', async (t) => {
  const directory = directoryOf(t);
  const path = join(directory, 'file');
  await write(path, SEVEN);
  const { offsets } = await read(path);
  const bytes = readFileSync(path);
  const chunks = cut(bytes, offsets);
  const head = bytes.subarray(0, HEAD_BYTES);
  const foot = bytes.subarray(bytes.length - FOOT_BYTES);
  const stranger = async (place: Place): Promise<Buffer> => {
    const other = join(directory, `${place.backup}-${place.shard}`);
    await write(other, SEVEN, place);
    return cut(readFileSync(other), offsets)[1] ?? Buffer.alloc(0);
  };
  const [first = head, second = head, ...rest] = chunks;
  const changed: Record<string, Buffer[]> = {
    'left out': [first, ...rest],
    'the last left out': chunks.slice(0, -1),
    doubled: [first, first, second, ...rest],
    'in another order': [second, first, ...rest],
    'of another file': [first, await stranger({ ...PLACE, shard: 8 }), ...rest],
    'of another backup': [first, await stranger({ ...PLACE, backup: 'ff'.repeat(16) }), ...rest],
  };
  for (const [what, parts] of Object.entries(changed)) {
    writeFileSync(path, Buffer.concat([head, ...parts, foot]));
    const { damages, whole } = await read(path);
    t.true(damages.length > 0 && !whole, what);
  }
  writeFileSync(path, Buffer.concat([head, ...chunks, foot]));
  t.true((await read(path)).whole);
  t.like(await read(path, { ...PLACE, shard: 8 }), { entries: [], whole: false });
  t.like(await read(join(directory, 'nobody')), { damages: [{ what: 'the file is missing' }], whole: false });
});

test('a length that no chunk has is refused before memory is taken for it', async (t) => {
  const path = join(directoryOf(t), 'file');
  await write(path, SEVEN);
  const bytes = readFileSync(path);
  bytes.writeUInt32LE(100 << 20, HEAD_BYTES + 12);
  writeFileSync(path, bytes);
  // The file has so many bytes: none of them is written.
  truncateSync(path, 200 << 20);
  const { damages } = await read(path);
  t.like(damages, [{ offset: HEAD_BYTES, what: 'chunk 0 says it has 104857600 bytes; the rest cannot be read' }]);
});
