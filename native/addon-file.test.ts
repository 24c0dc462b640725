/** Which file of an installed package is its addon. */
import test, { type ExecutionContext } from 'ava';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { inRepository } from '../bench/repository.js';
import { addonFile, builtFile, checkWhole, cLibrary, libraryOf, prebuiltFile, processorOf } from './addon-file.js';
import { findNodeGyp } from './source-build.js';

function folder(t: ExecutionContext): string {
  const path = mkdtempSync(join(tmpdir(), 'farkv-addon-file-'));
  t.teardown(() => rmSync(path, { recursive: true }));
  return path;
}

function write(path: string, text = ''): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, 'latin1');
  return path;
}

/** `e_machine` of two processors, and of one that farkv has no addon for (RISC-V). */
const MACHINES = { x64: '\x3e\0', arm64: '\xb7\0', riscv64: '\xf3\0' };
type Processor = keyof typeof MACHINES;
const [HERE, ELSEWHERE] = (process.arch === 'x64' ? ['x64', 'arm64'] : ['arm64', 'x64']) as [Processor, Processor];
/** The beginning of an addon for a processor, whose libraries have these names. */
const addonFor = (processor: Processor, ...libraries: readonly string[]): string =>
  `\x7fELF\x02\x01\x01${'\0'.repeat(9)}\x03\0${MACHINES[processor]} ... malloc\0${libraries.map((name) => `${name}\0`).join('')}napi_throw\0`;
const addon = (...libraries: readonly string[]): string => addonFor(HERE, ...libraries);
const ADDONS = { glibc: addon('libc.so.6', 'ld-linux-aarch64.so.1'), musl: addon('libc.musl-x86_64.so.1') };

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

test('the C library of an addon is told by the library that it asks for', (t) => {
  const of = (text: string) => libraryOf(Buffer.from(text, 'latin1'));
  t.is(of(ADDONS.glibc), 'glibc');
  t.is(of(addon('ld-linux-aarch64.so.1', 'libc.so.6')), 'glibc');
  t.is(of(ADDONS.musl), 'musl');
  t.is(of(addon('libc.so')), 'musl');
  t.is(of(addon('libc.so.7')), undefined);
  // The one that this Node.js loads.
  t.is(of(readFileSync(addonFile(inRepository('.'))).toString('latin1')), cLibrary());
});

test('an addon that was built for another C library is passed over, and named where there is no other', (t) => {
  const root = folder(t);
  const here = cLibrary();
  const other = here === 'glibc' ? 'musl' : 'glibc';
  write(builtFile(root), ADDONS[other]);
  t.throws(() => addonFile(root), {
    code: 'ERR_ADDON',
    message: new RegExp(
      `no native addon for linux-${process.arch} with ${here}, and the one that was built in it is for ${process.arch} with ${other}: .*npx farkv build$`,
    ),
  });
  const prebuilt = write(prebuiltFile(root, process.arch, here));
  t.is(addonFile(root), prebuilt);
  const built = write(builtFile(root), ADDONS[here]);
  t.is(addonFile(root), built);
});

test('the processor of an addon is told by its head', (t) => {
  const of = (text: string) => processorOf(Buffer.from(text, 'latin1'));
  t.is(of(addonFor('x64')), 'x64');
  t.is(of(addonFor('arm64')), 'arm64');
  t.is(of(addonFor('riscv64')), undefined);
  t.is(of(addonFor('x64').slice(0, 19)), undefined);
  t.is(of(`no ELF, or ${addonFor('x64')}`), undefined);
  t.is(processorOf(readFileSync(process.execPath)), process.arch);
});

test('an addon that was built for another processor is passed over, and named where there is no other', (t) => {
  const root = folder(t);
  const library = cLibrary();
  const name = library === 'glibc' ? 'libc.so.6' : 'libc.musl-x86_64.so.1';
  const built = write(builtFile(root), addonFor(ELSEWHERE, name));
  t.throws(() => addonFile(root), {
    code: 'ERR_ADDON',
    message: new RegExp(
      `no native addon for linux-${process.arch} with ${library}, and the one that was built in it is for ${ELSEWHERE} with ${library}: .*npx farkv build$`,
    ),
  });
  const prebuilt = write(prebuiltFile(root, process.arch, library));
  t.is(addonFile(root), prebuilt);
  write(built, addonFor('riscv64', name));
  t.is(addonFile(root), built, 'a processor that is not known may be this one');
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

test('an addon that is cut off anywhere is an error that names it, before it is loaded', (t) => {
  const whole = addonFile(inRepository('.'));
  t.notThrows(() => checkWhole(whole));
  const bytes = readFileSync(whole);
  const part = join(folder(t), 'part.node');
  for (const length of [64, 1000, bytes.length >> 1, bytes.length - 1]) {
    writeFileSync(part, bytes.subarray(0, length));
    t.throws(() => checkWhole(part), {
      code: 'ERR_ADDON',
      message: new RegExp(`part\\.node is cut off: it has ${length} of \\d+ bytes\\. Install farkv again, or build it`),
    });
  }
  for (const text of ['', ADDONS.glibc.slice(0, 30)]) {
    writeFileSync(part, text, 'latin1');
    t.notThrows(() => checkWhole(part), 'the loader says what it is');
  }
});
