/** Directories that are for this user alone. */
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FarkvError } from '../core/errors.js';
import { syncDirectory } from './sync-directory.js';

/**
 * Where temporary directories and sockets of this user lie; made private, and refused when somebody else made it. All
 * users may make what they like beside it, a link under its name too: so a link is refused, wherever it leads. What is
 * this user's own directory stays so, since nobody else may rename it in a directory such as /tmp.
 */
export function privateTemporaryDirectory(): string {
  const uid = process.getuid?.() ?? 0;
  const path = join(tmpdir(), `farkv-${uid}`);
  make(path, () => undefined);
  const s = lstatSync(path); // mutation: hostile/link-of-another
  // mutation: hostile/open-temporary-directory
  if (!s.isDirectory() || s.uid !== uid || (s.mode & 0o077) !== 0)
    throw new FarkvError(
      'ERR_DATA_DIR',
      `${path} is not a private directory of this user (mode 700, no link): look who made it and remove it, or name another folder by TMPDIR`,
    );
  return path;
}

/**
 * Makes a directory and its parents. Its name is on the disk when the call returns, also where it was there: who made it
 * may have ended before that. What is written into a directory would be lost with its name.
 */
export function makeDirectory(path: string): void {
  make(path, syncNames);
  syncNames(dirname(path));
}

function syncNames(directory: string): void {
  try {
    syncDirectory(directory);
  } catch (cause) {
    // One that this user may not list, or of a file system that syncs no directories, or takes no names any more.
    if (!['EACCES', 'EINVAL', 'EROFS'].includes((cause as NodeJS.ErrnoException).code ?? '')) throw cause;
  }
}

/**
 * Calls `made` with the parent of each new directory. Not mkdirSync's `recursive`: where a file system answers ENOENT
 * although the parent is there, as /proc does, that tries for ever (Node.js 20).
 */
function make(path: string, made: (parent: string) => void): void {
  if (existsSync(path)) return;
  if (!existsSync(dirname(path))) make(dirname(path), made);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (cause) {
    // Another process may have made it meanwhile.
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
  }
  made(dirname(path)); // mutation: storage/directory-unsynced
}
