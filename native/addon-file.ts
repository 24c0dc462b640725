/**
 * Where an installed package has its addon: the one that was built there, else the prebuilt one for the processor and the
 * C library of this Node.js. Not for: loading it (package.ts), building it (source-build.ts).
 */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { FarkvError } from '../core/errors.js';

export type CLibrary = 'glibc' | 'musl';

/** Program headers and the name of the loader lie here, unless a tool has moved the name. */
const HEAD_BYTES = 4096;

/** The C library of a program, by the name of its loader; undefined where the beginning of the file has no such name. */
export function libraryOf(head: Buffer): CLibrary | undefined {
  const loader = /\/ld-(musl|linux)[-.\w]*\0/.exec(head.toString('latin1'))?.[1];
  if (loader === undefined) return undefined;
  return loader === 'musl' ? 'musl' : 'glibc';
}

function headOf(path: string): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  const file = openSync(path, 'r');
  try {
    return head.subarray(0, readSync(file, head, 0, HEAD_BYTES, 0));
  } finally {
    closeSync(file);
  }
}

/**
 * The C library that this process runs with. musl may load an addon for glibc without an error and then misread its
 * structures, so trying one after the other does not tell.
 */
export function cLibrary(): CLibrary {
  try {
    const library = libraryOf(headOf(process.execPath));
    if (library !== undefined) return library;
  } catch {
    // A program that may be executed and not read.
  }
  // Looks up the name of each connection, unless told not to: Node.js 20.13 and later.
  const report = process.report as { excludeNetwork?: boolean };
  const { excludeNetwork = false } = report;
  report.excludeNetwork = true;
  const { header } = process.report.getReport() as { readonly header: { readonly glibcVersionRuntime?: string } };
  report.excludeNetwork = excludeNetwork;
  return header.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
}

/** The addon that `farkv build` or a clone's build makes, in a package's folder. */
export const builtFile = (root: string): string => join(root, 'build/Release/farkv.node');

/** The name is the one that prebuildify and node-gyp-build use for it. */
export const prebuiltFile = (root: string, arch: string, library: CLibrary): string =>
  join(root, 'prebuilds', `linux-${arch}`, `farkv.napi.${library}.node`);

/** Throws ERR_ADDON where the package has no addon for this machine. */
export function addonFile(root: string): string {
  const built = builtFile(root);
  if (existsSync(built)) return built;
  const library = cLibrary();
  const prebuilt = prebuiltFile(root, process.arch, library);
  if (existsSync(prebuilt)) return prebuilt;
  throw new FarkvError(
    'ERR_ADDON',
    `this package of farkv has no native addon for ${process.platform}-${process.arch} with ${library}: ${HOW_TO_BUILD}`,
  );
}

export const HOW_TO_BUILD = 'build it where farkv is installed, with a C compiler, make and python3: npx farkv build';
