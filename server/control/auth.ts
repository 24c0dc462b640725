/**
 * Who comes in as what. A token says the role, or a certificate does with its role name (core/role-name.ts): of a client
 * `writer` or `reader`, of an operator `operator` or `monitor`, of a server `peer`. Those of clients belong to a tenant. Tokens are compared so that neither the time
 * taken nor the length tells anything about the right ones.
 *
 * Files are read again when they have changed, so tokens are exchanged without a restart.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { FarkvError } from '../../core/errors.js';
import { basename } from 'node:path';
import type { Role } from '../../core/protocol/index.js';
import { ANY_SERVER, type CertificateRole } from '../../core/role-name.js';
import { expired, soleName, type ShownCertificate } from '../../net/certificate.js';
import { WatchedFiles, type Watched, type WatchOptions } from '../../net/watched-files.js';
import { secretsOf, type SecretSource } from '../config/secret-file.js';
import type { AccessSettings } from '../config/settings.js';

/** A joiner is a server that asks for its place in the cluster. */
export type Access = 'writer' | 'reader' | 'operator' | 'monitor' | 'peer' | 'joiner';

/** Who makes calls at the control port. */
export type Caller = 'operator' | 'monitor';

/** What the other end of a connection may do. */
export interface Identity {
  readonly access: Access;
  /** For the log: the name in the certificate, or which token it was; never the token. */
  readonly name: string;
  /** Of a client; undefined: the default tenant. */
  readonly tenant?: string;
  /** Of the tenant's clients at this server; undefined: no bound but that of all connections. */
  readonly maxClients?: number;
  /** Of a server that has shown a certificate of its own: it is nobody else. */
  readonly serverId?: string;
  /** Why it would not be let in again with the same credential; undefined: it would. */
  readonly lapsed?: (wallMs: number) => string | undefined;
}

const digest = (token: string): Buffer => createHash('sha256').update(token, 'utf8').digest();

/** The tokens of one source. */
export class Tokens {
  /** Where they are, for the log. */
  readonly source: string;
  readonly #secrets: Watched<readonly { readonly text: string; readonly digest: Buffer }[]>;

  /** Throws ERR_CONFIG. When the file cannot be read later, what it had said before stays good. */
  constructor(source: SecretSource, watch: WatchOptions = {}) {
    this.source = 'text' in source ? 'token' : basename(source.file);
    const read = () => secretsOf(source, 'a token file').map((text) => ({ text, digest: digest(text) }));
    this.#secrets = 'text' in source ? { value: read() } : new WatchedFiles([source.file], read, watch);
  }

  /** Its file is looked at, and read if it has changed. */
  look(): void {
    this.#secrets.look?.();
  }

  /** The one that this end shows to others. */
  get first(): string {
    return this.all[0] ?? '';
  }

  /** In the order of the file. */
  get all(): readonly string[] {
    return this.#secrets.value.map((one) => one.text);
  }

  /**
   * Why a token that was good is so no more; undefined: it is good. Costs a comparison only after the file has changed.
   */
  lapsed(shown: string): () => string | undefined {
    const given = digest(shown);
    let looked = this.#secrets.value;
    return () => {
      const now = this.#secrets.value;
      // mutation: credentials/token-taken-out
      if (now !== looked && !now.some((one) => timingSafeEqual(one.digest, given)))
        return `its token was taken out of ${this.source}`;
      looked = now;
      return undefined;
    };
  }

  /** All are compared, whichever is the right one. */
  accepts(shown: string | undefined): boolean {
    return this.#lineOf(shown) > 0;
  }

  /** Which of the tokens this is, by its place among those of its file. */
  label(shown: string | undefined): string {
    return `${this.source}${this.#secrets.value.length > 1 ? `:${this.#lineOf(shown)}` : ''}`;
  }

  /** From 1; 0: none. */
  #lineOf(shown: string | undefined): number {
    const given = digest(shown ?? '');
    const right = this.#secrets.value.map((one) => timingSafeEqual(one.digest, given));
    return shown === undefined ? 0 : right.indexOf(true) + 1;
  }
}

/** Without any token and without certificates everybody may do everything. */
export function isOpen({ tenants, ...ways }: AccessSettings): boolean {
  return tenants.length === 0 && Object.keys(ways).length === 0;
}

interface Key {
  readonly role: Role;
  readonly tokens: Tokens;
  readonly identity: Omit<Identity, 'name'>;
}

export class Credentials {
  readonly #keys: readonly Key[];
  readonly #access: AccessSettings;

  /** Throws ERR_CONFIG. */
  constructor(access: AccessSettings, watch?: (file: string) => WatchOptions) {
    this.#access = access;
    const key = (role: Role, source: SecretSource | undefined, identity: Key['identity']): Key[] =>
      source === undefined
        ? []
        : [{ role, tokens: new Tokens(source, 'file' in source ? watch?.(source.file) : {}), identity }];
    this.#keys = [
      ...key('client', access.writer, { access: 'writer' }),
      ...key('client', access.reader, { access: 'reader' }),
      ...key('admin', access.operator, { access: 'operator' }),
      ...key('admin', access.monitor, { access: 'monitor' }),
      ...key('peer', access.peer, { access: 'peer' }),
      ...access.tenants.flatMap(({ name, maxClients, writer, reader }) => {
        // mutation: tenants/default-token
        const of = { tenant: name, ...(maxClients === undefined ? {} : { maxClients }) };
        return [
          ...key('client', writer, { access: 'writer', ...of }),
          ...key('client', reader, { access: 'reader', ...of }),
        ];
      }),
    ];
  }

  /** Files that have changed are found now, and not when somebody comes. */
  look(): void {
    for (const { tokens } of this.#keys) tokens.look();
  }

  /** Undefined: nobody who may come in as `role`. Without any token or certificate at all, everybody may. */
  identify(role: Role, token: string | undefined): Identity | undefined {
    if (this.isOpen) return { access: OPEN[role], name: 'anybody' }; // mutation: tenants/open-role
    // Those of other roles are compared too: the time taken tells nothing.
    // mutation: tenants/any-role
    const [found] = this.#keys.filter((key) => key.tokens.accepts(token) && key.role === role);
    if (found === undefined || token === undefined) return undefined;
    const name = found.tokens.label(token);
    return { ...found.identity, name, lapsed: found.tokens.lapsed(token) };
  }

  /** Nobody has to show anything. */
  get isOpen(): boolean {
    return isOpen(this.#access);
  }

  /**
   * Who has shown this certificate; undefined: nobody of this cluster's. Throws ERR_UNAUTHORIZED when it claims a role that
   * it does not open here.
   */
  certified(role: Role, shown: ShownCertificate | undefined): Identity | undefined {
    const { cluster, tenants } = this.#access;
    if (cluster === undefined || shown === undefined) return undefined;
    const { uris, untrusted, expiresMs } = shown;
    const refuse = (why: string): never => {
      throw new FarkvError('ERR_UNAUTHORIZED', `the certificate (${uris.join(', ')}) opens nothing here: ${why}`);
    };
    // mutation: credentials/another-authority
    if (untrusted !== undefined) return refuse(`it is not trusted (${untrusted})`);
    const name = soleName(uris);
    if (name === undefined) return refuse('it is expected to have one farkv://CLUSTER/ROLE/NAME');
    if (name.cluster !== cluster) return refuse(`this is cluster ${cluster}`); // mutation: credentials/another-cluster
    // mutation: credentials/any-role
    if (!OPENS[role].includes(name.role)) return refuse(`${ROLES[role]} come as ${OPENS[role].join(' or ')}`);
    const tenant = tenants.find((one) => one.name === name.tenant);
    if (name.tenant !== undefined && tenant === undefined) return refuse(`there is no tenant ${name.tenant}`);
    return {
      access: name.role,
      name: name.name,
      lapsed: (wallMs) => expired(expiresMs, wallMs),
      ...(tenant === undefined ? {} : { tenant: tenant.name }), // mutation: credentials/tenant-certificate
      ...(tenant?.maxClients === undefined ? {} : { maxClients: tenant.maxClients }),
      ...(role !== 'peer' || name.name === ANY_SERVER ? {} : { serverId: name.name }),
    };
  }

  /** Whether this server has a token that opens `role`. */
  hasTokens(role: Role): boolean {
    return this.#keys.some((key) => key.role === role);
  }

  /** Why nobody could come in as `role`, if so. */
  missing(role: Role): string | undefined {
    if (this.isOpen || this.#access.cluster !== undefined || this.hasTokens(role)) return undefined;
    return MISSING[role];
  }
}

const ROLES: Readonly<Record<Role, string>> = { client: 'clients', admin: 'operators', peer: 'servers' };
const OPENS: Readonly<Record<Role, readonly CertificateRole[]>> = {
  client: ['writer', 'reader'],
  admin: ['operator', 'monitor'],
  peer: ['peer'],
};
const OPEN: Readonly<Record<Role, Access>> = { client: 'writer', admin: 'operator', peer: 'peer' };
const MISSING: Readonly<Record<Role, string>> = {
  client: 'this server was started without a token for clients (--token-file)',
  admin:
    'this server was started without a token for operators or monitors (--operator-token-file, --monitor-token-file)',
  peer: 'this server was started without a token for servers (--peer-token-file)',
};
