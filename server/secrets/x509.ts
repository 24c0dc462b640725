/**
 * Certificates of a cluster, made with pkijs and the WebCrypto of Node.js: ECDSA with P-256 and SHA-256. No file is read or
 * written here (authority.ts). Loaded by `farkv secrets` alone.
 */
import { createHash, createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { BitString, fromBER, Integer, OctetString, Utf8String } from 'asn1js';
import {
  AttributeTypeAndValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtKeyUsage,
  Extension,
  GeneralName,
  GeneralNames,
} from 'pkijs';

/** PEM */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateRequest {
  /** The common name: for people. */
  readonly subject: string;
  /** The role name. */
  readonly uri?: string;
  /** Host names and IP addresses. */
  readonly hosts?: readonly string[];
  readonly days: number;
  readonly use: 'authority' | 'server' | 'client';
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' };
/** Clocks of the machines that look at it may be late. */
const EARLIER_MS = 5 * 60_000;
const DAY_MS = 86_400_000;

const COMMON_NAME = '2.5.4.3';
const OF = {
  subjectKey: '2.5.29.14',
  keyUsage: '2.5.29.15',
  alternativeNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKey: '2.5.29.35',
  extendedUsage: '2.5.29.37',
} as const;
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
/** The bits of KeyUsage, and how many of the last byte do not count: certificates and lists; signatures. */
const KEY_USAGE = { authority: { bits: 0x06, unused: 1 }, holder: { bits: 0x80, unused: 7 } };

const bytes = (from: Uint8Array): ArrayBuffer => new Uint8Array(from).buffer;

function addressBytes(address: string): ArrayBuffer {
  if (isIP(address) === 4) return Uint8Array.from(address.split('.').map(Number)).buffer;
  // Written in the one way of RFC 5952, without an IPv4 address at its end.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const words = (text: string): number[] => (text === '' ? [] : text.split(':').map((word) => parseInt(word, 16)));
  const [first, last] = [words(head), words(tail ?? '')];
  const all = [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last];
  return Uint8Array.from(all.flatMap((word) => [word >> 8, word & 0xff])).buffer;
}

function nameOf(host: string): GeneralName {
  return isIP(host) === 0
    ? new GeneralName({ type: 2, value: host })
    : new GeneralName({ type: 7, value: new OctetString({ valueHex: addressBytes(host) }) });
}

const pem = (label: string, der: ArrayBuffer): string =>
  `-----BEGIN ${label}-----\n${(
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  ).join('\n')}\n-----END ${label}-----\n`;

const derOf = (certificate: string): ArrayBuffer => bytes(new X509Certificate(certificate).raw);

/** Of a public key as it stands in a certificate. */
const keyIdentifier = (certificate: Certificate): OctetString =>
  new OctetString({
    valueHex: bytes(
      createHash('sha256')
        .update(certificate.subjectPublicKeyInfo.subjectPublicKey.valueBlock.valueHexView)
        .digest()
        .subarray(0, 20),
    ),
  });

function extensionsOf(
  { use, uri, hosts = [] }: CertificateRequest,
  certificate: Certificate,
  issuer: Certificate,
): Extension[] {
  const extension = (extnID: string, critical: boolean, value: { toBER: () => ArrayBuffer }): Extension =>
    new Extension({ extnID, critical, extnValue: value.toBER() });
  const usage = use === 'authority' ? KEY_USAGE.authority : KEY_USAGE.holder;
  const names = [...hosts.map(nameOf), ...(uri === undefined ? [] : [new GeneralName({ type: 6, value: uri })])];
  const purposes = use === 'server' ? [SERVER_AUTH, CLIENT_AUTH] : [CLIENT_AUTH];
  return [
    extension(
      OF.basicConstraints,
      true,
      new BasicConstraints(use === 'authority' ? { cA: true, pathLenConstraint: 0 } : {}).toSchema(),
    ),
    extension(
      OF.keyUsage,
      true,
      new BitString({ valueHex: Uint8Array.of(usage.bits).buffer, unusedBits: usage.unused }),
    ),
    extension(OF.subjectKey, false, keyIdentifier(certificate)),
    // The next authority has the same name: its key says which one is meant.
    extension(OF.authorityKey, false, new AuthorityKeyIdentifier({ keyIdentifier: keyIdentifier(issuer) }).toSchema()),
    ...(use === 'authority'
      ? []
      : [extension(OF.extendedUsage, false, new ExtKeyUsage({ keyPurposes: purposes }).toSchema())]),
    ...(names.length === 0 ? [] : [extension(OF.alternativeNames, false, new GeneralNames({ names }).toSchema())]),
  ];
}

/** A new key and its certificate, signed by `authority`; an authority signs itself. */
export async function makeCertificate(request: CertificateRequest, authority?: Pair): Promise<Pair> {
  const { subject, days } = request;
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = new Certificate();
  const issuer =
    authority === undefined ? certificate : new Certificate({ schema: fromBER(derOf(authority.cert)).result });
  certificate.version = 2;
  const serial = randomBytes(16);
  // Positive, and with all of its bytes.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  certificate.serialNumber = new Integer({ valueHex: bytes(serial) });
  certificate.subject.typesAndValues.push(
    new AttributeTypeAndValue({ type: COMMON_NAME, value: new Utf8String({ value: subject }) }),
  );
  certificate.issuer = issuer.subject;
  const now = Date.now();
  certificate.notBefore.value = new Date(now - EARLIER_MS);
  certificate.notAfter.value = new Date(now + days * DAY_MS);
  await certificate.subjectPublicKeyInfo.importKey(keys.publicKey);
  certificate.extensions = extensionsOf(request, certificate, issuer);
  const signer =
    authority === undefined
      ? keys.privateKey
      : await webcrypto.subtle.importKey(
          'pkcs8',
          createPrivateKey(authority.key).export({ type: 'pkcs8', format: 'der' }),
          ALGORITHM,
          false,
          ['sign'],
        );
  await certificate.sign(signer, 'SHA-256');
  return {
    cert: pem('CERTIFICATE', certificate.toSchema(true).toBER(false)),
    key: pem('PRIVATE KEY', await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)),
  };
}
