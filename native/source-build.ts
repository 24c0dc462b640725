/**
 * Builds the addon of an installed package from its sources, for machines that no prebuilt one is for: `farkv build`.
 *
 * 1. node-gyp compiles a copy of the sources in a folder of its own, so a package's folder with spaces or other odd
 *    characters in its path does no harm, and a failed build leaves the package as it was.
 * 2. Another process loads what was built, from a file beside its place: a temporary folder that is mounted with noexec
 *    would let no process do so.
 * 3. It gets its place in the package by a rename: programs that run go on with their own.
 */
import { spawnSync, type SpawnSyncOptions } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FarkvError } from '../core/errors.js';
import { builtFile } from './addon-file.js';

/** What gyp reads: the file with the sources' list and flags is in the package, under a name that npm does not look for. */
const GYP = '{ "includes": ["native/addon.gypi"] }\n';

const TOOLS = [
  ['cc', '--version'],
  ['make', '--version'],
  ['python3', '--version'],
] as const;
const PACKAGES =
  'apt-get install gcc make python3 libc6-dev (Debian, Ubuntu); dnf install gcc make python3 (Fedora, RHEL); apk add gcc make python3 musl-dev linux-headers (Alpine)';

interface Ran {
  readonly ok: boolean;
  readonly output: string;
}

function run(command: string, args: readonly string[], options: SpawnSyncOptions = {}): Ran {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    ...options,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  });
  return { ok: status === 0, output: error === undefined ? `${stdout}${stderr}` : error.message };
}

/** `<prefix>` of this Node.js: npm lies below it, and often headers. */
const prefix = (): string => dirname(dirname(process.execPath));

/**
 * The program node-gyp: the one of the npm that runs farkv (it names its own to what it starts), one of the project, or
 * the one of the npm that came with this Node.js.
 */
export function findNodeGyp(directory: string, environment: NodeJS.ProcessEnv): string | undefined {
  const named = environment.npm_config_node_gyp;
  if (named !== undefined && existsSync(named)) return named;
  try {
    return createRequire(join(directory, 'package.json')).resolve('node-gyp/bin/node-gyp.js');
  } catch {
    const ofNpm = join(prefix(), 'lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js');
    return existsSync(ofNpm) ? ofNpm : undefined;
  }
}

function checkTools(): void {
  const missing = TOOLS.filter(([tool, argument]) => !run(tool, [argument]).ok).map(([tool]) => tool);
  if (missing.length === 0) return;
  throw new FarkvError('ERR_ADDON', `the build needs ${missing.join(', ')}, which cannot be run here: ${PACKAGES}`);
}

/** Compiles a copy of the sources in `work`, and returns the addon's file. */
function compile(root: string, work: string, nodeGyp: string, onFailure: (output: string) => void): string {
  cpSync(join(root, 'native'), join(work, 'native'), { recursive: true });
  copyFileSync(join(root, 'package.json'), join(work, 'package.json'));
  writeFileSync(join(work, 'binding.gyp'), GYP);
  // The headers that came with this Node.js serve; else node-gyp downloads them.
  const headers = existsSync(join(prefix(), 'include/node/node_api.h')) ? [`--nodedir=${prefix()}`] : [];
  const { ok, output } = run(process.execPath, [nodeGyp, 'rebuild', '--silent', '--jobs=max', ...headers], {
    cwd: work,
  });
  if (ok) return join(work, 'build/Release/farkv.node');
  onFailure(output);
  throw new FarkvError('ERR_ADDON', 'node-gyp could not build the addon');
}

/** Why an addon has no verbs, as it reports it; empty: it has. Throws ERR_ADDON where it cannot be loaded. */
function tryToLoad(file: string): string {
  const { ok, output } = run(process.execPath, [
    '-p',
    `require(${JSON.stringify(file)}).providerMissing('verbs') ?? ''`,
  ]);
  if (ok) return output.trim();
  throw new FarkvError('ERR_ADDON', `what was built cannot be loaded: ${output.trim()}`);
}

export interface Built {
  readonly file: string;
  /** Why this build has no verbs, as the addon reports it; undefined: it has. */
  readonly verbsMissing: string | undefined;
}

/**
 * `root`: the package's folder; `directory`: of the project that has it. `onFailure` gets what node-gyp printed where it
 * failed. Throws ERR_ADDON.
 */
export function buildFromSource(root: string, directory: string, onFailure: (output: string) => void): Built {
  checkTools();
  const nodeGyp = findNodeGyp(directory, process.env);
  if (nodeGyp === undefined)
    throw new FarkvError(
      'ERR_ADDON',
      'the build needs node-gyp, which this Node.js has no npm for: npm install --no-save node-gyp, then run this again',
    );
  const file = builtFile(root);
  const beside = join(dirname(file), 'new.node');
  const work = mkdtempSync(join(tmpdir(), 'farkv-build-'));
  try {
    const made = compile(root, work, nodeGyp, onFailure);
    mkdirSync(dirname(file), { recursive: true });
    copyFileSync(made, beside);
    const verbs = tryToLoad(beside);
    renameSync(beside, file);
    return { file, verbsMissing: verbs === '' ? undefined : verbs };
  } finally {
    rmSync(work, { recursive: true, force: true });
    rmSync(beside, { force: true });
  }
}
