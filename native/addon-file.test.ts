/** Which file of an installed package is its addon. */
import test, { type ExecutionContext } from 'ava';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { addonFile, builtFile, cLibrary, libraryOf, prebuiltFile } from './addon-file.js';
import { findNodeGyp } from './source-build.js';

function folder(t: ExecutionContext): string {
  const path = mkdtempSync(join(tmpdir(), 'farkv-addon-file-'));
  t.teardown(() => rmSync(path, { recursive: true }));
  return path;
}

function write(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, '');
  return path;
}

test('the C library is told by the loader that a program names', (t) => {
  const program = (loader: string): Buffer =>
    Buffer.from(`\x7fELF\x02\x01 ... ${loader}\0 ... /lib/ld-nothing\0`, 'latin1');
  t.is(libraryOf(program('/lib/ld-musl-x86_64.so.1')), 'musl');
  t.is(libraryOf(program('/lib/ld-musl-aarch64.so.1')), 'musl');
  t.is(libraryOf(program('/lib64/ld-linux-x86-64.so.2')), 'glibc');
  t.is(libraryOf(program('/lib/ld-linux-aarch64.so.1')), 'glibc');
  t.is(libraryOf(program('/nix/store/0a1b-glibc-2.40/lib/ld-linux-x86-64.so.2')), 'glibc');
  t.is(libraryOf(program('/lib/ld.so')), undefined);
  // ldd is of the C library of this system, which this Node.js uses.
  const { stdout } = spawnSync('ldd', [process.execPath], { encoding: 'utf8' });
  t.is(cLibrary(), stdout.includes('ld-musl') ? 'musl' : 'glibc');
});

test('an addon that was built here comes before the prebuilt one for this machine, and no other counts', (t) => {
  const root = folder(t);
  const here = cLibrary();
  write(prebuiltFile(root, process.arch, here === 'glibc' ? 'musl' : 'glibc'));
  write(prebuiltFile(root, 'riscv64', here));
  t.throws(() => addonFile(root), {
    code: 'ERR_ADDON',
    message: new RegExp(`no native addon for linux-${process.arch} with ${here}: .*npx farkv build$`),
  });
  const prebuilt = write(prebuiltFile(root, process.arch, here));
  t.is(addonFile(root), prebuilt);
  const built = write(builtFile(root));
  t.is(addonFile(root), built);
});

test('node-gyp is the one that npm names, else the one of the project', (t) => {
  const project = folder(t);
  const own = write(join(project, 'node_modules/node-gyp/bin/node-gyp.js'));
  const named = write(join(project, 'npm/node-gyp.js'));
  t.is(findNodeGyp(project, { npm_config_node_gyp: named }), named);
  t.is(findNodeGyp(project, { npm_config_node_gyp: join(project, 'gone.js') }), own);
  t.is(findNodeGyp(project, {}), own);
});
