/** Files that cannot be written, as on a full disk: the failure names the file, and what the system says against it. */
import { types } from 'node:util';
import { FarkvError } from '../../core/errors.js';

/** Output that a file, or standard output, did not take. */
export class WriteFailure extends Error {
  constructor(name: string, cause: unknown) {
    super(`${name} cannot be written: ${types.isNativeError(cause) ? cause.message : String(cause)}`, { cause });
  }
}

/** Runs what writes the file; throws WriteFailure, with its name, for what the system says against it. */
export async function writing<T>(path: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (cause) {
    if (cause instanceof FarkvError || !types.isNativeError(cause) || !('errno' in cause)) throw cause;
    throw new WriteFailure(path, cause);
  }
}
