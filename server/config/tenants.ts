/**
 * --tenants: as it is written (options.ts), and what comes of it (load.ts).
 *
 *   tenant-a,shards=16,token-file=/etc/farkv/a[,max-clients=100]     once for each, or several with semicolons
 *                                                                    (FARKV_TENANTS)
 *   { "tenant-a": { "shards": 16, "tokenFile": "/etc/farkv/a" } }    in a file or a program; a list of texts too
 */
import { FarkvError } from '../../core/errors.js';
import { SHARDS_MAX } from '../../core/metadata/check-state.js';
import type { Tenant } from '../../core/metadata/state.js';
import { TENANTS_MAX } from '../../core/metadata/tenants.js';
import { unknownName } from '../../core/nearest.js';
import type { SecretSource } from './secret-file.js';
import type { TenantSettings } from './settings.js';

export interface TenantGiven {
  readonly name: string;
  readonly shards: number;
  readonly writer: SecretSource;
  readonly reader?: SecretSource;
  readonly maxClients?: number;
}

/** Of the first shards, and of clients with --token. */
const DEFAULT_NAME = 'default';
const FIELDS = {
  shards: 'shards',
  token: 'token',
  'token-file': 'tokenFile',
  tokenFile: 'tokenFile',
  'reader-token-file': 'readerTokenFile',
  readerTokenFile: 'readerTokenFile',
  'max-clients': 'maxClients',
  maxClients: 'maxClients',
} as const;
const MAX_CLIENTS = 65_536;

function text(value: unknown, what: string): string {
  if ((typeof value !== 'string' && typeof value !== 'number') || String(value) === '')
    throw new Error(`${what} must be text`);
  return String(value);
}

function count(value: unknown, max: number, what: string): number {
  const n = /^\d+$/.test(String(value)) ? Number(value) : NaN;
  if (!(n >= 1 && n <= max)) throw new Error(`${what} must be from 1 to ${max}, not ${String(value)}`);
  return n;
}

function domain(name: string, fields: readonly (readonly [string, unknown])[]): TenantGiven {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name))
    throw new Error(`"${name}" is not a name: letters, digits, . _ -, at most 63`);
  if (name === DEFAULT_NAME)
    throw new Error(`${DEFAULT_NAME} is the tenant of --token and --shards; choose another name`);
  const given = new Map<(typeof FIELDS)[keyof typeof FIELDS], unknown>();
  for (const [key, value] of fields) {
    if (!Object.hasOwn(FIELDS, key)) throw new Error(`${name}: ${unknownName('field', key, Object.keys(FIELDS))}`);
    const field = FIELDS[key as keyof typeof FIELDS];
    if (given.has(field)) throw new Error(`${name}: ${key} is given twice`);
    given.set(field, value);
  }
  if (!given.has('shards')) throw new Error(`${name} needs shards=N`);
  if (given.has('token') === given.has('tokenFile')) throw new Error(`${name} needs either token-file or token`);
  const at = (key: string): string => `${name}: ${key}`;
  return {
    name,
    shards: count(given.get('shards'), SHARDS_MAX - 1, at('shards')),
    writer: given.has('token')
      ? { text: text(given.get('token'), at('token')) }
      : { file: text(given.get('tokenFile'), at('token-file')) },
    ...(given.has('readerTokenFile')
      ? { reader: { file: text(given.get('readerTokenFile'), at('reader-token-file')) } }
      : {}),
    ...(given.has('maxClients') ? { maxClients: count(given.get('maxClients'), MAX_CLIENTS, at('max-clients')) } : {}),
  };
}

function parseOne(line: string): TenantGiven {
  const [name = '', ...fields] = line.split(',').map((part) => part.trim());
  return domain(
    name,
    fields.map((field) => {
      const cut = field.indexOf('=');
      if (cut < 1) throw new Error(`"${name}": expected name,shards=N,token-file=FILE`);
      return [field.slice(0, cut), field.slice(cut + 1)] as const;
    }),
  );
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Throws an Error that completes "--tenants: ...", without any token in it. */
export function parseTenants(value: unknown): TenantGiven[] {
  const all = isMap(value)
    ? Object.entries(value).map(([name, fields]) => {
        if (!isMap(fields)) throw new Error(`${name} is not a map of shards and token-file`);
        return domain(name, Object.entries(fields));
      })
    : (Array.isArray(value) ? (value as unknown[]) : [value])
        .flatMap((one) => text(one, 'each').split(';'))
        .filter((one) => one.trim() !== '')
        .map(parseOne);
  if (all.length > TENANTS_MAX) throw new Error(`${all.length} tenants; at most ${TENANTS_MAX}`);
  const names = all.map((d) => d.name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new Error(`${twice} is given twice`);
  return all;
}

/** Sorted by name. Throws an Error that completes "--tenants: ...". */
export function tenantSettings(given: readonly TenantGiven[], shards: number, hasToken: boolean): TenantSettings[] {
  if (given.length === 0) return [];
  const total = given.reduce((sum, d) => sum + d.shards, shards);
  if (total > SHARDS_MAX) throw new Error(`${total} shards with those of --shards; at most ${SHARDS_MAX}`);
  if (!hasToken) throw new Error('needs --token-file too: without it anybody is admitted to the default tenant');
  return [...given].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Throws ERR_CONFIG if the operator gave other tenants than the cluster was made with. */
export function checkTenants(given: readonly Tenant[], made: readonly Tenant[]): void {
  const said = (domains: readonly Tenant[]): string =>
    domains.map((d) => `${d.name} (${d.shards} shards)`).join(', ') || 'none';
  if (said(given) === said(made)) return;
  throw new FarkvError(
    'ERR_CONFIG',
    `--tenants differs from the tenants that the cluster was made with, which are fixed: ${said(made)}, not ${said(given)}`,
  );
}
