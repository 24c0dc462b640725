/** Files of a server's own directory: what is under their names may be something else all the same. */
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
