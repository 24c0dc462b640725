/**
 * The errors of the SDK: FarkvError and its codes, and how a status of the native side becomes one.
 *
 * Errors are made only when something went wrong: a missing key and a lost compare-and-swap are values and never come
 * here.
 */
import { types } from 'node:util';
import { FarkvError, type ErrorCode } from '../core/errors.js';
import { addon } from '../native/addon.js';

export { FarkvError, type ErrorCode } from '../core/errors.js';

const { statusNames, statusTexts } = addon.constants;

function statusNumber(name: string): number {
  const at = statusNames.indexOf(name);
  if (at < 0) throw new FarkvError('ERR_ADDON', `the native addon knows no status ${name}; it is of another version`);
  return at;
}

/** The statuses that decide what an answer means; taken from the addon by name, so that they exist once. */
export const Status = {
  ok: statusNumber('OK'),
  notFound: statusNumber('NOT_FOUND'),
  versionMismatch: statusNumber('VERSION_MISMATCH'),
  keyInvalid: statusNumber('ERR_KEY_INVALID'),
  busy: statusNumber('ERR_BUSY'),
  shardUnavailable: statusNumber('ERR_SHARD_UNAVAILABLE'),
  timeout: statusNumber('ERR_TIMEOUT'),
  indeterminate: statusNumber('ERR_INDETERMINATE'),
  aborted: statusNumber('ERR_ABORTED'),
  closed: statusNumber('ERR_CLOSED'),
  bufferTooSmall: statusNumber('ERR_BUFFER_TOO_SMALL'),
  unauthorized: statusNumber('ERR_UNAUTHORIZED'),
  unsupported: statusNumber('ERR_UNSUPPORTED'),
} as const;

/**
 * The error of a status. `detail` says more than the status's own text where the caller knows more; `cause` is what
 * brought it about.
 */
export function statusError(status: number, detail?: string, cause?: unknown): FarkvError {
  const code = (statusNames[status] ?? 'ERR_INTERNAL') as ErrorCode;
  const text = statusTexts[status] ?? `status ${status} is unknown`;
  return new FarkvError(
    code,
    detail === undefined ? text : `${text} (${detail})`,
    cause === undefined ? undefined : { cause },
  );
}

/** The error of a status that an operation on this key ended with. */
export function keyError(status: number, key: unknown): FarkvError {
  return statusError(status, status === Status.keyInvalid ? describeKey(key) : undefined);
}

/** What is wrong with a key, for a person; the key itself is not repeated, it may be a secret. */
function describeKey(key: unknown): string {
  if (typeof key === 'string') {
    if (key === '') return 'this one is empty';
    if (!key.isWellFormed())
      return 'this one has half a surrogate pair, which UTF-8 cannot hold; a key of bytes is a Uint8Array';
    return `this one has ${Buffer.byteLength(key)} in UTF-8`;
  }
  if (types.isUint8Array(key)) return key.length === 0 ? 'this one is empty' : `this one has ${key.length}`;
  return `text or a Uint8Array is expected, this one is ${key === null ? 'null' : `of type ${typeof key}`}`;
}

export function argumentError(text: string, cause?: unknown): FarkvError {
  return new FarkvError('ERR_ARGUMENT', text, cause === undefined ? undefined : { cause });
}

/** What an error says, for a person; of whatever realm it is, or if it is none. */
export function textOfError(error: unknown): string {
  try {
    return String(types.isNativeError(error) ? error.message : error);
  } catch {
    return 'something that has no text';
  }
}

/** A proxy is no error of farkv's, and one that is revoked throws when it is asked. */
export const isFarkvError = (error: unknown): error is FarkvError =>
  types.isNativeError(error) && error instanceof FarkvError;

/**
 * The error that a program gets: every call ends with a FarkvError. Another one was thrown by what the program passed, a
 * getter or a proxy, when the call read it.
 */
export function asFarkvError(error: unknown, code: ErrorCode = 'ERR_ARGUMENT'): FarkvError {
  return isFarkvError(error)
    ? error
    : new FarkvError(code, `an argument cannot be used: ${textOfError(error)}`, { cause: error });
}

/** A promise that is rejected for what was thrown. */
export function rejected<T>(error: unknown): Promise<T> {
  return Promise.reject(asFarkvError(error));
}

/** Runs what reads the arguments of a call. */
export async function guarded<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw asFarkvError(error);
  }
}

/** The same, of a call that answers at once. */
export function guardedNow<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw asFarkvError(error);
  }
}
