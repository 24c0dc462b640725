/** The disk's view of a directory. */
import { closeSync, fsyncSync, openSync } from 'node:fs';

/** The names in a directory are on the disk from here on. Blocks; throws what the system says. */
export function syncDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
