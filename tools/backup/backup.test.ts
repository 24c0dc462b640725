/** Backup, check and restore against a cluster in memory: what is promised of each, and what each refuses. */
import test, { type ExecutionContext } from 'ava';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FarkvError } from '../../core/errors.js';
import { seeded } from '../../test/support/random.js';
import { nameOf, randomEntry, StoreInMemory } from '../../test/support/stored-entries.js';
import { EVERY_NAMESPACE } from '../../native/native-client.js';
import type { EntryRecord } from '../transfer/entry.js';
import { Room } from '../transfer/room.js';
import { shardEntries } from '../transfer/shard-entries.js';
import { checkBackup } from './check.js';
import { damageText } from './chunk-reader.js';
import { HEAD_BYTES } from './format.js';
import { MANIFEST, readManifest } from './manifest.js';
import { restoreBackup } from './restore.js';
import { takeBackup } from './take.js';

const NOTHING = {
  damage: () => undefined,
  checked: () => undefined,
  written: () => undefined,
  refused: () => undefined,
};

function directoryOf(t: ExecutionContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-backup-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, 'backup');
}

const entry = (key: string, value: string, more: Partial<EntryRecord> = {}): EntryRecord => ({
  namespace: 0,
  key: Buffer.from(key),
  value: Buffer.from(value),
  codec: 0,
  flags: 0,
  expiresAtMs: undefined,
  ...more,
});

function storeOf(entries: readonly EntryRecord[], tenant?: string): StoreInMemory {
  const store = new StoreInMemory(tenant);
  for (const one of entries) store.set(one);
  return store;
}

async function restore(directory: string, stores: readonly StoreInMemory[], keep = false) {
  return await restoreBackup(directory, await readManifest(directory), stores, keep, NOTHING);
}

async function damagesOf(directory: string): Promise<string[]> {
  const found: string[] = [];
  await checkBackup(
    directory,
    await readManifest(directory),
    (damage) => found.push(damageText(damage)),
    () => undefined,
  );
  return found;
}

/** A time to live is counted anew at the restore: its end may lie some milliseconds elsewhere. */
function same(t: ExecutionContext, found: Iterable<EntryRecord>, expected: readonly EntryRecord[]): void {
  const byName = new Map(Array.from(found, (one) => [nameOf(one), one]));
  t.is(byName.size, expected.length);
  for (const { expiresAtMs, ...one } of expected) {
    t.like(byName.get(nameOf(one)), one);
    const end = byName.get(nameOf(one))?.expiresAtMs;
    t.true(expiresAtMs === undefined ? end === undefined : Math.abs((end ?? 0) - expiresAtMs) < 60_000);
  }
}

test('a backup has everything that is stored, in private files, and gives it back', async (t) => {
  const random = seeded(t, import.meta.filename);
  const directory = directoryOf(t);
  const entries = [
    ...new Map(Array.from({ length: 200 }, () => randomEntry(random, 500)).map((e) => [nameOf(e), e])).values(),
  ];
  const manifest = await takeBackup([storeOf(entries)], directory, () => undefined);
  t.like(manifest, { entries: entries.length, clusterId: 'c'.repeat(32), hashSeed: '5'.repeat(32) });
  t.is(statSync(directory).mode & 0o777, 0o700);
  for (const name of readdirSync(directory)) t.is(statSync(join(directory, name)).mode & 0o777, 0o600, name);
  t.deepEqual(await damagesOf(directory), []);
  const target = new StoreInMemory(undefined, 5);
  t.like(await restore(directory, [target]), { written: entries.length, kept: 0, expired: 0 });
  same(t, target.entries.values(), entries);
});

test('tenants go to the clients of their tenants; without one nothing is written', async (t) => {
  const directory = directoryOf(t);
  const rest = [entry('a', 'of the rest')];
  const shop = [entry('a', 'of the shop'), entry('b', 'b')];
  await takeBackup([storeOf(rest), storeOf(shop, 'shop')], directory, () => undefined);
  const targets = [new StoreInMemory('shop'), new StoreInMemory()] as const;
  await t.throwsAsync(restore(directory, [targets[1]]), {
    code: 'ERR_CONFIG',
    message: /tenant shop.*nothing was written/,
  });
  await t.throwsAsync(restore(directory, [new StoreInMemory('shops'), targets[1]]), { message: /tenant shop, / });
  t.is(targets[1].puts, 0);
  await restore(directory, targets);
  same(t, targets[0].entries.values(), shop);
  same(t, targets[1].entries.values(), rest);
  await t.throwsAsync(
    takeBackup([storeOf(rest), storeOf(rest)], directoryOf(t), () => undefined),
    { code: 'ERR_CONFIG', message: /two of the tokens are of the default tenant/ },
  );
});

test('the value of one write never gets the expiry of another', async (t) => {
  const directory = directoryOf(t);
  const soon = Date.now() + 50;
  const store = storeOf([entry('large', 'x'.repeat(1000), { expiresAtMs: soon }), entry('other', 'y')]);
  let writes = 0;
  store.onGet = () => {
    // The key is written again, without an expiry, between its place in the list and the read of its value.
    if (writes++ === 0) store.set(entry('large', 'z'.repeat(1000), { flags: 7 }));
  };
  await takeBackup([store], directory, () => undefined);
  await new Promise<void>((resolve) => setTimeout(resolve, Math.max(0, soon + 1 - Date.now())));
  const target = new StoreInMemory();
  await restore(directory, [target]);
  same(t, target.entries.values(), [entry('large', 'z'.repeat(1000), { flags: 7 }), entry('other', 'y')]);
});

test('no more large values are held at once than there is room for', async (t) => {
  const store = new StoreInMemory(undefined, 4);
  for (let i = 0; i < 40; i++) store.set(entry(`${String.fromCharCode(97 + i)} large`, 'x'.repeat(1000)));
  let held = 0;
  let most = 0;
  store.onGet = () => (most = Math.max(most, ++held));
  const room = new Room(2500);
  const read = async (shard: number): Promise<number> => {
    let found = 0;
    for await (const { entries } of shardEntries(store, shard, EVERY_NAMESPACE, room)) {
      await new Promise((resolve) => setImmediate(resolve));
      held -= entries.length;
      found += entries.length;
    }
    return found;
  };
  const found = await Promise.all([0, 1, 2, 3].map(read));
  t.is(
    found.reduce((sum, one) => sum + one, 0),
    40,
  );
  t.is(most, 2);
});

test('a large value that is deleted before it is read is left out; one that never stands still is an error', async (t) => {
  const directory = directoryOf(t);
  const store = storeOf([entry('large', 'x'.repeat(1000)), entry('small', 'y')]);
  store.onGet = (name) => void store.entries.delete(name);
  t.is((await takeBackup([store], directory, () => undefined)).entries, 1);
  store.set(entry('large', 'x'.repeat(1000)));
  store.onGet = () => store.set(entry('large', 'x'.repeat(1000)));
  const other = directoryOf(t);
  await t.throwsAsync(
    takeBackup([store], other, () => undefined),
    { message: /"large" is written faster/ },
  );
  await t.throwsAsync(readManifest(other), { code: 'ERR_CORRUPT', message: /manifest.json.* is missing/ });
});

test('what has expired is not restored', async (t) => {
  const directory = directoryOf(t);
  const end = Date.now() + 30;
  await takeBackup(
    [storeOf([entry('soon', 'x', { expiresAtMs: end }), entry('never', 'y')])],
    directory,
    () => undefined,
  );
  await new Promise<void>((resolve) => setTimeout(resolve, Math.max(0, end + 1 - Date.now())));
  const target = new StoreInMemory();
  t.like(await restore(directory, [target]), { written: 1, expired: 1 });
  t.deepEqual([...target.entries.keys()], [nameOf(entry('never', ''))]);
});

test('present keys are replaced, or kept with --keep-newer; a restore can be run again', async (t) => {
  const directory = directoryOf(t);
  const entries = [entry('a', 'of the backup'), entry('b', 'b')];
  await takeBackup([storeOf(entries)], directory, () => undefined);
  const present = [entry('a', 'present'), entry('c', 'c')];
  const target = storeOf(present);
  t.like(await restore(directory, [target], true), { written: 1, kept: 1 });
  t.like(await restore(directory, [target], true), { written: 0, kept: 2 });
  same(t, target.entries.values(), [...present, entry('b', 'b')]);
  for (let i = 0; i < 2; i++) {
    t.like(await restore(directory, [target]), { written: 2 });
    same(t, target.entries.values(), [...entries, entry('c', 'c')]);
  }
});

test('an entry that the cluster refuses is told by its key, and the others are restored', async (t) => {
  const directory = directoryOf(t);
  await takeBackup(
    [storeOf([entry('a', 'a'), entry('large', 'x'.repeat(50)), entry('z', 'z')])],
    directory,
    () => undefined,
  );
  const target = new StoreInMemory();
  target.refuses = (_, value) =>
    value.length > 10 ? new FarkvError('ERR_TABLE_FULL', 'too small for the value') : undefined;
  const refused: string[] = [];
  const restored = await restoreBackup(directory, await readManifest(directory), [target], false, {
    ...NOTHING,
    refused: (key, error) => refused.push(`${String(key)} ${error.code}`),
  });
  t.like(restored, { written: 2 });
  t.deepEqual(refused, ['large ERR_TABLE_FULL']);
});

test('of a damaged backup nothing is written, and each damage is named', async (t) => {
  const directory = directoryOf(t);
  await takeBackup([storeOf([entry('a', 'first'), entry('b', 'second')])], directory, () => undefined);
  const good = new Map(readdirSync(directory).map((name) => [name, readFileSync(join(directory, name))]));
  const [name = ''] = [...good.keys()].filter((one) => (good.get(one)?.length ?? 0) > 100 && one !== MANIFEST);
  const bytes = Buffer.from(good.get(name) ?? '');
  bytes[HEAD_BYTES + 50] = (bytes[HEAD_BYTES + 50] ?? 0) ^ 0x40;
  writeFileSync(join(directory, name), bytes);
  const target = new StoreInMemory();
  await t.throwsAsync(restore(directory, [target]), { code: 'ERR_CORRUPT', message: /nothing was written/ });
  t.is(target.puts, 0);
  const [damage = ''] = await damagesOf(directory);
  t.true(damage.startsWith(`${name}: offset ${HEAD_BYTES}: chunk 0`), damage);
  rmSync(join(directory, name));
  t.deepEqual(await damagesOf(directory), [`${name}: offset 0: the file is missing`]);
  await t.throwsAsync(restore(directory, [target]), { code: 'ERR_CORRUPT' });
});

test('a whole file of another backup is damage', async (t) => {
  const [one, two] = [directoryOf(t), directoryOf(t)];
  const store = storeOf([entry('a', 'first'), entry('b', 'second')]);
  await takeBackup([store], one, () => undefined);
  await takeBackup([store], two, () => undefined);
  writeFileSync(join(one, '0-0001.chunks'), readFileSync(join(two, '0-0001.chunks')));
  t.deepEqual(await damagesOf(one), ['0-0001.chunks: offset 0: its head is not that of shard 1 of this backup']);
});

test('any flipped bit of the manifest that changes what it says is noticed', async (t) => {
  const directory = directoryOf(t);
  await takeBackup([storeOf([entry('a', 'b')])], directory, () => undefined);
  const path = join(directory, MANIFEST);
  const bytes = readFileSync(path);
  const said = JSON.stringify(await readManifest(directory));
  const random = seeded(t, import.meta.filename);
  for (let at = 0; at < bytes.length; at++) {
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << random.below(8));
    writeFileSync(path, flipped);
    const read = await readManifest(directory).then(
      (manifest) => JSON.stringify(manifest),
      (error: unknown) => error,
    );
    if (read === said) continue;
    t.like(read, { code: 'ERR_CORRUPT' }, `byte ${at}`);
  }
  for (let length = 0; length < bytes.length - 2; length += 11) {
    writeFileSync(path, bytes.subarray(0, length));
    await t.throwsAsync(readManifest(directory), { code: 'ERR_CORRUPT' });
  }
});

test('a backup of another version is refused by the name of its format, and is not called damaged', async (t) => {
  const directory = directoryOf(t);
  await takeBackup([storeOf([entry('a', 'b')])], directory, () => undefined);
  const path = join(directory, MANIFEST);
  writeFileSync(path, readFileSync(path, 'utf8').replace('farkv-backup-1', 'farkv-backup-2'));
  await t.throwsAsync(readManifest(directory), {
    code: 'ERR_UNSUPPORTED',
    message: `${path} has format farkv-backup-2, of another version of farkv: use that one; this one reads farkv-backup-1`,
  });
});

test('a directory that is not empty is refused, and so is one that is no backup, or no whole one', async (t) => {
  const directory = directoryOf(t);
  const store = storeOf([entry('a', 'b')]);
  mkdirSync(directory);
  await t.throwsAsync(readManifest(directory), { code: 'ERR_CONFIG', message: /is not a backup/ });
  await t.throwsAsync(readManifest(join(directory, 'nowhere')), { code: 'ERR_CONFIG', message: /ENOENT/ });
  await takeBackup([store], directory, () => undefined);
  await t.throwsAsync(
    takeBackup([store], directory, () => undefined),
    { code: 'ERR_CONFIG', message: /is not empty/ },
  );
  rmSync(join(directory, MANIFEST));
  await t.throwsAsync(readManifest(directory), {
    code: 'ERR_CORRUPT',
    message: /was not finished: manifest.json, which is written last, is missing; there are 2 of its files/,
  });
});
