/** How `farkv` ends, for scripts: the numbers are documented in --help and never change their meaning. */
import { FarkvError, type ErrorCode } from '../../core/errors.js';

export const EXIT = {
  ok: 0,
  /** The operation failed. */
  failed: 1,
  /** The command line or the configuration is wrong; nothing was tried. */
  usage: 2,
  /** `get`, `delete`: the key is not there. */
  notFound: 3,
  /** No server answered in time, or the cluster has no leader (EX_UNAVAILABLE of sysexits.h). */
  unavailable: 69,
  /** The server did not accept the token (EX_NOPERM). */
  denied: 77,
} as const;

export const EXIT_CODES_HELP = 'Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 key not found, 69 no server answers, 77 not authorized';

const codes: Partial<Record<ErrorCode, number>> = {
  ERR_CONFIG: EXIT.usage,
  ERR_ARGUMENT: EXIT.usage,
  ERR_KEY_INVALID: EXIT.usage,
  ERR_VALUE_TOO_LARGE: EXIT.usage,
  ERR_ADDRESS_INVALID: EXIT.usage,
  ERR_TIMEOUT: EXIT.unavailable,
  ERR_DISCONNECTED: EXIT.unavailable,
  ERR_NO_LEADER: EXIT.unavailable,
  ERR_SHARD_UNAVAILABLE: EXIT.unavailable,
  ERR_UNAUTHORIZED: EXIT.denied,
};

export function exitCodeOf(error: unknown): number {
  return error instanceof FarkvError ? (codes[error.code] ?? EXIT.failed) : EXIT.failed;
}
