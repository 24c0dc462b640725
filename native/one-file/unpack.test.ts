/** The addon as the one-file executable loads it. */
import test, { type ExecutionContext } from 'ava';
import { fstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Addon } from '../addon.js';
import { loadUnpacked } from './unpack.js';

const ADDON = readFileSync(new URL('../../../build/Release/farkv.node', import.meta.url));

/** Variables that name folders. */
const NAMES = ['TMPDIR', 'XDG_RUNTIME_DIR', 'XDG_CACHE_HOME', 'HOME'];

/** Sets these of the variables that name folders, and no others. */
function setFolders(values: Readonly<Record<string, string | undefined>>): void {
  for (const name of NAMES) {
    const value = values[name];
    if (value === undefined) Reflect.deleteProperty(process.env, name);
    else process.env[name] = value;
  }
}

/** A folder of the test alone; the variables are as before at the end. */
function folderOf(t: ExecutionContext): string {
  const before = Object.fromEntries(NAMES.map((name) => [name, process.env[name]]));
  const folder = mkdtempSync(join(tmpdir(), 'farkv-unpack-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
    setFolders(before);
  });
  return folder;
}

const descriptors = (): number => readdirSync('/proc/self/fd').length;

test.serial('the file that is loaded has no name any more, and nobody but its user could have opened it', (t) => {
  const folder = folderOf(t);
  setFolders({ TMPDIR: folder });
  const { path, exports } = loadUnpacked(ADDON);
  t.deepEqual(readdirSync(folder), []);
  const { nlink, mode, size } = fstatSync(Number(/^\/proc\/self\/fd\/(\d+)$/.exec(path)?.[1]));
  t.deepEqual({ nlink, mode: mode & 0o777, size }, { nlink: 0, mode: 0o500, size: ADDON.length });
  t.true((exports as Addon).constants.statusNames.includes('NOT_FOUND'));
  // As another thread does.
  const module = { exports: {} };
  process.dlopen(module, path);
  t.true('constants' in module.exports);
});

test.serial('bytes that are no addon are refused, with nothing left', (t) => {
  const folder = folderOf(t);
  setFolders({ TMPDIR: folder });
  const before = descriptors();
  t.throws(() => loadUnpacked(Buffer.from('no addon')), {
    code: 'ERR_ADDON',
    message: new RegExp(`\\(${folder}: /proc/self/fd/\\d+: .*another folder by TMPDIR$`),
  });
  t.deepEqual(readdirSync(folder), []);
  t.is(descriptors(), before);
});

test.serial('a named folder is the only one; else the folder of the user comes before those of all', (t) => {
  const folder = folderOf(t);
  const [own, missing] = [join(folder, 'own'), join(folder, 'missing')];
  mkdirSync(own);
  setFolders({ TMPDIR: missing, XDG_RUNTIME_DIR: own });
  t.throws(() => loadUnpacked(ADDON), { code: 'ERR_ADDON', message: new RegExp(`\\(${missing}: ENOENT[^;]*\\)`) });
  setFolders({ XDG_RUNTIME_DIR: missing });
  t.notThrows(() => loadUnpacked(ADDON));
  const tried = (values: Readonly<Record<string, string>>): string => {
    setFolders(values);
    return t.throws(() => loadUnpacked(Buffer.from('no addon'))).message;
  };
  t.regex(
    tried({ XDG_RUNTIME_DIR: missing }),
    new RegExp(`\\(${missing}: ENOENT.*; /tmp: .*; /var/tmp: .*; /dev/shm: [^;]*\\)`),
  );
  t.regex(
    tried({ HOME: missing }),
    new RegExp(`\\(/tmp: .*; /var/tmp: .*; /dev/shm: .*; ${missing}/\\.cache: ENOENT[^;]*\\)`),
  );
  t.regex(tried({ HOME: missing, XDG_CACHE_HOME: own }), new RegExp(`; ${own}: [^;]*\\)`));
});
