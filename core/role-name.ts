/**
 * Role names: how a certificate says who its holder is and what the holder may do. One URI among its alternative names:
 *
 *   farkv://CLUSTER/ROLE/NAME              a server, an operator, a monitor, or a client of the default tenant
 *   farkv://CLUSTER/ROLE/TENANT/NAME       a client of a tenant
 *
 * The name of a server is its --id; `*` stands for any. Pure.
 */
import { memberId } from './metadata/check-state.js';

export const CERTIFICATE_ROLES = ['writer', 'reader', 'operator', 'monitor', 'peer'] as const;
export type CertificateRole = (typeof CERTIFICATE_ROLES)[number];

export interface RoleName {
  readonly cluster: string;
  readonly role: CertificateRole;
  /** Of a client; undefined: the default tenant. */
  readonly tenant?: string;
  readonly name: string;
}

const SCHEME = 'farkv://';
/** The name of a server's certificate that every server may use. */
export const ANY_SERVER = '*';

/** Whether the URI claims to be a role name. One that does and is malformed must be refused, not passed over. */
export function claimsRole(uri: string): boolean {
  return uri.toLowerCase().startsWith(SCHEME.slice(0, -2));
}

export function isPlainName(text: string): boolean {
  try {
    memberId(text, 'name');
    return true;
  } catch {
    return false;
  }
}

/** Undefined when it is none. */
export function parseRoleName(uri: string): RoleName | undefined {
  if (!uri.startsWith(SCHEME)) return undefined;
  const parts = uri.slice(SCHEME.length).split('/');
  const [cluster = '', roleText] = parts;
  const role = CERTIFICATE_ROLES.find((one) => one === roleText);
  const tenant = parts.length === 4 ? parts[2] : undefined;
  const name = parts.at(-1) ?? '';
  if (role === undefined || parts.length < 3 || parts.length > 4 || !isPlainName(cluster)) return undefined;
  if (!isPlainName(name) && !(name === ANY_SERVER && role === 'peer')) return undefined;
  if (tenant === undefined) return { cluster, role, name };
  return isPlainName(tenant) && (role === 'writer' || role === 'reader') ? { cluster, role, tenant, name } : undefined;
}

export function formatRoleName({ cluster, role, tenant, name }: RoleName): string {
  return `${SCHEME}${[cluster, role, ...(tenant === undefined ? [] : [tenant]), name].join('/')}`;
}
