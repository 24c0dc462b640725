import test from 'ava';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkValuesStatus, ValuesWatch } from './values-watch.js';

async function directoryOf(t: { readonly teardown: (undo: () => Promise<void>) => void }): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'farkv-values-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test('the oldest snapshot counts, and no other file', async (t) => {
  const directory = await directoryOf(t);
  const watch = new ValuesWatch(directory, () => 100_000);
  t.deepEqual(await watch.status(), { snapshots: 0 });
  const ages = { 'snapshot-0-a1': 40, 'snapshot-7-ff': 90, '0-1': 10, 'snapshot-3-b-new': 1 };
  for (const [name, seconds] of Object.entries(ages)) {
    await writeFile(join(directory, name), '');
    await utimes(join(directory, name), seconds, seconds);
  }
  t.deepEqual(await watch.status(), { snapshots: 2, oldestSnapshotMs: 60_000 });
  t.teardown(() => rm(`${directory}.damaged`, { force: true }));
  await writeFile(`${directory}.damaged`, '');
  t.like(await watch.status(), { aside: true, snapshots: 2 });
  // A clock that was set back.
  t.like(await new ValuesWatch(directory, () => 1000).status(), { oldestSnapshotMs: 0 });
});

test('how far a start has read is there until it ends, whatever its end', async (t) => {
  const watch = new ValuesWatch(await directoryOf(t));
  const progress = { bytes: 0, all: 0 };
  const plane = { progress: () => ({ ...progress }) };
  let end: (error?: Error) => void = () => undefined;
  const reading = (): Promise<void> =>
    watch.recovers(
      plane,
      new Promise((resolve, reject) => (end = (error) => (error === undefined ? resolve() : reject(error)))),
    );
  const first = reading();
  t.deepEqual(await watch.status(), { snapshots: 0 });
  Object.assign(progress, { bytes: 30, all: 120 });
  t.deepEqual(await watch.status(), { recovering: { bytes: 30, all: 120 }, snapshots: 0 });
  end();
  await first;
  t.deepEqual(await watch.status(), { snapshots: 0 });
  const second = reading();
  end(new Error('damaged'));
  await t.throwsAsync(second, { message: 'damaged' });
  t.deepEqual(await watch.status(), { snapshots: 0 });
});

test('a directory that cannot be read has no count', async (t) => {
  const directory = await directoryOf(t);
  await rm(directory, { recursive: true });
  const status = await new ValuesWatch(directory).status();
  t.deepEqual(status, {});
  t.notThrows(() => checkValuesStatus(status, 'values'));
  t.throws(() => checkValuesStatus({ snapshots: -1 }, 'values'), { code: 'ERR_PROTOCOL' });
});
