/**
 * Where an installed package has its addon: the one that was built there, if it is for the processor and the C library of
 * this Node.js, else the prebuilt one for both. Not for: loading it (package.ts), building it (source-build.ts).
 */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { FarkvError } from '../core/errors.js';

export type CLibrary = 'glibc' | 'musl';

/** A program's name for its loader lies here, and an addon's names for its libraries, unless a tool has moved them. */
const HEAD_BYTES = 64 << 10;

/**
 * The C library of a program, by the name of its loader, or of an addon, by the name of the library: Alpine Linux has one
 * with the processor in it, musl-gcc links with `libc.so`. undefined where the beginning of the file has no such name.
 */
export function libraryOf(head: Buffer): CLibrary | undefined {
  const text = head.toString('latin1');
  const [, loader, library] = /\/ld-(musl|linux)[-.\w]*\0|\0libc\.(musl|so\0|so\.6\0)/.exec(text) ?? [];
  if (loader === undefined && library === undefined) return undefined;
  return loader === 'linux' || library === 'so.6\0' ? 'glibc' : 'musl';
}

/** `e_machine` of ELF: the processors that farkv has addons for, as `process.arch` names them. */
const MACHINES: ReadonlyMap<number, string> = new Map([
  [62, 'x64'],
  [183, 'arm64'],
]);
const ELF_MAGIC = '\x7fELF';
const MACHINE_OFFSET = 18;

/** The processor of a program or an addon; undefined where it is another one, or the file is no ELF. */
export function processorOf(head: Buffer): string | undefined {
  if (head.length < MACHINE_OFFSET + 2 || head.toString('latin1', 0, ELF_MAGIC.length) !== ELF_MAGIC) return undefined;
  return MACHINES.get(head.readUInt16LE(MACHINE_OFFSET));
}

/** Of the header of ELF64: where the table of sections, the last that a linker writes, begins; and its size, in two parts. */
const [SECTIONS_OFFSET, SECTION_BYTES_OFFSET, SECTION_COUNT_OFFSET] = [0x28, 0x3a, 0x3c];
const HEADER_BYTES = 64;

/**
 * Throws ERR_ADDON where the file is shorter than its header says: its pages beyond the end would end the process by
 * SIGBUS when it is loaded. What has no such header is left to the loader.
 */
export function checkWhole(path: string): void {
  const head = headOf(path);
  if (head.length < HEADER_BYTES || head.toString('latin1', 0, ELF_MAGIC.length) !== ELF_MAGIC) return;
  const sections = head.readUInt16LE(SECTION_BYTES_OFFSET) * head.readUInt16LE(SECTION_COUNT_OFFSET);
  const least = Number(head.readBigUInt64LE(SECTIONS_OFFSET)) + sections;
  const { size } = statSync(path);
  if (size >= least) return;
  throw new FarkvError(
    'ERR_ADDON',
    `the native addon ${path} is cut off: it has ${size} of ${least} bytes. Install farkv again, or ${HOW_TO_BUILD}`,
  );
}

/** Empty also where the file cannot be read: a program may be executed without that, and loading an addon reports it. */
function headOf(path: string): Buffer {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    const head = Buffer.alloc(HEAD_BYTES);
    return head.subarray(0, readSync(file, head, 0, HEAD_BYTES, 0));
  } catch {
    return Buffer.alloc(0);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/**
 * The C library that this process runs with. musl may load an addon for glibc without an error and then misread its
 * structures, so trying one after the other does not tell.
 */
export function cLibrary(): CLibrary {
  const library = libraryOf(headOf(process.execPath));
  if (library !== undefined) return library;
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
  const library = cLibrary();
  const head = existsSync(built) ? headOf(built) : undefined;
  // What its head does not tell is taken for that of this machine.
  const of = head && { arch: processorOf(head) ?? process.arch, library: libraryOf(head) ?? library };
  if (of?.arch === process.arch && of.library === library) return built;
  const prebuilt = prebuiltFile(root, process.arch, library);
  if (existsSync(prebuilt)) return prebuilt;
  // A folder that was copied from another machine brings what was built there.
  const other = of === undefined ? '' : `, and the one that was built in it is for ${of.arch} with ${of.library}`;
  throw new FarkvError(
    'ERR_ADDON',
    `this package of farkv has no native addon for ${process.platform}-${process.arch} with ${library}${other}: ${HOW_TO_BUILD}`,
  );
}

export const HOW_TO_BUILD = 'build it where farkv is installed, with a C compiler, make and python3: npx farkv build';
