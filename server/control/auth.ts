/**
 * Who comes in as what. A token says the role: of a client `writer` or `reader`, of an operator `operator` or
 * `monitor`, of a server `peer`. Tokens of clients belong to a tenant. Tokens are compared so that neither the time
 * taken nor the length tells anything about the right ones.
 *
 * Files are read again when they have changed, so tokens are exchanged without a restart.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Role } from '../../core/protocol/index.js';
import { secretsOf, type SecretSource } from '../config/secret-file.js';
import type { AccessSettings } from '../config/settings.js';

/** A joiner is a server that asks for its place in the cluster. */
export type Access = 'writer' | 'reader' | 'operator' | 'monitor' | 'peer' | 'joiner';

/** What the other end of a connection may do. */
export interface Identity {
  readonly access: Access;
  /** Of a client; undefined: the default tenant. */
  readonly tenant?: string;
  /** Of the tenant's clients at this server; undefined: no bound but that of all connections. */
  readonly maxClients?: number;
}

const digest = (token: string): Buffer => createHash('sha256').update(token, 'utf8').digest();

/** Files are looked at no more often than this. */
const LOOK_MS = 1000;

/** The tokens of one source. */
export class Tokens {
  readonly #source: SecretSource;
  readonly #unreadable: (error: unknown) => void;
  readonly #nowMs: () => number;
  #digests: readonly Buffer[] = [];
  #first = '';
  #lookedMs = -Infinity;
  #version = '';

  /** Throws ERR_CONFIG. `unreadable` is called when the file cannot be read later: what it had said before stays good. */
  constructor(
    source: SecretSource,
    unreadable: (error: unknown) => void = () => undefined,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#source = source;
    this.#unreadable = unreadable;
    this.#nowMs = nowMs;
    this.#version = this.#fileVersion();
    this.#read();
  }

  /** The one that this end shows to others. */
  get first(): string {
    this.#look();
    return this.#first;
  }

  /** All are compared, whichever is the right one. */
  accepts(shown: string | undefined): boolean {
    this.#look();
    const given = digest(shown ?? '');
    return this.#digests.filter((one) => timingSafeEqual(one, given)).length > 0 && shown !== undefined;
  }

  #look(): void {
    const now = this.#nowMs();
    if ('text' in this.#source || now - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = now;
    try {
      const version = this.#fileVersion();
      if (version === this.#version) return;
      this.#read();
      this.#version = version;
    } catch (error) {
      this.#unreadable(error);
    }
  }

  #fileVersion(): string {
    if ('text' in this.#source) return '';
    const { ino, size, mtimeNs } = statSync(this.#source.file, { bigint: true });
    return `${ino} ${size} ${mtimeNs}`;
  }

  #read(): void {
    const secrets = secretsOf(this.#source, 'a token file');
    this.#digests = secrets.map(digest);
    this.#first = secrets[0] ?? '';
  }
}

interface Key {
  readonly role: Role;
  readonly tokens: Tokens;
  readonly identity: Identity;
}

export class Credentials {
  readonly #keys: readonly Key[];

  /** Throws ERR_CONFIG. */
  constructor(access: AccessSettings, unreadable?: (error: unknown) => void) {
    const key = (role: Role, source: SecretSource | undefined, identity: Identity): Key[] =>
      source === undefined ? [] : [{ role, tokens: new Tokens(source, unreadable), identity }];
    this.#keys = [
      ...key('client', access.writer, { access: 'writer' }),
      ...key('client', access.reader, { access: 'reader' }),
      ...key('admin', access.operator, { access: 'operator' }),
      ...key('admin', access.monitor, { access: 'monitor' }),
      ...key('peer', access.peer, { access: 'peer' }),
      ...access.tenants.flatMap(({ name, maxClients, writer, reader }) => {
        const of = { tenant: name, ...(maxClients === undefined ? {} : { maxClients }) };
        return [
          ...key('client', writer, { access: 'writer', ...of }),
          ...key('client', reader, { access: 'reader', ...of }),
        ];
      }),
    ];
  }

  /** Undefined: nobody who may come in as `role`. Without any token at all, everybody may. */
  identify(role: Role, token: string | undefined): Identity | undefined {
    if (this.#keys.length === 0) return { access: OPEN[role] };
    // Those of other roles are compared too: the time taken tells nothing.
    const [found] = this.#keys.filter((key) => key.tokens.accepts(token) && key.role === role);
    return found?.identity;
  }

  /** Why nobody could come in as `role`, if so. */
  missing(role: Role): string | undefined {
    if (this.#keys.length === 0 || this.#keys.some((key) => key.role === role)) return undefined;
    return MISSING[role];
  }
}

const OPEN: Readonly<Record<Role, Access>> = { client: 'writer', admin: 'operator', peer: 'peer' };
const MISSING: Readonly<Record<Role, string>> = {
  client: 'this server was started without a token for clients (--token-file)',
  admin: 'this server was started without a token for operators (--operator-token-file)',
  peer: 'this server was started without a token for servers (--peer-token-file)',
};
