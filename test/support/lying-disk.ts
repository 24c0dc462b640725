/** Servers whose disk says of values that it has what it has not (lying_disk.c): whoever looks for losses must find some. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** From dist/test/support. */
const SOURCE = fileURLToPath(new URL('../../../test/support/lying_disk.c', import.meta.url));

/**
 * The environment of such a server; the library is compiled into the directory. `sync`: batches of the log are not
 * synced, and lost with the power. `write`: the last of them are lost with the process.
 */
export function lyingDisk(directory: string, about: 'sync' | 'write'): Readonly<Record<string, string>> {
  const library = join(directory, 'lying_disk.so');
  const flags = ['-std=c11', '-Wall', '-Wextra', '-Werror', '-O1', '-shared', '-fPIC', '-pthread'];
  execFileSync('cc', [...flags, '-o', library, SOURCE, '-ldl']);
  return { LD_PRELOAD: library, FARKV_LYING_DISK: about };
}
