// The addons that the package and the one-file executables have: for whom, with what each is compiled, and the checks
// that each passes. Used by prebuild.mjs and make-binary.mjs, after setup.mjs.
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';

export const root = join(import.meta.dirname, '..');

/** The oldest glibc that Node.js 20 runs with. */
const GLIBC = [2, 28];
/** Node.js itself has these, and libuv's; what else an addon takes must be in the C library. */
const OF_NODE = /^(napi_|node_api_|uv_)/;
/** Debian's names of processors. */
const MACHINES = { x64: 'x86_64', arm64: 'aarch64' };

export const TARGETS = ['x64', 'arm64'].flatMap((arch) => ['glibc', 'musl'].map((library) => ({ arch, library })));

export function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    ...options,
  });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
}

const works = (command, ...args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/** The prefix of binutils and gcc for a processor: none for the one of this machine. */
export const prefixOf = (arch) => (arch === process.arch ? '' : `${MACHINES[arch]}-linux-gnu-`);

/** Where Debian has musl for a processor: the package musl-dev of that architecture. */
const muslOf = (arch) => `/usr/lib/${MACHINES[arch]}-linux-musl`;

/**
 * The compiler, and where headers are that it lacks: those of RDMA and of the kernel, which are the same for all C
 * libraries.
 */
function toolsOf({ arch, library }) {
  const gcc = `${prefixOf(arch)}gcc`;
  const kernel =
    arch === process.arch ? `/usr/include/${MACHINES[arch]}-linux-gnu` : `/usr/${MACHINES[arch]}-linux-gnu/include`;
  return library === 'glibc'
    ? { cc: gcc, flags: '-idirafter /usr/include' }
    : { cc: `${gcc} -specs=${muslOf(arch)}/musl-gcc.specs`, flags: `-idirafter /usr/include -idirafter ${kernel}` };
}

/** What is missing on this machine to compile for a target, as Debian's packages; undefined: nothing. */
export function missingFor({ arch, library }) {
  const foreign = arch !== process.arch;
  if (!works(`${prefixOf(arch)}gcc`, '--version'))
    return foreign
      ? `apt-get install gcc-${MACHINES[arch].replace('_', '-')}-linux-gnu libc6-dev-${arch}-cross`
      : 'apt-get install gcc';
  if (library === 'glibc' || existsSync(`${muslOf(arch)}/musl-gcc.specs`)) return undefined;
  return foreign
    ? `dpkg --add-architecture ${arch} && apt-get update && apt-get install musl-dev:${arch}`
    : 'apt-get install musl-tools';
}

/** What is linked here asks for the newest version that this machine has of a function: native/node/old-glibc.h. */
function checkGlibc(file) {
  const newer = [...run('readelf', ['--wide', '--dyn-syms', file]).matchAll(/(\w+)@GLIBC_(\d+)\.(\d+)/g)].filter(
    ([, , major, minor]) => Number(major) > GLIBC[0] || Number(minor) > GLIBC[1],
  );
  if (newer.length > 0)
    throw new Error(`${file} needs a glibc later than ${GLIBC.join('.')}: ${newer.map(([text]) => text).join(', ')}`);
}

/** The names that a file takes from others, or else those that it has for others. */
function symbols(file, taken) {
  const rows = run('readelf', ['--wide', '--dyn-syms', file]).matchAll(
    /^\s*\d+: \S+ +\d+ \w+ +(GLOBAL|WEAK) +\w+ +(\w+) +([\w.]+)/gm,
  );
  return [...rows]
    .filter(([, binding, section]) => (section === 'UND') === taken && !(taken && binding === 'WEAK'))
    .map(([, , , name]) => name);
}

/** musl's headers may be followed by glibc's: what only glibc has is found here, and not where the addon is loaded. */
function checkMusl(file, arch) {
  const has = new Set(symbols(`${muslOf(arch)}/libc.so`, false));
  const unknown = symbols(file, true).filter((name) => !has.has(name) && !OF_NODE.test(name));
  if (unknown.length > 0) throw new Error(`${file} needs what musl has not: ${unknown.join(', ')}`);
  const others = [...run('readelf', ['--dynamic', file]).matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name);
  if (others.some((name) => name !== 'libc.so')) throw new Error(`${file} needs ${others.join(', ')}`);
}

/** A compiler that finds no headers of RDMA leaves verbs out, and says nothing. */
function checkVerbs(file) {
  if (!readFileSync(file).includes('librdmacm.so.1'))
    throw new Error(`${file} has no verbs: its compiler found no headers of RDMA (libibverbs-dev, librdmacm-dev)`);
}

/** Compiles for a target in a folder of its own, and returns the path there. */
function compile({ arch, library }, work) {
  for (const part of ['package.json', 'binding.gyp', 'native'])
    cpSync(join(root, part), join(work, part), { recursive: true });
  const { cc, flags } = toolsOf({ arch, library });
  const prefix = dirname(dirname(process.execPath));
  const headers = existsSync(join(prefix, 'include/node/node_api.h')) ? [`--nodedir=${prefix}`] : [];
  const gyp = join(root, 'node_modules/node-gyp/bin/node-gyp.js');
  run(process.execPath, [gyp, 'rebuild', `--arch=${arch}`, '--jobs=max', ...headers], {
    cwd: work,
    env: { ...process.env, CC: cc, CFLAGS: flags },
  });
  return join(work, 'build/Release/farkv.node');
}

/** Writes the addon for a target, stripped and checked. Throws where it cannot be compiled, or would not run there. */
export function makeAddon(target, file) {
  const work = mkdtempSync(join(tmpdir(), 'farkv-addon-'));
  try {
    const own = target.arch === process.arch && target.library === 'glibc';
    const built = own ? join(root, 'build/Release/farkv.node') : compile(target, work);
    if (target.library === 'glibc') checkGlibc(built);
    else checkMusl(built, target.arch);
    checkVerbs(built);
    mkdirSync(dirname(file), { recursive: true });
    copyFileSync(built, file);
    run(`${prefixOf(target.arch)}strip`, ['--strip-unneeded', file]);
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Why the addon that was built here lacks verbs; undefined: it has verbs. */
export function verbsLeftOut() {
  const { providerMissing } = createRequire(import.meta.url)(join(root, 'build/Release/farkv.node'));
  const missing = providerMissing('verbs');
  // The libraries themselves may be missing on this machine.
  return missing?.startsWith('not in this build') ? missing : undefined;
}
