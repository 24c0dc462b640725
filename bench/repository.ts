/** Where the sources lie: benchmarks build C programs from them. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function above(dir: string): string {
  while (!existsSync(join(dir, 'package.json'))) dir = dirname(dir);
  return dir;
}

/** A path of the repository, whatever directory the program was started in. */
export const inRepository = (...path: readonly string[]): string =>
  join(above(dirname(fileURLToPath(import.meta.url))), ...path);
