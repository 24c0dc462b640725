/** How `farkv` ends, for scripts: the numbers are documented in --help and never change their meaning. */
import { FarkvError, NO_DATA_PLANE, type ErrorCode } from '../../core/errors.js';

export const EXIT = {
  ok: 0,
  /** The operation failed. */
  failed: 1,
  /** The command line or the configuration is wrong; nothing was tried. */
  usage: 2,
  /** `get`, `delete`: the key is not there. */
  notFound: 3,
  /** `server`: it was removed from the cluster. Another start would be refused (RestartPreventExitStatus= of the unit). */
  removed: 4,
  /** No server answered in time, or the cluster has no leader (EX_UNAVAILABLE of sysexits.h). */
  unavailable: 69,
  /** Standard output or a file cannot be written, as where a disk is full (EX_IOERR). */
  output: 74,
  /** The server did not accept the token (EX_NOPERM). */
  denied: 77,
} as const;

/** For the help of a command: what its 0 and 1 mean, and the rest where it can happen. */
export function exitCodesHelp(
  own: { readonly done?: string; readonly failed?: string; readonly notFound?: string } = {},
): string {
  const { done = 'done', failed = 'failed', notFound } = own;
  return `Exit codes: 0 ${done}, 1 ${failed}, 2 wrong usage or configuration,${notFound === undefined ? '' : ` 3 ${notFound},`} 69 no server answers or a shard has none, 74 output cannot be written, 77 not authorized`;
}

export const EXIT_CODES_HELP = exitCodesHelp({ notFound: 'key not found' });

/** What to do about a failure, where the message does not say so itself. */
const REACH = 'is a server running there? farkv server starts one; --connect or FARKV_CONNECT says where to look';
const hints: Partial<Record<ErrorCode, string>> = {
  ERR_TIMEOUT: `${REACH}; where one is, give it longer with --timeout, and see farkv status`,
  ERR_DISCONNECTED: REACH,
  ERR_NO_LEADER: 'farkv status names the servers to start again; then repeat the command, unless it has taken effect',
  ERR_SHARD_UNAVAILABLE: 'farkv status shows why; if a server is missing, start it again, with its --data-dir',
  ERR_UNAUTHORIZED:
    'the token comes from --token-file, FARKV_TOKEN_FILE, FARKV_TOKEN or --token, the certificate from --tls-cert and --tls-key; --tls-ca names who signs those of servers: the ca.crt that they have',
  ERR_TABLE_FULL:
    'delete keys, or give the servers more --memory; where farkv status shows a full disk, free space on it; a value must fit into what is free of its shard: farkv status --json shows how much that may have (memoryLimitBytes)',
  ERR_TOO_FEW_COPIES: 'farkv status shows which server is missing; changes go on once it is back',
  ERR_NOT_INTEGER: 'farkv get shows what the key has',
  ERR_INDETERMINATE: 'read the key to see whether it took effect',
};

/** `command`: which has failed, where that is known; it is not the way out. */
export function hintFor(error: unknown, command?: string): string | undefined {
  if (error instanceof FarkvError && error.message.startsWith(NO_DATA_PLANE)) return undefined;
  if (command === 'status' && error instanceof FarkvError && error.code === 'ERR_TIMEOUT')
    return `${REACH}; where one is, give it longer with --timeout, or ask other servers too: --connect takes several`;
  return error instanceof FarkvError ? hints[error.code] : undefined;
}

const codes: Partial<Record<ErrorCode, number>> = {
  ERR_CONFIG: EXIT.usage,
  ERR_ARGUMENT: EXIT.usage,
  ERR_KEY_INVALID: EXIT.usage,
  ERR_VALUE_TOO_LARGE: EXIT.usage,
  ERR_ADDRESS_INVALID: EXIT.usage,
  ERR_REMOVED: EXIT.removed,
  ERR_TIMEOUT: EXIT.unavailable,
  ERR_DISCONNECTED: EXIT.unavailable,
  ERR_NO_LEADER: EXIT.unavailable,
  ERR_SHARD_UNAVAILABLE: EXIT.unavailable,
  ERR_UNAUTHORIZED: EXIT.denied,
};

export function exitCodeOf(error: unknown): number {
  return error instanceof FarkvError ? (codes[error.code] ?? EXIT.failed) : EXIT.failed;
}
