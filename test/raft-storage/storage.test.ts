/**
 * The storage of a member over real files: what comes back, what is repaired, what is refused, and how a process ends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Entry, Ready, Snapshot } from '../../core/raft/index.js';
import { FileDisk, RaftStorage, type Disk, type StorageOptions } from '../../server/raft-storage/index.js';
import { addon } from '../../native/addon.js';
import { crc32c } from '../support/crc32c.js';
import { seeded } from '../support/random.js';

const SEGMENT_BYTES = 1000;
const NATIVE = { dropCleanPages: (fd: number) => addon.dropCleanPages(fd) };
const identity = { clusterId: 'one', memberId: 3 };

function directory(t: ExecutionContext): string {
  const path = mkdtempSync(join(tmpdir(), 'farkv-raft-'));
  t.teardown(() => {
    rmSync(path, { recursive: true });
  });
  return path;
}

const notices: string[] = [];
function options(disk: Disk, more: Partial<StorageOptions> = {}): StorageOptions {
  return {
    disk,
    identity,
    bootstrap: [1, 2, 3],
    checksum: crc32c,
    rebuild: 'farkv REBUILD',
    segmentBytes: SEGMENT_BYTES,
    notice: (text) => notices.push(text),
    fatal: (what, cause) => {
      throw new Error(`fatal: ${what}`, { cause });
    },
    ...more,
  };
}

const open = (path: string, more: Partial<StorageOptions> = {}) =>
  RaftStorage.open(options(new FileDisk(path, { ...NATIVE, tryLock: () => true }), more));

const entry = (index: number, term: number, size = 40): Entry => ({
  index,
  term,
  type: 0,
  data: new Uint8Array(size).fill(index),
});
function batch(
  entries: Entry[],
  hardState?: Ready['hardState'],
  snapshot?: Snapshot,
): Pick<Ready, 'hardState' | 'snapshot' | 'entries'> {
  return { hardState, snapshot, entries };
}
const snapshotAt = (index: number, term: number): Snapshot => ({
  meta: { index, term, config: { voters: [1, 2, 3], outgoing: [], learners: [] } },
  data: new Uint8Array(100).fill(index),
});
const files = (path: string, prefix: string) =>
  readdirSync(path)
    .filter((name) => name.startsWith(prefix))
    .sort();
const newestSegment = (path: string) => join(path, files(path, 'log-').at(-1)!);

/** A member that has persisted entries 2 to 20 one by one. */
function written(t: ExecutionContext): string {
  const path = directory(t);
  const { storage } = open(path);
  storage.persist(batch([], { term: 2, vote: 1, commit: 1 }));
  for (let index = 2; index <= 20; index++)
    storage.persist(batch([entry(index, 2)], { term: 2, vote: 1, commit: index - 1 }));
  storage.close();
  return path;
}

test('a new directory begins with the first voters, or with nothing when the member joins', (t) => {
  const first = open(directory(t));
  t.true(first.created);
  t.deepEqual(first.restored.hardState, { term: 1, vote: 0, commit: 1 });
  t.is(first.restored.entries.length, 1);
  first.storage.close();
  const joining = open(directory(t), { bootstrap: undefined });
  t.deepEqual(joining.restored, { hardState: { term: 0, vote: 0, commit: 0 }, entries: [] });
  joining.storage.close();
});

test('what was persisted comes back: term, vote, entries in several segments, the last replacing what they overlap', (t) => {
  const path = written(t);
  t.true(files(path, 'log-').length > 1);
  const again = open(path);
  t.false(again.created);
  t.deepEqual(again.restored.hardState, { term: 2, vote: 1, commit: 19 });
  t.deepEqual(
    again.restored.entries.slice(1),
    Array.from({ length: 19 }, (_, i) => entry(i + 2, 2)),
  );
  again.storage.persist(batch([entry(15, 3), entry(16, 3)], { term: 3, vote: 2, commit: 14 }));
  again.storage.close();
  const replaced = open(path);
  t.like(replaced.restored.hardState, { term: 3, vote: 2 });
  t.deepEqual(
    replaced.restored.entries.slice(13).map(({ index, term }) => [index, term]),
    [
      [14, 2],
      [15, 3],
      [16, 3],
    ],
  );
  replaced.storage.close();
});

test('a snapshot of its own removes the segments that it covers; what follows comes back behind it', (t) => {
  const path = written(t);
  const { storage } = open(path);
  const before = files(path, 'log-').length;
  t.is(storage.saveSnapshot(snapshotAt(12, 2)), 'done');
  t.true(files(path, 'log-').length < before);
  t.is(storage.saveSnapshot(snapshotAt(15, 2)), 'done');
  t.deepEqual(files(path, 'snapshot-'), ['snapshot-0000000000000015']);
  storage.close();
  const { restored, storage: again } = open(path);
  t.deepEqual(restored.snapshot, snapshotAt(15, 2));
  t.deepEqual(
    restored.entries.map(({ index }) => index),
    [16, 17, 18, 19, 20],
  );
  again.close();
});

test('a snapshot of the leader replaces the log, with what came behind it in the same batch', (t) => {
  const path = written(t);
  const { storage } = open(path);
  storage.persist(batch([entry(101, 5)], { term: 5, vote: 0, commit: 101 }, snapshotAt(100, 4)));
  storage.close();
  const { restored, storage: again } = open(path);
  t.deepEqual(restored.hardState, { term: 5, vote: 0, commit: 101 });
  t.is(restored.snapshot?.meta.index, 100);
  t.deepEqual(restored.entries, [entry(101, 5)]);
  again.close();
});

test('a last write that a crash cut short is cut off, with a notice, at every length that it can have', (t) => {
  const path = written(t);
  // No new segment is begun here: it is one file whose end is torn.
  const roomy = { segmentBytes: 1_000_000 };
  const whole = readFileSync(newestSegment(path));
  // The last record was not acknowledged, so the file that tells of acknowledgements is that of before.
  const { storage } = open(path, roomy);
  const state = readFileSync(join(path, 'state'));
  storage.persist(batch([entry(21, 2)]));
  storage.close();
  const longer = readFileSync(newestSegment(path));
  t.true(longer.length > whole.length + 40);
  for (let size = whole.length; size < longer.length; size++) {
    for (const tail of ['short', 'zeros', 'noise']) {
      const bytes = Buffer.from(longer);
      if (tail === 'zeros') bytes.fill(0, size);
      if (tail === 'noise') bytes.fill(0xa5, size);
      writeFileSync(newestSegment(path), tail === 'short' ? longer.subarray(0, size) : bytes);
      writeFileSync(join(path, 'state'), state);
      notices.length = 0;
      const { restored, storage: repaired } = open(path, roomy);
      if (restored.entries.at(-1)?.index !== 20 || (size > whole.length && notices.length !== 1))
        t.fail(`cut at ${size} of ${longer.length}, ${tail}: ${restored.entries.at(-1)?.index}, ${notices.join()}`);
      repaired.persist(batch([entry(21, 4)]));
      repaired.close();
      const { restored: after, storage: last } = open(path, roomy);
      if (after.entries.at(-1)?.term !== 4) t.fail('what is written behind the repair comes back');
      last.close();
    }
  }
  t.pass();
});

test('a bit that turns over anywhere in what was acknowledged is refused, with the command that rebuilds the member', (t) => {
  const path = written(t);
  const { storage } = open(path);
  storage.saveSnapshot(snapshotAt(12, 2));
  storage.close();
  const names = [...files(path, 'log-'), ...files(path, 'snapshot-'), 'member'];
  for (const name of names) {
    const file = join(path, name);
    const good = readFileSync(file);
    for (let at = 0; at < good.length; at += 7) {
      const bad = Buffer.from(good);
      bad[at]! ^= 0x10;
      writeFileSync(file, bad);
      // A turned bit in a format number reads as a later version, which is refused too.
      t.throws(
        () => open(path),
        { code: 'ERR_DATA_DIR', message: /damaged.*farkv REBUILD|later version/s },
        `${name} at ${at}`,
      );
    }
    writeFileSync(file, good);
  }
  open(path).storage.close();
});

test('the last record is not taken for torn when it was acknowledged', (t) => {
  const path = written(t);
  truncateSync(newestSegment(path), statSync(newestSegment(path)).size - 1);
  t.throws(() => open(path), { code: 'ERR_DATA_DIR', message: /damaged/ });
});

test('one bad copy of term and vote is made good from the other; two are refused', (t) => {
  const path = written(t);
  const state = join(path, 'state');
  const good = readFileSync(state);
  for (const slot of [0, 1]) {
    const bad = Buffer.from(good);
    bad[slot * 4096 + 20]! ^= 1;
    writeFileSync(state, bad);
    const { restored, storage } = open(path);
    t.like(restored.hardState, { term: 2, vote: 1 });
    storage.close();
    const mended = readFileSync(state);
    t.deepEqual(mended.subarray(0, 32), mended.subarray(4096, 4096 + 32));
  }
  const bad = Buffer.from(good);
  bad[20]! ^= 1;
  bad[4096 + 20]! ^= 1;
  writeFileSync(state, bad);
  t.throws(() => open(path), { code: 'ERR_DATA_DIR', message: /term and vote/ });
});

test('a missing file is refused, not made afresh', (t) => {
  for (const name of ['state', 'member', 'log-0000000000000001', 'log-0000000000000002']) {
    const path = written(t);
    rmSync(join(path, name));
    t.throws(() => open(path), { code: 'ERR_DATA_DIR', message: /damaged/ }, name);
  }
  const path = written(t);
  rmSync(newestSegment(path));
  t.throws(() => open(path), { code: 'ERR_DATA_DIR', message: /damaged/ });
});

test('a directory of another cluster or another member is refused', (t) => {
  const path = written(t);
  t.throws(() => open(path, { identity: { clusterId: 'two', memberId: 3 } }), {
    code: 'ERR_DATA_DIR',
    message: /belongs to cluster one, not to two/,
  });
  t.throws(() => open(path, { identity: { clusterId: 'one', memberId: 4 } }), {
    code: 'ERR_DATA_DIR',
    message: /belongs to member 3, not to 4/,
  });
});

test('a start reads what is on the disk, and not what a failed sync has left in the page cache', (t) => {
  const path = written(t);
  const dropped = new Set<string>();
  const dropCleanPages = (fd: number): void => {
    dropped.add(basename(readlinkSync(`/proc/self/fd/${fd}`)));
    addon.dropCleanPages(fd);
  };
  RaftStorage.open(options(new FileDisk(path, { tryLock: () => true, dropCleanPages }))).storage.close();
  const files = readdirSync(path).filter((name) => /^(?:log-|snapshot|state|member)/.test(name));
  t.true(files.length >= 3);
  t.deepEqual([...dropped].sort(), files.sort());
});

test('a directory that another process holds is refused', (t) => {
  t.throws(() => RaftStorage.open(options(new FileDisk(directory(t), { ...NATIVE, tryLock: () => false }))), {
    code: 'ERR_DATA_DIR',
    message: /in use by another process/,
  });
});

test('with the addon, the lock is real and the checksum is the one that these tests compute', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let size = 0; size < 300; size++) {
    const bytes = random.bytes(size);
    t.is(addon.crc32c(bytes), crc32c(bytes));
  }
  const path = directory(t);
  const native = { checksum: (bytes: Uint8Array) => addon.crc32c(bytes) };
  const disk = () => new FileDisk(path, addon);
  const { storage } = RaftStorage.open(options(disk(), native));
  t.throws(() => RaftStorage.open(options(disk(), native)), {
    code: 'ERR_DATA_DIR',
    message: /in use by another process/,
  });
  storage.close();
  RaftStorage.open(options(disk(), native)).storage.close();
});

test('what a later version wrote is refused as such', (t) => {
  const path = written(t);
  const body = JSON.stringify({ format: 2, clusterId: 'one', memberId: 3 });
  writeFileSync(
    join(path, 'member'),
    `farkv raft directory\n${body}\ncrc32c ${crc32c(Buffer.from(body)).toString(16).padStart(8, '0')}\n`,
  );
  t.throws(() => open(path), {
    code: 'ERR_DATA_DIR',
    message: /written by a later version of farkv: it has format 2, this version knows 1/,
  });
});

test('garbage behind the last record is cut off', (t) => {
  const path = written(t);
  appendFileSync(newestSegment(path), 'FKRR and more');
  notices.length = 0;
  open(path).storage.close();
  t.regex(notices.join(), /cut off/);
});

for (const where of ['process', 'worker']) {
  test(`a failed sync ends the ${where === 'worker' ? 'process from its worker thread' : 'process'} at once`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'farkv-sync-'));
    t.teardown(() => rmSync(directory, { recursive: true }));
    const child = spawn(process.execPath, [join(import.meta.dirname, 'failing-disk.js'), where], {
      env: { ...process.env, TMPDIR: directory },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    const [, signal] = (await once(child, 'close')) as [number | null, string | null];
    t.is(signal, 'SIGABRT');
    t.is(out, '');
    t.regex(err, /farkv: fatal: writing the Raft log in .* failed: EIO: i\/o error, fdatasync\. The process ends/);
  });
}
