/**
 * The directory that `farkv secrets init` makes and --secrets reads, for servers and for commands:
 *
 *   token, reader-token, operator-token, monitor-token, peer-token     a secret per line (secret-file.ts)
 *   ca.crt, ca.key                                                     the cluster's authority; the key stays with whoever
 *                                                                      makes certificates
 *   server-ID.crt of each server, or server.crt of all                 with .key beside each
 *   writer.crt, reader.crt, operator.crt, monitor.crt                  the same
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileReason } from '../../net/regular-file.js';

/** The options of tokens, and the names of their files. */
export const TOKEN_NAMES = ['token', 'reader-token', 'operator-token', 'monitor-token', 'peer-token'] as const;
export type TokenOption = (typeof TOKEN_NAMES)[number];

export const AUTHORITY = 'ca';
export const SERVER = 'server';

/**
 * Why nothing can be taken from a directory that somebody has named, for the end of a sentence; undefined: files in it can
 * be looked for. What is not seen there counts as not being there, so this comes first.
 */
export function directoryProblem(directory: string): string | undefined {
  try {
    if (!statSync(directory).isDirectory()) return 'is no directory';
    accessSync(directory, constants.X_OK);
    return undefined;
  } catch (error) {
    return `cannot be used: ${fileReason(error)}`;
  }
}

/** The token files of a directory by their options. */
export function tokenFiles(directory: string | undefined): ReadonlyMap<TokenOption, string> {
  if (directory === undefined) return new Map();
  return new Map(
    TOKEN_NAMES.map((name) => [name, join(directory, name)] as const).filter(([, path]) => existsSync(path)),
  );
}

export interface CertificateFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export const certificateOf = (directory: string, name: string): string => join(directory, `${name}.crt`);
export const keyOf = (directory: string, name: string): string => join(directory, `${name}.key`);

/** The authority, and the first of the named certificates that is there. */
export function certificateFiles(directory: string, names: readonly string[]): CertificateFiles {
  const ca = certificateOf(directory, AUTHORITY);
  const name = names.find((one) => existsSync(certificateOf(directory, one)));
  return {
    ...(existsSync(ca) ? { ca } : {}),
    ...(name === undefined ? {} : { cert: certificateOf(directory, name), key: keyOf(directory, name) }),
  };
}
