/** Files of a server's own directory: what is under their names may be something else all the same. */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { FarkvError } from '../core/errors.js';
import { UnfitFile } from '../net/regular-file.js';

/** What `use` gives. Throws ERR_DATA_DIR, with the path, when the file is none; else what `use` throws. */
export function ownFile<T>(path: string, use: (path: string) => T): T {
  try {
    return use(path);
  } catch (cause) {
    if (cause instanceof UnfitFile)
      throw new FarkvError('ERR_DATA_DIR', `${path} cannot be used: ${cause.message}`, { cause });
    throw cause;
  }
}

/** The names in a directory are on the disk from here on. Blocks; throws what the system says. */
export function syncDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
