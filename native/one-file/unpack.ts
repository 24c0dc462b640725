/**
 * Loads an addon that lies in memory. The loader takes files only, so the addon becomes one for a moment:
 *
 * 1. It is written into a new folder of mode 0700, as a file that must not exist yet.
 * 2. File and folder are deleted before the addon is loaded. Nothing is left behind, whatever ends the process later.
 * 3. The loader opens /proc/self/fd/N, which leads to the file that was written here, whatever stands at its old path by
 *    now. So nobody who can rename the folder, or make another in its place, decides what is loaded.
 *
 * The descriptor stays open: other threads load the addon by the same name, and get what is loaded already.
 */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FarkvError } from '../../core/errors.js';

export interface Unpacked {
  /** By this name other threads load it. */
  readonly path: string;
  readonly exports: unknown;
}

/**
 * The folder that was named for such files; else a user's own, which is the more private, then those of all. Where these
 * are mounted with noexec, as on hardened hosts, the user's folder for caches may not be. /dev/shm is memory, which is
 * there where nothing else can be written to.
 */
function folders(): readonly string[] {
  const { TMPDIR, XDG_RUNTIME_DIR, XDG_CACHE_HOME, HOME } = process.env;
  const given = (name: string | undefined): readonly string[] => (name === undefined || name === '' ? [] : [name]);
  if (given(TMPDIR).length > 0) return [tmpdir()];
  const caches =
    given(XDG_CACHE_HOME).length > 0 ? given(XDG_CACHE_HOME) : given(HOME).map((home) => join(home, '.cache'));
  return [...given(XDG_RUNTIME_DIR), tmpdir(), '/var/tmp', '/dev/shm', ...caches];
}

/** A descriptor of a file with these bytes that is in no folder any more. */
function nameless(folder: string, bytes: Buffer): number {
  const directory = mkdtempSync(join(folder, 'farkv-'));
  let fd: number | undefined;
  try {
    fd = openSync(join(directory, 'farkv.node'), 'wx+', 0o500);
    for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
    return fd;
  } catch (error) {
    if (fd !== undefined) closeSync(fd);
    throw error;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function loadFrom(folder: string, bytes: Buffer): Unpacked {
  const fd = nameless(folder, bytes);
  const path = `/proc/self/fd/${fd}`;
  const module = { exports: {} };
  try {
    process.dlopen(module, path);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return { path, exports: module.exports };
}

/** Throws ERR_ADDON with what was wrong with each folder. */
export function loadUnpacked(bytes: Buffer): Unpacked {
  const failures: string[] = [];
  for (const folder of folders()) {
    try {
      return loadFrom(folder, bytes);
    } catch (error) {
      failures.push(`${folder}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new FarkvError(
    'ERR_ADDON',
    `farkv's native addon could not be unpacked and loaded (${failures.join('; ')}). It needs a folder that this user ` +
      'may write to and that is not mounted with noexec, and /proc: name another folder by TMPDIR',
  );
}
