/**
 * Where the addon cannot be loaded at all: under another runtime than Node.js, and out of a bundle. Each is found before
 * the addon is touched, which may end the process there, and has a text that says what to do.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FarkvError } from '../core/errors.js';

/** The name and version of a runtime that is not Node.js; undefined: it is. */
function otherRuntime(): string | undefined {
  const { bun } = process.versions;
  if (bun !== undefined) return `Bun ${bun}`;
  const { Deno } = globalThis as { readonly Deno?: { readonly version?: { readonly deno?: string } } };
  return Deno === undefined ? undefined : `Deno ${Deno.version?.deno ?? ''}`.trimEnd();
}

/**
 * Runtimes show a stack with lines of code, among which the text that says what to do is lost. So there is none, but for
 * one place under Deno: its import() takes an error without any for a module that is not there, and gives it that code.
 */
function notUnder(other: string): FarkvError {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = other.startsWith('Deno') ? 1 : 0;
  try {
    return new FarkvError(
      'ERR_ADDON',
      `farkv runs on Node.js 20.19, 22.12 or later, and this is ${other}: run this program with node`,
    );
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** What leaves farkv, with all of its entries, out of a bundle. */
export const LEFT_OUT = {
  esbuild: "external: ['farkv']",
  webpack: "externalsType: 'commonjs', externals: [/^farkv(\\/|$)/]",
  'Rollup, Vite': 'external: [/^farkv(\\/|$)/]',
} as const;

/** Of a program whose bundle has farkv in it. */
export const BUNDLED =
  'farkv is part of a bundle, and its native addon cannot be: leave it out of the bundle, and install it where the bundle runs. ' +
  Object.entries(LEFT_OUT)
    .map(([bundler, line]) => `${bundler}: ${line}`)
    .join('; ');

/** Of a program that Node.js lets do certain things alone. */
export const PERMISSIONS =
  "farkv's native addon could not be loaded: this program runs with --permission, which farkv needs more of: " +
  '--allow-addons and --allow-fs-read=* (a server also --allow-worker and --allow-fs-write=*)';

/** Of a program that may have none at all. */
export const NO_ADDONS =
  "farkv's native addon could not be loaded: this program runs with --no-addons; leave that out, also in NODE_OPTIONS";

interface Permission {
  has(scope: string, reference?: string): boolean;
}
/** undefined: the program may do everything. */
export const permission = (): Permission | undefined => (process as { readonly permission?: Permission }).permission;

const mayRead = (path: string): boolean => permission()?.has('fs.read', path) !== false;

/** What to do about an error of loading the addon; undefined: it is of the addon itself. */
export function whyNotLoaded(cause: unknown): string | undefined {
  const { code } = Object(cause) as { readonly code?: unknown };
  if (code === 'ERR_ACCESS_DENIED') return PERMISSIONS;
  if (code === 'ERR_DLOPEN_DISABLED') return permission() === undefined ? NO_ADDONS : PERMISSIONS;
  return undefined;
}

/**
 * The folder of farkv's package that has this module, given by its `import.meta.url`; undefined: a bundle has it. A
 * bundle of CommonJS has no URL at all.
 */
function rootOf(url: string | undefined): string | undefined {
  if (url === undefined) return undefined;
  let dir = dirname(fileURLToPath(url));
  while (!existsSync(join(dir, 'package.json'))) {
    if (dir === dirname(dir)) return undefined;
    dir = dirname(dir);
  }
  const { name } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as { readonly name?: unknown };
  return name === 'farkv' ? dir : undefined;
}

/**
 * The folder of farkv's package, found from the `import.meta.url` of one of its modules. Throws ERR_ADDON where the
 * addon cannot be loaded.
 */
export function packageRoot(url: string | undefined): string {
  const other = otherRuntime();
  if (other !== undefined) throw notUnder(other);
  if (url !== undefined && !mayRead(dirname(fileURLToPath(url)))) throw new FarkvError('ERR_ADDON', PERMISSIONS);
  const root = rootOf(url);
  if (root === undefined) throw new FarkvError('ERR_ADDON', BUNDLED);
  return root;
}
