/**
 * Errors about a data directory. The caller sees ERR_DATA_DIR and one text that says what is wrong and what to do about
 * it.
 */
import { FarkvError } from '../../core/errors.js';
import { NoRoom } from './disk.js';

/** Something that was written and acknowledged cannot be read back. Nothing of the directory may be used. */
export class Damage extends Error {}

/** The directory is whole, and was written by a later version. */
export class NewerFormat extends Error {}

/**
 * What to tell of an error of opening. A member that went on without part of its log or its vote could make the group
 * forget what it had acknowledged; the others, if any, have it all: `rebuild` says how a damaged one comes back.
 */
export function refused(path: string, cause: unknown, rebuild: string): unknown {
  const message = textOf(path, cause, rebuild);
  return message === undefined ? cause : new FarkvError('ERR_DATA_DIR', message, { cause });
}

function textOf(path: string, cause: unknown, rebuild: string): string | undefined {
  if (cause instanceof NewerFormat) {
    return `${path} was written by a later version of farkv: ${cause.message}. Start that version or a newer one; nothing was changed.`;
  }
  if (cause instanceof Damage) {
    return `${path} is damaged: ${cause.message}. This member must not start from it. ${rebuild}`;
  }
  if (cause instanceof NoRoom)
    return `${path} has no room for the files that a start needs. Free some and start again.`;
  if (cause instanceof Error && 'syscall' in cause) return `${path} cannot be used: ${cause.message}.`;
  return undefined;
}
