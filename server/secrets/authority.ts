/**
 * The certificates of a directory of secrets (config/secrets-directory.ts): made, made anew before they expire, and
 * listed. Invariant: a file is whole at any time: it is written beside and renamed. A key comes before its certificate,
 * and whoever uses both takes neither until they fit (net/watched-files.ts).
 */
import { X509Certificate } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { isIP } from 'node:net';
import { FarkvError } from '../../core/errors.js';
import { ANY_SERVER, formatRoleName, type RoleName } from '../../core/role-name.js';
import { roleNameOf } from '../../net/certificate.js';
import { PEM_BYTES_MAX, readRegular } from '../../net/regular-file.js';
import { AUTHORITY, certificateOf, keyOf, SERVER } from '../config/secrets-directory.js';
import { checkPrivate } from '../config/secret-file.js';
import { makeCertificate, type Pair } from './x509.js';

export const AUTHORITY_DAYS = 3650;
const DAY_MS = 86_400_000;

function bad(text: string, cause?: unknown): FarkvError {
  return new FarkvError('ERR_CONFIG', text, cause === undefined ? undefined : { cause });
}

/**
 * Root may write in place of others, who read the file afterwards: it keeps its owner, its group, and its mode as far as
 * `most`. By its descriptor: in a directory of others the name may be something else by then.
 */
function write(path: string, text: string, most: number): void {
  try {
    const before = process.getuid?.() === 0 ? statSync(path, { throwIfNoEntry: false }) : undefined;
    rmSync(`${path}.new`, { force: true });
    const file = openSync(`${path}.new`, 'wx', 0o600);
    try {
      writeFileSync(file, text);
      if (before !== undefined) {
        fchownSync(file, before.uid, before.gid);
        fchmodSync(file, before.mode & most);
      }
    } finally {
      closeSync(file);
    }
    renameSync(`${path}.new`, path);
  } catch (cause) {
    throw bad(`${path} cannot be written: ${(cause as Error).message}`, cause);
  }
}

function save(directory: string, name: string, { cert, key }: Pair, others = ''): void {
  write(keyOf(directory, name), key, 0o640);
  write(certificateOf(directory, name), `${cert}${others}`, 0o644);
}

/** All certificates of a file. */
function certificatesIn(path: string): X509Certificate[] {
  const blocks = readRegular(path, PEM_BYTES_MAX)
    .toString()
    .match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
  return (blocks ?? []).map((block) => new X509Certificate(block));
}

/** The authority that signs: the first certificate of its file. Throws ERR_CONFIG. */
function authorityOf(directory: string): Pair {
  const [cert, key] = [certificateOf(directory, AUTHORITY), keyOf(directory, AUTHORITY)];
  if (!existsSync(cert) || !existsSync(key))
    throw bad(
      `${directory} has no ${AUTHORITY}.crt with its key: certificates are made where the authority's key is kept`,
    );
  checkPrivate(key, (what) => bad(`${key} ${what}`));
  const [first] = certificatesIn(cert);
  if (first === undefined) throw bad(`${cert} has no certificate`);
  return { cert: first.toString(), key: readRegular(key, PEM_BYTES_MAX).toString() };
}

/** The file of a certificate, without its ending. */
export function fileOf({ role, tenant, name }: RoleName): string {
  if (role === 'peer' && name === ANY_SERVER) return SERVER;
  return [role === 'peer' ? SERVER : role, ...(tenant === undefined ? [] : [tenant]), name].join('-');
}

export interface Issue {
  readonly file: string;
  readonly name: RoleName;
  readonly hosts: readonly string[];
  readonly days: number;
}

export async function makeAuthority(directory: string, cluster: string, others = ''): Promise<void> {
  const request = { subject: `farkv ${cluster} authority`, days: AUTHORITY_DAYS, use: 'authority' } as const;
  save(directory, AUTHORITY, await makeCertificate(request), others);
}

/** Throws ERR_CONFIG without the authority's key, and when the certificate would outlive the authority. */
export async function issue(directory: string, { file, name, hosts, days }: Issue): Promise<void> {
  const authority = authorityOf(directory);
  const until = Date.parse(new X509Certificate(authority.cert).validTo);
  if (Date.now() + days * DAY_MS > until)
    throw bad(
      `the authority expires in ${Math.floor((until - Date.now()) / DAY_MS)} days, the certificate would in ${days}: farkv secrets renew ${directory} --authority`,
    );
  const made = await makeCertificate(
    {
      subject: name.name === ANY_SERVER ? SERVER : name.name,
      uri: formatRoleName(name),
      hosts,
      days,
      use: name.role === 'peer' ? 'server' : 'client',
    },
    authority,
  );
  save(directory, file, made);
}

export interface Listed {
  readonly file: string;
  /** Undefined: an authority. */
  readonly name: RoleName | undefined;
  readonly hosts: readonly string[];
  readonly expires: Date;
  /** Days for which it was made. */
  readonly days: number;
}

/** The certificates of a directory, authorities first. Throws ERR_CONFIG. */
export function list(directory: string): Listed[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (cause) {
    throw bad(`${directory} cannot be read: ${(cause as Error).message}`, cause);
  }
  return names
    .filter((name) => name.endsWith('.crt'))
    .sort((a, b) => Number(b === `${AUTHORITY}.crt`) - Number(a === `${AUTHORITY}.crt`) || (a < b ? -1 : 1))
    .flatMap((name) => {
      const path = `${directory}/${name}`;
      try {
        return certificatesIn(path).map((certificate): Listed => {
          const [from, expires] = [new Date(certificate.validFrom), new Date(certificate.validTo)];
          return {
            file: name.slice(0, -'.crt'.length),
            name: roleNameOf(certificate.toString()),
            hosts: hostsOf(certificate),
            expires,
            days: Math.round((expires.getTime() - from.getTime()) / DAY_MS),
          };
        });
      } catch (cause) {
        throw bad(`${path} is no certificate: ${(cause as Error).message}`, cause);
      }
    });
}

function hostsOf({ subjectAltName = '' }: X509Certificate): string[] {
  return Array.from(subjectAltName.matchAll(/(?:DNS|IP Address):([^,]+)/g), ([, host = '']) => host).map((host) =>
    isIP(host) === 6 ? new URL(`http://[${host}]`).hostname.slice(1, -1) : host,
  );
}

/** Makes anew what expires within `withinDays`, with the same names and hosts. Returns the files. */
export async function renew(directory: string, withinDays: number, days?: number): Promise<string[]> {
  const due = list(directory).filter(
    (one) => one.name !== undefined && one.expires.getTime() < Date.now() + withinDays * DAY_MS,
  );
  for (const { file, name, hosts, days: before } of due)
    if (name !== undefined) await issue(directory, { file, name, hosts, days: days ?? before });
  return due.map((one) => one.file);
}

/** Another authority signs from now on. Those before it stay trusted until they are taken out of the file. */
export async function renewAuthority(directory: string): Promise<void> {
  const { cert } = authorityOf(directory);
  const cluster = /^CN=farkv (\S+) authority$/m.exec(new X509Certificate(cert).subject)?.[1];
  if (cluster === undefined) throw bad(`${directory} has an authority that farkv secrets did not make`);
  const others = certificatesIn(certificateOf(directory, AUTHORITY)).map((one) => one.toString());
  await makeAuthority(directory, cluster, others.join(''));
}
