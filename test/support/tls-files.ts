/** The certificate of test/fixtures/tls, for 127.0.0.1, and its authority. */
import { chmodSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const tlsFile = (name: string): string =>
  fileURLToPath(new URL(`../../../test/fixtures/tls/${name}`, import.meta.url));
// git keeps no such mode, and a key that others may read is refused.
chmodSync(tlsFile('server-key.pem'), 0o600);

/** Options of `farkv server`. */
export const TLS_OPTIONS: readonly string[] = [
  '--tls-cert',
  tlsFile('server.pem'),
  '--tls-key',
  tlsFile('server-key.pem'),
  '--tls-ca',
  tlsFile('ca.pem'),
];
/** What clients trust. */
export const tlsTrust = (): { readonly ca: string } => ({ ca: readFileSync(tlsFile('ca.pem'), 'utf8') });
