/** Reads a property file; a bare name that is no file here is looked for among the workloads that come with farkv. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FarkvError } from '../../core/errors.js';
import { parseProperties } from './properties.js';

/** bench/ycsb/workloads of the package, which holds the sources beside dist. */
function shipped(name: string): string | undefined {
  for (let dir = dirname(fileURLToPath(import.meta.url)); dirname(dir) !== dir; dir = dirname(dir)) {
    const path = join(dir, 'bench/ycsb/workloads', name);
    if (existsSync(path)) return path;
  }
  return undefined;
}

export function readWorkloadFile(path: string): Map<string, string> {
  const found = existsSync(path) || basename(path) !== path ? path : (shipped(path) ?? path);
  try {
    return parseProperties(readFileSync(found, 'utf8'));
  } catch (cause) {
    throw new FarkvError(
      'ERR_CONFIG',
      `the property file ${path} cannot be read: ${cause instanceof Error ? cause.message : ''}`,
      { cause },
    );
  }
}
