/**
 * Certificates with role names (core/role-name.ts): what the other end of a TLS connection has shown, as both ends read
 * it. What a role may do is decided elsewhere (server/control/auth.ts).
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { checkServerIdentity, type PeerCertificate, type TLSSocket } from 'node:tls';
import { types } from 'node:util';
import { PEM_BYTES_MAX, readRegular } from './regular-file.js';
import { WatchedFiles } from './watched-files.js';
import { ANY_SERVER, claimsRole, parseRoleName, type RoleName } from '../core/role-name.js';

/** The URIs of a certificate that claim a role, as written. */
export function roleUris(subjectAltName: string | undefined): string[] {
  // Node.js puts an entry in quotes when it has characters that could be taken for the next entry: no role name has.
  const entries = (subjectAltName ?? '').match(/(?:[^,"]|"(?:[^"\\]|\\.)*")+/g) ?? [];
  return entries
    .map((entry) => entry.trim())
    .filter((entry) => entry.startsWith('URI:'))
    .map((entry) => entry.slice('URI:'.length).replace(/^"/, ''))
    .filter(claimsRole);
}

/** The role name of a PEM certificate; undefined when it has none. Throws an Error when it has several, or a malformed one. */
export function roleNameOf(pem: Buffer | string): RoleName | undefined {
  const uris = roleUris(new X509Certificate(pem).subjectAltName);
  if (uris.length === 0) return undefined;
  const name = soleName(uris);
  if (name === undefined) throw new Error(`${uris.join(', ')} is not one farkv://CLUSTER/ROLE/NAME`);
  return name;
}

/** Undefined unless there is exactly one URI, and it is a role name. */
export function soleName(uris: readonly string[]): RoleName | undefined {
  return uris.length === 1 ? parseRoleName(uris[0] ?? '') : undefined;
}

/** A certificate that claims a role. */
export interface ShownCertificate {
  readonly uris: readonly string[];
  /** Why it is not trusted, if so: CERT_HAS_EXPIRED, SELF_SIGNED_CERT_IN_CHAIN, ... */
  readonly untrusted?: string;
  /** When it expires, milliseconds since 1970. */
  readonly expiresMs: number;
}

/** What the dialing end has shown; undefined when it showed none, or one that claims no role. */
export function shownBy(socket: TLSSocket): ShownCertificate | undefined {
  const { subjectaltname, valid_to: validTo } = socket.getPeerCertificate() as Partial<PeerCertificate>;
  const uris = roleUris(subjectaltname);
  if (uris.length === 0) return undefined;
  const error = socket.authorizationError as Error | string | null | undefined;
  const why = types.isNativeError(error) ? error.message : (error ?? 'not verified');
  return { uris, expiresMs: Date.parse(validTo ?? ''), ...(socket.authorized ? {} : { untrusted: why }) };
}

/** `TRUSTED CERTIFICATE` has more than the certificate, which OpenSSL alone reads. */
const BEGINS = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/g;
const WHOLE = /-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----[^-]+-----END \1-----/g;

/**
 * The authorities of a PEM file. OpenSSL takes a text without any, and then trusts nobody. Throws an Error that names the
 * file when it has none, or one that cannot be read.
 */
export function authoritiesIn(file: string): Buffer {
  const pem = readRegular(file, PEM_BYTES_MAX);
  const text = pem.toString('latin1');
  const whole = text.match(WHOLE) ?? [];
  if (whole.length === 0) throw new Error(`${file} has no certificate`);
  if (whole.length < (text.match(BEGINS)?.length ?? 0)) throw new Error(`${file} has a certificate without an end`);
  for (const [i, one] of whole.entries()) {
    if (one.startsWith('-----BEGIN TRUSTED')) continue;
    try {
      new X509Certificate(one);
    } catch (cause) {
      throw new Error(`${file}: certificate ${i + 1} cannot be read: ${(cause as Error).message}`, { cause });
    }
  }
  return pem;
}

/** A PEM text, and what a person calls it: its file, or the option that has it. */
export interface NamedPem {
  readonly pem: Buffer | string;
  readonly name: string;
}

/** Throws an Error that names what is at fault when either cannot be read, or they do not belong together. */
export function checkPair(cert: NamedPem, key: NamedPem): void {
  const read = <T>({ pem, name }: NamedPem, what: string, parse: (pem: Buffer | string) => T): T => {
    try {
      return parse(pem);
    } catch (cause) {
      throw new Error(`${name} has no ${what} that can be read: ${(cause as Error).message}`, { cause });
    }
  };
  const certificate = read(cert, 'certificate', (pem) => new X509Certificate(pem));
  if (!certificate.checkPrivateKey(read(key, 'private key', createPrivateKey)))
    throw new Error(`${key.name} is the key of another certificate than the one in ${cert.name}`);
}

/** When the first certificate of a PEM file ends, milliseconds since 1970; read again when the file changes. */
export function certificateEnd(file: string): { readonly value: number } {
  return new WatchedFiles([file], () => Date.parse(new X509Certificate(readRegular(file, PEM_BYTES_MAX)).validTo));
}

/** Why a certificate that was shown is good no more; undefined: it is good. */
export function expired(expiresMs: number, wallMs: number, whose = 'its'): string | undefined {
  return wallMs >= expiresMs ? `${whose} certificate has expired` : undefined;
}

/** When the certificates of a dialed connection expire, milliseconds since 1970; NaN: that end has shown none. */
export interface ShownByBoth {
  readonly ownMs: number;
  readonly otherMs: number;
}

export function shownByBoth(socket: TLSSocket): ShownByBoth {
  const endMs = (shown: object | null): number =>
    Date.parse((shown as Partial<PeerCertificate> | null)?.valid_to ?? '');
  return { ownMs: endMs(socket.getCertificate()), otherMs: endMs(socket.getPeerCertificate()) };
}

/** What a dialer knows of the server that it dials. */
export interface ExpectedServer {
  /** Of the dialer's own certificate. */
  readonly cluster?: string;
  /** A server that dials another one knows its id. */
  readonly id?: string;
  /** Whether a role name may stand for the host: the authority is one that the dialer named. */
  readonly byRole: boolean;
}

/**
 * Why this certificate is not that of the server that was dialed. A server is known by its host, as everywhere in TLS, or
 * by its role name: then it may move to another host with the certificate that it has. Where it has a role name, that must
 * fit in any case.
 */
export function checkServer(host: string, certificate: PeerCertificate, expected: ExpectedServer): Error | undefined {
  const byHost = checkServerIdentity(host, certificate);
  const uris = expected.byRole ? roleUris(certificate.subjectaltname) : [];
  if (uris.length === 0) return byHost;
  const name = soleName(uris);
  const { cluster, id } = expected;
  const fits =
    name?.role === 'peer' &&
    (cluster === undefined || name.cluster === cluster) &&
    (id === undefined || name.name === id || name.name === ANY_SERVER); // mutation: credentials/server-as-another
  if (fits) return undefined;
  const wanted = `a server${id === undefined ? '' : ` ${id}`}${cluster === undefined ? '' : ` of cluster ${cluster}`}`;
  return Object.assign(new Error(`the certificate is one of ${uris.join(', ')}, not of ${wanted}`), {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  });
}
