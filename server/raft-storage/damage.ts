/** Errors about a data directory. The caller sees ERR_DATA_DIR and one text that says what is wrong and what to do about it. */
import { FarkvError } from '../../core/errors.js';

/** Something that was written and acknowledged cannot be read back. Nothing of the directory may be used. */
export class Damage extends Error {}

/**
 * The directory must not be used. A member that went on without part of its log or its vote could make the group forget what it had
 * acknowledged; the others have it all, so it is rebuilt from them.
 */
export function damaged(path: string, cause: Damage, rebuild: string): FarkvError {
  return new FarkvError(
    'ERR_DATA_DIR',
    `${path} is damaged: ${cause.message}. This member must not start from it. Rebuild the member from the others: ${rebuild}`,
    { cause },
  );
}
