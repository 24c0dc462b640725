/**
 * The closed set of error codes that farkv shows to a program, and the one error class that carries them.
 *
 * An expected outcome (a missing key, a compare-and-swap that lost) is a value, never an error. No caller branches on a
 * message's text. The names that come from native code are the ones of native/base/status.h; a test holds the two in
 * step.
 */
export const ERROR_CODES = [
  'ERR_KEY_INVALID',
  'ERR_VALUE_TOO_LARGE',
  'ERR_TABLE_FULL',
  /** The shard has fewer copies in sync than a change needs; nothing was changed. */
  'ERR_TOO_FEW_COPIES',
  /** The value, or the sum, of an increment is no signed 64-bit integer in decimal text; nothing was changed. */
  'ERR_NOT_INTEGER',
  'ERR_BUSY',
  'ERR_NOT_OWNER',
  'ERR_SHARD_UNAVAILABLE',
  'ERR_INDETERMINATE',
  'ERR_UNAUTHORIZED',
  'ERR_PROTOCOL_VERSION',
  'ERR_PROTOCOL',
  'ERR_TIMEOUT',
  'ERR_DISCONNECTED',
  'ERR_REMOTE_ACCESS',
  'ERR_CORRUPT',
  /** The value was written with another codec than the one it is read, or changed, with; it is whole. */
  'ERR_CODEC',
  'ERR_ABORTED',
  'ERR_CLOSED',
  'ERR_NO_MEMORY',
  'ERR_BUFFER_TOO_SMALL',
  'ERR_UNSUPPORTED',
  'ERR_ADDRESS_IN_USE',
  'ERR_ADDRESS_INVALID',
  'ERR_CONFIG',
  /** An argument of a call is of the wrong type or out of its range; nothing was sent. */
  'ERR_ARGUMENT',
  'ERR_DATA_DIR',
  /** This server was removed from its cluster, which takes it again with an empty data directory only. */
  'ERR_REMOVED',
  'ERR_NO_LEADER',
  'ERR_ADDON',
  'ERR_INTERNAL',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** How an ERR_TIMEOUT begins whose way out is not that of others: servers answer, and only their data ports do not. */
export const NO_DATA_PLANE = "no server's data plane could be reached";

/** An operating error. `cause`, where there is one, is the error underneath. */
export class FarkvError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'FarkvError';
    this.code = code;
  }
}
