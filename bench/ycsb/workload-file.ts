/** Reads a property file; a bare name that is no file here is looked for among the workloads that come with farkv. */
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { FarkvError } from '../../core/errors.js';
import { readRegular, TEXT_BYTES_MAX } from '../../net/regular-file.js';
import { packageFile } from '../../native/package.js';
import { parseProperties } from './properties.js';

/** A workload that comes with farkv; undefined: it has none of this name. */
function shipped(name: string): string | undefined {
  try {
    return packageFile(`bench/ycsb/workloads/${name}`).toString();
  } catch {
    return undefined;
  }
}

export function readWorkloadFile(path: string): Map<string, string> {
  const own = existsSync(path) || basename(path) !== path ? undefined : shipped(path);
  try {
    return parseProperties(own ?? readRegular(path, TEXT_BYTES_MAX).toString());
  } catch (cause) {
    throw new FarkvError(
      'ERR_CONFIG',
      `the property file ${path} cannot be read: ${cause instanceof Error ? cause.message : ''}`,
      { cause },
    );
  }
}
