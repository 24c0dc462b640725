/**
 * Files that somebody names: in a setting, on the command line, in a directory. What lies there may be no file but a
 * pipe whose other end nobody opens, or a device without an end, or a file of which most was never written. So each is
 * opened without waiting, looked at through its descriptor, and read up to a bound.
 *
 * Links are followed: Kubernetes mounts secrets as links.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import os from 'node:os';
import { getSystemErrorMap } from 'node:util';

/** Of certificates and keys: an authority bundle of a system has less than one MiB. */
export const PEM_BYTES_MAX = 4 << 20;
/** Of what people write: options, properties. */
export const TEXT_BYTES_MAX = 1 << 20;

/** What is there is no file, or has more bytes than such a file can have. The message says which. */
export class UnfitFile extends Error {}
/** It is no file. */
export class NotRegular extends UnfitFile {}

/** Why a file cannot be used, for the end of a sentence. */
export function fileReason(error: unknown): string {
  if (error instanceof UnfitFile) return error.message;
  const { errno, code } = error as NodeJS.ErrnoException;
  return errno === undefined ? (code ?? 'error') : errnoText(-errno);
}

/** `ENOENT, no such file or directory`; `errno` is positive. */
export function errnoText(errno: number): string {
  if (errno === os.constants.errno.EDQUOT) return 'EDQUOT, disk quota exceeded'; // which libuv does not know
  const [name, text] = getSystemErrorMap().get(-errno) ?? [`error ${errno}`];
  return text === undefined ? name : `${name}, ${text}`;
}

/** What it is instead; undefined: a regular file. */
export function otherKind(file: Stats): string | undefined {
  if (file.isFile()) return undefined;
  if (file.isDirectory()) return 'a directory';
  if (file.isFIFO()) return 'a pipe';
  return file.isSocket() ? 'a socket' : 'a device';
}

function checkRegular(file: Stats): void {
  const kind = otherKind(file);
  if (kind !== undefined) throw new NotRegular(`it is ${kind}, not a regular file`);
}

/** A descriptor of a regular file. Throws UnfitFile, and errors of fs.open. */
export function openRegular(path: string, flags: number = constants.O_RDONLY, mode?: number): number {
  const fd = openSync(path, flags | constants.O_NONBLOCK | constants.O_NOCTTY, mode);
  try {
    checkRegular(fstatSync(fd));
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** The same, for reading without waiting. */
export async function openRegularFile(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    checkRegular(await file.stat());
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** All bytes of a regular file of at most `bytesMax`. Throws UnfitFile, and errors of fs.open and fs.read. */
export function readRegular(path: string, bytesMax: number): Buffer {
  const fd = openRegular(path);
  try {
    const { size } = fstatSync(fd);
    const tooLarge = (bytes: number): UnfitFile =>
      new UnfitFile(`it has ${bytes.toLocaleString('en')} bytes, at most ${bytesMax.toLocaleString('en')} are read`);
    if (size > bytesMax) throw tooLarge(size);
    // One more, to see its end; what grows meanwhile is read too.
    let bytes = Buffer.allocUnsafe(size + 1);
    for (let filled = 0; ;) {
      const read = readSync(fd, bytes, filled, bytes.length - filled, null);
      if (read === 0) return bytes.subarray(0, filled);
      filled += read;
      if (filled > bytesMax) throw tooLarge(filled);
      if (filled === bytes.length) bytes = Buffer.concat([bytes], 2 * filled);
    }
  } finally {
    closeSync(fd);
  }
}
