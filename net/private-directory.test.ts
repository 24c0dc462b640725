import test from 'ava';
import fs, {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { makeDirectory, privateTemporaryDirectory } from './private-directory.js';

const uid = process.getuid?.() ?? 0;
const parent = mkdtempSync(join(tmpdir(), 'farkv-private-'));
test.after.always(() => rmSync(parent, { recursive: true }));
let count = 0;

/** A shared folder, and the name that a private one will have in it. */
function shared(): string {
  process.env.TMPDIR = join(parent, String(++count));
  mkdirSync(process.env.TMPDIR);
  return join(process.env.TMPDIR, `farkv-${uid}`);
}

const refused = { code: 'ERR_DATA_DIR', message: /is not a private directory of this user .* TMPDIR/ };

test.serial('it is made for this user alone, and found again', (t) => {
  const path = shared();
  t.is(privateTemporaryDirectory(), path);
  t.is(statSync(path).mode & 0o777, 0o700);
  t.is(privateTemporaryDirectory(), path);
});

test.serial('a link is refused, wherever it leads', (t) => {
  const elsewhere = join(parent, 'elsewhere');
  mkdirSync(elsewhere, { mode: 0o700 });
  for (const target of [elsewhere, join(parent, 'nowhere')]) {
    symlinkSync(target, shared());
    t.throws(() => privateTemporaryDirectory(), refused);
  }
});

test.serial('what others may read, or is no directory, is refused', (t) => {
  const open = shared();
  mkdirSync(open);
  chmodSync(open, 0o755);
  t.throws(() => privateTemporaryDirectory(), refused);
  writeFileSync(shared(), '', { mode: 0o600 });
  t.throws(() => privateTemporaryDirectory(), refused);
});

(uid === 0 ? test.serial : test.serial.skip)('a directory of another user is refused', (t) => {
  const path = shared();
  mkdirSync(path, { mode: 0o700 });
  chownSync(path, 1, 1);
  t.throws(() => privateTemporaryDirectory(), refused);
});

test.serial('the name of each directory that is made is on the disk when it has been made', (t) => {
  const names = new Map<number, string>();
  const synced: string[] = [];
  const { openSync, fsyncSync } = fs;
  fs.openSync = (path, ...how) => {
    const fd = openSync(path, ...how);
    names.set(fd, String(path));
    return fd;
  };
  fs.fsyncSync = (fd) => {
    fsyncSync(fd);
    synced.push(names.get(fd) ?? '');
  };
  syncBuiltinESMExports();
  t.teardown(() => {
    Object.assign(fs, { openSync, fsyncSync });
    syncBuiltinESMExports();
  });
  makeDirectory(join(parent, 'a', 'b', 'c'));
  t.deepEqual(new Set(synced), new Set([parent, join(parent, 'a'), join(parent, 'a', 'b')]));
  synced.splice(0);
  t.is(statSync(join(parent, 'a', 'b', 'c')).mode & 0o777, 0o700);
  makeDirectory(join(parent, 'a', 'b', 'c'));
  t.deepEqual(synced, [join(parent, 'a', 'b')], 'who made it may have ended before');
});
