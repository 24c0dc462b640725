/** Errors that the native layer throws have a code and a message but no class of ours. */
import { FarkvError } from '../core/errors.js';
import { knownCode } from '../core/protocol/index.js';
import { describeError } from './log.js';

/** Any error as a FarkvError; its code when it has one that is known, else ERR_INTERNAL. */
export function asFarkvError(error: unknown): FarkvError {
  if (error instanceof FarkvError) return error;
  const code = error instanceof Error && 'code' in error ? knownCode(error.code) : 'ERR_INTERNAL';
  return new FarkvError(code, describeError(error), { cause: error });
}
