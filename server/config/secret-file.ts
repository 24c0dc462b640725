/**
 * Where a secret comes from: a text, or a file with one secret a line, of which each is good, so that they can be
 * exchanged one after the other while servers and clients run. Empty lines and lines that begin with # do not count.
 *
 * A file that others of this machine may read or write is refused: its secret is theirs too. A group may read a file of
 * root's, as Kubernetes mounts secrets for a user that is not root: root has chosen the group.
 */
import { statSync } from 'node:fs';
import { FarkvError } from '../../core/errors.js';
import { fileReason, otherKind, readRegular } from '../../net/regular-file.js';

export type SecretSource = { readonly text: string } | { readonly file: string };

const BYTES_MAX = 64 << 10;
const SECRETS_MAX = 16;
const SECRET_MAX = 1024;
/** What a group and others may do. */
const OTHERS = 0o077;
const GROUP_READS = 0o040;

/** `own`: the user that reads it. */
export function othersMay({ mode, uid }: { readonly mode: number; readonly uid: number }, own: number): boolean {
  const allowed = uid === 0 && own !== 0 ? GROUP_READS : 0;
  return (mode & OTHERS & ~allowed) !== 0;
}

/** The secrets of a file, at least one. Throws ERR_CONFIG; no secret is in its message. */
export function readSecretFile(path: string, where: string): string[] {
  const wrong = (what: string, cause?: unknown): FarkvError =>
    new FarkvError('ERR_CONFIG', `${where}: ${path} ${what}`, cause === undefined ? undefined : { cause });
  let text: string;
  try {
    checkPrivate(path, wrong);
    text = readRegular(path, BYTES_MAX).toString();
  } catch (cause) {
    if (cause instanceof FarkvError) throw cause;
    throw wrong(`cannot be read: ${fileReason(cause)}`, cause);
  }
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  const secrets = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (secrets.length === 0) throw wrong('is empty');
  if (secrets.length > SECRETS_MAX) throw wrong(`has ${secrets.length} secrets; at most ${SECRETS_MAX}`);
  if (secrets.some((secret) => secret.length > SECRET_MAX))
    throw wrong(`has a secret of more than ${SECRET_MAX} characters`);
  return secrets;
}

/** Throws what `wrong` makes unless the path is a file, and for its owner alone; else as fs.statSync. */
export function checkPrivate(path: string, wrong: (what: string) => FarkvError): void {
  const file = statSync(path);
  const kind = otherKind(file);
  if (kind !== undefined) throw wrong(`is ${kind}, not a regular file`);
  const { mode, size } = file;
  // mutation: tenants/secrets-for-all
  if (othersMay(file, process.getuid?.() ?? 0))
    throw wrong(`can be read or changed by others (mode ${(mode & 0o777).toString(8)}): chmod 600 ${path}`);
  if (size > BYTES_MAX) throw wrong(`has ${size} bytes; a file of secrets has at most ${BYTES_MAX}`);
}

export function secretsOf(source: SecretSource, where: string): string[] {
  return 'text' in source ? [source.text] : readSecretFile(source.file, where);
}
